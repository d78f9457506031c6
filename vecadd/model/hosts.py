"""The expected time of an addition by the processor.

alone       the part that the caller adds until the other threads have woken
together    the rest by all of them, as the best probe of so many bytes did; where the memory and not a cache is the
            bound, ordinary stores read the sum's lines before they write them, which streaming ones do not
"""

from collections.abc import Mapping
from typing import Any

from vecadd.model.limits import Limits
from vecadd.model.prediction import Prediction, longest


def predict(rung: Mapping[str, Any], limits: Limits, itemsize: int, n: int, params: Mapping[str, int]) -> Prediction:
    """The prediction of a host rung; see `vecadd.model.predict`. ``params`` are all of its parameters."""
    nbytes = n * itemsize
    every = int(limits.need("threads"))
    threads = 1 if rung["name"] == "one_thread" else params["threads"] or every
    one = rate_alone(limits, nbytes)
    if threads == 1:
        return longest(nbytes / one, {"alone": nbytes / one})
    together = rate_together(limits, nbytes)
    if rung["name"] == "threads":
        together /= 1 + from_memory(limits, nbytes) / 3  # four arrays' bytes in place of three
    together = min(threads * one, together)
    alone = min(nbytes / one, wake(limits, threads - 1))
    terms = {"alone": alone, "together": max(0.0, nbytes - alone * one) / together}
    return longest(sum(terms.values()), terms)


def rate_alone(limits: Limits, nbytes: float) -> float:
    """Bytes of an array a second that one thread adds."""
    if limits.host_add_one is None:
        raise ValueError(limits.lack("host_add_one"))
    return limits.host_add_one.rate(nbytes)


def rate_together(limits: Limits, nbytes: float) -> float:
    """Bytes of an array a second that all threads add."""
    if limits.host_add is None:
        raise ValueError(limits.lack("host_add"))
    return limits.host_add.rate(nbytes)


def from_memory(limits: Limits, nbytes: float) -> float:
    """The share of the bytes that come from memory and not from a cache: 1 at the rate of the largest arrays, which fit
    in no cache."""
    if limits.host_add is None:
        raise ValueError(limits.lack("host_add"))
    return min(1.0, limits.host_add.rate(limits.host_add.points[-1][0]) / limits.host_add.rate(nbytes))


def wake(limits: Limits, number: int) -> float:
    """Seconds until the other thread of that number, from 1 on, answers: linear between the first and the last."""
    last = limits.need("wake")
    first = last if limits.wake_one is None else limits.wake_one
    others = int(limits.need("threads")) - 1
    return first + (last - first) * min(1.0, (number - 1) / max(1, others - 1))

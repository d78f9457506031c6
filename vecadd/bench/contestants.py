"""What is timed: the rungs of the ladder, numpy.add and vecadd.add."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice
from time import perf_counter
from typing import Any

import numpy as np

from vecadd import _core
from vecadd.bench.buffers import DEVICE, HOST, Buffers, Place
from vecadd.bench.ladder import load
from vecadd.model.theory import with_parameters

CALLS = ("numpy", "add")  # contestants that are not rungs, and parts of one: downloads into memory of these kinds
DOWNLOADS = ("download_touched", "download_untouched")

QUEUED = 20  # device calls timed together: draining the queue costs 10 us, spread over these


@dataclass(frozen=True)
class Contestant:
    """``time(sets)`` adds each of the sets and returns the mean seconds of one addition.

    ``adds`` is 0 where the sum is written, else how often it is added to the output's contents; ``races`` says that
    some of these additions may be lost; ``arrays`` is how many arrays an addition moves. ``chain`` is how many
    additions of b follow one another where a rung makes several of them, 1 where it makes one; ``limited`` whether the
    cell's limit bounds it.

    ``inspect(buffers)`` is called once after the last round, outside of the clock; its result joins ``params``.
    ``check(buffers)`` replaces the comparison with a + b where something else is left, and raises WrongSumError.
    """

    name: str
    place: Place
    time: Callable[[Sequence[Buffers]], float]
    params: Mapping[str, Any] = field(default_factory=dict)
    adds: int = 0
    races: bool = False
    arrays: float = 3
    chain: int = 1
    limited: bool = True
    inspect: Callable[[Buffers], Mapping[str, Any]] | None = None
    check: Callable[[Buffers], None] | None = None


def rung_names(kind: str, dtype: str) -> list[str]:
    """The rungs of that kind that take the dtype, in the ladder's order."""
    return [rung["name"] for rung in _core.rungs() if rung["kind"] == kind and dtype in rung["dtypes"]]


def rung(
    name: str,
    place: Place,
    chosen: Mapping[str, int] | None = None,
    *,
    chain: int = 1,
    limited: bool = True,
    inspect: Callable[[Buffers], Mapping[str, Any]] | None = None,
    **params: Any,
) -> Contestant:
    """A rung with the parameters ``chosen``, timed by its own clock: the host's around its C code, or CUDA events
    around its kernel. See `Contestant` for the rest."""
    how: dict[str, Any] = {}
    if chosen:
        params["parameters"] = how["params"] = dict(chosen)
    return Contestant(name, place, _by_its_clock(name, how), params, chain=chain, limited=limited, inspect=inspect)


def device_rung(
    rung: Mapping[str, Any], dtype: np.dtype[Any], n: int, block: int, chosen: Mapping[str, int], **params: Any
) -> Contestant:
    """A device rung with that block (0: its own) and the parameters ``chosen``; its rows have the kernel's facts."""
    block = block if rung["block"] > 1 else 0
    how: dict[str, Any] = {}
    if chosen:
        params["parameters"] = how["params"] = dict(chosen)
    if block:
        how["block"] = block
    rung = with_parameters(rung, chosen)
    by_each_thread = rung["sum"] in ("added by each thread", "raced")
    return Contestant(
        rung["name"],
        DEVICE,
        _by_its_clock(rung["name"], how),
        {**params, "block": block or rung["block"], "load": load(rung, chosen)},
        adds=0 if rung["sum"] == "written" else (block or rung["block"]) if by_each_thread else 1,
        races=rung["sum"] == "raced",
        arrays=rung["bytes_per_element"] // 4,
        inspect=lambda used: kernel_facts(rung["name"], str(dtype), n, **how),
    )


def kernel_facts(name: str, dtype: str, n: int | tuple[int, ...], **how: Any) -> dict[str, Any]:
    """The facts of a device or matrix rung's launch that its row holds; the block as its number of threads."""
    facts = _core.rung_facts(name, dtype, n, **how)
    x, y, z = facts["block"]
    return {
        "block": x * y * z,
        "grid": list(facts["grid"]),
        **{key: facts[key] for key in ("launches", "registers", "occupancy", "waves")},
    }


def _by_its_clock(name: str, how: Mapping[str, Any]) -> Callable[[Sequence[Buffers]], float]:
    def time(sets: Sequence[Buffers]) -> float:
        return sum(_core.run_rung(name, a, b, out, **how) for a, b, out, _ in sets) / len(sets)

    return time


def by_host_clock(add: Callable[..., Any], **keywords: Any) -> Callable[[Sequence[Buffers]], float]:
    """``time`` of a contestant that is called from Python and has its sum in ``out`` when the call returns."""

    def time(sets: Sequence[Buffers]) -> float:
        begin = perf_counter()
        for a, b, out, _ in sets:
            add(a, b, out=out, **keywords)
        return (perf_counter() - begin) / len(sets)

    return time


def numpy_add() -> Contestant:
    """numpy.add(a, b, out=c)"""
    return Contestant("numpy", HOST, by_host_clock(np.add))


def host_add() -> Contestant:
    """vecadd.add(a, b, out=c)"""
    return Contestant("add", HOST, by_host_clock(_core.add))


def transfer_add(place: Place, **params: Any) -> Contestant:
    """vecadd.add(a, b, out=c, device="cuda")"""
    return Contestant("add", place, by_host_clock(_core.add, device="cuda"), params)


def device_add(**keywords: Any) -> Contestant:
    """vecadd.add(a, b, out=c, **keywords) of DeviceArrays by the host's clock: queues calls, then waits for them."""
    marker = _core.to_device(np.zeros(1, np.uint8))

    def time(sets: Sequence[Buffers]) -> float:
        calls = max(QUEUED, len(sets))
        marker.numpy()
        begin = perf_counter()
        for a, b, out, _ in islice(cycle(sets), calls):
            _core.add(a, b, out=out, **keywords)
        marker.numpy()
        return (perf_counter() - begin) / calls

    return Contestant("add", DEVICE, time, {"clock": "host clock"})

"""The expected time of a rung from attributes of the GPU, the rung's row, and what the run's probes measured.

No constant here was fitted to a rung; which terms there are, and that a load waits for half of a queue or for 2/3, was
decided with recordings at hand. Where each term comes from is said ahead of each kind of rungs, of the device rungs in
`kernels`.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from vecadd import _core
from vecadd.model import kernels
from vecadd.model.kernels import Launch
from vecadd.model.limits import Limits
from vecadd.model.theory import (
    ARRAYS,
    WARP,
    Gpu,
    Prediction,
    itemsize,
    longest,
    rotating_sets,
    with_defaults,
    with_parameters,
)

# The expected time of an addition by the processor.
#
# alone       the part that the caller adds until the other threads have woken
# together    the rest by all of them, as the best probe of these bytes did; where the memory and not a cache is the
#             bound, ordinary stores read the sum's lines before they write them, which streaming ones do not


def predict_host(
    rung: Mapping[str, Any], limits: Limits, itemsize: int, n: int, params: Mapping[str, int]
) -> Prediction:
    """The prediction of a host rung; see `vecadd.model.predict`. ``params`` are all of its parameters."""
    nbytes = n * itemsize
    every = int(limits.need("threads"))
    threads = 1 if rung["name"] == "one_thread" else params["threads"] or every
    one = limits.curve("host_add_one").rate(nbytes)
    if threads == 1:
        return longest(nbytes / one, {"alone": nbytes / one})
    add = limits.curve("host_add")
    together = add.rate(nbytes)
    if rung["name"] == "threads":
        from_memory = min(1.0, add.rate(add.points[-1][0]) / together)  # the largest arrays fit in no cache
        together /= 1 + from_memory / 3  # four arrays' bytes in place of three
    together = min(threads * one, together)
    alone = min(nbytes / one, wake(limits, threads - 1))
    terms = {"alone": alone, "together": max(0.0, nbytes - alone * one) / together}
    return longest(sum(terms.values()), terms)


def wake(limits: Limits, number: int) -> float:
    """Seconds until the other thread of that number, from 1 on, answers: linear between the first and the last."""
    last = limits.need("wake")
    first = last if limits.wake_one is None else limits.wake_one
    others = int(limits.need("threads")) - 1
    return first + (last - first) * min(1.0, (number - 1) / max(1, others - 1))


# The expected time of many small additions: who launches them, and how they follow each other.
#
# issue       the host's calls: one a kernel, or one for a graph
# kernels     each after the one before, as the probe's empty ones of that kind are, with the time that its own loads
#             and stores take: from memory that is in no cache what a graph's kernels of as many bytes take beyond empty
#             ones; where a kernel lets the next begin early, each of its blocks takes as long to start as the
#             probe's do that trigger
# table       of a batch: its jobs written, copied and looked up, then one kernel over all of them

# The kernel of the latency rungs: a thread an element, as `naive` has it. batched's threads take up to four, in a loop.
_SMALL_ADD = {"bytes_per_element": 12, "bytes_per_load": 4, "loads_in_flight": 2, "family": "", "name": "small add"}
BATCHED_LANES = 4  # a thread: COMPONENTS_A_THREAD of cuda/lab/latency.cu


@dataclass(frozen=True)
class _Way:
    """The names of the limits of a way to launch: of a host call, from kernel to kernel, and of a block that starts
    ("": as in any grid); and whether one call launches all."""

    issued: str
    spacing: str
    block: str = ""
    graph: bool = False


_WAYS: Mapping[str, _Way] = {
    "launch_loop": _Way("issued", "queued"),
    "graph": _Way("issued", "node", graph=True),
    "pdl": _Way("programmatic_issued", "waiting"),
    "pdl_trigger": _Way("programmatic_issued", "triggering", "triggering_block"),
    "graph_pdl_trigger": _Way("issued", "triggering_node", "triggering_block", graph=True),
}


def predict_launches(launch: Launch) -> Prediction:
    """The prediction of a latency rung; see `vecadd.model.predict`."""
    launch = replace(launch, block=launch.rung["block"] or 256, facts=None)
    if launch.rung["name"] == "batched":
        return _batched(launch)
    limits, n, adds, way = launch.limits, launch.n, launch.params["adds"], _WAYS[launch.rung["name"]]
    # A chain goes round b and out. Arrays a little larger than the L2 are found there in part.
    room = launch.gpu.l2 // kernels.L2_PARTS
    kept = min(1.0, max(0.0, 2 - 2 * n * launch.itemsize / room)) if launch.params["chain"] else 0.0
    one = replace(launch, rung={**launch.rung, **_SMALL_ADD})
    near, far = (kernels.many_blocks(one, cached).seconds for cached in (True, False))
    far = _fresh(limits, 3 * n * launch.itemsize, far)
    work = kept * near + (1 - kept) * far - limits.need("kernel")
    # The first call and the last kernel always count: together the time of a kernel alone, until it is done.
    alone = limits.need("issued") + limits.need("kernel") if limits.waited is None else limits.waited
    terms = {
        "issue": (0 if way.graph else adds - 1) * limits.need(way.issued),
        "kernels": (adds - 1) * (limits.need(way.spacing) + work),
    }
    if way.block:  # when a kernel ends, the next one's blocks that fit have started
        released = limits.need("released") + work - limits.need("turnaround")
        starts = -(-n // launch.block) * limits.need(way.block)
        terms["kernels"] = (adds - 1) * max(limits.need(way.spacing), released, limits.need("released") + starts)
        work = max(work, starts)
    return longest(alone + work + max(terms.values()), terms)


def _fresh(limits: Limits, nbytes: int, reckoned: float) -> float:
    """Seconds of a kernel that finds nothing in the L2: those of the probe's kernels of as many bytes, if it ran any;
    else ``reckoned``."""
    if limits.fresh_node is None or nbytes > limits.fresh_node.points[-1][0]:
        return reckoned
    return limits.need("kernel") + max(0.0, limits.seconds("fresh_node", nbytes) - limits.need("node"))


def _batched(launch: Launch) -> Prediction:
    """The prediction of one launch over all additions, whose blocks first look up their addition."""
    limits, adds = launch.limits, launch.params["adds"]
    blocks = adds * -(-launch.n // (launch.block * BATCHED_LANES))
    row = {**launch.rung, **_SMALL_ADD, "name": "grid_stride"}
    loop = {"blocks_per_sm": -(-blocks // launch.gpu.multiprocessors)}
    body = kernels.many_blocks(replace(launch, rung=row, n=adds * launch.n, params=loop), cached=False).seconds
    terms = {
        "table": limits.need("table") + (adds - 1) * limits.need("job"),
        "kernels": body - limits.need("kernel") + limits.need("l2"),
    }
    return longest(sum(terms.values()), terms)


# The expected time of a transfer, by the overlap model of founding document 004.
#
# Three stages: both uploads, the kernel, the download. One after the other they take their sum. In chunks that overlap
# they take as long as the slowest of them: total = max(T_h2d, T_compute, T_d2h). The document's example: 100 ms up, 10
# ms of kernel and 100 ms down are 210 ms in series and 100 ms overlapped. Which of the two a rung is, its row says
# (``stages``).
#
# uploads     two arrays over the link's rate to the device; a and b share that direction
# kernel      what `kernels` expects of the rung's kernel, which finds in the L2 what the copies have just brought there
# download    one array over the rate to the host
# overlapping while one array comes down, another goes up, each at half of what the link carries both ways at once: on
# an H200's PCIe 5 x16 51 GB/s of 55 alone
#
# The rates are of page-locked memory, and nothing else is counted: no call, allocation, or second copy of ordinary
# memory. A rung's time beyond this is their cost.


@cache
def _rows() -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in _core.rungs()}


def predict_transfer(launch: Launch) -> Prediction:
    """The prediction of a transfer rung; see `vecadd.model.predict`."""
    rung, limits = launch.rung, launch.limits
    if rung["stages"] == "shared":
        raise ValueError(
            f"rung {rung['name']}: the processor adds a share of the elements, which crosses no link; document 004 has "
            "no formula for it"
        )
    nbytes = launch.n * launch.itemsize
    upload, download = nbytes / limits.need("to_device"), nbytes / limits.need("to_host")
    kernel = _kernel(launch)
    if rung["stages"] == "serial":
        terms = {"to_device": 2 * upload, "kernel": kernel, "to_host": download}
        return longest(sum(terms.values()), terms)
    beside = 2 * nbytes / limits.need("both")  # one array each way
    terms = {
        "to_device": upload + max(upload, beside),
        "kernel": kernel,
        "to_host": max(download, beside),
    }
    return longest(max(terms.values()), terms)


def _kernel(launch: Launch) -> float:
    names = launch.rung["choices"].get("kernel")
    row = _rows()[names[launch.params["kernel"]] if names else "tuned"]
    alone = replace(launch, rung=row, params=with_defaults(row, {}), block=0, facts=None)
    return kernels.predict_kernel(alone, ARRAYS * launch.n * launch.itemsize).seconds


def product_operations(rows: int, columns: int, inner: int) -> int:
    """Multiplications and additions of a product of a rows x inner and an inner x columns matrix.

    >>> vecadd.model.product_operations(2, 3, 4)
    48
    """
    return 2 * rows * columns * inner


def predict(
    rung: Mapping[str, Any],
    facts: Mapping[str, Any] | None,
    gpu: Mapping[str, Any],
    limits: Limits,
    dtype: str,
    n: int,
    params: Mapping[str, int],
    *,
    block: int = 0,
    footprint: int | None = None,
) -> Prediction:
    """The expected time of a rung and its terms.

    ``rung`` is a row of ``_core.rungs()``, ``facts`` what ``_core.rung_facts`` says of the launch, or None: then its
    occupancy is reckoned from the block. ``params`` are those of the rung's parameters that are not as usual, ``block``
    its threads a block, 0 for its own, ``footprint`` the bytes that the runs go round; None: as many as the bench
    would. What fits in the L2 is found there. ``n`` is the elements of one addition, of latency rungs too.

    Raises ValueError for dtypes that the rung does not take, n < 1, limits that were not measured, and what no model
    predicts: matrix rungs, and a rung in which the processor adds a share.

    >>> rung = next(rung for rung in vecadd._core.rungs() if rung["name"] == "naive")
    >>> h200 = {"compute_capability": "9.0", "multiprocessors": 132, "l2": 60 << 20, "clock": 2e9, "memory": 140 << 30}
    >>> limits = vecadd.model.Limits(
    ...     read=4.5e12, write=4.7e12, l2_read=7.5e12, l2_write=4.7e12, kernel=3e-6, block=6e-10, turnaround=1.4e-7,
    ...     l1=2e-8, l2=2.7e-7, page=5e-7, dram=6e-7,
    ... )
    >>> vecadd.model.predict(rung, None, h200, limits, "float32", 2**26, {}).dominant
    'latency'
    """
    if n < 1:
        raise ValueError(f"n must be at least 1, not {n!r}")
    if dtype not in rung["dtypes"]:
        raise ValueError(f"rung {rung['name']} does not take {dtype}; it takes {', '.join(rung['dtypes'])}")
    chosen, rung = with_defaults(rung, params), with_parameters(rung, params)
    if rung["kind"] == "matrix":
        raise ValueError("no model predicts transposes and products of matrices")
    if rung["kind"] == "host":
        return predict_host(rung, limits, itemsize(dtype), n, chosen)
    launch = Launch(rung, Gpu.of(gpu), limits, itemsize(dtype), n, chosen, block, facts)
    if rung["kind"] == "latency":
        return predict_launches(launch)
    if rung["kind"] == "transfer":
        return predict_transfer(launch)
    if footprint is None:
        of_a_set = 3 * n * launch.itemsize
        footprint = of_a_set * rotating_sets(of_a_set, launch.gpu.l2, gpu["memory"] // 2)
    if block == 0 and facts:
        launch = replace(launch, block=math.prod(facts["block"]))
    if chosen.get("warps"):  # tuned's own way to choose a block
        launch = replace(launch, block=WARP * chosen["warps"])
    return kernels.predict_kernel(launch, footprint)

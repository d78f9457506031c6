"""The expected time of many small additions: who launches them, and how they follow each other.

issue       the host's calls: one a kernel, or one for a graph
kernels     each behind the one before, as the probe's empty ones of that kind are, with the time that its own loads
            and stores take: from memory that no cache holds what a graph's kernels of as many bytes take beyond empty
            ones; where a kernel lets the next begin early, each of its blocks takes as long to start as the
            probe's do that trigger
table       of a batch: its jobs written, copied and looked up, then one kernel over all of them
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vecadd.model import kernels
from vecadd.model.gpu import Gpu
from vecadd.model.limits import Limits
from vecadd.model.prediction import Prediction, longest

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


def predict(
    rung: Mapping[str, Any], gpu: Gpu, limits: Limits, itemsize: int, n: int, params: Mapping[str, int]
) -> Prediction:
    """The prediction of a latency rung; see `vecadd.model.predict`. ``params`` are all of its parameters."""
    adds, block = params["adds"], rung["block"] or 256
    if rung["name"] == "batched":
        return _batched(rung, gpu, limits, itemsize, n, adds, block)
    way = _WAYS[rung["name"]]
    # A chain goes round b and out. Arrays a little larger than the L2 are found there in part.
    room = gpu.l2 // kernels.L2_PARTS
    kept = min(1.0, max(0.0, 2 - 2 * n * itemsize / room)) if params["chain"] else 0.0
    near, far = (
        kernels.many_blocks({**rung, **_SMALL_ADD}, None, gpu, limits, itemsize, n, params, block, cached).seconds
        for cached in (True, False)
    )
    far = _fresh(limits, 3 * n * itemsize, far)
    work = kept * near + (1 - kept) * far - limits.need("kernel")
    # The first call and the last kernel always count: together the time of a kernel alone, until it is done.
    alone = limits.need("issued") + limits.need("kernel") if limits.waited is None else limits.waited
    terms = {
        "issue": (0 if way.graph else adds - 1) * limits.need(way.issued),
        "kernels": (adds - 1) * (limits.need(way.spacing) + work),
    }
    if way.block:  # when a kernel ends, the next one's blocks that fit have started
        released = limits.need("released") + work - limits.need("turnaround")
        starts = -(-n // block) * limits.need(way.block)
        terms["kernels"] = (adds - 1) * max(limits.need(way.spacing), released, limits.need("released") + starts)
        work = max(work, starts)
    return longest(alone + work + max(terms.values()), terms)


def _fresh(limits: Limits, nbytes: int, reckoned: float) -> float:
    """Seconds of a kernel that finds nothing in the L2: those of the probe's kernels of so many bytes, where it had
    such."""
    if limits.fresh_node is None or nbytes > limits.fresh_node.points[-1][0]:
        return reckoned
    return limits.need("kernel") + max(0.0, limits.seconds("fresh_node", nbytes) - limits.need("node"))


def _batched(
    rung: Mapping[str, Any], gpu: Gpu, limits: Limits, itemsize: int, n: int, adds: int, block: int
) -> Prediction:
    """The prediction of one launch over all additions, whose blocks first look up their addition."""
    blocks = adds * -(-n // (block * BATCHED_LANES))
    row = {**rung, **_SMALL_ADD, "name": "grid_stride"}
    loop = {"blocks_per_sm": -(-blocks // gpu.multiprocessors)}
    body = kernels.many_blocks(row, None, gpu, limits, itemsize, adds * n, loop, block, False).seconds
    terms = {
        "table": limits.need("table") + (adds - 1) * limits.need("job"),
        "kernels": body - limits.need("kernel") + limits.need("l2"),
    }
    return longest(sum(terms.values()), terms)

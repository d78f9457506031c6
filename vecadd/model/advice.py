"""The decision tree of founding document 003: what to try next, in words."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from vecadd import _core
from vecadd.model.limits import ENOUGH, RECORDED, Limits, Loaded
from vecadd.model.theory import ARRAYS, WARP, Gpu, Occupancy, arithmetic_intensity, balance, bytes_moved, occupancy
from vecadd.tables import show_seconds

THEORY = 0.92  # of the theoretical bandwidth is reached, where no run measured it
WIDEST = 16  # bytes of the widest load
LITTLE = 0.07  # of a time: what is not worth another kernel
MUCH = 0.1  # of a time: a launch that takes so much is worth saving

Bound = Literal["nothing", "launch", "start", "memory", "latency", "unknown"]


@dataclass(frozen=True)
class Advice:
    """``bound``: what decides the time: "launch" of the kernel, "start" of its blocks, "memory", "latency" of the
    loads; "nothing" where there is nothing to add, "unknown" where it takes a measurement that is not there.
    ``needed`` and ``in_flight``: bytes on a multiprocessor; ``needed`` is None where it is not known. ``rungs``: which
    to try, in order. ``steps``: the way down the tree, a sentence each.

    >>> h200 = {"compute_capability": "9.0", "multiprocessors": 132, "l2": 60 << 20, "bandwidth": 4.8e12}
    >>> vecadd.model.advise(h200, "float32", 0, 16).steps
    ('There is nothing to add.',)
    """

    bound: Bound
    needed: float | None
    in_flight: float
    rungs: tuple[str, ...]
    steps: tuple[str, ...]

    @property
    def stop(self) -> bool:
        """Whether no kernel is faster by more than a few percent."""
        return self.bound == "memory" and not self.rungs

    def __str__(self) -> str:
        return "\n".join(self.steps)


def advise(
    device: int | Mapping[str, Any],
    dtype: str,
    n: int,
    alignment: int,
    *,
    bytes_per_load: int | None = None,
    loads_in_flight: int = 2,
    arrays: int = ARRAYS,
    block: int = 256,
    grid: int | None = None,
    registers: int = 16,
    limits: Limits | None = None,
) -> Advice:
    """What to try next for an addition of n elements of that dtype whose arrays are aligned to ``alignment`` bytes.

    ``device`` is a dict of ``_core.gpu_facts()`` or of ``vecadd.info()``, or the number of a device here (this
    initialises CUDA). The kernel as it is now loads ``bytes_per_load`` bytes (one element) ``loads_in_flight`` times
    before it uses them, moves ``arrays`` arrays (4 where it reads c too), and has ``grid`` blocks (None: enough that
    each thread loads once) of ``block`` threads with ``registers`` registers each. More loads go into registers: what
    document 003 says of copies into shared memory is drawn by the diagram "tree" (``vecadd.diagrams``).

    How many bytes in flight are enough follows from ``limits.loaded``, the memory's rate under load, which
    ``Limits.of`` takes from a run. Without it the bound is "unknown": the latency of an idle memory says too little.

    Raises ValueError for devices that are not there, n < 0, alignments that are no power of two, and blocks, grids
    and registers that no kernel has; TypeError for unknown dtypes.

    >>> h200 = {"compute_capability": "9.0", "multiprocessors": 132, "l2": 60 << 20, "bandwidth": 4.8e12}
    >>> loaded = {"bytes_in_flight": [4096, 16384, 32768, 131072], "gbps": [1300, 3890, 4480, 4640]}
    >>> limits = vecadd.model.Limits.of({"loaded": loaded})
    >>> found = vecadd.model.advise(h200, "float32", 2**26, 16, limits=limits)
    >>> found.bound, found.rungs
    ('latency', ('float4',))
    """
    gpu = Gpu.of(_facts_of(device) if isinstance(device, int) else device)
    itemsize = _core.DTYPES.get(dtype) or np.dtype(dtype).itemsize
    if n < 0:
        raise ValueError(f"n must be at least 0, not {n!r}")
    if alignment < 1 or alignment & (alignment - 1):
        raise ValueError(f"alignment must be a power of two, not {alignment!r}")
    if arrays not in (ARRAYS, ARRAYS + 1):
        raise ValueError(f"arrays must be {ARRAYS}, or {ARRAYS + 1} where c is read too, not {arrays!r}")
    if grid is not None and grid < 1:
        raise ValueError(f"grid must be at least 1 block, not {grid!r}")
    fitting = occupancy(gpu, block, registers)
    limits = limits or Limits()
    load = bytes_per_load or itemsize
    if n == 0:
        return Advice("nothing", None, 0.0, (), ("There is nothing to add.",))

    inputs = (arrays - 1) * n * itemsize
    of_a_block = load * loads_in_flight * block  # bytes of the inputs
    blocks = grid or -(-inputs // of_a_block)
    at_once = min(fitting.blocks, blocks / gpu.multiprocessors)
    in_flight = min(of_a_block * at_once, inputs / gpu.multiprocessors)
    what = (
        f"There are {loads_in_flight} loads * {load} bytes * {block} threads * {at_once:.3g} blocks = "
        f"{in_flight / 1024:.3g} KiB in flight on each of {gpu.multiprocessors} multiprocessors."
    )

    def more(missing: float) -> tuple[tuple[str, ...], list[str]]:
        """Rungs and advice for ``missing`` times as many bytes in flight."""
        rungs, words = _into_registers(load, alignment, missing)
        words = [*_crowded(fitting), *words]
        places = fitting.blocks * gpu.multiprocessors
        if blocks >= places or blocks * of_a_block >= inputs:
            return rungs, words
        return ("grid_stride", *rungs), [f"The grid is {blocks}, and {places} blocks fit at once: launch more.", *words]

    steps = [_roofline(gpu, itemsize, _bandwidth(gpu, limits))]
    loaded = limits.loaded
    if loaded is None:
        rungs, words = more(1.0)
        steps += [what, _UNKNOWN, *words]
        return Advice("unknown", None, in_flight, rungs, tuple(steps))

    needed = loaded.needed() * (arrays - 1) / arrays
    moved = bytes_moved(n, itemsize, arrays)
    least = bytes_moved(n, itemsize) / loaded.best
    alone = in_flight * arrays / (arrays - 1)
    average = alone
    steps.append(what)
    if blocks > fitting.blocks * gpu.multiprocessors and blocks * of_a_block >= inputs:  # blocks that end
        warps, block_starts = -(-block // WARP), gpu.multiprocessors * (limits.block or 0.0)
        average = loaded.on_average(alone, gpu.multiprocessors, warps, (limits.turnaround or 0.0) + block_starts)
        steps.append(
            f"Their places are empty while a block waits for its slowest warp (of {warps}) and until the next block "
            f"loads: {average * (arrays - 1) / arrays / 1024:.3g} KiB on average."
        )
    memory = moved / loaded.rate(average)
    start = blocks * (limits.block or 0.0)
    launch = limits.kernel or RECORDED.need("kernel")
    own = max(memory, start)
    steps.append(_law(loaded, gpu, average, needed))

    def advice(bound: Bound, rungs: tuple[str, ...], *words: str) -> Advice:
        return Advice(bound, needed, in_flight, rungs, (*steps, *words))

    few = ("batched", "graph_pdl_trigger")
    fewer = "Make fewer launches: one for many additions, a graph, or the host where the arrays are there."
    if own < launch:
        rest = show_seconds(own)
        return advice("launch", few, f"A launch takes {show_seconds(launch)}, all the rest {rest}. {fewer}")
    if own - least > LITTLE * (launch + own):
        if start > memory:
            wider = () if load >= min(WIDEST, alignment) else (_widest(alignment),)
            return advice(
                "start",
                (*wider, "tuned"),
                f"The {blocks} blocks start one after the other, which takes {show_seconds(start)}; their bytes take "
                f"{show_seconds(memory)}. Give each block more to do: more threads, or wider loads.",
            )
        if average * (arrays - 1) / arrays < needed:
            rungs, words = more(needed / in_flight)
            return advice("latency", rungs, *words)
    if arrays > ARRAYS:
        return advice(
            "memory", ("naive",), "It reads c as well as a and b: write the sum without reading what was there."
        )
    if blocks * of_a_block < inputs:
        return advice(
            "latency",
            (_widest(alignment), "tuned"),
            "The bytes in flight are enough. But the threads go round a loop together, and each round waits for its "
            "last loads: blocks that add a piece and end, so that others begin, have no rounds to wait for.",
        )
    if launch > MUCH * (launch + own):
        return advice(
            "launch",
            few,
            f"That is enough. Of {show_seconds(launch + own)} the launch takes {show_seconds(launch)}. {fewer}",
        )
    return advice(
        "memory", (), "That is enough: stop. The memory is the bound, and more loads in flight only wait longer."
    )


_UNKNOWN = (
    "Whether that is enough is not known: it depends on the memory's latency under load, which a run measures "
    "(vecadd bench ladder; give its limits). Until then, what costs least is tried first."
)


def _law(loaded: Loaded, gpu: Gpu, average: float, needed: float) -> str:
    latency = 1e9 * loaded.latency(average, gpu.multiprocessors)
    moved, most = loaded.rate(average) / 1e12, ENOUGH * loaded.best / 1e12
    return (
        f"Little's law: with that many the memory answers after {latency:.0f} ns and moves {moved:.3g} TB/s; "
        f"{needed / 1024:.3g} KiB make it {most:.3g} TB/s."
    )


def _crowded(fitting: Occupancy) -> list[str]:
    if fitting.occupancy >= 0.75:
        return []
    return [
        f"Occupancy is {100 * fitting.occupancy:.0f} %, bounded by {fitting.limit}: first let a multiprocessor have "
        "more threads, by another block size or fewer registers."
    ]


def _widest(alignment: int) -> str:
    """The rung with the widest load that the alignment allows."""
    return "float4" if alignment >= WIDEST else "float2" if alignment >= WIDEST // 2 else "naive"


def _facts_of(device: int) -> Mapping[str, Any]:
    there = _core.gpu_facts()
    if not 0 <= device < len(there):
        raise ValueError(f"there is no device {device}: this process sees {len(there)} GPUs, counted from 0")
    return there[device]


def _roofline(gpu: Gpu, itemsize: int, bandwidth: float) -> str:
    intensity = arithmetic_intensity(itemsize)
    words = f"An addition for {ARRAYS * itemsize} bytes: intensity {intensity:.3g}."
    if not gpu.clock:
        return words
    return f"{words} The GPU's balance is {balance(bandwidth, gpu.peak):.2g}: the memory is the roof."


def _into_registers(load: int, alignment: int, missing: float) -> tuple[tuple[str, ...], list[str]]:
    """Wider loads first: they cost no instruction. Then unrolling, as far as registers allow."""
    widest = min(WIDEST, alignment)
    if load < widest:
        rungs: tuple[str, ...] = (_widest(alignment),)
        words = [f"Into registers: load {widest} bytes at once in place of {load}, as wide as the alignment allows."]
        if widest / load >= missing:
            return rungs, words
        return (*rungs, f"{rungs[0]}_unroll2" if widest >= 8 else "unroll2"), [
            *words,
            "Then unroll by two, and watch that registers do not cost occupancy.",
        ]
    if load < WIDEST:
        return ("tuned", "unroll2" if load < 8 else "float2_unroll2"), [
            f"Into registers: an alignment of {alignment} bytes allows no wider load than {load}. Align the arrays to "
            "16 bytes, or load 16 aligned bytes twice and shift, or else unroll by two and watch the registers."
        ]
    return ("float4_unroll2",), [
        "Into registers: loads are as wide as they get. Unroll by two, and watch that registers do not cost occupancy."
    ]


def _bandwidth(gpu: Gpu, limits: Limits) -> float:
    if limits.read and limits.write:
        return ARRAYS / limits.memory_seconds(2, 1)
    if gpu.bandwidth:
        return THEORY * gpu.bandwidth
    raise ValueError("the driver does not say this GPU's bandwidth; give the limits of a run")

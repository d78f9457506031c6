"""The decision tree of founding document 003: what to try next, in words."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from vecadd import _core
from vecadd.model.gpu import WARP, Gpu, occupancy
from vecadd.model.limits import RECORDED, Limits
from vecadd.model.theory import ARRAYS, arithmetic_intensity, balance, bytes_moved, bytes_needed

LOADED_LATENCY = 600e-9  # seconds, where no run measured it: the order of what large GPUs have under load
THEORY = 0.92  # of the theoretical bandwidth is reached, where no run measured it
SMALL_TILE, LARGE_TILE = 1 << 10, 2 << 10  # bytes of a block's copy: asynchronous below, bulk above (document 003)
WIDEST = 16  # bytes of the widest load


@dataclass(frozen=True)
class Advice:
    """``bound``: what decides the time, "nothing", "launch", "memory" or "latency". ``needed`` and ``in_flight``: bytes
    on a multiprocessor. ``rungs``: which to try, in order. ``steps``: the way down the tree, a sentence each.

    >>> h200 = {"compute_capability": "9.0", "multiprocessors": 132, "l2": 60 << 20, "bandwidth": 4.8e12}
    >>> vecadd.model.advise(h200, "float32", 0, 16).steps
    ('There is nothing to add.',)
    """

    bound: Literal["nothing", "launch", "memory", "latency"]
    needed: float
    in_flight: float
    rungs: tuple[str, ...]
    steps: tuple[str, ...]

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
    block: int = 256,
    registers: int = 16,
    target: Literal["registers", "shared memory"] = "registers",
    tile: int | None = None,
    limits: Limits | None = None,
) -> Advice:
    """What to try next for an addition of n elements of that dtype whose arrays are aligned to ``alignment`` bytes.

    ``device`` is a dict of ``_core.gpu_facts()`` or of ``vecadd.info()``, or the number of a device here (this
    initialises CUDA). The kernel as it is now loads ``bytes_per_load`` bytes (one element) ``loads_in_flight`` times
    before it uses them, with ``block`` threads a block and ``registers`` registers a thread. ``target`` is where more
    loads shall go, ``tile`` the bytes that a block would copy of each input at a time: 16 a thread unless given.
    With ``limits`` of a run its measured rate and latency count, else the bandwidth in theory and 600 ns.

    Raises ValueError for devices that are not there, n < 0, alignments that are no power of two, unknown targets, and
    blocks and registers that no kernel has; TypeError for unknown dtypes.

    >>> h200 = {"compute_capability": "9.0", "multiprocessors": 132, "l2": 60 << 20, "bandwidth": 4.8e12}
    >>> found = vecadd.model.advise(h200, "float32", 2**26, 16)
    >>> found.bound, found.rungs
    ('latency', ('float4',))
    >>> print(found)
    An addition for 12 bytes: intensity 0.0833.
    Little's law: 4.42 TB/s times 600 ns on 132 multiprocessors is 19.6 KiB in flight on each. There are 2 loads * ...
    Into registers: load 16 bytes at once in place of 4, as wide as the alignment allows.
    """
    gpu = Gpu.of(_facts_of(device) if isinstance(device, int) else device)
    itemsize = _core.DTYPES.get(dtype) or np.dtype(dtype).itemsize
    if n < 0:
        raise ValueError(f"n must be at least 0, not {n!r}")
    if alignment < 1 or alignment & (alignment - 1):
        raise ValueError(f"alignment must be a power of two, not {alignment!r}")
    if target not in ("registers", "shared memory"):
        raise ValueError(f"target must be 'registers' or 'shared memory', not {target!r}")
    limits = limits or Limits()
    load = bytes_per_load or itemsize
    tile = tile or WIDEST * block
    bandwidth = _bandwidth(gpu, limits)
    latency = limits.dram or LOADED_LATENCY
    needed = bytes_needed(bandwidth, latency) / gpu.multiprocessors
    if n == 0:
        return Advice("nothing", needed, 0.0, (), ("There is nothing to add.",))

    steps = [_roofline(gpu, itemsize, bandwidth)]
    moved = bytes_moved(n, itemsize)
    launch = limits.kernel or RECORDED.need("kernel")
    if moved / bandwidth < launch:
        steps.append(
            f"{moved} bytes take {1e6 * moved / bandwidth:.2g} us at {bandwidth / 1e12:.3g} TB/s, a launch "
            f"{1e6 * launch:.2g} us: no kernel helps. Make fewer launches: one for many additions, a graph, or the "
            "host where the arrays are there."
        )
        return Advice("launch", needed, _spread(moved, gpu), ("batched", "graph_pdl_trigger"), tuple(steps))

    held = occupancy(gpu, block, registers)
    in_flight = min(float(load * loads_in_flight * block * held.blocks), _spread(moved, gpu))
    steps.append(
        f"Little's law: {bandwidth / 1e12:.3g} TB/s times {1e9 * latency:.0f} ns on {gpu.multiprocessors} "
        f"multiprocessors is {needed / 1024:.3g} KiB in flight on each. There are {loads_in_flight} loads * {load} "
        f"bytes * {block} threads * {held.blocks} blocks = {in_flight / 1024:.3g} KiB."
    )
    if in_flight >= needed:
        steps.append("That is enough: stop. The memory is the bound, and more loads in flight only wait longer.")
        return Advice("memory", needed, in_flight, (), tuple(steps))
    if held.occupancy < 0.75:
        steps.append(
            f"Occupancy is {100 * held.occupancy:.0f} %, bounded by {held.limit}: first let a multiprocessor hold more "
            "threads, by another block size or fewer registers."
        )
    rungs, words = (
        _into_registers(load, itemsize, alignment, needed / in_flight)
        if target == "registers"
        else _into_shared_memory(gpu, alignment, tile)
    )
    return Advice("latency", needed, in_flight, rungs, (*steps, *words))


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


def _into_registers(load: int, itemsize: int, alignment: int, missing: float) -> tuple[tuple[str, ...], list[str]]:
    """Wider loads first: they cost no instruction. Then unrolling, as far as registers allow."""
    widest = min(WIDEST, alignment)
    if load < widest:
        rungs = ("float4",) if widest == WIDEST else ("float2",) if widest == 8 else ("naive",)
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


def _into_shared_memory(gpu: Gpu, alignment: int, tile: int) -> tuple[tuple[str, ...], list[str]]:
    """By alignment and by what a block copies at a time."""
    if gpu.capability < 80:
        return ("float4", "unroll2"), [
            "Into shared memory: copies that run by themselves need compute capability 8.0. Use registers: wider "
            "loads, then unrolling."
        ]
    if alignment < 4:
        return ("naive",), [
            f"Into shared memory: asynchronous copies take 4 bytes aligned to 4 at least, the arrays are aligned to "
            f"{alignment}. Ordinary loads take any alignment."
        ]
    if alignment < WIDEST:
        return ("async_copy",), [
            f"Into shared memory: an alignment of {alignment} bytes leaves asynchronous copies of {min(alignment, 8)} "
            "bytes, through the L1; bulk copies need 16."
        ]
    if gpu.capability < 90:
        return ("async_copy",), [
            "Into shared memory: asynchronous copies of 16 bytes, past the L1. Bulk copies need compute capability 9.0."
        ]
    if tile < SMALL_TILE:
        return ("async_copy",), [
            f"Into shared memory: for {tile} bytes a block asynchronous copies, {WARP} threads at 16 bytes each are "
            "quicker than ordering a bulk copy."
        ]
    if tile <= LARGE_TILE:
        return ("async_copy", "bulk_copy"), [
            f"Into shared memory: at {tile} bytes a block asynchronous and bulk copies are equals; try both."
        ]
    return ("bulk_copy",), [
        f"Into shared memory: {tile} bytes a block are for bulk copies, which one thread orders by one instruction."
    ]


def _bandwidth(gpu: Gpu, limits: Limits) -> float:
    if limits.read and limits.write:
        return ARRAYS / limits.memory_seconds(2, 1)
    if gpu.bandwidth:
        return THEORY * gpu.bandwidth
    raise ValueError("the driver does not say this GPU's bandwidth; give the limits of a run")


def _spread(moved: int, gpu: Gpu) -> float:
    """A multiprocessor's share of the inputs, in bytes."""
    return moved * (ARRAYS - 1) / ARRAYS / gpu.multiprocessors

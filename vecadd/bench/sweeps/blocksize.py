"""The kernels of the ladder in blocks of every size, and one kernel on some share of the blocks that fit at once."""

from collections.abc import Iterator, Mapping
from typing import Any

from vecadd.bench.contestants import device_rung
from vecadd.bench.options import Options
from vecadd.bench.run import EVENTS, ON_DEVICE, Machine, Sweep, grid
from vecadd.bench.timing import Cell

SIZES = (2**26,)
BLOCKS = (32, 64, 128, 256, 512, 768, 1024)
BRIEF_BLOCKS = (64, 256, 1024)
RUNGS = ("naive", "coarsen2", "coarsen4", "unroll2", "float2", "float4", "float4_unroll2")

WAVES = "waves"  # the rung whose axis is not the block but the number of blocks
PERCENT = (90, 100, 110, 200)  # of the blocks that fit at once


def cells(options: Options, machine: Machine) -> Iterator[Cell]:
    """RUNGS, and others that are named, with each block; the rung of waves with each number of blocks."""
    for dtype, n in grid(options, SIZES, SIZES):
        rungs = machine.ladder(dtype)
        every = [
            device_rung(rung, machine.gpu, dtype, n, block=block)
            for rung in rungs
            if takes_blocks(rung) and (rung["name"] in RUNGS or options.names(rung["name"]))
            for block in ([options.block] if options.block else BRIEF_BLOCKS if options.brief else BLOCKS)
        ]
        every += [
            device_rung(rung, machine.gpu, dtype, n, {"percent": percent}, options.block)
            for rung in rungs
            if rung["name"] == WAVES
            for percent in PERCENT
        ]
        yield Cell(dtype, n, every, machine.device_limit)


def takes_blocks(rung: Mapping[str, Any]) -> bool:
    """Whether the rung's block is an axis: it can be chosen, and the sum does not depend on it."""
    return bool(rung["block"] > 1 and rung["sum"] in ("written", "added") and rung["name"] != WAVES)


SWEEP = Sweep(
    "blocksize",
    cells,
    EVENTS,
    probes=ON_DEVICE,
    tables="vecadd.bench.tables.blocksize",
    plot="vecadd.bench.plots.blocksize",
    by_dtype=True,
)

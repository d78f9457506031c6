"""Device memory, added by every kernel of the ladder in turn."""

from collections.abc import Iterator, Mapping

from vecadd.bench.contestants import device_rung
from vecadd.bench.options import Options
from vecadd.bench.run import EVENTS, ON_DEVICE, Machine, Sweep, grid
from vecadd.bench.timing import Cell

SIZES = (2**12, 2**20, 2**26)  # all rungs end within 2 s at the first; the last is 16 times the largest L2 there is
BRIEF_SIZES = (2**26,)

# The parameters that a rung is run with; rungs that are not listed run with their defaults.
VARIANTS: Mapping[str, tuple[Mapping[str, int], ...]] = {
    "single_block": ({}, {"accumulate": 0}),
    "grid_stride": (
        *({"blocks_per_sm": count} for count in (1, 2, 4, 8, 32)),
        *({"blocks_per_sm": count, "accumulate": 0} for count in (4, 8)),
    ),
    "block_range": ({}, {"accumulate": 1}),
    "async_copy": (
        *({"stages": stages, "through_l1": l1} for stages in (2, 3) for l1 in (0, 1)),
        *({"bytes": nbytes} for nbytes in (8, 4)),
    ),
    "bulk_copy": ({}, {"bulk": 0}),
    "strided": tuple({"stride": stride} for stride in (2, 4, 8, 32)),
    "offset": tuple({"offset": offset} for offset in (1, 8, 16, 32)),  # 4, 32, 64 and 128 bytes of float32
    "divergent": tuple({"paths": paths} for paths in (2, 8, 32)),
    "block_shape": tuple({"x": x, "y": 2} for x in (4, 16, 32)),
}

# Launch configs to try with the tuned rung, only where it is named: they are a search, not a step of the ladder.
LAUNCH_CONFIGS: tuple[Mapping[str, int], ...] = (
    {},
    *({"loads": 1, "warps": warps} for warps in (4, 8, 16, 24, 32)),
    {"loads": 2, "warps": 24},
    *({"loads": 2, "warps": warps, "demoted": 16} for warps in (8, 24, 32)),
)


def cells(options: Options, machine: Machine) -> Iterator[Cell]:
    """Every kernel of the ladder with each of its variants."""
    for dtype, n in grid(options, SIZES, BRIEF_SIZES):
        every = [
            device_rung(rung, machine.gpu, dtype, n, chosen, options.block)
            for rung in machine.ladder(dtype)
            for chosen in choose_variants(rung["name"], named=options.names(rung["name"]))
        ]
        yield Cell(dtype, n, every, machine.device_limit)


def choose_variants(rung: str, *, named: bool = False) -> tuple[Mapping[str, int], ...]:
    """The parameters that the ladder runs a rung with; ``named`` says that it was asked for by name."""
    return LAUNCH_CONFIGS if rung == "tuned" and named else VARIANTS.get(rung, ({},))


SWEEP = Sweep(
    "ladder",
    cells,
    EVENTS,
    probes=ON_DEVICE,
    tables="vecadd.bench.tables.ladder",
    plot="vecadd.bench.plots.bars",
    by_dtype=True,
    roofline="roofline",
)

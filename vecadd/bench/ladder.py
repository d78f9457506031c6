"""The ladder and its block sizes as sweeps: which variants of a rung are run, and what a model says of the bytes it has
in flight."""

from collections.abc import Mapping
from typing import Any

from vecadd.model import bytes_in_flight as bytes_in_flight
from vecadd.model.theory import usual, with_parameters

SIZES = (2**12, 2**20, 2**26)  # all rungs end within 2 s at the first; the last is 16 times the largest L2 there is
BRIEF_SIZES = (2**26,)
BLOCKSIZE_SIZES = (2**26,)

PRECISION_DTYPES = ("float32", "float16", "bfloat16")
PRECISION_BRIEF_SIZES = (2**10, 2**14, 2**20, 2**24)

BLOCKS = (32, 64, 128, 256, 512, 768, 1024)
BRIEF_BLOCKS = (64, 256, 1024)
BLOCKSIZE_RUNGS = ("naive", "coarsen2", "coarsen4", "unroll2", "float2", "float4", "float4_unroll2")

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

# The block-size sweep's rungs whose axis is not the block size.
WAVES: Mapping[str, tuple[Mapping[str, int], ...]] = {
    "waves": tuple({"percent": percent} for percent in (90, 100, 110, 200)),
}


def variants(rung: str, *, named: bool) -> tuple[Mapping[str, int], ...]:
    """The parameters that the ladder runs a rung with; ``named`` says that it was asked for by name."""
    return LAUNCH_CONFIGS if rung == "tuned" and named else VARIANTS.get(rung, ({},))


def takes_blocks(rung: Mapping[str, Any]) -> bool:
    """Whether the rung's block is an axis: it can be chosen, and the sum does not depend on it."""
    return bool(rung["block"] > 1 and rung["sum"] in ("written", "added") and rung["name"] not in WAVES)


def load(rung: Mapping[str, Any], chosen: Mapping[str, int]) -> str:
    """The load instruction of a device rung with these parameters. Asynchronous copies of 16 bytes go past the L1
    unless they are told otherwise, narrower ones through it."""
    params = usual(rung, chosen)
    if "through_l1" not in params:
        return str(with_parameters(rung, params)["load"])
    past = ".BYPASS" if params["bytes"] >= 16 and not params["through_l1"] else ""
    return f"LDGSTS.E{past}" + (".128" if params["bytes"] >= 16 else ".64" if params["bytes"] >= 8 else "")


def is_usual(rung: Mapping[str, Any], chosen: Mapping[str, int]) -> bool:
    """Whether a rung's parameters are the usual ones, which are those of the documents."""
    return usual(rung, chosen) == usual(rung, {})

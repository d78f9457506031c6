"""Many small additions as a sweep: how many there are at which size, and from when on a graph pays."""

import math
from collections.abc import Mapping
from statistics import median
from typing import Any

import numpy as np

from vecadd import _core
from vecadd.bench import contestants
from vecadd.bench.axes import Axes
from vecadd.bench.buffers import DEVICE, Buffers
from vecadd.bench.contestants import Contestant
from vecadd.figures import Figure

SIZES = (2560, *(2**power for power in range(14, 29, 2)))  # of one addition: 10 KB to 1 GB an array of float32
BRIEF_SIZES = (2560, 2**18)

MOST_ADDS = 1000  # document 003's
SET_BYTES = 3 << 30  # of all operands together: 1000 additions up to 2^18 float32, 2 from 2^27 on
LOOP = "launch_loop"  # what the others are compared with
NO_CHAIN = ("batched",)  # one launch over all additions cannot make one wait for the other
LOOKS = 3  # at the stages of a graph; the median counts


def adds_of(n: int, itemsize: int) -> int:
    """How many additions of n elements are run in one set."""
    return max(2, min(MOST_ADDS, SET_BYTES // (3 * n * itemsize)))


def small_additions(axes: Axes, dtype: np.dtype[Any], adds: int, chain: int, capability: int) -> list[Contestant]:
    """Every latency rung that this GPU runs; the sum of a chain is a + b, and b again until all are added."""
    chosen = {"adds": adds, "chain": chain}
    return [
        contestants.rung(
            rung["name"],
            DEVICE,
            chosen,
            chain=adds if chain else 1,
            inspect=_stages(rung["name"], chosen) if "graph" in rung["name"] else None,
        )
        for rung in _core.rungs()
        if rung["kind"] == "latency"
        and str(dtype) in rung["dtypes"]
        and rung["min_cc"] <= capability
        and not (chain and rung["name"] in NO_CHAIN)
        and axes.wants(rung["name"])
    ]


def derive(figures: list[Figure]) -> list[Figure]:
    """Adds to the figures the seconds of one addition, and the number of repeats from which capturing a graph pays."""
    loop = next((figure.seconds for figure in figures if figure.name == LOOP), None)
    return [_with_one_addition(figure, loop) for figure in figures]


def _with_one_addition(figure: Figure, loop: float | None) -> Figure:
    if figure.seconds is None:
        return figure
    figure = figure.with_params(seconds_per_add=figure.seconds / figure.params["parameters"]["adds"])
    if "capture" in figure.params and loop and figure.seconds:
        return figure.with_params(break_even=break_even(figure.seconds, loop, figure.params))
    return figure


def break_even(seconds: float, loop: float, stages: Mapping[str, float]) -> int | None:
    """From how many runs on a graph costs less than a loop of launches, with making and destroying it included; None
    where it never does. ``seconds`` and ``loop`` are those of one run."""
    once = stages["capture"] + stages["instantiate"] + stages["destroy"]
    return math.ceil(once / (loop - seconds)) if loop > seconds else None


def _stages(name: str, chosen: Mapping[str, int]) -> Any:
    def inspect(used: Buffers) -> dict[str, float]:
        looks = [_core.latency_stages(name, used.a, used.b, used.out, params=dict(chosen)) for _ in range(LOOKS)]
        return {key: median(look[key] for look in looks) for key in ("capture", "instantiate", "destroy")}

    return inspect

"""Many small additions, each by its own launch: independent ones, and a chain in which each waits for the last."""

import math
from collections.abc import Callable, Iterator, Mapping
from statistics import median
from typing import Any

import numpy as np

from vecadd import _core
from vecadd.bench import contestants
from vecadd.bench.contestants import Contestant
from vecadd.bench.operands import DEVICE, Buffers
from vecadd.bench.options import Options, powers
from vecadd.bench.probes import DEVICE_CACHES
from vecadd.bench.run import ON_DEVICE, Machine, Sweep, grid
from vecadd.bench.timing import Cell
from vecadd.figures import Figure

SIZES = (2560, *powers(14, 28, 2))  # of one addition: 10 KB to 1 GB an array of float32
BRIEF_SIZES = (2560, 2**18)

MOST_ADDS = 1000  # document 003's
SET_BYTES = 3 << 30  # of all operands together: 1000 additions up to 2^18 float32, 2 from 2^27 on
LOOP = "launch_loop"  # what the others are compared with
NO_CHAIN = ("batched",)  # one launch over all additions cannot make one wait for the other
LOOKS = 3  # at the stages of a graph; the median counts


def cells(options: Options, machine: Machine) -> Iterator[Cell]:
    """Every latency rung, with independent additions and with a chain of them."""
    for dtype, n in grid(options, SIZES, BRIEF_SIZES):
        adds = count_adds(n, dtype.itemsize)
        for chain in (0, 1):
            length = n if chain else adds * n
            # A chain finds its operands in the L2: the memory bounds it only where they are many times the L2.
            in_cache = chain and 3 * length * dtype.itemsize < DEVICE_CACHES * machine.gpu["l2"]
            yield Cell(
                dtype,
                n,
                _small_additions(machine, dtype, adds, chain),
                None if in_cache else machine.device_limit,
                reference=LOOP,
                additions=adds,
                length=length,
                add_derived=_add_cost_of_one,
            )


def count_adds(n: int, itemsize: int) -> int:
    """How many additions of n elements are run in one set."""
    return max(2, min(MOST_ADDS, SET_BYTES // (3 * n * itemsize)))


def _small_additions(machine: Machine, dtype: np.dtype[Any], adds: int, chain: int) -> list[Contestant]:
    """The sum of a chain is a + b, and b again until all are added."""
    chosen = {"adds": adds, "chain": chain}
    return [
        contestants.rung(
            rung["name"],
            DEVICE,
            chosen,
            chain=adds if chain else 1,
            extra_params=_time_stages(rung["name"], chosen) if "graph" in rung["name"] else None,
        )
        for rung in _core.rungs()
        if rung["kind"] == "latency" and machine.runs(rung, dtype) and not (chain and rung["name"] in NO_CHAIN)
    ]


def _time_stages(name: str, chosen: Mapping[str, int]) -> Callable[[Buffers], dict[str, float]]:
    def time(used: Buffers) -> dict[str, float]:
        looks = [_core.latency_stages(name, used.a, used.b, used.out, params=dict(chosen)) for _ in range(LOOKS)]
        return {key: median(look[key] for look in looks) for key in ("capture", "instantiate", "destroy")}

    return time


def _add_cost_of_one(figures: list[Figure]) -> list[Figure]:
    """Adds the seconds of one addition, and the number of repeats from which capturing a graph pays."""
    loop = next((figure.seconds for figure in figures if figure.name == LOOP), None)
    return [_with_cost_of_one(figure, loop) for figure in figures]


def _with_cost_of_one(figure: Figure, loop: float | None) -> Figure:
    if figure.seconds is None:
        return figure
    figure = figure.with_params(seconds_per_add=figure.seconds / figure.params["parameters"]["adds"])
    if "capture" in figure.params and loop and figure.seconds:
        return figure.with_params(break_even=count_repeats(figure.seconds, loop, figure.params))
    return figure


def count_repeats(seconds: float, loop: float, stages: Mapping[str, float]) -> int | None:
    """From how many runs on a graph costs less than a loop of launches, with making and destroying it included; None
    where it never does. ``seconds`` and ``loop`` are those of one run."""
    once = stages["capture"] + stages["instantiate"] + stages["destroy"]
    return math.ceil(once / (loop - seconds)) if loop > seconds else None


SWEEP = Sweep(
    "latency",
    cells,
    "timed by the host in C, from the first call until the device is done; of graphs the launch alone",
    probes=ON_DEVICE,
    tables="vecadd.bench.tables.latency",
    plot="vecadd.bench.plots.latency",
    by_dtype=True,
)

"""Many small additions, each by its own launch: independent ones, and a chain in which each waits for the last."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from statistics import median
from typing import Any

import numpy as np

from vecadd import _core
from vecadd.bench import contestants, layout, plot
from vecadd.bench.contestants import Contestant
from vecadd.bench.operands import DEVICE, Buffers
from vecadd.bench.options import Options, powers
from vecadd.bench.plot import Drawing, Picture
from vecadd.bench.probes import DEVICE_CACHES
from vecadd.bench.run import ON_DEVICE, Machine, Sweep, grid
from vecadd.bench.timing import Cell
from vecadd.figures import Figure, Run
from vecadd.model.theory import itemsize
from vecadd.tables import Table, columns, prose, show_bytes, show_gain, show_seconds, show_size

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
    found = []
    for figure in figures:
        if figure.seconds is not None:
            figure = figure.with_params(seconds_per_add=figure.seconds / figure.params["parameters"]["adds"])
            if "capture" in figure.params and loop and figure.seconds:
                figure = figure.with_params(break_even=count_repeats(figure.seconds, loop, figure.params))
        found.append(figure)
    return found


def count_repeats(seconds: float, loop: float, stages: Mapping[str, float]) -> int | None:
    """From how many runs on a graph costs less than a loop of launches, with making and destroying it included; None
    where it never does. ``seconds`` and ``loop`` are those of one run."""
    once = stages["capture"] + stages["instantiate"] + stages["destroy"]
    return math.ceil(once / (loop - seconds)) if loop > seconds else None


# Tables

KINDS = ("independent", "chain")

_COLUMNS = columns(
    "rung",
    "adds",
    "one add",
    "gain",
    "GB/s",
    "% limit",
    "capture",
    "instantiate",
    "destroy",
    "pays after",
    prose("documents", 2),
    prose("what changed", 3),
)
_OPTIONAL = ("documents", "what changed", "destroy", "instantiate", "capture")

NOTES = (
    "independent: as many segments, each added by its own launch; chain: out = a + b, then out + b again and again, "
    "each waiting for the one before",
    "one add: the whole set's time over its additions; gain: over launch_loop of the same round",
    "pays after: repeats from which capture, instantiate and destroy are earned back against launch_loop",
)


def tables(figures: Sequence[Figure]) -> list[Table]:
    """Seconds of one addition by how it is launched, and from how many repeats capturing a graph pays."""
    table = Table("latency", _COLUMNS, optional_columns=_OPTIONAL)
    for cell in layout.each_cell(table, figures, lambda figure: f"{show_size(figure.n)} {kind_of(figure)}"):
        previous = None
        for figure in cell:
            words = layout.document_cells(figure.name, previous)
            table.add(figure.name, *_cells(figure), *words, style=layout.choose_style(figure))
            previous = figure.name
    table.notes = [*NOTES, *layout.document_notes(figures)]
    return [table]


def kind_of(figure: Figure) -> str:
    """One of KINDS: whether each addition waits for the one before."""
    return KINDS[bool(figure.params.get("parameters", {}).get("chain"))]


def gain(figure: Figure) -> float | None:
    """The gain over launch_loop in the same rounds; 1 for launch_loop."""
    if figure.name == LOOP and figure.seconds:
        return 1.0
    return 1 / figure.params["ratio"] if "ratio" in figure.params else None


def break_even(figure: Figure) -> str:
    """From how many repeats a graph pays; "-" for rungs without a graph."""
    if "break_even" not in figure.params:
        return "-"
    repeats = figure.params["break_even"]
    return "never" if repeats is None else f"{repeats}"


def _cells(figure: Figure) -> tuple[str, ...]:
    one, own_gain = figure.params.get("seconds_per_add"), gain(figure)
    stages = (figure.params.get(name) for name in ("capture", "instantiate", "destroy"))
    return (
        str(figure.params.get("parameters", {}).get("adds", "-")),
        show_seconds(one) if one and figure.seconds else "failed" if figure.error else "-",
        show_gain(own_gain) if own_gain else "-",
        layout.rate_cell(figure),
        layout.limit_cell(figure),
        *(show_seconds(seconds) if seconds else "-" for seconds in stages),
        break_even(figure),
    )


# Pictures

FADED = 1.05  # a smaller gain does not count

_TITLES = {"independent": "independent adds", "chain": "a chain: each add needs the one before"}


def pictures(run: Run) -> Iterator[Picture]:
    """Of each dtype what one add costs by each way to launch it, and the size from which they no longer differ."""
    for name, figures in plot.by_dtype("latency", run.figures):
        title = f"Many small adds, {figures[0].dtype}: what one costs"
        yield Picture(name, title, partial(_draw, figures=figures))


def _draw(drawing: Drawing, figures: Sequence[Figure]) -> None:
    """A column for each kind of set: time per add above the gain over plain launches, both over the size of one add."""
    kinds = [kind for kind in KINDS if any(kind_of(figure) == kind for figure in figures)]
    drawing.set_size_inches(0.6 + 3.6 * len(kinds), 5.6)
    panels = drawing.subplots(2, len(kinds), squeeze=False, sharex=True, sharey="row", height_ratios=(3, 2))
    looks = plot.line_styles(figure.name for figure in figures)
    entries: dict[str, Any] = {}
    for column, kind in enumerate(kinds):
        some = [figure for figure in figures if kind_of(figure) == kind and figure.seconds]
        plain = {figure.n: _seconds_of_one(figure) for figure in some if figure.name == LOOP}
        times, gains = panels[:, column]
        for rung, look in looks.items():
            line = sorted((figure for figure in some if figure.name == rung), key=lambda figure: figure.n)
            both = [figure for figure in line if figure.n in plain]
            if line:
                places = [_bytes(figure) for figure in line]
                times.plot(places, [_seconds_of_one(figure) for figure in line], label=rung, **look.keywords())
                ratios = [plain[figure.n] / _seconds_of_one(figure) for figure in both]
                gains.plot([_bytes(figure) for figure in both], ratios, **look.keywords())
        faded = fades(some)
        if faded is not None:
            for axes in (times, gains):
                axes.axvline(faded, **plot.MARK)
        exponents = [_bytes(figure).bit_length() - 1 for figure in some]
        plot.power_axis(gains, range(min(exponents), max(exponents) + 1), show_bytes)
        gains.tick_params(axis="x", labelrotation=45)
        gains.set_xlabel("bytes of each of the three arrays of one add")
        gains.set_ylabel("" if column else f"gain over {LOOP}")
        gains.set_yscale("log")
        plot.plain_logarithm(gains.yaxis)
        plot.seconds_axis(times, "" if column else "time per add")
        found = "something gains 5 % at every size" if faded is None else f"no gain of 5 % from {show_bytes(faded)} on"
        times.set_title(f"{_TITLES[kind]}\n{found}")
        entries |= plot.legend_entries(times)
    drawing.legend(handles=list(entries.values()), labels=list(entries), loc="outside lower center", ncols=3)


def fades(figures: Sequence[Figure]) -> int | None:
    """Bytes of one array from which on no rung gains 5 % over plain launches, at any larger size either; None where one
    still does at the largest size."""
    timed = [figure for figure in figures if figure.seconds]
    plain = {figure.n: _seconds_of_one(figure) for figure in timed if figure.name == LOOP}
    others = [figure for figure in timed if figure.name != LOOP and figure.n in plain]
    gaining = [figure.n for figure in others if plain[figure.n] / _seconds_of_one(figure) >= FADED]
    return min((_bytes(figure) for figure in others if figure.n > max(gaining, default=0)), default=None)


def _bytes(figure: Figure) -> int:
    return figure.n * itemsize(figure.dtype)


def _seconds_of_one(figure: Figure) -> float:
    return float(figure.params["seconds_per_add"])


SWEEP = Sweep(
    "latency",
    cells,
    "timed by the host in C, from the first call until the device is done; of graphs the launch alone",
    probes=ON_DEVICE,
    tables=tables,
    pictures=pictures,
)

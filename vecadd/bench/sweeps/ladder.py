"""Device memory, added by every kernel of the ladder in turn."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from math import ceil, floor, log10
from typing import Any

from vecadd.bench import layout, plot
from vecadd.bench.contestants import CALLS, device_rung
from vecadd.bench.options import Options
from vecadd.bench.plot import Axes, Drawing, Picture
from vecadd.bench.run import EVENTS, ON_DEVICE, Machine, Sweep, grid
from vecadd.bench.timing import Cell
from vecadd.figures import Figure, Run
from vecadd.model.theory import Gpu, has_defaults
from vecadd.tables import Column, Table, columns, prose, show_gain, show_rate, show_size

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


# Tables

_COLUMNS = columns(
    "rung",
    "seconds",
    "GB/s",
    "% limit",
    "gain",
    "KiB/SM",
    "occ. %",
    "regs",
    Column("load", right=False),
    prose("documents", 2),
    prose("what changed", 3),
)
_OPTIONAL = ("documents", "what changed", "regs", "occ. %", "load", "KiB/SM")

IN_FLIGHT = (
    "KiB/SM: bytes that a multiprocessor waits for at one time, by Little's law's model: loads * bytes * threads"
)


def tables(figures: Sequence[Figure]) -> list[Table]:
    """What each rung changes, its gain over the rung that it comes after, and the documents' figures of it."""
    table = Table("ladder", _COLUMNS, optional_columns=_OPTIONAL)
    for cell in layout.each_cell(table, figures):
        before: dict[str, list[Figure]] = {}
        for name, group in groupby(cell, key=lambda figure: figure.name):
            documents, changes = layout.document_cells(name, previous=next(reversed(before), None))
            variants = list(group)
            usual = next(filter(_has_defaults, variants), variants[0])
            for figure in variants:
                first = figure is variants[0]
                words = documents if figure is usual else "", changes if first else ""
                style = layout.choose_style(figure)
                table.add(_variant(figure, named=first), *_cells(figure, before), *words, style=style)
                if figure.seconds:
                    before.setdefault(name, []).append(figure)
    caught = [f"{each.title} is caught: {each.params['caught']}" for each in figures if "caught" in each.params]
    table.notes = [layout.GAIN, IN_FLIGHT, layout.OCCUPANCY, *layout.document_notes(figures), *caught]
    return [table]


def _has_defaults(figure: Figure) -> bool:
    return has_defaults(layout.rung_of(figure), figure.params.get("parameters", {}))


def _variant(figure: Figure, *, named: bool) -> str:
    """The rung and its parameters, a line each; only the parameters where a line above names the rung."""
    parameters = [f"  {name} {value}" for name, value in figure.params.get("parameters", {}).items()]
    return "\n".join([figure.name, *parameters] if named else parameters or [figure.name])


def _cells(figure: Figure, before: Mapping[str, Sequence[Figure]]) -> tuple[str, ...]:
    gain = layout.gain_over(figure, before)
    in_flight = figure.params.get("bytes_in_flight")
    return (
        *layout.measured_cells(figure),
        show_gain(gain) if gain else "-",
        f"{in_flight / 1024:.3g}" if in_flight is not None else "-",
        layout.percent_cell(figure.params.get("occupancy")),
        layout.param_cell(figure, "registers"),
        figure.params.get("load") or "-",
    )


# Pictures: bars

MOST_SIZES = 3  # panels beside each other
BAR = 0.165  # inches of height
ONE_PANEL = 3.6  # inches of width, at least: the legend's
DECADES = 100
MOST_TICKS = 4

_PART = 0.6  # of a panel's width: the bars; the rest is for their figures, in two columns
_COLUMN_ENDS = (0.82, 1.0)
_LETTERS = 6.5

# By what a thread loads at a time: colour and hatch. The figure's own load counts: a rung's kernel may have changed.
_LOADS = {
    4: ("one element a load", plot.ORANGE, "///"),
    8: ("8 bytes a load", plot.SKY, "..."),
    16: ("16 bytes a load", plot.GREEN, ""),
}
_COPIED = ("copied past the registers", plot.PURPLE, "\\\\\\")
_UNKNOWN = ("a rung that this build does not have", plot.PALE, "")
_CAUGHT = ("wrong on purpose, and caught", plot.VERMILLION, "xxx")

Bar = tuple[str, str]  # a rung and the parameters of its variant


def pictures(run: Run) -> Iterator[Picture]:
    """Of each dtype, how near each rung comes to the memory's limit: linear, and logarithmic too where some rung is so
    much slower than another that a linear axis does not show its bar; and the roofline of all dtypes."""
    for name, figures in plot.by_dtype("ladder", run.figures):
        title = f"The ladder, {figures[0].dtype}: each rung against the limit"
        yield Picture(name, title, partial(_draw_bars, figures=figures))
        if spans_decades(figures):
            yield Picture(f"{name}-log", title, partial(_draw_bars, figures=figures, logarithmic=True))
    yield from roofline(run, "roofline")


def spans_decades(figures: Sequence[Figure]) -> bool:
    """Whether two rates of one size differ more than DECADES times."""
    rates: dict[int, list[float]] = {}
    for figure in figures:
        if figure.gbps:
            rates.setdefault(figure.n, []).append(figure.gbps)
    return any(max(some) > DECADES * min(some) for some in rates.values())


def _draw_bars(drawing: Drawing, figures: Sequence[Figure], *, logarithmic: bool = False) -> None:
    """A panel for each size, at most three, with the same rungs in all."""
    sizes = sorted({figure.n for figure in figures})
    if len(sizes) > MOST_SIZES:
        sizes = [sizes[0], sizes[len(sizes) // 2], sizes[-1]]
    places = _places(list(dict.fromkeys(_bar(figure) for figure in figures)))
    drawing.set_size_inches(1.7 + max(2.1 * len(sizes), ONE_PANEL), 1.4 + BAR * (max(places.values()) + 1))
    panels = drawing.subplots(1, len(sizes), squeeze=False, sharey=True)[0]
    used: dict[str, Any] = {}
    for axes, n in zip(panels, sizes, strict=True):
        cell = [figure for figure in figures if figure.n == n]
        here = {_bar(figure): figure for figure in cell}
        for bar, place in places.items():
            if bar in here:
                _draw_bar(axes, here[bar], place, used)
            else:
                _write_columns(axes, place, "not run")
        _scale(axes, cell, logarithmic=logarithmic)
        axes.set_title(f"{show_size(n)} elements")
        axes.grid(visible=False, axis="y")
    panels[0].set_yticks(list(places.values()), _bar_names(list(places)), fontsize=_LETTERS)
    panels[0].set_ylim(max(places.values()) + 0.8, -0.8)
    for axes in panels:
        axes.tick_params(axis="y", length=0)
    drawing.legend(handles=list(used.values()), loc="outside lower center", ncols=2)


def _bar(figure: Figure) -> Bar:
    parameters = figure.params.get("parameters", {})
    return figure.name, ", ".join(f"{name} {value}" for name, value in parameters.items())


def _places(bars: Sequence[Bar]) -> dict[Bar, float]:
    """Where each bar is along y: variants of a rung close together, half a bar between two rungs."""
    place, places, before = 0.0, {}, bars[0][0]
    for bar in bars:
        place += 0.5 * (bar[0] != before)
        places[bar] = place
        place, before = place + 1, bar[0]
    return places


def _bar_names(bars: Sequence[Bar]) -> list[str]:
    """The rung is named at the first of its variants."""
    seen: set[str] = set()
    names = []
    for rung, variant in bars:
        names.append(variant if rung in seen else f"{rung}  {variant}".rstrip())
        seen.add(rung)
    return names


def _draw_bar(axes: Axes, figure: Figure, place: float, used: dict[str, Any]) -> None:
    if figure.gbps is None:
        _write_columns(axes, place, "failed")
        return
    meaning, color, hatch = _meaning(figure)
    look = plot.bar_style(color, hatch)
    axes.barh(place, figure.gbps, height=0.85, **look)
    _write_columns(axes, place, show_rate(figure.gbps), _show_percent(figure.fraction))
    used.setdefault(meaning, plot.make_patch(meaning, **look))


def _write_columns(axes: Axes, place: float, rate: str, share: str = "") -> None:
    for x, text in zip(_COLUMN_ENDS, (rate, share), strict=True):
        plot.label_at_side(axes, text, place, x, _LETTERS)


def _meaning(figure: Figure) -> tuple[str, str, str]:
    if "caught" in figure.params:
        return _CAUGHT
    load = figure.params.get("load")
    if load is None:
        return _UNKNOWN
    if not load.startswith("LDG."):
        return _COPIED
    return _LOADS[16 if ".128" in load else 8 if ".64" in load else 4]


def _show_percent(fraction: float | None) -> str:
    if fraction is None:
        return ""
    percent = 100 * fraction
    return f"{percent:.0f} %" if percent >= 9.95 else f"{percent:.1f} %" if percent >= 0.095 else "<0.1 %"


def _scale(axes: Axes, cell: Sequence[Figure], *, logarithmic: bool) -> None:
    """A line where the limit fits in the panel; its figure in any case. The bars end where their figures begin."""
    rates = [figure.gbps for figure in cell if figure.gbps] or [1.0]
    longest = max(rates)
    limit = next((figure.limit for figure in cell if figure.limit), None)
    if limit and limit < 1.5 * longest:
        longest = max(longest, limit)
        axes.axvline(limit, **plot.LIMIT)
    if logarithmic:
        least = min(rates) / 3
        axes.set_xscale("log")
        axes.set_xlim(least, least * (longest / least) ** (1 / _PART))
        powers = range(ceil(log10(least)), floor(log10(longest)) + 1)
        plot.set_ticks(axes.xaxis, [10.0**power for power in powers[:: -(-len(powers) // MOST_TICKS)]])
    else:
        axes.set_xlim(0, longest / _PART)
        axes.set_xticks([tick for tick in axes.get_xticks() if tick <= longest])
    axes.set_xlabel(f"GB/s, limit {show_rate(limit)}" if limit else "GB/s")


# Pictures: the roofline, additions a second over additions a byte

LEAST = 1 << 20  # elements: below, the time is the launch's, not the memory's

_BEYOND = 3  # times the largest intensity: as far as the slope is drawn
_DRAWN = 0.02  # of the limit: slower rungs are named beside the figure, or they would compress all others
_INSET = (0.53, 0.07, 0.46, 0.46)  # of the axes: under the roof, where no dot is

# The rungs that have a mark of their own; others are grey dots, most of which overlap.
_NAMED = (
    "grid_stride",
    "block_range",
    "naive",
    "coarsen4",
    "unroll2",
    "float4",
    "async_copy",
    "tuned",
    "half",
    "half2",
    "half8_pack",
    "strided",
    "divergent",
)


def roofline(run: Run, name: str) -> Iterator[Picture]:
    """How far below the memory's slope the fastest figure of each device rung and dtype stays, at the largest size that
    the rung ran at."""
    best: dict[tuple[str, str], Figure] = {}
    for figure in run.figures:
        if not figure.gbps or figure.name in CALLS or figure.n < LEAST:
            continue
        known = best.get((figure.name, figure.dtype))
        if known is None or (figure.n, figure.gbps) > (known.n, known.gbps or 0):
            best[figure.name, figure.dtype] = figure
    if best:
        title = "Roofline: every rung at the largest size that it ran at"
        yield Picture(name, title, partial(_draw_roofline, figures=list(best.values()), peak=_peak(run.meta)))


def _draw_roofline(drawing: Drawing, figures: Sequence[Figure], peak: float | None) -> None:
    """Both axes logarithmic; dots above each other for each number of bytes that an addition moves. Where the GPU's
    clock is known the other roof is there too, and the dots are shown larger below it."""
    drawing.set_size_inches(plot.WIDTH, 4.8)
    axes = drawing.subplots()
    limit = max((figure.limit or 0 for figure in figures), default=0) or max(figure.gbps or 0 for figure in figures)
    # Where all are slow there is nothing else to draw.
    drawn = [figure for figure in figures if (figure.gbps or 0) >= _DRAWN * limit] or list(figures)
    _draw_roofs(axes, figures, limit, peak)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("arithmetic intensity: additions a byte that moves")
    axes.set_ylabel("1e9 additions a second")
    if peak is None:
        _draw_dots(axes, drawn)
        _zoom(axes, drawn, limit)
        entries = plot.legend_entries(axes)
    else:
        axes.plot(*_positions(drawn), ".", color=plot.GREY)
        inset = axes.inset_axes(_INSET)
        _draw_dots(inset, drawn)
        _draw_roofs(inset, figures, limit, None)
        _zoom(inset, drawn, limit)
        axes.set_xlim(left=0.9 * inset.get_xlim()[0])  # the frame of what is magnified is inside
        axes.set_ylim(bottom=0.9 * inset.get_ylim()[0])
        axes.indicate_inset_zoom(inset, edgecolor=plot.GREY)
        entries = plot.legend_entries(axes) | plot.legend_entries(inset)
    below = [f"{figure.name} {_show_share(figure)}" for figure in figures if figure not in drawn]
    title = "\n".join([*(["too low to draw:", *below, ""] if below else []), "% of the memory's limit:"])
    axes.legend(entries.values(), entries, loc="center left", bbox_to_anchor=(1.01, 0.5), title=title)


def _peak(meta: Mapping[str, Any]) -> float | None:
    """1e9 additions of float32 a second that the GPU's cores make at most; None where the file does not know it."""
    try:
        return Gpu.of(meta["gpu"][0]).peak / 1e9
    except (IndexError, KeyError, ValueError):
        return None


def _draw_roofs(axes: Axes, figures: Sequence[Figure], limit: float, peak: float | None) -> None:
    left = 0.7 * min(_intensity(figure) for figure in figures)
    right = _BEYOND * max(_intensity(figure) for figure in figures) if peak is None else peak / limit
    label = f"memory: {show_rate(limit)} GB/s,\nmeasured"
    axes.plot([left, right], [left * limit, right * limit], label=label, **plot.LIMIT)
    if peak is not None:
        label = f"cores: {show_rate(peak / 1e3)}e12 a second,\nin theory"
        axes.plot([right, _BEYOND * right], [peak, peak], label=label, linestyle=(0, (4, 1)), **plot.LIMIT)


def _zoom(axes: Axes, figures: Sequence[Figure], limit: float) -> None:
    """Scales the axes to the dots."""
    intensities, rates = _positions(figures)
    ticks = sorted(set(intensities))
    axes.set_xscale("log")
    axes.set_yscale("log")
    plot.plain_logarithm(axes.yaxis)
    plot.set_ticks(axes.xaxis, ticks, lambda value: f"1/{1 / value:.0f}")
    axes.set_xlim(0.7 * ticks[0], 1.5 * ticks[-1])
    axes.set_ylim(0.7 * min(rates), 1.3 * 1.5 * ticks[-1] * limit)


def _intensity(figure: Figure) -> float:
    """Additions a byte: 1/12 for float32, 1/16 where the sum is added to what was there."""
    return figure.n / figure.bytes


def _draw_dots(axes: Axes, figures: Sequence[Figure]) -> None:
    looks = plot.line_styles(figure.name for figure in figures if figure.name in _NAMED)
    others = [figure for figure in figures if figure.name not in looks]
    axes.plot(*_positions(others), ".", color=plot.GREY, markerfacecolor="none", label="other rungs")
    for rung, look in looks.items():
        some = [figure for figure in figures if figure.name == rung]
        shares = sorted({_show_share(figure) for figure in some}, key=lambda text: (len(text), text))
        label = f"{rung} {' to '.join(dict.fromkeys((shares[0], shares[-1])))}"
        axes.plot(*_positions(some), label=label, **look.dots())


def _positions(figures: Sequence[Figure]) -> tuple[list[float], list[float]]:
    """Additions a byte, and 1e9 additions a second."""
    return [_intensity(figure) for figure in figures], [(each.gbps or 0) * _intensity(each) for each in figures]


def _show_share(figure: Figure) -> str:
    return "" if figure.fraction is None else f"{100 * figure.fraction:.2g} %"


SWEEP = Sweep("ladder", cells, EVENTS, probes=ON_DEVICE, tables=tables, pictures=pictures)

"""The kernels of the ladder in blocks of every size, and one kernel on some share of the blocks that fit at once."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from math import nan, prod
from typing import Any

from vecadd.bench import layout, plot, recorded
from vecadd.bench.contestants import device_rung
from vecadd.bench.options import Options
from vecadd.bench.plot import Axes, Drawing, Picture
from vecadd.bench.run import EVENTS, ON_DEVICE, Machine, Sweep, grid
from vecadd.bench.timing import Cell
from vecadd.figures import Figure, Run
from vecadd.model.theory import ARRAYS, itemsize
from vecadd.tables import Style, Table, columns, show_rate, show_seconds, show_size

SIZES = (2**26,)
BLOCKS = (32, 64, 128, 256, 512, 768, 1024)
BRIEF_BLOCKS = (64, 256, 1024)
RUNGS = ("naive", "coarsen2", "coarsen4", "unroll2", "float2", "float4", "float4_unroll2")

WAVES = "waves"  # the rung whose axis is not the block but the number of blocks
PERCENT = (90, 100, 110, 200)  # of the blocks that fit at once

ADVISED = 0.75  # occupancy, by founding document 002


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


# Tables


def tables(figures: Sequence[Figure]) -> list[Table]:
    """A rung a line, a block size a column; below it the cost of partial waves."""
    by_block = [figure for figure in figures if figure.name != WAVES]
    by_waves = [figure for figure in figures if figure.name == WAVES]
    return [table for table in (_table_of_blocks(by_block), _table_of_waves(by_waves)) if table.lines]


def _table_of_blocks(figures: Sequence[Figure]) -> Table:
    blocks = sorted({figure.params["block"] for figure in figures})
    table = Table("blocksize: threads a block", columns("rung", *map(str, blocks), "best"))
    for cell in layout.each_cell(table, figures):
        for label, group in groupby(cell, key=lambda figure: figure.label):
            line = {figure.params["block"]: figure for figure in group}
            timed = [figure for figure in line.values() if figure.seconds]
            best = min(timed, key=lambda figure: figure.seconds or 0, default=None)
            failed = any(layout.choose_style(figure) is Style.FAILED for figure in line.values())
            table.add(
                label,
                *(_block_cell(line.get(block), best) for block in blocks),
                str(best.params["block"]) if best else "-",
                style=Style.FAILED if failed else Style.PLAIN,
            )
    if table.lines:
        table.notes = [
            "a cell: GB/s (% of the limit) occupancy %; * the fastest block of its rung",
            *_note_of_starts(figures),
            *_notes_of_documents({figure.name for figure in figures}),
        ]
    return table


def _block_cell(figure: Figure | None, best: Figure | None) -> str:
    if figure is None:
        return "-"
    if figure.gbps is None:
        return "failed"
    share = "" if figure.fraction is None else f" ({100 * figure.fraction:.0f})"
    mark = "*" if figure is best else ""
    return f"{mark}{show_rate(figure.gbps)}{share} {layout.percent_cell(figure.params.get('occupancy'))}"


def _note_of_starts(figures: Sequence[Figure]) -> list[str]:
    """The most blocks that a figure started in a time, where the figures say how many they had."""
    rates = [prod(figure.params["grid"]) / figure.seconds for figure in figures if figure.seconds and _blocks(figure)]
    if not rates:
        return []
    return [f"no row starts more than {1e-9 * max(rates):.3g} blocks a ns, which bounds small blocks at any occupancy"]


def _blocks(figure: Figure) -> Sequence[int]:
    """How many blocks it had, along each axis; none where it does not say."""
    return figure.params.get("grid") or ()


def _notes_of_documents(rungs: set[str]) -> list[str]:
    """What the documents recorded along this axis, a line a rung and setting."""
    found = [figure for figure in recorded.FIGURES if figure.block is not None and figure.rung in rungs]
    lines = []
    for (rung, setting), group in groupby(found, key=lambda figure: (figure.rung, figure.setting)):
        times = ", ".join(f"{figure.block}: {show_seconds(figure.seconds)}" for figure in group)
        lines.append(f"document {recorded.SETTINGS[setting].document}, {rung} on {recorded.SETTINGS[setting]}: {times}")
    return lines


def _table_of_waves(figures: Sequence[Figure]) -> Table:
    names = columns("percent", "blocks", "waves", "seconds", "GB/s", "% limit", "occ. %", "regs")
    table = Table("blocksize: blocks, of those that fit at once", names)
    for cell in layout.each_cell(table, figures):
        for figure in cell:
            blocks, waves = _blocks(figure), figure.params.get("waves")
            table.add(
                ", ".join(map(str, figure.params.get("parameters", {}).values())),
                str(blocks[0]) if blocks else "-",
                "-" if waves is None else f"{waves:.2f}",
                *layout.measured_cells(figure),
                layout.percent_cell(figure.params.get("occupancy")),
                layout.param_cell(figure, "registers"),
                style=layout.choose_style(figure),
            )
    if table.lines:
        table.notes = ["waves: blocks over those that all multiprocessors hold at once; what is left over runs alone"]
    return table


# Pictures


def pictures(run: Run) -> Iterator[Picture]:
    """Of each dtype at its largest size: GB/s over block size above occupancy, and GB/s over waves below."""
    starts = run.meta.get("limits", {}).get("launch", {}).get("block_seconds")
    for name, figures in plot.by_dtype("blocksize", run.figures):
        largest = [figure for figure in figures if figure.n == max(figure.n for figure in figures)]
        title = f"Block size and waves, {largest[0].dtype}, {show_size(largest[0].n)} elements"
        yield Picture(name, title, partial(_draw, figures=largest, block_seconds=starts))


def _draw(drawing: Drawing, figures: Sequence[Figure], block_seconds: float | None) -> None:
    by_waves = [figure for figure in figures if figure.name == WAVES and figure.params.get("waves")]
    by_block = [figure for figure in figures if figure.name != WAVES and figure.gbps]
    heights = [3.4] * bool(by_block) + [1.5] * bool(by_block) + [2.2] * bool(by_waves)
    drawing.set_size_inches(plot.WIDTH, 0.6 + sum(heights))
    panels = list(drawing.subplots(len(heights), squeeze=False, height_ratios=heights)[:, 0])
    if by_block:
        rates = panels.pop(0)
        _draw_blocks(rates, panels.pop(0), by_block)
        _draw_starts(rates, by_block, block_seconds)
        plot.legend_beside(rates, title="ring: the fastest block")
    if by_waves:
        _draw_waves(panels.pop(0), by_waves)


def _draw_blocks(rates: Axes, occupancy: Axes, figures: Sequence[Figure]) -> None:
    from matplotlib.ticker import PercentFormatter

    looks = plot.line_styles(figure.name for figure in figures)
    for rung, look in looks.items():
        line = sorted((figure for figure in figures if figure.name == rung), key=lambda figure: figure.params["block"])
        blocks = [figure.params["block"] for figure in line]
        values = [figure.gbps or 0.0 for figure in line]
        best = max(range(len(line)), key=values.__getitem__)
        label = f"{rung}, best at {blocks[best]}"
        if (most := line[best].params.get("occupancy")) is not None:
            label += f" ({100 * most:.0f} % occupied)"
        rates.plot(blocks, values, label=label, **look.keywords())
        rates.plot(blocks[best], values[best], "o", markersize=10, markerfacecolor="none", color=look.color)
    _draw_occupancy(occupancy, figures, looks)
    plot.draw_limit(rates, figures, [figure.params["block"] for figure in figures])
    for axes in (rates, occupancy):
        axes.set_xscale("log", base=2)
        plot.set_ticks(axes.xaxis, sorted({int(figure.params["block"]) for figure in figures}))
        axes.tick_params(axis="x", labelsize=plot.SMALL)
    rates.set_ylabel("GB/s")
    rates.set_ylim(bottom=0)
    rates.tick_params(labelbottom=False)
    occupancy.axhline(ADVISED, **{**plot.MARK, "color": plot.BLACK})
    where: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "va": "center", "fontsize": plot.SMALL}
    occupancy.annotate(" advised by\n document 002", (1, ADVISED), **where)
    occupancy.yaxis.set_major_formatter(PercentFormatter(1))
    occupancy.set_ylim(0, 1.08)
    occupancy.set_ylabel("occupancy")
    occupancy.set_xlabel("threads a block")


def _draw_occupancy(axes: Axes, figures: Sequence[Figure], looks: Mapping[str, plot.Look]) -> None:
    """Dots without a line, which would be a sawtooth: for each rung, and for all that occupy the same once."""
    lines: dict[tuple[tuple[int, float], ...], list[str]] = {}
    for rung in looks:
        shares = {each.params["block"]: each.params.get("occupancy") for each in figures if each.name == rung}
        known = tuple(sorted((block, share) for block, share in shares.items() if share is not None))
        lines.setdefault(known, []).append(rung)
    for known, rungs in lines.items():
        look = plot.Look(plot.BLACK, "o", "", hollow=False) if len(rungs) > 1 else looks[rungs[0]]
        label = f"all {len(rungs)} rungs" if len(rungs) == len(looks) else ", ".join(rungs)
        if known:
            axes.plot(*zip(*known, strict=True), label=label, **look.dots())
    if any(len(rungs) > 1 for rungs in lines.values()):
        axes.legend(loc="lower right", fontsize=plot.SMALL)


def _draw_starts(axes: Axes, figures: Sequence[Figure], block_seconds: float | None) -> None:
    """How fast blocks start, where the run measured it: no rung whose threads add that many elements each and end is
    above."""
    if not block_seconds:
        return
    top = axes.get_ylim()[1]
    blocks = sorted({int(figure.params["block"]) for figure in figures})
    for elements in (1, 2, 4):
        thread_bytes = ARRAYS * itemsize(figures[0].dtype) * elements
        rates = [thread_bytes * block / block_seconds / 1e9 for block in blocks]
        label = f"blocks start, {1e9 * block_seconds:.2g} ns each:\n1, 2 and 4 elements a thread"
        look: dict[str, Any] = {"color": plot.BLACK, "linewidth": 1, "linestyle": (0, (1, 2)), "zorder": 3}
        axes.plot(blocks, rates, label=label if elements == 1 else None, **look)
    axes.set_ylim(0, top)


def _draw_waves(axes: Axes, figures: Sequence[Figure]) -> None:
    figures = sorted(figures, key=lambda figure: figure.params["waves"])
    places = [figure.params["waves"] for figure in figures]
    rates = [nan if figure.gbps is None else figure.gbps for figure in figures]
    axes.plot(places, rates, **plot.line_styles([WAVES])[WAVES].dots())  # a line would be a sawtooth
    for figure in filter(lambda figure: figure.gbps, figures):
        where: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "fontsize": plot.SMALL}
        axes.annotate(show_rate(figure.gbps or 0), (figure.params["waves"], figure.gbps or 0), (0, 6), **where)
    plot.draw_limit(axes, figures, places)
    plot.set_ticks(axes.xaxis, places, "{:.1f}".format)
    axes.tick_params(axis="x", labelsize=plot.SMALL)
    axes.set_ylim(bottom=0)
    axes.set_ylabel("GB/s")
    axes.set_xlabel("waves: blocks of a grid-stride loop over those that fit at once")
    plot.legend_beside(axes)


SWEEP = Sweep("blocksize", cells, EVENTS, probes=ON_DEVICE, tables=tables, pictures=pictures)

"""NumPy arrays, added by the GPU: up, added, and down again; then document 004's stages, and a cold start."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np

from vecadd import _core
from vecadd.bench import cold, contestants, layout, plot, probes, recorded, steps
from vecadd.bench.contestants import Contestant
from vecadd.bench.operands import HOST, PINNED, Buffers, MemoryKind
from vecadd.bench.options import Options, find_dtype
from vecadd.bench.plot import Axes, Drawing, Picture
from vecadd.bench.run import DEFAULT_DTYPES, DEFAULT_SIZES, ON_DEVICE, ON_THE_WAY, Machine, Sweep, grid
from vecadd.bench.steps import Step
from vecadd.bench.timing import Cell
from vecadd.figures import Figure, Run
from vecadd.model import Limits, predict
from vecadd.tables import Table, columns, prose, show_gain, show_rate, show_seconds, show_size

BRIEF_SIZES = (2**16, 2**20, 2**24)
STAGES_SIZE = 2**24  # of document 004's stages: one thread takes 1 s for 2^24 elements on an H200, and 6 s for its 1e8

SETS = 1  # no cache helps a link, and page-locking costs 0.35 s a GiB
MORE_PROBES = 3  # of the link, ahead of the cells

# By the `memory` of a rung's row.
MEMORIES: Mapping[str, tuple[MemoryKind, ...]] = {"pageable": (HOST,), "pinned": (PINNED,), "either": (PINNED, HOST)}
THE_CALL = "tuned_transfer"  # the rung that add(device="cuda") is

# Variants at the largest size of a run, besides the usual parameters: do the kernel and the allocation matter?
VARIANTS: Mapping[str, tuple[Mapping[str, int], ...]] = {
    "pageable": ({}, {"kernel": 1}, {"kernel": 2}, {"allocates": 0}),
    "streams2": ({}, {"allocates": 0}),
}


class LinkLimit(probes.Limit):
    """The link's best rates so far in this run: probed ahead of the cells, and after each cell's rounds in other
    memory than the cell's. One probe may be too low: on an H100 it found 75 GB/s for both directions at once, on
    another day 101, and rungs came to 1.12 of the limit that follows from the 75."""

    def __init__(self, machine: Machine) -> None:
        self._device = machine.device
        self._best = machine.limits("link")  # which raises what its probe raises
        for _ in range(MORE_PROBES):
            self._probe_again()

    def close(self) -> None:
        """Probes once more."""
        self._probe_again()

    def _probe_again(self) -> None:
        """A probe that fails leaves the rates as they were."""
        best = self._best
        with suppress(MemoryError, RuntimeError):
            again = probes.probe_link(self._device)
            best.update({name: max(rate, again[name]) for name, rate in best.items()})
            best["gbps"] = probes.link_gbps(1e9 * best["to_device_gbps"], 1e9 * best["both_gbps"])

    @property
    def gbps(self) -> float:
        """GB/s of two arrays up while one comes down."""
        return float(self._best["gbps"])


def cells(options: Options, machine: Machine) -> Iterator[Cell]:
    """The round trips at each dtype and size, and at one size document 004's stages."""
    largest = max(options.choose_sizes(DEFAULT_SIZES, BRIEF_SIZES))
    theory, limit = machine.link_theory, LinkLimit(machine)

    def add_derived(figures: list[Figure]) -> list[Figure]:
        return _add_model(figures, machine.gpu, machine.probed, theory)

    for dtype, n in grid(options, brief=BRIEF_SIZES):
        every = _round_trips(options, dtype, last=n == largest)
        yield Cell(dtype, n, every, limit, SETS, add_derived=add_derived)
    dtype = find_dtype((options.dtypes or DEFAULT_DTYPES)[0])
    n = min(STAGES_SIZE, largest)
    yield Cell(dtype, n, _document_stages(dtype), limit, SETS, add_derived=add_derived)


def _round_trips(options: Options, dtype: np.dtype[Any], *, last: bool) -> list[Contestant]:
    """Every transfer rung on each kind of memory that it takes; ``last``: this is the largest size of the run."""
    found = []
    for rung in _rungs(dtype):
        if rung["by_name"] and not options.names(rung["name"]):
            continue
        variants = VARIANTS.get(rung["name"], ({},)) if last and not options.brief else ({},)
        found += [
            _contestant(rung, memory, chosen, look=("timeline", "stages") if last else ())
            for memory in MEMORIES[rung["memory"]]
            for chosen in variants
        ]
    return [*found, *(contestants.transfer_add(memory, memory=_memory_name(memory)) for memory in (PINNED, HOST))]


def _document_stages(dtype: np.dtype[Any]) -> list[Contestant]:
    """Document 004's stages, one contestant each, in its order."""
    rungs = {rung["name"]: rung for rung in _rungs(dtype)}
    return [
        _contestant(
            rungs[name],
            MEMORIES[rungs[name]["memory"]][0],
            {"kernel": rungs[name]["choices"]["kernel"].index(kernel)},
            look=("stages",),
            stage=kernel if name == "pageable" else name,
        )
        for name, kernel in recorded.STAGES
        if name in rungs
    ]


def _rungs(dtype: np.dtype[Any]) -> list[dict[str, Any]]:
    return [rung for rung in _core.rungs() if rung["kind"] == "transfer" and str(dtype) in rung["dtypes"]]


def _contestant(
    rung: Mapping[str, Any], memory: MemoryKind, chosen: Mapping[str, int], look: Sequence[str], **params: Any
) -> Contestant:
    if "kernel" in rung["params"]:
        params["kernel"] = rung["choices"]["kernel"][chosen.get("kernel", rung["params"]["kernel"][1])]
    return contestants.rung(
        rung["name"],
        memory,
        chosen,
        limited=rung["stages"] != "shared",
        extra_params=_find_steps(rung["name"], chosen, look) if look else None,
        memory=_memory_name(memory),
        **params,
    )


def _memory_name(memory: MemoryKind) -> str:
    """ "pinned" or "pageable", as figures call it."""
    return "pinned" if memory is PINNED else "pageable"


def _find_steps(name: str, chosen: Mapping[str, int], look: Sequence[str]) -> Callable[[Buffers], dict[str, Any]]:
    """When each copy and kernel of one run began and ended, and the seconds in which each kind was at work."""

    def find(used: Buffers) -> dict[str, Any]:
        found = steps.steps(_core.timeline(name, used.a, used.b, used.out, params=dict(chosen)))
        known = {"timeline": [list(step) for step in found], "stages": steps.stages(found)}
        return {key: known[key] for key in look}

    return find


def _add_model(
    figures: list[Figure], gpu: Mapping[str, Any], limits: Mapping[str, Mapping[str, Any]], theory: float | None
) -> list[Figure]:
    """Adds the time that `vecadd.model` expects by these limits, where they suffice, and the share of the link's
    theoretical rate that the two uploads reached; neither where the processor adds a share. ``theory`` is in bytes a
    second, None where it is unknown."""
    rungs, found = {rung["name"]: rung for rung in _core.rungs()}, []
    for figure in figures:
        rung, more = rungs.get(figure.name, rungs[THE_CALL]), dict[str, float]()
        if rung["stages"] != "shared":
            parameters = figure.params.get("parameters", {})
            with suppress(ValueError):
                expected = predict(rung, None, gpu, Limits.of(limits), figure.dtype, figure.n, parameters)
                more["model_seconds"] = expected.seconds
            if theory and figure.seconds:
                more["link_fraction"] = 2 * figure.bytes / 3 / theory / figure.seconds
        found.append(figure.with_params(**more))
    return found


def measure_cold_start(options: Options, machine: Machine) -> list[Figure]:
    """The figure that is not measured in rounds."""
    if not options.names(cold.ROW) and (options.rungs is not None or options.sizes is not None):
        return []
    found = cold.measure(device=machine.device)
    params, checked = {"gpu": found["gpu"], "cpu": found["cpu"]}, found["gpu"]["checked"]
    error = None if checked else "wrong result"
    seconds = found["gpu"]["own"]
    return [Figure("transfer", cold.ROW, "float32", found["n"], params, value=seconds, checked=checked, error=error)]


def round_trips_of(figures: Iterable[Figure]) -> list[Figure]:
    """The round trips among a run's figures: not the stages of a document, nor a cold start."""
    return [figure for figure in figures if "memory" in figure.params and "stage" not in figure.params]


# Tables

_COLUMNS = columns(
    "rung",
    "seconds",
    "GB/s",
    "% limit",
    "% link",
    "model",
    "of model",
    "gain",
    prose("documents", 2),
    prose("what changed", 3),
)
_OPTIONAL = ("documents", "what changed", "% link", "of model", "model")

NOTES = (
    "% limit: of the link's own rates, measured in this run; % link: of what its generation and width give in theory, "
    "by the two uploads alone",
    "model: uploads, kernel and download at the rates of this run, their sum where a rung is serial, the slowest of "
    "them where it overlaps (document 004); of model: how many times as long it took",
)


def tables(figures: Sequence[Figure]) -> list[Table]:
    """The round trips beside document 004's model and the link; below them the document's stages where they were
    measured."""
    whole = [figure for figure in figures if "stage" not in figure.params]
    return [table for table in (_table_of_round_trips(whole), table_of_stages(figures)) if table.lines]


def _table_of_round_trips(figures: Sequence[Figure]) -> Table:
    table = Table("transfer", _COLUMNS, optional_columns=_OPTIONAL)
    for cell in layout.each_cell(table, figures):
        before: dict[str, list[Figure]] = {}
        for rung, group in groupby(cell, key=lambda figure: figure.name):
            words: tuple[str, ...] = layout.document_cells(rung, previous=next(reversed(before), None))
            for figure in group:
                table.add(figure.label, *_cells(figure, before), *words, style=layout.choose_style(figure))
                words = ()
                if figure.seconds:
                    before.setdefault(rung, []).append(figure)
    table.notes = [*NOTES, *_notes_of_cold_start(figures), *layout.document_notes(figures)]
    return table


def _cells(figure: Figure, before: Mapping[str, Sequence[Figure]]) -> tuple[str, ...]:
    model, gain = figure.params.get("model_seconds"), layout.gain_over(figure, before)
    return (
        *layout.measured_cells(figure),
        layout.percent_cell(figure.params.get("link_fraction")),
        show_seconds(model) if model else "-",
        f"{figure.seconds / model:.3g} x" if model and figure.seconds else "-",
        show_gain(gain) if gain else "-",
    )


def _notes_of_cold_start(figures: Sequence[Figure]) -> list[str]:
    lines: list[str] = []
    for figure in figures:
        for where, words in (("gpu", "on the GPU"), ("cpu", "on the processor alone")):
            if where in figure.params:
                stages = {name: seconds for name, seconds in figure.params[where].items() if name != "checked"}
                shown = ", ".join(f"{name} {show_seconds(seconds)}" for name, seconds in stages.items())
                lines.append(f"{figure.name} {words}: {shown}")
    return lines


def table_of_stages(figures: Sequence[Figure]) -> Table:
    """Document 004's stages, measured again, beside the document's."""
    names = ("stage", "whole", "kernel", "to host", "to device", "kernel : memory")
    its_names = ("its kernel", "its to host", "its to device", "its k : m")
    table = Table(
        "transfer: document 004's stages",
        columns(*names, *its_names, prose("made of")),
        optional_columns=("made of", *reversed(its_names)),
    )
    for cell in layout.each_cell(table, [figure for figure in figures if "stage" in figure.params]):
        for figure in cell:
            its = recorded.STAGES.get((figure.name, figure.params.get("kernel", "")))
            its_times = map(show_seconds, (its.kernel, its.to_host, its.to_device)) if its else ("-",) * 3
            table.add(
                figure.params["stage"],
                layout.seconds_cell(figure),
                *_stage_cells(steps.stages_of(figure)),
                *its_times,
                its.shares if its else "-",
                figure.label,
                style=layout.choose_style(figure),
            )
    table.notes = [
        "kernel : memory: percent of the three, in which what overlaps counts for each; its: document 004's, "
        f"{recorded.SETTINGS['004a']}, with the percent that it prints",
    ]
    return table


def _stage_cells(stages: Mapping[str, float] | None) -> tuple[str, ...]:
    """Kernel, download, uploads, and the kernel's share of the three."""
    if not stages:
        return ("-",) * 4
    share = 100 * stages["kernel"] / total if (total := sum(stages.values())) else 0.0
    seconds = (stages[kind] for kind in ("kernel", "to_host", "to_device"))
    return *map(show_seconds, seconds), f"{share:.1f} : {100 - share:.1f}"


def table_of_cold_start(figures: Sequence[Figure]) -> Table:
    """What a process that has just begun pays once, beside the same on the processor and document 004's figures."""
    table = Table(
        "cold start",
        columns("stage", "GPU", "its GPU", "processor", "its processor", prose("what it does")),
        optional_columns=("what it does",),
    )
    (figure,) = [figure for figure in figures if figure.name == cold.ROW]
    gpu, cpu = figure.params["gpu"], figure.params["cpu"]
    words = {
        **cold.STAGES,
        "kernel": "of launch, by CUDA events",
        "own": "all but import: what a program without Python and NumPy pays too",
        "process": "from before the process was started until it had ended",
    }
    for stage, what in words.items():
        if stage in gpu or stage in cpu:
            columns_of_stage = (gpu, recorded.COLD_GPU, cpu, recorded.COLD_CPU)
            table.add(stage, *(show_seconds(each[stage]) if stage in each else "-" for each in columns_of_stage), what)
    table.notes = [
        f"{show_size(figure.n)} float32, once, each in a process of its own; its: document 004's, "
        f"{recorded.SETTINGS['004b']}",
    ]
    return table


# Pictures

BAR, STAGE_BAR, LANE = 0.2, 0.15, 0.17  # inches of height: of a rung, of a stage's part, of a timeline's lane

# By the host's memory: colour and hatch.
_MEMORY_LOOKS = {"pageable": (plot.ORANGE, "///"), "pinned": (plot.GREEN, "")}
_OTHER_MEMORY = (plot.SKY, "...")


def pictures(run: Run) -> Iterator[Picture]:
    """Of each dtype how long each round trip takes beside the model, and rates over size; document 004's stages; and
    the timelines."""
    round_trips = round_trips_of(run.figures)
    for name, figures in plot.by_dtype("transfer", round_trips):
        largest = [figure for figure in figures if figure.n == max(figure.n for figure in figures)]
        yield Picture(name, f"Host to GPU to host, {figures[0].dtype}", partial(_draw_times, figures=largest))
    lines = plot.by_label(round_trips).values()
    over_size = [figure for line in lines if len({figure.n for figure in line}) > 1 for figure in line]
    for name, figures in plot.by_dtype("transfer-size", over_size):
        title = f"Bandwidth over size: host to GPU to host, {figures[0].dtype}"
        yield Picture(name, title, partial(_draw_over_size, figures=figures))
    if stages := [figure for figure in run.figures if "stage" in figure.params and _has_stages(figure)]:
        title = f"The stages of document 004, {stages[0].dtype}, {show_size(stages[0].n)} elements"
        yield Picture("stages", title, partial(_draw_stages, figures=stages))
    for number, page in enumerate(timeline_pages(run.figures), 1):
        sizes = ", ".join(show_size(n) for n in sorted({figure.n for figure in page}))
        title = f"When each chunk of {sizes} elements went up, was added and came down"
        yield Picture(
            "timeline" if number == 1 else f"timeline-{number}", title, partial(_draw_timelines, figures=page)
        )


def _draw_times(drawing: Drawing, figures: Sequence[Figure]) -> None:
    """Bars of time, one below the other."""
    from matplotlib.lines import Line2D

    drawing.set_size_inches(plot.WIDTH, 1.5 + BAR * len(figures))
    axes = drawing.subplots()
    memories: dict[str, Any] = {}
    marks: dict[str, Any] = {}
    longest = max((figure.seconds for figure in figures if figure.seconds), default=1e-3)
    bound = next((figure.bytes / figure.limit / 1e9 for figure in figures if figure.limit), None)
    for place, figure in enumerate(figures):
        if figure.seconds is None or figure.gbps is None:
            axes.annotate(" failed", (0, place), va="center", fontsize=plot.SMALL)
            continue
        memory, model = figure.params.get("memory", "other"), figure.params.get("model_seconds")
        look = plot.bar_style(*_MEMORY_LOOKS.get(memory, _OTHER_MEMORY))
        axes.barh(place, 1e3 * figure.seconds, height=0.8, **look)
        memories.setdefault(memory, plot.make_patch(f"{memory} memory", **look))
        if model:
            mark: dict[str, Any] = {"color": plot.BLACK, "marker": "D", "markersize": 5, "markerfacecolor": "white"}
            axes.plot(1e3 * model, place, linestyle="", zorder=4, **mark)
            marks.setdefault("model", Line2D([], [], linestyle="", label="model: sum or slowest stage", **mark))
        share = "" if figure.fraction is None else f", {100 * figure.fraction:.0f} %"
        end = 1e3 * max(figure.seconds, model or 0, bound or 0)  # past the limit's line
        text = f"  {show_rate(1e3 * figure.seconds)} ms, {show_rate(figure.gbps)} GB/s{share}"
        plot.label_bar_end(axes, text, (end, place))
    if bound:
        marks["limit"] = axes.axvline(1e3 * bound, **plot.LIMIT)
        marks["limit"].set_label(f"limit of the link, {show_rate(1e3 * bound)} ms")
    axes.set_yticks(range(len(figures)), [figure.label for figure in figures])
    axes.set_ylim(len(figures) - 0.4, -0.6)
    axes.set_xlim(0, 1e3 * longest * 1.7)
    axes.set_xlabel("ms")
    axes.set_title(f"{show_size(figures[0].n)} elements: time, GB/s and % of the limit")
    plot.bar_axis(axes)
    plot.legend_beside(axes, handles=[*memories.values(), *marks.values()])


def _draw_over_size(drawing: Drawing, figures: Sequence[Figure]) -> None:
    """Rates under the link's limit, in as many panels as the lines need."""
    lines = plot.by_label(figures)
    portions = plot.in_portions(lines)
    drawing.set_size_inches(plot.WIDTH, 0.6 + 2.6 * len(portions))
    panels = drawing.subplots(len(portions), squeeze=False)[:, 0]
    looks = plot.line_styles(lines)
    top = 1.05 * max(max(figure.gbps or 0, figure.limit or 0) for figure in figures)
    for axes, labels in zip(panels, portions, strict=True):
        plot.draw_rates(axes, {label: lines[label] for label in labels}, looks)
        plot.draw_limit(axes, figures)
        axes.set_ylim(0, top)
        plot.legend_beside(axes)


# Pictures: stages

_WHOLE = "the whole run"
_PARTS = (_WHOLE, *steps.KINDS)
_PLACES = len(_PARTS) + 1  # of a stage: its bars, and a gap


def _has_stages(figure: Figure) -> bool:
    return bool(figure.seconds and any((steps.stages_of(figure) or {}).values()))


def _draw_stages(drawing: Drawing, figures: Sequence[Figure]) -> None:
    """Bars for each stage, on one logarithmic scale of time: of 981 ms and 3 ms a linear one shows the first alone. The
    whole run takes less than its parts together where they overlap."""
    drawing.set_size_inches(plot.WIDTH, 1.3 + STAGE_BAR * _PLACES * len(figures))
    axes = drawing.subplots()
    times = [{_WHOLE: figure.seconds or 0.0, **(steps.stages_of(figure) or {})} for figure in figures]
    for stage, found in enumerate(times):
        for place, part in enumerate(_PARTS, _PLACES * stage):
            if not found[part]:
                continue
            label = part if stage == 0 else None
            look = plot.bar_style("white") | {"linewidth": 0.6} if part == _WHOLE else plot.step_style(part)
            axes.barh(place, 1e3 * found[part], height=0.9, label=label, **look)
            plot.label_bar_end(axes, show_seconds(found[part]), (1e3 * found[part], place))
    middles = [_PLACES * (stage + 0.5) - 1 for stage in range(len(figures))]
    axes.set_yticks(middles, [figure.params["stage"] for figure in figures])
    axes.set_ylim(_PLACES * len(figures) - 1.2, -1)
    axes.set_xscale("log")
    plot.plain_logarithm(axes.xaxis, (1,))
    every = [seconds for found in times for seconds in found.values() if seconds]
    axes.set_xlim(0.4e3 * min(every), 3e3 * max(every))
    axes.set_xlabel("ms, on a logarithmic scale")
    plot.bar_axis(axes)
    drawing.legend(loc="outside lower center", ncols=len(_PARTS))


# Pictures: timelines, when each chunk was uploaded, added and downloaded

_PAGE = 9.5  # inches of height
_HEAD = 0.62  # of a panel's title and axis

_WAITS: dict[str, Any] = {"facecolor": plot.PALE, "edgecolor": plot.PALE, "linewidth": 0.6}
_STREAMS = 8  # a panel of more, as of the threads that stage ordinary memory, shows its first four
_SHOWN = 4
_OWN_SCALE = 4  # times the shortest: panels of longer runs have a scale of their own

Lane = tuple[int, str]  # a stream, and the kind of work


def timeline_pages(figures: Iterable[Figure]) -> list[list[Figure]]:
    """The figures that have a timeline, as many to a picture as a page has room for; for each rung and kind of memory
    only the first, that of the usual parameters."""
    pages: list[list[Figure]] = []
    room = 0.0
    drawn: dict[tuple[str, Any, str], Figure] = {}
    for figure in figures:
        if figure.params.get("timeline"):
            drawn.setdefault((figure.name, figure.params.get("memory"), figure.dtype), figure)
    for figure in drawn.values():
        height = _height(_lanes(_steps_of(figure)))
        if height > room:
            pages.append([])
            room = _PAGE
        pages[-1].append(figure)
        room -= height
    return pages


def _draw_timelines(drawing: Drawing, figures: Sequence[Figure]) -> None:
    """A panel for each, with a lane for each stream and kind of work. Those of about the same length share a scale."""
    timelines = [_steps_of(figure) for figure in figures]
    lanes = [_lanes(timeline) for timeline in timelines]
    heights = [_height(names) for names in lanes]
    drawing.set_size_inches(plot.WIDTH, 0.9 + sum(heights))
    panels = drawing.subplots(len(figures), squeeze=False, height_ratios=heights)[:, 0]
    ends = [max(step.end for step in timeline) for timeline in timelines]
    shared = max(end for end in ends if end <= _OWN_SCALE * min(ends))
    for axes, figure, timeline, names, end in zip(panels, figures, timelines, lanes, ends, strict=True):
        _draw_timeline(axes, timeline, names)
        streams = {step.stream for step in timeline}
        part = f", {_SHOWN} of {len(streams)} streams" if len(streams) > _STREAMS else ""
        title = f"{figure.label}: {show_rate(1e3 * end)} ms{_show_work(timeline)}{part}"
        axes.set_title(title, fontsize=8)
        axes.set_xlim(0, 1e3 * max(end, shared) * 1.01)
    panels[-1].set_xlabel("ms since the first event")
    used = {step.what for timeline in timelines for step in timeline}
    handles = [plot.make_patch(kind, **plot.step_style(kind)) for kind in plot.STEP_LOOKS if kind in used]
    if any(steps.at_work(timeline) != timeline for timeline in timelines):
        handles.append(plot.make_patch("waits for others", **_WAITS))
    drawing.legend(handles=handles, loc="outside lower center", ncols=len(handles))


def _steps_of(figure: Figure) -> list[Step]:
    return steps.steps(figure.params["timeline"])


def _height(lanes: Sequence[Lane]) -> float:
    return _HEAD + LANE * len(lanes)


def _lanes(timeline: Sequence[Step]) -> list[Lane]:
    """The lanes, stream by stream, in the order in which a chunk passes them."""
    kinds = list(plot.STEP_LOOKS)
    streams = sorted({step.stream for step in timeline})
    shown = streams if len(streams) <= _STREAMS else streams[:_SHOWN]
    lanes = {(step.stream, step.what) for step in timeline if step.stream in shown}
    return sorted(lanes, key=lambda lane: (lane[0], kinds.index(lane[1])))


def _draw_timeline(axes: Axes, timeline: Sequence[Step], lanes: Sequence[Lane]) -> None:
    """Bars of work, and narrow pale ones before them where a step waited for another of its kind."""
    working = steps.at_work(timeline)
    for place, (stream, what) in enumerate(lanes):
        here = [(step, work) for step, work in zip(timeline, working, strict=True) if step[:2] == (what, stream)]
        axes.broken_barh([_span(step.begin, work.begin) for step, work in here], (place - 0.15, 0.3), **_WAITS)
        look = plot.step_style(what)
        axes.broken_barh([_span(work.begin, work.end) for _, work in here], (place - 0.42, 0.84), **look)
        if place and stream != lanes[place - 1][0]:
            axes.axhline(place - 0.5, color=plot.GREY, linewidth=0.5)
    names = [f"host  {what}" if stream < 0 else f"stream {stream}  {what}" for stream, what in lanes]
    axes.set_yticks(range(len(lanes)), names, fontsize=plot.SMALL)
    axes.set_ylim(len(lanes) - 0.5, -0.5)
    plot.bar_axis(axes)


def _span(begin: float, end: float) -> tuple[float, float]:
    """From when and how long, in ms."""
    return 1e3 * begin, 1e3 * (end - begin)


def _show_work(timeline: Sequence[Step]) -> str:
    """How long each kind of work took in sum: more than the whole where they overlap."""
    found = steps.stages(timeline)
    return "".join(f", {what} {show_rate(1e3 * seconds)}" for what, seconds in found.items() if seconds)


SWEEP = Sweep(
    "transfer",
    cells,
    "rungs timed in C, around the whole way there and back; add around the Python call; timelines and stages "
    "of one more run, by events; cold_start once, around a process",
    probes=(*ON_DEVICE, *ON_THE_WAY),
    extra=measure_cold_start,
    tables=tables,
    pictures=pictures,
)

"""When each chunk of a transfer was uploaded, added and downloaded: a lane for each stream and kind of work."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.patches import Patch

from vecadd.bench.plots import style
from vecadd.bench.steps import Step, at_work, stages, steps
from vecadd.figures import Figure
from vecadd.tables import show_rate, show_size

LANE = 0.17  # inches of height
PAGE = 9.5
_HEAD = 0.62  # of a panel's title and axis

# In the order of the lanes of a stream: colour and hatch.
_KINDS = {
    "allocate": (style.GREY, "xxx"),
    "to_device": (style.SKY, "///"),
    "kernel": (style.VERMILLION, ""),
    "to_host": (style.GREEN, "\\\\\\"),
    "free": (style.PALE, "xxx"),
}
_WAITS: dict[str, Any] = {"facecolor": style.PALE, "edgecolor": style.PALE, "linewidth": 0.6}
_STREAMS = 8  # a panel of more, as of the threads that stage ordinary memory, shows its first four
_SHOWN = 4
_OWN_SCALE = 4  # times the shortest: panels of longer runs have a scale of their own


def pages(rows: Sequence[Figure]) -> list[list[Figure]]:
    """The rows that have a timeline, as many to a figure as a page holds; for each rung and kind of memory only the
    first row, that of the usual parameters."""
    found: list[list[Figure]] = []
    left = 0.0
    drawn: dict[tuple[str, Any, str], Figure] = {}
    for row in rows:
        if row.params.get("timeline"):
            drawn.setdefault((row.name, row.params.get("memory"), row.dtype), row)
    for row in drawn.values():
        height = _height(_lanes(_events(row)))
        if height > left:
            found.append([])
            left = PAGE
        found[-1].append(row)
        left -= height
    return found


def draw(figure: Drawing, meta: Mapping[str, Any], rows: Sequence[Figure], *, recorded: bool) -> None:
    """A panel for each row that has a timeline. Those of about the same length share their scale."""
    timelines = [(row, _events(row)) for row in rows]
    lanes = [_lanes(events) for _, events in timelines]
    heights = [_height(names) for names in lanes]
    figure.set_size_inches(style.WIDTH, 0.9 + sum(heights))
    panels = figure.subplots(len(rows), squeeze=False, height_ratios=heights)[:, 0]
    ends = [max(event.end for event in events) for _, events in timelines]
    shared = max(end for end in ends if end <= _OWN_SCALE * min(ends))
    for axes, (row, events), names, end in zip(panels, timelines, lanes, ends, strict=True):
        _panel(axes, events, names)
        streams = {event.stream for event in events}
        part = f", {_SHOWN} of {len(streams)} streams" if len(streams) > _STREAMS else ""
        axes.set_title(f"{row.label}: {show_rate(1e3 * end)} ms{_busy(events)}{part}", fontsize=8)
        axes.set_xlim(0, 1e3 * max(end, shared) * 1.01)
    panels[-1].set_xlabel("ms since the first event")
    used = {event.what for _, events in timelines for event in events}
    handles = [Patch(label=what, **look(what)) for what in _KINDS if what in used]
    if any(at_work(events) != events for _, events in timelines):
        handles.append(Patch(label="waits for others", **_WAITS))
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    sizes = ", ".join(show_size(n) for n in sorted({row.n for row in rows}))
    subject = f"When each chunk of {sizes} elements went up, was added and came down"
    style.entitle(figure, subject, meta, recorded=recorded)


def _events(row: Figure) -> list[Step]:
    return steps(row.params["timeline"])


def _height(lanes: Sequence[tuple[int, str]]) -> float:
    return _HEAD + LANE * len(lanes)


def _lanes(events: Sequence[Step]) -> list[tuple[int, str]]:
    """(stream, kind) of each lane, stream by stream, in the order in which a chunk passes them."""
    kinds = list(_KINDS)
    streams = sorted({event.stream for event in events})
    shown = streams if len(streams) <= _STREAMS else streams[:_SHOWN]
    return sorted(
        {(event.stream, event.what) for event in events if event.stream in shown},
        key=lambda lane: (lane[0], kinds.index(lane[1])),
    )


def _panel(axes: Axes, events: Sequence[Step], lanes: Sequence[tuple[int, str]]) -> None:
    """Bars of work, and narrow pale ones before them where a step waited for another of its kind."""
    working = at_work(events)
    for place, (stream, what) in enumerate(lanes):
        here = [(event, work) for event, work in zip(events, working, strict=True) if event[:2] == (what, stream)]
        axes.broken_barh([_span(event.begin, work.begin) for event, work in here], (place - 0.15, 0.3), **_WAITS)
        axes.broken_barh([_span(work.begin, work.end) for _, work in here], (place - 0.42, 0.84), **look(what))
        if place and stream != lanes[place - 1][0]:
            axes.axhline(place - 0.5, color=style.GREY, linewidth=0.5)
    axes.set_yticks(range(len(lanes)), [_lane(*lane) for lane in lanes], fontsize=style.SMALL)
    axes.set_ylim(len(lanes) - 0.5, -0.5)
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)


def look(what: str) -> dict[str, Any]:
    """How this kind of work is drawn: with an edge that keeps a kernel of 10 us visible among copies of 10 ms."""
    color, hatch = _KINDS[what]
    edge = color if what == "kernel" else style.BLACK
    return {"facecolor": color, "hatch": hatch, "edgecolor": edge, "linewidth": 0.6}


def _span(begin: float, end: float) -> tuple[float, float]:
    """From and how long, in ms."""
    return 1e3 * begin, 1e3 * (end - begin)


def _lane(stream: int, what: str) -> str:
    return f"host  {what}" if stream < 0 else f"stream {stream}  {what}"


def _busy(events: Sequence[Step]) -> str:
    """How long each kind of work took in sum: more than the whole where they overlap."""
    return "".join(f", {what} {show_rate(1e3 * seconds)}" for what, seconds in stages(events).items() if seconds)

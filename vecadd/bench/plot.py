"""What the pictures of several sweeps share: looks, axes, lines over size, the limit, and how a picture is written.

Needs matplotlib: ``pip install 'vecadd[plot]'``; it is imported when something is drawn. Other users of matplotlib in
the process are not affected: pyplot knows none of these drawings, and every call restores matplotlib's settings.

Colour is never the only difference: what differs in colour differs in marker and dash or in hatch too, so that a
picture can be read in grey and by a colour-blind reader. The colours are those of Okabe and Ito, "Color Universal
Design" (2008).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from math import nan
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any, BinaryIO

from vecadd.figures import Figure, Run, replace_file, show_date
from vecadd.tables import show_bytes, show_rate

if TYPE_CHECKING:
    import matplotlib.figure
    from matplotlib.axes import Axes as Axes
    from matplotlib.axis import Axis

    Drawing = matplotlib.figure.Figure
else:
    Axes = Axis = Drawing = Any

FORMATS = ("png", "svg")

BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILLION, PURPLE, GREY = "#0072B2", "#D55E00", "#CC79A7", "#7F7F7F"
PALE = "#DDDDDD"

_COLOURS = (BLUE, ORANGE, GREEN, VERMILLION, PURPLE, BLACK, SKY, GREY)
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_DASHES: tuple[Any, ...] = ("-", (0, (6, 1.5)), (0, (1.5, 1)), (0, (6, 1.5, 1.5, 1.5)), (0, (3, 1)))

LIMIT: Mapping[str, Any] = {"color": BLACK, "linewidth": 2.2, "alpha": 0.55}  # how a limit's line is drawn
MARK: Mapping[str, Any] = {"color": GREY, "linewidth": 1, "linestyle": (0, (2, 2))}  # and a line at some place

WIDTH = 7.2  # inches: the text of an A4 page, so that 8 points are 8 points in print
SMALL = 7
MOST_LINES = 8  # a panel: more of them cannot be told apart
_LETTERS_AN_INCH = 14.6  # of a title, at most

_SETTINGS: dict[str, Any] = {
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.labelsize": 9,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 9,
    "figure.dpi": 100,
    "font.size": 8,
    "grid.color": PALE,
    "grid.linewidth": 0.6,
    "hatch.linewidth": 0.5,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "legend.handlelength": 3.2,  # long enough to tell the dashes
    "lines.linewidth": 1.3,
    "lines.markersize": 4.5,
    "savefig.dpi": 200,
    "svg.hashsalt": "vecadd",  # the same drawing is the same file
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
}


# Pictures


@dataclass(frozen=True)
class Picture:
    """A picture that can be drawn: the name of its file, its title, and what draws it. ``host`` says that it is about
    the processor, which its title names in place of the GPU."""

    name: str
    title: str
    draw: Callable[[Drawing], None]
    host: bool = False


def by_dtype(name: str, figures: Iterable[Figure]) -> Iterator[tuple[str, list[Figure]]]:
    """A picture's name and figures for each dtype that was timed; the dtype is in the name where there are several."""
    figures = list(figures)
    dtypes = dict.fromkeys(figure.dtype for figure in figures)
    for dtype in dtypes:
        some = [figure for figure in figures if figure.dtype == dtype]
        if any(figure.seconds for figure in some):
            yield name if len(dtypes) == 1 else f"{name}-{dtype}", some


def draw(picture: Picture, run: Run) -> Drawing:
    """The picture, with a title that says what it shows and where its data come from."""
    from matplotlib.figure import Figure as NewDrawing

    with applied_style():
        drawing = NewDrawing(layout="constrained")
        picture.draw(drawing)
        room = int(_LETTERS_AN_INCH * drawing.get_figwidth())
        lines = [line for text in (picture.title, _show_origin(run, host=picture.host)) for line in wrap(text, room)]
        drawing.suptitle("\n".join(lines), x=0.01, ha="left", fontsize=9)
    return drawing


def write(drawing: Drawing, target: Path | BinaryIO, kind: str) -> None:
    """Writes one file of that kind, "png" or "svg". The same drawing gives the same bytes with one version of
    matplotlib."""
    with applied_style():
        # A date would make two files of one drawing.
        drawing.savefig(target, format=kind, metadata={"Date": None} if kind == "svg" else None)


def save(drawings: Mapping[str, Drawing], folder: Path | str) -> list[Path]:
    """Writes each drawing as FOLDER/NAME.png and FOLDER/NAME.svg, whole or not at all, and returns the paths in that
    order. ``folder`` is made where it does not exist. Raises OSError where it cannot be written."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, drawing in drawings.items():
        for kind in FORMATS:
            target = BytesIO()
            write(drawing, target, kind)
            paths.append(folder / f"{name}.{kind}")
            replace_file(paths[-1], target.getvalue())
    return paths


@contextmanager
def applied_style() -> Iterator[None]:
    """Matplotlib's defaults and our settings while it lasts; the caller's own come back after it."""
    import matplotlib.style

    with matplotlib.style.context(["default", _SETTINGS]):
        yield


def describe_drawing(drawing: Drawing) -> str:
    """What a drawing shows, in words for those who do not see it: its title, then each panel's title, what its axes
    are, and the lines that its legend names."""
    return ". ".join(filter(None, (_one_line(drawing.get_suptitle()), *map(_describe_panel, drawing.axes))))


def _describe_panel(axes: Axes) -> str:
    legend = axes.get_legend()
    parts = (
        axes.get_title(loc="left") or axes.get_title(),
        " over ".join(filter(None, (axes.get_ylabel(), axes.get_xlabel()))),
        ", ".join(text.get_text() for text in legend.get_texts()) if legend else "",
    )
    return "; ".join(filter(None, map(_one_line, parts)))


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _show_origin(run: Run, *, host: bool) -> str:
    """ "recorded on NVIDIA H200, driver 580.159.04, 2026-11-20, commit 6191fcc006fe" of a run that was read from a
    file, else the machine alone. ``host`` names the processor in place of the GPU."""
    cpu, gpus = run.meta["cpu"], [gpu["name"] for gpu in run.meta["gpu"]]
    where, driver = f"{cpu['model'] or 'an unknown processor'}, {cpu['threads']} threads", ""
    if gpus and host:
        where += f" beside {gpus[0]}"
    elif gpus:
        where, driver = gpus[0], f", driver {run.meta['driver']}"
    return f"measured on {where}" if run.path is None else f"recorded on {where}{driver}, {show_date(run.meta)}"


# Looks


@dataclass(frozen=True)
class Look:
    """How one line is drawn."""

    color: str
    marker: str
    linestyle: Any
    hollow: bool

    def keywords(self) -> dict[str, Any]:
        """For `Axes.plot`."""
        fill = "white" if self.hollow else self.color
        return {"color": self.color, "marker": self.marker, "linestyle": self.linestyle, "markerfacecolor": fill}

    def dots(self) -> dict[str, Any]:
        """The same without the line."""
        return self.keywords() | {"linestyle": ""}


def line_styles(names: Iterable[str]) -> dict[str, Look]:
    """A different look for each name: 8 colours and markers, 5 dashes, then all of these with hollow markers."""
    every = list(dict.fromkeys(names))
    return {
        name: Look(
            _COLOURS[index % len(_COLOURS)],
            _MARKERS[index % len(_MARKERS)],
            _DASHES[index % len(_DASHES)],
            hollow=index // len(_COLOURS) % 2 == 1,
        )
        for index, name in enumerate(every)
    }


# In the order in which a chunk of a transfer passes them: colour and hatch.
STEP_LOOKS: Mapping[str, tuple[str, str]] = {
    "allocate": (GREY, "xxx"),
    "to_device": (SKY, "///"),
    "kernel": (VERMILLION, ""),
    "to_host": (GREEN, "\\\\\\"),
    "free": (PALE, "xxx"),
}


def step_style(kind: str) -> dict[str, Any]:
    """How a step of a transfer is drawn: with an edge that keeps a kernel of 10 us visible among copies of 10 ms."""
    color, hatch = STEP_LOOKS[kind]
    return bar_style(color, hatch) | {"edgecolor": color if kind == "kernel" else BLACK, "linewidth": 0.6}


def bar_style(color: str, hatch: str = "") -> dict[str, Any]:
    """How a bar is drawn, for `Axes.barh` and `make_patch`."""
    return {"facecolor": color, "hatch": hatch, "edgecolor": BLACK, "linewidth": 0.5}


def make_patch(label: str, **look: Any) -> Any:
    """A legend's entry for bars of that look."""
    from matplotlib.patches import Patch

    return Patch(label=label, **look)


# Axes


def size_axis(axes: Axes, sizes: Iterable[int]) -> None:
    """Powers of two along x, with no more than a dozen of them named."""
    exponents = [max(n, 1).bit_length() - 1 for n in sizes]
    power_axis(axes, range(min(exponents), max(exponents) + 1))
    axes.set_xlabel("elements")


def power_axis(axes: Axes, exponents: Sequence[int], show: Callable[[float], str] | None = None) -> None:
    """A logarithmic x axis with ticks at these powers of two, named by ``show(value)`` or as 2^k."""
    step = -(-len(exponents) // 10)
    axes.set_xscale("log", base=2)
    places = [2.0**k for k in exponents[::step]]
    set_ticks(axes.xaxis, places, show or (lambda value: f"$2^{{{round(value).bit_length() - 1}}}$"))


def set_ticks(axis: Axis, places: Sequence[float], show: Callable[[float], str] = "{:g}".format) -> None:
    """Ticks at these places alone, each named by what is shown of it."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    axis.set_major_locator(FixedLocator(list(places)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: show(value)))
    axis.set_minor_locator(NullLocator())


def plain_logarithm(axis: Axis, subs: Sequence[float] = (1, 2, 5)) -> None:
    """A logarithmic axis of plain numbers: 1, 2, 5, 10 and so on, or with other ``subs`` of each ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axis.set_major_locator(LogLocator(subs=subs))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())


def seconds_axis(axes: Axes, label: str = "time") -> None:
    """Seconds on a logarithmic y axis: "10 µs"."""
    from matplotlib.ticker import EngFormatter, NullLocator

    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(EngFormatter(unit="s"))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_ylabel(label)


def bar_axis(axes: Axes) -> None:
    """A y axis of names beside bars: no ticks, no grid."""
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)


def label_bar_end(axes: Axes, text: str, end: tuple[float, float]) -> None:
    """A small text to the right of a bar's end, on white, so that no grid line goes through it."""
    where: dict[str, Any] = {"textcoords": "offset points", "va": "center", "fontsize": SMALL}
    axes.annotate(text, end, (4, 0), bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8}, **where)


def label_at_side(axes: Axes, text: str, place: float, x: float, size: float = SMALL) -> None:
    """A small text at that height and at that share of the width, aligned to the right."""
    where: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "ha": "right", "va": "center"}
    axes.annotate(text, (x, place), fontsize=size, **where)


def legend_beside(axes: Axes, **more: Any) -> None:
    """A legend to the right of the panel."""
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), **more)


def legend_entries(axes: Axes) -> dict[str, Any]:
    """The handle of each label of the axes: for one legend of several panels."""
    handles, labels = axes.get_legend_handles_labels()
    return dict(zip(labels, handles, strict=True))


# Lines over size


def by_label(figures: Iterable[Figure]) -> dict[str, list[Figure]]:
    """The figures of each line, in the order of the rungs, smallest first."""
    lines: dict[str, list[Figure]] = {}
    for figure in figures:
        lines.setdefault(figure.label, []).append(figure)
    return {label: sorted(line, key=lambda figure: figure.n) for label, line in lines.items()}


def in_portions(labels: Iterable[str]) -> list[list[str]]:
    """The labels in the fewest groups of at most MOST_LINES, all of about the same size."""
    names = list(labels)
    groups = -(-len(names) // MOST_LINES)
    size = -(-len(names) // max(groups, 1))
    return [names[begin : begin + size] for begin in range(0, len(names), size)] if names else []


def draw_rates(axes: Axes, lines: Mapping[str, Sequence[Figure]], looks: Mapping[str, Look]) -> None:
    """GB/s over n. A figure that failed leaves a gap in its line."""
    for label, line in lines.items():
        values = [nan if figure.gbps is None else figure.gbps for figure in line]
        axes.plot([figure.n for figure in line], values, label=label, **looks[label].keywords())
    size_axis(axes, [figure.n for line in lines.values() for figure in line])
    axes.set_ylabel("GB/s")


def draw_limit(axes: Axes, figures: Sequence[Figure], places: Sequence[float] | None = None) -> None:
    """The limit of each figure at its place along x, which is its size by default: one line where it is the same
    everywhere, else as it was found at each size."""
    places = [figure.n for figure in figures] if places is None else places
    limits = {place: figure.limit for place, figure in zip(places, figures, strict=True) if figure.limit}
    if not limits:
        return
    values, ordered = list(limits.values()), sorted(limits)
    same = max(values) - min(values) < 1e-9 * max(values)
    label = f"limit, {show_rate(values[0])} GB/s" if same else "limit, at each size"
    axes.plot(ordered, [limits[place] for place in ordered], label=label, zorder=1.5, **LIMIT)


def draw_rates_over_size(drawing: Drawing, figures: Sequence[Figure], l3: int | None = None) -> None:
    """A panel for each dtype, two and more where it has more lines than a panel has room for. With the processor's last
    cache, the rates are on a logarithmic axis, because caches are ten times as fast as the memory."""
    panels = [
        (dtype, labels)
        for dtype in dict.fromkeys(figure.dtype for figure in figures)
        for labels in in_portions(by_label(figure for figure in figures if figure.dtype == dtype))
    ]
    drawing.set_size_inches(WIDTH, 0.6 + 3.1 * len(panels))
    drawn = drawing.subplots(len(panels), squeeze=False, sharex=True, sharey=True)[:, 0]
    looks = line_styles(figure.label for figure in figures)
    for axes, (dtype, labels) in zip(drawn, panels, strict=True):
        lines = by_label(figure for figure in figures if figure.dtype == dtype and figure.label in labels)
        here = [figure for line in lines.values() for figure in line]
        draw_rates(axes, lines, looks)
        draw_limit(axes, here)
        if l3 is None:
            axes.set_ylim(bottom=0)
        else:
            axes.set_yscale("log")
            plain_logarithm(axes.yaxis)
            _mark_cache(axes, here, l3)
        axes.set_title(dtype)
        legend_beside(axes)
    for axes in drawn[:-1]:  # the last one names the axis that all share
        axes.set_xlabel("")
    drawn[-1].tick_params(labelbottom=True)


def _mark_cache(axes: Axes, figures: Sequence[Figure], l3: int) -> None:
    """Marks the size from which the three arrays do not fit into the processor's last cache."""
    elements = l3 * figures[0].n / figures[0].bytes
    if min(figure.n for figure in figures) < elements < max(figure.n for figure in figures):
        axes.axvline(elements, label=f"three arrays fill\nL3, {show_bytes(l3)}", **MARK)

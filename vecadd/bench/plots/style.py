"""How every figure looks: colours, markers, hatches, sizes of type, and the line that says where its data come from.

Colour never stands alone: what differs in colour differs in marker and dash or in hatch too, so that a figure can be
read in grey and by a colour-blind reader. The colours are those of Okabe and Ito, "Color Universal Design" (2008).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

import matplotlib.style
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure as Drawing
from matplotlib.ticker import EngFormatter, FixedLocator, FuncFormatter, LogLocator, NullLocator

from vecadd import _core
from vecadd.figures import show_date

BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILLION, PURPLE, GREY = "#0072B2", "#D55E00", "#CC79A7", "#7F7F7F"
PALE = "#DDDDDD"

_COLOURS = (BLUE, ORANGE, GREEN, VERMILLION, PURPLE, BLACK, SKY, GREY)
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_DASHES: tuple[Any, ...] = ("-", (0, (6, 1.5)), (0, (1.5, 1)), (0, (6, 1.5, 1.5, 1.5)), (0, (3, 1)))

WIDTH = 7.2  # inches: the text of an A4 page, so that 8 points are 8 points in print
SMALL = 7
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
    "svg.hashsalt": "vecadd",  # the same figure is the same file
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
}


@contextmanager
def applied() -> Iterator[None]:
    """Matplotlib's defaults and our settings while it lasts; the caller's own come back after it."""
    with matplotlib.style.context(["default", _SETTINGS]):
        yield


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
        return {
            "color": self.color,
            "marker": self.marker,
            "linestyle": self.linestyle,
            "markerfacecolor": fill,
        }


def looks(names: Iterable[str]) -> dict[str, Look]:
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


def entitle(figure: Drawing, subject: str, meta: Mapping[str, Any], *, recorded: bool, host: bool = False) -> None:
    """The figure's title: what it shows, and where its data come from."""
    room = int(_LETTERS_AN_INCH * figure.get_figwidth())
    lines = [line for text in (subject, origin(meta, recorded=recorded, host=host)) for line in wrap(text, room)]
    figure.suptitle("\n".join(lines), x=0.01, ha="left", fontsize=9)


def origin(meta: Mapping[str, Any], *, recorded: bool, host: bool = False) -> str:
    """ "recorded on NVIDIA H200, driver 580.159.04, 2026-11-20, commit 6191fcc006fe", or the machine alone where the
    rows were just measured on it. ``host`` names the processor in place of the GPU."""
    where = machine(meta, host=host)
    if not recorded:
        return f"measured on {where}"
    driver = f", driver {meta['driver']}" if meta["gpu"] and not host else ""
    return f"recorded on {where}{driver}, {show_date(meta)}"


def machine(meta: Mapping[str, Any], *, host: bool = False) -> str:
    """The GPU of the run, or its processor and how many threads it has."""
    cpu, gpus = meta["cpu"], [gpu["name"] for gpu in meta["gpu"]]
    if gpus and not host:
        return str(gpus[0])
    beside = f" beside {gpus[0]}" if gpus else ""
    return f"{cpu['model'] or 'an unknown processor'}, {cpu['threads']} threads{beside}"


def size_axis(axes: Axes, sizes: Iterable[int], label: str = "elements") -> None:
    """Powers of two along x, with no more than a dozen of them named."""
    exponents = [max(n, 1).bit_length() - 1 for n in sizes]
    powers(axes, range(min(exponents), max(exponents) + 1))
    axes.set_xlabel(label)


def powers(axes: Axes, exponents: Sequence[int], name: Any = None) -> None:
    """A logarithmic x axis with ticks at these powers of two, named by ``name(value)`` or as 2^k."""
    step = -(-len(exponents) // 10)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator([2.0**k for k in exponents[::step]]))
    axes.xaxis.set_minor_locator(NullLocator())
    shown = name or (lambda value: f"$2^{{{round(value).bit_length() - 1}}}$")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: shown(value)))


def share_x(panels: Any) -> None:
    """Names the x axis that the panels of a column share, and its ticks, below the last of them that is shown."""
    for column in panels.T:
        shown = [axes for axes in column if axes.get_visible()]
        for axes in shown[:-1]:
            axes.set_xlabel("")
        shown[-1].tick_params(labelbottom=True)


def plain_logarithm(axis: Axis, subs: Sequence[float] = (1, 2, 5)) -> None:
    """A logarithmic axis of plain numbers: 1, 2, 5, 10 and so on, or with other ``subs`` of each ten."""
    axis.set_major_locator(LogLocator(subs=subs))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())


def seconds_axis(axes: Axes, label: str = "time") -> None:
    """Seconds on a logarithmic y axis: "10 µs"."""
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(EngFormatter(unit="s"))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_ylabel(label)


def beside(axes: Axes, text: str, end: tuple[float, float]) -> None:
    """A small text to the right of a bar's end, on white, so that no grid line goes through it."""
    where: dict[str, Any] = {"textcoords": "offset points", "va": "center", "fontsize": SMALL}
    axes.annotate(text, end, (4, 0), bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8}, **where)


def itemsize(dtype: str) -> int:
    """Bytes of an element."""
    return _core.DTYPES[dtype]


def legend_entries(axes: Axes) -> dict[str, Any]:
    """The handle of each label of the axes: for one legend of several panels."""
    handles, labels = axes.get_legend_handles_labels()
    return dict(zip(labels, handles, strict=True))

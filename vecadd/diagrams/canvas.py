"""What all diagrams are drawn with: boxes, words and arrows on a sheet measured in inches, y downwards."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle

from vecadd.bench import plot

TEXT = 8  # points


class Canvas:
    """A sheet of `plot.WIDTH` by ``height`` inches."""

    def __init__(self, height: float) -> None:
        self.figure = Figure(figsize=(plot.WIDTH, height))
        self.axes: Axes = self.figure.add_axes((0, 0, 1, 1))
        self.axes.set_xlim(0, plot.WIDTH)
        self.axes.set_ylim(height, 0)
        self.axes.set_axis_off()

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        words: str = "",
        *,
        fill: str = "white",
        hatch: str = "",
        size: float = TEXT,
        mono: bool = False,
    ) -> None:
        """A box from its upper left corner, with words in its middle."""
        look: dict[str, Any] = {"facecolor": fill, "hatch": hatch, "edgecolor": plot.BLACK, "linewidth": 0.7}
        self.axes.add_patch(Rectangle((x, y), width, height, **look))
        if words:
            self.words(x + width / 2, y + height / 2, words, align="center", size=size, mono=mono)

    def words(
        self, x: float, y: float, text: str, *, align: str = "left", size: float = TEXT, mono: bool = False
    ) -> None:
        """Words beside (x, y), their middle at that height; ``size`` in points, ``mono`` for code."""
        how: dict[str, Any] = {"ha": align, "va": "center"} | ({"family": "monospace", "ma": "left"} if mono else {})
        self.axes.text(x, y, text, fontsize=size, linespacing=1.35, **how)

    def arrow(self, begin: tuple[float, float], end: tuple[float, float], *, both: bool = False) -> None:
        """An arrow, or one with two heads."""
        look: dict[str, Any] = {"mutation_scale": 9, "linewidth": 1, "color": plot.BLACK, "shrinkA": 0, "shrinkB": 0}
        self.axes.add_patch(FancyArrowPatch(begin, end, arrowstyle="<|-|>" if both else "-|>", **look))

    def line(self, begin: tuple[float, float], end: tuple[float, float]) -> None:
        """A thin line: from a thing to the same thing magnified."""
        self.axes.plot(*zip(begin, end, strict=True), color=plot.GREY, linewidth=0.7, linestyle=(0, (2, 2)))

"""What the tests of the pictures share: one figure drawn of made-up rows, and what is in it."""

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import pictured
import pytest

matplotlib = pytest.importorskip("matplotlib")

from matplotlib.axes import Axes  # noqa: E402  a machine with a GPU may be without it
from matplotlib.figure import Figure as Drawing  # noqa: E402
from matplotlib.patches import Rectangle  # noqa: E402

from vecadd.bench import plots  # noqa: E402
from vecadd.bench.plots import style  # noqa: E402
from vecadd.figures import Figure  # noqa: E402


def figure(name: str, rows: list[Figure], *, recorded: bool = True) -> Drawing:
    drawn = plots.figure(pictured.META, rows, name, recorded=recorded)
    assert drawn is not None
    return drawn


def labels(axes: Axes) -> list[str]:
    return [str(line.get_label()) for line in axes.get_lines() if not str(line.get_label()).startswith("_")]


def bars(axes: Axes) -> list[Rectangle]:
    return [patch for patch in axes.patches if isinstance(patch, Rectangle)]


def texts(axes: Axes) -> list[str]:
    return [text.get_text().strip() for text in axes.texts]


def title(figure: Drawing) -> str:
    suptitle = figure.get_suptitle()
    assert isinstance(suptitle, str)
    return suptitle


def assert_words_have_room(figure: Drawing) -> None:
    """Titles and legends lie inside the figure, named axes have ticks, and no two level ticks of an axis overlap."""
    with style.applied():
        figure.draw_without_rendering()

    def boxes(words: Iterable[Any]) -> list[Any]:
        return [word.get_window_extent() for word in words if word.get_visible() and word.get_text()]

    titles = [figure._suptitle, *(axes._left_title for axes in figure.axes)]  # type: ignore[attr-defined]
    for box in [*boxes(titles), *(legend.get_window_extent() for legend in figure.legends)]:
        assert figure.bbox.x0 <= box.x0 <= box.x1 <= figure.bbox.x1
        assert figure.bbox.y0 <= box.y0 <= box.y1 <= figure.bbox.y1
    for axes in filter(Axes.get_visible, figure.axes):
        assert not axes.get_xlabel() or any(boxes(axes.get_xticklabels())), "an axis that is named has its ticks named"
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            ticks = [
                tick
                for tick in axis.get_major_ticks()
                if low <= tick.get_loc() <= high and not tick.label1.get_rotation()
            ]
            for before, after in pairwise(boxes(tick.label1 for tick in ticks)):
                assert not before.overlaps(after), [tick.label1.get_text() for tick in ticks]

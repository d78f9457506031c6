"""What a figure shows, in words: for those who do not see it."""

from collections.abc import Iterator

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing


def alternative_text(figure: Drawing) -> str:
    """The figure's title, then each panel: its title, what its axes are, and the lines that its legend names."""
    return ". ".join(filter(None, (_one_line(figure.get_suptitle()), *map(_panel, figure.axes))))


def _panel(axes: Axes) -> str:
    return "; ".join(filter(None, map(_one_line, _parts(axes))))


def _parts(axes: Axes) -> Iterator[str]:
    yield axes.get_title(loc="left") or axes.get_title()
    yield " over ".join(filter(None, (axes.get_ylabel(), axes.get_xlabel())))
    if legend := axes.get_legend():
        yield ", ".join(text.get_text() for text in legend.get_texts())


def _one_line(text: str) -> str:
    return " ".join(text.split())

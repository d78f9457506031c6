"""Drawings that explain: how a GPU is built and how it runs a kernel. They show no measurement.

    >>> from vecadd import diagrams
    >>> sorted(diagrams.DIAGRAMS)[:3]
    ['banks', 'coalescing', 'compiler']

Needs matplotlib: ``pip install 'vecadd[plot]'``.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from matplotlib.figure import Figure

from vecadd._names import unknown
from vecadd.bench import plot
from vecadd.diagrams import banks, coalescing, compiler, copies, gpu, threads, tree

__all__ = ["DIAGRAMS", "Diagram", "draw"]


@dataclass(frozen=True)
class Diagram:
    """How it is drawn, and what it shows in words, for those who do not see it."""

    figure: Callable[[], Figure]
    text: str


DIAGRAMS: Mapping[str, Diagram] = {
    "threads": Diagram(threads.figure, threads.TEXT),
    "gpu": Diagram(gpu.figure, gpu.TEXT),
    "coalescing": Diagram(coalescing.figure, coalescing.TEXT),
    "copies": Diagram(copies.figure, copies.TEXT),
    "compiler": Diagram(compiler.figure, compiler.TEXT),
    "tree": Diagram(tree.figure, tree.TEXT),
    "banks": Diagram(banks.figure, banks.TEXT),
}


def draw(name: str) -> Figure:
    """The diagram of that name. Raises ValueError for a name that is none."""
    if name not in DIAGRAMS:
        raise ValueError(unknown("diagram", name, DIAGRAMS))
    with plot.applied_style():
        return DIAGRAMS[name].figure()

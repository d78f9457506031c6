"""A reader's guess, made before a figure is shown, and how near it came.

>>> from vecadd.guess import guess
>>> naive = guess("GB/s of naive at 2^26", 4000, unit="GB/s")
>>> naive.score(3383)
GB/s of naive at 2^26: you said 4000 GB/s, it is 3383 GB/s. You are 1.18 x as high: close, 2 of 3 points.
"""

from dataclasses import dataclass
from math import inf, isfinite
from numbers import Real

from vecadd.tables import show_gain, show_rate

__all__ = ["Guess", "guess"]

# Up to how many times too high or too low, points, and what is said of it.
_VERDICTS = ((1.1, 3, "right"), (1.5, 2, "close"), (10.0, 1, "the right order of magnitude"), (inf, 0, "far off"))


@dataclass(frozen=True)
class Guess:
    """What is asked, the number that the reader gave (None: none), and its unit."""

    question: str
    yours: float | None = None
    unit: str = ""

    def score(self, figure: float | None) -> None:
        """Prints the guess beside the figure, how many times too high or low it is, and its points, 3 for within a
        tenth; without a guess the figure alone. ``figure`` is None where it was not measured."""
        print(f"{self.question}: {self._said(figure)}")

    def _said(self, figure: float | None) -> str:
        if figure is None:
            return "not measured, so that no guess is wrong."
        if self.yours is None:
            return f"it is {self._shown(figure)}; you gave no guess."
        you, it = self._shown(self.yours), self._shown(figure)
        if not figure > 0:  # no guess is a number of times as high
            _, points, verdict = _VERDICTS[-1]
            return f"you said {you}, it is {it}: {verdict}, {points} of 3 points."
        ratio = self.yours / figure
        points, verdict = next((p, v) for most, p, v in _VERDICTS if max(ratio, 1 / ratio) <= most)
        off = f"{show_gain(max(ratio, 1 / ratio))} as {'high' if ratio > 1 else 'low'}" if ratio != 1 else "not off"
        return f"you said {you}, it is {it}. You are {off}: {verdict}, {points} of 3 points."

    def _shown(self, value: float) -> str:
        return f"{show_rate(value)} {self.unit}".rstrip()


def guess(question: str, yours: float | None = None, *, unit: str = "") -> Guess:
    """A guess at the figure that the question asks for, to be scored once it is known. ``yours`` is the reader's
    number in that unit; None, where there is no guess yet, is allowed, so that a notebook runs.

    Raises TypeError for a guess that is no number, ValueError for one that is not greater than 0.
    """
    if yours is not None:
        if not isinstance(yours, Real):
            raise TypeError(f"a guess is a number or None, not {type(yours).__name__}: {question!r}")
        if not (yours > 0 and isfinite(yours)):
            raise ValueError(f"a guess is a number greater than 0, not {yours!r}: {question!r}")
    return Guess(question, None if yours is None else float(yours), unit)

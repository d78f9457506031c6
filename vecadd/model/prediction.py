"""The result of every part of the model, and the size of a dtype's elements."""

from collections.abc import Mapping
from dataclasses import dataclass

from vecadd import _core


@dataclass(frozen=True)
class Prediction:
    """``seconds`` in all, and the ``terms`` that they were made from, in seconds; terms that overlap do not add up.
    ``dominant`` is the term that decides.

    >>> vecadd.model.Prediction(2e-3, {"memory": 2e-3, "launch": 3e-6}, dominant="memory").terms["launch"]
    3e-06
    """

    seconds: float
    terms: Mapping[str, float]
    dominant: str


def longest(seconds: float, terms: Mapping[str, float]) -> Prediction:
    """A prediction that its longest term decides."""
    return Prediction(seconds, terms, max(terms, key=lambda name: terms[name]))


def itemsize(dtype: str) -> int:
    """Bytes of an element; KeyError for a dtype that vecadd does not add."""
    return _core.DTYPES[dtype]

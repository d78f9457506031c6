"""The options of a run: which sizes, dtypes and rungs."""

import re
from argparse import ArgumentTypeError
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vecadd import _core
from vecadd._command import unknown
from vecadd.bench.contestants import CALLS, CUBLAS

DEFAULT_SECONDS = 2.0  # of timed work a cell
BRIEF_SECONDS = 0.4  # a cell of a run of all sweeps: some 50 cells, whose checks take half as long again

OTHERS = ("cold_start", "download_touched", "download_untouched")  # that sweeps measure beside rungs and calls

_SIZE = re.compile(r"(?:(?P<base>\d+)(?:\^|\*\*)(?P<power>\d+)|(?P<plain>\d+)|(?P<float>\d+(?:\.\d+)?[eE]\+?\d+))")


@dataclass(frozen=True)
class Options:
    """What to measure. ``sizes`` and ``dtypes`` are None for those of the sweep, ``rungs`` for all; ``block`` is the
    threads a block of the device rungs, 0 for each rung's own. A ``brief`` run has fewer sizes."""

    sizes: tuple[int, ...] | None = None
    dtypes: tuple[str, ...] | None = None
    rungs: tuple[str, ...] | None = None
    seconds: float = DEFAULT_SECONDS
    block: int = 0
    brief: bool = False

    def wants(self, rung: str) -> bool:
        """Whether the rung is to be run: all are where none was named."""
        return self.rungs is None or rung in self.rungs

    def names(self, rung: str) -> bool:
        """Whether the rung was asked for by name: some run only then."""
        return self.rungs is not None and rung in self.rungs

    def choose_sizes(self, own: Sequence[int], brief: Sequence[int]) -> Sequence[int]:
        """The sizes that were asked for, else the sweep's own, or its few for a brief run."""
        return self.sizes or (brief if self.brief else own)


def powers(first: int, last: int, step: int = 1) -> tuple[int, ...]:
    """The powers of two from 2^first to 2^last."""
    return tuple(2**power for power in range(first, last + 1, step))


def parse_sizes(text: str) -> tuple[int, ...]:
    """ "2^10,1e6,1000" as element counts, each once."""
    return tuple(dict.fromkeys(_size(part) for part in _parts(text)))


def parse_dtypes(text: str) -> tuple[str, ...]:
    """ "float32,int8" as names of dtypes that some rung takes."""
    return _known(text, "dtype", tuple(dict.fromkeys(name for rung in _core.rungs() for name in rung["dtypes"])))


def parse_dtype(text: str) -> str:
    """ "float32" as the name of one such dtype; the first of several."""
    return parse_dtypes(text)[0]


def parse_rungs(text: str) -> tuple[str, ...]:
    """ "numpy,threads" as names of rungs of this build, and of what is measured beside them."""
    return _known(text, "rung", (*CALLS, *(rung["name"] for rung in _core.rungs()), CUBLAS, *OTHERS))


def parse_block(text: str) -> int:
    """Threads a block: a multiple of 32 up to 1024."""
    value = int(text) if text.isdecimal() else 0
    if not 32 <= value <= 1024 or value % 32:
        raise ArgumentTypeError(f"{text!r} is not a block size; a multiple of 32 up to 1024 is")
    return value


def parse_seconds(text: str) -> float:
    """An argument in seconds, above 0; raises ArgumentTypeError for any other."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise ArgumentTypeError(f"{text!r} is not a positive number of seconds")
    return value


def needs_ml_dtypes(name: str) -> bool:
    """Whether the dtype is one that the package ml_dtypes has and NumPy has not."""
    return name in _core.DTYPES and not hasattr(np, name)


def find_dtype(name: str) -> np.dtype[Any]:
    """NumPy's dtype of that name, or ml_dtypes' of those that vecadd adds."""
    if not needs_ml_dtypes(name):
        return np.dtype(name)
    try:
        import ml_dtypes
    except ImportError:
        raise ArgumentTypeError(f"{name} needs the package ml_dtypes: pip install ml_dtypes") from None
    dtype: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
    return dtype


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]


def _size(text: str) -> int:
    found = _SIZE.fullmatch(text)
    if found is None:
        raise ArgumentTypeError(f"{text!r} is not a size; write 1000, 1e6 or 2^20, with commas between")
    if found["base"]:
        base, power = int(found["base"]), int(found["power"])
        value = base**power if power <= 62 else 0
    else:
        number = float(found["float"] or 0)
        value = int(found["plain"] or 0) or (int(number) if number.is_integer() else 0)
    if not 1 <= value < 2**48:
        raise ArgumentTypeError(f"{text!r} is not a size; an array has 1 to 2^48 - 1 elements here, all of them whole")
    return value


def _known(text: str, what: str, known: tuple[str, ...]) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(_parts(text)))
    for name in names:
        if name not in known:
            raise ArgumentTypeError(unknown(what, name, known))
    return names

"""Rows as tables, one module a sweep's layout.

plain.py      seconds, spread and rate of each row: host, size, and the comparisons with other libraries
ladder.py     what each rung changes, and what that brings over the rung that it comes after
blocksize.py  a rung a line, a block size a column
inflight.py   the memory under load, a line for each number of bytes in flight, and the rungs beside it
precision.py  contestants by size with three speed-ups, and document 001's claims tested
transfer.py   round trips beside the model and the link, and document 004's stages
latency.py    seconds of one small add, and from how many repeats a graph pays
matrices.py   transposes and products beside the model, and document 004's last step put to the test
"""

from collections.abc import Iterable
from importlib import import_module
from itertools import groupby

from vecadd.bench.sweeps import SWEEPS
from vecadd.figures import Figure
from vecadd.tables import Table

_PLAIN = "vecadd.bench.tables.plain"  # for comparisons, which are not sweeps


def tables(rows: Iterable[Figure]) -> list[Table]:
    """The tables of each sweep, in the order of the rows."""
    return [
        table
        for sweep, group in groupby(rows, key=lambda row: row.sweep)
        for table in import_module(SWEEPS[sweep].tables if sweep in SWEEPS else _PLAIN).tables(sweep, list(group))
    ]

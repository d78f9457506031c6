"""The documents' experiments, a table each: every row beside the first of its cell and its document's figure."""

from collections.abc import Mapping
from itertools import groupby

from vecadd.bench import recorded
from vecadd.bench.tables import parts
from vecadd.figures import Figure
from vecadd.model.theory import has_defaults
from vecadd.tables import Table, columns, prose, show_gain, show_size

_COLUMNS = columns(
    "rung",
    "elements",
    "seconds",
    "GB/s",
    "% limit",
    "of the first",
    prose("documents"),
)

# By the experiment of a row: its title, and what is to be expected by the bytes over the bandwidth.
TOLD: Mapping[str, tuple[str, str]] = {
    "sizes": (
        "the documents' sizes",
        "a kernel that the memory bounds takes its 12 bytes an element, 16 where it accumulates, over the memory's "
        "rate: the same % of the limit at each size",
    ),
    "accumulate": (
        "accumulating and writing",
        "accumulating moves 16 bytes an element in place of 12, and loads three arrays in place of two: a third more "
        "time where the memory is the limit, none where too few bytes are in flight, because a third load at once is "
        "for nothing. Between two rungs with one accumulate only the order of the accesses differs",
    ),
    "tails": (
        "the elements after the last vector",
        "a few elements of millions are nothing; a launch of their own (tail 2) is one launch more at every size that "
        "has a tail, and none at multiples. tail 0: a thread each, 1: the last thread, 3: none",
    ),
    "copies": (
        "copies between device arrays",
        "8 bytes an element in place of an addition's 12: two thirds of its time at the same rate",
    ),
    "copied": (
        "document 002's function on device memory",
        "copies of three arrays there and back move 24 bytes an element more than the addition's 12: three times its "
        "time, and what allocating and freeing takes",
    ),
    "division": (
        "/ and % of one-byte elements",
        "the bytes take a quarter of float32's time, which leaves less to hide an index's instructions behind, some 30 "
        "of a division. But loads of one byte keep few bytes in flight, and most of the time is waiting still",
    ),
    "chunks": (
        "chunks through the same buffers",
        "where the sums stay in the L2 (kernels_cold) a kernel waits for its inputs alone, two thirds of the bytes: "
        "some 7 us of an H200, and 2.8 us of launch. kernels_paid counts writing the sums to memory too. whole "
        "and streams2: all of it, which the link bounds",
    ),
    "pages": (
        "downloads into touched and untouched pages",
        "the same bytes over the same link; but the system maps and clears each page when it is first written to, on "
        "the thread that copies",
    ),
    "managed": (
        "unified memory",
        "the same bytes over the link as pageable, by page faults of the GPU and of the processor",
    ),
}

FIRST = "of the first: how many times as fast as the first row of its size"


def tables(sweep: str, rows: list[Figure]) -> list[Table]:
    """A table for each experiment, in the order of the rows, without GPUDirect, of which 0.2.0 wrote rows in words."""
    by_experiment = groupby(rows, lambda row: str(row.params["experiment"]))
    return [_table(sweep, name, list(group)) for name, group in by_experiment if name in TOLD]


def _table(sweep: str, experiment: str, rows: list[Figure]) -> Table:
    title, expects = TOLD[experiment]
    table = Table(f"{sweep}: {title}", _COLUMNS, optional_columns=("documents", "of the first", "% limit"))
    for _, cell in groupby(rows, key=lambda row: row.n):
        first: float | None = None
        for row in cell:
            gain = first / row.seconds if first and row.seconds else None
            first = first or row.seconds
            table.add(
                row.label,
                _elements(row),
                parts.seconds(row),
                parts.rate(row),
                parts.fraction(row),
                show_gain(gain) if gain else "-",
                parts.documents(_figures(row)),
                style=parts.style(row),
            )
        table.add_gap()
    figures = [figure for row in rows for figure in _figures(row)]
    table.notes = [f"expected: {expects}", FIRST, *parts.document_notes(rows, figures)]
    return table


def _elements(row: Figure) -> str:
    return show_size(row.n) if row.dtype == "float32" else f"{show_size(row.n)} {row.dtype}"


def _figures(row: Figure) -> list[recorded.Figure]:
    """The documents' figures of the row's rung at its usual parameters and in float32, where they were measured at its
    size or do not say at which."""
    rung = parts.rung_named(row.name)
    if rung is None or row.dtype != "float32" or not has_defaults(rung, row.params.get("parameters", {})):
        return []
    return [
        figure
        for figure in recorded.figures(row.name)
        if (figure.n or recorded.SETTINGS[figure.setting].elements) in (None, row.n)
    ]

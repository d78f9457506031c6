"""The founding documents' experiments at their own sizes and settings, beside what each is to be compared with."""

import mmap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np

from vecadd import _core
from vecadd.bench import contestants, layout, recorded, steps
from vecadd.bench.contestants import Contestant, device_rung, find_rung, matrix_rung
from vecadd.bench.operands import FLOAT32, HOST, PINNED, Buffers, Transposed
from vecadd.bench.options import Options
from vecadd.bench.run import EVENTS, ON_DEVICE, Machine, Sweep
from vecadd.bench.timing import Cell
from vecadd.figures import Figure
from vecadd.model.theory import extents, has_defaults
from vecadd.tables import Table, columns, prose, show_gain, show_size

INT8 = np.dtype(np.int8)
MILLION, LARGE = 10**6, 10**8  # elements of document 004

BRIEF_SIZES = (2**20,)

DOWNLOADS = ("download_touched", "download_untouched")

Chosen = Mapping[str, int]


def cells(options: Options, machine: Machine) -> Iterator[Cell]:
    """Each experiment at each of its sizes."""
    for experiment, sizes, make_cell in EXPERIMENTS:
        for n in options.choose_sizes(sizes, BRIEF_SIZES):
            cell = make_cell(options, machine, n)
            every = [
                replace(contestant, params={**contestant.params, "experiment": experiment})
                for contestant in cell.contestants
            ]
            yield replace(cell, contestants=every)


def _on_device(
    options: Options, machine: Machine, n: int, which: Sequence[tuple[str, Chosen]], dtype: np.dtype[Any] = FLOAT32
) -> Cell:
    """Device rungs with these parameters, of those that run here."""
    rungs = {rung["name"]: rung for rung in _core.rungs()}
    every = [
        device_rung(rungs[name], machine.gpu, dtype, n, chosen, options.block)
        for name, chosen in which
        if rungs[name]["kind"] == "device" and machine.runs(rungs[name], dtype)
    ]
    return Cell(dtype, n, every, machine.device_limit)


def _sizes(options: Options, machine: Machine, n: int) -> Cell:
    """Kernels of which a document has a figure at this size, and those that it compares them with."""
    found = {figure.rung for figure in recorded.FIGURES if recorded.SETTINGS[figure.setting].elements == n}
    found |= {"single_block", "naive", "tuned"}
    return _on_device(options, machine, n, [(rung["name"], {}) for rung in _core.rungs() if rung["name"] in found])


def _accumulate(options: Options, machine: Machine, n: int) -> Cell:
    """One step at a time: how threads share the elements, and whether they add to what the sum was."""
    both = ({"accumulate": 0}, {"accumulate": 1})
    grids = ("grid_stride", "block_range", *(("single_block_chunked", "single_block") if n <= MILLION else ()))
    return _on_device(options, machine, n, [*((name, chosen) for name in grids for chosen in both), ("naive", {})])


def _tails(options: Options, machine: Machine, n: int) -> Cell:
    ways = range(4 if n % 4 == 0 else 3)
    others: list[tuple[str, Chosen]] = [("float4_float2", {}), ("float4_arg", {})]
    return _on_device(options, machine, n, [*(("float4", {"tail": way}) for way in ways), *others])


def _copies(options: Options, machine: Machine, n: int) -> Cell:
    """Device memory copied by kernels and by the driver."""
    operands = Transposed(extents("transpose", n))
    every = [matrix_rung(rung, operands, n) for rung in _core.rungs() if rung["sum"] == "copy"]
    return Cell(FLOAT32, n, every, machine.copy_limit(), operands=operands)


def _copied(options: Options, machine: Machine, n: int) -> Cell:
    return _on_device(options, machine, n, [("naive", {}), ("copy_device", {})])


def _division(options: Options, machine: Machine, n: int) -> Cell:
    return _on_device(options, machine, n, [(name, {}) for name in ("naive", "index_dim3", "index_divmod")], INT8)


def _through_the_link(n: int, every: Sequence[Contestant]) -> Cell:
    """Nothing bounds these: a part of each is timed, or the processor's memory takes part."""
    return Cell(FLOAT32, n, every, sets=1)


def _chunks(options: Options, machine: Machine, n: int) -> Cell:
    """Document 000's chunks: as a whole, and kernel by kernel."""
    names = next(rung["choices"]["timed"] for rung in _core.rungs() if rung["name"] == "chunks_reused")
    return _through_the_link(
        n,
        [
            contestants.rung("streams2", PINNED, memory="pinned"),
            *(contestants.rung("chunks_reused", PINNED, {"timed": at}, timed=name) for at, name in enumerate(names)),
        ],
    )


# Memory as malloc gets it. Shared memory, which mmap makes unless told otherwise, has other pages.
OWN = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS


def _pages(options: Options, machine: Machine, n: int) -> Cell:
    """The download of `pageable` into pages that were written to before, and into pages that were not."""
    return _through_the_link(
        n,
        [Contestant(name, HOST, _time_download(untouched=name == DOWNLOADS[1]), arrays=1) for name in DOWNLOADS],
    )


def _time_download(*, untouched: bool) -> contestants.Timer:
    def time(sets: Sequence[Buffers]) -> float:
        seconds = 0.0
        for a, b, out, _ in sets:
            target = np.frombuffer(mmap.mmap(-1, out.nbytes, flags=OWN), out.dtype) if untouched else out
            seconds += steps.stages(steps.steps(_core.timeline("pageable", a, b, target)))["to_host"]
            if untouched:
                out[...] = target
        return seconds / len(sets)

    return time


def _managed(options: Options, machine: Machine, n: int) -> Cell:
    return _through_the_link(
        n,
        [
            contestants.rung("pageable", HOST, memory="pageable"),
            contestants.rung("managed", HOST, {"allocates": 0}, memory="pageable"),
            contestants.rung("managed", HOST, {"allocates": 1}, memory="pageable"),
            contestants.rung("pinned", PINNED, memory="pinned"),
        ],
    )


# An experiment's name, its sizes, and its cell at one of them.
EXPERIMENTS: Sequence[tuple[str, tuple[int, ...], Callable[[Options, Machine, int], Cell]]] = (
    ("sizes", (MILLION, LARGE, 2**27), _sizes),
    ("accumulate", (MILLION, LARGE), _accumulate),
    ("tails", (2**12, 2**12 + 3, 2**20, 2**20 + 3, 2**26, 2**26 + 3), _tails),
    ("copies", (2**26,), _copies),
    ("copied", (2**26,), _copied),
    ("division", (2**28,), _division),
    ("chunks", (2**27,), _chunks),
    ("pages", (LARGE,), _pages),
    ("managed", (2**24,), _managed),
)


# Tables

_COLUMNS = columns("rung", "elements", "seconds", "GB/s", "% limit", "of the first", prose("documents"))

# By experiment: its table's title, and what is to be expected by the bytes over the bandwidth.
EXPECTED: Mapping[str, tuple[str, str]] = {
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


def tables(figures: Sequence[Figure]) -> list[Table]:
    """A table for each experiment, in the order of the figures, without GPUDirect, of which 0.2.0 wrote rows in
    words."""
    by_experiment = groupby(figures, lambda figure: str(figure.params["experiment"]))
    return [_table(name, list(group)) for name, group in by_experiment if name in EXPECTED]


def _table(experiment: str, figures: Sequence[Figure]) -> Table:
    """Every figure beside the first of its size and its document's."""
    title, expected = EXPECTED[experiment]
    optional = ("documents", "of the first", "% limit")
    table = Table(f"documents: {title}", _COLUMNS, optional_columns=optional)
    for _, cell in groupby(figures, key=lambda figure: figure.n):
        first: float | None = None
        for figure in cell:
            gain = first / figure.seconds if first and figure.seconds else None
            first = first or figure.seconds
            table.add(
                figure.label,
                show_size(figure.n) if figure.dtype == "float32" else f"{show_size(figure.n)} {figure.dtype}",
                *layout.measured_cells(figure),
                show_gain(gain) if gain else "-",
                layout.document_times(_times_of_documents(figure)),
                style=layout.choose_style(figure),
            )
        table.add_gap()
    times = [time for figure in figures for time in _times_of_documents(figure)]
    table.notes = [f"expected: {expected}", FIRST, *layout.document_notes(figures, times)]
    return table


def _times_of_documents(figure: Figure) -> list[recorded.Figure]:
    """The documents' times of the rung at its usual parameters and in float32, where they were measured at the figure's
    size or do not say at which."""
    rung = find_rung(figure.name)
    if rung is None or figure.dtype != "float32" or not has_defaults(rung, figure.params.get("parameters", {})):
        return []
    return [
        time
        for time in recorded.figures(figure.name)
        if (time.n or recorded.SETTINGS[time.setting].elements) in (None, figure.n)
    ]


SWEEP = Sweep(
    "documents",
    cells,
    f"{EVENTS}; of transfers the whole way there and back by the host's clock, of chunks_reused the part that its row "
    "names, and of downloads the download alone, by events",
    probes=ON_DEVICE,
    dtypes=("float32", "int8"),
    tables=tables,
)

"""Two sweeps of float32 matrices: one matrix transposed by every rung beside a copy of the same size, and the product
of two by every rung beside cuBLAS where a library has it."""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from vecadd import _core
from vecadd.bench import layout, plot, recorded
from vecadd.bench.contestants import CUBLAS, Contestant, cublas, find_rung, matrix_rung
from vecadd.bench.operands import FLOAT32, Factors, Transposed
from vecadd.bench.options import Options
from vecadd.bench.plot import Axes, Drawing, Picture
from vecadd.bench.run import EVENTS, ON_DEVICE, Machine, Sweep, grid
from vecadd.bench.timing import Cell
from vecadd.figures import Figure, Run
from vecadd.model import Gpu, product_operations
from vecadd.model.theory import extents
from vecadd.tables import Table, columns, prose, show_gain, show_rate, show_seconds, show_size

TRANSPOSE_SIZES = (2**19, 2**26)  # elements; the first is that of document 004's listing, 1024 by 512
TRANSPOSE_BRIEF_SIZES = (2**26,)

SGEMM_SIZES = (2**20, 2**27)  # elements of the product: what document 004's grids of sgemm_tiled and of the others make
SGEMM_BRIEF_SIZES = (2**20,)


def transpose_cells(options: Options, machine: Machine) -> Iterator[Cell]:
    """The rungs that transpose, and that copy."""
    for dtype, n in grid(options, TRANSPOSE_SIZES, TRANSPOSE_BRIEF_SIZES):
        operands = Transposed(extents("transpose", n))
        every = [
            matrix_rung(rung, operands, n)
            for rung in _core.rungs()
            if rung["family"] == "transpose" and machine.runs(rung, dtype)
        ]
        limit = machine.copy_limit()
        yield Cell(dtype, n, every, limit, operands=operands)


def sgemm_cells(options: Options, machine: Machine) -> Iterator[Cell]:
    """The rungs that multiply, and cuBLAS."""
    for dtype, n in grid(options, SGEMM_SIZES, SGEMM_BRIEF_SIZES):
        if dtype != FLOAT32:
            continue
        factors = Factors(extents("sgemm", n))
        rungs = [rung for rung in _core.rungs() if rung["family"] == "sgemm" and machine.runs(rung, dtype)]
        every = [*(matrix_rung(rung, factors, n) for rung in rungs), *_cublas(options, machine, factors, n)]
        limit = _product_limit(machine, factors)
        yield Cell(dtype, n, every, limit, operands=factors)


def _cublas(options: Options, machine: Machine, factors: Factors, n: int) -> list[Contestant]:
    if not options.wants(CUBLAS):
        return []
    try:
        return [cublas(factors, n)]
    except ImportError as error:
        lacking = f"sgemm {CUBLAS}: {error}"
        if lacking not in machine.missing:
            machine.missing.append(lacking)
        return []


def _product_limit(machine: Machine, factors: Factors) -> float:
    """The roofline's bound in GB/s of the three matrices: the memory's, or the cores' where that is lower."""
    memory = machine.copy_limit()
    gpu = Gpu.of(machine.gpu)
    if gpu.clock is None:
        return memory
    seconds = product_operations(*factors.shape) / (2 * gpu.peak)
    return min(memory, factors.nbytes / seconds / 1e9)


def rate(figure: Figure) -> float | None:
    """What pictures and tables show: 1e12 operations a second of a product, else GB/s."""
    if not _is_product(figure):
        return figure.gbps
    return product_operations(*figure.params["shape"]) / figure.seconds / 1e12 if figure.seconds else None


def _is_product(figure: Figure) -> bool:
    return len(figure.params["shape"]) == 3


def _show_shape(figure: Figure) -> str:
    return " x ".join(map(str, figure.params["shape"]))


def _by_shape(figures: Sequence[Figure]) -> dict[str, list[Figure]]:
    found: dict[str, list[Figure]] = {}
    for figure in figures:
        found.setdefault(_show_shape(figure), []).append(figure)
    return found


# Tables

_COLUMNS = (
    "% limit",
    "gain",
    "block",
    "blocks",
    "waves",
    "occ. %",
    "regs",
    "shared",
    prose("documents", 2),
    prose("what changed", 3),
)

BEFORE, AFTER = "sgemm_tiled", "sgemm_tuned"  # the step whose occupancy doubled in document 004

NOTES = (
    layout.OCCUPANCY,
    "shared: bytes of shared memory a block",
)
TRANSPOSE_LIMIT = "% limit: of the memory's own rates of reading one array and writing one"
SGEMM_LIMIT = "% limit: of the cores' multiplications and additions in theory, or of the memory where that is less"
ITS = (
    f"its: document 004's digits, {recorded.SETTINGS['004c']}; KB of shared memory a block; achieved occupancy and the "
    "throughput of DRAM, memory, compute and L2, are its profiler's percentages"
)
VOID = (
    f"document 004's step from {BEFORE} to {AFTER}, 130 to 122 ms with twice the occupancy, compares nothing: by its "
    "grids the first makes 64 * 128 * 128 = 2^20 elements of a product and the second 32768 * 64 * 64 = 2^27. The grid "
    "of 64 is no slip: its profiler says 0.9 waves, which are 64 blocks on 34 multiprocessors of two blocks each. "
    "Either the 130 ms are a slip, or its first product has 128 times as many inner elements"
)


def transpose_tables(figures: Sequence[Figure]) -> list[Table]:
    """The rungs at each shape, beside their occupancy and the document's figures."""
    return [_table("transpose", "GB/s", TRANSPOSE_LIMIT, figures)]


def sgemm_tables(figures: Sequence[Figure]) -> list[Table]:
    """The same of products, and document 004's columns with its last step put to the test."""
    return [_table("sgemm", "TFLOP/s", SGEMM_LIMIT, figures), _table_of_document(figures)]


def _table(name: str, unit: str, limit: str, figures: Sequence[Figure]) -> Table:
    table = Table(name, columns("rung", "seconds", unit, *_COLUMNS))
    for cell in layout.each_cell(table, figures, _show_shape):
        before: dict[str, list[Figure]] = {}
        for figure in cell:
            words = layout.document_cells(figure.name, next(reversed(before), None))
            table.add(figure.label, *_cells(figure, before), *words, style=layout.choose_style(figure))
            if figure.seconds:
                before.setdefault(figure.name, []).append(figure)
    table.notes = [limit, layout.GAIN, *NOTES, *layout.document_notes(figures)]
    return table


def _cells(figure: Figure, before: Mapping[str, Sequence[Figure]]) -> tuple[str, ...]:
    gain, value = layout.gain_over(figure, before), rate(figure)
    blocks, waves = figure.params.get("grid"), figure.params.get("waves")
    return (
        layout.seconds_cell(figure),
        show_rate(value) if value else "-",
        layout.limit_cell(figure),
        show_gain(gain) if gain else "-",
        layout.param_cell(figure, "block"),
        str(math.prod(blocks)) if blocks else "-",
        f"{waves:.3g}" if waves else "-",
        layout.percent_cell(figure.params.get("occupancy")),
        layout.param_cell(figure, "registers"),
        layout.param_cell(figure, "shared"),
    )


def _table_of_document(figures: Sequence[Figure]) -> Table:
    """Document 004's own columns of each rung, beside ours of the largest product."""
    names = ("rung", "its ms", "its block", "its grid", "its elements", "its KB", "its regs", "regs")
    shares = ("its occ. %", "achieved", "occ. %", "DRAM", "memory", "compute", "L2")
    table = Table("sgemm: document 004's columns", columns(*names, *shares))
    largest = {figure.name: figure for figure in sorted(figures, key=lambda figure: figure.n)}
    for rung, its in recorded.SGEMM.items():
        if (figure := largest.get(rung)) is None:
            continue
        known = find_rung(rung)
        elements = int(its["grid"]) * math.prod(known["tile"]) if known else 0
        table.add(
            rung,
            *(its[key] for key in ("ms", "block", "grid")),
            show_size(elements) if elements else "-",
            *(its[key] for key in ("shared", "registers")),
            layout.param_cell(figure, "registers"),
            *(its[key] for key in ("occupancy", "achieved")),
            layout.percent_cell(figure.params.get("occupancy")),
            *(its[key] for key in ("dram", "memory", "compute", "l2")),
            style=layout.choose_style(figure),
        )
    table.notes = [ITS, VOID, *last_steps(figures)]
    return table


def last_steps(figures: Sequence[Figure]) -> list[str]:
    """The step from BEFORE to AFTER at each shape that both ran at: occupancy and time, a line each."""
    lines = []
    for shape, cell in _by_shape(figures).items():
        found = {figure.name: figure for figure in cell if figure.seconds}
        before, after = found.get(BEFORE), found.get(AFTER)
        if before and after and before.seconds and after.seconds:
            shares = [layout.percent_cell(figure.params["occupancy"]) for figure in (before, after)]
            lines.append(
                f"{BEFORE} to {AFTER} at {shape}: occupancy {shares[0]} to {shares[1]} %, "
                f"{show_seconds(before.seconds)} to {show_seconds(after.seconds)}, "
                f"{show_gain(before.seconds / after.seconds)} as fast"
            )
    return lines


# Pictures

BAR = 0.26  # inches of height

_PART = 0.86  # of a panel's width: the bars; the rest is for their figures


def transpose_pictures(run: Run) -> Iterator[Picture]:
    """How fast each rung is, and how many threads the GPU has at a time meanwhile."""
    title = "A matrix transposed, float32: rate and occupancy of each rung"
    yield Picture("transpose", title, partial(_draw, figures=run.figures))


def sgemm_pictures(run: Run) -> Iterator[Picture]:
    """The same of products."""
    title = "Products of matrices, float32: rate and occupancy of each rung"
    yield Picture("sgemm", title, partial(_draw, figures=run.figures))


def _draw(drawing: Drawing, figures: Sequence[Figure]) -> None:
    """A row of two panels for each shape: rates on the left, occupancy on the right, the same rungs in both."""
    cells = _by_shape(figures)
    most = max(map(len, cells.values()))
    drawing.set_size_inches(plot.WIDTH, 0.9 + len(cells) * (0.7 + BAR * most))
    panels = drawing.subplots(len(cells), 2, squeeze=False, sharey="row", width_ratios=(3, 2))
    for (rates, occupancies), (shape, cell) in zip(panels, cells.items(), strict=True):
        _draw_rates(rates, cell)
        _draw_occupancies(occupancies, cell)
        rates.set_title(shape)
        rates.set_yticks(range(len(cell)), [figure.name for figure in cell])
        rates.set_ylim(len(cell) - 0.4, -0.6)
        for axes in (rates, occupancies):
            plot.bar_axis(axes)
    entries = plot.legend_entries(panels[0][0])
    drawing.legend(entries.values(), entries, loc="outside lower center", ncols=3)


def _draw_rates(axes: Axes, figures: Sequence[Figure]) -> None:
    found = {place: value for place, figure in enumerate(figures) if (value := rate(figure))}
    axes.barh(list(found), list(found.values()), height=0.7, **plot.bar_style(plot.SKY))
    shares = [(value, figures[place].fraction) for place, value in found.items()]
    limit = next((value / share for value, share in shares if share), None)
    if limit:
        axes.axvline(limit, label="limit", **plot.LIMIT)
    longest = max([*found.values(), limit or 0, 1e-9])
    for place, value in found.items():
        plot.label_at_side(axes, show_rate(value), place, 0.99)
    axes.set_xlim(0, longest / _PART)
    axes.set_xticks([tick for tick in axes.get_xticks() if tick <= longest])
    axes.set_xlabel("1e12 multiplications and additions a second" if _is_product(figures[0]) else "GB/s")


def _draw_occupancies(axes: Axes, figures: Sequence[Figure]) -> None:
    known = {at: 100 * figure.params["occupancy"] for at, figure in enumerate(figures) if "occupancy" in figure.params}
    axes.barh(list(known), list(known.values()), height=0.7, **plot.bar_style(plot.PALE, "///"))
    for place, value in known.items():
        plot.label_bar_end(axes, f"{value:.0f} %", (value, place))
    axes.set_xlim(0, 120)
    axes.set_xticks(range(0, 101, 25))
    axes.set_xlabel("occupancy, %")


TRANSPOSE = Sweep(
    "transpose",
    transpose_cells,
    f"{EVENTS}; no two elements of a matrix have the same bits, and every one is compared where it belongs",
    probes=ON_DEVICE,
    tables=transpose_tables,
    pictures=transpose_pictures,
)

SGEMM = Sweep(
    "sgemm",
    sgemm_cells,
    f"{EVENTS}; cublas by the host's clock, over queued calls and until the queue is empty, with TF32 off; factors of "
    "whole numbers, whose product is exact by any order of summation, compared bit for bit with NumPy's",
    probes=ON_DEVICE,
    tables=sgemm_tables,
    pictures=sgemm_pictures,
)

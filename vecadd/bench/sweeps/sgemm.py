"""The product of two float32 matrices by every rung in turn, beside cuBLAS where a library has it."""

from collections.abc import Iterator

from vecadd import _core
from vecadd.bench.contestants import CUBLAS, Contestant, cublas, matrix_rung
from vecadd.bench.operands import FLOAT32, Factors
from vecadd.bench.options import Options
from vecadd.bench.run import EVENTS, ON_DEVICE, Machine, Sweep, grid
from vecadd.bench.sweeps.transpose import add_model
from vecadd.bench.timing import Cell
from vecadd.model import Gpu, product_operations
from vecadd.model.matrix_shapes import extents

SIZES = (2**20, 2**27)  # elements of the product: what document 004's grids of sgemm_tiled and of the others make
BRIEF_SIZES = (2**20,)


def cells(options: Options, machine: Machine) -> Iterator[Cell]:
    """The rungs that multiply, and cuBLAS."""
    for dtype, n in grid(options, SIZES, BRIEF_SIZES):
        if dtype != FLOAT32:
            continue
        factors = Factors(extents("sgemm", n))
        rungs = [rung for rung in _core.rungs() if rung["family"] == "sgemm" and machine.runs(rung, dtype)]
        every = [*(matrix_rung(rung, factors, n) for rung in rungs), *_cublas(options, machine, factors, n)]
        limit = _limit(machine, factors)
        yield Cell(dtype, n, every, limit, add_derived=lambda figures: add_model(figures, machine), operands=factors)


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


def _limit(machine: Machine, factors: Factors) -> float:
    """The roofline's bound in GB/s of the three matrices: the memory's, or the cores' where that is lower."""
    memory = machine.copy_limit()
    gpu = Gpu.of(machine.gpu)
    if gpu.clock is None:
        return memory
    seconds = product_operations(*factors.shape) / (2 * gpu.peak)
    return min(memory, factors.nbytes / seconds / 1e9)


SWEEP = Sweep(
    "sgemm",
    cells,
    f"{EVENTS}; cublas by the host's clock, over queued calls and until the queue is empty, with TF32 off; factors of "
    "whole numbers, whose product is exact by any order of summation, compared bit for bit with NumPy's",
    probes=ON_DEVICE,
    tables="vecadd.bench.tables.matrices",
    plot="vecadd.bench.plots.matrices",
)

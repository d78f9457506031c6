"""The product of two float32 matrices by every rung in turn, beside cuBLAS where a library has it."""

from collections.abc import Iterator

from vecadd import _core
from vecadd.bench import cublas, limits, matrices
from vecadd.bench.axes import Axes
from vecadd.bench.contestants import Contestant
from vecadd.bench.sweeps.sweep import EVENTS, ON_DEVICE, Machine, Sweep, expect, grid, wanted
from vecadd.bench.timing import Cell
from vecadd.model import Gpu, product_operations

SIZES = (2**20, 2**27)  # elements of the product: what document 004's grids of sgemm_tiled and of the others make
BRIEF_SIZES = (2**20,)


def cells(axes: Axes, machine: Machine) -> Iterator[Cell]:
    """The product of two float32 matrices by every rung in turn, beside cuBLAS where a library has it."""
    machine.probe(*ON_DEVICE)
    for dtype, n, _ in grid(axes, SIZES, BRIEF_SIZES):
        if dtype != matrices.FLOAT32:
            continue
        factors = matrices.Factors(matrices.extents("sgemm", n))
        rungs = [rung for rung in _core.rungs() if rung["family"] == "sgemm" and machine.runs(rung, dtype)]
        every = [*(matrices.contestant(rung, factors, n) for rung in rungs), *_cublas(axes, machine, factors, n)]
        limit = limits.FixedLimit(_limit(machine, factors))
        sets = machine.sets(factors.nbytes)
        yield Cell("sgemm", dtype, n, wanted(axes, every), limit, sets, operands=factors, derive=expect(machine))


def _cublas(axes: Axes, machine: Machine, factors: matrices.Factors, n: int) -> list[Contestant]:
    if not axes.wants(matrices.CUBLAS):
        return []
    try:
        return [cublas.contestant(factors, n)]
    except ImportError as error:
        lacking = f"sgemm {matrices.CUBLAS}: {error}"
        if lacking not in machine.missing:
            machine.missing.append(lacking)
        return []


def _limit(machine: Machine, factors: matrices.Factors) -> float:
    """The roofline's bound in GB/s of the three matrices: the memory's, or the cores' where that is lower."""
    memory = machine.bound(reads=1)
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
    tables="vecadd.bench.tables.matrices",
    plot="vecadd.bench.plots.matrices",
)

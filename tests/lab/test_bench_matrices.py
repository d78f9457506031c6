"""vecadd bench transpose | sgemm: the matrices' values, that a wrong one is caught, and what the rungs report."""

import math
from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any

import made_up
import numpy as np
import probed_once
import pytest

import vecadd
from benchmarks.tables import sweeps as written
from vecadd import _core, model
from vecadd.bench import contestants, probes, recorded, sweeps, timing
from vecadd.bench.operands import DEVICE, EXACT, MOST, Factors, Transposed, WrongSumError, compare_matrices
from vecadd.bench.options import Options
from vecadd.bench.run import Session
from vecadd.bench.sweeps import make_tables
from vecadd.bench.sweeps.matrices import last_steps, rate
from vecadd.figures import Figure
from vecadd.model import Gpu, Limits
from vecadd.model.predict import predict_matrix
from vecadd.model.theory import extents, near_square

pytestmark = pytest.mark.no_native

RUNGS: dict[str, dict[str, Any]] = {rung["name"]: rung for rung in _core.rungs()}


@pytest.mark.parametrize(
    ("n", "shape"), [(1, (1, 1)), (7, (1, 7)), (1000, (25, 40)), (2**19, (512, 1024)), (2**27, (8192, 16384))]
)
def test_a_matrix_is_as_near_to_a_square_as_its_elements_allow(n: int, shape: tuple[int, int]) -> None:
    assert near_square(n) == shape
    assert extents("transpose", n) == shape
    assert extents("sgemm", n) == (*shape, 4096)


def test_no_two_elements_of_a_matrix_to_transpose_have_the_same_bits() -> None:
    x = Transposed((30, 70)).result(7919, "copy")
    assert np.unique(x.view(np.uint32)).size == 30 * 70


@pytest.mark.parametrize("inner", [1, 20, 4096, 5000, 2**20])
def test_no_partial_sum_of_a_product_exceeds_what_float32_represents_exactly(inner: int) -> None:
    a, b = Factors((3, 2, inner)).factors(0)
    assert set(np.unique(b)) <= {-1.0, 0.0, 1.0}
    assert np.all(a == np.rint(a))
    assert float(np.abs(a).astype(np.float64).sum(axis=1).max()) <= EXACT
    assert min(MOST, EXACT // inner) * inner <= EXACT


def test_a_product_of_the_bench_is_numpys_by_any_order() -> None:
    factors = Factors((20, 30, 4096))
    a, b = factors.factors(3)
    want = (a.astype(np.int64) @ b.astype(np.int64)).astype(np.float32)
    np.testing.assert_array_equal(factors.result(3, "product"), want)
    np.testing.assert_array_equal(a[:, ::-1] @ b[::-1], want)


def test_factors_that_lose_their_last_bits_give_another_product() -> None:
    """TF32 keeps 11 bits of a value."""
    factors = Factors((20, 30, 4096))
    a, b = factors.factors(0)
    kept = (a.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
    assert np.mean(kept @ b == factors.result(0, "product")) < 0.05


@pytest.fixture
def quick(device: int, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Session]:
    """quick(sweep, **axes): a run of few rounds and small products."""
    monkeypatch.setattr("vecadd.model.theory.MOST_SETS", 2)
    monkeypatch.setattr(timing, "FEWEST_ROUNDS", 2)
    monkeypatch.setattr("vecadd.model.theory.INNER", 20)
    for name, probe in probed_once.ONCE.items():
        monkeypatch.setattr(probes, name, probe)

    def run(sweep: str, **chosen: Any) -> Session:
        running = Session(Options(**{"sizes": (1000,), "seconds": 1e-3, **chosen}))
        running.measure([sweeps.SWEEPS[sweep]], lambda *progress: None)
        return running

    return run


@pytest.mark.parametrize(("sweep", "arrays"), [("transpose", 2000), ("sgemm", 1000 + 20 * (25 + 40))])
def test_rows_tell_shape_bytes_kernel_and_model(sweep: str, arrays: int, quick: Any) -> None:
    running = quick(sweep)
    assert running.failures == []
    rows = [row for row in running.figures if row.name != contestants.CUBLAS]  # which is there where PyTorch or CuPy is
    assert [row.name for row in rows] == [name for name in RUNGS if RUNGS[name]["family"] == sweep]
    for row in rows:
        assert (row.error, row.checked) == (None, True)
        assert row.params["shape"] == list(extents(sweep, 1000))
        assert row.bytes == 4 * arrays
        facts = _core.rung_facts(row.name, "float32", tuple(row.params["shape"]))
        assert row.params["grid"] == list(facts["grid"])
        assert row.params["shared"] == facts["static_shared"]
        assert row.params["model_seconds"] > 0


def test_a_dtype_that_no_rung_takes_has_no_cell(quick: Any) -> None:
    for sweep in ("transpose", "sgemm"):
        running = quick(sweep, dtypes=("float64",))
        assert (running.figures, running.failures) == ([], [])


@pytest.mark.parametrize(("sweep", "rung"), [("transpose", "transpose_padded"), ("sgemm", "sgemm_naive")])
def test_a_wrong_result_is_caught(sweep: str, rung: str, quick: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_core, "run_rung", lambda name, a, b, out, **how: 1e-3)
    (row,) = quick(sweep, rungs=(rung,)).figures
    assert str(row.error).startswith("wrong result: element (0, 0) is")


@pytest.mark.parametrize("at", [(0, 0), (24, 39), (7, 33)])
def test_one_wrong_element_is_named(at: tuple[int, int], device: int) -> None:
    factors = Factors((25, 40, 20))
    want = factors.result(0, "product").copy()
    compare_matrices(vecadd.to_device(want), want)
    wrong = want.copy()
    wrong[at] = -wrong[at] if wrong[at] else 1
    with pytest.raises(WrongSumError, match=rf"element \({at[0]}, {at[1]}\) is"):
        compare_matrices(vecadd.to_device(wrong), want)


def test_outputs_are_poisoned_before_they_are_used(device: int) -> None:
    for matrices in (Transposed((5, 7)), Factors((5, 7, 3))):
        for used in matrices.buffers(DEVICE, 2):
            assert set(used.out.numpy().tobytes()) == {0xA5}


def test_the_limit_of_a_product_is_that_of_the_cores(quick: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "probe_device", lambda *_: {"gbps": 4000.0, "read_gbps": 1e9, "write_gbps": 1e9})
    running = quick("sgemm", rungs=("sgemm_naive",))
    (row,) = running.figures
    peak = 2 * Gpu.of(running.machine.gpu).peak
    seconds = model.product_operations(*row.params["shape"]) / peak
    assert row.limit == pytest.approx(row.bytes / seconds / 1e9)


# cuBLAS


class Library(ModuleType):
    """In the place of torch or CuPy: multiplies by a rung, and keeps what it was asked for."""

    def __init__(self, name: str, *, gpu: bool = True) -> None:
        super().__init__(name)
        self.__version__ = "1.2"
        self.cuda = self
        self.is_available = lambda: gpu
        self.precision = "high"
        self.asked: list[str] = []

    def from_dlpack(self, x: Any) -> Any:
        return x

    def matmul(self, a: Any, b: Any, out: Any) -> None:
        self.asked.append(self.precision)
        _core.run_rung("sgemm_naive", a, b, out)

    def get_float32_matmul_precision(self) -> str:
        return self.precision

    def set_float32_matmul_precision(self, precision: str) -> None:
        self.precision = precision


def installed(monkeypatch: pytest.MonkeyPatch, *libraries: Library) -> None:
    found = {library.__name__: library for library in libraries}

    def import_module(name: str) -> Any:
        if name not in found:
            raise ImportError(name)
        return found[name]

    monkeypatch.setattr(contestants, "import_module", import_module)


@pytest.mark.parametrize("name", ["torch", "cupy"])
def test_cublas_is_shown_beside_the_rungs_where_a_library_has_it(
    name: str, quick: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = Library(name)
    installed(monkeypatch, library)
    running = quick("sgemm", rungs=("sgemm_naive", "cublas"))
    row = running.figures[-1]
    assert (row.name, row.error, row.checked, row.params["library"]) == ("cublas", None, True, f"{name} 1.2")
    assert row.label == "cublas (host clock)"
    assert row.bytes == running.figures[0].bytes
    assert running.machine.missing == []
    assert set(library.asked) == {"highest" if name == "torch" else "high"}, "TF32 is off in PyTorch"
    assert library.precision == "high", "PyTorch's own setting comes back"


def test_pytorch_without_a_gpu_leaves_it_to_cupy(quick: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, Library("torch", gpu=False), Library("cupy"))
    assert quick("sgemm", rungs=("cublas",)).figures[-1].params["library"] == "cupy 1.2"


def test_a_machine_without_cublas_says_what_is_missing(quick: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, Library("torch", gpu=False))
    running = quick("sgemm", sizes=(1000, 2000))
    assert running.machine.missing == ["sgemm cublas: torch finds no GPU, cupy is not installed"]
    assert len(running.figures) == 8


def test_a_wrong_product_of_cublas_is_caught(quick: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library("cupy")
    monkeypatch.setattr(library, "matmul", lambda a, b, out: None)
    installed(monkeypatch, library)
    (row,) = quick("sgemm", rungs=("cublas",)).figures
    assert str(row.error).startswith("wrong result: element (0, 0)")


# The model, for a GPU like an H200 of round numbers.

GPU: dict[str, Any] = {
    "compute_capability": "9.0", "multiprocessors": 100, "l2": 50 << 20, "clock": 2e9, "memory": 100 << 30,
}  # fmt: skip
LIMITS = Limits(
    read=4e12, write=4e12, l2_read=5e12, l2_write=5e12, kernel=3e-6, block=5e-10, turnaround=1e-7, l1=2e-8, l2=1.5e-7,
    stream=4e-7,
)  # fmt: skip
PEAK = 100 * 128 * 2e9  # multiplications a second


def predicted(name: str, *shape: int) -> Any:
    return predict_matrix(RUNGS[name], Gpu.of(GPU), LIMITS, shape)


@pytest.mark.parametrize(
    ("name", "share"), [("sgemm_naive", 8), ("sgemm_shared", 8), ("sgemm_tiled", 1), ("sgemm_tuned", 2)]
)
def test_a_large_product_takes_as_long_as_its_multiplications_and_their_loads(name: str, share: float) -> None:
    """Loads take 8 times the multiplications' time where each needs two. Other blocks hide the wait for the pieces."""
    prediction = predicted(name, 12800, 12800, 4096)
    products = 12800 * 12800 * 4096 / PEAK
    assert prediction.terms["work"] == pytest.approx((1 + share) * products, rel=0.02)
    assert prediction.seconds == 3e-6 + max(prediction.terms.values())


@pytest.mark.parametrize(
    ("name", "blocks", "work"), [("sgemm_tiled", 1, 2 * 128 * 128), ("sgemm_tuned", 3, 3 * 64 * 64)]
)
def test_few_blocks_leave_multiprocessors_idle_and_wait_for_each_of_their_pieces(
    name: str, blocks: int, work: int
) -> None:
    """64 blocks, one a multiprocessor, or 256, three on the fullest: they begin at once, and wait together."""
    prediction = predicted(name, 1024, 1024, 4096)
    waits = 4096 / 8 * 4e-7
    assert prediction.terms["work"] == pytest.approx(waits + blocks * work * 4096 / (PEAK / 100))


def test_a_transpose_has_an_element_of_each_thread_in_flight() -> None:
    """A multiprocessor takes 2048 threads: each round takes a turn of its blocks, the load and its place in the queue,
    which for one of two blocks is 3/4 of it."""
    n, rounds = 2**26, 2**26 / (2048 * 100)
    memory = 8 * n / 4e12
    copy, wide = (predicted(f"transpose_{name}", 2**13, 2**13) for name in ("copy", "copy_float4"))
    assert copy.dominant == "latency"
    assert copy.terms["latency"] == pytest.approx(rounds * (1e-7 + 4e-7) + memory * 0.75, rel=0.02)
    assert wide.terms["latency"] < wide.terms["memory"]
    assert wide.seconds < 0.7 * copy.seconds


def test_a_square_in_shared_memory_keeps_its_place_while_its_warps_wait_for_banks() -> None:
    copy, naive, shared, padded = (
        predicted(f"transpose_{name}", 2**13, 2**13) for name in ("copy", "naive", "shared", "padded")
    )
    of_a_cycle = 2**26 / 32 / 100 / 2e9
    assert shared.terms["latency"] - copy.terms["latency"] == pytest.approx(33 * of_a_cycle)
    assert padded.terms["latency"] - copy.terms["latency"] == pytest.approx(2 * of_a_cycle)
    assert copy.seconds < padded.seconds < naive.seconds < shared.seconds


def test_the_drivers_own_copy_takes_what_the_memory_takes() -> None:
    assert predicted("transpose_memcpy", 2**13, 2**13).seconds == 3e-6 + 8 * 2**26 / 4e12


def test_the_expectation_of_a_matrix_rung_is_for_the_benchs_shape() -> None:
    by_n = model.expected(RUNGS["sgemm_tiled"], None, GPU, LIMITS, "float32", 2**20, {})
    assert by_n == predicted("sgemm_tiled", 1024, 1024, 4096).seconds


# What is told


def test_the_documents_digits_are_quoted() -> None:
    ours, columns = make_tables(made_up.sgemm())
    assert [line.cells[1] for line in columns.lines if line] == ["556.38", "411.00", "130", "122"]
    assert {line.cells[4] for line in columns.lines if line} == {"2^27", "2^20"}
    assert [line.cells[4] for line in columns.lines if line and line.cells[0] == "sgemm_tiled"] == ["2^20"]
    assert "556 ms (004c)" in {line.cells[12] for line in ours.lines if line and len(line.cells) > 12}


def test_quoted_times_are_the_recorded_figures() -> None:
    for rung, its in recorded.SGEMM.items():
        (figure,) = recorded.figures(rung)
        assert figure.seconds == pytest.approx(float(its["ms"]) / 1e3)


def test_the_step_that_the_document_praises_is_told_at_each_size() -> None:
    rows = made_up.sgemm()
    assert last_steps(rows) == [
        "sgemm_tiled to sgemm_tuned at 1024 x 1024 x 4096: occupancy 25 to 50 %, 286 us to 390 us, 0.733 x as fast",
        "sgemm_tiled to sgemm_tuned at 8192 x 16384 x 4096: occupancy 25 to 50 %, 36.7 ms to 50 ms, 0.733 x as fast",
    ]
    alone = [replace(row, value=None) if row.name == "sgemm_tuned" else row for row in rows]
    assert last_steps(alone) == []


def test_documents_show_both_tables_of_products_and_the_step() -> None:
    lines = written.matrices(made_up.sgemm())
    assert "| rung | seconds | TFLOP/s | % limit | gain | model | blocks | occ. % | regs | documents |" in lines
    assert sum(line.startswith("| sgemm_tiled |") for line in lines) == 3, (
        "at both sizes, and in the document's columns"
    )
    assert f"- {last_steps(made_up.sgemm())[-1]}" in lines
    assert len(list(filter(None, written.matrices(made_up.transpose())))) == 2 + 2 + 8


def test_rates_are_operations_of_products_and_bytes_of_transposes() -> None:
    def rates(rows: list[Figure]) -> list[float]:
        return [rate(row) or math.nan for row in rows]

    assert rates(made_up.sgemm()[:3]) == pytest.approx([6, 8, 30])
    assert rates(made_up.transpose()[:1]) == [made_up.transpose()[0].gbps]

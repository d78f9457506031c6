"""vecadd bench transpose | sgemm: which values matrices have, a wrong one is caught, and what rows say of rungs."""

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any

import made_up
import numpy as np
import probed_once
import pytest

import vecadd
from vecadd import _core, model
from vecadd.bench import contestants, probes, recorded, sweeps, timing
from vecadd.bench.operands import DEVICE, EXACT, MOST, Factors, Transposed, WrongSumError, compare_matrices
from vecadd.bench.options import Options
from vecadd.bench.run import Session
from vecadd.bench.sweeps.matrices import last_steps
from vecadd.model import Gpu
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
def test_no_partial_sum_of_a_product_exceeds_what_float32_holds_exactly(inner: int) -> None:
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
def test_cublas_stands_beside_the_rungs_where_a_library_has_it(
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


# What is told


def test_quoted_times_are_the_recorded_figures() -> None:
    for rung, its in recorded.SGEMM.items():
        (figure,) = recorded.figures(rung)
        assert figure.seconds == pytest.approx(float(its["ms"]) / 1e3)


def test_the_last_step_is_not_told_where_it_failed() -> None:
    rows = made_up.sgemm()
    assert len(last_steps(rows)) == 2
    assert last_steps([replace(row, value=None) if row.name == "sgemm_tuned" else row for row in rows]) == []

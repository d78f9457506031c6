"""vecadd bench: what each sweep measures, on the host and on the device that there is; matrices and their check."""

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import made_up
import numpy as np
import pytest
from made_up import figure
from modelled import H200

import vecadd
from vecadd import _core, model
from vecadd.bench import cold, contestants, probes, recorded, run, sweeps, timing
from vecadd.bench.operands import (
    DEVICE,
    EXACT,
    HOST,
    MOST,
    Factors,
    Pattern,
    Transposed,
    WrongSumError,
    compare_matrices,
)
from vecadd.bench.options import Options
from vecadd.bench.run import Session
from vecadd.bench.steps import KINDS, Step, at_work, stages, stages_of, steps
from vecadd.bench.sweeps import blocksize, documents, ladder, latency, make_tables
from vecadd.bench.sweeps.matrices import last_steps
from vecadd.figures import Figure, read_run
from vecadd.model import Gpu, bytes_in_flight
from vecadd.model.theory import extents, near_square

pytestmark = pytest.mark.no_native

FLOAT32 = np.dtype("float32")


def names(rows: list[Figure]) -> list[str]:
    return [row.name for row in rows]


@pytest.mark.parametrize("dtype", ["float32", "int8", "complex128", "bfloat16"])
def test_the_host_sweep_measures_every_rung_beside_numpy(dtype: str) -> None:
    running = Session(Options(sizes=(1000, 65536), dtypes=(dtype,), seconds=0.01))
    running.measure([sweeps.SWEEPS["host"]], lambda *progress: None)
    expected = ["numpy", *(rung["name"] for rung in _core.rungs() if rung["kind"] == "host"), "add"]
    assert names(running.figures) == expected * 2
    assert all(row.checked and row.error is None for row in running.figures)
    assert all(row.limit for row in running.figures)


def rungs_of(kind: str, family: str = "") -> set[str]:
    return {rung["name"] for rung in _core.rungs() if (rung["kind"], rung["family"]) == (kind, family)}


# What a sweep on a GPU measures at 1000 elements.
GPU_SWEEPS: dict[str, set[str]] = {
    "size": {"add", "naive", "float4", "tuned"},
    "ladder": rungs_of("device", "kernels") - {"copy_device"},
    "inflight": {"probe"}
    | {rung["name"] for rung in _core.rungs() if rung["family"] == "kernels" and not rung["blocks"]} - {"copy_device"},
    "blocksize": {*blocksize.RUNGS, "waves"},
    "precision": {"numpy", "naive", "float4", "tuned", *rungs_of("device", "precision")},
    "transfer": {"add", *rungs_of("transfer")} - {"managed", "chunks_reused"},
    "latency": rungs_of("latency"),
    "transpose": rungs_of("matrix", "transpose"),
    "sgemm": rungs_of("matrix", "sgemm"),
    "documents": {
        *("single_block_chunked", "single_block", "grid_stride", "block_range", "naive", "tuned"),
        *("float4", "float4_float2", "float4_arg", "copy_device", "index_dim3", "index_divmod"),
        *documents.DOWNLOADS,
        *("transpose_copy", "transpose_copy_float4", "transpose_memcpy"),
        *("streams2", "chunks_reused", "pageable", "managed", "pinned"),
    },
}


# Each made once in a process: on the double all of them take six seconds, and give no limit.
PROBED_ONCE: dict[str, Callable[..., Any]] = {
    name: cache(getattr(probes, name)) for name in dir(probes) if name.startswith("probe_")
}


@pytest.fixture
def swept(device: int, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Session]:
    """swept(sweep, **options): a run of 1000 elements that is soon over, because the double takes its time: two buffer
    sets and rounds, ten small additions in the place of a thousand, and the probes of the first such run."""
    for name, probe in PROBED_ONCE.items():
        monkeypatch.setattr(probes, name, probe)
    monkeypatch.setattr(probes, "LINK_BYTES", 1 << 20)
    monkeypatch.setattr(probes, "HOST_ARRAYS", (1 << 20,))
    monkeypatch.setattr("vecadd.model.theory.MOST_SETS", 2)
    monkeypatch.setattr(timing, "FEWEST_ROUNDS", 2)
    monkeypatch.setattr(timing, "MOST_IN_SAMPLE", 2)
    monkeypatch.setattr(latency, "MOST_ADDS", 10)
    monkeypatch.setattr("vecadd.model.theory.INNER", 20)

    def sweep_once(sweep: str, **chosen: Any) -> Session:
        running = Session(Options(**{"sizes": (1000,), "seconds": 1e-3, **chosen}))
        running.measure([sweeps.SWEEPS[sweep]], lambda *progress: None)
        return running

    return sweep_once


def test_every_sweep_is_the_hosts_or_a_gpus() -> None:
    assert {name for name, sweep in sweeps.SWEEPS.items() if not sweep.needs_gpu} == {"host"}
    assert set(GPU_SWEEPS) < set(sweeps.SWEEPS)


@pytest.mark.parametrize("sweep", [name for name, sweep in sweeps.SWEEPS.items() if sweep.needs_gpu])
def test_the_gpu_sweeps_measure_their_rungs(sweep: str, swept: Callable[..., Session]) -> None:
    running = swept(sweep)
    measured = {row.name for row in running.figures} - {contestants.CUBLAS}  # which is there where PyTorch or CuPy is
    assert measured
    assert measured == GPU_SWEEPS.get(sweep, measured)
    assert [row.error for row in running.figures] == [None] * len(running.figures)
    assert all(row.checked or {"caught", "says"} & set(row.params) or row.name == "probe" for row in running.figures)
    assert running.failures == []
    bears = {"device", "launch", "latency", "loaded"}
    if sweep == "transfer":
        bears |= {"link", "crew"}
    assert set(running.machine.probed) == bears


@pytest.mark.parametrize(
    ("sweep", "broken"),
    [("size", "float4"), ("ladder", "naive"), ("blocksize", "float4"), ("precision", "half2"), ("transfer", "pinned"),
     ("latency", "graph"), ("transpose", "transpose_naive"), ("sgemm", "sgemm_shared")],
)  # fmt: skip
def test_a_failing_rung_keeps_the_rest_of_every_sweep(
    sweep: str, broken: str, swept: Callable[..., Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = _core.run_rung

    def fail(name: str, *operands: Any, **how: Any) -> float:
        if name == broken:
            raise RuntimeError("no more")
        return real(name, *operands, **how)

    monkeypatch.setattr(_core, "run_rung", fail)
    running = swept(sweep, rungs=(broken, *sorted(GPU_SWEEPS[sweep] - {broken})[:2]))
    assert not running.ok
    assert {row.error for row in running.figures if row.name == broken} == {"RuntimeError: no more"}
    assert [row.error for row in running.figures if row.name != broken] == [None] * sum(
        row.name != broken for row in running.figures
    )
    assert all(table.lines for table in make_tables(running.figures))


def test_a_look_that_fails_is_a_failed_row(swept: Callable[..., Session], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_core, "rung_facts", {}.popitem)
    naive, add = swept("size", rungs=("naive", "add")).figures
    assert str(naive.error).startswith("TypeError: ")
    assert add.error is None


def test_rows_of_kernels_tell_what_their_launch_takes(swept: Callable[..., Session]) -> None:
    one_thread, row, atomic = swept("ladder", rungs=("single_thread", "naive", "atomic"), block=128).figures
    assert (one_thread.params["block"], atomic.params["block"]) == (1, 128)
    facts = _core.rung_facts("naive", "float32", 1000, block=128)
    assert (row.params["block"], row.params["grid"]) == (128, list(facts["grid"]))
    assert {key: row.params[key] for key in ("launches", "registers", "occupancy", "waves")} == {
        key: facts[key] for key in ("launches", "registers", "occupancy", "waves")
    }
    assert row.params["load"] == "LDG.E"


def test_block_sizes_are_an_axis_and_one_that_is_asked_for_is_the_only_one(swept: Callable[..., Session]) -> None:
    every, one = swept("blocksize", rungs=("naive",)), swept("blocksize", rungs=("naive",), block=64)
    assert [row.params["block"] for row in every.figures] == list(blocksize.BLOCKS)
    assert [row.params["block"] for row in one.figures] == [64]


def test_precision_meets_the_processor_at_every_size(swept: Callable[..., Session]) -> None:
    rows = swept("precision", sizes=(1000, 2000), rungs=("numpy", "naive", "half")).figures
    cells = [(row.n, row.dtype, row.name) for row in rows]
    assert cells == [
        (n, dtype, rung)
        for n in (1000, 2000)
        for dtype, kernel in (("float32", "naive"), ("float16", "half"), ("bfloat16", "half"))
        for rung in ("numpy", kernel)
    ]
    assert all(row.params["launch_share"] > 0 for row in rows if row.name != "numpy")


def test_precision_without_bfloat16_says_what_it_needs(
    swept: Callable[..., Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    running = swept("precision", rungs=("numpy",))
    assert [row.dtype for row in running.figures] == ["float32", "float16"]
    assert running.machine.missing == [
        "precision bfloat16: bfloat16 needs the package ml_dtypes: pip install ml_dtypes"
    ]


def test_only_the_largest_transfer_has_a_timeline(swept: Callable[..., Session]) -> None:
    small, large = (row for row in swept("transfer", sizes=(1000, 2000), rungs=("streams2",)).figures[:2])
    assert "timeline" not in small.params
    assert {what for what, *_ in large.params["timeline"]} >= {"to_device", "kernel", "to_host"}
    assert set(large.params["stages"]) == {"to_device", "kernel", "to_host"}
    assert large.params["model_seconds"] > 0


def test_document_004s_stages_are_made_again(swept: Callable[..., Session]) -> None:
    rows = [row for row in swept("transfer").figures if "stage" in row.params]
    assert [row.params["stage"] for row in rows] == [
        "single_thread",
        "single_block",
        "grid_stride",
        "pinned",
        "streams4",
    ]
    assert [(row.name, row.params["kernel"]) for row in rows] == list(recorded.STAGES)


def test_what_the_processor_adds_has_no_limit_by_the_link(swept: Callable[..., Session]) -> None:
    hybrid, tuned = swept("transfer", rungs=("hybrid", "tuned_transfer")).figures[::2]
    assert (hybrid.name, hybrid.fraction) == ("hybrid", None)
    assert tuned.fraction is not None


def test_small_additions_are_independent_and_in_a_chain(swept: Callable[..., Session]) -> None:
    rows = swept("latency", rungs=("launch_loop", "graph", "batched")).figures
    assert [(row.name, row.params["parameters"]["chain"]) for row in rows] == [
        ("launch_loop", 0), ("graph", 0), ("batched", 0), ("launch_loop", 1), ("graph", 1)
    ]  # fmt: skip
    assert all(row.params["seconds_per_add"] == row.seconds / 10 for row in rows if row.seconds)
    assert all(row.bytes == 10 * 12 * 1000 for row in rows)
    assert {"capture", "instantiate", "destroy", "break_even"} <= set(rows[1].params)


@pytest.mark.parametrize(("n", "adds"), [(2560, 1000), (2**18, 1000), (2**22, 64), (2**26, 4), (2**28, 2)])
def test_fewer_additions_are_run_where_they_are_large(n: int, adds: int) -> None:
    assert latency.count_adds(n, 4) == adds


@pytest.mark.parametrize(("seconds", "repeats"), [(1e-3, 3), (2e-3, 4), (6e-3, None)])
def test_a_graph_pays_when_it_has_saved_what_it_cost(seconds: float, repeats: int | None) -> None:
    stages = {"capture": 7e-3, "instantiate": 4e-3, "destroy": 1e-3}
    assert latency.count_repeats(seconds, 5e-3, stages) == repeats


def test_a_chain_adds_again_and_again() -> None:
    pattern = Pattern(FLOAT32)
    (used,) = pattern.buffers(HOST, 1000, 1)
    np.add(used.a, used.b, out=used.out)
    np.add(used.out, used.b, out=used.out)
    pattern.check(HOST, used, chain=2)
    with pytest.raises(WrongSumError):
        pattern.check(HOST, used, chain=3)


# The ladder


def test_the_ladder_searches_the_tuned_kernel_where_it_is_named(swept: Callable[..., Session]) -> None:
    running = swept("ladder", rungs=("tuned",))
    assert [row.params.get("parameters", {}) for row in running.figures] == list(ladder.LAUNCH_CONFIGS)
    assert [row.error for row in running.figures] == [None] * len(ladder.LAUNCH_CONFIGS)


def test_a_rung_above_the_gpus_capability_is_left_out(
    swept: Callable[..., Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run.Machine, "capability", 80)
    measured_rungs = {row.name for row in swept("ladder", rungs=("async_copy", "bulk_copy")).figures}
    assert "async_copy" in measured_rungs
    assert "bulk_copy" not in measured_rungs


BIG = 2**28


@pytest.mark.parametrize(
    ("rung", "itemsize", "params", "block", "kib"),
    [
        ("single_thread", 4, {}, 0, 1 / 128),
        ("single_block", 4, {}, 0, 3),
        ("grid_stride", 4, {"blocks_per_sm": 4}, 0, 12),
        ("grid_stride", 4, {"blocks_per_sm": 32}, 0, 24),
        ("naive", 4, {}, 0, 16),
        ("naive", 2, {}, 0, 8),
        ("naive", 4, {}, 768, 12),
        ("unroll2", 4, {}, 0, 32),
        ("float2", 2, {}, 0, 32),
        ("float4", 4, {}, 0, 64),
        ("tuned", 1, {}, 0, 64),
        ("naive", 4, {}, 32, 8),  # a multiprocessor has room for 32 blocks, of 1024 threads together
        ("float4", 4, {}, 32, 32),
        ("grid_stride", 4, {"blocks_per_sm": 64}, 32, 12),
        ("unroll2", 4, {}, 96, 31.5),  # 21 blocks of 96 threads: 2016 of 2048
        ("async_copy", 4, {"stages": 2, "bytes": 16}, 0, 128),
        ("async_copy", 4, {"stages": 3, "bytes": 16}, 0, 192),
        ("async_copy", 4, {"stages": 2, "bytes": 4}, 0, 32),
        ("half8_pack", 2, {}, 0, 64),
    ],
)
def test_bytes_in_flight_are_loads_times_threads(
    rung: str, itemsize: int, params: dict[str, int], block: int, kib: float
) -> None:
    (row,) = (row for row in _core.rungs() if row["name"] == rung)
    assert bytes_in_flight(row, H200, BIG, itemsize, params, block) == kib * 1024


def test_what_the_documents_recorded_is_of_rungs_and_settings_that_exist() -> None:
    rungs = {rung["name"] for rung in _core.rungs()}
    documented = {figure.rung for figure in recorded.FIGURES}
    rungs |= {"numpy", cold.ROW}
    assert documented | {*recorded.NOTES, *ladder.VARIANTS, blocksize.WAVES} <= rungs
    assert {figure.setting for figure in recorded.FIGURES} == set(recorded.SETTINGS)


# Transposes and products: which values matrices have, a wrong one is caught, and what rows say of rungs.

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


@pytest.mark.parametrize(("sweep", "arrays"), [("transpose", 2000), ("sgemm", 1000 + 20 * (25 + 40))])
def test_rows_tell_shape_bytes_and_kernel(sweep: str, arrays: int, swept: Any) -> None:
    running = swept(sweep)
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


def test_a_dtype_that_no_rung_takes_has_no_cell(swept: Any) -> None:
    for sweep in ("transpose", "sgemm"):
        running = swept(sweep, dtypes=("float64",))
        assert (running.figures, running.failures) == ([], [])


@pytest.mark.parametrize(
    ("sweep", "rung", "where"),
    [("size", "naive", "0"), ("transpose", "transpose_padded", "(0, 0)"), ("sgemm", "sgemm_naive", "(0, 0)")],
)
def test_a_wrong_result_is_caught(
    sweep: str, rung: str, where: str, swept: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_core, "run_rung", lambda name, a, b, out, **how: 1e-3)
    (row,) = swept(sweep, rungs=(rung,)).figures
    assert str(row.error).startswith(f"wrong result: element {where} is")


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


def test_the_limit_of_a_product_is_that_of_the_cores(swept: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "probe_device", lambda *_: {"gbps": 4000.0, "read_gbps": 1e9, "write_gbps": 1e9})
    running = swept("sgemm", rungs=("sgemm_naive",))
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
    name: str, swept: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = Library(name)
    installed(monkeypatch, library)
    running = swept("sgemm", rungs=("sgemm_naive", "cublas"))
    row = running.figures[-1]
    assert (row.name, row.error, row.checked, row.params["library"]) == ("cublas", None, True, f"{name} 1.2")
    assert row.label == "cublas (host clock)"
    assert row.bytes == running.figures[0].bytes
    assert running.machine.missing == []
    assert set(library.asked) == {"highest" if name == "torch" else "high"}, "TF32 is off in PyTorch"
    assert library.precision == "high", "PyTorch's own setting comes back"


def test_pytorch_without_a_gpu_leaves_it_to_cupy(swept: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, Library("torch", gpu=False), Library("cupy"))
    assert swept("sgemm", rungs=("cublas",)).figures[-1].params["library"] == "cupy 1.2"


def test_a_machine_without_cublas_says_what_is_missing(swept: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, Library("torch", gpu=False))
    running = swept("sgemm", sizes=(1000, 2000))
    assert running.machine.missing == ["sgemm cublas: torch finds no GPU, cupy is not installed"]
    assert len(running.figures) == 8


def test_a_wrong_product_of_cublas_is_caught(swept: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library("cupy")
    monkeypatch.setattr(library, "matmul", lambda a, b, out: None)
    installed(monkeypatch, library)
    (row,) = swept("sgemm", rungs=("cublas",)).figures
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


# How long the steps of a transfer were at work, without what they waited for each other.

RECORDED = Path(__file__).parents[2] / "benchmarks" / "results"
TIMELINES = [
    (f"{path.parent.name} {row.label}", steps(row.params["timeline"]))
    for path in sorted(RECORDED.glob("*/transfer.json"))
    for row in read_run(path).figures
    if row.params.get("timeline")
]


def up(stream: int, begin: float, end: float) -> Step:
    return Step("to_device", stream, stream, begin, end)


def test_of_uploads_queued_at_once_each_works_from_the_end_of_the_one_before() -> None:
    queued = [up(0, 0, 1), up(1, 0, 2), up(2, 0, 3), up(3, 0.5, 4)]
    assert at_work(queued) == [up(0, 0, 1), up(1, 1, 2), up(2, 2, 3), up(3, 3, 4)]
    assert stages(queued) == {"to_device": 4, "kernel": 0, "to_host": 0}


def test_the_order_is_that_of_the_ends() -> None:
    assert at_work([up(0, 0, 4), up(1, 0, 2)]) == [up(0, 2, 4), up(1, 0, 2)]


def test_the_directions_and_the_kernel_do_not_wait_for_each_other() -> None:
    together = [Step(kind, stream, 0, 0.0, 2.0) for stream, kind in enumerate(KINDS)]
    assert at_work(together) == together


def test_what_comes_after_a_rest_waited_for_nothing() -> None:
    rested = [up(0, 0, 1), up(1, 3, 4)]
    assert at_work(rested) == rested


@pytest.mark.parametrize(("name", "found"), TIMELINES, ids=[name for name, _ in TIMELINES])
def test_a_recorded_link_carries_one_copy_a_direction(name: str, found: list[Step]) -> None:
    whole = max(step.end for step in found) - min(step.begin for step in found)
    for kind, seconds in stages(found).items():
        assert seconds <= whole, name
        working = sorted((step.end, step.begin) for step in at_work(found) if step.what == kind)
        assert all(begin >= end for (end, _), (_, begin) in pairwise(working)), name


def test_a_recorded_rows_stages_are_those_of_its_timeline() -> None:
    rows = [row for path in RECORDED.glob("*/transfer.json") for row in read_run(path).figures]
    timed = [row for row in rows if "timeline" in row.params]
    assert len(timed) >= 40
    for each in timed:
        assert stages_of(each) == pytest.approx(stages(steps(each.params["timeline"])), rel=1e-12), each.title


def test_a_row_without_stages_has_none() -> None:
    assert stages_of(figure("transfer", "streams4", 1000, 3.1e-3)) is None

"""vecadd bench: what each sweep measures, on the host and on the device that there is."""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import probed_once
import pytest
from modelled import H200

from vecadd import _core
from vecadd.bench import cold, contestants, options, probes, recorded, run, sweeps, timing
from vecadd.bench.operands import HOST, Pattern, WrongSumError
from vecadd.bench.options import Options
from vecadd.bench.run import Session
from vecadd.bench.sweeps import blocksize, documents, ladder, latency, make_tables
from vecadd.figures import Figure
from vecadd.model import bytes_in_flight

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


@pytest.fixture
def swept(device: int, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Session]:
    """swept(sweep, **options): a run of 1000 elements that is soon over, because the double takes its time: two buffer
    sets and rounds, ten small additions in the place of a thousand, and the probes of the first such run."""
    for name, probe in probed_once.ONCE.items():
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
    (row,) = swept("ladder", rungs=("naive",), block=128).figures
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


@pytest.mark.parametrize(("dtype", "digits"), [("float16", 11), ("bfloat16", 8)])
def test_sums_of_16_bits_are_checked_against_the_correctly_rounded_ones(dtype: str, digits: int) -> None:
    pattern = Pattern(options.find_dtype(dtype))
    (used,) = pattern.buffers(HOST, 50_000, 1)
    exact = used.a.astype(np.float64) + used.b.astype(np.float64)  # 53 digits represent it: the exponents are near
    fractions, exponents = np.frexp(exact)
    rounded = np.ldexp(np.rint(np.ldexp(fractions, digits)), exponents - digits)  # ties to even
    least = 2.0**-24 if dtype == "float16" else 0.0
    used.out[:] = np.where(np.abs(exact) < 2.0**-14, np.rint(exact / least) * least if least else rounded, rounded)
    pattern.check(HOST, used)


def test_a_wrong_kernel_is_caught_on_the_device(swept: Callable[..., Session], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_core, "run_rung", lambda name, a, b, out, **how: 1e-3)
    (row,) = swept("size", rungs=("naive",)).figures
    assert str(row.error).startswith("wrong result: element 0 is")


# The ladder


def test_the_ladder_measures_every_rung_and_variant(swept: Callable[..., Session]) -> None:
    running = swept("ladder")
    rungs = [rung["name"] for rung in _core.rungs() if rung["family"] == "kernels" and not rung["by_name"]]
    labels = [name for name in rungs for _ in ladder.VARIANTS.get(name, ({},))]
    assert names(running.figures) == labels
    assert [row.error for row in running.figures] == [None] * len(labels)
    assert len({row.label for row in running.figures}) == len(labels)


def test_the_ladder_searches_the_tuned_kernel_where_it_is_named(swept: Callable[..., Session]) -> None:
    running = swept("ladder", rungs=("tuned",))
    assert [row.params.get("parameters", {}) for row in running.figures] == list(ladder.LAUNCH_CONFIGS)
    assert [row.error for row in running.figures] == [None] * len(ladder.LAUNCH_CONFIGS)


def test_the_ladder_takes_a_block_size(swept: Callable[..., Session]) -> None:
    running = swept("ladder", rungs=("single_thread", "naive", "atomic"), block=64)
    assert [row.error for row in running.figures] == [None] * 3
    assert [row.params.get("block") for row in running.figures] == [1, 64, 64]


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
        ("half", 2, {}, 0, 8),
        ("half2", 2, {}, 0, 16),
        ("half8", 2, {}, 0, 64),
        ("half8_pack", 2, {}, 0, 64),
    ],
)
def test_bytes_in_flight_are_loads_times_threads(
    rung: str, itemsize: int, params: dict[str, int], block: int, kib: float
) -> None:
    (row,) = (row for row in _core.rungs() if row["name"] == rung)
    assert bytes_in_flight(row, H200, BIG, itemsize, params, block) == kib * 1024


def test_no_more_bytes_are_in_flight_than_there_are() -> None:
    (naive,) = (row for row in _core.rungs() if row["name"] == "naive")
    assert bytes_in_flight(naive, H200, 132 * 100, 4, {}) == 2 * 4 * 100


def test_what_the_documents_recorded_is_of_rungs_and_settings_that_exist() -> None:
    rungs = {rung["name"] for rung in _core.rungs()}
    documented = {figure.rung for figure in recorded.FIGURES}
    rungs |= {"numpy", cold.ROW}
    assert documented | {*recorded.NOTES, *ladder.VARIANTS, blocksize.WAVES} <= rungs
    assert {figure.setting for figure in recorded.FIGURES} == set(recorded.SETTINGS)

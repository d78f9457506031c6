"""vecadd bench documents: each experiment with what it is compared with, at the documents' sizes; cold starts."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from conftest import child_environment

from vecadd import _core
from vecadd.bench import cold, recorded
from vecadd.bench.contestants import Contestant
from vecadd.bench.operands import HOST, Pattern
from vecadd.bench.options import Options
from vecadd.bench.run import Machine
from vecadd.bench.sweeps import documents

pytestmark = pytest.mark.no_native

CHUNKS = {rung["name"]: rung for rung in _core.rungs()}.get("chunks_reused", {})


def contestants(experiment: str, n: int) -> dict[str, Contestant]:
    """The contestants of an experiment at n elements, by name and parameters."""
    cell = next(cell for name, _, cell in documents.EXPERIMENTS if name == experiment)
    machine = Machine(probed={"device": {"gbps": 4000.0, "read_gbps": 4500.0, "write_gbps": 4600.0}})
    found = cell(Options(), machine, n).contestants
    named = {" ".join([each.name, *map(str, each.params.get("parameters", {}).values())]): each for each in found}
    assert len(named) == len(found)
    return named


def test_every_experiment_says_what_is_expected() -> None:
    assert {name for name, *_ in documents.EXPERIMENTS} == set(documents.EXPECTED)


def test_a_size_of_a_document_has_the_kernels_that_it_measured(device: int) -> None:
    for n in (10**6, 10**8, 2**27):
        figures = {figure.rung for figure in recorded.FIGURES if recorded.SETTINGS[figure.setting].elements == n}
        kernels = figures & {rung["name"] for rung in _core.rungs() if rung["kind"] == "device"}
        assert kernels
        assert set(contestants("sizes", n)) == kernels | {"single_block", "naive", "tuned"}


def test_each_order_of_accesses_accumulates_and_writes(device: int) -> None:
    found = contestants("accumulate", 10**6)
    for order in ("grid_stride", "block_range", "single_block_chunked", "single_block"):
        assert (found[f"{order} 0"].adds, found[f"{order} 0"].arrays) == (0, 3)
        assert (found[f"{order} 1"].adds, found[f"{order} 1"].arrays) == (1, 4)
        of_loads = [found[f"{order} {accumulate}"].params["bytes_in_flight"] for accumulate in (0, 1)]
        assert of_loads[0] * 3 == of_loads[1] * 2
    assert "single_block 0" not in contestants("accumulate", 10**8)


def test_only_a_multiple_of_the_vector_goes_without_a_tail(device: int) -> None:
    assert set(contestants("tails", 2**20)) - set(contestants("tails", 2**20 + 3)) == {"float4 3"}
    inspected = {name: each.extra_params for name, each in contestants("tails", 2**12 + 3).items() if each.extra_params}
    launches = {name: inspect(None)["launches"] for name, inspect in inspected.items()}  # type: ignore[arg-type]
    assert launches == {"float4 0": 1, "float4 1": 1, "float4 2": 2, "float4_float2": 1, "float4_arg": 1}


def test_copies_move_two_arrays(device: int) -> None:
    found = contestants("copies", 2**12)
    assert set(found) == {"transpose_copy", "transpose_copy_float4", "transpose_memcpy"}
    assert {each.arrays for each in found.values()} == {2}


def test_chunks_are_timed_each_way_once(device: int) -> None:
    found = contestants("chunks", 2**12)
    assert list(found) == ["streams2", *(f"chunks_reused {timed}" for timed in range(4))]
    names = [each.params["timed"] for each in found.values() if "timed" in each.params]
    assert names == ["whole", "kernels", "kernels_cold", "kernels_paid"] == CHUNKS["choices"]["timed"]


def test_a_download_into_untouched_pages_gets_other_memory_each_time(
    device: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    targets: list[int] = []

    def timeline(name: str, a: Any, b: Any, target: Any, **_: Any) -> list[Sequence[Any]]:
        assert not target.any()
        targets.append(target.ctypes.data)
        np.add(a, b, target)
        return [("to_device", 0, 0, 0.0, 2.0), ("kernel", 0, 0, 2.0, 2.5), ("to_host", 0, 0, 2.5, 3.0)]

    monkeypatch.setattr(_core, "timeline", timeline)
    pattern = Pattern(np.dtype("float32"))
    (used,) = pattern.buffers(HOST, 10_000, 1)
    assert contestants("pages", 10_000)["download_untouched"].time([used, used]) == 0.5
    pattern.check(HOST, used)
    assert used.out.ctypes.data not in targets


# Cold starts: what a program that has just begun pays, in a process of its own.

GPU_STAGES = ["import", "operands", "driver", "context", "upload", "launch", "download"]


@pytest.fixture
def same_vecadd(monkeypatch):
    """Children of the code under test load the extension that this process has."""
    monkeypatch.setenv("PYTHONPATH", child_environment()["PYTHONPATH"])


def test_a_cold_start_has_the_seconds_of_each_stage(device, same_vecadd):
    found = cold.measure(n=1000)
    assert found["n"] == 1000
    for where, stages in (("gpu", GPU_STAGES), ("cpu", ["import", "operands", "add"])):
        seconds = found[where]
        assert seconds["checked"] is True
        assert [name for name in seconds if name in cold.STAGES] == stages
        assert all(seconds[name] > 0 for name in stages)
        assert sum(seconds[name] for name in stages) <= seconds["program"] <= seconds["process"]
        assert seconds["own"] == seconds["program"] - seconds["import"]
    assert 0 < found["gpu"]["kernel"] <= found["gpu"]["launch"]


def test_a_cold_start_without_a_gpu_says_why(double, same_vecadd):
    double.devices(0)
    with pytest.raises(RuntimeError, match=r"a cold start on the gpu failed: .*the driver sees no GPU"):
        cold.measure(n=10)


def test_its_row_is_one_that_the_documents_have():
    assert cold.ROW in {figure.rung for figure in recorded.FIGURES}

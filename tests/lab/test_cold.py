"""Cold starts: what a program that has just begun pays, in a process of its own."""

import pytest
from conftest import child_environment

from vecadd.bench import cold, recorded

pytestmark = pytest.mark.no_native

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

"""Cold starts: what a program that has just begun pays, in a process of its own; and what GPUDirect would need."""

from pathlib import Path

import pytest
from conftest import child_environment

from vecadd.bench import cold, gpudirect, recorded

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


def machine(root: Path, *paths: str) -> Path:
    """A file system that holds these files; those that end in / are folders."""
    for path in paths:
        if path.endswith("/"):
            (root / path).mkdir(parents=True)
        else:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).touch()
    return root


STORAGE = ["sys/module/nvidia_fs/", "usr/local/cuda-13.0/lib64/libcufile.so.0", "sys/class/nvme/nvme0/"]
RDMA = ["sys/class/infiniband/mlx5_0/", "sys/module/nvidia_peermem/"]
DRIVER = "proc/driver/nvidia/version"


@pytest.mark.parametrize(("name", "needed"), [("gpudirect_storage", STORAGE), ("gpudirect_rdma", RDMA)])
def test_a_machine_with_all_that_gpudirect_needs_lacks_nothing(tmp_path, name, needed):
    root = machine(tmp_path, DRIVER, *needed)
    assert gpudirect.ROWS[name](root) == []
    assert gpudirect.describe(name, root).startswith("not measured: the machine has what it needs")


@pytest.mark.parametrize(
    "folder",
    ["usr/local/cuda-13.0/targets/x86_64-linux/lib", "usr/lib/aarch64-linux-gnu", "usr/lib64"],
)
def test_cufile_is_found_wherever_a_package_puts_it(tmp_path, folder):
    root = machine(tmp_path, DRIVER, STORAGE[0], STORAGE[2], f"{folder}/libcufile.so.1.14")
    assert gpudirect.missing_for_storage(root) == []


@pytest.mark.parametrize(
    ("name", "needed", "left_out", "said"),
    [
        ("gpudirect_storage", STORAGE, DRIVER, "no NVIDIA driver"),
        ("gpudirect_storage", STORAGE, STORAGE[0], "nvidia_fs is not loaded"),
        ("gpudirect_storage", STORAGE, STORAGE[1], "cuFile is not installed"),
        ("gpudirect_storage", STORAGE, STORAGE[2], "no NVMe disk"),
        ("gpudirect_rdma", RDMA, DRIVER, "no NVIDIA driver"),
        ("gpudirect_rdma", RDMA, RDMA[0], "no RDMA network card"),
        ("gpudirect_rdma", RDMA, RDMA[1], "nvidia_peermem is not loaded"),
    ],
)
def test_what_gpudirect_lacks_is_named(tmp_path, name, needed, left_out, said):
    root = machine(tmp_path, *(path for path in (DRIVER, *needed) if path != left_out))
    assert [said in phrase for phrase in gpudirect.ROWS[name](root)] == [True]
    assert said in gpudirect.describe(name, root)


@pytest.mark.parametrize("name", gpudirect.ROWS)
def test_this_machine_is_described(name):
    assert gpudirect.describe(name).startswith("not measured: ")

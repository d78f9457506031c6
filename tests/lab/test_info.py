"""info(): what the machine has, asked without disturbing the caller, and a reason for what it has not."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import modelled
import pytest
from conftest import child_environment

import vecadd
from vecadd import _core, _machine
from vecadd._machine import Info

H200 = modelled.H200 | {
    "name": "NVIDIA H200",
    "pci_domain": 0,
    "pci_bus": 0x1B,
    "pci_device": 0,
    "key": "GPU-01 driver 13000",
}

SMI_ROW = "00000000:1B:00.0, 580.95.05, Enabled, 4, 16, 5, 16"


def probe(**found: Any) -> dict[str, Any]:
    """What the child process prints, a working machine with an H200 by default."""
    return {"driver": 13000, "runtime": 13000, "gpus": [H200], "error": None, **found}


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> Any:
    """found(**changes): info() on a machine where the child prints that."""

    def look(**changes: Any) -> Info:
        monkeypatch.setattr(_machine, "_ask_child", lambda: probe(**changes))
        return vecadd.info()

    monkeypatch.setattr(_core, "CUDA_BUILD", True)
    return look


def test_the_host_is_described() -> None:
    cpu = vecadd.info().cpu
    assert cpu.threads >= 1
    assert cpu.simd in cpu.simd_levels
    assert cpu.memory > 1 << 28


@pytest.mark.parametrize("level", ["foo", "neon,c", "AVX2"])
def test_a_level_that_is_not_there_is_none_and_no_error(level: str, child: Any) -> None:
    """It is for additions to raise."""
    code = "import vecadd; found = vecadd.info(); print(found.cpu.simd, str(found))"
    said = child(code, VECADD_SIMD=level).stdout
    assert said.startswith("None ")
    assert re.search(r"^SIMD +unknown \(of (\w+, )*c\)$", said, re.MULTILINE)


def test_a_gpu_is_described(found: Any, script: Any) -> None:
    script("nvidia-smi", f"echo '{SMI_ROW}'")
    gpu = found().gpus[0]
    assert (gpu.name, gpu.compute_capability, gpu.multiprocessors) == ("NVIDIA H200", "9.0", 132)
    assert gpu.bandwidth == pytest.approx(4.814e12, rel=1e-3)
    assert (gpu.link_generation, gpu.link_width, gpu.link_generation_max, gpu.link_width_max) == (4, 16, 5, 16)
    assert gpu.ecc is True
    assert found().driver == "580.95.05"


STATES: dict[str, tuple[dict[str, Any], str, str]] = {
    "no driver": ({"driver": 0, "gpus": [], "error": "no driver"}, "no driver", "no NVIDIA driver"),
    "old driver": ({"driver": 12080, "gpus": [], "error": "too old"}, "driver too old", r"12\.8; .* needs 13\.0"),
    "no GPU": ({"gpus": [], "error": "the driver sees no GPU"}, "no GPU", "sees no GPU"),
    "broken GPU": ({"gpus": [], "error": "system not yet initialised (802)"}, "unusable", "802"),
    "no answer": ({"failed": "it was killed", "gpus": []}, "unknown", "it was killed"),
}


@pytest.mark.parametrize("name", STATES)
def test_the_reason_for_no_gpu_is_told(name: str, found: Any) -> None:
    changes, status, reason = STATES[name]
    info = found(**changes)
    assert info.gpu_status == status
    assert info.gpus == ()
    assert re.search(reason, info.gpu_reason)
    assert status in str(info)


def test_a_build_without_cuda_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_core, "CUDA_BUILD", False)
    assert vecadd.info().gpu_status == "built without CUDA"


CHILDREN = {
    "exit 3": ("exit 3", "exit status 3"),
    "message": ("echo 'ImportError: no numpy' >&2; exit 1", "ImportError: no numpy"),
    "garbage": ("echo hello", "failed"),
    "killed": ("kill -SEGV $$", "signal 11"),
    "hanging": ("sleep 30", "did not answer within 0.2 s"),
    "no interpreter": ("", "sys.executable is empty"),
    "an interpreter that is gone": ("/nowhere/python", "could be started"),
}


@pytest.mark.parametrize("name", CHILDREN)
def test_a_broken_child_is_a_reason_and_no_exception(name: str, script: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    body, reason = CHILDREN[name]
    interpreter = script("interpreter", f"exec 0<&-\n{body}") if body.partition("/")[0] else body
    monkeypatch.setattr(sys, "executable", str(interpreter))
    monkeypatch.setattr(_machine, "PROBE_TIMEOUT", {"hanging": 0.2}.get(name, 20.0))
    monkeypatch.setattr(_core, "CUDA_BUILD", True)
    info = vecadd.info()
    assert info.gpu_status == "unknown"
    assert reason in str(info.gpu_reason)


def test_the_child_is_not_led_astray_by_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "numpy.py").write_text("raise SystemExit('led astray')")
    monkeypatch.chdir(tmp_path)
    assert vecadd.info().gpu_status != "unknown"


@pytest.mark.parametrize(
    "answer", ["exit 9", "echo nonsense", "echo ', , , , , , '", f"echo '{SMI_ROW}, 1'", "echo E, x, x, x, x, x, x"]
)
def test_what_nvidia_smi_does_not_say_is_unknown(answer: str, found: Any, script: Any, tmp_path: Path) -> None:
    script("nvidia-smi", answer)
    info = found()
    assert info.driver is None
    assert info.gpus[0].ecc is None
    assert "ECC unknown" in str(info)


def test_fields_that_a_driver_does_not_support_are_unknown(found: Any, script: Any) -> None:
    script("nvidia-smi", "echo '00000000:1B:00.0, 580.95.05, [N/A], [Not Supported], 16, 5, [N/A]'")
    gpu = found().gpus[0]
    assert gpu.ecc is None
    assert (gpu.link_generation, gpu.link_width, gpu.link_generation_max, gpu.link_width_max) == (None, 16, 5, None)


def test_the_link_is_read_from_the_system_without_nvidia_smi(
    found: Any, script: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script("nvidia-smi", "exit 1")
    device = tmp_path / "0000:1b:00.0"
    device.mkdir()
    (device / "current_link_speed").write_text("16.0 GT/s PCIe\n")
    (device / "max_link_speed").write_text("32.0 GT/s PCIe\n")
    (device / "current_link_width").write_text("8\n")
    (device / "max_link_width").write_text("")
    monkeypatch.setattr(_machine, "_PCI_DEVICES", tmp_path)
    gpu = found().gpus[0]
    assert (gpu.link_generation, gpu.link_width, gpu.link_generation_max, gpu.link_width_max) == (4, 8, 5, None)


def test_it_reads_well_everywhere(found: Any, script: Any) -> None:
    script("nvidia-smi", f"echo '{SMI_ROW}'")
    info = found()
    assert "NVIDIA H200, compute capability 9.0, 132 SMs" in str(info)
    assert "memory 139.8 GiB, 4814 GB/s in theory, ECC on, L2 60 MiB" in str(info)
    assert "PCIe 4 x16 now, PCIe 5 x16 at most" in repr(info)
    assert info._repr_html_().startswith("<table>")
    assert "NVIDIA H200" in info._repr_html_()


def test_as_dict_is_json(found: Any) -> None:
    info = found()
    again = json.loads(json.dumps(info.as_dict()))
    assert again["gpus"][0]["memory"] == H200["memory"]
    assert again["cpu"]["simd_levels"] == list(info.cpu.simd_levels)


def test_the_double_is_seen_through_the_child(double: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", child_environment()["PYTHONPATH"])
    info = vecadd.info()
    assert info.gpu_status == "ok"
    assert len(info.gpus) == len(_core.gpu_facts())
    assert info.cuda_runtime == _machine.cuda_version(_core.CUDA_RUNTIME_VERSION)


def test_the_caller_makes_no_cuda_call(double: Any) -> None:
    vecadd.info()
    assert double.calls("cudaGetDeviceCount") == 0
    assert double.calls("cudaGetDeviceProperties") == 0

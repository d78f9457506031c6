"""info and explain say what `vecadd tune` has found on this machine, when, and in which file."""

import os
from datetime import datetime
from pathlib import Path

import pytest

from vecadd import _machine, _tuned
from vecadd.tune import store

WRITTEN = datetime(2026, 11, 21, 10, 30)
ROWS = [("recipe", (0, 256))]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VECADD_CACHE_DIR", str(tmp_path))
    return tmp_path


def write(kind: str, key: str, rows=ROWS) -> Path:
    path = store.write(kind, key, rows)
    os.utime(path, (WRITTEN.timestamp(),) * 2)
    return path


def test_a_file_that_is_used_is_told_with_its_time() -> None:
    path = write("recipes", "GPU-1")
    found = _tuned.find("device", "recipes", "GPU-1")
    assert (found.used, found.path, found.written) == (True, str(path), "2026-11-21 10:30")
    assert str(found) == f"device: tuned 2026-11-21 10:30, {path}"


def test_without_a_file_it_says_which_command_measures() -> None:
    assert str(_tuned.find("device (GPU 1)", "recipes", "GPU-1")) == (
        "device (GPU 1): not tuned; `vecadd tune device` measures this machine"
    )
    assert str(_tuned.find("routes", "routes", None)).startswith("routes: not tuned")


def test_a_file_that_is_not_whole_is_none() -> None:
    path = write("recipes", "GPU-1")
    path.write_text(path.read_text()[:-1])
    assert not _tuned.find("device", "recipes", "GPU-1").used


def test_a_file_of_64_kib_is_used_and_a_larger_one_is_not() -> None:
    path = write("recipes", "GPU-1", [("recipe", (0.25, 256))])
    text = path.read_text()
    for size in (2**16, 2**16 + 1):
        path.write_text(text.replace("0.25", "0.25" + "0" * (size - len(text))))
        assert path.stat().st_size == size
        assert _tuned.find("device", "recipes", "GPU-1").used == (size == 2**16)


def test_a_file_that_came_too_late_for_this_process_says_so() -> None:
    path = write("host", "some host")
    found = _tuned.find("host", "host", "some host", used=False)
    assert str(found) == (f"host: not tuned; {path} of 2026-11-21 10:30 is read by processes that start from now on")


def test_info_tells_of_the_host_and_of_each_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    write("recipes", "GPU-2")
    parts = _tuned.gpus(["GPU-1", "GPU-2"])
    assert [part.part for part in parts] == ["device (GPU 0)", "routes (GPU 0)", "device (GPU 1)", "routes (GPU 1)"]
    assert [part.used for part in parts] == [False, False, True, False]
    monkeypatch.setattr(_machine, "_ask_child", lambda: {"failed": "not asked"})
    found = _machine.look()
    assert [part.part for part in found.tuned] == ["host"]
    assert str(found.tuned[0]) in str(found)


def test_an_addition_on_the_host_tells_the_file_that_it_goes_by(child, folder: Path) -> None:
    key = child("from vecadd import _core; print(_core.host_facts()['key'])").stdout.strip()
    path = write("host", key, [("share", (65536,))])
    code = "import numpy as np, vecadd; a = np.ones(5); print(vecadd.explain(a, a)); print(vecadd.info())"
    told = child(code).stdout
    assert told.count(f"host: tuned 2026-11-21 10:30, {path}") == 2


def test_an_addition_on_a_gpu_tells_whether_its_kernel_was_tuned(device: int, child, folder: Path) -> None:
    code = (
        "import numpy as np, vecadd; x = vecadd.to_device(np.ones(5)); print(vecadd.explain(x, x).tuned[0])\n"
        "print(vecadd._core.gpu_facts()[0]['key'])"
    )
    told, key = child(code).stdout.splitlines()
    assert told.startswith("device: not tuned")
    path = write("recipes", key, [("recipe", (0, 256, 0, 0))])
    assert child(code).stdout.splitlines()[0] == f"device: tuned 2026-11-21 10:30, {path}"

"""What additions on a device go by: the build's launch configs, or those that were tuned on that device."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from vecadd import _core
from vecadd.tune import store

USED = """
from vecadd import _core
found = _core.device_launch_configs(0)
print(found["source"], found["rows"] == found["shipped"], found["rows"][0][1])
"""


def test_the_builds_configs_begin_with_small_additions_and_are_whole_warps(device: int) -> None:
    found = _core.device_launch_configs(device)
    assert found["source"] in ("shipped", "inherited")
    assert found["rows"] == found["shipped"]
    assert found["rows"][0][0] == 0
    assert [row[0] for row in found["rows"]] == sorted({row[0] for row in found["rows"]})
    assert all(row[1] % 32 == 0 for row in found["rows"])


def test_a_tuned_file_is_what_additions_go_by(
    device: int, child: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VECADD_CACHE_DIR", str(tmp_path))
    path = store.write("recipes", _core.device_launch_configs(device)["key"], [("recipe", (0, 64, 0, 0))])
    assert child(USED).stdout.split() == ["tuned", "False", "64"]
    path.write_text(path.read_text()[:-1])
    assert child(USED).stdout.split()[:2] == [_core.device_launch_configs(device)["source"], "True"]


def test_an_ordinal_that_is_none_is_refused(device: int) -> None:
    with pytest.raises(ValueError, match="there is no device 99"):
        _core.device_launch_configs(99)

"""The stubs say what the compiled module has: every name, and every signature that it tells."""

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import child_environment

import vecadd


@pytest.mark.no_native
def test_stubs_are_the_modules():
    pytest.importorskip("mypy")
    result = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "vecadd._core"],
        cwd=Path(vecadd.__file__).parents[1],
        env=child_environment(),
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert result.returncode == 0, result.stdout + result.stderr

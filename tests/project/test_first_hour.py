"""The first hour with an installed vecadd, in an environment with nothing but NumPy: what .ci/extras does at length."""

import shutil
import subprocess
import tomllib
import venv
from collections.abc import Callable
from pathlib import Path

import first_hour
import numpy as np
import pytest
from conftest import child_environment

import vecadd
from vecadd import _carried

pytestmark = pytest.mark.no_native


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment that has NumPy and the package as a wheel has it, and nothing else."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    for library in Path(np.__file__).parents[1].glob("numpy*"):
        (site / library.name).symlink_to(library)
    shutil.copytree(Path(vecadd.__file__).parent, site / "vecadd", ignore=shutil.ignore_patterns("__pycache__"))
    _carried.write_archive(site / _carried.ARCHIVE)
    metadata = site / "vecadd-0.1.0.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text("Metadata-Version: 2.1\nName: vecadd\nVersion: 0.1.0\n")
    return folder / "bin" / "python"


@pytest.mark.parametrize("step", first_hour.STEPS["nothing"], ids=lambda step: step.__name__)
def test_the_first_hour(step: Callable[[], None], bare: Path, tmp_path: Path) -> None:
    code = (
        f"import sys; sys.path.append({str(first_hour.TREE / 'tests')!r}); import first_hour as f; f.{step.__name__}()"
    )
    environment = child_environment(PYTHONPATH=None, VECADD_TEST_RUNTIME=None)
    command = [str(bare), "-W", "error", "-c", code]
    result = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240)
    assert result.returncode == 0, result.stdout + result.stderr


def test_every_extra_has_its_steps_in_ci_extras() -> None:
    """One without fails there, which only `make thorough` runs."""
    script = (first_hour.TREE / ".ci" / "extras").read_text()
    extras = tomllib.loads((first_hour.TREE / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert [extra for extra in extras if f"\n        {extra})" not in script] == []

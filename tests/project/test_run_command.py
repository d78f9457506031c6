"""`vecadd run`: a program runs as Python runs it, and vecadd adds in NumPy's place."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import child_environment

pytestmark = pytest.mark.no_native

ADDS = "import numpy as np\na = np.ones(3_000_000)\nprint((a + a).sum())\n"


def vecadd_run(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "vecadd", "run", *words],
        cwd=cwd,
        env=child_environment(),
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_a_script_adds_by_vecadd(tmp_path: Path) -> None:
    (tmp_path / "adds.py").write_text(ADDS)
    result = vecadd_run("--count", "adds.py", cwd=tmp_path)
    assert (result.returncode, result.stdout) == (0, "6000000.0\n")
    assert result.stderr == "vecadd run: 3000000 elements added in 1 calls of NumPy's loops\n"


def test_a_module_adds_by_vecadd(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__main__.py").write_text(ADDS)
    result = vecadd_run("--count", "-m", "package", cwd=tmp_path)
    assert (result.returncode, result.stdout) == (0, "6000000.0\n")
    assert "3000000 elements" in result.stderr


def test_least_gives_every_run_of_elements_to_all_threads(tmp_path: Path) -> None:
    (tmp_path / "adds.py").write_text("import numpy as np\nnp.ones(10) + np.ones(10)\n")
    assert "0 elements added in 0 calls" in vecadd_run("--count", "adds.py", cwd=tmp_path).stderr
    assert "10 elements added in 1 calls" in vecadd_run("--count", "--least", "1", "adds.py", cwd=tmp_path).stderr


def test_the_allocator_is_installed_on_request(tmp_path: Path) -> None:
    code = "import numpy, vecadd; a = numpy.ones(1 << 20); print(vecadd.memory_stats()['output_used_bytes'] > 0)"
    (tmp_path / "memory.py").write_text(code)
    assert vecadd_run("memory.py", cwd=tmp_path).stdout == "False\n"
    assert vecadd_run("--allocator", "memory.py", cwd=tmp_path).stdout == "True\n"


SHOWS = (
    "import sys, helper; print(__name__, sys.argv, helper.__name__, sys.modules['__main__'].__dict__ is globals())\n"
)


@pytest.mark.parametrize("words", [["shows.py", "--count", "-m", "x", "--", "-h"], ["-m", "shows", "--count", "-h"]])
def test_the_program_sees_what_it_sees_under_python(words: list[str], tmp_path: Path) -> None:
    """Its name, its own arguments whatever they look like, and the modules beside it."""
    (tmp_path / "shows.py").write_text(SHOWS)
    (tmp_path / "helper.py").write_text("")
    alone = subprocess.run([sys.executable, *words], cwd=tmp_path, capture_output=True, text=True)
    result = vecadd_run(*words, cwd=tmp_path)
    assert (result.returncode, result.stdout, result.stderr) == (alone.returncode, alone.stdout, alone.stderr)
    assert alone.returncode == 0


@pytest.mark.parametrize(("ending", "status"), [("sys.exit(7)", 7), ("sys.exit()", 0), ("sys.exit('why')", 1)])
def test_the_status_is_the_programs(ending: str, status: int, tmp_path: Path) -> None:
    (tmp_path / "ends.py").write_text(f"import sys\n{ending}\n")
    assert vecadd_run("ends.py", cwd=tmp_path).returncode == status


def test_an_exception_is_shown_whole(tmp_path: Path) -> None:
    (tmp_path / "fails.py").write_text("def inner():\n    raise ValueError('no')\n\ninner()\n")
    result = vecadd_run("fails.py", cwd=tmp_path)
    assert result.returncode == 1
    assert 'fails.py", line 2, in inner' in result.stderr
    assert result.stderr.endswith("ValueError: no\n")


def test_an_interrupt_ends_it(tmp_path: Path) -> None:
    (tmp_path / "waits.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    assert vecadd_run("waits.py", cwd=tmp_path).returncode == 128 + signal.SIGINT


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "name a script, or a module after -m"),
        (["-m"], "name a script, or a module after -m"),
        (["nowhere.py"], "there is no file 'nowhere.py'"),
        (["--least", "0", "x.py"], "--least takes bytes, 1 or more, not 0"),
    ],
)
def test_what_cannot_be_run_is_said(words: list[str], said: str, tmp_path: Path) -> None:
    result = vecadd_run(*words, cwd=tmp_path)
    assert (result.returncode, result.stderr) == (2, f"vecadd run: {said}\n")


def test_a_wrong_option_is_said_before_the_program_runs(tmp_path: Path) -> None:
    (tmp_path / "adds.py").write_text(ADDS)
    result = vecadd_run("--conut", "adds.py", cwd=tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    assert "did you mean --count?" in result.stderr

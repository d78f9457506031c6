"""A test that hangs ends the run within its time limit: the run fails, and says where the test was."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from build_native import __main__ as build_native

pytestmark = pytest.mark.no_native

ROOT = Path(__file__).resolve().parents[2]

# PyDLL keeps the GIL during the call, as a deadlock between the GIL and a lock of C code does: no other Python thread
# runs then, and no signal handler.
WAITS_WITH_THE_GIL = """
import ctypes

def test_before():
    pass

def test_that_waits_with_the_gil():
    ctypes.PyDLL(None).pause()

def test_after():
    pass
"""
# A signal handler's exception leaves fetch(), and the executor's __exit__ then waits for its thread.
WAITS_FOR_ITS_THREADS = """
import threading
from concurrent.futures import ThreadPoolExecutor

def test_that_waits_for_a_thread():
    with ThreadPoolExecutor(1) as pool:
        pool.submit(threading.Event().wait).result()
"""
# As the Makefile runs it.
BY_WORKERS = ["-n", "2", "--dist", "worksteal", "--max-worker-restart", "0"]


@pytest.mark.parametrize(
    ("code", "where", "workers"),
    [
        (WAITS_WITH_THE_GIL, "test_that_waits_with_the_gil", []),
        (WAITS_WITH_THE_GIL, "test_that_waits_with_the_gil", BY_WORKERS),
        (WAITS_FOR_ITS_THREADS, "test_that_waits_for_a_thread", []),
    ],
    ids=["with the GIL", "with the GIL, in a worker", "for its threads"],
)
def test_a_test_that_hangs_fails_the_run(code: str, where: str, workers: list[str], tmp_path: Path) -> None:
    if workers:
        pytest.importorskip("xdist")
    file = tmp_path / "test_made_up.py"
    file.write_text(code)
    options = ["-c", str(ROOT / "pyproject.toml"), "-o", "faulthandler_timeout=1", "-p", "no:cacheprovider", *workers]
    status, said = run_pytest(*options, str(file))
    assert status != 0
    assert f"in {where}" in said, "the traceback"
    assert not workers or "crashed while running" in said


def run_pytest(*arguments: str) -> tuple[int, str]:
    """Its exit status and output. One that hangs after all is ended with its workers."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    with subprocess.Popen(
        [sys.executable, "-m", "pytest", *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as run:
        try:
            output, _ = run.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            os.killpg(run.pid, signal.SIGKILL)
            raise
    return run.returncode, output


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_a_c_test_that_hangs_is_ended_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "test_made_up.c"
    source.write_text(
        '#include "check.h"\n'
        "static void waits_for_ever(void) { fork(); for (;;) pause(); }\n"
        'static void is_run_all_the_same(void) { CHECK(false, "the test after it"); }\n'
        "int main(void) { RUN(waits_for_ever); RUN(is_run_all_the_same); return check_report(); }\n"
    )
    program = tmp_path / "test_made_up"
    subprocess.run(["cc", "-D_GNU_SOURCE", "-I", ROOT / "tests" / "c", source, "-o", program], check=True)
    monkeypatch.setattr(build_native, "TEST_SECONDS", 1)
    monkeypatch.setattr(build_native, "PROGRAM_SECONDS", 20)
    monkeypatch.setattr(build_native, "ROOT", tmp_path)
    assert build_native._run([program], (), 1) == 1
    said = capsys.readouterr().out
    assert "test_made_up: FAILED, status 1" in said, "what the test forked does not keep the program's output open"
    assert "waits_for_ever was still running after 1 s" in said
    assert "the test after it" in said


def test_a_program_that_hangs_is_ended_with_what_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "hangs"
    program.write_text(f"#!/bin/sh\necho begun\nsleep 1000 & echo $! > {tmp_path}/started\nwait\n")
    program.chmod(0o755)
    monkeypatch.setattr(build_native, "ROOT", tmp_path)
    started = tmp_path / "started"
    for seconds in (1, 20):  # a busy machine may not have begun the program within one
        monkeypatch.setattr(build_native, "PROGRAM_SECONDS", seconds)
        assert build_native._run([program], (), 1) == 1
        assert f"hangs: FAILED, still running after {seconds} s" in capsys.readouterr().out
        if started.exists() and started.read_text().endswith("\n"):
            break
    assert ended(int(started.read_text()))


def ended(process: int) -> bool:
    """Whether it ends within ten seconds. One that has ended may stay a zombie: it was adopted by init."""
    end = time.monotonic() + 10
    while time.monotonic() < end:
        try:
            if Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2].startswith("Z"):
                return True
        except OSError:
            return True
        time.sleep(0.01)
    return False

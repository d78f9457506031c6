"""Adding .npy files in threads of C: without the GIL, and with the caller's np.errstate."""

import contextlib
import ctypes
import os
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from conftest import child_environment
from npy_files import assert_untouched, fill_folder, npy_bytes
from signals import FAULTS, taken_by_threads

from vecadd.files import add_files


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return fill_folder(tmp_path)


def overflowing(folder: Path, dtype: str) -> None:
    """Makes both summands overflow in each of many tiles."""
    for name in "ab":
        (folder / f"{name}.npy").write_bytes(npy_bytes(np.full(1000, np.finfo(np.float32).max, dtype)))


DTYPES = ["<f4", ">f4"]  # vecadd adds the first, NumPy the second


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_floating_point_error_is_raised_and_touches_nothing(dtype: str, folder: Path) -> None:
    overflowing(folder, dtype)
    with np.errstate(over="raise"), pytest.raises(FloatingPointError, match="overflow encountered in add"):
        add_files(folder / "a.npy", folder / "b.npy", folder / "c.npy", window=64)
    assert_untouched(folder)


@pytest.mark.parametrize("dtype", DTYPES)
def test_floating_point_errors_that_are_ignored_give_the_sum(dtype: str, folder: Path) -> None:
    overflowing(folder, dtype)
    with np.errstate(over="ignore"):
        add_files(folder / "a.npy", folder / "b.npy", folder / "c.npy", window=64)
    assert np.isinf(np.load(folder / "c.npy")).all()


def test_a_file_is_warned_of_once(folder: Path) -> None:
    """As numpy.add warns of an array once, however many tiles overflow."""
    overflowing(folder, "<f4")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        add_files(folder / "a.npy", folder / "b.npy", folder / "c.npy", window=64, progress=lambda *at: None)
    assert [str(warning.message) for warning in caught] == ["overflow encountered in add"]


def test_threads_that_add_files_take_no_signals(folder: Path) -> None:
    """But those of their own faults. While the first stretches are told, the threads wait with the others, of which
    there are more than the threads may be ahead."""
    for name in "ab":
        (folder / f"{name}.npy").write_bytes(npy_bytes(np.ones(20_000, "f4")))
    found: list[list[int]] = []
    add_files(
        *(folder / f"{name}.npy" for name in "abc"),
        window=64,
        progress=lambda *at: found or found.extend(taken_by_threads("vecadd-files")),
    )
    assert len(found) >= 2
    assert all(taken == FAULTS for taken in found)


def workers() -> list[int]:
    """The threads of this process that add files."""
    found = []
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):  # it has ended meanwhile
            if (task / "comm").read_text().strip() == "vecadd-files":
                found.append(int(task.name))
    return found


@pytest.mark.parametrize(
    ("second", "dtype", "order"),
    [((4096, 8192), "float32", "C"), ((8192,), "float32", "C"), ((4096, 8192), "int16", "C"),
     ((4096, 8192), "float32", "F")],
)  # fmt: skip
def test_files_are_added_while_another_thread_keeps_the_gil(
    second: tuple[int, ...], dtype: str, order: Literal["C", "F"], tmp_path: Path
) -> None:
    """No matter how long."""
    x, y = np.ones((4096, 8192), np.float32), np.ones(second, dtype, order)
    (tmp_path / "a.npy").write_bytes(npy_bytes(x))
    (tmp_path / "b.npy").write_bytes(npy_bytes(y))
    libc = ctypes.PyDLL(None)  # calls keep the GIL
    names = [tmp_path / f"{name}.npy" for name in "abc"]
    before = sys.getswitchinterval()
    found: list[int] = []
    for _ in range(20):  # this thread may lose its processor for as long as they take
        adding = threading.Thread(target=add_files, args=names, kwargs={"sync": False})
        adding.start()
        while not found and adding.is_alive():
            found = workers()
        if found:
            break
        adding.join()
    sys.setswitchinterval(1000)  # from here on no other thread gets it
    try:
        end = time.monotonic() + 120
        while any(libc.tgkill(os.getpid(), worker, 0) == 0 for worker in found) and time.monotonic() < end:
            libc.usleep(1000)
        left = [worker for worker in found if libc.tgkill(os.getpid(), worker, 0) == 0]
    finally:
        sys.setswitchinterval(before)
    adding.join()
    assert found
    assert left == []
    np.testing.assert_array_equal(np.load(tmp_path / "c.npy"), x + y)


# A daemon thread adds files of zeros, and the process ends. The thread's stack has 64 MiB: the C library keeps none of
# that size for the next thread.
DAEMON = """
import ctypes, os, sys, threading, time
from pathlib import Path
import numpy as np
import vecadd

def adders(listdir=os.listdir, open=open):
    found = 0
    for task in listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{task}/comm") as file:
                found += file.read() == "vecadd-files\\n"
        except OSError:
            pass
    return found

def begin(folder, dtype, n, **options):
    names = [Path(folder, f"{name}.npy") for name in "abc"]
    for name in names[:2]:
        with name.open("wb") as file:
            np.lib.format.write_array_header_1_0(file, {"descr": dtype, "fortran_order": False, "shape": (n,)})
            file.truncate(file.tell() + 4 * n)
    threading.stack_size(64 << 20)
    threading.Thread(target=vecadd.add_files, args=names, kwargs={"sync": False, **options}, daemon=True).start()
    while not adders():
        time.sleep(0.001)
"""
# In windows of a few bytes it takes seconds. The last object that goes gives the thread that is told time to ask for
# the GIL, and the others time to use what would have gone with its stack. A function of this module as progress would
# keep it alive.
WHILE_IT_FINALISES = """
folder, dtype, told, wait = Path(sys.argv[1]), sys.argv[2], sys.argv[3] == "told", float(sys.argv[4])

class Last:
    def __del__(self, sleep=time.sleep):
        sleep(0.2)

last = Last()
begin(folder, dtype, 1 << 26, window=64, progress=max if told else None)
time.sleep(wait)
"""
# Reading takes longer than the interpreter needs to finalise; then the process takes a second to end.
WHEN_IT_IS_GONE = """
libc = ctypes.CDLL(None)
libc.on_exit(ctypes.cast(libc.sleep, ctypes.c_void_p), None)  # called with the exit status
begin(sys.argv[1], ">f4", 1 << 26, window=64 << 20)
sys.exit(1)
"""


def run_daemon(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", DAEMON + code, *map(str, arguments)]
    # Where a thread is ended within C code, ASan takes its own signal stack for a part of that code's frames.
    asan = f"{os.environ.get('ASAN_OPTIONS', '')}:use_sigaltstack=0"
    environment = child_environment(VECADD_NUM_THREADS="2", ASAN_OPTIONS=asan)
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("told", ["told", "not told"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_process_ends_while_a_daemon_thread_adds_files(dtype: str, told: str, tmp_path: Path) -> None:
    for wait in (0, 0.02, 0.11):
        done = run_daemon(WHILE_IT_FINALISES, tmp_path, dtype, told, wait)
        assert (done.returncode, done.stderr) == (0, "")


def test_threads_that_add_files_ask_for_no_interpreter_that_is_gone(tmp_path: Path) -> None:
    done = run_daemon(WHEN_IT_IS_GONE, tmp_path)
    assert (done.returncode, done.stderr) == (1, "")

"""Adding .npy files where something fails: a target that nothing spoils."""

import errno
import os
import resource
import subprocess
import sys
from itertools import count
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from builds import UNDER_ASAN
from conftest import child_environment
from double.control import NOTHING
from npy_files import assert_untouched, fill_folder, npy_bytes, open_without_tmpfile

from vecadd.files import add_files


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return fill_folder(tmp_path)


@pytest.fixture(params=["without a name", "with a name"])
def temporary(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both kinds of temporary file: the second is for file systems without O_TMPFILE."""
    if request.param == "with a name":
        monkeypatch.setattr(os, "open", open_without_tmpfile)
    return str(request.param)


def test_a_folder_that_is_not_there_is_named(folder: Path, temporary: str) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        add_files(folder / "a.npy", folder / "b.npy", folder / "nowhere" / "c.npy")


@pytest.mark.parametrize("failure", [KeyboardInterrupt, MemoryError, OSError])
def test_a_failure_in_the_middle_touches_nothing(failure: type[BaseException], folder: Path, temporary: str) -> None:
    def fail(done: int, size: int) -> None:
        raise failure

    with pytest.raises(failure):
        add_files(folder / "a.npy", folder / "b.npy", folder / "c.npy", window=64, progress=fail)
    assert_untouched(folder)


def test_an_exception_that_is_false_ends_the_work_too(folder: Path, temporary: str) -> None:
    """As one is that holds a list of what is wrong and tells its length."""

    class Wrong(Exception):
        def __len__(self) -> int:
            return 0

    def fail(done: int, size: int) -> None:
        raise Wrong

    with pytest.raises(Wrong):
        add_files(folder / "a.npy", folder / "b.npy", folder / "c.npy", window=64, progress=fail)
    assert_untouched(folder)


def test_an_input_that_shrinks_meanwhile_is_an_error(folder: Path, temporary: str) -> None:
    def shrink(done: int, size: int) -> None:
        os.truncate(folder / "a.npy", 1000)

    with pytest.raises(OSError, match=r"a\.npy was cut short"):
        add_files(folder / "a.npy", folder / "b.npy", folder / "c.npy", window=4, progress=shrink)
    assert_untouched(folder)


@pytest.mark.parametrize("reserves", [True, False])
def test_a_limit_on_files_touches_nothing(
    reserves: bool, folder: Path, temporary: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unsupported(*arguments: int) -> None:
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    monkeypatch.setattr(os, "posix_fallocate", os.posix_fallocate if reserves else unsupported)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2048, before[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            add_files(folder / "a.npy", folder / "b.npy", folder / "c.npy", window=256)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert_untouched(folder)


def test_a_disk_without_room_is_known_before_the_work(
    folder: Path, temporary: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = os.statvfs_result([4096, 4096, 1000, 0, 0, 9, 9, 9, 0, 255])
    monkeypatch.setattr(os, "fstatvfs", lambda descriptor: room)
    told: list[object] = []
    with pytest.raises(OSError, match="No space left on device") as raised:
        add_files(folder / "a.npy", folder / "b.npy", folder / "c.npy", progress=lambda *at: told.append(at))
    assert (raised.value.errno, raised.value.filename) == (errno.ENOSPC, str(folder / "c.npy"))
    assert told == []
    assert_untouched(folder)


def test_a_file_system_that_does_not_say_its_room_is_written_to(
    folder: Path, temporary: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    unknown = os.statvfs_result([4096, 4096, 0, 0, 0, 0, 0, 0, 0, 255])
    monkeypatch.setattr(os, "fstatvfs", lambda descriptor: unknown)
    add_files(folder / "a.npy", folder / "b.npy", folder / "c.npy")
    np.testing.assert_array_equal(np.load(folder / "c.npy"), np.load(folder / "a.npy") + np.load(folder / "b.npy"))


@pytest.mark.parametrize("said", [errno.ENOSPC, NOTHING], ids=["an error", "no byte written"])
def test_a_disk_that_fills_meanwhile_touches_nothing(
    said: int, folder: Path, temporary: str, double: ModuleType
) -> None:
    double.on_file_call(lambda call, offset, nbytes: said if call == "pwrite" and offset > 2000 else 0)
    with pytest.raises(OSError, match="No space left on device") as raised:
        add_files(folder / "a.npy", folder / "b.npy", folder / "c.npy", window=64)
    assert (raised.value.errno, raised.value.filename) == (errno.ENOSPC, str(folder / "c.npy"))
    assert_untouched(folder)


# A stack of Python's thread, in which add_files runs, has room where one of the C library's usual size has none.
WITHOUT_ROOM_FOR_A_STACK = """
import resource, sys, threading
from pathlib import Path
from vecadd.files import add_files
names = [Path(sys.argv[1], f"{name}.npy") for name in "abc"]
threading.stack_size(512 << 10)
pages = int(Path("/proc/self/statm").read_text().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (3 << 19), resource.RLIM_INFINITY))
try:
    add_files(*names, window=64)
except OSError as error:
    print(error.errno)
"""


@pytest.mark.skipif(UNDER_ASAN, reason="ASan needs the address space")
def test_a_system_that_has_no_room_for_a_thread_touches_nothing(folder: Path) -> None:
    command = [sys.executable, "-c", WITHOUT_ROOM_FOR_A_STACK, str(folder)]
    environment = child_environment(VECADD_NUM_THREADS="2")
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240)
    assert (done.stderr, done.returncode, int(done.stdout)) == ("", 0, errno.EAGAIN)
    assert_untouched(folder)


def test_a_disk_that_cannot_be_read_touches_nothing(folder: Path, temporary: str, double: ModuleType) -> None:
    double.on_file_call(lambda call, offset, nbytes: errno.EIO if call == "pread" and offset > 2000 else 0)
    with pytest.raises(OSError, match="Input/output error") as raised:
        add_files(folder / "a.npy", folder / "b.npy", folder / "c.npy", window=64)
    assert raised.value.errno == errno.EIO
    assert raised.value.filename in (str(folder / "a.npy"), str(folder / "b.npy"))
    assert_untouched(folder)


def test_short_reads_short_writes_and_signals_are_gone_on_from(folder: Path, double: ModuleType) -> None:
    calls = count()
    double.on_file_call(lambda call, offset, nbytes: errno.EINTR if next(calls) % 3 == 0 else -7)
    add_files(folder / "a.npy", folder / "b.npy", folder / "c.npy", window=64)
    assert next(calls) > 3 * 4000 // 7
    np.testing.assert_array_equal(np.load(folder / "c.npy"), np.load(folder / "a.npy") + np.load(folder / "b.npy"))


def test_a_header_that_is_written_in_parts_is_whole(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pwrite = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda descriptor, data, offset: pwrite(descriptor, data[:7], offset))
    add_files(folder / "a.npy", folder / "b.npy", folder / "c.npy")
    want = np.load(folder / "a.npy") + np.load(folder / "b.npy")
    assert (folder / "c.npy").read_bytes() == npy_bytes(want)

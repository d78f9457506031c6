"""Adding .npy files again and again while calls fail: the target is the old or the new sum."""

import errno
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from builds import UNDER_ASAN
from conftest import child_environment
from npy_files import OLD, npy_bytes, open_without_tmpfile, operands

from vecadd.files import add_files

OPEN = Path("/proc/self/fd")
PYTHONS = ("open", "fchmod", "ftruncate", "posix_fallocate", "pwrite", "fsync", "link", "close", "rename")


class Disk:
    """Counts the calls that read and write files, C's too. Some fail: after their work, as a close does."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self.fails: dict[int, int] = {}  # an errno by the number of the call
        self._lock = threading.Lock()

    def error_of(self, call: str) -> int:
        with self._lock:
            self.made.append(call)
            return self.fails.get(len(self.made) - 1, 0)

    def watch(self, call: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*arguments: Any, **keywords: Any) -> Any:
            if call == "close" and stat.S_ISDIR(os.fstat(*arguments).st_mode):  # no write can fail there
                return real(*arguments)
            error = self.error_of(call)
            result = real(*arguments, **keywords) if call in ("close", "fsync") or not error else None
            if error:
                raise OSError(error, os.strerror(error))
            return result

        return watched


@pytest.fixture(params=["without a name", "with a name"])
def disk(request: pytest.FixtureRequest, double: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    """With both kinds of temporary file: the second is for file systems without O_TMPFILE."""
    watched = Disk()
    if request.param == "with a name":
        monkeypatch.setattr(os, "open", open_without_tmpfile)
    for call in PYTHONS:
        monkeypatch.setattr(os, call, watched.watch(call, getattr(os, call)))
    double.on_file_call(lambda call, offset, nbytes: watched.error_of(call))
    yield watched
    monkeypatch.undo()


def write_operands(folder: Path, number: int) -> bytes:
    """The operands of one addition of many, and the file that is their sum."""
    a, b = (x + np.float32(number) for x in operands("float32", (1000,)))
    (folder / "a.npy").write_bytes(npy_bytes(a))
    (folder / "b.npy").write_bytes(npy_bytes(b))
    return npy_bytes(np.add(a, b))


@pytest.mark.parametrize("sync", [True, False])
def test_whichever_call_fails_the_target_is_the_old_or_the_new_sum(sync: bool, disk: Disk, tmp_path: Path) -> None:
    """And the clean-up's close fails too. The next addition succeeds."""
    names = [tmp_path / f"{name}.npy" for name in "abc"]
    opened = len(list(OPEN.iterdir()))

    def add() -> list[str]:
        disk.made.clear()
        add_files(*names, window=500, sync=sync)
        return list(disk.made)

    old = write_operands(tmp_path, 0)
    add()  # the target is new
    calls = add()
    ends = [call for call in calls if call in ("fsync", "close", "rename")]
    assert ends == (["fsync", "close", "rename", "fsync"] if sync else ["close", "rename"])
    for number, call in enumerate(calls):
        for again in (False, True):
            new = write_operands(tmp_path, 2 * number + again + 1)
            disk.fails = {number: errno.EDQUOT}
            if again:
                disk.fails |= dict.fromkeys(range(number + 1, number + 100), errno.EIO)
            with pytest.raises(OSError, match=os.strerror(errno.EDQUOT)) as raised:
                add()
            assert raised.value.errno == errno.EDQUOT, (number, call)
            done = "rename" in disk.made[:number]
            assert (tmp_path / "c.npy").read_bytes() == (new if done else old), (number, call)
            assert len(list(tmp_path.iterdir())) == 3, (number, call)
            assert len(list(OPEN.iterdir())) == opened, (number, call)
            disk.fails = {}
            add()
            assert (tmp_path / "c.npy").read_bytes() == new
            old = new


# A disk that loses the first write of all, and the error is told once: on Linux to the call that waits for the disk
# first; of NFS and quotas, to close.
FAILING_DISK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int disk_error, disk_tells_at_close;
static int lost, written;

static int told(int file, int closes) {
    if (!lost || file != written || closes != disk_tells_at_close)
        return 0;
    errno = lost;
    lost = 0;
    return -1;
}
#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
ssize_t pwrite64(int file, const void *from, size_t bytes, off64_t at) {
    if (disk_error)
        lost = disk_error, written = file, disk_error = 0;
    return REAL(pwrite64)(file, from, bytes, at);
}
ssize_t pwrite(int file, const void *from, size_t bytes, off_t at) { return pwrite64(file, from, bytes, at); }
int close(int file) { const int done = REAL(close)(file); return told(file, 1) ? -1 : done; }
int fsync(int file) { const int done = REAL(fsync)(file); return told(file, 0) ? -1 : done; }
int fdatasync(int file) { const int done = REAL(fdatasync)(file); return told(file, 0) ? -1 : done; }
int sync_file_range(int file, off64_t at, off64_t bytes, unsigned flags) {
    const int done = REAL(sync_file_range)(file, at, bytes, flags);
    return flags != SYNC_FILE_RANGE_WRITE && told(file, 0) ? -1 : done;
}
"""
ON_A_FAILING_DISK = """
import ctypes, sys
from vecadd.files import add_files
disk = ctypes.CDLL(None)
error, at_close = (ctypes.c_int.in_dll(disk, name) for name in ("disk_error", "disk_tells_at_close"))
error.value, at_close.value = map(int, sys.argv[1:])
for _ in range(2):
    try:
        add_files("a.npy", "b.npy", "c.npy", window=1 << 12, sync=not at_close.value)
        print("added")
    except OSError as failed:
        print(failed.errno, failed.filename)
    with open("c.npy", "rb") as file:
        print(file.read(4))
"""


@pytest.mark.skipif(UNDER_ASAN, reason="ASan has to be loaded first")
@pytest.mark.parametrize(("error", "at_close"), [(errno.EIO, 0), (errno.EDQUOT, 1)])
def test_what_a_disk_does_not_take_is_told_once_and_replaces_nothing(error: int, at_close: int, tmp_path: Path) -> None:
    (tmp_path / "disk.c").write_text(FAILING_DISK)
    command = ["cc", "-shared", "-fPIC", "-O1", "disk.c", "-o", "disk.so", "-ldl"]
    subprocess.run(command, cwd=tmp_path, check=True)
    folder = tmp_path / "files"
    folder.mkdir()
    for name in "ab":
        (folder / f"{name}.npy").write_bytes(npy_bytes(np.ones(1 << 20, np.float32)))
    (folder / "c.npy").write_bytes(OLD)
    done = subprocess.run(
        [sys.executable, "-c", ON_A_FAILING_DISK, str(error), str(at_close)],
        cwd=folder,
        env=child_environment(LD_PRELOAD=str(tmp_path / "disk.so")),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [f"{error} c.npy", str(OLD[:4]), "added", str(b"\x93NUM")]
    assert sorted(path.name for path in folder.iterdir()) == ["a.npy", "b.npy", "c.npy"]

"""Adding .npy files where calls fail, again and again, where the process is interrupted, killed or ends, and in threads
without the GIL: the target is the old file or the whole sum.

VECADD_TEST_MOMENTS says at how many moments each kind of kill and interrupt is tried, 1 without it.
"""

import contextlib
import ctypes
import errno
import os
import random
import resource
import signal
import stat
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import npy_files
import numpy as np
import pytest
from builds import UNDER_ASAN
from conftest import child_environment
from double.control import NOTHING
from npy_files import OLD, assert_untouched, npy_bytes, open_without_tmpfile, operands
from signals import FAULTS, taken_by_threads

from vecadd.files import add_files

folder, temporary = npy_files.folder, npy_files.temporary


def test_a_folder_that_is_not_there_is_named(folder: Path, temporary: str) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        add_files(folder / "a.npy", folder / "b.npy", folder / "nowhere" / "c.npy")


class Wrong(Exception):
    """Is false, as one is that has a list of what is wrong and tells its length."""

    def __len__(self) -> int:
        return 0


@pytest.mark.parametrize("failure", [KeyboardInterrupt, MemoryError, OSError, Wrong])
def test_a_failure_in_the_middle_touches_nothing(failure: type[BaseException], folder: Path, temporary: str) -> None:
    def fail(done: int, size: int) -> None:
        raise failure

    with pytest.raises(failure):
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


def test_a_disk_that_writes_no_byte_any_more_is_full(folder: Path, temporary: str, double: ModuleType) -> None:
    double.on_file_call(lambda call, offset, nbytes: NOTHING if call == "pwrite" and offset > 2000 else 0)
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


# --- again and again

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
            if call in ("pread", "pwrite"):
                assert raised.value.filename in map(str, names[:2] if call == "pread" else names[2:]), number
            done = "rename" in disk.made[:number]
            assert (tmp_path / "c.npy").read_bytes() == (new if done else old), (number, call)
            assert len(list(tmp_path.iterdir())) == 3, (number, call)
            assert len(list(OPEN.iterdir())) == opened, (number, call)
            disk.fails = {}
            add()
            assert (tmp_path / "c.npy").read_bytes() == new
            old = new


# --- interrupts and kills

MOMENTS = range(int(os.environ.get("VECADD_TEST_MOMENTS", "1")))


@pytest.mark.parametrize("moment", MOMENTS)
def test_nothing_is_lost_when_the_process_is_killed(moment: int, folder: Path) -> None:
    code = f"""
        import time
        from vecadd.files import add_files
        told = 0
        def stop(done, size):
            global told
            if told == {moment % 7}:
                print("on the way", flush=True)
                time.sleep(60)
            told += 1
        add_files("a.npy", "b.npy", "c.npy", window=64, progress=stop)
    """
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=folder,
        env=child_environment(),
        stdout=subprocess.PIPE,
    )
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"on the way\n"
        child.kill()
    assert child.returncode == -signal.SIGKILL
    assert (folder / "c.npy").read_bytes() == OLD


INTERRUPTED = """
    import contextlib, errno, os, signal, sys, threading, time
    from double import control
    from vecadd import files
    make = os.open

    def slowly(call, offset, nbytes):
        if call == "pwrite":
            os.write(1, b"writing\\n")  # at once, beside those of other threads
            time.sleep(0.03)
        return 0

    def with_a_name(path, flags, *rest, **keywords):
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, "Operation not supported")
        return make(path, flags, *rest, **keywords)

    control.on_file_call(slowly)
    if sys.argv[1] == "with a name":
        os.open = with_a_name
    started = False

    def add_until_done():
        global started
        while True:
            try:
                if not started:
                    started = True
                    os.write(1, b"ready\\n")
                    files.add_files("a.npy", "b.npy", "c.npy", window=64)
                signal.signal(signal.SIGINT, signal.SIG_IGN)
                return
            except KeyboardInterrupt:
                pass

    try:
        add_until_done()
    except KeyboardInterrupt:  # came between two rounds
        add_until_done()
    next_files = [open(f"next{i}", "wb", buffering=0) for i in range(20)]
    for thread in threading.enumerate():
        if thread is not threading.current_thread():
            with contextlib.suppress(RuntimeError):  # not started yet, or never: it opens nothing any more
                thread.join()
    print(*(os.fstat(file.fileno()).st_size for file in next_files))
"""


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("kind", ["without a name", "with a name"])
@pytest.mark.parametrize(("begin", "interrupts"), [("writing", 2), ("writing", 10), ("ready", 10)])
def test_interrupts_at_any_moment_spoil_no_file(
    begin: str, interrupts: int, kind: str, moment: int, folder: Path, double: ModuleType
) -> None:
    """The second comes while the first is handled. Files that are opened next get the numbers that are free then. Only
    what has a name before it is complete may be left by an interrupt of its removal."""
    whole = npy_bytes(np.load(folder / "a.npy") + np.load(folder / "b.npy"))
    moments = random.Random(interrupts + 100 * moment)
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(INTERRUPTED), kind],
        cwd=folder,
        env=child_environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    with child:
        assert child.stdout is not None
        assert begin in iter(lambda: child.stdout.readline().strip(), "")
        for _ in range(interrupts):
            child.send_signal(signal.SIGINT)
            time.sleep(moments.uniform(0, 0.01))
        *_, sizes = child.stdout.read().splitlines()
    assert child.returncode == 0
    assert sizes.split() == ["0"] * 20
    assert (folder / "c.npy").read_bytes() in (OLD, whole)
    left = sorted(path.name for path in folder.iterdir() if "next" not in path.name)
    assert left[-3:] == ["a.npy", "b.npy", "c.npy"]
    assert len(left) == 3 or kind == "with a name"


def test_an_interrupt_is_raised_when_nothing_is_at_work_any_more(folder: Path, temporary: str) -> None:
    before = threading.active_count()

    def interrupt(done: int, size: int) -> None:
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        add_files(folder / "a.npy", folder / "b.npy", folder / "c.npy", window=64, progress=interrupt)
    assert threading.active_count() == before
    assert_untouched(folder)


def test_an_interrupt_ends_work_that_tells_of_no_progress(folder: Path, double: ModuleType) -> None:
    """Long before its end."""
    writes: list[int] = []

    def slowly(call: str, offset: int, nbytes: int) -> int:
        if call == "pwrite":
            writes.append(offset)
            if len(writes) == 1:
                os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.1)
        return 0

    double.on_file_call(slowly)
    with pytest.raises(KeyboardInterrupt):
        add_files(folder / "a.npy", folder / "b.npy", folder / "c.npy", window=64)
    assert len(writes) < 4000 // 64
    assert_untouched(folder)


# --- threads


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

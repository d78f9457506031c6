"""Adding .npy files: the sum, in bounded memory, and a target that nothing spoils."""

import errno
import io
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
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from arrays import tame_values
from conftest import child_environment

from vecadd import _core, files
from vecadd._uninterrupted import run_uninterrupted
from vecadd.files import add_files

DTYPES = ["bool", "int8", "uint64", "float16", "float32", "float64", "complex64", ">f4", "<M8[s]"]

OLD = b"what was there before"


def npy_bytes(x: np.ndarray, version: tuple[int, int] | None = None) -> bytes:
    """x as numpy.save writes it; an array in Fortran order stays in it."""
    file = io.BytesIO()
    np.lib.format.write_array(file, x, version)
    return file.getvalue()


def npy_header(descr: str, shape: str) -> bytes:
    """The header of a .npy file whose entries NumPy would not write."""
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def operands(dtype: str, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    size = int(np.prod(shape))
    a = tame_values(np.dtype("int64"), size, seed=1).reshape(shape)
    b = tame_values(np.dtype("int64"), size, seed=2).reshape(shape)
    second = "m8[s]" if "M8" in dtype else dtype
    return a.astype(dtype), b.astype(second)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two summands, a.npy and b.npy, and a target c.npy that holds something else."""
    a, b = operands("float32", (1000,))
    (tmp_path / "a.npy").write_bytes(npy_bytes(a))
    (tmp_path / "b.npy").write_bytes(npy_bytes(b))
    (tmp_path / "c.npy").write_bytes(OLD)
    return tmp_path


@pytest.fixture(params=["without a name", "with a name"])
def temporary(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both kinds of temporary file: the second is for file systems without O_TMPFILE."""
    real = os.open

    def without_tmpfile(path: Any, flags: int, mode: int = 0o777, **keywords: Any) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, "Operation not supported")
        return real(path, flags, mode, **keywords)

    if request.param == "with a name":
        monkeypatch.setattr(os, "open", without_tmpfile)
    return str(request.param)


def assert_untouched(folder: Path) -> None:
    assert (folder / "c.npy").read_bytes() == OLD
    assert sorted(path.name for path in folder.iterdir()) == ["a.npy", "b.npy", "c.npy"]


@pytest.mark.parametrize("window", [64, 1 << 20])
@pytest.mark.parametrize("shape", [(), (0,), (1,), (1000,), (7, 11, 13), (3, 0)], ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_file_is_the_one_that_numpy_would_save(
    dtype: str, shape: tuple[int, ...], window: int, tmp_path: Path
) -> None:
    a, b = operands(dtype, shape)
    (tmp_path / "a.npy").write_bytes(npy_bytes(a))
    (tmp_path / "b.npy").write_bytes(npy_bytes(b))
    add_files(tmp_path / "a.npy", tmp_path / "b.npy", tmp_path / "c.npy", window=window)
    assert (tmp_path / "c.npy").read_bytes() == npy_bytes(np.asarray(np.add(a, b)))


@pytest.mark.parametrize(("first", "second"), [("int8", "float32"), ("float32", "float64"), ("bool", "uint16")])
def test_mixed_dtypes_give_numpys_dtype(first: str, second: str, tmp_path: Path) -> None:
    a, b = operands(first, (100,))[0], operands(second, (100,))[1]
    (tmp_path / "a.npy").write_bytes(npy_bytes(a))
    (tmp_path / "b.npy").write_bytes(npy_bytes(b))
    add_files(tmp_path / "a.npy", tmp_path / "b.npy", tmp_path / "c.npy", window=64)
    assert (tmp_path / "c.npy").read_bytes() == npy_bytes(np.add(a, b))


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_every_version_of_the_format_is_read(version: tuple[int, int], folder: Path) -> None:
    a = np.load(folder / "a.npy")
    (folder / "a.npy").write_bytes(npy_bytes(a, version))
    add_files(folder / "a.npy", folder / "b.npy", folder / "c.npy")
    np.testing.assert_array_equal(np.load(folder / "c.npy"), a + np.load(folder / "b.npy"))


def test_fortran_order_stays(tmp_path: Path) -> None:
    a, b = (np.asfortranarray(x) for x in operands("float64", (5, 9)))
    (tmp_path / "a.npy").write_bytes(npy_bytes(a))
    (tmp_path / "b.npy").write_bytes(npy_bytes(b))
    add_files(tmp_path / "a.npy", tmp_path / "b.npy", tmp_path / "c.npy", window=64)
    assert (tmp_path / "c.npy").read_bytes() == npy_bytes(a + b)


@pytest.mark.parametrize("target", ["a.npy", "b.npy"])
def test_the_target_may_be_an_input(target: str, folder: Path, temporary: str) -> None:
    want = np.load(folder / "a.npy") + np.load(folder / "b.npy")
    add_files(folder / "a.npy", folder / "b.npy", folder / target, window=64)
    np.testing.assert_array_equal(np.load(folder / target), want)


def test_progress_is_told_after_every_eight_windows(folder: Path) -> None:
    told: list[tuple[int, int]] = []
    add_files(folder / "a.npy", folder / "b.npy", folder / "c.npy", window=200, progress=lambda *at: told.append(at))
    assert told == [(400, 1000), (800, 1000), (1000, 1000)]


def test_an_existing_target_keeps_its_permissions(folder: Path, temporary: str) -> None:
    (folder / "c.npy").chmod(0o640)
    add_files(folder / "a.npy", folder / "b.npy", folder / "c.npy")
    assert stat.S_IMODE((folder / "c.npy").stat().st_mode) == 0o640


def test_a_new_target_gets_what_the_umask_leaves(folder: Path, temporary: str) -> None:
    before = os.umask(0o027)
    try:
        add_files(folder / "a.npy", folder / "b.npy", folder / "new.npy")
    finally:
        os.umask(before)
    assert stat.S_IMODE((folder / "new.npy").stat().st_mode) == 0o640


def test_a_link_stays_a_link(folder: Path) -> None:
    (folder / "link.npy").symlink_to("c.npy")
    add_files(folder / "a.npy", folder / "b.npy", folder / "link.npy")
    assert (folder / "link.npy").is_symlink()
    np.testing.assert_array_equal(np.load(folder / "c.npy"), np.load(folder / "a.npy") + np.load(folder / "b.npy"))


def test_memory_is_bounded_by_the_window(tmp_path: Path) -> None:
    header = npy_bytes(np.broadcast_to(np.float32(0), 1 << 24))[:128]
    for name in ("a.npy", "b.npy"):
        with (tmp_path / name).open("wb") as file:
            file.write(header)
            file.truncate(len(header) + (4 << 24))
    tracemalloc.start()
    add_files(tmp_path / "a.npy", tmp_path / "b.npy", tmp_path / "c.npy", window=1 << 20)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    threads = max(files.FEWEST_THREADS, min(files.MOST_THREADS, _core.host_facts()["threads"]))
    assert peak < (3 * threads + 1) << 20
    assert (tmp_path / "c.npy").stat().st_size == len(header) + (4 << 24)


BAD_INPUTS: dict[str, tuple[Callable[[Path], object], type[Exception], str]] = {
    "missing": (lambda path: path.unlink(), FileNotFoundError, "a.npy"),
    "empty": (lambda path: path.write_bytes(b""), ValueError, "not a .npy file"),
    "text": (lambda path: path.write_text("1, 2, 3\n" * 100), ValueError, "not a .npy file"),
    "header cut": (lambda path: os.truncate(path, 40), ValueError, "not a .npy file"),
    "no dict": (lambda path: path.write_bytes(path.read_bytes().replace(b"{", b"[")), ValueError, "not a .npy file"),
    "garbage for a header": (
        lambda path: path.write_bytes(b"\x93NUMPY\x01\x00\x10\x00" + b"(" * 16), ValueError, "not a .npy file"),
    "dtype of garbage": (lambda path: path.write_bytes(npy_header("('x',)", "(1000,)")), ValueError, "not a .npy file"),
    "negative extents": (
        lambda path: path.write_bytes(npy_header("'<f4'", "(-10, -100)") + bytes(4000)), ValueError, "negative"),
    "version 9": (lambda path: path.write_bytes(b"\x93NUMPY\x09\x00" + bytes(200)), ValueError, "9"),
    "one byte short": (lambda path: os.truncate(path, path.stat().st_size - 1), ValueError, "cut short"),
    "one byte long": (lambda path: os.truncate(path, path.stat().st_size + 1), ValueError, "too long"),
    "other shape": (lambda path: path.write_bytes(npy_bytes(np.zeros(999, np.float32))), ValueError, "shapes"),
    "same size, other shape": (
        lambda path: path.write_bytes(npy_bytes(np.zeros((10, 100), np.float32))), ValueError, "shapes"),
    "objects": (lambda path: np.save(path, np.array([None] * 1000)), ValueError, "unpickled"),
    "structured": (lambda path: np.save(path, np.zeros(1000, "i4,f4")), ValueError, "structured"),
    "text dtype": (lambda path: np.save(path, np.zeros(1000, "U3")), TypeError, "add"),
    "folder": (lambda path: (path.unlink(), path.mkdir()), OSError, "directory"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_INPUTS)
def test_a_bad_input_touches_nothing(name: str, folder: Path) -> None:
    spoil, error, text = BAD_INPUTS[name]
    spoil(folder / "a.npy")
    before = sorted(folder.iterdir())
    with pytest.raises(error, match=text):
        add_files(folder / "a.npy", folder / "b.npy", folder / "c.npy")
    assert (folder / "c.npy").read_bytes() == OLD
    assert sorted(folder.iterdir()) == before


def test_a_pipe_is_refused(folder: Path) -> None:
    """And not waited for: it has no writer."""
    os.mkfifo(folder / "pipe")
    with pytest.raises(ValueError, match="regular file"):
        add_files(folder / "pipe", folder / "b.npy", folder / "c.npy")


def test_mixed_memory_orders_are_refused(folder: Path) -> None:
    (folder / "a.npy").write_bytes(npy_bytes(np.zeros((4, 5))))
    (folder / "b.npy").write_bytes(npy_bytes(np.zeros((4, 5), order="F")))
    with pytest.raises(ValueError, match=r"a\.npy is in C order, .*b\.npy in Fortran order"):
        add_files(folder / "a.npy", folder / "b.npy", folder / "c.npy")
    assert_untouched(folder)


def test_a_target_that_is_no_file_is_refused(folder: Path) -> None:
    (folder / "d.npy").mkdir()
    with pytest.raises(ValueError, match="not a regular file"):
        add_files(folder / "a.npy", folder / "b.npy", folder / "d.npy")


WITHOUT_PRIVILEGES = """
    import os, sys
    from vecadd.files import add_files
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
    try:
        add_files(*sys.argv[1:])
    except PermissionError as error:
        print(error.filename, error.strerror)
"""


@pytest.fixture
def open_folder(folder: Path) -> Iterator[Path]:
    """A folder as `folder`, in which every user may make and rename files."""
    with TemporaryDirectory() as name:
        place = Path(name)
        place.chmod(0o777)
        for file in folder.iterdir():
            (place / file.name).write_bytes(file.read_bytes())
            (place / file.name).chmod(0o644)
        yield place


@pytest.mark.parametrize(("name", "mode"), [("c.npy", 0o444), ("c.npy", 0o000), ("a.npy", 0o000), ("b.npy", 0o200)])
def test_a_write_protected_target_and_a_read_protected_input_are_refused(
    name: str, mode: int, open_folder: Path
) -> None:
    """The folder would let the target be replaced."""
    before = {path.name: path.read_bytes() for path in open_folder.iterdir()}
    (open_folder / name).chmod(mode)
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(WITHOUT_PRIVILEGES), *(str(open_folder / x) for x in sorted(before))],
        env=child_environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert str(open_folder / name) in result.stdout
    assert stat.S_IMODE((open_folder / name).stat().st_mode) == mode
    (open_folder / name).chmod(0o644)
    assert {path.name: path.read_bytes() for path in open_folder.iterdir()} == before


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
    assert raised.value.errno == errno.ENOSPC
    assert told == []
    assert_untouched(folder)


def test_a_disk_that_fills_meanwhile_touches_nothing(
    folder: Path, temporary: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.pwrite

    def full(descriptor: int, data: bytes, offset: int) -> int:
        if offset > 2000:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(descriptor, data, offset)

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(OSError, match="No space left on device"):
        add_files(folder / "a.npy", folder / "b.npy", folder / "c.npy", window=64)
    assert_untouched(folder)


@pytest.fixture
def in_memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder as `folder`, on tmpfs, where sums are added into the pages of their file however few processors."""
    monkeypatch.setattr(files, "MAPPED_FROM", 1)
    try:
        place = TemporaryDirectory(dir="/dev/shm")
    except OSError as error:
        pytest.skip(f"there is no tmpfs: {error}")
    with place as name:
        folder = Path(name)
        for file, x in zip(("a.npy", "b.npy"), operands("float32", (1000,)), strict=True):
            (folder / file).write_bytes(npy_bytes(x))
        (folder / "c.npy").write_bytes(OLD)
        yield folder


@pytest.mark.parametrize("window", [64, 1 << 20])
@pytest.mark.parametrize(("first", "second"), [("float32", "float32"), ("int8", "float64"), (">f4", ">f4")])
@pytest.mark.parametrize("n", [0, 1, 5001])
def test_a_file_in_memory_is_the_one_that_numpy_would_save(
    n: int, first: str, second: str, window: int, in_memory: Path
) -> None:
    a, b = operands(first, (n,))[0], operands(second, (n,))[1]
    (in_memory / "a.npy").write_bytes(npy_bytes(a))
    (in_memory / "b.npy").write_bytes(npy_bytes(b))
    add_files(in_memory / "a.npy", in_memory / "b.npy", in_memory / "c.npy", window=window)
    assert (in_memory / "c.npy").read_bytes() == npy_bytes(np.add(a, b))


def test_a_file_in_memory_is_not_written(in_memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, written = os.pwrite, []

    def note(descriptor: int, data: bytes, offset: int) -> int:
        written.append(offset)
        return real(descriptor, data, offset)

    monkeypatch.setattr(os, "pwrite", note)
    add_files(in_memory / "a.npy", in_memory / "b.npy", in_memory / "c.npy", window=64)
    assert written == [0]  # the header
    np.testing.assert_array_equal(np.load(in_memory / "c.npy"), sum(np.load(in_memory / f"{x}.npy") for x in "ab"))


def test_memory_that_fills_meanwhile_touches_nothing(in_memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.posix_fallocate

    def full(descriptor: int, offset: int, size: int) -> None:
        if offset > 2000:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(descriptor, offset, size)

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OSError, match="No space left on device"):
        add_files(in_memory / "a.npy", in_memory / "b.npy", in_memory / "c.npy", window=64)
    assert_untouched(in_memory)


def test_nothing_is_lost_when_the_process_is_killed(folder: Path) -> None:
    code = """
        import time
        from vecadd.files import add_files
        def stop(done, size):
            print("half way", flush=True)
            time.sleep(60)
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
        assert child.stdout.readline() == b"half way\n"
        child.kill()
    assert child.returncode == -signal.SIGKILL
    assert (folder / "c.npy").read_bytes() == OLD


INTERRUPTED = """
    import contextlib, errno, os, signal, sys, threading, time
    from vecadd import files
    write, make = os.pwrite, os.open

    def slowly(descriptor, data, offset):
        if offset > 0:  # behind the header
            os.write(1, b"writing\\n")  # at once, beside those of other threads
            time.sleep(0.03)
        return write(descriptor, data, offset)

    def with_a_name(path, flags, *rest, **keywords):
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, "Operation not supported")
        return make(path, flags, *rest, **keywords)

    os.pwrite, files.MAPPED_FROM = slowly, 1 << 30
    if sys.argv[1] == "with a name":
        os.open = with_a_name
    started = False
    while True:
        try:
            if not started:
                started = True
                os.write(1, b"ready\\n")
                files.add_files("a.npy", "b.npy", "c.npy", window=64)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            break
        except KeyboardInterrupt:
            pass
    next_files = [open(f"next{i}", "wb", buffering=0) for i in range(20)]
    for thread in threading.enumerate():
        if thread is not threading.current_thread():
            with contextlib.suppress(RuntimeError):  # not started yet, or never: it opens nothing any more
                thread.join()
    print(*(os.fstat(file.fileno()).st_size for file in next_files))
"""


@pytest.mark.parametrize("kind", ["without a name", "with a name"])
@pytest.mark.parametrize(("begin", "interrupts"), [("writing", 2), ("writing", 10), ("ready", 10)])
def test_interrupts_at_any_moment_spoil_no_file(begin: str, interrupts: int, kind: str, folder: Path) -> None:
    """The second comes while the first is handled. Files that are opened next get the numbers that are free then."""
    whole = npy_bytes(np.load(folder / "a.npy") + np.load(folder / "b.npy"))
    moments = random.Random(interrupts)
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
    assert sorted(path.name for path in folder.iterdir() if "next" not in path.name) == ["a.npy", "b.npy", "c.npy"]


def test_the_work_has_ended_when_several_interrupts_are_raised() -> None:
    arrived: SimpleQueue[None] = SimpleQueue()
    steps: list[str] = []

    def interrupt(*signal_and_frame: object) -> None:
        arrived.put(None)
        raise KeyboardInterrupt

    def work(check: Callable[[], None], tell: object) -> None:
        for _ in range(3):
            signal.raise_signal(signal.SIGINT)
            arrived.get(timeout=60)
            time.sleep(0.02)  # the caller's thread gets behind its except clause
        steps.append("at work")
        try:
            check()
        finally:
            steps.append("closed")

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            run_uninterrupted(work, None)
    finally:
        signal.signal(signal.SIGINT, before)
    assert steps == ["at work", "closed"]


def test_an_interrupt_is_raised_when_nothing_is_at_work_any_more(folder: Path, temporary: str) -> None:
    before = threading.active_count()

    def interrupt(done: int, size: int) -> None:
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        add_files(folder / "a.npy", folder / "b.npy", folder / "c.npy", window=64, progress=interrupt)
    assert threading.active_count() == before
    assert_untouched(folder)


def test_the_target_appears_only_when_it_is_on_the_disk(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    fsync, rename = os.fsync, Path.rename
    monkeypatch.setattr(os, "fsync", lambda descriptor: (steps.append("fsync"), fsync(descriptor))[1])
    monkeypatch.setattr(Path, "rename", lambda path, target: (steps.append("rename"), rename(path, target))[1])
    files.add_files(folder / "a.npy", folder / "b.npy", folder / "c.npy")
    assert steps == ["fsync", "rename", "fsync"]

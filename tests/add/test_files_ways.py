"""The ways of the bytes of .npy files: through the page cache, past it, into the pages of a file in memory."""

import errno
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from npy_files import (
    assert_untouched,
    fill_folder,
    filled_in_memory,
    npy_bytes,
    npy_header,
    open_without_tmpfile,
    operands,
)

from vecadd import files
from vecadd.files import add_files, move_files

PAGE = 4096


@pytest.fixture
def in_memory() -> Iterator[Path]:
    """A folder on tmpfs, with two summands and a target."""
    with filled_in_memory() as folder:
        yield folder


@pytest.fixture
def quicker(monkeypatch: pytest.MonkeyPatch) -> dict[tuple[object, ...], int]:
    """What this process knows of ways: nothing yet."""
    known: dict[tuple[object, ...], int] = {}
    monkeypatch.setattr(files, "_quicker", known)
    return known


@pytest.fixture
def directly(quicker: dict[tuple[object, ...], int], tmp_path: Path) -> Path:
    """A folder on a disk, whose bytes go past the page cache."""
    device = tmp_path.stat().st_dev
    quicker[device, device, device, files.DIRECT] = files.DIRECT
    with (tmp_path / "a.npy").open("wb") as file:
        if files._in_memory(file.fileno()):
            pytest.skip(f"{tmp_path} is in memory")
    return tmp_path


def drop(path: Path) -> None:
    """Takes the file out of the page cache."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def with_header_of(length: int, x: np.ndarray) -> bytes:
    """x in a .npy file whose array begins behind so many bytes."""
    start = npy_header(repr(x.dtype.str), repr(x.shape))
    text = start[10:].ljust(length - 10)
    return start[:8] + len(text).to_bytes(2, "little") + text + x.tobytes()


@pytest.mark.parametrize("header", [128, 64 + 128, 4096, 4096 + 16, 131])
@pytest.mark.parametrize("dropped", [(), ("a",), ("a", "b")], ids=str)
@pytest.mark.parametrize("dtypes", [("float32", "float32"), ("int8", "complex128"), (">f4", "float32")], ids="+".join)
@pytest.mark.parametrize("n", [1, 5000, 100_003])
def test_bytes_past_the_page_cache_give_the_same_sum(
    n: int, dtypes: tuple[str, str], dropped: tuple[str, ...], header: int, directly: Path
) -> None:
    """Wherever the first array begins, and whatever of the two the page cache has."""
    a, b = operands(dtypes[0], (n,))[0], operands(dtypes[1], (n,))[1]
    (directly / "a.npy").write_bytes(with_header_of(header, a))
    (directly / "b.npy").write_bytes(npy_bytes(b))
    for name in dropped:
        drop(directly / f"{name}.npy")
    add_files(directly / "a.npy", directly / "b.npy", directly / "c.npy", window=2 * PAGE)
    assert (directly / "c.npy").read_bytes() == npy_bytes(np.add(a, b))


@pytest.mark.parametrize(("first", "second"), [((300, 700), (700,)), ((300, 700), (300, 1)), ((70_000,), ())], ids=str)
def test_broadcast_files_go_past_the_page_cache(
    first: tuple[int, ...], second: tuple[int, ...], directly: Path
) -> None:
    a, b = operands("float32", first)[0], operands("float32", second)[1]
    for name, x in (("a", a), ("b", b)):
        (directly / f"{name}.npy").write_bytes(npy_bytes(x))
        drop(directly / f"{name}.npy")
    add_files(directly / "a.npy", directly / "b.npy", directly / "c.npy", window=2 * PAGE)
    assert (directly / "c.npy").read_bytes() == npy_bytes(np.add(a, b))


def test_files_of_two_memory_orders_are_read_in_runs_that_spoil_no_other(directly: Path) -> None:
    """A page that is read whole for one of these runs has bytes of the one before it."""
    a, b = operands("uint8", (1 << 18, 8))  # columns so far apart that no read of one brings the next into the cache
    for name, x in (("a", a), ("b", np.asfortranarray(b))):
        (directly / f"{name}.npy").write_bytes(npy_bytes(x))
        drop(directly / f"{name}.npy")
    add_files(directly / "a.npy", directly / "b.npy", directly / "c.npy", window=1024)  # tiles of 1024 rows
    np.testing.assert_array_equal(np.load(directly / "c.npy"), a + b)


@pytest.mark.parametrize("dropped", [True, False])
def test_only_what_the_page_cache_lacks_is_read_past_it(dropped: bool, directly: Path, double: ModuleType) -> None:
    """In whole pages from a page's begin; what it has is read as it lies."""
    n, window = 64 * PAGE, 16 * PAGE
    for name in "ab":
        (directly / f"{name}.npy").write_bytes(npy_bytes(operands("uint8", (n,))[0]))
        if dropped:
            drop(directly / f"{name}.npy")
    reads: list[tuple[int, int]] = []

    def note(call: str, offset: int, nbytes: int) -> int:
        if call == "pread":
            reads.append((offset, nbytes))
        return 0

    double.on_file_call(note)
    add_files(directly / "a.npy", directly / "b.npy", directly / "c.npy", window=window)
    first, *inner, last = sorted(set(reads))
    assert first == ((0, window) if dropped else (128, window - 128))
    assert inner == [(at, window) for at in range(window, n, window)]
    assert last == ((n, PAGE) if dropped else (n, 128))


@pytest.mark.parametrize("shortened", ["pread", "pwrite"])
def test_what_moved_in_part_past_the_page_cache_goes_through_it(
    shortened: str, directly: Path, double: ModuleType
) -> None:
    a, b = operands("uint8", (64 * PAGE,))
    for name, x in (("a", a), ("b", b)):
        (directly / f"{name}.npy").write_bytes(npy_bytes(x))
        drop(directly / f"{name}.npy")
    double.on_file_call(lambda call, offset, nbytes: -PAGE if call == shortened else 0)
    add_files(directly / "a.npy", directly / "b.npy", directly / "c.npy", window=16 * PAGE)
    assert (directly / "c.npy").read_bytes() == npy_bytes(a + b)


def test_a_file_that_shrinks_is_an_error_past_the_page_cache_too(directly: Path) -> None:
    for name in "ab":
        (directly / f"{name}.npy").write_bytes(npy_bytes(operands("uint8", (64 * PAGE,))[0]))
        drop(directly / f"{name}.npy")

    def shrink(done: int, size: int) -> None:
        os.truncate(directly / "b.npy", 1000)

    with pytest.raises(OSError, match=r"b\.npy was cut short"):
        add_files(directly / "a.npy", directly / "b.npy", directly / "c.npy", window=PAGE // 8, progress=shrink)
    assert not (directly / "c.npy").exists()


def test_a_disk_that_fills_past_the_page_cache_touches_nothing(directly: Path, double: ModuleType) -> None:
    fill_folder(directly)
    for name in "ab":
        (directly / f"{name}.npy").write_bytes(npy_bytes(operands("uint8", (64 * PAGE,))[0]))
    double.on_file_call(lambda call, offset, nbytes: errno.ENOSPC if call == "pwrite" and offset > 9000 else 0)
    with pytest.raises(OSError, match="No space left on device"):
        add_files(directly / "a.npy", directly / "b.npy", directly / "c.npy", window=PAGE)
    assert_untouched(directly)


def write_long(folder: Path, monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    """Two files that are long enough for a comparison, and their sum."""
    monkeypatch.setattr(files, "PHASE", 16 * PAGE)
    x = operands("uint8", (40 * 16 * PAGE + 77,))[0]
    for name in "ab":
        (folder / f"{name}.npy").write_bytes(npy_bytes(x))
    return np.add(x, x)


def slow(slowed: str, seen: list[str]) -> Callable[[str, int, int], int]:
    """Makes calls of that name take their time, and notes which calls there are."""

    def watch(call: str, offset: int, nbytes: int) -> int:
        seen.append(call)
        if call == slowed:
            time.sleep(0.02)
        return 0

    return watch


@pytest.mark.parametrize(
    ("slowed", "way", "calls"),
    [("pwrite", files.MAPPED, {"pread", "posix_fallocate"}), ("posix_fallocate", files.CACHE, {"pread", "pwrite"})],
)
def test_a_long_sum_finds_the_quicker_way_and_later_ones_keep_it(
    slowed: str,
    way: int,
    calls: set[str],
    in_memory: Path,
    quicker: dict[tuple[object, ...], int],
    double: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    total = write_long(in_memory, monkeypatch)
    seen: list[str] = []
    double.on_file_call(slow(slowed, seen))
    for want in ({"pread", "pwrite", "posix_fallocate"}, calls):
        seen.clear()
        add_files(in_memory / "a.npy", in_memory / "b.npy", in_memory / "c.npy", window=2 * PAGE)
        assert set(seen) == want
        assert list(quicker.values()) == [way]
        np.testing.assert_array_equal(np.load(in_memory / "c.npy"), total)


@pytest.mark.parametrize("sync", [True, False])
def test_on_a_disk_both_ways_are_compared_where_the_sum_is_synced(
    sync: bool, tmp_path: Path, quicker: dict[tuple[object, ...], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sum that only has to reach the page cache would be the slower past it."""
    total = write_long(tmp_path, monkeypatch)
    with (tmp_path / "a.npy").open("rb") as file:
        if files._in_memory(file.fileno()):
            pytest.skip(f"{tmp_path} is in memory")
    add_files(tmp_path / "a.npy", tmp_path / "b.npy", tmp_path / "c.npy", window=2 * PAGE, sync=sync)
    device = tmp_path.stat().st_dev
    assert list(quicker) == ([(device, device, device, files.DIRECT)] if sync else [])
    assert set(quicker.values()) <= {files.CACHE, files.DIRECT}
    np.testing.assert_array_equal(np.load(tmp_path / "c.npy"), total)


def test_progress_goes_on_over_a_comparison(
    in_memory: Path, quicker: dict[tuple[object, ...], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    total = write_long(in_memory, monkeypatch)
    told: list[int] = []
    add_files(
        in_memory / "a.npy",
        in_memory / "b.npy",
        in_memory / "c.npy",
        window=2 * PAGE,
        progress=lambda done, size: told.append(done),
    )
    assert told == [*range(16 * PAGE - 128, total.size, 16 * PAGE), total.size]


def test_a_failure_in_a_comparison_touches_nothing_and_finds_nothing(
    in_memory: Path, quicker: dict[tuple[object, ...], int], double: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_long(in_memory, monkeypatch)
    double.on_file_call(lambda call, offset, nbytes: errno.ENOSPC if call == "posix_fallocate" else 0)
    with pytest.raises(OSError, match="No space left on device"):
        add_files(in_memory / "a.npy", in_memory / "b.npy", in_memory / "c.npy", window=2 * PAGE)
    assert_untouched(in_memory)
    assert not quicker


def test_a_file_that_has_a_name_already_is_not_mapped(
    in_memory: Path, quicker: dict[tuple[object, ...], int], double: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process could cut it short, whatever was the quicker way for files without a name."""
    device = in_memory.stat().st_dev
    quicker[device, device, device, files.MAPPED] = files.MAPPED
    monkeypatch.setattr(files, "MAPPED_FROM", 1)
    monkeypatch.setattr(os, "open", open_without_tmpfile)
    seen: list[str] = []
    double.on_file_call(slow("", seen))
    add_files(in_memory / "a.npy", in_memory / "b.npy", in_memory / "c.npy")
    assert set(seen) == {"pread", "pwrite"}


@pytest.mark.parametrize("way", [files.CACHE, files.MAPPED])
def test_what_is_only_moved_is_the_first_file(
    way: int, in_memory: Path, quicker: dict[tuple[object, ...], int]
) -> None:
    device = in_memory.stat().st_dev
    quicker[device, device, device, files.MAPPED] = way
    move_files(in_memory / "a.npy", in_memory / "b.npy", in_memory / "c.npy")
    assert (in_memory / "c.npy").read_bytes() == (in_memory / "a.npy").read_bytes()

"""Adding .npy files: the sum, in bounded memory, and what is refused before the work."""

import errno
import io
import os
import pickle
import stat
import subprocess
import sys
import textwrap
import threading
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any, Literal

import npy_files
import numpy as np
import pytest
from conftest import child_environment
from npy_files import OLD, assert_untouched, npy_bytes, npy_header, operands

from vecadd import _core, files
from vecadd.files import add_files

folder, temporary = npy_files.folder, npy_files.temporary

DTYPES = ["bool", "int8", "uint64", "float16", "float32", "float64", "complex64", ">f4", "<M8[s]"]


def assert_file_is_numpys(folder: Path, a: np.ndarray, b: np.ndarray, **options: Any) -> None:
    """The sum of these two in files is the file that NumPy would save."""
    (folder / "a.npy").write_bytes(npy_bytes(a))
    (folder / "b.npy").write_bytes(npy_bytes(b))
    add_files(folder / "a.npy", folder / "b.npy", folder / "c.npy", **options)
    assert (folder / "c.npy").read_bytes() == npy_bytes(np.asarray(np.add(a, b)))


@pytest.mark.parametrize("window", [64, 1 << 20])
@pytest.mark.parametrize("shape", [(), (0,), (1,), (1000,), (7, 11, 13), (3, 0)], ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_file_is_the_one_that_numpy_would_save(
    dtype: str, shape: tuple[int, ...], window: int, tmp_path: Path
) -> None:
    assert_file_is_numpys(tmp_path, *operands(dtype, shape), window=window)


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_every_version_of_the_format_is_read(version: tuple[int, int], folder: Path) -> None:
    a = np.load(folder / "a.npy")
    (folder / "a.npy").write_bytes(npy_bytes(a, version))
    add_files(folder / "a.npy", folder / "b.npy", folder / "c.npy")
    np.testing.assert_array_equal(np.load(folder / "c.npy"), a + np.load(folder / "b.npy"))


@pytest.mark.filterwarnings("ignore:Reading .*:UserWarning")  # of a header that is read as version 2
@pytest.mark.parametrize(
    "header",
    [
        b"{'descr': '<f4', 'fortran_order': False, 'shape': (1000L,), }",  # of Python 2
        b"{'descr': '<f4', 'fortran_order': False, 'shape': (1000,), } # \xff",  # not UTF-8
    ],
)
def test_what_numpy_refuses_in_version_3_is_refused(header: bytes, folder: Path) -> None:
    """In version 2 it is what another encoding, or Python 2, wrote."""
    (folder / "a.npy").write_bytes(b"\x93NUMPY\x03\x00" + len(header).to_bytes(4, "little") + header + bytes(4000))
    with pytest.raises(ValueError, match=r"Cannot parse header|codec can't decode"):
        np.load(folder / "a.npy")
    with pytest.raises(ValueError, match=r"a\.npy is not a \.npy file that can be read: "):
        add_files(folder / "a.npy", folder / "b.npy", folder / "c.npy")
    assert_untouched(folder)


def test_a_header_of_python_2_is_read_with_numpys_warning(folder: Path) -> None:
    """Which stays one where warnings are errors."""
    (folder / "a.npy").write_bytes(npy_header("'<f4'", "(1000L,)") + bytes(4000))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="created on Python 2"):
            add_files(folder / "a.npy", folder / "b.npy", folder / "c.npy")
    assert_untouched(folder)
    with pytest.warns(UserWarning, match="created on Python 2"):
        add_files(folder / "a.npy", folder / "b.npy", folder / "c.npy")
    assert (folder / "c.npy").read_bytes() == (folder / "b.npy").read_bytes()


LAYOUTS = [
    ((4, 5), "C", (4, 5), "F"),
    ((40, 50), "F", (40, 50), "C"),
    ((5, 9), "F", (5, 9), "F"),
    ((3, 4, 5), "F", (3, 4, 5), "C"),
    ((2, 3, 4, 5), "C", (2, 3, 4, 5), "F"),
    ((100, 7), "C", (7,), "C"),
    ((100, 7), "F", (7,), "C"),
    ((100, 1), "C", (1, 70), "C"),
    ((100, 1), "F", (30, 1, 70), "F"),
    ((6, 1, 5), "C", (1, 7, 5), "F"),
    ((6, 5, 1), "F", (1, 5, 7), "C"),
    ((1000,), "C", (), "C"),
    ((1, 1), "C", (1,), "C"),
    ((1, 200), "F", (100, 1), "F"),
    ((0, 5), "F", (1,), "C"),
    ((3, 0), "C", (3, 1), "F"),
]


@pytest.mark.parametrize("window", [64, 1000, 1 << 20])
@pytest.mark.parametrize("dtypes", [("float32", "float32"), ("int8", "float64")], ids="+".join)
@pytest.mark.parametrize(("first", "first_order", "second", "second_order"), LAYOUTS, ids=str)
@pytest.mark.parametrize("swapped", [False, True])
def test_shapes_broadcast_and_memory_orders_mix_as_numpys(
    first: tuple[int, ...],
    first_order: Literal["C", "F"],
    second: tuple[int, ...],
    second_order: Literal["C", "F"],
    dtypes: tuple[str, str],
    window: int,
    swapped: bool,
    tmp_path: Path,
) -> None:
    a = np.asarray(operands(dtypes[0], first)[0], order=first_order)
    b = np.asarray(operands(dtypes[1], second)[1], order=second_order)
    assert_file_is_numpys(tmp_path, *((b, a) if swapped else (a, b)), window=window)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("axes", [33, 64])
def test_files_may_have_as_many_axes_as_numpys_arrays(axes: int, order: Literal["C", "F"], tmp_path: Path) -> None:
    a = np.asarray(operands("float32", (2, *(1,) * (axes - 2), 3))[0], order=order)
    assert_file_is_numpys(tmp_path, a, operands("float32", (5, 1))[1])


TURNED = [
    ("uint8", "uint8"), ("float16", "float16"), ("float32", "float32"), ("float64", "float64"),
    ("complex128", "complex128"), ("int8", "float64"), ("bool", "complex64"), ("float16", "float32"), (">f4", "float32")
]  # fmt: skip


@pytest.mark.parametrize("shape", [(70, 300), (33, 3, 150), (3, 200, 35), (20, 40)], ids=str)
@pytest.mark.parametrize("order", ["CF", "FC"])
@pytest.mark.parametrize("dtypes", TURNED, ids="+".join)
def test_rows_of_two_memory_orders_are_added_in_blocks(
    dtypes: tuple[str, str], order: str, shape: tuple[int, ...], tmp_path: Path
) -> None:
    a, b = operands(dtypes[0], shape)[0], operands(dtypes[1], shape)[1]
    first, second = np.asarray(a, order=order[0]), np.asarray(b, order=order[1])  # type: ignore[call-overload]
    assert_file_is_numpys(tmp_path, first, second)


def test_files_of_two_memory_orders_are_read_and_written_in_runs(tmp_path: Path, double: ModuleType) -> None:
    """Of some thousand bytes where memory is for some million: not an element at a time."""
    a = np.arange(1 << 20, dtype=np.float32).reshape(1 << 10, 1 << 10)
    sizes: list[int] = []
    double.on_file_call(lambda call, offset, nbytes: sizes.append(nbytes) or 0)
    assert_file_is_numpys(tmp_path, a, np.asfortranarray(a), window=128 << 10)
    assert min(sizes) >= 2048
    assert sum(sizes) == 3 * a.nbytes


@pytest.mark.parametrize("target", ["a.npy", "b.npy"])
def test_the_target_may_be_an_input(target: str, folder: Path, temporary: str) -> None:
    want = np.load(folder / "a.npy") + np.load(folder / "b.npy")
    add_files(folder / "a.npy", folder / "b.npy", folder / target, window=64)
    np.testing.assert_array_equal(np.load(folder / target), want)


def test_progress_is_told_of_what_is_written(folder: Path, double: ModuleType) -> None:
    """Where many stretches have been told of, and one of the threads is late."""
    late, told = folder.joinpath("a.npy").stat().st_size - 4 * 200, threading.Event()
    seen: list[bool] = []

    def wait(call: str, offset: int, nbytes: int) -> int:
        if call == "pwrite" and offset == late:
            seen.append(told.wait(0.2))
        return 0

    def progress(done: int, size: int) -> None:
        if done > 800:
            told.set()

    double.on_file_call(wait)
    add_files(folder / "a.npy", folder / "b.npy", folder / "c.npy", window=8, progress=progress)
    assert seen == [False]
    assert told.is_set()


def test_progress_is_told_after_every_eight_windows(folder: Path) -> None:
    """To an object that is false too, as a list is before it has got anything."""

    class Told(list[tuple[int, int]]):
        def __call__(self, done: int, size: int) -> None:
            self.append((done, size))

    told = Told()
    add_files(folder / "a.npy", folder / "b.npy", folder / "c.npy", window=200, progress=told)
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


def test_a_link_to_itself_is_an_error_of_the_system(folder: Path) -> None:
    (folder / "link.npy").symlink_to("link.npy")
    with pytest.raises(OSError, match=r"link\.npy") as raised:
        add_files(folder / "a.npy", folder / "b.npy", folder / "link.npy")
    assert raised.value.errno == errno.ELOOP
    assert (folder / "link.npy").is_symlink()


@pytest.mark.parametrize("name", ["n" * 251 + ".npy", "\N{SNOWMAN}" * 83 + ".npy"])
def test_the_target_may_have_the_longest_name(name: str, folder: Path, temporary: str) -> None:
    add_files(folder / "a.npy", folder / "b.npy", folder / name)
    np.testing.assert_array_equal(np.load(folder / name), np.load(folder / "a.npy") + np.load(folder / "b.npy"))


@pytest.mark.parametrize("second", ["C", "F"])
def test_memory_is_bounded_by_the_window(second: Literal["C", "F"], tmp_path: Path) -> None:
    """By eight windows where the orders differ."""
    for name, order in (("a.npy", "C"), ("b.npy", second)):
        header = npy_bytes(np.zeros((1 << 12, 1 << 12), np.float32, order))[:128]
        with (tmp_path / name).open("wb") as file:
            file.write(header)
            file.truncate(len(header) + (4 << 24))
    tracemalloc.start()
    add_files(tmp_path / "a.npy", tmp_path / "b.npy", tmp_path / "c.npy", window=1 << 20 if second == "C" else 1 << 17)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    threads = max(files.FEWEST_THREADS, min(files.MOST_THREADS, _core.host_facts()["threads"]))
    assert peak < (3 * threads + 1) << 20
    assert (tmp_path / "c.npy").stat().st_size == len(header) + (4 << 24)


@pytest.mark.parametrize("order", ["C", "F"])
def test_memory_is_bounded_with_many_short_axes(order: Literal["C", "F"], tmp_path: Path) -> None:
    x = np.zeros((2,) * 24, np.int8, order)
    (tmp_path / "a.npy").write_bytes(npy_bytes(x))
    window = 64 << 10
    tracemalloc.start()
    try:
        add_files(tmp_path / "a.npy", tmp_path / "a.npy", tmp_path / "c.npy", window=window)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1 << 23
    assert (tmp_path / "c.npy").read_bytes() == npy_bytes(x)


def archive(**arrays: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


BAD_INPUTS: dict[str, tuple[Callable[[Path], object], type[Exception], str]] = {
    "missing": (lambda path: path.unlink(), FileNotFoundError, "a.npy"),
    "empty": (lambda path: path.write_bytes(b""), ValueError, "a.npy is not a .npy file: it is empty"),
    "text": (lambda path: path.write_text("1, 2, 3\n" * 100), ValueError, r"seems to be text; .*numpy\.loadtxt"),
    "arrays in an archive": (
        lambda path: path.write_bytes(archive(x=np.zeros(3), total=np.ones(1))), ValueError,
        r"zip archive of arrays \(.npz\) with x, total; save the one that you mean"),
    "an archive that is cut": (
        lambda path: path.write_bytes(b"PK\x03\x04" + bytes(40)), ValueError, "zip archive; save"),
    "pickle": (lambda path: path.write_bytes(pickle.dumps([1.0] * 9)), ValueError, "pickle, .* never unpickled"),
    "HDF5": (lambda path: path.write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(99)), ValueError, "HDF5"),
    "bytes": (lambda path: path.write_bytes(bytes(range(200, 256))), ValueError, r"it begins with b'\\xc8"),
    "cut in its first bytes": (lambda path: os.truncate(path, 5), ValueError, "cut short in its first bytes"),
    "header cut": (lambda path: os.truncate(path, 40), ValueError, "not a .npy file"),
    "no dict": (lambda path: path.write_bytes(path.read_bytes().replace(b"{", b"[")), ValueError, "not a .npy file"),
    "garbage for a header": (
        lambda path: path.write_bytes(b"\x93NUMPY\x01\x00\x10\x00" + b"(" * 16), ValueError, "not a .npy file"),
    "dtype of garbage": (lambda path: path.write_bytes(npy_header("('x',)", "(1000,)")), ValueError, "not a .npy file"),
    "negative extents": (
        lambda path: path.write_bytes(npy_header("'<f4'", "(-10, -100)") + bytes(4000)), ValueError, "negative"),
    "version 9": (lambda path: path.write_bytes(b"\x93NUMPY\x09\x00" + bytes(200)), ValueError, "9"),
    "a header of 3 GiB": (
        lambda path: path.write_bytes(b"\x93NUMPY\x02\x00\x00\x00\x00\xc0" + bytes(99)), ValueError,
        "its header has 3221225472 bytes"),
    "extents of truth": (
        lambda path: path.write_bytes(npy_header("'<f4'", "(True,)") + bytes(4)), ValueError,
        r"a\.npy is not .*shape \(True,\) has an extent that is negative or no integer"),
    "an extent that no array has": (
        lambda path: path.write_bytes(npy_header("'<f4'", f"({2**70}, 0, 1)")), ValueError,
        r"a\.npy is not .*no array of float32 can have its shape"),
    "extents that no array has, and no elements": (
        lambda path: path.write_bytes(npy_header("'<f4'", f"(0, {2**32}, {2**32}, 3)")), ValueError,
        r"a\.npy is not .*no array of float32 can have its shape"),
    "more axes than arrays have": (
        lambda path: path.write_bytes(npy_header("'<f4'", f"({'1, ' * 65})") + bytes(4)), ValueError,
        r"a\.npy is not .*no array of float32 can have its shape"),
    "one byte short": (lambda path: os.truncate(path, path.stat().st_size - 1), ValueError, "cut short"),
    "one byte long": (lambda path: os.truncate(path, path.stat().st_size + 1), ValueError, "too long"),
    "other shape": (lambda path: path.write_bytes(npy_bytes(np.zeros(999, np.float32))), ValueError, "shapes"),
    "same size, other shape": (
        lambda path: path.write_bytes(npy_bytes(np.zeros((10, 100), np.float32))), ValueError, "not broadcast"),
    "objects": (lambda path: np.save(path, np.array([None] * 1000)), ValueError, r"unpickled; .*astype"),
    "structured": (lambda path: np.save(path, np.zeros(1000, "i4,f4")), ValueError, "structured"),
    "elements of no bytes": (
        lambda path: path.write_bytes(npy_header("'|S0'", "(3_000_000,)")), ValueError, "have no bytes"),
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


def test_a_sum_too_large_for_an_array_touches_nothing(folder: Path) -> None:
    """Neither file has an element, nor would the sum; but NumPy could not load it."""
    for name, shape in (("a.npy", f"(0, {2**32}, 1)"), ("b.npy", f"(0, 1, {2**32})")):
        (folder / name).write_bytes(npy_header("'<f4'", shape))
    with pytest.raises(ValueError, match=r"no array can have the sum's shape, .*a\.npy has .*b\.npy has"):
        add_files(folder / "a.npy", folder / "b.npy", folder / "c.npy")
    assert_untouched(folder)


@pytest.mark.parametrize("window", [0, -5])
def test_a_window_of_no_bytes_is_refused(window: int, folder: Path) -> None:
    with pytest.raises(ValueError, match=f"window of {window} bytes; give a positive number"):
        add_files(folder / "a.npy", folder / "b.npy", folder / "c.npy", window=window)
    assert_untouched(folder)


def test_a_pipe_is_refused(folder: Path) -> None:
    """And not waited for: it has no writer."""
    os.mkfifo(folder / "pipe")
    with pytest.raises(ValueError, match="regular file"):
        add_files(folder / "pipe", folder / "b.npy", folder / "c.npy")


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


def said_without_privileges(*files: Path) -> str:
    """What a user who is not root is told of an addition of these."""
    command = [sys.executable, "-c", textwrap.dedent(WITHOUT_PRIVILEGES), *map(str, files)]
    return subprocess.run(command, env=child_environment(), capture_output=True, text=True, check=True).stdout


@pytest.fixture
def open_folder(folder: Path) -> Iterator[Path]:
    """A folder as `folder`, in which every user may make and rename files."""
    with TemporaryDirectory() as name:
        place = Path(name)
        if os.getuid() == 0 and not all(parent.stat().st_mode & stat.S_IXOTH for parent in place.parents):
            pytest.skip(f"no other user can enter {place}: a folder above it is root's alone")
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
    assert str(open_folder / name) in said_without_privileges(*(open_folder / x for x in sorted(before)))
    assert stat.S_IMODE((open_folder / name).stat().st_mode) == mode
    (open_folder / name).chmod(0o644)
    assert {path.name: path.read_bytes() for path in open_folder.iterdir()} == before


def test_a_folder_that_may_be_written_but_not_listed_takes_a_sum(open_folder: Path) -> None:
    """As numpy.save's: a drop box for files of others."""
    box = open_folder / "box"
    box.mkdir()
    box.chmod(0o333)
    assert said_without_privileges(open_folder / "a.npy", open_folder / "b.npy", box / "c.npy") == ""
    np.testing.assert_array_equal(np.load(box / "c.npy"), sum(np.load(open_folder / f"{x}.npy") for x in "ab"))

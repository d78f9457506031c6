"""Adding Zarr arrays: what cannot be added is told before anything is written."""

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from zarr.storage import MemoryStore
from zarr_arrays import fill_folder, make, names, read

import vecadd
from vecadd import _extras
from vecadd.stores import place

pytestmark = pytest.mark.no_native


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    fill_folder(tmp_path)
    return tmp_path


Spoil = Callable[[Path], object]
BAD: dict[str, tuple[Spoil, dict[str, Any], type[Exception], str]] = {
    "an operand that is missing": (
        lambda folder: shutil.rmtree(folder / "b.zarr"), {}, FileNotFoundError, "No such file"),
    "a folder that is no array": (
        lambda folder: (folder / "b.zarr/zarr.json").unlink(), {}, ValueError, r"b\.zarr holds no Zarr array"),
    "a group": (
        lambda folder: zarr.create_group(folder / "b.zarr", overwrite=True), {}, ValueError, "holds no Zarr array"),
    "metadata that is cut short": (
        lambda folder: (folder / "b.zarr/zarr.json").write_text('{"zarr_format": 3, "node_ty'), {}, ValueError,
        r"b\.zarr holds no Zarr array that can be read"),
    **{
        f"metadata that is {kind}": (
            lambda folder, text=text: (folder / "b.zarr/zarr.json").write_text(text), {}, ValueError,
            r"b\.zarr holds no Zarr array that can be read")
        for kind, text in (("a list", "[]"), ("null", "null"), ("a number", "3"), ("too deep", "[" * 9999))
    },
    "shapes": (
        lambda folder: make(folder / "b.zarr", np.ones(7), (3,), overwrite=True), {}, ValueError,
        r"shapes that do not broadcast: \(20, 15\) and \(7,\)"),
    "axes": (
        lambda folder: zarr.create_array(
            folder / "b.zarr", shape=(1,) * 33, chunks=(1,) * 33, dtype="f4", overwrite=True), {}, ValueError,
        r"the sum of \(20, 15\) and \(1, .* has 33 axes, and Zarr writes at most 32"),
    "text": (
        lambda folder: make(folder / "b.zarr", np.array([b"x"]), (1,), overwrite=True, zarr_format=2), {}, TypeError,
        "numbers, times and bool can be added"),
    "a loop that numpy.add has not": (
        lambda folder: make(folder / "b.zarr", np.zeros((20, 15), "M8[s]"), (5, 5), overwrite=True), {}, TypeError,
        "add"),
    "chunks of another rank": (lambda folder: None, {"chunks": (3,)}, ValueError, r"chunks of \(3,\) for a sum of 2"),
    "shards of parts of chunks": (
        lambda folder: None, {"chunks": (2, 2), "shards": (3, 4)}, ValueError, "do not consist of whole chunks"),
    "a compressor": (lambda folder: None, {"compressor": "zst"}, ValueError, "did you mean zstd"),
    "a compressor that is None": (
        lambda folder: None, {"compressor": None}, ValueError, "no compressor is called 'None'; did you mean none"),
    "chunks that no memory can hold": (
        lambda folder: None, {"chunks": (9999999999999, 9999999)}, ValueError, "more than memory can have; give sm"),
    "shards that no memory can hold": (
        lambda folder: None, {"chunks": (1, 1), "shards": (1 << 40, 1 << 40)}, ValueError, "shards of .* give smaller"),
    "memory for less than a chunk": (lambda folder: None, {"memory": 100}, ValueError, "100 bytes of memory a thread"),
    "no memory": (lambda folder: None, {"memory": 0}, ValueError, "give a positive number"),
    "a scheduler": (lambda folder: None, {"scheduler": "locl"}, ValueError, "no scheduler is called 'locl'"),
    "more local workers than processors have use for": (
        lambda folder: None, {"scheduler": "local:99999"}, ValueError, "local:99999 asks for 99999 workers"),
    "a target that is no array": (
        lambda folder: (shutil.rmtree(folder / "c.zarr"), (folder / "c.zarr").mkdir()), {}, ValueError,
        "exists and is no Zarr array; it is not replaced"),
    "a target whose metadata is a list": (
        lambda folder: (folder / "c.zarr" / "zarr.json").write_text("[]"), {}, ValueError, "is a Zarr group"),
    **{
        f"a target whose metadata is {kind}": (
            lambda folder, text=text: (folder / "c.zarr/zarr.json").write_bytes(text), {}, ValueError,
            r"c\.zarr exists, and its zarr\.json cannot be read .* remove it, or name another target")
        for kind, text in (("empty", b""), ("cut short", b'{"zarr_format": 3, "node_ty'), ("no text", b"\xff\xfe\xfd"))
    },
    "a target that is a group": (
        lambda folder: zarr.create_group(folder / "c.zarr", overwrite=True), {}, ValueError, "is a Zarr group"),
}  # fmt: skip


@pytest.mark.parametrize(("spoil", "keywords", "error", "says"), BAD.values(), ids=BAD.keys())
def test_what_cannot_be_added_is_told_before_anything_is_written(
    spoil: Spoil, keywords: dict[str, Any], error: type[Exception], says: str, folder: Path
) -> None:
    spoil(folder)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    with pytest.raises(error, match=says):
        vecadd.add_zarr(folder / "a.zarr", folder / "b.zarr", folder / "c.zarr", **keywords)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    assert [name for name in names(folder) if name.startswith(".")] == []


def test_a_target_in_a_folder_that_is_not_there_is_named(folder: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        vecadd.add_zarr(folder / "a.zarr", folder / "b.zarr", folder / "nowhere/c.zarr")


@pytest.mark.parametrize(
    ("name", "says"),
    [("plain", "is no folder to write c into"), ("o.zip", "a sum is not written into an archive: name the archive")],
)
def test_a_target_below_a_file_says_that_it_is_one(name: str, says: str, folder: Path) -> None:
    (folder / name).write_bytes(b"")
    with pytest.raises(NotADirectoryError, match=says) as raised:
        vecadd.add_zarr(folder / "a.zarr", folder / "b.zarr", folder / name / "group/c")
    assert raised.value.filename == str(folder / name)


def test_the_root_of_all_folders_is_no_target(folder: Path) -> None:
    with pytest.raises(ValueError, match=r"^/ exists and is no Zarr array; it is not replaced$"):
        vecadd.add_zarr(folder / "a.zarr", folder / "b.zarr", "/")


@pytest.mark.parametrize("name", ["s3://", "://", "c://x", "file:///"])
def test_a_url_without_a_protocol_or_a_path_is_no_local_folder(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    for a, out in (("a.zarr", name), (name, "c.zarr")):
        with pytest.raises(ValueError, match=f"^{name} is no URL of an array; write PROTOCOL://PATH$"):
            vecadd.add_zarr(a, "b.zarr", out)
    assert names(folder) == ["a.zarr", "b.zarr", "c.zarr"]


def test_a_store_that_cannot_rename_is_never_overwritten(folder: Path) -> None:
    store = MemoryStore()
    make(store, np.ones(3), (3,))
    with pytest.raises(ValueError, match="exists, and its store cannot rename"):
        vecadd.add_zarr(folder / "a.zarr", folder / "b.zarr", store)
    with pytest.raises(ValueError, match="is an operand, and its store cannot rename"):
        vecadd.add_zarr(store, store, store)
    np.testing.assert_array_equal(read(store), np.ones(3))


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP])
def test_an_array_is_not_replaced_where_two_folders_cannot_be_exchanged(
    number: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on NFS: it would be missing for a while."""

    def refuse(first: Path, second: Path) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(place, "exchange", refuse)
    with pytest.raises(ValueError, match="cannot exchange two folders at once"):
        vecadd.add_zarr(folder / "a.zarr", folder / "b.zarr", folder / "c.zarr")
    np.testing.assert_array_equal(read(folder / "c.zarr"), [7, 7, 7])
    assert names(folder) == ["a.zarr", "b.zarr", "c.zarr"]


def test_a_level_of_instructions_that_is_not_there_is_told_before_the_work(folder: Path, child: Any) -> None:
    code = (
        "import os, vecadd\n"
        f"os.chdir({str(folder)!r})\n"
        "try:\n"
        "    vecadd.add_zarr('a.zarr', 'b.zarr', 'd.zarr')\n"
        "except ValueError as error:\n"
        "    print(error)\n"
    )
    assert child(code, VECADD_SIMD="foo").stdout.startswith('VECADD_SIMD is "foo"')
    assert names(folder) == ["a.zarr", "b.zarr", "c.zarr"]


def test_a_disk_without_room_is_known_before_the_work(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the sum is not compressed: else its size is not known."""
    monkeypatch.setattr(place.shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10**6, 10**6, 1000))
    with pytest.raises(OSError, match="No space left on device: the sum takes 1200 bytes"):
        vecadd.add_zarr(folder / "a.zarr", folder / "b.zarr", folder / "c.zarr", compressor="none")
    vecadd.add_zarr(folder / "a.zarr", folder / "b.zarr", folder / "c.zarr")


def test_a_protocol_that_nothing_installed_reads_is_named(folder: Path) -> None:
    with pytest.raises(ImportError, match="nothing that is installed reads nosuch://"):
        vecadd.add_zarr("nosuch://a/b", folder / "b.zarr", folder / "c.zarr")


def test_a_package_that_is_missing_is_named_with_its_extra() -> None:
    with pytest.raises(ImportError, match=r"this needs no_such_zarr: pip install 'vecadd\[fleet\]'"):
        _extras.need("fleet", "this", "numpy", "no_such_zarr")

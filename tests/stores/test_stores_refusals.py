"""Adding Zarr arrays: what cannot be added is told before anything is written."""

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pytest
import zarr
from zarr.codecs import BytesCodec, ShardingCodec
from zarr.codecs import numcodecs as in_version_3
from zarr.storage import LocalStore, MemoryStore, ZipStore
from zarr_arrays import files, fill_folder, make, names, read

import vecadd
from vecadd import _command, _zarr

pytestmark = pytest.mark.no_native


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    fill_folder(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(folder: Path, error: type[Exception], says: str, a: Any, b: Any, out: Any, **keywords: Any) -> None:
    """The addition raises, and nothing in the folder is another."""
    before, links = files(folder), sorted(folder.rglob("*"))
    with pytest.raises(error, match=says):
        vecadd.add_zarr(a, b, out, **keywords)
    assert (files(folder), sorted(folder.rglob("*"))) == (before, links)


Spoil = Callable[[Path], object]
BAD: dict[str, tuple[Spoil, dict[str, Any], type[Exception], str]] = {
    "an operand that is missing": (
        lambda folder: shutil.rmtree(folder / "b.zarr"), {}, FileNotFoundError, "No such file"),
    "a folder that is no array": (
        lambda folder: (folder / "b.zarr/zarr.json").unlink(), {}, ValueError, r"b\.zarr is not a Zarr array"),
    "a group": (
        lambda folder: zarr.create_group(folder / "b.zarr", overwrite=True), {}, ValueError,
        r"of a group, name an array"),
    "an archive that is none": (
        lambda folder: (shutil.rmtree(folder / "b.zarr"), (folder / "b.zip").write_bytes(b"no archive"),
                        (folder / "b.zarr").symlink_to("b.zip/x")), {}, FileNotFoundError, "No such file"),
    **{
        f"metadata that is {kind}": (
            lambda folder, text=text: (folder / "b.zarr/zarr.json").write_text(text), {}, ValueError,
            r"b\.zarr is not a Zarr array that can be read")
        for kind, text in (("a list", "[]"), ("null", "null"), ("a number", "3"), ("too deep", "[" * 9999),
                           ("cut short", '{"zarr_format": 3, "node_ty'))
    },
    "shapes": (
        lambda folder: make(folder / "b.zarr", np.ones(7), (3,), overwrite=True), {}, ValueError,
        r"shapes that do not broadcast: \(20, 15\) and \(7,\)"),
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
    "chunks too large for any memory": (
        lambda folder: None, {"chunks": (9999999999999, 9999999)}, ValueError, "too big"),
    "a target that is no array": (
        lambda folder: (shutil.rmtree(folder / "c.zarr"), (folder / "c.zarr").mkdir()), {}, ValueError,
        r"c\.zarr exists and is not a Zarr array; it is not replaced"),
    "a target that is a file": (
        lambda folder: (shutil.rmtree(folder / "c.zarr"), (folder / "c.zarr").write_text("text")), {}, ValueError,
        r"c\.zarr exists and is not a Zarr array; it is not replaced"),
    **{
        f"a target whose metadata is {kind}": (
            lambda folder, text=text: (folder / "c.zarr/zarr.json").write_bytes(text), {}, ValueError,
            r"c\.zarr exists, and its zarr\.json cannot be read .* remove it, or name another target")
        for kind, text in (("empty", b""), ("cut short", b'{"zarr_format": 3, "node_ty'), ("no text", b"\xff\xfe\xfd"),
                           ("a list", b"[]"))
    },
    "a target that is a group": (
        lambda folder: zarr.create_group(folder / "c.zarr", overwrite=True), {}, ValueError, "exists and is a group"),
    "a target that is a group of version 2": (
        lambda folder: zarr.create_group(folder / "c.zarr", overwrite=True, zarr_format=2), {}, ValueError,
        "exists and is a group of version 2"),
}  # fmt: skip


@pytest.mark.parametrize(("spoil", "keywords", "error", "says"), BAD.values(), ids=BAD.keys())
def test_what_cannot_be_added_is_told_before_anything_is_written(
    spoil: Spoil, keywords: dict[str, Any], error: type[Exception], says: str, folder: Path
) -> None:
    spoil(folder)
    refused(folder, error, says, "a.zarr", "b.zarr", "c.zarr", **keywords)


OUT: dict[str, tuple[type[Exception], str]] = {
    "a.zarr": (ValueError, r"/a\.zarr is an operand; name another target"),
    "link": (ValueError, r"/a\.zarr is an operand; name another target"),
    "../{folder}/b.zarr": (ValueError, r"/b\.zarr is an operand"),
    "file://{path}/link/../a.zarr": (ValueError, r"/a\.zarr is an operand"),
    "a.zarr/c/0": (ValueError, r"a\.zarr/c/0 and the operand \S+a\.zarr are one within the other"),
    "link/x": (ValueError, r"a\.zarr/x and the operand \S+a\.zarr are one within the other"),
    "c.zarr/c/x": (ValueError, r"c\.zarr/c/x would be within the Zarr array \S+/c\.zarr"),
    "c.zip": (ValueError, r"c\.zip: a sum is not written into a zip archive; write a folder"),
    "group.zip": (ValueError, "a sum is not written into a zip archive"),
    "group.zip/x": (FileNotFoundError, "No such folder to write x into"),
    "nowhere/c.zarr": (FileNotFoundError, r"No such folder to write c\.zarr into: '\S+/nowhere'"),
    "/": (ValueError, "^/ exists and is not a Zarr array; it is not replaced$"),
    "c.zarr/c/0": (ValueError, r"c\.zarr/c/0 exists and is not a Zarr array"),
    "memory://b": (ValueError, r"memory://b is an operand"),
    "memory://b/c/x": (ValueError, "memory://b/c/x and the operand memory://b are one within the other"),
    "memory://": (ValueError, "memory:// is not the URL of an array"),
}


@pytest.mark.parametrize(("out", "error", "says"), [(out, *found) for out, found in OUT.items()], ids=OUT.keys())
def test_a_target_that_cannot_be_replaced_is_refused(out: str, error: type[Exception], says: str, folder: Path) -> None:
    (folder / "link").symlink_to("a.zarr")
    with ZipStore(folder / "group.zip", mode="w") as store:
        zarr.create_group(store)
    name = out.format(folder=folder.name, path=folder)
    b = make("memory://b", read("b.zarr"), (5, 5), overwrite=True).store if "memory" in out else None
    refused(folder, error, says, "a.zarr", "b.zarr" if b is None else "memory://b", name)


def test_an_operand_by_another_name_is_the_target_all_the_same(folder: Path) -> None:
    (folder / "link").symlink_to("a.zarr")
    for operands in (("link", "b.zarr"), ("b.zarr", f"../{folder.name}/a.zarr"), ("b.zarr", LocalStore("link"))):
        refused(folder, ValueError, r"/a\.zarr is an operand; name another target", *operands, "a.zarr")


def test_a_target_that_is_a_mount_point_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "is_mount", lambda path: path.name == "c.zarr")
    refused(folder, ValueError, "c.zarr is a mount point", "a.zarr", "b.zarr", "c.zarr")


def test_a_damaged_group_above_the_target_is_not_minded(folder: Path) -> None:
    (folder / "group").mkdir()
    (folder / "group/zarr.json").write_text("damaged")
    vecadd.add_zarr("a.zarr", "b.zarr", "group/c")
    np.testing.assert_array_equal(read("group/c"), read("a.zarr") + read("b.zarr"))


def test_an_operand_within_the_target_is_refused(folder: Path) -> None:
    make("c.zarr/inner", np.ones(15), (3,))
    refused(folder, ValueError, "are one within the other", "a.zarr", "c.zarr/inner", "c.zarr")


def test_stores_that_are_archives_or_not_empty_are_refused(folder: Path) -> None:
    store = MemoryStore()
    make(store, np.ones(3), (3,))
    refused(folder, ValueError, "is not empty, and its store cannot exchange", "a.zarr", "b.zarr", store)
    refused(folder, ValueError, "is not empty, and its store cannot exchange", store, store, store)
    np.testing.assert_array_equal(read(store), np.ones(3))
    refused(folder, ValueError, r"/a\.zarr is an operand", "a.zarr", "b.zarr", LocalStore("a.zarr"))
    with ZipStore(folder / "c.zip", mode="w") as archive:
        make(archive, np.ones(3), (3,))
        refused(folder, ValueError, "not written into a zip archive", "a.zarr", "b.zarr", archive)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_target_that_is_write_protected_is_refused(folder: Path) -> None:
    (folder / "c.zarr").chmod(0o500)
    refused(folder, PermissionError, "write-protected", "a.zarr", "b.zarr", "c.zarr")


PACKED: dict[str, tuple[str, dict[str, Any], str | None]] = {
    "scaled": ("i2", {"scale_factor": 0.1}, "scale_factor"),
    "with an offset": ("f4", {"add_offset": 5}, "add_offset"),
    "with a missing value": ("i2", {"missing_value": -999}, "missing_value"),
    "with a fill value": ("f4", {"_FillValue": -999.0}, "_FillValue"),
    "with a fill value in version 3": ("f4", {"_FillValue": "AAAAAAA4j8A="}, "_FillValue"),
    "unsigned": ("i1", {"_Unsigned": "true"}, "_Unsigned"),
    "a time": ("i8", {"units": "hours since 2000-01-01", "calendar": "proleptic_gregorian"}, "units"),
    "all": ("i2", {"_FillValue": 0, "scale_factor": 2, "units": "days since 1970-01-01"},
            "scale_factor, _FillValue, units"),
    "with a NaN for what is missing": ("f4", {"_FillValue": "NaN"}, None),
    "with xarray's NaN": ("f8", {"_FillValue": "AAAAAAAA+H8="}, None),
    "with a unit": ("i2", {"units": "m"}, None),
}  # fmt: skip


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize(("dtype", "attributes", "named"), PACKED.values(), ids=PACKED.keys())
def test_packed_numbers_are_refused(
    dtype: str, attributes: dict[str, Any], named: str | None, zarr_format: int, folder: Path
) -> None:
    make("p.zarr", np.ones((20, 15), dtype), (5, 5), zarr_format=zarr_format, attributes=attributes)
    if named is None:
        vecadd.add_zarr("a.zarr", "p.zarr", "d.zarr")
        np.testing.assert_array_equal(read("d.zarr"), read("a.zarr") + 1)
        return
    for operands in (("a.zarr", "p.zarr"), ("p.zarr", "a.zarr")):
        says = rf"p\.zarr is packed: its attributes {named} \(CF\) .* xarray\.open_zarr .* vecadd\.dask\.add"
        refused(folder, ValueError, says, *operands, "c.zarr")


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_what_xarray_packs_is_refused_and_what_it_does_not_is_added(zarr_format: Any, folder: Path) -> None:
    xarray = pytest.importorskip("xarray")
    times = np.array(["2000-01-01", "2000-01-03"], "M8[ns]")
    x = xarray.Dataset({"plain": ("t", [1.5, np.nan]), "packed": ("t", [1.5, np.nan])}, coords={"t": times})
    packed = {"dtype": "i2", "scale_factor": 0.5, "_FillValue": -1}
    x.to_zarr("x.zarr", zarr_format=zarr_format, encoding={"packed": packed}, consolidated=False)
    vecadd.add_zarr("x.zarr/plain", "x.zarr/plain", "d.zarr")
    np.testing.assert_array_equal(read("d.zarr"), [3, np.nan])
    for name in ("packed", "t"):
        refused(folder, ValueError, "is packed", f"x.zarr/{name}", f"x.zarr/{name}", "d.zarr")


LOSSY: dict[str, tuple[int, Callable[[], dict[str, Any]]]] = {
    "fixedscaleoffset": (3, lambda: {
        "filters": [in_version_3.FixedScaleOffset(offset=0, scale=1, dtype="<f8", astype="<u1")]}),
    "astype": (3, lambda: {"filters": [in_version_3.AsType(encode_dtype="<f4", decode_dtype="<f8")]}),
    "bitround": (3, lambda: {"filters": [in_version_3.BitRound(keepbits=3)]}),
    "quantize": (3, lambda: {"filters": [in_version_3.Quantize(digits=1, dtype="<f8")]}),
    "delta": (3, lambda: {"filters": [in_version_3.Delta(dtype="<f8")]}),
    "astype in shards": (3, lambda: {
        "shards": (4,), "filters": [in_version_3.AsType(encode_dtype="<f4", decode_dtype="<f8")]}),
    "bitround in shards within shards": (3, lambda: {
        "shards": (4,), "compressors": None, "serializer": ShardingCodec(
            chunk_shape=(1,), codecs=[in_version_3.BitRound(keepbits=3), BytesCodec()])}),
    "fixedscaleoffset of version 2": (2, lambda: {
        "filters": [numcodecs.FixedScaleOffset(offset=0, scale=1, dtype="<f8", astype="<u1")]}),
    "quantize of version 2": (2, lambda: {"filters": [numcodecs.Quantize(digits=1, dtype="<f8")]}),
    "lzma of version 2": (2, lambda: {"compressors": numcodecs.LZMA()}),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:Numcodecs codecs are not in the Zarr version 3 specification")
@pytest.mark.parametrize("kind", LOSSY)
def test_a_sum_goes_through_no_codec_that_may_lose_bits(kind: str, folder: Path) -> None:
    """The operand is what Zarr reads of it; its sum, 270 here, need not fit into what the operand was stored in."""
    zarr_format, stored = LOSSY[kind]
    x = np.array([1, 2.125, 100, 135])
    make("x.zarr", x, (2,), zarr_format=zarr_format, **stored())
    read_back = read("x.zarr")
    says = rf"{kind.split()[0]} of a.* name (a compressor|one): none, zstd, blosc, gzip"
    refused(folder, ValueError, says, "x.zarr", "x.zarr", "d.zarr")
    vecadd.add_zarr("x.zarr", "x.zarr", "d.zarr", compressor="zstd")
    np.testing.assert_array_equal(read("d.zarr"), read_back + read_back)


@pytest.mark.parametrize("within", ["group", "group/inner"])
def test_consolidated_metadata_that_will_not_fit_are_told_before_the_work(within: str, folder: Path) -> None:
    zarr.create_group("group/inner")
    zarr.create_group("group")
    with pytest.warns(UserWarning, match="Consolidated metadata"):
        zarr.consolidate_metadata("group")
    says = rf"the consolidated metadata of {folder}/group will not say what .*call zarr\.consolidate_metadata\("
    refused(folder, UserWarning, says, "a.zarr", "b.zarr", f"{within}/c")
    with pytest.warns(UserWarning, match=says) as told:
        vecadd.add_zarr("a.zarr", "b.zarr", f"{within}/c")
    assert [warning.filename for warning in told] == [__file__]
    np.testing.assert_array_equal(read(f"{within}/c"), read("a.zarr") + read("b.zarr"))


def test_a_group_in_an_object_store_is_looked_at_too() -> None:
    x = make("memory://told/a", np.ones(3), (3,), overwrite=True)
    zarr.create_group("memory://told", overwrite=False)
    with pytest.warns(UserWarning, match="Consolidated metadata"):
        zarr.consolidate_metadata("memory://told")
    with pytest.warns(UserWarning, match="consolidated metadata of memory://told will not say what memory://told/x/y"):
        vecadd.add_zarr("memory://told/a", "memory://told/a", "memory://told/x/y")
    np.testing.assert_array_equal(read("memory://told/x/y"), 2 * x[:])


def test_a_group_of_version_2_is_said_not_to_list_the_sum(folder: Path) -> None:
    zarr.create_group("group", zarr_format=2)
    refused(folder, UserWarning, "a group of version 2, which does not list a sum", "a.zarr", "b.zarr", "group/c")


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP])
def test_an_array_is_not_replaced_where_two_folders_cannot_be_exchanged(
    number: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on NFS: it would be missing for a while. A new name is written there."""

    def refuse(first: Path, second: Path) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(_zarr, "exchange", refuse)
    refused(folder, ValueError, "cannot exchange two folders .* remove it", "a.zarr", "b.zarr", "c.zarr")
    vecadd.add_zarr("a.zarr", "b.zarr", "new.zarr")
    assert names(folder) == ["a.zarr", "b.zarr", "c.zarr", "new.zarr"]


def test_a_level_of_instructions_that_is_not_there_is_told(folder: Path, child: Any) -> None:
    code = (
        "import vecadd\n"
        "try:\n"
        "    vecadd.add_zarr('a.zarr', 'b.zarr', 'd.zarr')\n"
        "except ValueError as error:\n"
        "    print(error)\n"
    )
    assert child(code, VECADD_SIMD="foo").stdout.startswith('VECADD_SIMD is "foo"')
    assert names(folder) == ["a.zarr", "b.zarr", "c.zarr"]


def test_a_protocol_that_nothing_installed_reads_is_named(folder: Path) -> None:
    refused(folder, ImportError, "nosuch:// needs a package that fsspec", "nosuch://a/b", "b.zarr", "c.zarr")


def test_a_package_that_is_missing_is_named_with_its_extra() -> None:
    with pytest.raises(ImportError, match=r"this needs no_such_zarr: pip install 'vecadd\[fleet\]'"):
        _command.need("this", {"numpy": "fleet", "no_such_zarr": "fleet"})

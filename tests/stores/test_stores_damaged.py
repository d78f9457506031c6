"""Adding Zarr arrays of which a chunk is damaged: the error names the operand and the chunk."""

import errno
import re
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pytest
import zarr
from zarr.codecs import BloscCodec, Crc32cCodec, GzipCodec, ZstdCodec
from zarr_arrays import fill_folder, make, names, read

import vecadd
from vecadd import cli

pytestmark = pytest.mark.no_native

NOT_ADDED = "elements [0:20, 0:15] of the sum were not added; resume=True (--resume) goes on from what is finished"

STORED: dict[str, dict[str, Any]] = {
    "gzip": {"compressors": GzipCodec()},
    "zstd": {"compressors": ZstdCodec(checksum=True)},
    "blosc": {"compressors": BloscCodec()},
    "crc32c": {"compressors": Crc32cCodec()},
    "no codec, a part": {"compressors": None},
    "gzip of version 2": {"compressors": numcodecs.GZip(), "zarr_format": 2},
    "zlib of version 2": {"compressors": numcodecs.Zlib(), "zarr_format": 2},
    "shards": {"shards": (10, 5)},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    fill_folder(tmp_path)
    return tmp_path


def add(folder: Path, **keywords: Any) -> None:
    vecadd.add_zarr(folder / "a.zarr", folder / "b.zarr", folder / "c.zarr", chunks=(20, 15), **keywords)


@pytest.mark.parametrize("operand", ["a.zarr", "b.zarr"])
@pytest.mark.parametrize("stored", STORED.values(), ids=STORED.keys())
def test_a_damaged_chunk_is_named_with_its_operand_and_resume_goes_on(
    stored: dict[str, Any], operand: str, folder: Path
) -> None:
    """All chunks of an operand are read for the one piece."""
    x = read(folder / operand)
    make(folder / operand, x, (5, 5), overwrite=True, **stored)
    key = "1.2" if "zarr_format" in stored else "c/1/2"
    whole = (folder / operand / key).read_bytes()
    (folder / operand / key).write_bytes(b"no such chunk")
    what = "shard" if "shards" in stored else "chunk"
    with pytest.raises(
        OSError, match=rf"^\[Errno 5\] {what} {key} cannot be read: \w.*: {re.escape(NOT_ADDED)}"
    ) as raised:
        add(folder)
    assert (raised.value.errno, raised.value.filename) == (errno.EIO, str(folder / operand))
    np.testing.assert_array_equal(read(folder / "c.zarr"), [7, 7, 7])
    (folder / operand / key).write_bytes(whole)
    add(folder, resume=True)
    np.testing.assert_array_equal(read(folder / "c.zarr"), read(folder / "a.zarr") + read(folder / "b.zarr"))
    assert names(folder) == ["a.zarr", "b.zarr", "c.zarr"]


def test_a_damaged_chunk_is_one_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make(folder / "b.zarr", read(folder / "b.zarr"), (20, 15), overwrite=True, compressors=GzipCodec())
    (folder / "b.zarr/c/0/0").write_bytes(b"no such chunk")
    status = cli.main(["add", *(f"{folder}/{name}.zarr" for name in "ab"), "-o", f"{folder}/d.zarr", "--chunks=20,15"])
    assert status == 1
    said = f"{folder}/b.zarr: chunk c/0/0 cannot be read: BadGzipFile: Not a gzipped file (b'no'): {NOT_ADDED}"
    assert capsys.readouterr().err == f"vecadd add: {said}\n"


FAILED: dict[str, tuple[Exception, type[Exception], str]] = {
    "without a number": (
        OSError("connection refused"), OSError,
        "[Errno 5] elements [0:20, 0:15] cannot be read: OSError: connection refused: {NOT_ADDED}: '{folder}/a.zarr'"),
    "with a number": (
        TimeoutError(errno.ETIMEDOUT, "Connection timed out"), TimeoutError,
        "[Errno 110] elements [0:20, 0:15] cannot be read: Connection timed out: {NOT_ADDED}: '{folder}/a.zarr'"),
    "with the file": (
        PermissionError(errno.EACCES, "Permission denied", "a.zarr/c/0/0"), PermissionError,
        "[Errno 13] Permission denied: {NOT_ADDED}: 'a.zarr/c/0/0'"),
    "no memory": (MemoryError(), MemoryError, "no memory: {NOT_ADDED}"),
}  # fmt: skip


@pytest.mark.parametrize(("error", "kind", "says"), FAILED.values(), ids=FAILED.keys())
def test_a_read_that_fails_once_names_what_is_known(
    error: Exception, kind: type[Exception], says: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each chunk by itself can be read when it is looked for."""
    get, failures = zarr.Array.__getitem__, [error]

    def fail(self: "zarr.Array[Any]", box: Any) -> Any:
        if failures:
            raise failures.pop()
        return get(self, box)

    monkeypatch.setattr(zarr.Array, "__getitem__", fail)
    with pytest.raises(kind) as raised:
        add(folder)
    assert str(raised.value) == says.format(NOT_ADDED=NOT_ADDED, folder=folder)

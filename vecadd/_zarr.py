"""How `vecadd.add_zarr` adds: it refuses what it must, describes the sum, has Dask add it box by box, and publishes it.

A local sum is written into a hidden folder beside its target and takes its place by one exchange, or one rename where
nothing was there. An object store has neither: there the chunks go into an empty prefix, and zarr.json, without which
they are no array, comes last.
"""

import contextlib
import ctypes
import errno
import json
import math
import os
import re
import secrets
import shutil
import stat
import warnings
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from zarr.abc.store import Store
from zarr.codecs import BloscCodec, GzipCodec, ShardingCodec, ZstdCodec
from zarr.core.buffer import default_buffer_prototype
from zarr.core.metadata import ArrayV3Metadata
from zarr.core.sync import sync as wait_for  # in Zarr's own loop, to which fsspec's connections belong
from zarr.storage import FsspecStore, LocalStore, MemoryStore, StorePath, ZipStore

from vecadd import _core
from vecadd._command import UsageError, unknown
from vecadd._replace import temporary_name
from vecadd.dask import dask_threads
from vecadd.files import shape_and_dtype

dask: Any = import_module("dask")

Array = zarr.Array[Any]
Name = str | os.PathLike[str] | Store
Box = tuple[slice, ...]
Shape = tuple[int, ...]
Extents = Sequence[int] | None

METADATA = "zarr.json"
UNDER_WAY = ".vecadd"  # a key beside the chunks while they are written; its value names the addition

MOST_THREADS = 4  # each has both operands' part of a box and the sum; Zarr decodes and encodes on threads of its own
MOST_TASKS = 4096
ENOUGH = 16 << 20  # bytes of a box: several chunks are then read at once, and a task's own cost does not count

# Zarr's compressors that can be asked for.
COMPRESSORS = {"none": None, "zstd": ZstdCodec(), "blosc": BloscCodec(), "gzip": GzipCodec()}

# The codecs that give back every bit, whatever the dtype. Others may not (delta does for integers alone).
LOSSLESS = {
    *("bytes", "transpose", "sharding_indexed", "zstd", "blosc", "gzip", "zlib", "lz4", "bz2", "lzma", "shuffle"),
    *("crc32", "crc32c", "adler32", "fletcher32", "jenkins_lookup3"),
}

# Attributes by which CF gives the numbers of an array another meaning, and how NaN is written in them: by Zarr, and
# by xarray in version 3. A NaN that means "missing" is one in the sum, too.
PACKED = ("scale_factor", "add_offset", "_FillValue", "missing_value", "_Unsigned")
NAN = ("NaN", "AAAAAAAA+H8=")

# What is raised where no array is, for an archive or metadata that are damaged or of a later version, and for chunks of
# several shapes.
_UNREADABLE = (
    *(FileNotFoundError, zipfile.BadZipFile),
    *(ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError),
)

_MEANT_AS_URL = re.compile("[^/]*://")
_URL = re.compile(r"[a-z][a-z0-9+.-]+://.*[^/]", re.IGNORECASE | re.DOTALL)  # one letter: fsspec takes c://x for a path

_EXCHANGE, _AT_FDCWD = 2, -100  # of renameat2


@dataclass(frozen=True)
class Work:
    """What every task needs to know. It can be pickled where no name is a store object."""

    a: str | Store
    b: str | Store
    working: str | Store  # where the chunks go
    described: dict[str, Any]
    box: Shape
    addition: bytes  # the value of UNDER_WAY
    sync: bool
    errors: dict[str, Any]  # numpy.errstate of the caller


def add_arrays(a: Name, b: Name, out: Name, chunks: Extents, shards: Extents, compressor: str, *, sync: bool) -> None:
    """Adds as `vecadd.add_zarr` says."""
    names = x_name, y_name, target = absolute_name(a), absolute_name(b), _resolved(absolute_name(out))
    x, y = open_operand(x_name), open_operand(y_name)
    described = describe_sum(x, y, chunks, shards, compressor)
    _refuse_target(target, names[:2])
    total = open_target(described, MemoryStore())
    box = box_shape(total.shape, total.shards or total.chunks, total.dtype.itemsize)
    errors = {**np.geterr(), "call": np.geterrcall()}
    with _prefix(target) if is_remote(target) else _folder(Path(str(target)), sync) as working:
        work = Work(x_name, y_name, working, described, box, secrets.token_hex(8).encode(), sync, errors)
        _compute(work, here=any(isinstance(name, Store) for name in names))
        write_key(open_store(working, read_only=False)[0], METADATA, json.dumps(described, indent=2).encode())


# --- Names


def absolute_name(name: Name) -> str | Store:
    """An absolute path, a URL, or a store object. Raises UsageError for a URL without a protocol or a
    path, which would otherwise be the path of a local folder called "s3:", for example."""
    if isinstance(name, LocalStore):
        name = name.root
    if isinstance(name, Store):
        return name
    text = os.fspath(name)
    if _MEANT_AS_URL.match(text) and not _URL.match(text):
        raise UsageError(f"{text} is not the URL of an array; write PROTOCOL://PATH")
    text = re.sub("^(file|local)://", "", text, flags=re.IGNORECASE)  # a path: its name may contain #, ? and %
    return text.rstrip("/") if _URL.match(text) else str(Path(text).absolute())


def _resolved(name: str | Store) -> str | Store:
    """The one name of what is there: a path without links and ".."."""
    return name if isinstance(name, Store) or is_remote(name) else str(Path(name).resolve())


def is_remote(name: str | Store) -> bool:
    return isinstance(name, Store) or "://" in name


def open_store(name: str | Store, *, read_only: bool) -> tuple[Store, str]:
    """The store that `absolute_name` means, and the path of the array in it."""
    if isinstance(name, Store):
        return name, ""
    if is_remote(name):
        try:
            return FsspecStore.from_url(name, read_only=read_only), ""
        except (ImportError, ValueError) as error:
            protocol = name.partition("://")[0]
            raise ImportError(f"{protocol}:// needs a package that fsspec reads it with: {error}") from None
    path = Path(name)
    for archive in (path, *path.parents):
        if archive.suffix == ".zip" and archive.is_file():
            return ZipStore(archive, mode="r"), "/".join(path.relative_to(archive).parts)
    return LocalStore(path, read_only=read_only), ""


def read_key(store: Store, key: str) -> bytes | None:
    """The value of a key of the store; None where there is none."""
    found = wait_for(store.get(key, default_buffer_prototype()))
    return None if found is None else bytes(found.to_bytes())


def write_key(store: Store, key: str, value: bytes) -> None:
    """Sets a key of the store."""
    wait_for(store.set(key, default_buffer_prototype().buffer.from_bytes(value)))


# --- What is refused


def open_operand(name: str | Store) -> Array:
    """The array to read from. Raises ValueError for what is not a Zarr array of plain numbers, and OSError where
    nothing is there."""
    if isinstance(name, str) and not is_remote(name) and not Path(name).exists() and ".zip/" not in name:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
    try:
        store, path = open_store(name, read_only=True)
        array = zarr.open_array(store=store, path=path, mode="r")
        chunks = array.chunks
        attributes = array.attrs.asdict()
    except _UNREADABLE as error:
        raise ValueError(
            f"{name} is not a Zarr array that can be read: {error}; of a group, name an array (STORE/ARRAY)"
        ) from error
    assert len(chunks) == array.ndim
    if array.dtype.kind not in "biufcmM":
        raise TypeError(f"{name} has the dtype {array.dtype}; numbers, times and bool can be added")
    packed = [key for key in PACKED if key in attributes and not _is_nan(attributes[key])]
    if " since " in str(attributes.get("units")):
        packed.append("units")
    if packed:
        raise ValueError(
            f"{name} is packed: its attributes {', '.join(packed)} (CF) give its numbers another meaning, which a sum "
            "of the numbers would not have. Add what xarray.open_zarr makes of it: vecadd.dask.add(x, y).to_zarr(...)"
        )
    return array


def _is_nan(value: Any) -> bool:
    return value in NAN if isinstance(value, str) else bool(value != value)


def _refuse_target(out: str | Store, operands: Iterable[str | Store]) -> None:
    """Raises an OSError or ValueError where the sum cannot be written; warns where a group will not list it."""
    if isinstance(out, ZipStore) or (isinstance(out, str) and Path(out).suffix == ".zip"):
        raise UsageError(f"{out}: a sum is not written into a zip archive; write a folder, and pack that")
    if isinstance(out, Store):
        return
    for operand in map(_resolved, operands):
        if isinstance(operand, str) and (_is_within(out, operand) or _is_within(operand, out)):
            where = "is an operand" if out == operand else f"and the operand {operand} are one within the other"
            raise ValueError(f"{out} {where}; name another target")
    if not is_remote(out):
        _refuse_path(Path(out))
    for parent in _parents(out):
        _refuse_parent(parent, out)


def _is_within(inner: str, outer: str) -> bool:
    return inner == outer or inner.startswith(f"{outer}/")


def _parents(name: str) -> Iterator[str]:
    if not is_remote(name):
        yield from map(str, Path(name).parents)
        return
    while not (name := name.rpartition("/")[0]).endswith("/"):
        yield name


def _refuse_path(path: Path) -> None:
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, f"No such folder to write {path.name} into", str(path.parent))
    if not path.exists():
        return
    kind = _kind_of(str(path))
    if kind != "array":
        raise ValueError(f"{path} exists and is {kind or 'not a Zarr array'}; it is not replaced")
    if not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, "exists and is write-protected", str(path))
    if path.is_mount():
        raise ValueError(f"{path} is a mount point, which cannot be exchanged; name another target")


def _refuse_parent(parent: str, out: str) -> None:
    kind = None
    with contextlib.suppress(OSError, ValueError):  # what is above may be closed to this user, or damaged
        kind = _kind_of(parent)
    if kind == "array":
        raise ValueError(f"{out} would be within the Zarr array {parent}; name another target")
    if kind == "a group of version 2":
        warnings.warn(f"{parent} is {kind}, which does not list a sum: sums are of version 3", stacklevel=5)
    if kind == "a consolidated group":
        warnings.warn(
            f"the consolidated metadata of {parent} will not say what {out} is: call "
            f"zarr.consolidate_metadata({parent!r}) after the addition",
            stacklevel=5,
        )


def _kind_of(name: str) -> str | None:
    """What is there: "array", one of several kinds of group, or None for neither."""
    store, _ = open_store(name, read_only=True)
    if (document := read_key(store, METADATA)) is not None:
        try:
            found = json.loads(document)
            if found["node_type"] == "array":
                return "array"
            return "a consolidated group" if found.get("consolidated_metadata") else "a group"
        except (KeyError, RecursionError, TypeError, ValueError) as error:
            raise ValueError(
                f"{name} exists, and its {METADATA} cannot be read ({type(error).__name__}: {error}); it is not "
                "replaced: remove it, or name another target"
            ) from error
    if read_key(store, ".zarray") is not None:
        return "array"
    return "a group of version 2" if read_key(store, ".zgroup") is not None else None


# --- What the sum is


def describe_sum(a: Array, b: Array, chunks: Extents, shards: Extents, compressor: str) -> dict[str, Any]:
    """The metadata document of the sum of two arrays, in Zarr's version 3.

    Raises ValueError where the shapes do not broadcast or a codec is not known to be lossless, UsageError for chunks,
    shards and compressors that cannot be, and TypeError where numpy.add has no loop for the dtypes.
    """
    shape, dtype = shape_and_dtype(a, b, f"{a.shape} and {b.shape}")
    like = next((array for array in (a, b) if array.shape == shape), a)
    whole = like.shape == shape
    chunks_now = _checked("chunks", chunks, len(shape))
    shards_now = _checked("shards", shards, len(shape))
    if whole and chunks_now is None and shards_now is None:
        shards_now = like.shards
    if chunks_now is None:
        chunks_now = tuple(max(1, chunk) for chunk in like.chunks) if whole else _chunks(shape, a, b)
    if shards_now and any(shard % chunk for shard, chunk in zip(shards_now, chunks_now, strict=True)):
        raise UsageError(f"shards of {shards_now} do not consist of whole chunks of {chunks_now}")
    store = MemoryStore()
    zarr.create_array(
        store,
        shape=shape,
        dtype=dtype,
        chunks=chunks_now,
        shards=shards_now or None,  # () without axes, where Zarr cannot write shards: the only chunk is as good
        fill_value=_fill_value(a, b, dtype),
        dimension_names=_dimension_names(like) if whole else None,
        **_codecs(like, dtype, compressor, whole=whole),
    )
    document = read_key(store, METADATA)
    assert document is not None
    described: dict[str, Any] = json.loads(document)
    return described


def open_target(described: dict[str, Any], store: Store) -> Array:
    """The array of that description in a store, to write to: its metadata document need not be there yet."""
    metadata = ArrayV3Metadata.from_dict(described)
    array = zarr.Array(zarr.AsyncArray(metadata, StorePath(store)))
    # Zarr leaves out chunks that only have the fill value, and treats -0.0 in complex numbers, and NaNs with another
    # payload, as that value.
    if array.dtype.kind in "biu" or (array.dtype.kind == "f" and not np.isnan(array.fill_value)):
        return array
    return zarr.Array(zarr.AsyncArray(metadata, StorePath(store), {"write_empty_chunks": True}))


def _checked(what: str, given: Extents, ndim: int) -> Shape | None:
    if given is None:
        return None
    if len(given) != ndim or any(extent < 1 for extent in given):
        raise UsageError(f"{what} of {tuple(given)} for a sum of {ndim} axes: give one extent from 1 on for each axis")
    return tuple(given)


def _chunks(shape: Shape, a: Array, b: Array) -> Shape:
    """Along each axis those of the first operand that is as long as the sum."""
    chunks = []
    for at in range(-len(shape), 0):
        sides = [array for array in (a, b) if array.ndim >= -at and array.shape[at] == shape[at]]
        chunks.append(max(1, sides[0].chunks[at]))
    return tuple(chunks)


def _fill_value(a: Array, b: Array, dtype: np.dtype[Any]) -> Any:
    """The sum of the two: a chunk that both operands leave out is one that the sum may leave out."""
    if dtype.kind in "mM" or a.fill_value is None or b.fill_value is None:
        return None if dtype.kind in "mM" else dtype.type(0)
    with np.errstate(all="ignore"):
        return np.add(np.asarray(a.fill_value, a.dtype), np.asarray(b.fill_value, b.dtype))[()]


def _dimension_names(array: Array) -> Any:
    if array.metadata.zarr_format == 3:
        return array.metadata.dimension_names
    names = array.attrs.asdict().get("_ARRAY_DIMENSIONS")  # where xarray keeps them in version 2
    return names if isinstance(names, list) and len(names) == array.ndim else None


def _codecs(like: Array, dtype: np.dtype[Any], compressor: str, *, whole: bool) -> dict[str, Any]:
    """The codecs' arguments of zarr.create_array; ``whole`` says that the sum has the shape of the array."""
    if compressor != "keep":
        if not isinstance(compressor, str) or compressor not in COMPRESSORS:
            raise UsageError(unknown("compressor", str(compressor), ("keep", *COMPRESSORS)))
        return {"compressors": COMPRESSORS[compressor]}
    if like.metadata.zarr_format == 2:
        _refuse_lossy(codec.codec_id for codec in (*like.filters, *like.compressors))
        return {"compressors": [_of_version_3(codec.get_config()) for codec in like.compressors]}  # type: ignore[union-attr]
    _refuse_lossy(_names_of(like.metadata.codecs))
    if like.dtype == dtype and whole:
        return {"compressors": like.compressors, "filters": like.filters, "serializer": like.serializer}
    # Blosc shuffles the bytes of elements, which are of another size now.
    return {
        "compressors": [
            replace(codec, typesize=dtype.itemsize) if isinstance(codec, BloscCodec) else codec
            for codec in like.compressors
        ]
    }


def _names_of(codecs: Iterable[Any]) -> Iterator[str]:
    for codec in codecs:
        yield str(codec.to_dict()["name"]).removeprefix("numcodecs.")
        if isinstance(codec, ShardingCodec):
            yield from _names_of(codec.codecs)


def _refuse_lossy(names: Iterable[str]) -> None:
    lossy = [name for name in names if name not in LOSSLESS]
    if lossy:
        raise ValueError(
            f"the codec {' and '.join(lossy)} of an operand may lose bits, so the sum does not keep it; name a "
            f"compressor: {', '.join(COMPRESSORS)}"
        )


def _of_version_3(config: dict[str, Any]) -> Any:
    """The codec of version 3 that a compressor of version 2 is."""
    match config["id"]:
        case "zstd":
            return ZstdCodec(level=config.get("level", 0), checksum=config.get("checksum", False))
        case "gzip" | "zlib":
            return GzipCodec(level=config.get("level", 1))
        case "blosc":
            shuffle: Any = {0: "noshuffle", 2: "bitshuffle"}.get(config.get("shuffle", 1), "shuffle")
            return BloscCodec(cname=config["cname"], clevel=config["clevel"], shuffle=shuffle)
        case other:
            raise ValueError(
                f"the compressor {other} of a version 2 array has no counterpart in version 3; name one: "
                f"{', '.join(COMPRESSORS)}"
            )


# --- The work


def box_shape(shape: Shape, unit: Shape, itemsize: int) -> Shape:
    """What is read, added and written at once: whole chunks of the sum, or its shards, along the last axes first."""
    box = list(unit)
    for axis in reversed(range(len(shape))):
        fit = ENOUGH // (math.prod(box) * itemsize)
        box[axis] *= max(1, min(fit, -(-shape[axis] // unit[axis])))
    return tuple(box)


def _compute(work: Work, *, here: bool) -> None:
    """Has Dask add all boxes: on threads of this process where ``here`` says so, else where Dask's settings say."""
    counts = _counts(work)
    boxes = math.prod(counts)
    step = -(-boxes // MOST_TASKS) or 1
    add = dask.delayed(partial(add_boxes, work))
    tasks = [
        add(first, min(first + step, boxes), dask_key_name=f"vecadd-add-{work.addition.decode()}-{first}")
        for first in range(0, boxes, step)
    ]
    threads = dask.config.get("num_workers", None) or MOST_THREADS
    store = open_store(work.working, read_only=False)[0]
    with ThreadPoolExecutor(threads) as pool:  # ends when the last thread does: none writes after this
        try:
            write_key(store, UNDER_WAY, work.addition)
            # A client inside one of its own tasks makes room for others while it waits (distributed.secede).
            dask.compute(*tasks, scheduler="threads" if here else None, pool=pool)
        finally:
            wait_for(store.delete(UNDER_WAY))  # tasks that Dask cannot stop any more end before their next box


def _counts(work: Work) -> Shape:
    return tuple(-(-n // extent) for n, extent in zip(work.described["shape"], work.box, strict=True))


def add_boxes(work: Work, first: int, last: int) -> None:
    """A task: adds the boxes of these numbers. Done twice, it writes the same bytes."""
    x, y = open_operand(work.a), open_operand(work.b)
    watched, store = (open_store(work.working, read_only=read_only)[0] for read_only in (True, False))
    total = open_target(work.described, store)
    for number in range(first, last):
        if not _is_under_way(watched, work.addition):
            raise RuntimeError(
                f"{work.working} is not there for this worker, or the addition has ended; workers need one file "
                "system, or an object store"
            )
        begins = [int(i) * n for i, n in zip(np.unravel_index(number, _counts(work)), work.box, strict=True)]
        box = tuple(slice(i, min(i + n, end)) for i, n, end in zip(begins, work.box, total.shape, strict=True))
        with np.errstate(**work.errors), dask_threads():
            total[box] = _core.add(_read(work.a, x, box), _read(work.b, y, box))
        if work.sync and isinstance(store, LocalStore):
            _sync_chunks(store.root, total, box)


def _is_under_way(store: Store, addition: bytes) -> bool:
    try:
        return read_key(store, UNDER_WAY) == addition
    except FileNotFoundError:
        return False


def _read(name: str | Store, array: Array, box: Box) -> "np.ndarray[Any, Any]":
    """What is added to a box of the sum: axes of extent 1 are broadcast. An error names the operand."""
    last = box[len(box) - array.ndim :]
    part = tuple(slice(0, 1) if n == 1 else of_sum for n, of_sum in zip(array.shape, last, strict=True))
    try:
        return np.asarray(array[part])
    except MemoryError:
        raise
    except Exception as error:  # a damaged chunk, mostly: codecs have no common error
        shown = ", ".join(f"{each.start}:{each.stop}" for each in part)
        said = getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"
        number = getattr(error, "errno", None) or errno.EIO
        raise OSError(number, f"elements [{shown}] cannot be read: {said}", str(name)) from error


def _sync_chunks(folder: Path, total: Array, box: Box) -> None:
    """Waits until the files of a box, and the folders that they are in, are on the disk. An empty chunk has no file."""
    extents = total.shards or total.chunks
    folders: set[Path] = set()
    for at in product(*(range(part.start // n, -(-part.stop // n)) for part, n in zip(box, extents, strict=True))):
        file = folder / total.metadata.encode_chunk_key(at)
        with contextlib.suppress(FileNotFoundError):
            _sync(file)
            folders.update(parent for parent in file.parents if parent.is_relative_to(folder))
    for parent in folders:
        _sync(parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# --- Where the sum is written


@contextlib.contextmanager
def _prefix(name: str | Store) -> Iterator[str | Store]:
    """An object store: the name itself."""
    store, _ = open_store(name, read_only=False)
    if not wait_for(store.is_empty("")):
        raise ValueError(
            f"{name} is not empty, and its store cannot exchange what is there at once; name an empty prefix, or "
            "remove what is there (an addition that failed leaves chunks)"
        )
    yield name


@contextlib.contextmanager
def _folder(path: Path, sync: bool) -> Iterator[str]:
    """A hidden folder beside the path, which takes its place when the block ends, or is removed where that fails."""
    replaces = path.exists()
    working = temporary_name(path)
    working.mkdir()
    try:
        if replaces:
            working.chmod(stat.S_IMODE(path.stat().st_mode))
            _try_exchange(working, path)
        yield str(working)
        for left in list(working.rglob("*.partial")):  # by a worker that was killed: Zarr's chunks before their rename
            left.unlink()
        if sync:
            _sync(working / METADATA)
            _sync(working)
        if replaces:
            exchange(working, path)
        else:
            working.rename(path)  # of a folder, which replaces nothing but an empty one
    except BaseException:
        shutil.rmtree(working, ignore_errors=True)
        raise
    try:
        if sync:
            _sync(path.parent)
        if replaces:
            shutil.rmtree(working)
    except OSError as error:
        advice = f"; remove {working}, which it replaced" if replaces else ""
        warnings.warn(f"{path} is complete, but then came an error: {error}{advice}", stacklevel=5)


def _try_exchange(working: Path, path: Path) -> None:
    """Raises ValueError where folders of that file system cannot be exchanged: NFS, for example."""
    first, second = working / "first", working / "second"
    first.mkdir()
    second.mkdir()
    try:
        exchange(first, second)
    except OSError as error:
        raise ValueError(
            f"{path} exists, and its file system cannot exchange two folders ({error.strerror}), so that it would be "
            "missing for a while; remove it, or name another target"
        ) from None
    first.rmdir()
    second.rmdir()


def exchange(first: Path, second: Path) -> None:
    """Gives two folders each other's name, both at once."""
    renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    if renameat2(_AT_FDCWD, os.fsencode(first), _AT_FDCWD, os.fsencode(second), _EXCHANGE):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(second))

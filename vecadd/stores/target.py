"""What the target of an addition is: shape, dtype, chunks, shards and codecs, as its metadata document."""

import json
import math
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import zarr
from zarr.abc.store import Store
from zarr.codecs import BloscCodec, GzipCodec, ZstdCodec
from zarr.core.metadata import ArrayV3Metadata
from zarr.storage import MemoryStore, StorePath

from vecadd._names import unknown
from vecadd._sum import shape_and_dtype
from vecadd.stores.names import read_key
from vecadd.stores.pieces import Shape
from vecadd.stores.usage import UsageError

METADATA = "zarr.json"  # the key whose presence makes an array of a store
MOST_AXES = 32  # that Zarr can write: it looks for empty chunks by numpy.broadcast_arrays, which takes no more
KEEP = "keep"
COMPRESSORS = ("none", "zstd", "blosc", "gzip")

if TYPE_CHECKING:
    Array = zarr.Array[Any]
else:
    Array = zarr.Array  # no generic type before Zarr 3.1


def describe_sum(
    a: Array, b: Array, chunks: Sequence[int] | None, shards: Sequence[int] | None, compressor: str
) -> dict[str, Any]:
    """The metadata document of the sum of two arrays, in Zarr's version 3.

    Raises ValueError where the shapes do not broadcast, UsageError where chunks, shards and compressor are none that
    can be, and TypeError where numpy.add has no loop for the dtypes.
    """
    shape, dtype = shape_and_dtype(a, b, f"{a.shape} and {b.shape}")
    if len(shape) > MOST_AXES:
        raise ValueError(
            f"the sum of {a.shape} and {b.shape} has {len(shape)} axes, and Zarr writes at most {MOST_AXES}"
        )
    like = next((array for array in (a, b) if array.shape == shape), a)
    whole = like.shape == shape
    chunks_now = _checked("chunks", chunks, len(shape))
    shards_now = _checked("shards", shards, len(shape))
    if whole and chunks_now is None and shards_now is None:
        shards_now = like.shards
    if chunks_now is None:
        chunks_now = tuple(max(1, chunk) for chunk in like.chunks) if whole else _chunks(shape, a, b)
    largest = math.prod(shards_now or chunks_now) * dtype.itemsize
    if largest > sys.maxsize:
        what = f"shards of {shards_now}" if shards_now else f"chunks of {chunks_now}"
        raise UsageError(f"{what} take {largest} bytes each, more than memory can have; give smaller ones")
    if shards_now and any(shard % chunk for shard, chunk in zip(shards_now, chunks_now, strict=True)):
        raise UsageError(f"shards of {shards_now} do not consist of whole chunks of {chunks_now}")
    store = MemoryStore()
    zarr.create_array(
        store,
        shape=shape,
        dtype=dtype,
        chunks=chunks_now,
        shards=shards_now,
        fill_value=_fill_value(a, b, dtype),
        dimension_names=_dimension_names(like) if whole else None,
        **_codecs(like, dtype, compressor, whole=whole),
    )
    document = read_key(store, METADATA)
    assert document is not None
    described: dict[str, Any] = json.loads(document)
    return described


def is_compressed(described: dict[str, Any]) -> bool:
    """Whether the sum may take less room than its elements."""
    return [codec["name"] for codec in described["codecs"]] != ["bytes"]


def open_target(described: dict[str, Any], store: Store) -> Array:
    """The array of that description in a store, to write to: its metadata document need not be there yet."""
    metadata = ArrayV3Metadata.from_dict(described)
    array = zarr.Array(zarr.AsyncArray(metadata, StorePath(store)))
    # Zarr leaves chunks out that hold nothing but the fill value. It takes -0.0 in complex numbers, and another payload
    # of NaN, for the same value.
    if array.dtype.kind in "biu" or (array.dtype.kind == "f" and not np.isnan(array.fill_value)):
        return array
    return zarr.Array(zarr.AsyncArray(metadata, StorePath(store), {"write_empty_chunks": True}))


def _checked(what: str, given: Sequence[int] | None, ndim: int) -> Shape | None:
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
    """What zarr.create_array is told of the codecs; ``whole`` says that the sum has the shape of the array."""
    if compressor != KEEP:
        named = {"none": None, "zstd": ZstdCodec(), "blosc": BloscCodec(), "gzip": GzipCodec()}
        if not isinstance(compressor, str) or compressor not in named:
            raise UsageError(unknown("compressor", str(compressor), (KEEP, *COMPRESSORS)))
        return {"compressors": named[compressor]}
    if like.metadata.zarr_format == 2:
        return {"compressors": [_of_version_3(codec.get_config()) for codec in like.compressors]}  # type: ignore[union-attr]
    if like.dtype == dtype and whole:
        return {"compressors": like.compressors, "filters": like.filters, "serializer": like.serializer}
    # Blosc shuffles the bytes of elements, which are of another size now.
    return {
        "compressors": [
            replace(codec, typesize=dtype.itemsize) if isinstance(codec, BloscCodec) else codec
            for codec in like.compressors
        ]
    }


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
                f"the compressor {other} of a version 2 array has no counterpart in version 3 here; name one: "
                f"{', '.join(COMPRESSORS)}"
            )

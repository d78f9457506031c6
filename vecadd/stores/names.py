"""Opens what a name says: a Zarr array in a folder, in a zip archive, or where fsspec or obstore can reach it."""

import asyncio
import os
import re
import zipfile
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from zarr.abc.store import Store
from zarr.core.buffer import default_buffer_prototype
from zarr.core.sync import sync
from zarr.storage import FsspecStore, LocalStore, ZipStore

from vecadd.stores.pieces import Side
from vecadd.stores.usage import UsageError

Name = str | os.PathLike[str] | Store

# What Zarr raises for metadata that is damaged or of a later version.
_OF_METADATA = (ArithmeticError, AttributeError, KeyError, RecursionError, TypeError, ValueError)

# One letter is no protocol: fsspec takes c://x for a local path.
_MEANT_AS_URL = re.compile("[^/]*://")
_URL = re.compile(r"[a-z][a-z0-9+.-]+://.*[^/]", re.IGNORECASE | re.DOTALL)


def absolute(name: Name) -> str | Store:
    """The name as it is understood in every folder and process; a store object stays itself. Raises UsageError for a
    URL without a protocol or a path, which would be the path of a local folder called "s3:", say."""
    if isinstance(name, Store):
        return name
    text = os.fspath(name)
    if _MEANT_AS_URL.match(text) and not _URL.match(text):
        raise UsageError(f"{text} is no URL of an array; write PROTOCOL://PATH")
    text = text.removeprefix("file://")  # the path as it stands, as fsspec has it: a file's name may hold #, ? and %
    if _URL.match(text):
        return text.rstrip("/")
    return str(Path(text).absolute())


def open_store(name: Name, *, read_only: bool) -> tuple[Store, str]:
    """The store that a name of `absolute` says, and the path of the array in it."""
    if isinstance(name, Store):
        return name, ""
    text = os.fspath(name)
    if _URL.match(text):
        return _remote(text, read_only), ""
    path = Path(text)
    for archive in (path, *path.parents):
        if archive.suffix == ".zip" and archive.is_file():
            return ZipStore(archive, mode="r"), "/".join(path.relative_to(archive).parts)
    return LocalStore(path, read_only=read_only), ""


def _remote(url: str, read_only: bool) -> Store:
    """By fsspec where it knows the protocol and has what it needs for it, else by obstore."""
    protocol = url.partition("://")[0]
    try:
        return FsspecStore.from_url(url, read_only=read_only)
    except (ImportError, ValueError) as error:
        by_fsspec = error
    try:
        from obstore.store import from_url
        from zarr.storage import ObjectStore

        return ObjectStore(from_url(url), read_only=read_only)
    except Exception as by_obstore:  # whose errors for a URL that it does not know are of its own
        raise ImportError(
            f"nothing that is installed reads {protocol}:// ({by_fsspec}; {str(by_obstore).splitlines()[0]}): pip "
            f"install fsspec's package for {protocol}, or obstore"
        ) from None


def open_input(name: Name) -> "zarr.Array[Any]":
    """The array to read from. Raises ValueError for what is no Zarr array of numbers, OSError for what is not there."""
    if isinstance(name, str) and not _URL.match(name) and not Path(name).exists() and ".zip/" not in name:
        raise FileNotFoundError(2, os.strerror(2), name)
    try:
        store, path = open_store(name, read_only=True)
        array = zarr.open_array(store=store, path=path, mode="r")
        chunks = array.chunks
    except zipfile.BadZipFile as error:
        raise ValueError(f"{name} is not a zip archive that can be read: {error}") from None
    except FileNotFoundError:
        raise ValueError(
            f"{name} holds no Zarr array; name the array itself where it lies in a group (STORE/ARRAY)"
        ) from None
    except NotImplementedError:
        raise ValueError(f"{name} has chunks of several shapes; only regular chunks can be added") from None
    except _OF_METADATA as error:
        raise ValueError(f"{name} holds no Zarr array that can be read: {error}") from error
    assert len(chunks) == array.ndim
    if array.dtype.kind not in "biufcmM":
        raise TypeError(f"{name} holds {array.dtype}; numbers, times and bool can be added")
    return array


def side_of(array: "zarr.Array[Any]", *, written: bool = False) -> Side:
    """What is read of an array at once; of one that is written, its chunk or the shard that it lies in."""
    chunks = (array.shards if written else None) or array.chunks
    return Side(array.shape, tuple(max(1, chunk) for chunk in chunks), np.dtype(array.dtype).itemsize)


def wait_for(work: Coroutine[Any, Any, Any]) -> Any:
    """The result of a store's coroutine. It runs in Zarr's own loop, to which fsspec's connections belong."""
    assert asyncio.iscoroutine(work)
    return sync(work)


def read_key(store: Store, key: str) -> bytes | None:
    """The value of a key of the store; None where there is none."""
    found = wait_for(store.get(key, default_buffer_prototype()))
    return None if found is None else bytes(found.to_bytes())


def write_key(store: Store, key: str, value: bytes) -> None:
    """Sets a key of the store."""
    wait_for(store.set(key, default_buffer_prototype().buffer.from_bytes(value)))


def keys_below(store: Store, prefix: str) -> list[str]:
    """The keys of the store that begin so."""

    async def listed() -> list[str]:
        return [key async for key in store.list_prefix(prefix)]

    found: list[str] = wait_for(listed())
    return found


def delete_key(store: Store, key: str) -> None:
    """Removes a key of the store."""
    wait_for(store.delete(key))

"""Adds two Zarr arrays of any size into a third, in bounded memory, here or on a Dask cluster."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Union

from vecadd._extras import need
from vecadd._uninterrupted import Progress, run_uninterrupted

if TYPE_CHECKING:
    from distributed import Client
    from zarr.abc.store import Store

__all__ = ["add_zarr"]

Name = Union[str, os.PathLike[str], "Store"]


def add_zarr(
    a: Name,
    b: Name,
    out: Name,
    *,
    chunks: Sequence[int] | None = None,
    shards: Sequence[int] | None = None,
    compressor: str = "keep",
    memory: int | None = None,
    scheduler: "str | Client | None" = None,
    resume: bool = False,
    sync: bool = True,
    progress: Progress | None = None,
) -> None:
    """Writes the sum of the Zarr arrays ``a`` and ``b`` (version 2 or 3) to the Zarr array ``out`` (version 3).

    Its elements are those of ``numpy.add``: shapes broadcast, dtypes may differ. A name is a local folder, an array in
    a zip archive (``x.zip``, ``x.zip/group/array``), a URL that fsspec or obstore can reach, or a store of Zarr's. The
    sum is divided into boxes of whole chunks of ``out``, or shards; each is read, added and written once.

    ``out`` appears only when it is complete. A local folder or archive is written beside, and may replace an array that
    is there, one of the operands too. Another store has to be empty: the chunks are written in place, and the metadata
    document, without which there is no array, comes last.

    chunks, shards
        Of ``out``; without, those of the operand that has its shape. Where neither has it there are no shards, and each
        axis has the chunks of the first operand that is as long as ``out`` there.
    compressor
        "keep" that of the operand, or "none", "zstd", "blosc", "gzip".
    memory
        Bytes of arrays and chunks that this process holds, or each worker of the cluster. Without, 512 MiB, or half of
        what the cluster gives a worker, and more where one chunk needs it.
    scheduler
        Of Dask: an address ("tcp://host:8786"), "local" or "local:4" for workers on this machine, 4 for each processor
        at most, "threads" for threads of this process, or a ``distributed.Client``; without, the active client, and
        threads where there is none.
    resume
        Goes on with an addition of the same operands that was killed or failed; what it finished is not written again.
        Without one, begins.
    sync
        Whether chunks in local folders are on the disk (fsync) before they count as finished.
    progress
        Called in this thread with (elements done, elements in all).

    Raises ValueError for operands that are no Zarr arrays, do not broadcast, or need more memory, and for an ``out``
    that cannot be replaced; TypeError where ``numpy.add`` has no loop for the dtypes; ImportError where a package is
    missing: nothing was written then. An OSError, MemoryError or RuntimeError of the work says which elements were not
    added; ``out`` is as it was.

    >>> import zarr
    >>> for name in ("a", "b"):
    ...     x = zarr.create_array(f"{name}.zarr", data=np.arange(6.0), chunks=(3,))
    >>> vecadd.add_zarr("a.zarr", "b.zarr", "c.zarr")
    >>> zarr.open_array("c.zarr")[:]
    array([ 0.,  2.,  4.,  6.,  8., 10.])
    """
    need("fleet", "an addition of Zarr arrays", "zarr")
    if scheduler not in (None, "threads"):
        need("fleet", "a scheduler", "distributed")
    if memory is not None and memory < 1:
        raise ValueError(f"memory of {memory} bytes; give a positive number, or None")

    from vecadd.stores.work import Asked, add_arrays

    asked = Asked(chunks, shards, compressor, memory, scheduler, resume, sync)
    run_uninterrupted(lambda check, tell: add_arrays(a, b, out, asked, check, tell), progress)

"""Adds two Zarr arrays of any size into a third, on threads of this process or on a Dask cluster: `vecadd.add_zarr`."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Union

from vecadd._command import need

if TYPE_CHECKING:
    from zarr.abc.store import Store

__all__ = ["add_zarr"]

NEEDED = ("an addition of Zarr arrays", {"zarr": "fleet", "dask": "fleet"})  # as `vecadd._command.need` takes it


def add_zarr(
    a: Union[str, os.PathLike[str], "Store"],
    b: Union[str, os.PathLike[str], "Store"],
    out: Union[str, os.PathLike[str], "Store"],
    *,
    chunks: Sequence[int] | None = None,
    shards: Sequence[int] | None = None,
    compressor: str = "keep",
    sync: bool = True,
) -> None:
    """Writes the sum of the Zarr arrays ``a`` and ``b`` (version 2 or 3) to the Zarr array ``out`` (version 3).

    Its elements are those of ``numpy.add``: shapes broadcast, dtypes may differ. A name is a local folder, a URL that
    fsspec can reach, or a store of Zarr's; an operand may also be in a zip archive (``x.zip``, ``x.zip/group/array``).
    The sum is made chunk by chunk by Dask: on the workers of the active client, or on a few threads of this process.
    Store objects are added on threads.

    A local ``out`` is written beside its place and then exchanged with the array that is there, if there is one: at
    every moment the old array or the new one is there. In an object store ``out`` has to be an empty prefix; the
    metadata document, without which there is no array, comes last.

    chunks, shards
        Of ``out``; without, those of the operand that has its shape. Where neither has it there are no shards, and each
        axis has the chunks of the first operand that is as long as ``out`` there.
    compressor
        "keep" the codecs of the operand, or "none", "zstd", "blosc", "gzip".
    sync
        Whether a local ``out`` is on the disk (fsync) before it takes its place.

    Raises ValueError for operands that are not Zarr arrays, are packed (``scale_factor`` and the like) or do not
    broadcast, for codecs that may lose bits of the sum, and for an ``out`` that cannot be replaced; TypeError where
    ``numpy.add`` has no loop for the dtypes; ImportError where a package is missing: nothing was written then. After
    any other error, too, a local ``out`` is as it was. What fails once ``out`` is in its place is a warning.

    >>> import zarr
    >>> for name in ("a", "b"):
    ...     x = zarr.create_array(f"{name}.zarr", data=np.arange(6.0), chunks=(3,))
    >>> vecadd.add_zarr("a.zarr", "b.zarr", "c.zarr")
    >>> zarr.open_array("c.zarr")[:]
    array([ 0.,  2.,  4.,  6.,  8., 10.])
    """
    need(*NEEDED)

    from vecadd._zarr import add_arrays

    add_arrays(a, b, out, chunks, shards, compressor, sync=sync)

"""Adds Dask's collections, and xarray's, block by block: `vecadd.dask.add`.

Needs Dask: ``pip install 'vecadd[fleet]'``.
"""

from importlib import import_module
from typing import Any

import numpy as np

from vecadd import _core
from vecadd._dask_threads import dask_threads
from vecadd._extras import need

__all__ = ["add"]


def __dir__() -> list[str]:
    return __all__


_NUMBERS = (bool, int, float, complex)


def add(x: Any, y: Any) -> Any:
    """The sum of two collections of Dask, or of a collection and an array or a number, as a collection.

    ``dask.array.Array``, ``xarray.DataArray``, ``xarray.Variable`` and ``xarray.Dataset``, with what ``x + y`` does to
    shapes, chunks, dtypes, coordinates and attributes. Nothing is added before it is computed. Dask fuses the addition
    with its neighbours; each block is added by `vecadd.add`, on the GPU where the blocks are CuPy arrays there, and on
    no more threads than leave a processor to each task of Dask's on that machine.

    Raises TypeError where neither operand is a collection of Dask, since `vecadd.add` adds those, and for what cannot
    be added to one.

    >>> import dask.array
    >>> x = dask.array.ones((4, 4), chunks=2)
    >>> vecadd.dask.add(x, x[0]).sum().compute()
    np.float64(32.0)
    """
    need("fleet", "vecadd.dask", "dask", "dask.array")
    from dask.base import is_dask_collection

    if not (is_dask_collection(x) or is_dask_collection(y)):
        raise TypeError(
            f"vecadd.dask.add takes a collection of Dask, not {type(x).__name__} and {type(y).__name__}; vecadd.add "
            "adds arrays"
        )
    if any(type(operand).__module__.partition(".")[0] == "xarray" for operand in (x, y)):
        return _add_labelled(x, y)
    return _add_blocks(x, y)


def _add_blocks(x: Any, y: Any) -> Any:
    core: Any = import_module("dask.array.core")
    x, y = _array(x), _array(y)
    return core.elemwise(_add_block, x, y, dtype=np.add(_like(x), _like(y)).dtype)


def _array(operand: Any) -> Any:
    """An array, or a number; a list becomes an array. Raises TypeError for collections of Dask of another kind."""
    from dask.base import is_dask_collection

    if isinstance(getattr(operand, "dtype", None), np.dtype) or isinstance(operand, _NUMBERS):
        return operand
    if is_dask_collection(operand):
        raise TypeError(f"vecadd.dask.add takes arrays of Dask, not {type(operand).__name__}: add it with +")
    return np.asarray(operand)


def _like(operand: Any) -> Any:
    """Something that numpy.add gives the same dtype with: a number of Python's stays what it is, and so does another
    scalar, of which an object may be none that has an addition."""
    if isinstance(operand, _NUMBERS) or (isinstance(operand, np.ndarray) and operand.ndim == 0):
        return operand
    return np.zeros(1, operand.dtype)


def _add_block(x: Any, y: Any) -> Any:
    if any(isinstance(operand, np.ma.MaskedArray) for operand in (x, y)):
        # As NumPy's own +, which leaves what is below the mask alone; numpy.add adds it, and warns of it.
        return x + y
    with dask_threads():
        return _core.add(x, y)


def _add_labelled(x: Any, y: Any) -> Any:
    """As xarray's own +, which says what coordinates and attributes are kept; its data are not computed."""
    xarray: Any = import_module("xarray")
    total, join = x + y, xarray.get_options()["arithmetic_join"]
    if not isinstance(total, xarray.Dataset):
        added = xarray.apply_ufunc(_add_any, x, y, join=join, keep_attrs="drop", dask="allowed")
        return total.copy(data=added.transpose(*total.dims).data)
    if isinstance(x, (xarray.Dataset, xarray.DataArray)) and isinstance(y, (xarray.Dataset, xarray.DataArray)):
        # A Dataset leads: xarray asks it to add itself to an array on its left.
        turned = not isinstance(x, xarray.Dataset) and isinstance(y, xarray.Dataset)
        aligned = xarray.align(*((y, x) if turned else (x, y)), join=join, copy=False)
        x, y = reversed(aligned) if turned else aligned
    parts = {
        name: [side[name] if isinstance(side, xarray.Dataset) else side for side in (x, y)]
        for name in total
        if all(name in side for side in (x, y) if isinstance(side, xarray.Dataset))
    }
    added = {name: _add_labelled(*pair).transpose(*total[name].dims).data for name, pair in parts.items()}
    return total.copy(data={name: added.get(name, total[name].data) for name in total})


def _add_any(x: Any, y: Any) -> Any:
    """Of xarray's data: arrays of Dask, or of what xarray has loaded."""
    from dask.base import is_dask_collection

    if is_dask_collection(x) or is_dask_collection(y):
        return _add_blocks(x, y)
    return _core.add(x, y)

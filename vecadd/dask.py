"""Adds Dask's collections, and xarray's, block by block: `vecadd.dask.add`.

Needs Dask: ``pip install 'vecadd[fleet]'``.
"""

import multiprocessing
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np

from vecadd import _core
from vecadd._command import need

# How many threads an addition in a task of Dask's may use, so that those of all tasks fit the processors.

_REMEMBERED = 10.0  # seconds for which the workers of this machine are taken to stay the same

_lock = threading.Lock()
_users = 0
_before = 0
_asked: dict[str, tuple[float, int]] = {}


@contextmanager
def dask_threads() -> Iterator[None]:
    """While the block runs, and others of this process that do the same, additions use no more threads than are theirs.

    The number is one of the process: blocks that run at once share it, and the last one puts back what was there. The
    main thread does not take part: an interrupt (KeyboardInterrupt) between any two of its steps would leave the count
    wrong. There Dask runs one task at a time.
    """
    global _users, _before
    count = threads_a_task()
    if threading.current_thread() is threading.main_thread():
        before = _core.get_num_threads()
        try:
            if count < before:
                _core.set_num_threads(count)
            yield
        finally:
            if count < before:
                _core.set_num_threads(before)
        return
    with _lock:
        if _users == 0:
            _before = _core.get_num_threads()
        _users += 1
        _core.set_num_threads(min(count, _before))
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                _core.set_num_threads(_before)


def threads_a_task() -> int:
    """Processors of this machine for each task that runs on it at once, and 1 at least."""
    from dask.system import CPU_COUNT

    worker = _worker()
    if worker is not None:
        tasks = _tasks_here(worker)
    elif threading.current_thread() is threading.main_thread() and multiprocessing.parent_process() is None:
        tasks = 1  # Dask's synchronous scheduler, not that of processes
    else:
        import dask

        tasks = dask.config.get("num_workers", None) or CPU_COUNT
    return max(1, int(CPU_COUNT) // tasks)


def _worker() -> Any:
    """The worker whose task this thread runs; None where it runs none."""
    if "distributed" not in sys.modules:
        return None
    from distributed import get_worker

    try:
        return get_worker()
    except ValueError:
        return None


def _tasks_here(worker: Any) -> int:
    """The tasks that the workers on this machine run at once, by what the scheduler knows of them."""
    from distributed.utils import sync

    now = time.monotonic()
    until, tasks = _asked.get(worker.address, (0.0, 0))
    if now < until:
        return tasks
    workers = sync(worker.loop, worker.scheduler.identity)["workers"]
    host = workers[worker.address]["host"] if worker.address in workers else None
    tasks = sum(other["nthreads"] for other in workers.values() if other["host"] == host) or worker.state.nthreads
    _asked[worker.address] = now + _REMEMBERED, tasks
    return int(tasks)


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
    need("vecadd.dask", {"dask": "fleet"})
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
    """Something for which numpy.add gives the same dtype: Python numbers and other scalars stay as they are, because
    an object may not support addition."""
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
    total = x + y
    add: Callable[[Any, Any], Any] = _add_any
    if isinstance(y, xarray.Dataset) and not isinstance(x, xarray.Dataset):
        # A Dataset leads: xarray asks it to add itself to an array on its left.
        x, y, add = y, x, lambda left, right: _add_any(right, left)
    join = xarray.get_options()["arithmetic_join"]
    added = xarray.apply_ufunc(add, x, y, join=join, dataset_join="inner", keep_attrs="drop", dask="allowed")
    if not isinstance(total, xarray.Dataset):
        return total.copy(data=added.transpose(*total.dims).data)
    found = {name: added[name].transpose(*total[name].dims) if name in added else total[name] for name in total}
    return total.copy(data={name: each.data for name, each in found.items()})


def _add_any(x: Any, y: Any) -> Any:
    """Adds the data of xarray objects: arrays of Dask, or arrays that xarray has loaded."""
    from dask.base import is_dask_collection

    if is_dask_collection(x) or is_dask_collection(y):
        return _add_blocks(x, y)
    return _core.add(x, y)

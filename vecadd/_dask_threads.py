"""How many threads an addition in a task of Dask's may use, so that those of all tasks fit the processors."""

import multiprocessing
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from vecadd import _core

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

"""Runs an addition of stores on threads of this process."""

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from queue import Empty, SimpleQueue

import numpy as np

from vecadd._core import add, host_facts
from vecadd.stores.pieces import Run, runs_of
from vecadd.stores.run import Addition, add_run

MEMORY = 512 << 20  # bytes, unless the caller says otherwise or a chunk needs more
MOST_THREADS = 4  # each reads, adds and writes; Zarr's own threads decode and encode


class Threads:
    """Threads of this process, each of which adds pieces: one may add while another waits for the disk."""

    def __init__(self) -> None:
        self.threads = max(2, min(MOST_THREADS, int(host_facts()["threads"])))

    def share(self, memory: int | None, least: int) -> int:
        """There are fewer threads where each needs more than its part."""
        memory = memory or max(MEMORY, least)
        self.threads = max(1, min(self.threads, memory // least))
        return memory // self.threads

    def prepare(self, addition: Addition) -> None:
        """Raises ValueError where VECADD_SIMD lets this process add nothing; it has opened the arrays."""
        add(np.ones(1, np.float32), np.ones(1, np.float32))

    def add(
        self, addition: Addition, todo: Sequence[Run], check: Callable[[], None], told: Callable[[int], None]
    ) -> None:
        """As `Workers` has it."""
        sizes: SimpleQueue[int] = SimpleQueue()
        stopped: list[BaseException] = []

        def tell(size: int) -> None:
            sizes.put(size)
            if stopped:
                raise InterruptedError

        def drain() -> None:
            check()
            try:
                while True:
                    told(sizes.get_nowait())
            except Empty:
                pass

        with ThreadPoolExecutor(self.threads, thread_name_prefix="vecadd-stores") as pool:
            # numpy.errstate belongs to the context.
            pending: set[Future[int]] = {
                pool.submit(copy_context().run, add_run, addition, run, tell) for run in runs_of(todo, self.threads)
            }
            try:
                while pending:
                    done, pending = wait(pending, timeout=0.1, return_when=FIRST_COMPLETED)
                    for future in done:
                        future.result()
                    drain()
            except BaseException as error:
                stopped.append(error)
                pool.shutdown(wait=True, cancel_futures=True)
                raise

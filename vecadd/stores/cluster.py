"""Runs an addition of stores on the workers of a Dask cluster: some tasks for each of their threads."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any

from vecadd._dask_threads import dask_threads
from vecadd._version import package_version
from vecadd.stores.names import open_input, open_store
from vecadd.stores.pieces import Run, runs_of, show_box
from vecadd.stores.run import RESUME, Addition, add_run
from vecadd.stores.usage import UsageError

MEMORY = 512 << 20  # bytes a worker that has no limit
SHARE = 0.5  # of the limit that Dask has set a worker
MOST_LOCAL = 4  # workers that "local" makes
MOST_A_PROCESSOR = 4  # workers of "local:N" for each processor: more are taken for a slip
_PAUSE = 0.05  # seconds between two looks at the tasks
_SHOWN = 3  # workers that an error names


@contextmanager
def connected(scheduler: Any) -> Iterator[Any]:
    """The client of a scheduler that `vecadd.add_zarr` names; None where it names none and none is active."""
    if scheduler is None:
        yield _active()
    elif not isinstance(scheduler, str):
        yield scheduler
    elif "://" in scheduler:
        with _client(scheduler) as client:
            yield client
    else:
        with _local(scheduler) as cluster, cluster.get_client() as client:
            yield client


def _active() -> Any:
    if "distributed" not in sys.modules:
        return None
    distributed: Any = import_module("distributed")
    try:
        return distributed.default_client()
    except ValueError:
        return None


def _client(address: str) -> Any:
    distributed: Any = import_module("distributed")
    client = distributed.Client.__new__(distributed.Client)
    try:
        client.__init__(address, set_as_default=False)
    except BaseException as error:
        # A client that failed half-made waits for its thread for 60 s when the interpreter exits, unless it is closed.
        with suppress(AttributeError):  # of one that failed before it had anything to close
            client.close()
        if isinstance(error, (TypeError, ValueError)):  # what an address without a port, or tls:// without keys, raises
            raise UsageError(f"no scheduler can be at {address!r}: {error}") from None
        raise
    return client


def _local(scheduler: str) -> Any:
    name, colon, count = scheduler.partition(":")
    if name != "local" or (colon and not (count.isdecimal() and int(count))):
        raise UsageError(f"no scheduler is called {scheduler!r}; there are tcp://HOST:PORT, local, local:N and threads")
    distributed: Any = import_module("distributed")
    processors = int(import_module("dask.system").CPU_COUNT)
    workers = int(count) if colon else min(MOST_LOCAL, processors)
    if workers > MOST_A_PROCESSOR * processors:
        raise UsageError(
            f"{scheduler} asks for {workers} workers; there may be {MOST_A_PROCESSOR} for each processor that this "
            f"process may use, {MOST_A_PROCESSOR * processors} in all"
        )
    threads = max(1, processors // workers)
    return distributed.LocalCluster(n_workers=workers, threads_per_worker=threads, dashboard_address=":0")


class Cluster:
    """The workers of a client. Raises RuntimeError where there are none, or one has another version of vecadd."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.address = client.scheduler.address if client.scheduler else "of Dask"
        self.workers = self._ask(_facts)
        if not self.workers:
            raise RuntimeError(f"the scheduler {self.address} has no workers; start some: dask worker {self.address}")
        own = package_version()
        self._refuse(
            {name: f"has {found['version']}" for name, found in self.workers.items() if found["version"] != own},
            f"have another version of vecadd than this process, which has {own}",
        )

    def _ask(self, function: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
        closed = import_module("distributed.comm").CommClosedError  # of a worker that went meanwhile
        found = self.client.run(function, *arguments, on_error="return")
        answers = {name: answer for name, answer in found.items() if not isinstance(answer, closed)}
        self._refuse(
            {
                name: f"{type(found).__name__}: {found}"
                for name, found in answers.items()
                if isinstance(found, Exception)
            },
            "cannot add",
        )
        return answers

    def _refuse(self, wrong: dict[str, str], what: str) -> None:
        if wrong:
            shown = "; ".join(f"{name} {said}" for name, said in list(wrong.items())[:_SHOWN])
            raise RuntimeError(f"{len(wrong)} of the workers of {self.address} {what}: {shown}")

    def share(self, memory: int | None, least: int) -> int:
        """As `Workers` has it: for each thread of the worker that has the least."""
        share: int = min(
            (memory or max(least * found["nthreads"], int(SHARE * (found["memory_limit"] or MEMORY / SHARE))))
            // found["nthreads"]
            for found in self.workers.values()
        )
        return share

    def prepare(self, addition: Addition) -> None:
        """Raises RuntimeError where a worker does not see the operands or the target."""
        self._ask(_look, addition)

    def add(
        self, addition: Addition, todo: Sequence[Run], check: Callable[[], None], told: Callable[[int], None]
    ) -> None:
        """As `Workers` has it."""
        pieces = addition.manifest.pieces
        threads = sum(found["nthreads"] for found in self.workers.values())
        runs = runs_of(todo, threads)
        pending = {
            self.client.submit(
                add_on_worker, addition, run, package_version(), key=f"vecadd-add-{addition.attempt}-{run[0]}"
            ): run
            for run in runs
        }
        try:
            while pending:
                for future in [future for future in pending if future.done()]:
                    first, last = run = pending[future]
                    self._raise(future, run, addition)
                    del pending[future]
                    told(sum(pieces.size(number) for number in range(first, last)))
                check()
                time.sleep(_PAUSE)
        except BaseException:
            if self.client.status == "running":
                self.client.cancel(list(pending))
            raise

    def _raise(self, future: Any, run: Run, addition: Addition) -> None:
        """The error of a task, if it has one, with what was not added."""
        if future.status == "finished":
            return
        boxes = [show_box(addition.manifest.pieces.box(number)) for number in (run[0], run[1] - 1)]
        what = f"elements {' to '.join(dict.fromkeys(boxes))} of the sum were not all added; {RESUME}"
        if future.status != "error":
            raise ConnectionError(f"the scheduler {self.address} went away: {what}")
        error = future.exception()
        if isinstance(error, (OSError, MemoryError)):
            raise error
        raise RuntimeError(str(error) if RESUME in str(error) else f"{type(error).__name__}: {error}: {what}")


def add_on_worker(addition: Addition, run: Run, version: str) -> None:
    """The task: adds a run with as many threads as are this task's. A worker that came later may be of another version
    than the one that is asked for."""
    if package_version() != version:
        raise RuntimeError(f"a worker has vecadd {package_version()}, and this addition was asked for by {version}")
    with dask_threads():
        add_run(addition, run)


def _facts(dask_worker: Any) -> dict[str, Any]:
    """What a worker says of itself; it runs there."""
    return {
        "version": package_version(),
        "nthreads": dask_worker.state.nthreads,
        "memory_limit": dask_worker.memory_manager.memory_limit,
    }


def _look(addition: Addition) -> None:
    """Opens what the addition needs; it runs on a worker."""
    for name in (addition.a, addition.b):
        open_input(name)
    store, _ = open_store(addition.working, read_only=False)
    if addition.is_over(store):
        raise FileNotFoundError(f"{addition.working} is not there; workers need one file system, or an object store")

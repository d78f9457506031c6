"""Who adds: threads of this process, or a Dask cluster."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from vecadd.stores.cluster import Cluster, connected
from vecadd.stores.pieces import Run
from vecadd.stores.run import Addition
from vecadd.stores.threads import Threads


class Workers(Protocol):
    """Adds pieces on several threads."""

    def share(self, memory: int | None, least: int) -> int:
        """Bytes that each thread may hold, where a worker may hold so many, and a piece takes at least so many."""

    def prepare(self, addition: Addition) -> None:
        """Raises RuntimeError where a worker does not see operands or target, ValueError where none can add."""

    def add(
        self, addition: Addition, todo: Sequence[Run], check: Callable[[], None], told: Callable[[int], None]
    ) -> None:
        """Adds all pieces that are to do. ``told`` gets the elements of what is finished. ``check`` is called now and
        then in this thread; what it, ``told`` or a run raises ends all runs after their present pieces."""


@contextmanager
def workers_of(scheduler: Any) -> Iterator[Workers]:
    """Those of a scheduler, as `vecadd.add_zarr` takes it; a cluster that is made for it ends with the block."""
    if scheduler == "threads":
        yield Threads()
        return
    with connected(scheduler) as client:
        yield Threads() if client is None else Cluster(client)

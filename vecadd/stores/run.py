"""Adds a run of pieces, one after the other: the work of a thread here, and of a task on a cluster."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from zarr.abc.store import Store
from zarr.storage import LocalStore

from vecadd._core import add
from vecadd.stores import manifest as record
from vecadd.stores.chunks import Box, chunks_in
from vecadd.stores.manifest import Manifest
from vecadd.stores.names import open_input, open_store
from vecadd.stores.operand import Operand
from vecadd.stores.pieces import Run, show_box
from vecadd.stores.place import sync_chunks
from vecadd.stores.target import Array, open_target

RESUME = "resume=True (--resume) goes on from what is finished"


@dataclass(frozen=True)
class Addition:
    """What all who add need to know. It can be pickled where its names are no store objects."""

    a: str | Store
    b: str | Store
    working: str | Store  # the store that the sum's chunks go to
    manifest: Manifest
    attempt: str  # a name that no other attempt at this addition has
    sync: bool

    def is_over(self, store: Store) -> bool:
        """Whether the attempt has ended, so that its tasks must write no more: it failed, or another one goes on."""
        return record.attempt(store) != self.attempt


def add_run(addition: Addition, run: Run, told: Callable[[int], object] = lambda size: None) -> int:
    """Adds the pieces of a run that are not finished, in their order, and notes each when it is written.

    ``told`` gets the elements of each piece that was written; what it raises ends the run. Gives the elements that
    were added. An error says which elements of the sum were not added.
    """
    store, _ = open_store(addition.working, read_only=False)
    begin, end = run
    at = record.reached(store, begin)  # not its begin where a worker that was killed had it before
    pieces, added = addition.manifest.pieces, 0
    if at >= end:
        return 0
    a, b = (Operand(name, open_input(name)) for name in (addition.a, addition.b))
    target = open_target(addition.manifest.described, store)
    for number in range(at, end):
        if addition.is_over(store):
            raise RuntimeError(f"this addition of {addition.working} has ended, or another one goes on with it")
        box = pieces.box(number)
        try:
            _add_piece(a, b, target, box)
            if addition.sync and isinstance(store, LocalStore):
                sync_chunks(Path(store.root), list(chunks_in(target, box)))
            record.note(store, begin, number + 1)
        except Exception as error:
            raise named(error, f"elements {show_box(box)} of the sum were not added; {RESUME}") from error
        size = pieces.size(number)
        added += size
        told(size)
    return added


def _add_piece(a: Operand, b: Operand, target: Array, box: Box) -> None:
    x, y = a.read(box), b.read(box)
    shape = tuple(part.stop - part.start for part in box)
    into = next((z for z in (x, y) if z.shape == shape and z.dtype == target.dtype and z.flags.writeable), None)
    if into is None:
        into = np.empty(shape, target.dtype)
    add(x, y, out=into)
    target[box] = into


def named(error: Exception, what: str) -> Exception:
    """The error with what was not done, as an OSError or MemoryError if it was one, else as a RuntimeError."""
    if isinstance(error, OSError):
        said = f"{error.strerror or error}: {what}"  # errors of other libraries have no number
        return OSError(said) if error.errno is None else OSError(error.errno, said, error.filename)
    if isinstance(error, MemoryError):
        return MemoryError(f"{str(error) or 'no memory'}: {what}")
    return RuntimeError(f"{type(error).__name__}: {error}: {what}")

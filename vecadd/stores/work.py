"""The steps of an addition of stores: what can be refused is, before anything is written; the pieces; the whole."""

import math
import secrets
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any

from zarr.abc.store import Store
from zarr.storage import MemoryStore

from vecadd._uninterrupted import Check, Progress
from vecadd.stores import manifest as record
from vecadd.stores.manifest import Manifest
from vecadd.stores.names import Name, absolute, open_input, open_store, side_of
from vecadd.stores.pieces import Side, choose_pieces, memory_needed, smallest_piece, unfinished
from vecadd.stores.place import Place, place_of, stamp
from vecadd.stores.run import Addition
from vecadd.stores.target import describe_sum, is_compressed, open_target
from vecadd.stores.usage import UsageError
from vecadd.stores.workers import Workers, workers_of


@dataclass(frozen=True)
class Asked:
    """How `vecadd.add_zarr` was asked to add."""

    chunks: Sequence[int] | None
    shards: Sequence[int] | None
    compressor: str
    memory: int | None
    scheduler: Any
    resume: bool
    sync: bool


def add_arrays(a: Name, b: Name, out: Name, asked: Asked, check: Check, tell: Progress | None) -> None:
    """Adds as `vecadd.add_zarr` says."""
    a, b, out = absolute(a), absolute(b), absolute(out)
    x, y = open_input(a), open_input(b)
    described = describe_sum(x, y, asked.chunks, asked.shards, asked.compressor)
    sides = [side_of(x), side_of(y)]
    total = side_of(open_target(described, MemoryStore()), written=True)
    with ExitStack() as stack:
        place = place_of(out, (a, b))
        stack.callback(place.close)
        begun = place.resume() if asked.resume else None
        if begun is not None and begun[1] == out and place.renames:
            place.complete(*begun, sync=asked.sync)
            return
        operands = [stamp(a), stamp(b)]
        if begun is not None and (begun[0].operands, begun[0].described) != (operands, described):
            raise ValueError(
                f"the addition into {out} that was begun had other operands, or another target: {begun[0].operands}, "
                f"not {operands}. Ask for the same, or leave out resume"
            )
        workers = stack.enter_context(workers_of(asked.scheduler))
        if begun is None:
            begun = _begin(place, operands, described, sides, total, workers, asked.memory)
        else:
            needed = memory_needed(begun[0].piece, sides, total)
            if workers.share(asked.memory, needed) < needed:
                raise UsageError(f"the addition that was begun needs {needed} bytes of memory a thread; allow more")
        found, working = begun
        addition = Addition(a, b, working, found, secrets.token_hex(4), asked.sync)
        _add_pieces(addition, workers, place, check, tell)
        place.complete(found, working, sync=asked.sync)


def _begin(
    place: Place,
    operands: list[dict[str, Any]],
    described: dict[str, Any],
    sides: Sequence[Side],
    total: Side,
    workers: Workers,
    memory: int | None,
) -> tuple[Manifest, str | Store]:
    """Divides the sum, and writes the manifest."""
    _, least = smallest_piece(sides, total)
    pieces = choose_pieces(sides, total, workers.share(memory, least))
    if not is_compressed(described):
        place.refuse_more_than_fits(math.prod(total.shape) * total.itemsize)
    run, working = place.begin()
    found = Manifest(run, operands, described, pieces.piece)
    record.save(open_store(working, read_only=False)[0], found)
    return found, working


def _add_pieces(addition: Addition, workers: Workers, place: Place, check: Check, tell: Progress | None) -> None:
    store, _ = open_store(addition.working, read_only=False)
    pieces, finished = addition.manifest.pieces, record.finished(store)
    done, size = sum(pieces.size(n) for first, last in finished for n in range(first, last)), math.prod(pieces.shape)

    def told(more: int) -> None:
        nonlocal done
        done += more
        if tell:
            tell(done, size)

    record.start_attempt(store, addition.attempt)
    try:
        workers.prepare(addition)
    except BaseException:
        if not finished:
            place.abandon(addition.working)
        raise
    todo = unfinished(len(pieces), finished)
    try:
        if todo:
            workers.add(addition, todo, check, told)
        check()
    except BaseException:
        with suppress(OSError):  # a full disk, say
            record.start_attempt(store, "")
        raise

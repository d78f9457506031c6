"""The record of an addition under way: what it is, and which of its pieces are finished.

It lies in the target's store, below the key `.vecadd`, until the target is complete. Who adds a run of pieces keeps one
key for it, which says how far the run is; so the writers of two runs never meet. A key that cannot be read, because its
writer was killed, counts for nothing: its pieces are added again.
"""

import json
import re
from dataclasses import asdict, dataclass
from typing import Any

from zarr.abc.store import Store

from vecadd.stores.names import delete_key, keys_below, read_key, write_key
from vecadd.stores.pieces import Pieces, Run, Shape

FOLDER = ".vecadd"
_MANIFEST = f"{FOLDER}/manifest.json"
_FINISHED = f"{FOLDER}/finished"
_ATTEMPT = f"{FOLDER}/attempt"
_FORMAT = 1


@dataclass(frozen=True)
class Manifest:
    """An addition: its operands as they were found, the target's metadata document, and its division into pieces."""

    run: str  # a name that no other addition has
    operands: list[dict[str, Any]]
    described: dict[str, Any]
    piece: Shape
    format: int = _FORMAT

    @property
    def pieces(self) -> Pieces:
        """Of the sum."""
        return Pieces(tuple(self.described["shape"]), self.piece)

    def is_of(self, operands: list[dict[str, Any]]) -> bool:
        """Whether it is the addition of these operands."""
        return self.operands == operands


def save(store: Store, manifest: Manifest) -> None:
    """Writes the manifest, before the first piece."""
    write_key(store, _MANIFEST, json.dumps(asdict(manifest), indent=1).encode())


def load(store: Store) -> Manifest | None:
    """The manifest; None where there is none, or one whose writer was killed. Raises ValueError, which names the file,
    for one of a later format or of damaged fields."""
    try:
        found = json.loads(read_key(store, _MANIFEST) or b"null")
    except ValueError:
        return None
    if found is None:
        return None
    try:
        if found["format"] != _FORMAT:
            raise ValueError(f"it is of another version of vecadd, of format {found['format']}")
        piece, shape = tuple(found["piece"]), found["described"]["shape"]
        if len(piece) != len(shape) or any(type(extent) is not int or extent < 1 for extent in piece):
            raise ValueError(f"pieces of {piece} divide no sum of shape {shape}")
        return Manifest(**{**found, "piece": piece})
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{store}/{_MANIFEST} is no record of an addition to go on with: {error}. Without --resume (resume=True) "
            "an addition into a local folder or archive begins anew; from another store remove what is there"
        ) from error


def start_attempt(store: Store, name: str) -> None:
    """Says which attempt may write; with an empty name none may any more."""
    write_key(store, _ATTEMPT, name.encode())


def attempt(store: Store) -> str:
    """The attempt that may write; an empty name where none may."""
    return (read_key(store, _ATTEMPT) or b"").decode()


def note(store: Store, begin: int, end: int) -> None:
    """Says that the pieces from ``begin`` to before ``end`` are finished: called by the one who adds that run."""
    write_key(store, f"{_FINISHED}/{begin}", f"{begin} {end}\n".encode())


def reached(store: Store, begin: int) -> int:
    """Before which piece the run that begins there is finished."""
    found = _run_in(store, f"{_FINISHED}/{begin}")
    return found[1] if found else begin


def finished(store: Store) -> list[Run]:
    """The runs of pieces that are finished."""
    return [run for key in keys_below(store, f"{_FINISHED}/") if (run := _run_in(store, key))]


def _run_in(store: Store, key: str) -> Run | None:
    found = re.fullmatch(rb"(\d+) (\d+)\n", read_key(store, key) or b"")
    return (int(found[1]), int(found[2])) if found else None


def remove(store: Store) -> None:
    """Removes the record, its manifest last: what is left by a kill is known as complete."""
    for key in keys_below(store, f"{FOLDER}/"):
        if key != _MANIFEST:
            delete_key(store, key)
    delete_key(store, _MANIFEST)

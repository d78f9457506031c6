"""An operand of an addition, which is read box by box; what cannot be read is named."""

import errno
from dataclasses import dataclass
from typing import Any

import numpy as np
from zarr.abc.store import Store

from vecadd.stores.chunks import Box, chunks_in
from vecadd.stores.pieces import part_of, show_box
from vecadd.stores.target import Array


@dataclass(frozen=True)
class Operand:
    """An array that is added, and the name that says where it is."""

    name: str | Store
    array: Array

    def read(self, box: Box) -> "np.ndarray[Any, Any]":
        """What is added to a box of the sum. Raises an OSError that has the operand's name, or that of a file in it."""
        part = part_of(box, self.array.shape)
        try:
            return np.asarray(self.array[part])
        except MemoryError:
            raise
        except Exception as error:  # of a codec, which has no kind of its own: a damaged chunk, mostly
            if getattr(error, "filename", None):
                raise
            said = getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"
            number = getattr(error, "errno", None) or errno.EIO
            raise OSError(number, f"{self._unreadable(part)} cannot be read: {said}", str(self.name)) from error

    def _unreadable(self, part: Box) -> str:
        """The first chunk, or shard, of a part that cannot be read: that was read at once, and its error names none."""
        for key, inside in chunks_in(self.array, part).items():
            try:
                self.array[inside]
            except Exception:
                return f"{'shard' if self.array.shards else 'chunk'} {key}"
        return f"elements {show_box(part)}"

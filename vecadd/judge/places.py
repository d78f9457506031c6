"""Where a call's arrays lie: drawn at random for each call, with poison around them."""

from collections.abc import Callable
from dataclasses import dataclass

# Bytes in front of, between and behind the arrays: a block of 1024 threads of 16 bytes runs over 16 KiB.
GUARD = 64 << 10
LINE = 256  # bytes: the alignment of memory that CUDA allocates
SLACK = 64  # lines that each array may be shifted by

Draw = Callable[[int], int]  # a random whole number from 0 up to, and without, this one


@dataclass(frozen=True)
class Room:
    """Memory for arrays of n elements of that many bytes each."""

    n: int
    itemsize: int

    @property
    def elements(self) -> int:
        """Of the memory that holds the arrays wherever they lie in it."""
        return self._begin(3) + self._guard

    def aligned(self, draw: Draw) -> tuple[int, int, int]:
        """The elements at which a, b and out begin: all on whole lines."""
        return self._starts(draw, lambda: 0)

    def misaligned(self, draw: Draw, alignment: int) -> tuple[int, int, int]:
        """As above, aligned to so many bytes and, as far as that leaves a choice, to no more."""
        step = max(1, alignment // self.itemsize)
        return self._starts(draw, lambda: step * draw(max(1, LINE // self.itemsize // step)))

    @property
    def _guard(self) -> int:
        return GUARD // self.itemsize

    def _begin(self, array: int) -> int:
        """Of the space that an array is shifted in: on a whole line."""
        line = LINE // self.itemsize
        space = -(-self.n // line) * line + (SLACK + 1) * line + self._guard
        return array * space + self._guard

    def _starts(self, draw: Draw, offset: Callable[[], int]) -> tuple[int, int, int]:
        line = LINE // self.itemsize
        a, b, out = (self._begin(array) + line * draw(SLACK) + offset() for array in range(3))
        return a, b, out

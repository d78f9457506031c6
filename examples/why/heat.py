"""A heat equation, each cell with its left neighbour, in place.

reason  operands that overlap
mended  two rods take turns
"""

import sys

import numpy as np

N = 8_000_000


def slow(steps: int = 30) -> None:
    """The sum overlaps its operands, so NumPy copies an operand first."""
    rod = np.ones(N)
    for _ in range(steps):
        np.add(rod[1:], rod[:-1], out=rod[1:])
        rod *= 0.5


def mended(steps: int = 30) -> None:
    """The sum goes to the other rod."""
    rod, other = np.ones(N), np.ones(N)
    for _ in range(steps):
        np.add(rod[1:], rod[:-1], out=other[1:])
        other *= 0.5
        rod, other = other, rod


if __name__ == "__main__":
    (mended if sys.argv[1:] == ["mended"] else slow)()

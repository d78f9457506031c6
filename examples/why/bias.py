"""A bias that is added to many points of three coordinates.

reason  short rows
mended  a row a coordinate
"""

import sys

import numpy as np

POINTS = 1_000_000


def slow(layers: int = 50) -> None:
    """Each row has three numbers."""
    points, bias = np.ones((POINTS, 3), np.float32), np.ones(3, np.float32)
    for _ in range(layers):
        points += bias


def mended(layers: int = 50) -> None:
    """Each of three rows has a number of all points."""
    points, bias = np.ones((3, POINTS), np.float32), np.ones((3, 1), np.float32)
    for _ in range(layers):
        points += bias


if __name__ == "__main__":
    (mended if sys.argv[1:] == ["mended"] else slow)()

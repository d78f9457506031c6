"""A matrix made symmetric: itself and its transpose.

reason  short rows
mended  the transpose is kept as an array of its own
"""

import sys

import numpy as np

N = 2048


def slow(rounds: int = 20) -> None:
    """The transpose's neighbours are a row apart."""
    matrix, result = np.ones((N, N)), np.ones((N, N))
    for _ in range(rounds):
        np.add(matrix, matrix.T, out=result)


def mended(rounds: int = 20) -> None:
    """All three are in C order."""
    matrix, result = np.ones((N, N)), np.ones((N, N))
    transposed = np.ascontiguousarray(matrix.T)
    for _ in range(rounds):
        np.add(matrix, transposed, out=result)


if __name__ == "__main__":
    (mended if sys.argv[1:] == ["mended"] else slow)()

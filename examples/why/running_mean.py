"""A running mean: large samples are added up in place.

reason  one thread
mended  vecadd.install()
"""

import sys

import numpy as np

import vecadd

N = 1 << 24


def slow(samples: int = 60) -> None:
    """NumPy adds on one thread."""
    total, sample = np.zeros(N, np.float32), np.ones(N, np.float32)
    for _ in range(samples):
        total += sample


def mended(samples: int = 60) -> None:
    """The same lines, with vecadd in NumPy's addition."""
    with vecadd.install():
        slow(samples)


if __name__ == "__main__":
    (mended if sys.argv[1:] == ["mended"] else slow)()

"""A step of particles in one table, a record each.

reason  gaps between elements
mended  an array a field
"""

import sys

import numpy as np

N = 250_000
FIELDS = ("x", "y", "z", "vx", "vy", "vz")


def slow(steps: int = 100) -> None:
    """The coordinates of two particles are 24 bytes apart, so most of each cache line is not used."""
    particles = np.ones(N, [(name, np.float32) for name in FIELDS])
    for _ in range(steps):
        for name in "xyz":
            particles[name] += particles["v" + name]


def mended(steps: int = 100) -> None:
    """Each field is one run of memory."""
    particles = {name: np.ones(N, np.float32) for name in FIELDS}
    for _ in range(steps):
        for name in "xyz":
            particles[name] += particles["v" + name]


if __name__ == "__main__":
    (mended if sys.argv[1:] == ["mended"] else slow)()

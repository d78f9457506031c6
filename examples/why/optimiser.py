"""An optimiser's update that makes new parameters in each step.

reason  page faults of a new sum
mended  two buffers take turns
"""

import sys

import numpy as np

N = 12_000_000


def slow(steps: int = 40) -> None:
    """Each sum is new memory, whose pages the system hands out one by one, filled with zeros."""
    parameters, step = np.ones(N, np.float32), np.full(N, -0.01, np.float32)
    for _ in range(steps):
        parameters = parameters + step


def mended(steps: int = 40) -> None:
    """The sum goes to memory that was written before."""
    parameters, step = np.ones(N, np.float32), np.full(N, -0.01, np.float32)
    spare = parameters.copy()
    for _ in range(steps):
        np.add(parameters, step, out=spare)
        parameters, spare = spare, parameters


if __name__ == "__main__":
    (mended if sys.argv[1:] == ["mended"] else slow)()

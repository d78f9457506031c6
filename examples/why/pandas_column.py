"""A column of a table as the sum of two others, for one day after another.

reason  page faults of a new sum
mended  the days share one column's memory
"""

import sys

import numpy as np
import pandas

N = 6_000_000


def slow(days: int = 30) -> None:
    """pandas makes each column anew."""
    frame = pandas.DataFrame({"price": np.ones(N), "tax": np.ones(N)})
    for _ in range(days):
        total = frame["price"] + frame["tax"]
    assert total[0] == 2


def mended(days: int = 30) -> None:
    """NumPy adds the columns' arrays into an array that is kept."""
    frame = pandas.DataFrame({"price": np.ones(N), "tax": np.ones(N)})
    total = np.zeros(N)
    for _ in range(days):
        np.add(frame["price"].to_numpy(), frame["tax"].to_numpy(), out=total)
    assert total[0] == 2


if __name__ == "__main__":
    (mended if sys.argv[1:] == ["mended"] else slow)()

"""Lists of pairs for add_many, and their numbers."""

import numpy as np
from arrays import DTYPES, tame_values
from hypothesis import strategies as st

import vecadd

FLOAT32 = np.dtype("float32")
SIZES = [1, 2, 15, 16, 17, 63, 1000, 4096, 5001, 20_000]  # the last are one, two and several tiles of 16 KiB

# A pair: its dtype, its size, where each of its arrays begins in elements past an alignment, and whether it has out and
# which: an array of its own, x or y.
PAIRS = st.lists(
    st.tuples(
        st.sampled_from(DTYPES),
        st.sampled_from(SIZES),
        st.tuples(*[st.integers(0, 17)] * 3),
        st.sampled_from(["own", "x", "y"]),
    ),
    min_size=1,
    max_size=6,
)


def numbers(n, seed, dtype=FLOAT32):
    return tame_values(np.dtype(dtype), n, seed)


def on_device(xs):
    return [vecadd.to_device(x) for x in xs]


X = numbers(10, 1)

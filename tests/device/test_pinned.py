"""empty_pinned: NumPy arrays in page-locked memory, which is given back with the last view."""

import gc

import numpy as np
import pytest
from arrays import DTYPES

import vecadd
from vecadd import _core


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [5, (), (0,), (3, 4), [2, 3], (2, 0, 5)], ids=str)
def test_array_has_the_shape_and_dtype_asked_for(device, shape, dtype):
    x = vecadd.empty_pinned(shape, dtype)
    assert type(x) is np.ndarray
    assert (x.shape, x.dtype) == (np.empty(shape).shape, dtype)
    assert x.flags.writeable
    assert x.flags.c_contiguous
    assert x.flags.aligned
    assert not any(x.tobytes())


@pytest.mark.parametrize("dtype", ["float32", np.float32, "<f4", np.dtype("float32")], ids=str)
def test_dtype_may_be_spelled_as_numpy_allows(device, dtype):
    assert vecadd.empty_pinned(3, dtype).dtype == np.float32


def test_memory_is_counted_while_a_view_of_it_lives(device):
    before = _core.memory_counts()
    x = vecadd.empty_pinned((100, 10), np.float64)
    counts = _core.memory_counts()
    assert counts["pinned_blocks"] == before["pinned_blocks"] + 1
    assert counts["pinned_bytes"] >= before["pinned_bytes"] + 8000
    view = x[5:, ::2].T
    del x
    assert _core.memory_counts() == counts
    view[...] = 1
    del view
    gc.collect()
    assert _core.memory_counts() == before


def test_memory_starts_on_a_cache_line(device):
    assert vecadd.empty_pinned(3, np.int8).ctypes.data % 64 == 0


@pytest.mark.parametrize("shape", [-1, (3, -1), (0, -5)], ids=str)
def test_a_negative_extent_is_refused_in_numpys_words(device, shape):
    with pytest.raises(ValueError, match="negative dimensions are not allowed"):
        vecadd.empty_pinned(shape)


@pytest.mark.parametrize(
    ("shape", "dtype", "exception"),
    [
        ("three", "f4", TypeError),
        (1.5, "f4", TypeError),
        (3, "nonsense", TypeError),
        (3, object, TypeError),
        ((2**40, 2**40), "f4", ValueError),
        ((0, 2**62), "f4", ValueError),
        ((1,) * 65, "f4", ValueError),
        (2**50, "i1", MemoryError),
    ],
    ids=str,
)
def test_what_cannot_be_made_is_refused(device, shape, dtype, exception):
    with pytest.raises(exception):
        vecadd.empty_pinned(shape, dtype)

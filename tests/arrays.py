"""Arrays for the tests: every dtype, values that hurt, any alignment, and a comparison that is exact."""

from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

import vecadd
from vecadd import _core

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
FLOAT8 = np.dtype(ml_dtypes.float8_e4m3fn)

DTYPES = [np.dtype(getattr(ml_dtypes, name, name)) for name in _core.DTYPES]

# Those that NumPy has without ml_dtypes, and that an array interface has a name for.
NUMPY_DTYPES = [dtype for dtype in DTYPES if dtype.isbuiltin == 1]

# The floating-point dtypes that NumPy's own finfo knows: bfloat16 follows rules of its own (test_warnings.py).
NUMPY_FLOATS = [np.dtype(name) for name in ("float16", "float32", "float64", "complex64", "complex128")]

# The type of one lane of a complex number; every other dtype is its own lane.
LANE: dict[np.dtype[Any], np.dtype[Any]] = {
    np.dtype("complex64"): np.dtype("float32"),
    np.dtype("complex128"): np.dtype("float64"),
}

# Bit patterns of the floating-point values where additions go wrong: both zeros, ones, the largest, the infinities, a
# quiet NaN, the smallest and the largest subnormal, the smallest normal, half a last place of 1 and of the largest.
SPECIAL_BITS: dict[np.dtype[Any], tuple[int, ...]] = {
    FLOAT8: (0x00, 0x80, 0x38, 0xB8, 0x7E, 0xFE, 0x7F, 0xFF, 0x01, 0x81, 0x07, 0x08, 0x18, 0x19, 0x58, 0x57),
    np.dtype("float16"): (
        0x0000, 0x8000, 0x3C00, 0xBC00, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E00,
        0x0001, 0x8001, 0x03FF, 0x0400, 0x1000, 0x1001, 0x4C00, 0x4BFF,
    ),
    BFLOAT16: (
        0x0000, 0x8000, 0x3F80, 0xBF80, 0x7F7F, 0xFF7F, 0x7F80, 0xFF80, 0x7FC0,
        0x0001, 0x8001, 0x007F, 0x0080, 0x3B80, 0x3B81, 0x7B00, 0x7AFF,
    ),
    np.dtype("float32"): (
        0x00000000, 0x80000000, 0x3F800000, 0xBF800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000,
        0x00000001, 0x80000001, 0x007FFFFF, 0x00800000, 0x33800000, 0x33800001, 0x73000000, 0x72FFFFFF,
    ),
    np.dtype("float64"): (
        0x0000000000000000, 0x8000000000000000, 0x3FF0000000000000, 0xBFF0000000000000, 0x7FEFFFFFFFFFFFFF,
        0xFFEFFFFFFFFFFFFF, 0x7FF0000000000000, 0xFFF0000000000000, 0x7FF8000000000000,
        0x0000000000000001, 0x8000000000000001, 0x000FFFFFFFFFFFFF, 0x0010000000000000,
        0x3CA0000000000000, 0x3CA0000000000001, 0x7C90000000000000, 0x7C8FFFFFFFFFFFFF,
    ),
}  # fmt: skip

# Bytes that no addition may touch, on each side of a guarded array.
GUARD = 128


def lane(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return LANE.get(dtype, dtype)


def special_values(dtype: np.dtype[Any]) -> NDArray[Any]:
    """The values where additions of this dtype go wrong, as a vector of its lane's dtype."""
    kind = lane(dtype)
    if kind in SPECIAL_BITS:
        return np.array(SPECIAL_BITS[kind], f"uint{8 * kind.itemsize}").view(kind)
    if kind == np.bool_:
        return np.array([False, True])
    limits = np.iinfo(kind)
    return np.array([limits.min, limits.max, limits.max // 2 + 1, 0, 1], kind)


def values(dtype: np.dtype[Any], n: int, seed: int = 0) -> NDArray[Any]:
    """n elements: random bit patterns (so NaNs, subnormals and all exponents), every third lane a special value."""
    random = np.random.default_rng((seed, n, dtype.num))
    kind = lane(dtype)
    lanes = n * dtype.itemsize // kind.itemsize
    if kind == np.bool_:
        return random.integers(0, 2, n).astype(bool)
    result = np.frombuffer(random.bytes(lanes * kind.itemsize), kind).copy()
    result[::3] = random.choice(special_values(dtype), len(result[::3]))
    return result.view(dtype)


def tame_values(dtype: np.dtype[Any], n: int, seed: int = 0) -> NDArray[Any]:
    """n small integers of any dtype: sums neither overflow nor round, so no warning is due."""
    random = np.random.default_rng((seed, n, dtype.num))
    return random.integers(0, 2 if dtype == np.bool_ else 60, n).astype(dtype)


def offset_empty(dtype: np.dtype[Any], n: int, offset: int, alignment: int = 64) -> NDArray[Any]:
    """An uninitialised vector that begins `offset` bytes after a multiple of `alignment`, guard bytes on both sides."""
    buffer = np.full(n * dtype.itemsize + offset + alignment + 2 * GUARD, 0xAB, np.uint8)
    start = GUARD + -(buffer.ctypes.data + GUARD) % alignment + offset
    return buffer[start : start + n * dtype.itemsize].view(dtype)


def at_offset(x: NDArray[Any], offset: int, alignment: int = 64) -> NDArray[Any]:
    """A copy of the vector x that begins `offset` bytes after a multiple of `alignment`, guard bytes on both sides."""
    copy = offset_empty(x.dtype, x.size, offset, alignment)
    copy[:] = x
    return copy


def pinned(x: NDArray[Any]) -> NDArray[Any]:
    """A copy in page-locked memory."""
    copy = vecadd.empty_pinned(x.shape, x.dtype)
    copy[...] = x
    return copy


def _surroundings(x: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """The bytes before and after an array of offset_empty or at_offset."""
    buffer: Any = x
    while buffer.base is not None:
        buffer = buffer.base
    start = x.ctypes.data - buffer.ctypes.data
    return buffer[:start], buffer[start + x.nbytes :]


def guards_intact(x: NDArray[Any]) -> bool:
    """Whether the bytes on both sides of an array of offset_empty or at_offset are as they were made."""
    return all(bool((side == 0xAB).all()) for side in _surroundings(x))


def fill_guards(x: NDArray[Any], element: NDArray[Any]) -> None:
    """Puts copies of one element on both sides of an array of at_offset, as far as whole elements fit."""
    before, after = _surroundings(x)
    pattern = np.tile(element.view(np.uint8), 1 + max(before.size, after.size) // element.nbytes)
    count = before.size // element.nbytes * element.nbytes
    before[before.size - count :] = pattern[:count]
    after[:] = pattern[: after.size]


def bits(x: NDArray[Any]) -> NDArray[Any]:
    """x's bytes, with every NaN made the same one: no library promises its sign and payload."""
    kind = lane(x.dtype)
    lanes = np.array(x, order="C", copy=True).reshape(-1).view(kind)
    if kind.kind in "fV":
        lanes[np.isnan(lanes)] = np.nan
    return lanes.view(np.uint8)


def assert_same_values(got: NDArray[Any], want: NDArray[Any]) -> None:
    """Same dtype, same shape, same bits, NaN sign and payload aside."""
    assert got.dtype == want.dtype
    assert got.shape == want.shape
    different = np.flatnonzero(bits(got) != bits(want))
    first = different[0] // got.dtype.itemsize if different.size else None
    assert first is None, f"element {first}: {got.reshape(-1)[first]!r} where {want.reshape(-1)[first]!r} is due"


def assert_same(got: NDArray[Any], want: NDArray[Any]) -> None:
    """Same kind of object and same memory order too."""
    assert type(got) is type(want)
    assert_same_values(got, want)
    assert (got.flags.c_contiguous, got.flags.f_contiguous) == (want.flags.c_contiguous, want.flags.f_contiguous)


def numpys_sum(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    """numpy.add(a, b), silently: the tests of values; those of warnings are in test_warnings.py."""
    with np.errstate(all="ignore"):
        return np.asarray(np.add(a, b))

"""Every pair of extreme values of every two dtypes, into every dtype of out, on every route: numpy.add's sum, bit for
bit.

EXTREMES is the table: of each dtype zeros of both signs, subnormals, the least and the greatest, infinities, NaNs, and
the values halfway between two neighbours of each narrower format, with their own neighbours on both sides.
"""

import ctypes
import platform
import warnings
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
from arrays import BFLOAT16, DTYPES, FLOAT8, NUMPY_DTYPES, bits, lane
from foreign import ForeignArray, View
from numpy.typing import NDArray

import vecadd
from vecadd import _core

Dtype = np.dtype[Any]
Array = NDArray[Any]

FLOATS = [FLOAT8, np.dtype("float16"), BFLOAT16, np.dtype("float32"), np.dtype("float64")]
FORMAT: dict[Dtype, tuple[int, int]] = dict(zip(FLOATS, ((3, 4), (10, 5), (7, 8), (23, 8), (52, 11)), strict=True))
"""Bits of the fraction and of the exponent."""

INTEGERS = [dtype for dtype in DTYPES if dtype.kind in "iu"]

LIBM = ctypes.CDLL(None)
NEAREST = 0
DIRECTED = (0x400, 0x800, 0xC00) if platform.machine() == "x86_64" else (0x400000, 0x800000, 0xC00000)


@pytest.fixture(autouse=True)
def silent() -> Iterator[None]:
    """numpy.add is asked for values."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


# The table


def halfway(wide: Dtype, narrow: Dtype) -> list[Any]:
    """Numbers of `wide` in the middle of two neighbours of `narrow`, and the numbers of `wide` beside them, where a sum
    goes wrong that is rounded twice, to a format in between first; and one that is clearly too large."""
    fraction, exponent = FORMAT[narrow]
    one, largest = (2**exponent // 2 - 1) << fraction, ((2**exponent - 1) << fraction) - 1
    if narrow == FLOAT8:
        largest = 0x7E  # there are no infinities, and one NaN
    found = []
    for pattern in (0, 1, 1 << fraction, one, one + 1, largest):
        below, above = np.array([pattern, pattern + 1], f"u{narrow.itemsize}").view(narrow).astype(np.float64)
        if pattern == largest:
            above = 2 * below - np.float64(np.array([pattern - 1], f"u{narrow.itemsize}").view(narrow)[0])
        middle = wide.type((below + above) / 2)
        found += [middle, np.nextafter(middle, wide.type(0)), np.nextafter(middle, wide.type(np.inf))]
    too_large = 1.5 * (above - below) * 2 ** (fraction + 1)
    return [*found, wide.type(too_large)] if too_large < np.finfo(wide).max else found


def extreme_floats(dtype: Dtype) -> Array:
    """Both signs of all of them; each of 8 bits."""
    if dtype == FLOAT8:
        return np.arange(256, dtype=np.uint8).view(dtype)
    fraction, exponent = FORMAT[dtype]
    one, infinity = (2**exponent // 2 - 1) << fraction, (2**exponent - 1) << fraction
    half_of_one, half_of_largest = one - ((fraction + 1) << fraction), infinity - ((fraction + 2) << fraction)
    patterns = [
        0, 1, 2, (1 << fraction) - 1, 1 << fraction, one, one + 1, infinity - 1, infinity,
        half_of_one, half_of_one + 1, half_of_largest, half_of_largest - 1,
        infinity + (1 << (fraction - 1)),  # a quiet NaN
        infinity + 1,  # a signalling one, whose payload no narrower format has room for
    ]  # fmt: skip
    positive = np.array(patterns, f"u{dtype.itemsize}").view(dtype)
    if dtype.itemsize > 2:
        narrower = [narrow for narrow in FLOATS if narrow.itemsize < dtype.itemsize]
        middles = [number for narrow in narrower for number in halfway(dtype, narrow)]
        positive = np.unique(np.concatenate([positive, np.array(middles, dtype)]).view(f"u{dtype.itemsize}"))
        positive = positive.view(dtype)
    return np.concatenate([positive, -positive])


def extreme_integers(dtype: Dtype) -> Array:
    """The limits, and the midpoints between two neighbours of floating-point formats of 8 to 53 digits."""
    limits, width = np.iinfo(dtype), 8 * dtype.itemsize
    found = {0, 1, 2, limits.max // 2, limits.max // 2 + 1, limits.max - 1, limits.max, 65504, 65519, 65520, 98304}
    for digits in (8, 11, 24, 53):
        found |= {2**digits + step for step in (-1, 0, 1, 3)}
        for top in (2 ** (width - 1), 2**63):
            half = top >> digits
            found |= {top + half + step for step in (-1, 0, 1)} if half else set()
            found |= {top - half // 2 + step for step in (-1, 0, 1)} if half > 1 else set()
    found |= {-number for number in found} | {limits.min, limits.min + 1}
    return np.array(sorted(number for number in found if limits.min <= number <= limits.max), dtype)


def extremes(dtype: Dtype) -> Array:
    if dtype == np.bool_:
        return np.array([False, True])
    if dtype in INTEGERS:
        return extreme_integers(dtype)
    parts = extreme_floats(lane(dtype))
    if dtype.kind == "c":  # each value once as either part
        return np.stack([parts, np.roll(parts, 7)], axis=1).reshape(-1).view(dtype)
    return parts


EXTREMES: dict[Dtype, Array] = {dtype: extremes(dtype) for dtype in DTYPES}


def pairs(a: Dtype, b: Dtype) -> tuple[Array, Array]:
    """Two vectors in which every value of one dtype meets every value of the other."""
    x, y = EXTREMES[a], EXTREMES[b]
    return np.repeat(x, y.size), np.tile(y, x.size)


@cache
def due(a: Dtype, b: Dtype, out: Dtype | None = None) -> Array | None:
    """numpy.add's sum of pairs(a, b), into an out of this dtype; None where NumPy refuses to cast it."""
    x, y = pairs(a, b)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return np.add(x, y) if out is None else np.add(x, y, np.zeros(x.size, out))
        except TypeError:
            return None


def outs(a: Dtype, b: Dtype) -> list[Dtype]:
    """The dtypes that NumPy casts the sum to."""
    return [out for out in DTYPES if due(a, b, out) is not None]


def assert_due(got: Array, a: Dtype, b: Dtype, out: Dtype | None = None) -> None:
    want = due(a, b, out)
    assert want is not None
    assert got.dtype == want.dtype
    wrong = np.flatnonzero(bits(got) != bits(want))
    if wrong.size:
        at = wrong[0] // want.itemsize
        x, y = (operand[at] for operand in pairs(a, b))
        pytest.fail(f"{a} {x!r} + {b} {y!r} is {got.reshape(-1)[at]!r}, not {want[at]!r} ({wrong.size} bytes differ)")


# On the host


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_contiguous_sums_on_the_host(dtype: Dtype) -> None:
    x, y = pairs(dtype, dtype)
    assert _core.explain_route(x, y)["route"] == "host"
    assert_due(vecadd.add(x, y), dtype, dtype)
    assert_due(vecadd.add_many([x, x], [y, y])[1], dtype, dtype)
    out = np.zeros_like(x)
    plan = vecadd.plan(x, y, out)
    plan()
    assert plan.route == "host"
    assert_due(out, dtype, dtype)
    assert_due(vecadd.add(x, y, y), dtype, dtype)


ROWS_PAY, MIXED_ROWS_PAY = 256 << 10, 1 << 20  # bytes of a sum from which the host adds rows, of one dtype and of two
ROW = 64  # elements of a row, at least: the host adds rows of 32 and more
SHORT_FLOATS = (FLOAT8, np.dtype("float16"), BFLOAT16)  # which NumPy itself converts


def as_rows(x: Array, rows: int) -> Array:
    """Rows that each repeat the vector, once or, if it is short, a few times, with a gap after each row."""
    again = -(-ROW // x.size)
    whole = np.zeros((rows, again * x.size + 3), x.dtype)
    whole[:, :-3] = np.tile(x, again)
    return whole[:, :-3]


def rows_for(nbytes: int, x: Array, itemsize: int) -> int:
    """How many rows of x make a sum of ``nbytes`` bytes."""
    return max(2, -(-nbytes // (as_rows(x, 1).size * itemsize)))


def assert_rows_due(got: Array, a: Dtype, b: Dtype) -> None:
    """Every row of it, and every repetition in a row."""
    size = EXTREMES[a].size * EXTREMES[b].size
    assert_due(got[0, :size], a, b)
    pattern = bits(got[0, :size])
    assert (bits(got).reshape(-1, pattern.size) == pattern).all()


@pytest.mark.parametrize("a", DTYPES, ids=str)
def test_sums_of_rows_on_the_host(a: Dtype) -> None:
    for b in DTYPES:
        want = due(a, b)
        assert want is not None
        if b != a and not {a, b, want.dtype}.isdisjoint(SHORT_FLOATS):
            continue
        x, y = pairs(a, b)
        rows = rows_for(ROWS_PAY if a == b else MIXED_ROWS_PAY, x, want.itemsize)
        left, right = as_rows(x, rows), as_rows(y, rows)
        out = np.zeros_like(left, want.dtype)
        for operands in (
            (left, right),
            (left, right[:1]),
            (left, right, out),
        ):  # right[0]'s NaNs are NumPy's to convert
            assert _core.explain_route(*operands)["layout"] == "rows"
            assert_rows_due(vecadd.add(*operands), a, b)


@pytest.mark.parametrize("a", [dtype for dtype in DTYPES if dtype not in SHORT_FLOATS], ids=str)
def test_sums_of_a_column_and_a_row_on_the_host(a: Dtype) -> None:
    """One element of the column for a whole row: converted once, and repeated."""
    for b in DTYPES:
        want = due(a, b)
        assert want is not None
        if b in SHORT_FLOATS or want.dtype in SHORT_FLOATS:
            continue
        column = EXTREMES[a][:, None]
        again = max(ROW, -(-MIXED_ROWS_PAY // want.nbytes))
        row = np.tile(EXTREMES[b], again)
        assert _core.explain_route(column, row)["layout"] == "rows"
        got = vecadd.add(column, row).reshape(EXTREMES[a].size, again, EXTREMES[b].size)
        for at in (0, again // 2, again - 1):
            assert_due(got[:, at].reshape(-1), a, b)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("mode", DIRECTED, ids=hex)
def test_sums_on_the_host_under_the_callers_rounding(mode: int, dtype: Dtype) -> None:
    x, y = pairs(dtype, dtype)
    out, want = np.zeros_like(x), np.zeros_like(x)
    LIBM.fesetround(mode)
    try:
        vecadd.add(x, y, out)
        np.add(x, y, want)
        kept = LIBM.fegetround()
    finally:
        LIBM.fesetround(NEAREST)
    assert kept == mode
    if dtype == FLOAT8:  # rounded downwards, ml_dtypes' 0 + -0 is 0, where its -0 + 0 and 1 + -1 are -0
        out[(x.view(np.uint8) == 0) & (y == 0)] = want[(x.view(np.uint8) == 0) & (y == 0)]
    assert bits(out).tobytes() == bits(want).tobytes()


# Through the GPU and back


@pytest.mark.parametrize("a", DTYPES, ids=str)
def test_host_arrays_through_the_gpu(device: int, a: Dtype) -> None:
    x, y = pairs(a, a)
    assert _core.explain_route(x, y, device="cuda")["route"] == "transfer"
    assert "differs" not in _core.explain_route(x, y, device="cuda")
    assert_due(vecadd.add(x, y, device="cuda"), a, a)
    assert_due(vecadd.add(x, y, x.copy(), device="cuda"), a, a)


@pytest.mark.parametrize("a", DTYPES, ids=str)
def test_host_arrays_that_are_cast_before_the_gpu_and_after_it(device: int, a: Dtype) -> None:
    for b in DTYPES:
        x, y = pairs(a, b)
        for out in (None, *outs(a, b)):
            if b == a and out in (None, a):
                continue
            operands = (x, y) if out is None else (x, y, np.zeros(x.size, out))
            assert "differs" in _core.explain_route(*operands, device="cuda")
            assert_due(vecadd.add(*operands, device="cuda"), a, b, out)


# On the device


def form_due(a: Dtype, b: Dtype, total: Dtype, out: Dtype) -> str:
    """What adds contiguous operands: "run", the kernel for one dtype; "mixed", which widens what is narrower than a sum
    of 4 or 8 bytes; "general", which takes the rest."""
    if a == b == total == out:
        return "run"
    widened = all(x == total or (x.itemsize <= total.itemsize and x.kind != "c") for x in (a, b))
    return "mixed" if out == total and total.itemsize in (4, 8) and widened else "general"


@pytest.mark.parametrize("a", DTYPES, ids=str)
def test_contiguous_sums_on_the_device(device: int, a: Dtype) -> None:
    for b in DTYPES:
        x, y = map(vecadd.to_device, pairs(a, b))
        total = vecadd.add(x, y)
        assert _core.explain_route(x, y, total)["layout"] == form_due(a, b, total.dtype, total.dtype)
        assert_due(total.numpy(), a, b)
        for dtype in outs(a, b):
            out = vecadd.to_device(np.zeros(x.shape, dtype))
            assert _core.explain_route(x, y, out)["layout"] == form_due(a, b, total.dtype, dtype)
            assert vecadd.add(x, y, out) is out
            assert_due(out.numpy(), a, b, dtype)


@pytest.mark.parametrize("a", DTYPES, ids=str)
def test_strided_sums_on_the_device(driver: Any, a: Dtype) -> None:
    """A column of values and every second element of a row: every value meets every other one by broadcasting."""
    hosts = [np.repeat(EXTREMES[dtype], 2) for dtype in DTYPES]
    memories = [ForeignArray(driver, host) for host in hosts]
    at = DTYPES.index(a)
    column = View(memories[at], hosts[at], hosts[at][::2, None])
    for b, memory, host in zip(DTYPES, memories, hosts, strict=True):
        row = View(memory, host, host[::2])
        assert _core.explain_route(column, row)["kernel"] == "strided"
        assert_due(vecadd.add(column, row).numpy().reshape(-1), a, b)
        for dtype in outs(a, b):
            out = vecadd.to_device(np.zeros((EXTREMES[a].size, EXTREMES[b].size), dtype))
            vecadd.add(column, row, out)
            assert_due(out.numpy().reshape(-1), a, b, dtype)


@pytest.mark.parametrize("a", DTYPES, ids=str)
@pytest.mark.parametrize("step", [1, -1])
def test_sums_on_the_device_by_way_of_a_temporary(driver: Any, step: int, a: Dtype) -> None:
    """out overlaps an operand, shifted or reversed: the sum is made elsewhere and copied there."""
    for b in DTYPES:
        x, y = pairs(a, b)
        total = due(a, b)
        assert total is not None
        for dtype in {total.dtype, min(outs(a, b), key=lambda out: out.itemsize)}:
            host = np.zeros(x.nbytes + x.size * dtype.itemsize + 64, np.uint8)
            operand = host[: x.nbytes].view(a)
            operand[:] = x
            out = host[16 : 16 + x.size * dtype.itemsize].view(dtype)[::step]
            memory = ForeignArray(driver, host)
            given = View(memory, host, operand), vecadd.to_device(y), View(memory, host, out)
            plan = _core.explain_route(*given)
            assert plan["kernel"] == ("contiguous" if a == b == dtype and step == 1 else "strided")
            vecadd.add(*given)
            assert_due(given[2].numpy(), a, b, dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_lists_on_the_device(device: int, dtype: Dtype) -> None:
    x, y = map(vecadd.to_device, pairs(dtype, dtype))
    for total in vecadd.add_many([x, x, y], [y, y, x])[:2]:
        assert_due(total.numpy(), dtype, dtype)


# Numbers beside arrays


def on_host(x: Array) -> Array:
    return x


def in_rows(x: Array) -> Array:
    """Large enough for sums with a number that the host makes itself."""
    return as_rows(x, rows_for(ROWS_PAY, x, x.itemsize))


Place = Callable[[Array], Any]


@pytest.fixture(params=[on_host, in_rows, vecadd.to_device], ids=["host", "rows", "device"])
def place(request: pytest.FixtureRequest) -> Place:
    if request.param is vecadd.to_device:
        request.getfixturevalue("device")
    return request.param  # type: ignore[no-any-return]


def outcome(add: Callable[..., Any], *operands: Any) -> Any:
    """The sum, or the error."""
    try:
        return add(*operands)
    except (OverflowError, TypeError) as error:
        return error


def numpys_outcome(x: Any, y: Any, *out: Array) -> Any:
    """numpy.add's, but that ml_dtypes refuses integers beyond int64, which on the device are rounded to the nearest."""
    want = outcome(np.add, x, y, *out)
    if isinstance(want, TypeError) and "got int" in str(want):
        kind = next(v.dtype.type for v in (x, y) if isinstance(v, np.ndarray))
        return outcome(lambda: np.add(*(kind(float(v)) if type(v) is int else v for v in (x, y)), *out))
    return want


def assert_same_outcome(got: Any, want: Any, note: str) -> None:
    if isinstance(want, Exception):
        assert isinstance(want, type(got)), f"{note}: {got!r} where {want!r} is due"
        return
    assert not isinstance(got, Exception), f"{note}: {got!r}"
    got = got if isinstance(got, np.ndarray) else got.numpy()
    assert got.dtype == want.dtype, note
    assert bits(got).tobytes() == bits(want).tobytes(), f"{note}: {got} where {want} is due"


def assert_as_numpys(number: Any, dtype: Dtype, place: Place) -> None:
    """On either side, into a new sum and into an out of the array's dtype, which every error leaves as it was."""
    given = place(EXTREMES[dtype])
    on_device = isinstance(given, vecadd.DeviceArray)
    host = EXTREMES[dtype] if on_device else given
    for first in (False, True):
        note = f"{number!r} and {dtype}" if first else f"{dtype} and {number!r}"
        operands, numpys = ((number, given), (number, host)) if first else ((given, number), (host, number))
        reference = numpys_outcome if on_device else partial(outcome, np.add)
        assert_same_outcome(outcome(vecadd.add, *operands), reference(*numpys), note)
        want = np.ones_like(host)
        out = vecadd.to_device(want) if on_device else want.copy()
        wanted = reference(*numpys, want)
        assert_same_outcome(outcome(vecadd.add, *operands, out), wanted, note)
        assert_same_outcome(out, want, note)


def weak_integers(dtype: Dtype) -> list[int]:
    """Where an integer dtype ends, and one on; where a floating-point one rounds, overflows and refuses:
    464 is halfway between float8's largest number and what would come after it."""
    if dtype in INTEGERS:
        limits = np.iinfo(dtype)
        return [limits.min - 1, limits.min, -1, 0, 1, limits.max, limits.max + 1, 2**63, 2**64 - 1, 2**64, 10**400]
    largest = 2**128 - 2**103  # halfway between the largest float32 and what comes after it
    found = [0, 257, 464, 465, 2049, 2051, 65519, 65520, 98304, 2**24 + 1, 2**30 + 2**22 + 1, 2**53 + 1, 2**63 - 1,
             2**63, 2**64 - 1, 2**64, 3 * 2**127, largest - 1, largest, 2**1023, 2**1024 - 2**970 - 1, 2**1024 - 2**970,
             2**1024, 10**400]  # fmt: skip
    return found + [-number for number in found]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_pythons_integers_beside_arrays(place: Place, dtype: Dtype) -> None:
    if place is in_rows and dtype in NUMPY_DTYPES and dtype != np.dtype(bool):
        assert _core.explain_route(in_rows(EXTREMES[dtype]), 1)["layout"] == "rows"
    for number in (*weak_integers(dtype), False, True):
        assert_as_numpys(number, dtype, place)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_numbers_beside_arrays_on_the_device(device: int, dtype: Dtype) -> None:
    """Python's own, which give way to the array's dtype, NumPy's of every width, which do not, and complex ones."""
    x = EXTREMES[dtype]
    placed = vecadd.to_device(x)
    doubles = EXTREMES[np.dtype("float64")].tolist()
    strong = [number for kind in (*FLOATS, np.dtype("complex64")) for number in EXTREMES[kind][::3]]
    integers = [number for kind in (np.dtype(bool), *INTEGERS) for number in EXTREMES[kind]]
    for number in (*doubles, *(complex(number, -0.0) for number in doubles[::5]), *strong, *integers):
        assert_same_outcome(vecadd.add(placed, number), np.add(x, number), f"{dtype} and {number!r}")
    for number in (*doubles, *strong):
        assert_same_outcome(vecadd.add(number, placed), np.add(number, x), f"{number!r} and {dtype}")

"""Large host sums of slices, of what is broadcast, of scalars and of two dtypes: made by us, row by row, as NumPy's."""

import warnings

import numpy as np
import pytest
from arrays import BFLOAT16, DTYPES, assert_same, assert_same_values, values
from hypothesis import given
from hypothesis import strategies as st

import vecadd
from vecadd import _core

ROWS, COLUMNS = 300, 1100  # 1.3 MB of float32: above all thresholds from which our way pays


def matrix(dtype="f4", seed=0, rows=ROWS, columns=COLUMNS):
    return values(np.dtype(dtype), rows * columns, seed).reshape(rows, columns)


def route(*arguments, **keywords):
    return _core.explain_route(*arguments, **keywords)


def outcome(add, *arguments, **keywords):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = add(*arguments, **keywords)
    return result, [(w.category, str(w.message)) for w in caught]


def assert_as_numpy(*arguments, **keywords):
    got, warned = outcome(vecadd.add, *arguments, **keywords)
    want, due = outcome(np.add, *arguments, **keywords)
    assert_same(got, want)
    assert warned == due


OURS = {
    "scalar": lambda: (matrix(), 1.5),
    "scalar first": lambda: (2, matrix()),
    "NumPy scalar": lambda: (matrix(), np.float32(1.5)),
    "NumPy scalar of a wider dtype": lambda: (matrix(), np.float64(1.5)),
    "0-d array": lambda: (matrix("i8"), np.array(7)),
    "int and integers": lambda: (matrix("i2"), -3),
    "bool and integers": lambda: (matrix("i2"), True),
    "bool and bools": lambda: (matrix(bool), True),
    "int and float16": lambda: (matrix("f2"), 3),
    "float and complex": lambda: (matrix("c8"), 0.5),
    "complex and complex128": lambda: (matrix("c16"), 1 - 2j),
    "infinity": lambda: (matrix(), np.inf),
    "row": lambda: (matrix(), values(np.dtype("f4"), COLUMNS, 1)),
    "column": lambda: (matrix(), values(np.dtype("f4"), ROWS, 1)[:, None]),
    "row and column": lambda: (values(np.dtype("f8"), COLUMNS, 1), values(np.dtype("f4"), ROWS, 1)[:, None]),
    "slices with contiguous rows": lambda: (matrix()[:, 3:-40], matrix(seed=1)[:, 40:-3]),
    "every other row": lambda: (matrix()[::2], matrix(seed=1)[1::2]),
    "rows backwards": lambda: (matrix()[::-1], matrix(seed=1)),
    "three dimensions": lambda: (matrix().reshape(10, 30, -1), matrix(seed=1).reshape(10, 30, -1)[:, :1]),
    "Fortran order and a scalar": lambda: (matrix().T, 1.5),
    "Fortran order and its column": lambda: (matrix().T, values(np.dtype("f4"), COLUMNS, 1)[:, None]),
    "float32 and float64": lambda: (matrix(), matrix("f8", 1)),
    "int16 and int32": lambda: (matrix("i2"), matrix("i4", 1)),
    "int64 and uint64": lambda: (matrix("i8"), matrix("u8", 1)),
    "int8 and uint8": lambda: (matrix("i1", columns=4000), matrix("u1", 1, columns=4000)),
    "complex64 and float64": lambda: (matrix("c8"), matrix("f8", 1)),
}


@pytest.mark.parametrize("name", OURS)
def test_large_sum_is_ours_and_numpys(name):
    operands = OURS[name]()
    assert route(*operands)["route"] == "host"
    assert_as_numpy(*operands)
    assert_as_numpy(*operands[::-1])


LONGS = ("b", "B", "?", "l", "L", "q", "Q")


@pytest.mark.parametrize("first", "qQ")
@pytest.mark.parametrize("second", LONGS)
def test_long_and_long_long_are_told_apart_as_numpy_does(first, second):
    a, row = matrix(first)[:, 3:], values(np.dtype(second), COLUMNS - 3, 1)
    for operands in ((a, row), (row, a), (a, row[0]), (a, 1)):
        want = np.add(*operands).dtype
        assert want == np.float64 or route(*operands)["route"] == "host"
        assert vecadd.add(*operands).dtype.char == want.char


@pytest.mark.parametrize("shape", [(COLUMNS, ROWS, 1), (COLUMNS, 1, ROWS), (1, COLUMNS, ROWS), (COLUMNS, 2, 1, 200)])
def test_axes_of_one_element_have_numpys_strides(shape):
    a = np.zeros((*shape[:0:-1], shape[0] + 1), "f4")[..., :-1].T
    for other in (a, a[:, ::-1], np.float32(1), a.astype("f8")):
        assert vecadd.add(a, other).strides == np.add(a, other).strides


def test_axes_that_no_operand_walks_through_together_have_numpys_strides():
    a, b = np.zeros((3, 3, COLUMNS * 30), "i1").T[..., None], np.zeros((3, 1, 3, 1), "i8").T
    assert vecadd.add(a, b).strides == np.add(a, b).strides


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i4", "u8", "f4", "f8", "c8", "c16"])
def test_bools_that_are_views_of_other_bytes_are_zero_or_one(dtype):
    bools = np.random.default_rng(0).integers(0, 256, (4 * ROWS, COLUMNS), np.uint8).view(bool)
    row = values(np.dtype(dtype), COLUMNS, 1)
    assert route(bools, row)["route"] == "host"
    assert_as_numpy(bools, row)


NUMPYS = {
    "small": lambda: (matrix(rows=3), 1.5),
    "short rows": lambda: (matrix(rows=200_000, columns=3), np.ones(3, "f4")),
    "strided rows": lambda: (matrix()[:, ::2], matrix(seed=1)[:, ::2]),
    "two memory orders": lambda: (matrix(rows=900, columns=900).T, matrix(rows=900, columns=900)),
    "bfloat16 and float32": lambda: (matrix(BFLOAT16), matrix()),
    "float16 and float32": lambda: (matrix("f2"), matrix()),
    "float and integers": lambda: (matrix("i2"), 1.5),
    "int and bools": lambda: (matrix(bool), 1),
    "complex and floats": lambda: (matrix(), 1j),
    "float too large for float16": lambda: (matrix("f2"), 1e6),
    "int too large for float32": lambda: (matrix(), 10**50),
    "misaligned": lambda: (np.zeros(4 * ROWS * COLUMNS + 1, "u1")[1:].view("f4"), np.float32(1)),
    "permuted axes": lambda: (matrix().reshape(10, 30, -1).transpose(1, 0, 2), np.float32(1)),
}


@pytest.mark.parametrize("name", NUMPYS)
def test_the_rest_is_numpys(name):
    operands = NUMPYS[name]()
    assert route(*operands)["route"] == "numpy"
    assert_as_numpy(*operands)


@pytest.mark.parametrize("dtype", ["f2", "f4", "c8"])
def test_the_largest_float_is_the_last_that_no_warning_is_due_for(dtype):
    """65504 and 3.4e38: NumPy turns what is beyond them into an infinity, and warns."""
    largest = float(np.finfo(dtype).max)
    for number in (largest, -largest, float(np.nextafter(largest, np.inf)), float(np.nextafter(-largest, -np.inf))):
        assert route(matrix(dtype), number)["route"] == ("host" if abs(number) == largest else "numpy")
        assert_as_numpy(matrix(dtype), number)


@pytest.mark.parametrize("number", [70_000, -1, 2**80])
def test_int_that_does_not_fit_is_refused_in_numpys_words(number):
    a = matrix("u2")
    with pytest.raises(OverflowError) as want:
        np.add(a, number)
    with pytest.raises(OverflowError) as got:
        vecadd.add(a, number)
    assert str(got.value) == str(want.value)


def test_scalars_that_overflow_or_are_invalid_warn_once():
    a = np.full((ROWS, COLUMNS), np.finfo("f4").max, "f4")
    assert_as_numpy(a, np.finfo("f4").max)
    a[7, 7] = np.inf
    assert_as_numpy(a, -np.inf)


def test_out_takes_the_sum_and_nothing_else():
    whole = matrix(seed=3)
    want = whole.copy()
    a, row = matrix()[:, 5:-5], values(np.dtype("f4"), COLUMNS - 10, 1)
    with np.errstate(all="ignore"):
        np.add(a, row, want[:, 5:-5])
        assert route(a, row, whole[:, 5:-5])["route"] == "host"
        out = whole[:, 5:-5]
        assert vecadd.add(a, row, out) is out
    assert_same_values(whole, want)


def test_out_may_run_backwards_as_its_operands_do():
    a, b, out = (matrix("i4", seed)[::-1, ::-1] for seed in range(3))
    want = np.add(a, b)
    assert route(a, b, out)["route"] == "host"
    assert vecadd.add(a, b, out) is out
    assert_same_values(out, want)


def test_in_place():
    a = matrix()[:, :-3]
    want = a.copy()
    with np.errstate(all="ignore"):
        np.add(want, 1.5, want)
        assert route(a, 1.5, a)["route"] == "host"
        vecadd.add(a, 1.5, a)
    assert_same_values(a, want)


OUT_OF_NUMPYS = {
    "overlaps in part": lambda memory: (memory[:-1], 1.5, memory[1:]),
    "is an operand of another dtype": lambda memory: (memory.view("i4"), 1, memory.view("u4")),
    "is repeated in an operand": lambda memory: (memory[:1], memory, memory),
    "overlaps itself": lambda memory: (
        memory[:-1],
        1.5,
        np.lib.stride_tricks.as_strided(memory, memory[:-1].shape, (4, 4)),
    ),
    "has another dtype": lambda memory: (memory, 1.5, memory.astype("f8")),
    "is larger": lambda memory: (memory[0], 1.5, memory),
    "is read-only": lambda memory: (memory, 1.5, np.broadcast_to(memory, memory.shape)),
}


@pytest.mark.parametrize("name", OUT_OF_NUMPYS)
def test_out_that_needs_care_is_numpys(name):
    results = []
    for add in (vecadd.add, np.add):
        memory = np.arange(ROWS * COLUMNS, dtype="f4").reshape(ROWS, COLUMNS)
        operands = OUT_OF_NUMPYS[name](memory)
        assert route(*operands)["route"] == "numpy"
        try:
            with np.errstate(all="ignore"):
                result = add(*operands)
        except (TypeError, ValueError) as error:
            result = str(error)
        results.append((result, memory))
    (got, got_memory), (want, want_memory) = results
    assert type(got) is type(want)
    if isinstance(got, str):
        assert got == want
    assert_same_values(got_memory, want_memory)


@given(
    dtypes=st.tuples(st.sampled_from(DTYPES), st.sampled_from(DTYPES)),
    shape=st.tuples(st.integers(1, 3), st.integers(1, 5), st.integers(1, 5)),
    repeated=st.tuples(*[st.sets(st.sampled_from([0, 1, 2]))] * 2),
    cuts=st.tuples(*[st.integers(0, 3)] * 2),
    fortran=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_any_rows_give_numpys_sum(dtypes, shape, repeated, cuts, fortran, seed):
    shape = (*shape[:2], shape[2] * 40_000 // (shape[0] * shape[1]) + 17)
    operands = []
    for dtype, over, cut in zip(dtypes, repeated, cuts, strict=True):
        extents = [1 if axis in over else extent for axis, extent in enumerate(shape)]
        whole = values(dtype, (extents[0] * extents[1]) * (extents[2] + cut), seed)
        array = whole.reshape(extents[0], extents[1], -1)[..., cut:]
        operands.append(array.T if fortran else array)
    assert_as_numpy(*operands)

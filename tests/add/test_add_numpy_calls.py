"""Every call that numpy.add accepts gives exactly what numpy.add gives, and what it refuses is refused in its words."""

import warnings
from fractions import Fraction

import numpy as np
import pytest
from arrays import BFLOAT16, DTYPES, assert_same_values, values
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import vecadd


class Subclass(np.ndarray):
    """An ndarray subclass with an attribute that __array_finalize__ carries along."""

    def __array_finalize__(self, parent):
        self.note = getattr(parent, "note", "made")


class WithArrayUfunc:
    """Answers every ufunc with what it was asked."""

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return ufunc, method, [type(x) for x in inputs], sorted(kwargs)


class ScalarWithArrayUfunc(WithArrayUfunc, np.float32):
    pass


class ScalarWithoutUfuncs(np.float32):
    __array_ufunc__ = None


class Scalar(np.float32):
    pass


class Mixin:
    pass


class MixedScalar(Mixin, np.float32):
    """Of no dtype, to NumPy: its sums are of objects."""


class WithoutUfuncs:
    """Opts out of ufuncs, as NumPy lets a class do."""

    __array_ufunc__ = None


class WithArray:
    def __array__(self, dtype=None, copy=None):
        return np.arange(3.0)


def f32(*shape):
    return np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)


def i16(*shape):
    return np.arange(np.prod(shape, dtype=int), dtype=np.int16).reshape(shape)


def structured(n):
    return np.zeros(n, [("x", "f4"), ("y", "i2")])


def into(out, *inputs, **keywords):
    """A call whose outcome is also `out`'s contents afterwards."""

    def call(add):
        target = out()
        result = add(*inputs, out=target, **keywords)
        return result, result is target, target

    return call


def into_broadcast(shape, *inputs):
    """A call whose out comes from numpy.broadcast_arrays: NumPy warns before it writes there, once."""

    def call(add):
        target = np.broadcast_arrays(np.ones(shape[1:], "f4"), np.ones(shape, "f4"))[0]
        result = add(*inputs, target)
        return result is target, target, add(*inputs, target)

    return call


def itself_in_part(start, stop, out_start):
    """a = memory[start:stop], out = as much memory from out_start on."""

    def call(add):
        memory = f32(4000)
        return add(memory[start:stop], memory[start:stop], memory[out_start : out_start + stop - start]), memory

    return call


CALLS = {
    # Broadcasting
    "row and column": lambda add: add(f32(1, 5), f32(4, 1)),
    "vector and matrix": lambda add: add(f32(5), f32(4, 5)),
    "0-d and vector": lambda add: add(f32(), f32(5)),
    "empty and column": lambda add: add(f32(0, 5), f32(1, 1)),
    "four dimensions": lambda add: add(f32(3, 1, 2, 1), f32(4, 1, 5)),
    "broadcast_to": lambda add: add(np.broadcast_to(f32(5), (4, 5)), f32(4, 5)),
    "0-d and 0-d": lambda add: add(f32(), f32()),
    "one element and one element": lambda add: add(f32(1), f32(1)),
    "shapes that do not broadcast": lambda add: add(f32(4), f32(5)),
    "a sum whose elements wrap around to 2^43": lambda add: add(
        np.broadcast_to(np.int8(1), (2**33, 1)), np.broadcast_to(np.int8(1), (1, 2**31 + 2**10))
    ),
    # Scalars and sequences
    "int scalar": lambda add: add(f32(7), 1),
    "scalar first": lambda add: add(1.5, f32(7)),
    "float scalar and integers": lambda add: add(i16(7), 1.5),
    "bool scalar": lambda add: add(i16(7), True),
    "complex scalar": lambda add: add(f32(7), 1j),
    "int too large": lambda add: add(i16(7), 70000),
    "huge int": lambda add: add(i16(7), 2**80),
    "two ints": lambda add: add(1, 2),
    "two huge ints": lambda add: add(2**80, 2**80),
    "NumPy scalars": lambda add: add(np.float32(1), np.float32(2)),
    "NumPy scalar and array": lambda add: add(np.float64(1), f32(7)),
    "bfloat16 scalars": lambda add: add(BFLOAT16.type(1), BFLOAT16.type(2)),
    "lists": lambda add: add([1, 2, 3], [4, 5, 6]),
    "nested lists": lambda add: add([[1, 2], [3, 4]], (1.0, 2.0)),
    "list and array": lambda add: add([1, 2, 3], f32(3)),
    "ragged list": lambda add: add([[1], [1, 2]], f32(2)),
    "range": lambda add: add(range(5), f32(5)),
    "bytes": lambda add: add(b"ab", f32(2)),
    "None": lambda add: add(None, f32(2)),
    "dict": lambda add: add({}, f32(2)),
    "object with __array__": lambda add: add(WithArray(), f32(3)),
    "memoryview": lambda add: add(memoryview(f32(3)), f32(3)),
    # Mixed dtypes
    "float32 and float64": lambda add: add(f32(7), f32(7).astype("f8")),
    "int16 and float32": lambda add: add(i16(7), f32(7)),
    "int64 and uint64": lambda add: add(np.arange(5), np.arange(5, dtype=np.uint64)),
    "int8 and uint8": lambda add: add(np.int8([1, -1]), np.uint8([1, 255])),
    "bool and int8": lambda add: add(np.array([True, False]), np.int8([5, 6])),
    "float32 and complex64": lambda add: add(f32(7), f32(7).astype("c8")),
    "float16 and bfloat16": lambda add: add(f32(7).astype("f2"), f32(7).astype(BFLOAT16)),
    "bfloat16 and float32": lambda add: add(f32(7).astype(BFLOAT16), f32(7)),
    "bfloat16 and int": lambda add: add(f32(7).astype(BFLOAT16), 1),
    # Layouts
    "every other element": lambda add: add(f32(1000)[::2], f32(500)),
    "backwards": lambda add: add(f32(1000)[::-1], f32(1000)),
    "both backwards": lambda add: add(f32(1000)[::-1], f32(1000)[::-1]),
    "columns": lambda add: add(f32(40, 30)[:, 3:20], f32(40, 17)),
    "transposed": lambda add: add(f32(40, 30).T, f32(30, 40)),
    "both transposed": lambda add: add(f32(40, 30).T, f32(40, 30).T),
    "permuted axes": lambda add: add(f32(4, 5, 6).transpose(1, 2, 0), f32(4, 5, 6).transpose(1, 2, 0)),
    "zero strides": lambda add: add(np.lib.stride_tricks.as_strided(f32(1), (50,), (0,)), f32(50)),
    "misaligned": lambda add: add(np.zeros(401, np.uint8)[1:].view("f4"), f32(100)),
    "field of a structure": lambda add: add(structured(9)["y"], i16(9)),
    "real part": lambda add: add(f32(9).astype("c8").real, f32(9)),
    "byte-swapped": lambda add: add(f32(100).astype(">f4"), f32(100)),
    "both byte-swapped": lambda add: add(f32(100).astype(">f4"), f32(100).astype(">f4")),
    "33 dimensions": lambda add: add(f32(*[1] * 33), f32(*[1] * 33)),
    # Other dtypes
    "longdouble": lambda add: add(f32(9).astype("g"), f32(9).astype("g")),
    "clongdouble": lambda add: add(f32(9).astype("G"), f32(9).astype("G")),
    "longlong": lambda add: add(i16(9).astype("q"), i16(9).astype("q")),
    "ulonglong": lambda add: add(i16(9).astype("Q"), i16(9).astype("Q")),
    "long and longlong": lambda add: add(i16(9).astype("l"), i16(9).astype("q")),
    "longlong and long": lambda add: add(i16(9).astype("q"), i16(9).astype("l")),
    "bools of other bytes": lambda add: add(np.arange(9, dtype="u1").view(bool), np.zeros(9, bool)),
    "bools of other bytes and integers": lambda add: add(np.arange(9, dtype="u1").view(bool), i16(9)),
    "objects": lambda add: add(np.array([1, Fraction(1, 3), "a"], object), np.array([2, 3, "b"], object)),
    "objects that cannot": lambda add: add(np.array([1, None], object), np.array([2, 3], object)),
    "datetime and timedelta": lambda add: add(np.array(["2020-01-01"], "M8[D]"), np.array([3], "m8[h]")),
    "two timedeltas": lambda add: add(np.array([3], "m8[h]"), np.array([3], "m8[s]")),
    "two datetimes": lambda add: add(np.array(["2020-01-01"], "M8[D]"), np.array(["2020-01-01"], "M8[D]")),
    "strings": lambda add: add(np.array(["a", "bc"]), np.array(["d", "e"])),
    "byte strings": lambda add: add(np.array([b"a", b"bc"]), np.array([b"d", b"e"])),
    "StringDType": lambda add: add(np.array(["a"], np.dtypes.StringDType()), np.array(["b"], np.dtypes.StringDType())),
    "structures": lambda add: add(structured(3), structured(3)),
    "two-byte void that is not bfloat16": lambda add: add(np.zeros(3, "V2"), np.zeros(3, "V2")),
    # Keywords
    "where": lambda add: add(f32(6), f32(6), np.zeros(6, "f4"), where=np.array([1, 0, 1, 0, 1, 0], bool)),
    "where that broadcasts": lambda add: add(f32(2, 3), f32(3), out=np.ones((2, 3), "f4"), where=[True, False, True]),
    "where is True": lambda add: add(f32(6), f32(6), where=True),
    "casting": lambda add: add(f32(6), f32(6), casting="no"),
    "casting that forbids": lambda add: add(f32(6), i16(6), casting="no"),
    "casting out down": into(lambda: np.zeros(6, "i2"), f32(6), f32(6), casting="unsafe"),
    "casting out down, forbidden": into(lambda: np.zeros(6, "i2"), f32(6), f32(6)),
    "unknown casting": lambda add: add(f32(6), f32(6), casting="maybe"),
    "dtype up": lambda add: add(f32(6), f32(6), dtype=np.float64),
    "dtype down": lambda add: add(f32(6), f32(6), dtype=np.float16, casting="same_kind"),
    "dtype of other kind": lambda add: add(f32(6), f32(6), dtype=np.int32),
    "dtype object": lambda add: add(f32(6), f32(6), dtype=object),
    "signature": lambda add: add(f32(6), f32(6), signature="dd->d"),
    "unknown signature": lambda add: add(f32(6), f32(6), signature="foo"),
    "order F": lambda add: add(f32(3, 4), f32(3, 4), order="F"),
    "order C of Fortran arrays": lambda add: add(f32(3, 4).T, f32(3, 4).T, order="C"),
    "unknown order": lambda add: add(f32(3), f32(3), order="Z"),
    "subok": lambda add: add(f32(3).view(Subclass), f32(3), subok=False),
    "unknown keyword": lambda add: add(f32(3), f32(3), axis=0),
    "unknown keyword and out": lambda add: add(f32(3), f32(3), f32(3), nonsense=0),
    # Numbers of arguments
    "out is None": lambda add: add(f32(3), f32(3), None),
    "out keyword is None": lambda add: add(f32(3), f32(3), out=None),
    # Subclasses and other protocols
    "subclass": lambda add: add(f32(3).view(Subclass), f32(3)),
    "subclass second": lambda add: add(f32(3), f32(3).view(Subclass)),
    "matrix": lambda add: add(np.asmatrix(f32(3, 3)), f32(3, 3)),
    "recarray": lambda add: add(f32(3).view(np.recarray), f32(3)),
    "masked array": lambda add: add(np.ma.array(f32(3), mask=[0, 1, 0]), f32(3)),
    "chararray": lambda add: add(np.char.array(["a"]), np.char.array(["b"])),
    "__array_ufunc__": lambda add: add(WithArrayUfunc(), f32(3)),
    "__array_ufunc__ second": lambda add: add(f32(3), WithArrayUfunc()),
    "__array_ufunc__ as out": lambda add: add(f32(3), f32(3), out=WithArrayUfunc()),
    "__array_ufunc__ and keywords": lambda add: add(f32(3), WithArrayUfunc(), where=True, dtype="f8"),
    "__array_ufunc__ = None": lambda add: add(f32(3), WithoutUfuncs()),
    "derived from a scalar": lambda add: add(f32(1 << 19), Scalar(1)),
    "derived from a scalar, beside few": lambda add: add(Scalar(1), f32(3)),
    "derived from another class first": lambda add: add(f32(1 << 17), MixedScalar(1)),
    "derived from another class first, beside few": lambda add: add(MixedScalar(1), f32(3)),
    "__array_ufunc__ of a scalar": lambda add: add(f32(3), ScalarWithArrayUfunc(1)),
    "__array_ufunc__ of a scalar beside a large array": lambda add: add(f32(1 << 19), ScalarWithArrayUfunc(1)),
    "__array_ufunc__ of the first, a scalar": lambda add: add(ScalarWithArrayUfunc(1), f32(1 << 19).astype("f8")),
    "__array_ufunc__ = None of a scalar": lambda add: add(f32(1 << 19), ScalarWithoutUfuncs(1)),
    # out
    "out": into(lambda: np.zeros(6, "f4"), f32(6), f32(6)),
    "out of wider dtype": into(lambda: np.zeros(6, "f8"), f32(6), f32(6)),
    "out of complex dtype": into(lambda: np.zeros(6, "c16"), f32(6), f32(6)),
    "out in a tuple": lambda add: add(f32(6), f32(6), out=(np.zeros(6, "f4"),)),
    "None in a tuple": lambda add: add(f32(6), f32(6), out=(None,)),
    "tuple of two": lambda add: add(f32(6), f32(6), out=(np.zeros(6, "f4"), None)),
    "empty tuple": lambda add: add(f32(6), f32(6), out=()),
    "strided out": into(lambda: np.zeros(12, "f4")[::2], f32(6), f32(6)),
    "reversed out": into(lambda: np.zeros(6, "f4")[::-1], f32(6), f32(6)),
    "byte-swapped out": into(lambda: np.zeros(6, ">f4"), f32(6), f32(6)),
    "misaligned out": into(lambda: np.zeros(25, "u1")[1:].view("f4"), f32(6), f32(6)),
    "larger out": into(lambda: np.zeros((4, 6), "f4"), f32(6), f32(6)),
    "smaller out": into(lambda: np.zeros(1, "f4"), f32(6), f32(6)),
    "out of subclass": into(lambda: np.zeros(6, "f4").view(Subclass), f32(6), f32(6)),
    "out of broadcast_arrays": into_broadcast((1, 4), f32(1, 4), f32(1, 4)),
    "out of broadcast_arrays and a number": into_broadcast((1, 100_000), f32(1, 100_000), 1),
    "0-d out": into(lambda: np.zeros((), "f4"), f32(), f32()),
    "0-d out of scalars": into(lambda: np.zeros((), "f4"), 1, 2),
    "out is a list": lambda add: add(f32(3), f32(3), out=[0, 0, 0]),
    "out is a scalar": lambda add: add(1, 2, out=np.float32(0)),
    "out overlaps forwards": itself_in_part(0, 3000, 7),
    "out overlaps backwards": itself_in_part(7, 3007, 0),
    "out overlaps by one": itself_in_part(0, 2000, 1999),
    "out touches": itself_in_part(0, 2000, 2000),
}  # fmt: skip


def outcome(call, add):
    """What a call gives: values with their types, or the exception's type and words; and the warnings on the way."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = plain(call(add))
        except Exception as error:
            result = type(error), str(error)
    return result, [(w.category, str(w.message)) for w in caught]


def plain(x):
    """x with every array replaced by what can be compared exactly."""
    if isinstance(x, np.ma.MaskedArray):
        return type(x), plain(np.asarray(x)), plain(np.ma.getmaskarray(x))
    if isinstance(x, np.ndarray):
        flags = x.flags.c_contiguous, x.flags.f_contiguous, x.flags.writeable
        content = x.tobytes() if x.dtype in DTYPES else repr(x.tolist())
        return type(x), x.dtype, x.dtype.char, x.dtype.byteorder, x.shape, flags, content, getattr(x, "note", None)
    if isinstance(x, np.generic):
        return type(x), x.tobytes()
    if isinstance(x, tuple | list):
        return [plain(part) for part in x]
    return type(x), x


@pytest.mark.parametrize("name", CALLS)
def test_call_gives_what_numpy_gives(name):
    assert outcome(CALLS[name], vecadd.add) == outcome(CALLS[name], np.add)


def test_operands_are_positional_only():
    with pytest.raises(TypeError):
        vecadd.add(a=f32(3), b=f32(3))


@pytest.mark.parametrize("device", [None, "cpu"])
def test_device_cpu_takes_every_keyword(device):
    got = vecadd.add(f32(6), f32(6), dtype="f8", device=device)
    assert plain(got) == plain(np.add(f32(6), f32(6), dtype="f8"))


NATIVE = npst.scalar_dtypes().filter(lambda dtype: dtype.kind in "biufc" and dtype.itemsize <= 16)


@given(data=st.data(), dtypes=st.tuples(NATIVE, NATIVE), seed=st.integers(0, 2**32))
def test_any_dtypes_shapes_and_strides_give_what_numpy_gives(data, dtypes, seed):
    shapes = data.draw(npst.mutually_broadcastable_shapes(num_shapes=2, max_dims=4, max_side=6), "shapes")
    operands = []
    for dtype, shape in zip(dtypes, shapes.input_shapes, strict=True):
        whole = np.random.default_rng(seed).integers(0, 2, [2 * side for side in shape]).astype(dtype)
        steps = data.draw(st.tuples(*[st.sampled_from([1, 2, -1, -2]) for _ in shape]), "steps")
        sliced = whole[tuple(slice(None, None, step) for step in steps)]
        operands.append(sliced[tuple(slice(0, side) for side in shape)])
    assert outcome(lambda add: add(*operands), vecadd.add) == outcome(lambda add: add(*operands), np.add)


@given(data=st.data(), seed=st.integers(0, 2**32))
def test_any_two_windows_of_one_memory_give_what_numpy_gives(data, seed):
    starts = data.draw(st.tuples(*[st.integers(0, 40)] * 3), "starts of a, b, out")
    n = data.draw(st.integers(0, 100), "n")
    a_start, b_start, out_start = starts
    results = []
    for add in (vecadd.add, np.add):
        memory = values(np.dtype("int16"), 150, seed)
        add(memory[a_start : a_start + n], memory[b_start : b_start + n], memory[out_start : out_start + n])
        results.append(memory)
    assert_same_values(*results)

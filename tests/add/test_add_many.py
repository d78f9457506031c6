"""add_many: the additions of two lists, made together.

The sums are add's, in the pairs' order; an error names its pair and leaves every out as it was.
"""

import itertools
import random
import re
import sys
import types
import warnings

import numpy as np
import pytest
from arrays import assert_same_values, at_offset, guards_intact, numpys_sum, offset_empty, values
from hypothesis import given
from pairs import PAIRS, X, numbers

import vecadd


@given(pairs=PAIRS)
def test_host_sums_are_numpys_at_any_size_dtype_and_alignment(pairs):
    xs, ys, outs, expected = [], [], [], []
    for i, (dtype, n, offsets, where) in enumerate(pairs):
        starts = [offset * dtype.itemsize for offset in offsets]
        x, y = at_offset(values(dtype, n, i), starts[0]), at_offset(values(dtype, n, i + 100), starts[1])
        expected.append(numpys_sum(x, y))
        xs.append(x)
        ys.append(y)
        outs.append({"own": offset_empty(dtype, n, starts[2]), "x": x, "y": y}[where])
    with np.errstate(all="ignore"):
        fresh = vecadd.add_many(xs, ys)
        assert vecadd.add_many(xs, ys, out=outs) is outs
    for got, out, want in zip(fresh, outs, expected, strict=True):
        assert_same_values(got, want)
        assert_same_values(out, want)
        assert guards_intact(out)


def test_an_out_that_overlaps_another_pairs_array_is_refused_and_no_other():
    """Windows of one memory, beside a look at each two of them. A pair's own arrays may overlap, which often hides the
    other pair's: one case in 400 needs both of those that reach farthest."""
    draw, memory = random.Random(0), np.arange(140, dtype=np.int32)
    for _ in range(4000):
        lengths = [draw.randrange(17) for _ in range(draw.choice([2, 3, 5]))]
        starts = [[draw.choice([0, 100]) + draw.randrange(21) for _ in range(3)] for _ in lengths]
        arrays = [[memory[start : start + n] for start in some] for some, n in zip(starts, lengths, strict=True)]
        overlaps = any(
            first is not second and np.shares_memory(first[2], other)
            for first, second in itertools.product(arrays, repeat=2)
            for other in second
        )
        want = memory.copy()
        for (a, b, out), n in zip(starts, lengths, strict=True):
            np.add(want[a : a + n], want[b : b + n], want[out : out + n])
        before = memory.copy()
        refused = None
        try:
            vecadd.add_many(*zip(*arrays, strict=True))
        except ValueError as error:
            refused = re.fullmatch(r"pair (\d+): its out overlaps an array of pair (\d+).*", str(error), re.S)
        assert bool(refused) == overlaps, (starts, lengths)
        if refused:
            first, second = (arrays[int(number)] for number in refused.groups())
            assert first is not second
            assert any(np.shares_memory(first[2], other) for other in second)
        assert_same_values(memory, before if refused else want)


def test_host_lists_are_shared_by_threads():
    xs = [numbers(n, n) for n in (300_000, 1, 70_000, 1_000_000, 12_345)]
    ys = [numbers(x.size, 1) for x in xs]
    for got, x, y in zip(vecadd.add_many(xs, ys), xs, ys, strict=True):
        assert_same_values(got, x + y)


def test_every_pair_may_be_of_any_kind_that_numpy_adds():
    xs = [np.arange(6).reshape(2, 3).T, 2, [1, 2], np.ones(3, "int8"), np.float64(1), np.ones((2, 1))]
    ys = [np.arange(6).reshape(3, 2), 3, [3, 4], np.ones(3, "float32"), np.ones(0), np.ones(3)]
    got = vecadd.add_many(xs, ys)
    for sum_, x, y in zip(got, xs, ys, strict=True):
        want = np.add(x, y)
        assert type(sum_) is type(want)
        np.testing.assert_array_equal(sum_, want, strict=isinstance(want, np.ndarray))


def test_memory_order_and_strided_out_are_numpys():
    x, wide = np.asfortranarray(np.arange(6.0).reshape(2, 3)), np.zeros((2, 6))
    (got,) = vecadd.add_many([x], [x])
    assert got.flags.f_contiguous
    vecadd.add_many([x, x], [x, x], [wide[:, ::2], None])
    np.testing.assert_array_equal(wide[:, ::2], 2 * x)
    assert not wide[:, 1::2].any()


def test_columns_of_one_matrix_are_outs_of_their_own():
    matrix = np.zeros((5, 3))
    vecadd.add_many([np.full(5, i) for i in range(3)], [np.ones(5)] * 3, [matrix[:, i] for i in range(3)])
    np.testing.assert_array_equal(matrix, [[1, 2, 3]] * 5)


def test_warnings_are_given_once():
    big = np.full(1000, 3e38, "float32")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        vecadd.add_many([big, big, np.array([np.inf], "float32")], [big, big, np.array([-np.inf], "float32")])
    assert sorted(str(one.message) for one in caught) == [
        "invalid value encountered in add",
        "overflow encountered in add",
    ]


def test_a_warning_that_is_an_error_comes_after_all_sums():
    big, out = np.full(10, 3e38, "float32"), [np.zeros(10, "float32"), np.zeros(10, "float32"), np.zeros((3, 10))]
    xs, ys = [big, np.ones_like(big), np.ones((3, 1))], [big, np.ones_like(big), np.ones(10)]
    with np.errstate(over="raise"), pytest.raises(FloatingPointError):
        vecadd.add_many(xs, ys, out)
    for got, x, y in zip(out, xs, ys, strict=True):
        assert_same_values(got, numpys_sum(x, y).astype(got.dtype))


def test_lists_may_be_any_iterables():
    x = numbers(10, 1)
    for kind in (list, tuple, iter, np.array):
        assert_same_values(vecadd.add_many(kind([x, x]), kind([x, x]))[1], x + x)
    outs = (np.zeros_like(x), np.zeros_like(x))
    got = vecadd.add_many([x, x], [x, x], (out for out in outs))
    assert [got[0] is outs[0], got[1] is outs[1]] == [True, True]
    assert vecadd.add_many([], []) == []
    assert vecadd.add_many((), (), out=[]) == []


WRONG = [
    (([X], [X, X]), ValueError, "ys has 2 arrays and xs has 1"),
    (([X], [X], []), ValueError, "out has 0 arrays and xs has 1"),
    ((3, [X]), TypeError, "xs must be a list of arrays"),
    (([X], [X], 3), TypeError, "out must be a list of arrays"),
    (([X, None], [X, X]), TypeError, "pair 1: x is None"),
    (([X, X], [X, None]), TypeError, "pair 1: y is None"),
    (([X, X], [X, np.ones(3)]), ValueError, "pair 1: operands could not be broadcast"),
    (([X],), TypeError, "positional"),
]


@pytest.mark.parametrize(("arguments", "error", "message"), WRONG)
def test_wrong_arguments_say_which(arguments, error, message):
    with pytest.raises(error, match=message):
        vecadd.add_many(*arguments)


def test_keywords_are_out_and_stream():
    says = r"unexpected keyword argument 'device': .* call add\(x, y, device=\.\.\.\)"
    with pytest.raises(TypeError, match=says):
        vecadd.add_many([X], [X], device="cpu")
    with pytest.raises(TypeError, match="multiple values for argument 'out'"):
        vecadd.add_many([X], [X], None, out=None)


def test_an_error_of_an_iterable_passes_through():
    class Raises:
        def __iter__(self):
            raise LookupError("asked for its arrays")

    def broken():
        yield X
        raise TypeError("of its own")

    for xs, error, says in ((Raises(), LookupError, "asked for its arrays"), (broken(), TypeError, "of its own")):
        with pytest.raises(error, match=says):
            vecadd.add_many(xs, [1])


@pytest.mark.parametrize("other", [1, np.ones(6)[::2], X], ids=["a number", "a view", "a run"])
def test_a_stream_is_refused_by_arrays_on_the_host_of_any_kind(other):
    a = np.ones(3)
    for xs, ys in (([a, other], [a, a]), ([other], [a])):
        with pytest.raises(TypeError, match="stream orders work on device arrays, and the operands are in host memory"):
            vecadd.add_many(xs, ys, stream=0)


HOST_ERRORS = [
    (np.ones(3), np.ones(4), np.ones(3), ValueError),  # shapes
    (np.ones(3), np.ones(3), np.ones(4), ValueError),  # the shape of out
    (np.ones(3), np.ones(3), np.ones(3, int), TypeError),  # casting
    (np.ones(3), np.ones(3), np.broadcast_to(np.ones(3), (2, 3)), ValueError),  # read-only
    (np.ones(3), np.ones(3, "M8[s]"), np.ones(3), TypeError),
    (np.ones(3), 1.0, np.broadcast_to(np.ones(3), (2, 3)), ValueError),
    ([1, 2], np.ones(3), np.ones(3), ValueError),
    (np.ones(3, "u1"), 300, np.ones(3, "u1"), OverflowError),
    (np.ones(3), 3.5, np.ones(3, int), TypeError),
    (np.ones(3), "x", np.ones(3), TypeError),
    (np.ones(3), [1, 2], None, ValueError),
]


def test_an_error_that_is_numpys_has_its_text():
    """A pair is tried with where=False first, whose shape NumPy lists too."""
    x, out = np.ones(3), np.ones(4)
    with pytest.raises(ValueError, match="broadcast") as alone:
        np.add(x, x, out)
    with pytest.raises(ValueError, match="pair 0") as listed:
        vecadd.add_many([x], [x], [out])
    assert str(listed.value) == f"pair 0: {alone.value}"


@pytest.mark.parametrize("wrong", HOST_ERRORS, ids=range(len(HOST_ERRORS)))
def test_host_outs_are_untouched_by_an_error_of_a_later_pair(wrong):
    x, y, out, error = wrong
    outs = [np.zeros_like(X), np.zeros((2, 10), "float32"), out]
    before = np.copy(out)
    with pytest.raises(error) as caught:
        vecadd.add_many([X, X, x], [X, X, y], outs)
    assert "pair 2" in str(caught.value) + "".join(getattr(caught.value, "__notes__", ()))
    assert not outs[0].any()
    assert not outs[1].any()
    if out is not None:
        assert_same_values(out, before)


VALUES_OUT_CANNOT_TAKE = [("int32", np.full(3, np.nan)), ("float64", np.full(3, 1j)), ("float32", np.full(3, 1e300))]


@pytest.mark.parametrize(("dtype", "out"), VALUES_OUT_CANNOT_TAKE, ids=[dtype for dtype, _ in VALUES_OUT_CANNOT_TAKE])
def test_the_contents_of_an_out_of_another_dtype_raise_nothing(dtype, out):
    one = np.ones(3, dtype)
    with np.errstate(all="raise"):
        vecadd.add_many([one], [one], [out])
    assert_same_values(out, np.full(3, 2, out.dtype))


# A pair whose last array changes an earlier one when it is looked at, and what add_many then says.
CHANGING = """
import numpy as np, vecadd

class Changes:
    def __init__(self, change):
        self.change = change

    @property
    def __cuda_array_interface__(self):
        self.change()
        raise AttributeError

    def __array__(self, dtype=None, copy=None):
        return np.ones(3)

def many(n=4_000_000):
    return np.ones(n), np.ones(n), np.full(n, 7.0)

def refused(change, x, y, out=None):
    last = None if out is None else [out, np.zeros(3)]
    try:
        vecadd.add_many([x, Changes(change)], [y, np.ones(3)], last)
    except ValueError as error:
        assert str(error).startswith("pair 0: ") and "resized" in str(error), error
    else:
        raise AssertionError("added")
    assert last is None or not last[1].any()
"""


@pytest.mark.parametrize("role", ["x", "y", "out"])
@pytest.mark.parametrize("n", [1, 8_000_000], ids=["smaller", "larger"])
@pytest.mark.parametrize("given", [False, True], ids=["no out", "out"])
def test_an_array_that_a_later_pair_resizes_is_not_touched(child, role, n, given):
    if role == "out" and not given:
        pytest.skip("there is no out to resize")
    child(f"""{CHANGING}
x, y, out = many()
refused(lambda: {role}.resize({n}, refcheck=False), x, y, out if {given} else None)
assert (out[:1] == 7).all() and (x[:1] == 1).all() and (y[:1] == 1).all()
""")


@pytest.mark.parametrize(
    "change",
    ["x.shape = (4, -1)", "x.dtype = 'int64'", "out.flags.writeable = False", "y.strides = (0,)"],
)
def test_an_array_that_a_later_pair_changes_is_refused(child, change):
    child(f"""{CHANGING}
import warnings
x, y, out = many(1000)

def change():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy would have it done by other calls
        {change}

refused(change, x, y, out)
assert (out == 7).all()
""")


def test_sums_outlive_a_thread_that_takes_them_out_of_the_list(child):
    """The adding threads write to sums that may have no other reference."""
    child("""
import threading, time
import numpy as np, vecadd

x, out = np.ones(2_000_000, np.float32), [None] * 8
done = threading.Event()

def spoil():
    while not done.is_set():
        out[:] = [None] * 8
        vecadd.release()  # what has been dropped is no memory any more

thread = threading.Thread(target=spoil)
thread.start()
end = time.monotonic() + 1
try:
    while time.monotonic() < end:
        vecadd.add_many([x] * 8, [x] * 8, out)
finally:
    done.set()
    thread.join()
vecadd.add_many([x] * 8, [x] * 8, out)
assert all((sum == 2).all() for sum in out)
""")


def test_a_list_has_the_sums_of_pairs_without_an_out_once_all_are_made():
    seen = []

    class Adds:
        def __radd__(self, other):
            seen.append(list(outs))
            return 7

    own = np.zeros(3)
    outs = [None, own, None]
    operands = [np.ones(3), np.ones(3), 1], [np.ones(3), np.ones(3), Adds()]
    assert vecadd.add_many(*operands, outs) is outs
    assert [out is None for out in seen[-1]] == [True, False, True]
    assert outs[1] is own
    assert (outs[0] == 2).all()
    assert (own == 2).all()
    assert outs[2] == 7


def test_a_list_is_as_it_was_after_an_error():
    class Refuses:
        def __radd__(self, other):
            raise RuntimeError("no")

    outs = [None, None]
    with pytest.raises(RuntimeError, match="pair 1: no"):
        vecadd.add_many([np.ones(3), 1], [np.ones(3), Refuses()], outs)
    with pytest.raises(TypeError, match=r"plan\(\) needs an out"):
        vecadd.plan([np.ones(3)] * 2, [np.ones(3)] * 2, outs)
    assert outs == [None, None]
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):  # which all sums are made before
        vecadd.add_many([np.array([np.inf]), 1], [np.array([-np.inf]), 2], outs)
    assert np.isnan(outs[0]).all()
    assert outs[1] == 3


def of_a_matrix(dtype):
    return np.ones((300, 1100), dtype)


@pytest.mark.parametrize(
    ("x", "y", "out"),
    [
        (X, X, X),
        (of_a_matrix("f4"), np.ones(1100, "f4"), of_a_matrix("f4")),
        (of_a_matrix("f4"), of_a_matrix("f8"), of_a_matrix("f8")),
        (np.ones(3, "i1"), np.ones(3, "f4"), np.ones(3, "f4")),
        (np.ones(3, "i1"), [1, 2, 3], np.ones(3, "f8")),
    ],
    ids=["a run", "a row beside a matrix", "two dtypes", "left to NumPy", "a list"],
)
def test_no_reference_to_a_pairs_arrays_is_left(x, y, out):
    before = [sys.getrefcount(each) for each in (x, y, out)]
    for _ in range(3):
        vecadd.add_many([x], [y], out=[out])
        vecadd.add_many([x], [y])
    assert [sys.getrefcount(each) for each in (x, y, out)] == before


@pytest.mark.parametrize("ends", [SystemExit("done"), KeyboardInterrupt("now")], ids=repr)
def test_what_ends_the_program_is_no_error_of_a_pair(ends):
    class Ends:
        def __array_ufunc__(self, *given, **keywords):
            raise ends

    with pytest.raises(type(ends)) as raised:
        vecadd.add_many([X, Ends()], [X, X])
    assert raised.value is ends
    assert (ends.args, getattr(ends, "__notes__", [])) == (("done" if isinstance(ends, SystemExit) else "now",), [])


def test_a_metaclass_that_raises_when_asked_for_rules_has_none():
    class Raises(type):
        def __getattr__(cls, name):
            raise ValueError(name)

    class Number(int, metaclass=Raises):
        pass

    a, out = np.ones(3), np.zeros(3)
    assert (np.add(a, Number(3)) == 4).all()
    assert (vecadd.add_many([a], [Number(3)], [out])[0] == 4).all()
    assert (vecadd.plan(a, Number(4), out)() == 5).all()


@pytest.mark.parametrize("after", ["vecadd.add(x, y)", "vecadd.add(x, z)", "vecadd.add_many([x], [y])[0]"])
def test_an_array_that_a_finalizer_resizes_is_not_touched(child, after):
    """Before Python 3.12 a collection begins where an object is made, and so between a look and the work."""
    child(f"""{CHANGING}
import gc

class Cycle:
    def __init__(self):
        self.own = self

    def __del__(self):
        x.resize(1, refcheck=False)

x, y, _ = many()
z, total = y.astype("f4"), None
gc.collect()
gc.disable()
Cycle()
gc.set_threshold(1)
gc.enable()
try:
    total = {after}
except ValueError as error:
    assert "resized" in str(error) or "shape" in str(error) or "broadcast" in str(error), error
gc.disable()
assert total is None or (total == 2).all()
""")


@pytest.mark.parametrize("kind", [dict, types.MappingProxyType], ids=str)
def test_mappings_are_refused_because_they_give_their_keys(kind):
    pairs = {0: np.ones(3), 1: np.ones(2)}
    with pytest.raises(
        TypeError, match=r"xs must be a sequence of arrays, not <class .*>, which gives its keys .*xs\.values"
    ):
        vecadd.add_many(kind(pairs), kind(pairs))
    with pytest.raises(TypeError, match=r"out must be .* as list\(out\.values\(\)\)"):
        vecadd.add_many(list(pairs.values()), pairs.values(), kind(pairs))
    assert [len(x) for x in vecadd.add_many(pairs.values(), pairs.values())] == [3, 2]

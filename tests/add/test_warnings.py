"""Floating-point warnings: NumPy's own, once a call, in every errstate mode, on every route, from whichever thread.

Overflow and invalid are all that an addition can raise, and underflow where the caller flushes subnormal sums to zero.
bfloat16 overflows only where the float32 sum does, as NumPy has it; its rounding to an infinity is silent.
"""

import ctypes
import platform
import warnings
from functools import partial

import numpy as np
import pytest
from arrays import BFLOAT16, DTYPES, NUMPY_FLOATS, assert_same_values, at_offset, fill_guards, lane, tame_values
from covering import covering
from threads import run_together

import vecadd
from vecadd import _core

FLOATS = [*NUMPY_FLOATS, BFLOAT16]
MODES = ["ignore", "warn", "raise", "call", "print", "log"]
SIZES = [1, 7, 1000, 2**20 + 3]


def host(a, b, **keywords):
    return vecadd.add(a, b, **keywords)


def numpy_route(a, b, **keywords):
    return vecadd.add(np.repeat(a, 2)[::2], b, **keywords)


def transfer(a, b, **keywords):
    return vecadd.add(a, b, device="cuda", **keywords)


ROUTES = [host, numpy_route, transfer]


def label(value):
    """A parameter's part of a test's name."""
    return "+".join(value) if isinstance(value, list) else getattr(value, "__name__", str(value))


@pytest.fixture(params=ROUTES, ids=label)
def route(request):
    """add by one route; the transfer's needs a device."""
    if request.param is transfer:
        request.getfixturevalue("device")
    return request.param


def largest(dtype):
    kind = lane(dtype)
    return np.array([0x7F7F], np.uint16).view(BFLOAT16)[0] if kind == BFLOAT16 else np.finfo(kind).max


def signalling_nan(dtype):
    """One lane: the NaN with only the lowest payload bit, and so without the quiet bit."""
    kind = lane(dtype)
    integer = np.dtype(f"uint{8 * kind.itemsize}")
    infinity = np.array([np.inf], kind).view(integer)
    return (infinity + integer.type(1)).view(kind)[0]


def smallest_subnormal(dtype):
    kind = lane(dtype)
    return np.ones(1, f"uint{8 * kind.itemsize}").view(kind)[0]


# name: the two addends of one lane
TROUBLE = {
    "overflow": lambda dtype: (largest(dtype), largest(dtype)),
    "negative overflow": lambda dtype: (-largest(dtype), -largest(dtype)),
    "invalid": lambda dtype: (lane(dtype).type(np.inf), lane(dtype).type(-np.inf)),
    "signalling NaN": lambda dtype: (signalling_nan(dtype), lane(dtype).type(1)),
}
QUIET = {
    "infinity": lambda dtype: (lane(dtype).type(np.inf), largest(dtype)),
    "quiet NaN": lambda dtype: (lane(dtype).type(np.nan), lane(dtype).type(-np.inf)),
    "subnormal": lambda dtype: (smallest_subnormal(dtype), smallest_subnormal(dtype)),
    "cancellation": lambda dtype: (largest(dtype), -largest(dtype)),
}


def with_trouble(dtype, n, lane_index, names):
    """Two vectors of n tame elements, and at lanes lane_index, lane_index + 1, ... the named addends."""
    a, b = tame_values(dtype, n, 1), tame_values(dtype, n, 2)
    for step, name in enumerate(names):
        at = (lane_index + step) % a.view(lane(dtype)).size
        a.view(lane(dtype))[at], b.view(lane(dtype))[at] = {**TROUBLE, **QUIET}[name](dtype)
    return a, b


class Log:
    def __init__(self):
        self.lines = []

    def write(self, line):
        self.lines.append(line)


def events(add, mode, capsys):
    """What add() does about its flags with errstate at `mode`: everything that is heard, and the result."""
    called, log, out = [], Log(), None
    handler = {"call": lambda kind, flag: called.append((kind, flag)), "log": log}.get(mode)
    capsys.readouterr()
    with warnings.catch_warnings(record=True) as caught, np.errstate(all=mode, call=handler):
        warnings.simplefilter("always")
        try:
            out = add()
        except FloatingPointError as error:
            called.append(str(error))
    heard = [str(w.message) for w in caught], called, log.lines, capsys.readouterr().err
    return heard, out


@pytest.mark.parametrize(
    ("route", "names", "dtype", "mode"),
    covering(2, ROUTES, [[name] for name in TROUBLE] + [["overflow", "invalid"]], FLOATS, MODES),
    indirect=["route"],
    ids=label,
)
def test_flags_are_reported_as_numpy_reports_them(route, names, dtype, mode, capsys):
    a, b = with_trouble(dtype, 1000, 555, names)
    heard, got = events(lambda: route(a, b), mode, capsys)
    numpy_heard, want = events(lambda: np.add(a, b), mode, capsys)
    assert heard == numpy_heard
    assert (got is None) == (want is None)


@pytest.mark.parametrize("mode", ["warn", "raise"])
@pytest.mark.parametrize("empty", [(0,), (3, 0)], ids=str)
@pytest.mark.parametrize("one", [(1,), ()], ids=["one", "0-d"])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_an_element_that_is_converted_beside_no_elements_is_reported_as_numpy_reports_it(
    dtype, one, empty, mode, device, capsys
):
    signalling = np.full(dtype.itemsize // lane(dtype).itemsize, signalling_nan(dtype)).view(dtype).reshape(one)
    for wide in ("int8", "float32", "float64", "complex64", "complex128"):
        x, out = np.ones(empty, wide), np.ones(empty, "complex128")
        for operands in ((x, signalling), (signalling, x), (signalling, x, out)):
            heard, got = events(lambda: vecadd.add(*operands, device="cuda"), mode, capsys)  # noqa: B023
            numpy_heard, want = events(lambda: np.add(*operands), mode, capsys)  # noqa: B023
            assert heard == numpy_heard
            assert (got is None) == (want is None)


# What numpy.add converts before it adds is warned of by itself: up to 8192 elements in one dimension or none.
NARROW = {
    "8192": lambda x: x,
    "8193": lambda x: np.append(x, x[:1]),
    "reversed": lambda x: x[::-1],
    "every other": lambda x: np.repeat(x, 2)[::2],
    "one": lambda x: x[5000:5001],
    "0-d": lambda x: x[5000:5001].reshape(()),
    "scalar": lambda x: x[5000],
    "column": lambda x: x[4980:5020, None],
    "two dimensions": lambda x: np.broadcast_to(x, (40, x.size)).copy(),
    "without the NaN": lambda x: x[:5000],
    "negative": lambda x: (x.view(np.uint32) ^ 0x80000000).view(x.dtype),
    "imaginary": lambda x: x.view("complex64"),
    "imaginary, every other": lambda x: np.repeat(x.view("complex64"), 2)[::2],
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("wide", ["float64", "complex128", "int32", "float32"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("form", NARROW)
def test_a_signalling_nan_that_is_converted_is_reported_as_numpy_reports_it(form, order, wide, mode, capsys):
    row = np.ones(8192, np.float32)
    row[5000 + form.startswith("imaginary")] = signalling_nan(np.dtype("float32"))
    x = NARROW[form](row)
    y = np.ones(np.broadcast_shapes(np.shape(x), (40, 5000 if np.size(x) < 1000 else 1)), wide, order)
    for a, b in ((x, y), (y, x)):
        heard, got = events(lambda a=a, b=b: vecadd.add(a, b), mode, capsys)
        numpy_heard, want = events(lambda a=a, b=b: np.add(a, b), mode, capsys)
        assert heard == numpy_heard
        assert (got is None) == (want is None)


def test_a_quiet_nan_that_is_converted_is_added_by_our_own_code():
    x, y = np.full(5000, np.nan, np.float32), np.ones((100, 5000))
    assert vecadd.explain(x, y).route == "host"


@pytest.mark.parametrize(
    ("route", "where", "n", "name", "dtype"),
    covering(3, ROUTES, ["first", "middle", "last"], SIZES, list(TROUBLE), FLOATS),
    indirect=["route"],
    ids=label,
)
def test_one_lane_anywhere_is_heard_once(route, where, n, name, dtype, capsys):
    lanes = n * dtype.itemsize // lane(dtype).itemsize
    at = {"first": 0, "middle": lanes // 2, "last": lanes - 1}[where]
    a, b = with_trouble(dtype, n, at, [name])
    heard, _ = events(lambda: route(a, b), "warn", capsys)
    numpy_heard, _ = events(lambda: np.add(a, b), "warn", capsys)
    assert heard == numpy_heard
    assert len(heard[0]) == 1


@pytest.mark.parametrize(
    ("route", "name", "dtype", "n"), covering(2, ROUTES, list(QUIET), FLOATS, SIZES), indirect=["route"], ids=label
)
def test_infinities_quiet_nans_and_subnormals_are_silent(route, name, dtype, n, capsys):
    a, b = with_trouble(dtype, n, n // 2, [name])
    heard, _ = events(lambda: route(a, b), "raise", capsys)
    assert heard == ([], [], [], "")


def test_bfloat16_rounding_to_infinity_is_silent(route, capsys):
    a, b = np.full(1000, largest(BFLOAT16)), np.full(1000, 0x7B00, np.uint16).view(BFLOAT16)
    heard, got = events(lambda: route(a, b), "raise", capsys)
    assert heard == ([], [], [], "")
    assert np.isinf(got).all()


@pytest.mark.parametrize(
    ("route", "n", "names", "dtype"),
    covering(2, ROUTES, SIZES, [["overflow"], ["invalid"]], FLOATS),
    indirect=["route"],
    ids=label,
)
def test_floating_point_error_comes_after_the_sum_is_written(route, n, names, dtype):
    a, b = with_trouble(dtype, n, n - 1, names)
    out = np.zeros(n, dtype)
    with np.errstate(all="raise"), pytest.raises(FloatingPointError, match=f"{names[0]}.*encountered in add"):
        route(a, b, out=out)
    with np.errstate(all="ignore"):
        assert_same_values(out, np.add(a, b))


def test_warnings_as_errors_come_after_the_sum_is_written(route):
    a = np.full(100, np.finfo(np.float64).max)
    out = np.zeros(100)
    with pytest.raises(RuntimeWarning, match="overflow encountered in add"):
        route(a, a, out=out)
    assert np.isinf(out).all()


def test_overflow_and_invalid_have_modes_of_their_own(route):
    a, b = with_trouble(np.dtype("float32"), 100, 50, ["overflow", "invalid"])
    with np.errstate(over="ignore", invalid="raise"), pytest.raises(FloatingPointError, match="invalid value"):
        route(a, b)
    with np.errstate(over="raise", invalid="ignore"), pytest.raises(FloatingPointError, match="overflow"):
        route(a, b)


def test_exception_of_the_errstate_callback_reaches_the_caller(route):
    def complain(kind, flag):
        raise ZeroDivisionError(kind)

    a = np.full(100, np.finfo(np.float32).max)
    with np.errstate(all="call", call=complain), pytest.raises(ZeroDivisionError, match="overflow"):
        route(a, a)


@pytest.mark.parametrize("n", [100, 2**20])
def test_warning_names_the_line_that_called(n):
    a = np.full(n, np.finfo(np.float32).max)
    with pytest.warns(RuntimeWarning, match="overflow encountered in add") as caught:
        vecadd.add(a, a)
    assert [w.filename for w in caught] == [__file__]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_memory_beside_the_operands_raises_no_flags(dtype, capsys):
    """A vector that reaches over an operand's end would add signalling NaNs there."""
    snan = np.full(dtype.itemsize // lane(dtype).itemsize, signalling_nan(dtype)).view(dtype)
    for n in range(80):
        a = at_offset(tame_values(dtype, n, 1), n * dtype.itemsize % 64)
        b = at_offset(tame_values(dtype, n, 2), 3 * n * dtype.itemsize % 64)
        fill_guards(a, snan)
        fill_guards(b, snan)
        heard, _ = events(lambda a=a, b=b: vecadd.add(a, b), "raise", capsys)
        assert heard == ([], [], [], "")


@pytest.mark.parametrize(
    ("route", "dtype", "n"), covering(2, ROUTES, DTYPES, [10, 1000, 2**20]), indirect=["route"], ids=label
)
def test_what_the_caller_computed_before_is_not_reported(route, dtype, n):
    a = tame_values(dtype, n)
    huge = float(np.finfo(np.float64).max)
    assert huge * len("two") == np.inf
    with np.errstate(all="raise"):
        route(a, a)


def test_error_state_of_each_thread_is_its_own():
    a = np.full(2**18, np.finfo(np.float32).max)
    failures = []

    def work(i):
        with np.errstate(all=["ignore", "raise"][i]):
            for _ in range(50):
                try:
                    vecadd.add(a, a)
                except FloatingPointError as error:
                    failures.append((i, str(error)))

    run_together(partial(work, 0), partial(work, 1))
    assert failures == [(1, "overflow encountered in add")] * 50


# The processor's floating-point environment, through libm: these need a real C library and are the same on every route
# that stays on the host.

LIBM = ctypes.CDLL(None)
X86 = platform.machine() == "x86_64"
FE_OVERFLOW, FE_INVALID = (8, 1) if X86 else (4, 1)
FE_UPWARD = 0x800 if X86 else 0x400000
x86_only = pytest.mark.skipif(not X86, reason="writes MXCSR")


@pytest.fixture
def floating_point_environment():
    """The caller's environment, put back afterwards."""
    saved = ctypes.create_string_buffer(64)
    LIBM.fegetenv(saved)
    yield
    LIBM.fesetenv(saved)


@pytest.mark.parametrize("n", [100, 2**20])
def test_sticky_flags_of_the_caller_stay_as_they_were(n, floating_point_environment):
    a, troubled = np.ones(n, np.float32), np.full(n, np.finfo(np.float32).max)
    out = np.empty(n, np.float32)
    with np.errstate(all="ignore"):
        LIBM.feclearexcept(FE_OVERFLOW | FE_INVALID)
        vecadd.add(troubled, troubled, out)
        assert LIBM.fetestexcept(FE_OVERFLOW | FE_INVALID) == 0
        huge = float(np.finfo(np.float64).max)
        assert huge * len("two") == np.inf
        vecadd.add(a, a, out)
        assert LIBM.fetestexcept(FE_OVERFLOW | FE_INVALID) == FE_OVERFLOW


@pytest.mark.parametrize("n", [100, 2**20])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rounding_mode_of_the_caller_is_every_threads(dtype, n, floating_point_environment):
    a, b = np.ones(n, dtype), np.full(n, 1e-30, dtype)
    LIBM.fesetround(FE_UPWARD)
    got, want = vecadd.add(a, b), np.add(a, b)
    LIBM.fesetround(0)
    assert_same_values(got, want)
    assert (got > 1).all()


def change_control(bits):
    """Turns these bits of MXCSR around, for this thread."""
    environment = ctypes.create_string_buffer(32)
    LIBM.fegetenv(environment)
    control = int.from_bytes(environment.raw[28:32], "little") ^ bits
    LIBM.fesetenv(ctypes.create_string_buffer(environment.raw[:28] + control.to_bytes(4, "little"), 32))


@x86_only
@pytest.mark.parametrize("n", [100, 2**20])
def test_flush_to_zero_of_the_caller_is_every_threads(n, floating_point_environment):
    a = np.full(n, np.finfo(np.float32).smallest_subnormal)
    change_control(0x8040)
    got = vecadd.add(a, a)
    change_control(0x8040)
    assert (got == 0).all()


def installed(a, b):
    with vecadd.install(least=1):
        return np.add(a, b)


@x86_only
@pytest.mark.parametrize("add", [np.add, vecadd.add, installed], ids=["numpy", "vecadd", "installed"])
@pytest.mark.parametrize("n", [100, 2**20])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_a_sum_that_the_caller_flushes_to_zero_underflows(dtype, n, add, floating_point_environment):
    a = np.full(n, np.finfo(dtype).smallest_normal, dtype)
    b = -1.5 * a
    with np.errstate(all="raise"):
        add(a, b)
        change_control(0x8000)
        with pytest.raises(FloatingPointError, match="underflow encountered in add"):
            add(a, b)


def test_a_hybrid_sum_in_ordinary_memory_which_the_host_adds_warns(device):
    a = np.zeros(8_400_001, np.float32)
    a[-1] = np.finfo(np.float32).max
    assert _core.explain_route(a, a, device="hybrid")["route"] == "hybrid"
    with np.errstate(all="raise"), pytest.raises(FloatingPointError, match="overflow encountered in add"):
        vecadd.add(a, a, device="hybrid")


def test_rounding_mode_of_the_caller_keeps_a_hybrid_sum_on_the_host(device, floating_point_environment):
    a = np.ones(8_400_001, np.float32)
    routes = []
    for mode in (0, FE_UPWARD, 0):
        LIBM.fesetround(mode)
        routes.append(_core.explain_route(a, a, device="hybrid")["route"])
    assert routes == ["hybrid", "host", "hybrid"]


SETTINGS = {
    "denormals are zero": 0x40, "flush to zero": 0x8000, "downwards": 0x2000, "upwards": 0x4000, "to zero": 0x6000,
    "a trap for invalid": 0x80, "a trap for overflow": 0x400,
}  # fmt: skip


@x86_only
@pytest.mark.parametrize("bit", SETTINGS.values(), ids=SETTINGS)
def test_each_setting_that_a_gpu_does_not_have_keeps_the_sum_on_the_host(bit, device, floating_point_environment):
    a = np.ones(1000, np.float32)
    routes = [_core.explain_route(a, a, device="cuda")["route"]]
    change_control(bit)  # a trap is a bit that is not set
    routes.append(_core.explain_route(a, a, device="cuda")["route"])
    change_control(bit)
    assert routes == ["transfer", "host"]

"""float8_e4m3fn: every pair of its 256 patterns, on every way, bit for bit as ml_dtypes adds them, silently.

test_extremes.py adds all of them to every other dtype's; here the signs of NaNs count too."""

import warnings

import numpy as np
import pytest
from arrays import FLOAT8
from foreign import View

import vecadd
from vecadd import _core

PATTERNS = np.arange(256, dtype=np.uint8).view(FLOAT8)
A, B = np.repeat(PATTERNS, 256), np.tile(PATTERNS, 256)


class Typed:
    """An array of which a dtype says what the void of its interface is."""

    def __init__(self, x):
        self.__cuda_array_interface__, self.dtype, self.x = x.__cuda_array_interface__, FLOAT8, x


@pytest.fixture(autouse=True)
def loud():
    """No sum raises a flag: there are no infinities, and ml_dtypes rounds without flags."""
    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def same_bits(got, want):
    got = got if isinstance(got, np.ndarray) else got.numpy()
    return got.dtype == want.dtype and (got.view(np.uint8) == want.view(np.uint8)).all()


def test_on_the_host():
    assert _core.explain_route(A, B)["route"] == "host"
    assert same_bits(vecadd.add(A, B), np.add(A, B))
    assert same_bits(vecadd.add_many([A, B], [B, A])[1], np.add(B, A))
    rows = np.tile(A, 8).reshape(8, -1)[:, : 2**16 - 3]
    assert _core.explain_route(rows, rows[0])["layout"] == "rows"
    assert same_bits(vecadd.add(rows, rows[0]), np.add(rows, rows[0]))


def test_through_the_gpu(device):
    for way in ("cuda", "hybrid"):
        assert same_bits(vecadd.add(A, B, device=way), np.add(A, B))


def test_on_the_device(device):
    x, y = vecadd.to_device(A), vecadd.to_device(B)
    assert same_bits(x + y, np.add(A, B))
    assert all(same_bits(total, np.add(A, B)) for total in vecadd.add_many([x, x], [y, y]))
    out = vecadd.to_device(np.zeros_like(A))
    plan = vecadd.plan(x, y, out)
    plan()
    assert same_bits(out, np.add(A, B))


def wide(x, down=4, across=2):
    """Every pair again and again, in a matrix that is large enough for threads, or for the GPU's vectors."""
    return np.tile(x.reshape(256, 256), (down, across))


def deep(x):
    """Of more axes than the faster kernels take."""
    return wide(x, 2, 1).reshape((2,) * 17)


def turned(x):
    return np.ascontiguousarray(x.T).T


def apart(x):
    return np.repeat(x, 2, 1)[:, ::2]


LAYOUTS = {  # a and b, and how the GPU adds them
    "every other": (apart(wide(A)), apart(wide(B)), "same_dtype"),
    "the first turned": (turned(wide(A, 2, 1)), wide(B, 2, 1), "turned"),
    "the second turned": (wide(A, 2, 1), turned(wide(B, 2, 1)), "turned"),
    "both turned": (turned(wide(A, 2, 1)), turned(wide(B, 2, 1)), "turned"),
    "the first turned, vectors": (turned(wide(A)), wide(B), "tiles"),
    "the second turned, vectors": (wide(A), turned(wide(B)), "tiles"),
    "both turned, vectors": (turned(wide(A)), turned(wide(B)), "tiles"),
    "a column first": (wide(A)[:, :1], wide(B), "same_dtype"),
    "a column second": (wide(B), wide(A)[:, :1], "same_dtype"),
    "a row first": (wide(B)[:1], wide(A), "same_dtype"),
    "a row second": (wide(A), wide(B)[:1], "same_dtype"),
    "many axes, the first turned": (turned(deep(A)), deep(B), "general"),
    "many axes, the second turned": (deep(A), turned(deep(B)), "general"),
}
every_layout = pytest.mark.parametrize(("a", "b", "form"), LAYOUTS.values(), ids=LAYOUTS)


def contiguous_sum(a, b):
    x, y = (np.ascontiguousarray(whole) for whole in np.broadcast_arrays(a, b))
    assert len(np.unique(x.view(np.uint8) * np.uint16(256) + y.view(np.uint8))) == 65536
    return np.add(x, y)


@every_layout
def test_of_any_layout_on_the_host(a, b, form):
    want = contiguous_sum(a, b)
    assert same_bits(vecadd.add(a, b), want)
    assert same_bits(vecadd.add(a, b, np.zeros_like(want)), want)


@every_layout
def test_of_any_layout_on_the_device(device, foreign, a, b, form):
    want = contiguous_sum(a, b)
    x, y = (Typed(View(foreign(base), base, view)) for base, view in ((root(a), a), (root(b), b)))
    out = vecadd.to_device(np.zeros_like(want))
    assert _core.explain_route(x, y, out)["layout"] == form
    assert same_bits(vecadd.add(x, y, out), want)


def root(x):
    """The array whose memory a view is in."""
    return x if x.base is None else root(x.base)


def test_without_an_interface_that_names_it_a_byte_is_refused(device, foreign):
    typed = Typed(foreign(A))
    assert same_bits(vecadd.add(typed, typed), np.add(A, A))
    typed.dtype = None
    with pytest.raises(TypeError, match=r"dtype .V1; vecadd takes .*, float8_e4m3fn in native byte order"):
        vecadd.add(typed, typed)

"""float8_e4m3fn: every pair of its 256 patterns, on every way, bit for bit as ml_dtypes adds them, silently.

test_extremes.py adds all of them to every other dtype's; here the signs of NaNs count too."""

import warnings

import ml_dtypes
import numpy as np
import pytest
from arrays import FLOAT8, bits
from foreign import View

import vecadd
from vecadd import _core

PATTERNS = np.arange(256, dtype=np.uint8).view(FLOAT8)
A, B = np.repeat(PATTERNS, 256), np.tile(PATTERNS, 256)
MATRICES = A.reshape(256, 256), B.reshape(256, 256)


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


def test_the_rounding_is_to_nearest_even_and_too_large_is_nan():
    """What ml_dtypes does, so that these tests show it where it changes."""
    sums = np.add(A, B).astype(np.float64)
    exact = A.astype(np.float64) + B.astype(np.float64)
    known = ~np.isnan(exact)
    assert (np.isnan(sums[known]) == (abs(exact[known]) > 464)).all()
    finite = known & ~np.isnan(sums)
    neighbours = np.unique(PATTERNS.astype(np.float64)[~np.isnan(PATTERNS)])
    distance = abs(neighbours[None, :] - np.unique(exact[finite])[:, None]).min(axis=1)
    nearest = dict(zip(np.unique(exact[finite]).tolist(), distance.tolist(), strict=True))
    assert all(abs(s - e) == nearest[e] for s, e in zip(sums[finite].tolist(), exact[finite].tolist(), strict=True))
    even = np.add(np.array([448, 16], FLOAT8), np.array([16, 1], FLOAT8))
    assert even.astype(int).tolist() == [448, 16]


def test_on_the_host():
    assert _core.explain_route(A, B)["route"] == "host"
    assert same_bits(vecadd.add(A, B), np.add(A, B))
    assert same_bits(vecadd.add_many([A, B], [B, A])[1], np.add(B, A))
    rows = np.tile(A, 8).reshape(8, -1)[:, : 2**16 - 3]
    assert _core.explain_route(rows, rows[0])["layout"] == "rows"
    assert same_bits(vecadd.add(rows, rows[0]), np.add(rows, rows[0]))


@pytest.mark.parametrize("n", [0, 1, 15, 63, 4099])
@pytest.mark.parametrize("offset", [0, 1, 13])
def test_of_any_length_at_any_address(n, offset):
    a, b = A[7 + offset :][:n], B[offset:][:n]
    assert same_bits(vecadd.add(a, b), np.add(a, b))


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


@pytest.mark.parametrize("form", ["same_dtype", "turned"])
def test_of_any_layout_on_the_device(device, foreign, form):
    a, b = MATRICES
    views = (a.T, b) if form == "turned" else (a[::2, ::3], b[::2, ::3])
    x, y = (Typed(View(foreign(whole), whole, view)) for whole, view in zip(MATRICES, views, strict=True))
    a, b = views
    assert _core.explain_route(x, y)["layout"] == form
    assert same_bits(vecadd.add(x, y), np.add(a, b))


def test_beside_float32_on_the_device(device):
    wide = np.linspace(-500, 500, A.size, dtype=np.float32)
    x, y = vecadd.to_device(A), vecadd.to_device(wide)
    with np.errstate(all="ignore"):
        want = np.add(A, wide)
        assert same_bits(np.where(np.isnan(want), 0, vecadd.add(x, y).numpy()), np.where(np.isnan(want), 0, want))
        narrow = np.add(A, wide, np.zeros_like(A))
        assert (bits(vecadd.add(x, y, vecadd.to_device(np.zeros_like(A))).numpy()) == bits(narrow)).all()


def test_without_an_interface_that_names_it_a_byte_is_refused(device, foreign):
    typed = Typed(foreign(A))
    assert same_bits(vecadd.add(typed, typed), np.add(A, A))
    typed.dtype = None
    with pytest.raises(TypeError, match=r"dtype .V1; vecadd takes .*, float8_e4m3fn in native byte order"):
        vecadd.add(typed, typed)


def test_numbers_of_numpy(device):
    number = ml_dtypes.float8_e4m3fn(1.5)
    assert same_bits(vecadd.add(vecadd.to_device(A), number), np.add(A, number))

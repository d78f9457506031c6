"""Views of DeviceArrays: basic indexing and reshape give what NumPy's views give, in the same memory."""

import copy
import pickle
from collections.abc import Iterable
from types import SimpleNamespace

import numpy as np
import pytest
from arrays import DTYPES, assert_same_values, numpys_sum, values
from foreign import Lent
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import vecadd
from vecadd import _core

SHAPE = (4, 5, 6)
KEYS = [
    np.s_[1:3], np.s_[::-1], np.s_[:, ::2], np.s_[..., 1], np.s_[2], np.s_[-1, -2], np.s_[1, 2, 3], np.s_[()],
    np.s_[...], np.s_[None], np.s_[:, None, 1:], np.s_[::-2, ..., ::-3], np.s_[5:], np.s_[:, 3:1], np.s_[np.int64(1)],
    np.s_[:, :, ::100], np.s_[:: 2**62], np.s_[..., None, 0], np.s_[3:0:-1, ..., None, 4:1:-2],
]  # fmt: skip


@pytest.fixture
def arrays(device):
    """A NumPy array, and a DeviceArray of its elements."""
    a = values(np.dtype("f4"), int(np.prod(SHAPE))).reshape(SHAPE)
    made = [a, vecadd.to_device(a)]
    yield made
    made.clear()  # pytest keeps it until after the device's check of what is left


def pointer(x):
    return x.__cuda_array_interface__["data"][0]


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_view_is_numpys(arrays, key):
    a, x = arrays
    view, want = x[key], np.asarray(a[key])
    assert (view.shape, view.ndim, view.size, view.nbytes) == (want.shape, want.ndim, want.size, want.nbytes)
    if want.size:
        steps = [(s, t) for s, t, n in zip(view.strides, want.strides, want.shape, strict=True) if n > 1]
        assert all(got == due for got, due in steps)
    if want.size and want.base is not None:  # NumPy copies a single element
        assert pointer(view) - pointer(x) == want.ctypes.data - a.ctypes.data
    assert_same_values(view.numpy(), want)
    assert_same_values(view.copy().numpy(), want)
    assert_same_values((view + view).numpy(), numpys_sum(want, want))


@given(data=st.data(), shape=hnp.array_shapes(max_dims=4, max_side=6, min_side=0))
def test_any_basic_index_of_any_view_is_numpys(device, data, shape):
    a = np.arange(np.prod(shape), dtype="i4").reshape(shape)
    x = vecadd.to_device(a)
    for _ in range(2):
        key = data.draw(hnp.basic_indices(a.shape, allow_newaxis=True, max_dims=6))
        a, x = np.asarray(a[key]), x[key]
        assert_same_values(x.numpy(), a)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_bit_of_every_dtype_is_gathered(device, dtype):
    a = values(dtype, 900).reshape(30, 30)
    view = vecadd.to_device(a)[::-2, 1::3]
    assert view.numpy().tobytes() == a[::-2, 1::3].tobytes()


@pytest.mark.parametrize(
    ("key", "exception", "message"),
    [
        (4, IndexError, "index 4 is out of bounds for axis 0 with size 4"),
        (-5, IndexError, "index -5 is out of bounds for axis 0 with size 4"),
        ((0, 5), IndexError, "out of bounds for axis 1"),
        ((0, 0, 0, 0), IndexError, "too many indices"),
        ((..., ...), IndexError, "ellipsis"),
        ((None,) * 62, IndexError, "more than 64 dimensions"),
        (2**70, IndexError, "fit"),
        (1.0, TypeError, "basic|ints"),
        ("field", TypeError, "ints"),
        ([0, 1], TypeError, "ints"),
        (True, TypeError, "ints"),
        (np.array([True, False]), TypeError, "integer|ints"),
        (slice(None, None, 0), ValueError, "zero"),
        (slice("a"), TypeError, "slice"),
    ],
    ids=str,
)
def test_other_indices_are_refused(arrays, key, exception, message):
    with pytest.raises(exception, match=message):
        arrays[1][key]


def test_there_may_be_64_dimensions(device):
    x, most = vecadd.to_device(np.array([1.5])), (1,) * 64
    for many in (x.reshape(most), x[(None,) * 63]):
        assert many.shape == most
        assert_same_values((many + many).reshape(1).numpy(), np.array([3.0]))


def test_view_keeps_the_memory(device):
    before = _core.memory_counts()["device_blocks"]
    a = np.arange(100.0)
    x = vecadd.to_device(a)
    view = x[10:20][::2]
    del x
    assert _core.memory_counts()["device_blocks"] == before + 1
    assert_same_values(view.numpy(), a[10:20:2])
    del view
    assert _core.memory_counts()["device_blocks"] == before


@pytest.mark.parametrize("key", [np.s_[1:3], np.s_[:, ::2], np.s_[::-1, 1, ::-2], np.s_[...], np.s_[0, 0, 0]], ids=str)
def test_plus_equals_changes_the_views_elements_alone(device, key):
    a = np.arange(np.prod(SHAPE)).reshape(SHAPE)
    x = vecadd.to_device(a)
    x[key] += vecadd.to_device(np.full(np.shape(a[key]), 1000))
    a[key] += 1000
    assert_same_values(x.numpy(), a)


@pytest.mark.parametrize("value", [1.0, np.ones(SHAPE[1:], "f4"), None], ids=["number", "array", "None"])
def test_elements_are_not_assigned(arrays, value):
    a, x = arrays
    with pytest.raises(TypeError, match=r"vecadd\.add"):
        x[0] = value
    flat = x.reshape(-1)
    for other in (flat[4:8:2], flat[0:4:2], flat[:2][:, None], vecadd.to_device(a[0, 0, :2])):
        with pytest.raises(TypeError, match="elements are not copied by an assignment"):
            flat[0:2] = other
    flat[0:2] = flat[0:2]
    with pytest.raises(TypeError, match=r"vecadd\.add"):
        del x[0]
    assert_same_values(x.numpy(), a)


@pytest.mark.parametrize("shape", [(120,), (12, 10), (-1,), (4, -1, 3), (1, 120, 1), 120, (2, 3, 4, 5)], ids=str)
@pytest.mark.parametrize("view", [np.s_[...], np.s_[::-1]], ids=["contiguous", "backwards"])
def test_reshape_is_numpys(arrays, view, shape):
    a, x = arrays
    got = x[view].reshape(shape)
    assert_same_values(got.numpy(), a[view].reshape(shape))
    assert (pointer(got) == pointer(x)) == (view is Ellipsis)
    assert_same_values(x.reshape(*np.atleast_1d(shape)).numpy(), a.reshape(shape))


@pytest.mark.parametrize(
    ("shape", "new"), [((0,), (0, 5)), ((3, 0), (0,)), ((), ()), ((), (1, 1)), ((1,), ())], ids=str
)
def test_reshape_of_little(device, shape, new):
    assert vecadd.to_device(np.zeros(shape)).reshape(new).shape == new


INVERSE = pow(7, -1, 2**64)  # 7 * INVERSE is 1 in 64 bits


@pytest.mark.parametrize(
    "shape",
    [(7,), (-1, -1), (-2, 60), (7, -1), (0, -1), (2**40, 2**40), (7, INVERSE, -1), (-1, 7, INVERSE), (7, INVERSE, 120)],
    ids=str,
)
def test_reshape_to_another_size_is_refused(arrays, shape):
    assert max(shape) < 2**63, "or it would be refused as an extent"
    with pytest.raises(ValueError, match="cannot reshape"):
        arrays[1].reshape(shape)


@pytest.mark.parametrize(
    "shape",
    [(2**32, 2**32), (2**32, 2**32, 0), (0, 2**32, 2**32), (2**32, 0, 2**32), (0, 2**62), (2**61, 0), (2**60, 0),
     (0, 2**60), (-1, 2**32), (2**32, 2**32, -1), (-1, 0)],
    ids=str,
)  # fmt: skip
def test_reshape_of_no_element_takes_the_shapes_that_numpy_takes(device, shape):
    empty = np.empty(0, np.float32)
    x = vecadd.to_device(empty)
    try:
        expected = empty.reshape(shape).shape
    except ValueError as error:
        with pytest.raises(ValueError, match="array is too big" if "too big" in str(error) else "cannot reshape"):
            x.reshape(shape)
    else:
        assert x.reshape(shape).shape == expected


@pytest.mark.parametrize("shape", [1.5, "12", (4.0, 30)], ids=str)
def test_reshape_takes_ints(arrays, shape):
    with pytest.raises((TypeError, ValueError)):
        arrays[1].reshape(shape)


def test_iteration_gives_views(arrays):
    a, x = arrays
    rows = list(x)
    assert len(rows) == len(a)
    for row, want in zip(rows, a, strict=True):
        assert_same_values(row.numpy(), want)
    assert isinstance(x, Iterable)
    with pytest.raises(TypeError, match="0-d"):
        iter(x[0, 0, 0])


def test_its_truth_is_refused(arrays):
    with pytest.raises(TypeError, match=r"\.numpy\(\)"):
        bool(arrays[1])


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda x: x.copy(), lambda x: vecadd.to_device(x)])
@pytest.mark.parametrize("key", [np.s_[...], np.s_[::-2]], ids=["whole", "view"])
def test_copy_has_memory_of_its_own(arrays, copied, key):
    a, x = arrays
    got = copied(x[key])
    assert type(got) is vecadd.DeviceArray
    assert got.strides == np.ascontiguousarray(a[key]).strides
    x += x
    assert_same_values(got.numpy(), a[key])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickle_goes_by_way_of_the_host(device, protocol, dtype):
    a = values(dtype, 30).reshape(5, 6)
    got = pickle.loads(pickle.dumps(vecadd.to_device(a)[::2], protocol))
    assert type(got) is vecadd.DeviceArray
    assert got.numpy().tobytes() == a[::2].tobytes()


# numpy()


@pytest.mark.parametrize("key", [np.s_[...], np.s_[:, ::-2]], ids=["whole", "view"])
@pytest.mark.parametrize("lay_out", [np.ascontiguousarray, np.asfortranarray, lambda a: np.repeat(a, 2, 0)[::2]])
def test_numpy_writes_into_out_of_any_layout(arrays, key, lay_out):
    a, x = arrays
    out = lay_out(np.zeros_like(a[key]))
    assert x[key].numpy(out=out) is out
    assert_same_values(out, a[key])


def test_numpy_runs_on_a_given_stream_after_the_arrays_own(arrays, driver):
    a, x = arrays
    with np.errstate(all="ignore"):
        assert_same_values((x + x).numpy(stream=driver.stream()), a + a)


def read_only(a):
    a.flags.writeable = False
    return a


@pytest.mark.parametrize(
    ("out", "exception", "message"),
    [
        (np.zeros(SHAPE), TypeError, "dtype float64"),
        (np.zeros(SHAPE, ">f4"), TypeError, "dtype"),
        (np.zeros(SHAPE[1:], "f4"), ValueError, "shape"),
        (np.zeros(SHAPE[::-1], "f4"), ValueError, "shape"),
        (read_only(np.zeros(SHAPE, "f4")), ValueError, "read-only"),
        ([0.0], TypeError, "NumPy array"),
    ],
    ids=["dtype", "byte order", "fewer axes", "other extents", "read-only", "list"],
)
def test_numpy_refuses_another_out(arrays, out, exception, message):
    with pytest.raises(exception, match=message):
        arrays[1].numpy(out=out)
    assert not np.any(out)


# What other libraries see


@pytest.mark.parametrize("key", [np.s_[::2], np.s_[:, ::-1], np.s_[1, :, 2], np.s_[3:3]], ids=str)
def test_interfaces_tell_the_strides(arrays, driver, key):
    a, x = arrays
    interface, want = x[key].__cuda_array_interface__, a[key]
    assert interface["shape"] == want.shape
    assert interface["strides"] == (None if want.flags.c_contiguous else want.strides)
    for other in (SimpleNamespace(__cuda_array_interface__=interface), Lent(x[key])):
        assert_same_values(vecadd.add(other, x[key]).numpy(), numpys_sum(want, want))
    driver.synchronize(0)
    _core.release()


def test_a_view_of_complex_numbers_of_as_many_axes_as_there_are_is_copied(device):
    """Their parts would be one axis more."""
    a = np.arange(6, dtype=np.complex64).reshape((1,) * 63 + (6,)) * (1 - 2j)
    got = vecadd.to_device(a)[..., ::2].copy()
    assert got.ndim == 64
    assert_same_values(got.numpy(), a[..., ::2])


@pytest.mark.parametrize("step", [2**62, 2**63 - 1, -(2**62), -(2**63) + 1])
def test_a_step_that_is_never_taken_has_no_part_in_the_strides(device, step):
    x = vecadd.to_device(np.arange(6, dtype=np.int16).reshape(2, 3))
    assert x[:, ::step].strides == (6, 2)
    assert x[:, ::step].numpy().tolist() == ([[0], [3]] if step > 0 else [[2], [5]])


# repr


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (np.arange(3), "DeviceArray([0, 1, 2], shape=(3,), dtype=int64, device='cuda:0')"),
        (
            np.arange(10_000, dtype=np.int16),
            "DeviceArray([   0,    1,    2, ..., 9997, 9998, 9999], shape=(10000,), dtype=int16, device='cuda:0')",
        ),
        (np.array(1.5), "DeviceArray(1.5, shape=(), dtype=float64, device='cuda:0')"),
        (np.zeros((0, 3), "f4"), "DeviceArray([], shape=(0, 3), dtype=float32, device='cuda:0')"),
        (
            np.arange(20).reshape(10, 2),
            "DeviceArray([[ 0,  1],\n"
            "             [ 2,  3],\n"
            "             [ 4,  5],\n"
            "             ...,\n"
            "             [14, 15],\n"
            "             [16, 17],\n"
            "             [18, 19]], shape=(10, 2), dtype=int64, device='cuda:0')",
        ),
    ],
    ids=["all", "the ends", "no dimension", "no element", "rows"],
)
def test_repr_is_laid_out_as_numpys(device, x, text):
    assert repr(vecadd.to_device(x)) == text


def test_repr_copies_a_few_elements(double, device):
    x = vecadd.to_device(np.zeros((1000, 1000)))
    double.reset(0)
    repr(x)
    assert double.calls("cudaMemcpyAsync") <= 4


def test_repr_of_many_long_axes_shows_no_element(device):
    assert repr(vecadd.to_device(np.zeros((7, 7, 7, 7)))).startswith("DeviceArray([...], shape=(7, 7, 7, 7)")

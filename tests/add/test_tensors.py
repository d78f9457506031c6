"""Arrays on the host of a library that is neither NumPy nor asks to be added by itself, as JAX's and PyTorch's are."""

import numpy as np
import pytest
from arrays import NUMPY_DTYPES, assert_same_values, numpys_sum, values
from foreign import DLPackArray

import vecadd
from vecadd import _core, interop


class Tensor:
    """An array of the library "tensors", which has DLPack and nothing of NumPy's."""

    __module__ = "tensors.core"

    def __init__(self, x):
        self.x = x

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, **keywords):
        return self.x.__dlpack__(**{**keywords, "copy": None})


class Tensors(interop.Library):
    has_host_arrays = True

    def export(self, array, writing):
        return None

    def from_host(self, total, like):
        return Tensor(total)

    def add(self, a, b, out):
        return "the library's own sum"


@pytest.fixture(autouse=True)
def library(monkeypatch):
    monkeypatch.setitem(interop.LIBRARIES, "tensors", Tensors())


@pytest.mark.parametrize("dtype", NUMPY_DTYPES, ids=str)
@pytest.mark.parametrize("n", [1, 17, 300_000])
def test_sum_is_numpys_and_the_librarys(n, dtype):
    a, b = values(dtype, n, 1), values(dtype, n, 2)
    with np.errstate(all="ignore"):
        got = vecadd.add(Tensor(a), Tensor(b))
    assert type(got) is Tensor
    assert_same_values(got.x, numpys_sum(a, b))


def test_addition_is_vecadds_own_on_the_tensors_device():
    a = Tensor(np.ones((30, 40)))
    assert _core.explain_route(a, a)["route"] == "host"
    assert _core.host_view(a).ctypes.data == a.x.ctypes.data


def test_out_is_written_where_it_is():
    a, out = Tensor(np.arange(10.0)), Tensor(np.zeros(10))
    assert vecadd.add(a, a, out) is out
    assert vecadd.add(a, a, out=(out,)) is out
    assert_same_values(out.x, a.x * 2)


@pytest.fixture
def written(monkeypatch):
    """The outs that were reported to the library."""
    counted = []
    monkeypatch.setattr(Tensors, "count_writes", staticmethod(counted.extend))
    return counted


def test_the_library_counts_what_is_written(written):
    a, out, tensor = Tensor(np.arange(10.0)), Tensor(np.zeros(10)), Tensor(np.zeros(10))
    vecadd.add(a, a)
    vecadd.add(a, a, out)
    vecadd.plan(a, a, tensor)()
    vecadd.add_many([a], [a], [out])
    assert written == [out, tensor, out]


def test_a_sum_that_is_written_before_an_error_is_counted(written):
    a, out = Tensor(np.full(10, 3e38, np.float32)), Tensor(np.zeros(10, np.float32))
    with np.errstate(over="raise"), pytest.raises(FloatingPointError):
        vecadd.add(a, a, out)
    with pytest.raises(RuntimeWarning, match="overflow"):  # warnings are errors here
        vecadd.add(a, a, out)
    assert written == [out, out]


def test_read_only_out_is_refused(written):
    a, out = Tensor(np.arange(10.0)), np.zeros(10)
    out.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        vecadd.add(a, a, Tensor(out))
    assert written == []


@pytest.mark.parametrize("view", [lambda x: x[::2], lambda x: x[::-1], lambda x: x.reshape(5, 20).T], ids=range(3))
def test_views_keep_their_layout(view):
    a = np.arange(100.0)
    assert_same_values(vecadd.add(Tensor(view(a)), Tensor(view(a))).x, view(a) * 2)


@pytest.mark.parametrize(
    "b",
    [2, 1.5, 1j, True, np.float32(2), Tensor(np.ones(1)), Tensor(np.ones(10, "f4")), Tensor(np.array(["a"] * 10))],
    ids=["int", "float", "complex", "bool", "NumPy's", "broadcast", "another dtype", "no dtype of ours"],
)
def test_what_vecadd_would_broadcast_or_cast_is_the_librarys_own_sum(b):
    a = Tensor(np.ones(10))
    assert vecadd.add(a, b) == vecadd.add(b, a) == "the library's own sum"
    assert _core.explain_route(a, b)["route"] == "library"


def test_the_gpu_adds_them_when_it_is_asked_to(device):
    a = Tensor(np.arange(1000.0))
    assert _core.explain_route(a, a, device="cuda")["route"] == "transfer"
    assert_same_values(vecadd.add(a, a, device="cuda").x, a.x * 2)


def test_stream_is_a_type_error():
    with pytest.raises(TypeError, match="stream"):
        vecadd.add(Tensor(np.ones(3)), Tensor(np.ones(3)), stream=0)


def test_mixed_with_device_arrays_they_are_refused(device):
    with pytest.raises(TypeError, match="to_device"):
        vecadd.add(Tensor(np.ones(3)), vecadd.to_device(np.ones(3)))


def test_memory_on_a_device_is_no_array_on_the_host(foreign):
    lent = DLPackArray(foreign(np.ones(3)))
    with pytest.raises(BufferError, match="not on the host"):
        _core.host_view(lent)
    assert lent.given == 0


@pytest.mark.parametrize("x", [object(), 1.5], ids=["object", "number"])
def test_what_has_no_dlpack_is_no_array_on_the_host(x):
    with pytest.raises(BufferError, match="__dlpack__"):
        _core.host_view(x)

"""CuPy's arrays are read by their attributes, and by their interface where that is not enough.

A stand-in with the attributes of CuPy's types takes its place, so that it runs without CuPy and on the double.
"""

import contextlib
import gc
import sys
import weakref
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from arrays import assert_same_values

import vecadd
from vecadd import _core

N = 1000


class FakeArray:
    """What operand_cupy.c reads of a cupy.ndarray, and its interface, whose reads are counted."""

    interface_reads = 0
    strides: "tuple[int, ...] | None" = None
    _c_contiguous = True

    def __init__(self, shape, dtype=np.float64):
        self.shape, self.dtype = tuple(shape), np.dtype(dtype)
        self.memory = _fake.foreign(np.zeros(self.shape, self.dtype))
        self.data = SimpleNamespace(ptr=self.memory.pointer)
        self.device = SimpleNamespace(id=0, __enter__=None)

    @property
    def ndim(self):
        return len(self.shape)

    @property
    def size(self):
        return int(np.prod(self.shape))

    @property
    def __cuda_array_interface__(self):
        type(self).interface_reads += 1
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.data.ptr, False),
            "strides": self.strides,
            "version": 3,
            "stream": _fake.stream or 1,
        }

    def numpy(self):
        return self.memory.numpy()


FakeArray.__module__, FakeArray.__name__ = "cupy", "ndarray"
_fake = SimpleNamespace(foreign=None, stream=0, made=lambda ptr: SimpleNamespace(ptr=ptr), streams_asked=0)


def current_stream(device):
    _fake.streams_asked += 1
    return _fake.made(_fake.stream)


@pytest.fixture
def cupy(foreign, monkeypatch):
    """A module `cupy` whose arrays are in the driver's memory; array(x) makes one."""
    if "cupy" in sys.modules:
        pytest.skip("this process has met the real one's type, which test_cupy.py and test_stream_order.py test")
    module = ModuleType("cupy")
    module.ndarray = FakeArray
    module.cuda = SimpleNamespace(get_current_stream=current_stream)
    monkeypatch.setitem(sys.modules, "cupy", module)
    monkeypatch.setattr(_fake, "foreign", foreign)
    monkeypatch.setattr(_fake, "stream", 0)

    def array(x):
        made = FakeArray(x.shape, x.dtype)
        made.memory = foreign(x)
        made.data = SimpleNamespace(ptr=made.memory.pointer)
        return made

    first = array(np.ones(3))
    vecadd.add(first, first, first)  # the type is learnt from the first one
    monkeypatch.setattr(FakeArray, "interface_reads", 0)
    return array


@pytest.mark.parametrize("dtype", ["i1", "f2", "f4", "f8", "c8", "?"])
@pytest.mark.parametrize("shape", [(), (1,), (N,), (3, 4, 5)], ids=str)
def test_plain_arrays_are_read_by_their_attributes(shape, dtype, cupy):
    a = np.ones(shape, dtype)
    out = cupy(np.zeros(shape, dtype))
    assert vecadd.add(cupy(a), cupy(a), out) is out
    assert FakeArray.interface_reads == 0
    assert_same_values(out.numpy(), np.asarray(np.add(a, a)))


def test_the_sum_is_an_array_of_its_own_made_by_its_type(cupy):
    a = np.arange(N, dtype=np.float32)
    got = vecadd.add(cupy(a), cupy(a))
    assert type(got) is FakeArray
    assert FakeArray.interface_reads == 0
    assert_same_values(got.numpy(), a + a)


def test_the_sum_is_on_the_current_stream(cupy, driver):
    a, late = np.arange(N, dtype=np.float32), cupy(np.zeros(N, np.float32))
    source, out = cupy(a), cupy(np.zeros(N, np.float32))
    _fake.stream = driver.stream()
    driver.copy_late(_fake.stream, late.data.ptr, source.data.ptr, a.nbytes)
    vecadd.add(late, late, out)
    assert_same_values(out.numpy(), a + a)


def test_what_is_not_plain_goes_by_the_interface(cupy):
    strided, plain = cupy(np.arange(2.0 * N)), cupy(np.ones(N))
    strided.shape, strided.strides, strided._c_contiguous = (N,), (16,), False
    with contextlib.suppress(NotImplementedError):
        vecadd.add(strided, plain, plain)
    assert FakeArray.interface_reads > 0


@pytest.mark.parametrize(
    ("attribute", "value", "exception"),
    [
        ("dtype", np.dtype(object), TypeError),
        ("data", SimpleNamespace(ptr=0), ValueError),
        ("data", SimpleNamespace(ptr=64), ValueError),
        ("shape", (1 << 40,), ValueError),
        ("shape", (-1,), ValueError),
    ],
    ids=str,
)
def test_what_cannot_be_added_is_refused_in_the_interfaces_words(attribute, value, exception, cupy):
    bad, good = cupy(np.ones(N)), cupy(np.ones(N))
    setattr(bad, attribute, value)
    with pytest.raises(exception):
        vecadd.add(good, bad, good)
    assert FakeArray.interface_reads > 0
    assert_same_values(good.numpy(), np.ones(N))


def test_the_sum_of_a_view_has_strides_of_its_own(cupy):
    view, plain = cupy(np.arange(2.0 * N)), cupy(np.ones(N))
    view.shape, view.strides, view._c_contiguous = (N,), (16,), False
    view.device, sys.modules["cupy"].empty = contextlib.nullcontext(), lambda shape, dtype: cupy(np.zeros(shape, dtype))
    got = vecadd.add(view, plain)
    assert_same_values(got.numpy(), np.arange(1.0, 2 * N, 2))
    assert_same_values(view.memory.numpy(), np.arange(2.0 * N))


@pytest.mark.parametrize("handle", [0, 1], ids=["0", "cudaStreamLegacy"])
def test_both_names_of_the_legacy_default_stream_are_one_stream(cupy, handle):
    _fake.stream = handle
    a = cupy(np.ones(N))
    plan = _core.explain_route(a, a, vecadd.to_device(np.ones(N)))
    assert (plan["stream"], plan["joins"]) == (0, 0)


def test_a_misaligned_array_goes_by_the_interface(cupy):
    a, shifted = np.arange(N, dtype=np.float32), cupy(np.zeros(N + 1, np.float32))
    bytes_ = np.zeros(4 * N + 4, np.uint8)
    bytes_[2 : 4 * N + 2] = a.view(np.uint8)
    shifted.memory = _fake.foreign(bytes_)
    shifted.shape, shifted.data = (N,), SimpleNamespace(ptr=shifted.memory.pointer + 2)
    out = cupy(np.zeros(N, np.float32))
    vecadd.add(shifted, shifted, out)
    assert FakeArray.interface_reads == 2
    assert_same_values(out.numpy(), a + a)


def test_a_sum_is_made_where_the_operands_are_whatever_device_is_current(cupy, double, driver):
    def empty(shape, dtype):
        made_on.append(double.current_device())
        return cupy(np.zeros(shape, dtype))

    made_on: list[int] = []
    sys.modules["cupy"].empty = empty
    a = cupy(np.arange(N, dtype=np.float32))
    a.device = driver.on(0)  # with CuPy's device, another one is current
    a.device.id = 0
    with driver.on(1):
        got = vecadd.add(a, a)
    assert made_on == [0]
    assert_same_values(got.numpy(), 2 * np.arange(N, dtype=np.float32))


def test_types_derived_from_cupys_go_by_the_interface(cupy):
    class Derived(FakeArray):
        interface_reads = 0

    x = Derived((N,), np.float64)
    vecadd.add(x, x, x)
    assert Derived.interface_reads > 0


LEARNING = """
import gc, sys
from types import ModuleType, SimpleNamespace
import numpy as np, vecadd
from vecadd import _core, interop

class ndarray:
    strides = None
    _c_contiguous = True

    def __init__(self):
        self.memory = vecadd.to_device(np.ones(3))
        self.__cuda_array_interface__ = self.memory.__cuda_array_interface__
        self.shape, self.dtype, self.ndim, self.size = (3,), np.dtype(float), 1, 3
        self.data = SimpleNamespace(ptr=self.__cuda_array_interface__["data"][0])

ndarray.__module__ = "cupy"
cupy = sys.modules["cupy"] = ModuleType("cupy")
cupy.ndarray = ndarray
cupy.cuda = SimpleNamespace(get_current_stream=lambda device: SimpleNamespace(ptr=0))

def kinds():
    return next([*x.values()] for x in gc.get_referents(_core) if isinstance(x, dict) and ndarray in x)

met = []

class Meeting(interop.CuPy):
    @property
    def pooled_type(self):
        if not met:
            met.append(None)
            vecadd.add(ndarray(), ndarray(), ndarray())  # as another thread may, while this one learns the type
            met[:] = kinds()
        return None

interop.LIBRARIES["cupy"] = Meeting()
out = ndarray()
vecadd.add(ndarray(), ndarray(), out)
assert len(met) == 1 and kinds()[0] is met[0], (met, kinds())
assert out.memory.numpy().tolist() == [2, 2, 2]
"""


def test_a_type_that_two_threads_learn_at_once_is_known_by_the_first_for_good(device, child):
    child(LEARNING)


@pytest.mark.parametrize("arrays", [lambda x, out: (x, x, out), lambda x, out: ([x], (x,), [out])])
def test_a_plan_keeps_the_stream_that_was_current(cupy, driver, monkeypatch, arrays):
    """CuPy destroys a stream with its last object."""

    class Stream:
        ptr = driver.stream()

    current = Stream()
    monkeypatch.setattr(_fake, "stream", current.ptr)
    monkeypatch.setattr(_fake, "made", lambda ptr: current)
    known = weakref.ref(current)
    plan = vecadd.plan(*arrays(cupy(np.ones(N)), cupy(np.zeros(N))))
    current = SimpleNamespace(ptr=0)
    gc.collect()
    assert known() is not None
    plan()
    del plan
    assert known() is None


def test_a_plan_of_host_arrays_asks_for_no_stream(cupy):
    _fake.streams_asked = 0
    x = np.ones(N)
    vecadd.plan(x, x, x)()
    assert _fake.streams_asked == 0

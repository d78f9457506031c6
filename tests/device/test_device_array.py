"""DeviceArray: an array in a GPU's memory that knows its shape and dtype, adds, and goes back to NumPy."""

import operator

import numpy as np
import pytest
from arrays import DTYPES, NUMPY_DTYPES, assert_same_values, values
from threads import run_together

import vecadd
from vecadd import _core


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (1000,), (3, 0, 5), (7, 11), (2, 3, 4, 5)], ids=str)
def test_every_array_comes_back_as_it_went(device, shape, dtype):
    a = values(dtype, int(np.prod(shape))).reshape(shape)
    x = vecadd.to_device(a)
    back = x.numpy()
    assert back.tobytes() == a.tobytes()
    assert (back.dtype, back.shape) == (a.dtype, a.shape)
    assert back.flags.owndata
    assert back.flags.writeable


def test_attributes_are_an_arrays(device):
    x = vecadd.to_device(np.zeros((3, 4), np.complex64))
    assert (x.shape, x.dtype, x.ndim, x.size, x.itemsize, x.nbytes) == ((3, 4), np.dtype("complex64"), 2, 12, 8, 96)
    assert len(x) == 3
    assert x.device == "cuda:0"


def test_array_without_dimensions_has_no_length(device):
    with pytest.raises(TypeError, match=r"0-d|unsized|dimension"):
        len(vecadd.to_device(np.float32(1)))


@pytest.mark.parametrize("name", ["shape", "dtype", "ndim", "size", "itemsize", "nbytes", "device", "anything"])
def test_attributes_cannot_be_set(device, name):
    with pytest.raises(AttributeError):
        setattr(vecadd.to_device(np.zeros(3)), name, 5)


def test_interface_is_version_3_and_describes_the_memory(device):
    x = vecadd.to_device(np.zeros((3, 4), np.float32))
    interface = x.__cuda_array_interface__
    pointer, read_only = interface["data"]
    assert pointer > 0
    assert read_only is False
    assert (interface["shape"], interface["typestr"], interface["version"]) == ((3, 4), "<f4", 3)
    assert interface.get("strides") is None
    assert interface["stream"] == 1


def test_interface_of_an_empty_array_has_a_null_pointer(device):
    for empty in (vecadd.to_device(np.zeros((0, 4))), vecadd.to_device(np.zeros((3, 4)))[2:2]):
        interface = empty.__cuda_array_interface__
        assert interface["data"][0] == 0
        assert interface["shape"] == (0, 4)


def test_memory_is_aligned_for_every_vector_load(device):
    for n in (1, 3, 100):
        assert vecadd.to_device(np.zeros(n, np.int8)).__cuda_array_interface__["data"][0] % 256 == 0


@pytest.mark.parametrize("name", [None, "cuda", "cuda:0", 0])
def test_device_is_named_as_torch_and_cupy_name_it(device, name):
    assert vecadd.to_device(np.zeros(3), name).device == "cuda:0"


@pytest.mark.parametrize("x", [1.5, [1, 2, 3], [[1.0], [2.0]], np.float32(3), True], ids=repr)
def test_what_numpy_makes_an_array_of_goes_to_the_device(device, x):
    assert_same_values(vecadd.to_device(x).numpy(), np.asarray(x))


@pytest.mark.parametrize("dtype", [*(each for each in NUMPY_DTYPES if each.itemsize > 1)], ids=str)
def test_other_byte_orders_and_layouts_keep_their_values(device, dtype):
    a = values(dtype, 60, 1).reshape(6, 10)
    shifted = np.frombuffer(b"x" + a.tobytes(), dtype, 60, 1).reshape(6, 10)
    for x in (a.astype(dtype.newbyteorder()), shifted, a.T, a[::-2, ::3], np.broadcast_to(a[0], (4, 10))):
        assert_same_values(vecadd.to_device(x).numpy(), np.ascontiguousarray(x.astype(dtype)))


def test_source_may_be_changed_at_once(device):
    a = np.arange(100_000.0)
    x = vecadd.to_device(a)
    a[:] = -1
    assert_same_values(x.numpy(), np.arange(100_000.0))


class Addend:
    """Neither an array nor a scalar, but able to add itself to anything."""

    def __radd__(self, other):
        return "the addend's sum"


class Mixin:
    pass


class Scalar(np.float32):
    pass


class MixedScalar(Mixin, np.float32):
    """Of no dtype, to NumPy."""


def test_a_scalar_of_a_derived_class_is_a_number_where_numpy_has_a_dtype_for_it(device):
    x = vecadd.to_device(np.arange(10, dtype=np.float32))
    assert_same_values(vecadd.add(x, Scalar(2)).numpy(), np.arange(2, 12, dtype=np.float32))
    with pytest.raises(TypeError, match="object"):
        vecadd.add(x, MixedScalar(2))


class ScalarWithRules(np.float32):
    def __array_ufunc__(self, *call, **keywords):
        return "the scalar's sum"


class NumberWithRules(float):
    def __array_ufunc__(self, *call, **keywords):
        return "the scalar's sum"


class ScalarThatRefuses(np.float32):
    __array_ufunc__ = None


@pytest.mark.parametrize("kind", [ScalarWithRules, NumberWithRules])
def test_a_number_with_rules_of_its_own_is_asked_for_them(device, kind):
    """As NumPy does beside an ndarray; vecadd.add has no rules of others on a GPU."""
    x, number = vecadd.to_device(np.zeros(10, np.float32)), kind(2)
    assert np.add(x, number) == np.add(number, x) == "the scalar's sum"
    for a, b, name in ((x, number, "b"), (number, x, "a")):
        for call in (vecadd.add, lambda a, b: vecadd.plan(a, b, x), lambda a, b: vecadd.add_many([a], [b])):
            with pytest.raises(TypeError, match=f"{name} is a {kind.__name__}, which has rules of its own"):
                call(a, b)


def test_the_operator_asks_a_scalar_for_its_rules(device):
    x = vecadd.to_device(np.zeros(10, np.float32))
    assert x + ScalarWithRules(2) == ScalarWithRules(2) + x == "the scalar's sum"


@pytest.mark.parametrize("add", [operator.add, np.add, vecadd.add])
def test_a_scalar_that_refuses_additions_is_not_added(device, add):
    x = vecadd.to_device(np.zeros(10, np.float32))
    for a, b in ((x, ScalarThatRefuses(2)), (ScalarThatRefuses(2), x)):
        with pytest.raises(TypeError):
            add(a, b)


@pytest.mark.parametrize("name", ["__add__", "__radd__"])
def test_the_operator_may_be_wrapped(device, monkeypatch, name):
    """As tracers do, and unittest.mock: the type's own addition is then called from Python's."""
    own = getattr(vecadd.DeviceArray, name)
    monkeypatch.setattr(vecadd.DeviceArray, name, lambda x, other: own(x, other))
    a = np.arange(10.0)
    x = vecadd.to_device(a)
    for total, due in ((x + 1, a + 1), (1 + x, 1 + a), (x + x, a + a)):
        assert_same_values(total.numpy(), due)


@pytest.mark.parametrize("add", [operator.add, operator.iadd])
def test_plus_leaves_what_is_no_array_to_its_own_operator(device, add):
    x = vecadd.to_device(np.zeros(3))
    assert add(x, Addend()) == "the addend's sum"
    with pytest.raises(TypeError, match="unsupported operand"):
        add(x, object())


def test_plus_passes_on_what_an_interface_raises(device):
    class Broken:
        @property
        def __cuda_array_interface__(self):
            raise LookupError("not now")

    with pytest.raises(LookupError, match="not now"):
        vecadd.to_device(np.zeros(3)) + Broken()


@pytest.mark.parametrize(
    "read", [np.asarray, np.array, lambda x: np.array(x, dtype="f4")], ids=["asarray", "array", "array of dtype"]
)
def test_numpy_never_reads_it_without_being_asked(device, read):
    with pytest.raises(TypeError, match=r"\.numpy\(\)"):
        read(vecadd.to_device(np.zeros(3)))


@pytest.mark.parametrize("operation", [float, int, bool, operator.index, lambda x: x - x, lambda x: -x])
def test_what_it_cannot_do_is_a_type_error(device, operation):
    with pytest.raises(TypeError):
        operation(vecadd.to_device(np.zeros(3)))


def test_it_is_not_made_by_hand():
    with pytest.raises(TypeError):
        vecadd.DeviceArray()
    with pytest.raises(TypeError):
        type("Derived", (vecadd.DeviceArray,), {})


def test_it_may_be_dropped_by_another_thread(device):
    before = _core.memory_counts()
    arrays = [vecadd.to_device(np.zeros(1000))]
    run_together(arrays.clear)
    assert _core.memory_counts() == before


def test_it_takes_part_in_garbage_collection_of_cycles(device):
    class Holder:
        pass

    holder = Holder()
    holder.itself, holder.array = holder, vecadd.to_device(np.zeros(10))
    del holder
    # The device fixture collects garbage and compares what is allocated.


def test_a_copy_of_an_array_stays_on_its_device(second_device):
    x = vecadd.to_device(np.arange(3.0), second_device)
    for device in (None, second_device, f"cuda:{second_device}"):
        assert vecadd.to_device(x, device).device == x.device
    for device in (0, "cuda:0", "cuda"):
        with pytest.raises(ValueError, match=f"the array is on {x.device}: copy it to cuda:0 by way of its numpy"):
            vecadd.to_device(x, device)


def test_a_chain_of_2000_dependent_additions_is_exact(device):
    a, b = np.arange(1024, dtype=np.float32), np.ones(1024, np.float32)
    x, y = vecadd.to_device(a), vecadd.to_device(b)
    for _ in range(1000):
        x += y
        x = x + y
    assert_same_values(x.numpy(), a + 2000)


def test_a_copy_by_a_stream_of_another_device_is_refused(second_device, driver):
    x, out = vecadd.to_device(np.ones(3)), np.zeros(3)
    with pytest.raises(ValueError, match=f"the stream is on cuda:{second_device} and the arrays are on cuda:0"):
        x.numpy(out, stream=driver.stream(second_device))
    assert_same_values(out, np.zeros(3))
    assert_same_values(x.numpy(out, stream=driver.stream()), np.ones(3))


def test_a_capsule_of_an_array_without_elements_waits_for_no_stream(double, device, driver):
    """Its device may not have been used yet."""
    x = vecadd.to_device(np.zeros((0, 3)))
    before = double.calls("cudaEventRecord")
    x.__dlpack__(stream=driver.stream())
    x.__dlpack__(stream=2, max_version=(1, 0))
    assert double.calls("cudaEventRecord") == before

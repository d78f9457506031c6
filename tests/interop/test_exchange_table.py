"""DLPack's C exchange table: tensors are read through it where their type has one, and by their interface otherwise.

A stand-in for PyTorch has a table written with ctypes; tests/interop/test_torch.py has the real one.
"""

import ctypes
import gc
import sys
from functools import partialmethod
from types import SimpleNamespace
from weakref import WeakKeyDictionary

import numpy as np
import pytest
from foreign import DLTensor

import vecadd
from vecadd import _core, interop

CUDA, CPU = 2, 1
FLOAT, COMPLEX = 2, 5
CAPSULE = b"dlpack_exchange_api"  # a capsule keeps the address of its name


FROM_OBJECT = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(DLTensor))
CURRENT_STREAM = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))


class Table(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("previous", ctypes.c_void_p),
        ("allocate", ctypes.c_void_p),
        ("managed_from_object", ctypes.c_void_p),
        ("object_from_managed", ctypes.c_void_p),
        ("tensor_from_object", FROM_OBJECT),
        ("current_stream", CURRENT_STREAM),
    )


class Tensor:
    """What interop.Torch asks of a tensor, and the fields that its table hands out."""

    is_cuda = True
    dtype = "torch.float32"
    requires_grad = False
    _base = None  # of a view: the tensor whose view it is
    negated = conjugated = breaks = False
    fields: dict[str, object]
    reads = 0  # through the table

    def __init__(self, memory, x, **fields):
        self.memory = memory
        c_order = [stride // x.itemsize for stride in np.ascontiguousarray(x).strides[: x.ndim]]
        self.shape = (ctypes.c_int64 * max(x.ndim, 1))(*x.shape)
        self.strides = (ctypes.c_int64 * max(x.ndim, 1))(*c_order)
        self.fields = {"data": memory.pointer, "device_type": CUDA, "device_id": 0, "ndim": x.ndim, "code": FLOAT,
                       "bits": 8 * x.itemsize, "lanes": 1, "shape": self.shape, "strides": self.strides,
                       "byte_offset": 0, **fields}  # fmt: skip

    @property
    def __cuda_array_interface__(self):
        return self.memory.__cuda_array_interface__

    def data_ptr(self):
        return self.memory.pointer

    def is_neg(self):
        return self.negated

    def is_conj(self):
        return self.conjugated


Tensor.__module__ = "torch"


@FROM_OBJECT
def tensor_from_object(tensor, result):
    type(tensor).reads += 1
    if tensor.breaks:
        return -1
    for name, value in tensor.fields.items():
        setattr(result.contents, name, value)
    return 0


@CURRENT_STREAM
def current_stream(device_type, device, result):
    result[0] = sys.modules["torch"]._C._cuda_getCurrentRawStream(device)
    return 0


OLD = Table(1, 3, None, None, None, None, tensor_from_object, current_stream)
NEW = Table(2, 0, ctypes.addressof(OLD), None, None, None, FROM_OBJECT(), CURRENT_STREAM())
NEWEST = Table(3, 0, ctypes.addressof(NEW), None, None, None, FROM_OBJECT(), CURRENT_STREAM())
capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)
# Three major versions: the one that vecadd knows comes after two later ones.
Tensor.__dlpack_c_exchange_api__ = capsule(ctypes.addressof(NEWEST), CAPSULE, None)


WRITTEN = []  # outs, in the order in which they were counted


def known_kinds():
    """What vecadd knows of types of tensors, by the type: of 16 types, for good."""
    return next(
        x for x in gc.get_referents(_core) if isinstance(x, dict) and not any(isinstance(key, str) for key in x)
    )


@pytest.fixture
def torch(monkeypatch):
    """The stand-in for the module; ``stream`` is its current stream. What is known of a test's types is forgotten."""
    before = {*known_kinds()}
    module = SimpleNamespace(stream=0, is_grad_enabled=lambda: True, result_type=lambda a, b: "torch.float32")
    module._C = SimpleNamespace(
        _cuda_getCurrentRawStream=lambda device: module.stream, _increment_version=WRITTEN.extend
    )
    monkeypatch.setitem(sys.modules, "torch", module)
    monkeypatch.setitem(interop.LIBRARIES, "torch", interop.Torch())  # what is read of it once is this module's
    monkeypatch.setattr(interop, "_known", WeakKeyDictionary())
    yield module
    for kind in {*known_kinds()} - before:
        del known_kinds()[kind]


@pytest.fixture
def tensor(torch, foreign):
    """tensor(x, **fields): the array x as a tensor of a type that vecadd has met."""

    def make(x, **fields):
        return Tensor(foreign(x), x, **fields)

    x = np.zeros(4, np.float32)
    vecadd.add(make(x), make(x), make(x))
    Tensor.reads = 0
    WRITTEN.clear()
    return make


A, B = np.arange(12, dtype=np.float32), np.full(12, 0.5, np.float32)


def total(out):
    return np.frombuffer(out.memory.driver.read(out.memory.pointer, 4 * 12), np.float32)


def test_tensors_are_read_through_the_table(tensor):
    out = tensor(np.zeros_like(A))
    assert vecadd.add(tensor(A), tensor(B), out) is out
    assert Tensor.reads == 3
    np.testing.assert_array_equal(total(out), A + B)


@pytest.mark.parametrize("handle", [0, 1], ids=["0", "cudaStreamLegacy"])
def test_both_names_of_the_legacy_default_stream_are_one_stream(tensor, torch, handle):
    torch.stream = handle
    a = tensor(A)
    plan = _core.explain_route(a, a, vecadd.to_device(B))
    assert (plan["stream"], plan["joins"]) == (0, 0)


def test_an_offset_that_misaligns_a_tensor_is_left_to_its_interface(tensor):
    """Which says here that the memory begins where the tensor's elements do."""
    a, b = tensor(A, byte_offset=2), tensor(B, byte_offset=2)
    outs = [tensor(np.zeros_like(A)) for _ in range(4)]
    vecadd.add(a, b, outs[0])
    vecadd.add_many([tensor(A), tensor(A), a], [tensor(B), tensor(B), b], outs[1:])
    for out in outs:
        np.testing.assert_array_equal(total(out), A + B)


def test_a_conjugated_view_is_not_written(tensor):
    a, view = tensor(A[:6]), Tensor(tensor(A).memory, A.view("complex64"), code=COMPLEX)
    vecadd.add(a, a, view)
    view.conjugated = True
    with pytest.raises(ValueError, match="conjugated or negated"):
        vecadd.add(a, a, view)


@pytest.fixture
def made(tensor, torch, foreign):
    """What torch's allocating function was asked for, and a type of tensors that it makes: one that was not met before,
    because what a type's sums are made by is learnt at its first."""

    class Met(Tensor):
        dtype = "float32"

    Met.__name__, Met.__module__ = "Tensor", "torch"
    asked = []

    def empty_strided(*arguments):
        asked.append(arguments)
        zeros = np.zeros(arguments[0], arguments[2])
        return Met(foreign(zeros), zeros)

    torch._C._dynamo = SimpleNamespace(guards=SimpleNamespace(_empty_strided_cuda=empty_strided))
    a = Met(foreign(A), A)
    vecadd.add(a, a, a)
    Met.reads = 0
    return asked, Met


def test_a_sum_of_its_own_is_made_by_torch_and_read_through_the_table(made, foreign):
    asked, met = made
    b = met(foreign(B), B)
    got = vecadd.add(b, b)
    assert type(got) is met
    assert asked == [((12,), (1,), "float32")]
    assert met.reads == 3
    np.testing.assert_array_equal(total(got), B + B)


def test_the_sums_of_a_list_have_their_own_pairs_shapes(made, foreign):
    asked, met = made
    xs = [met(foreign(x), x) for x in (A, B, A.reshape(3, 4), B.reshape(2, 6), A)]
    got = vecadd.add_many(xs, xs)
    line = ((12,), (1,), "float32")
    assert asked == [line, line, ((3, 4), (4, 1), "float32"), ((2, 6), (6, 1), "float32"), line]
    for sum_, x in zip(got, (A, B, A, B, A), strict=True):
        np.testing.assert_array_equal(total(sum_), x + x)


def test_the_sums_of_a_list_have_their_own_pairs_dtypes(made, foreign):
    asked, met = made
    a, doubles = met(foreign(A), A), met(foreign(A.astype("f8")), A.astype("f8"))
    doubles.dtype = "float64"
    got = vecadd.add_many([a, doubles, a], [a, doubles, a])
    assert [arguments[2] for arguments in asked] == ["float32", "float64", "float32"]
    np.testing.assert_array_equal(got[1].memory.numpy(), 2 * A.astype("f8"))


@pytest.mark.parametrize("elsewhere", ["the sum", "the current device"])
def test_a_sum_that_would_be_on_another_device_is_made_by_torchs_public_function(
    made, torch, foreign, double, driver, monkeypatch, elsewhere
):
    """The allocating function makes tensors on the current device."""
    _, met = made
    a, likes = met(foreign(A), A), []

    def empty_like(like, memory_format):
        monkeypatch.setattr(met, "__init__", Tensor.__init__)
        likes.append(like)
        return met(foreign(np.zeros_like(A)), A)

    torch.empty_like, torch.contiguous_format = empty_like, None
    if elsewhere == "the sum":
        monkeypatch.setattr(met, "__init__", partialmethod(Tensor.__init__, device_id=1))
    with driver.on(1 if elsewhere == "the current device" else 0):
        got = vecadd.add(a, a)
    assert likes == [a]
    np.testing.assert_array_equal(total(got), A + A)


def written(*outs):
    """Whether just these were counted, in this order."""
    found = len(WRITTEN) == len(outs) and all(x is y for x, y in zip(WRITTEN, outs, strict=True))
    WRITTEN.clear()
    return found


def test_an_out_is_counted_as_written(tensor):
    a, out = tensor(A), tensor(np.zeros_like(A))
    vecadd.add(a, a, out)
    assert written(out)
    vecadd.add(a, 1, a)
    assert written(a)
    vecadd.add(vecadd.to_device(A), vecadd.to_device(B), out)
    assert written(out)
    out.breaks = True  # it is read by its interface
    vecadd.add(a, a, out)
    assert written(out)


def test_the_outs_of_a_list_are_counted(tensor):
    a, x = tensor(A), tensor(A)
    strides = (ctypes.c_int64 * 1)(2)
    wide = Tensor(tensor(np.append(A, A)).memory, A, strides=strides)
    out = tensor(np.zeros_like(A))
    vecadd.add_many([a, a, x], [a, a, a], [out, wide, x])
    assert written(out, x, wide)  # the pair that add has to add comes last
    vecadd.add_many([vecadd.to_device(A), a], [a, a], [None, out])
    assert written(out)


def test_each_call_of_a_plan_counts_its_outs(tensor):
    a, first, second = tensor(A), tensor(np.zeros_like(A)), tensor(np.zeros_like(A))
    one, list_ = vecadd.plan(a, a, first), vecadd.plan([a, second], [a, a], [first, second])
    assert written()
    one()
    one()
    assert written(first, first)
    list_()
    assert written(first, second)


def test_what_is_not_written_is_not_counted(tensor, double):
    a, out = tensor(A), tensor(np.zeros_like(A))
    x = vecadd.to_device(A)
    vecadd.add(x, a)
    vecadd.add_many([x], [a])
    vecadd.add(a, a, x)
    with pytest.raises(ValueError, match="broadcast"):
        vecadd.add(a, tensor(A[:-1]), out)
    double.fail("cudaLaunchKernelExC")
    with pytest.raises(MemoryError):
        vecadd.add(a, a, out)
    assert written()


def test_a_torch_that_counts_one_tensor_a_call_is_called_for_each(torch):
    torch._C._increment_version = None
    torch.autograd = SimpleNamespace(graph=SimpleNamespace(increment_version=WRITTEN.append))
    WRITTEN.clear()
    interop.Torch().count_writes((A, B))
    assert written(A, B)


def test_addition_runs_on_the_current_stream(tensor, torch, driver):
    late, a, b, out = driver.stream(), tensor(np.zeros_like(A)), tensor(B), tensor(np.zeros_like(A))
    source = driver.allocate(A.nbytes)
    driver.write(source, A)
    driver.copy_late(late, a.memory.pointer, source, A.nbytes)
    torch.stream = late
    vecadd.add(a, b, out)
    np.testing.assert_array_equal(total(out), A + B)
    torch.stream = 0


def test_byte_offset_and_strides_of_c_order_are_understood(tensor):
    whole, out = tensor(np.concatenate([B, A])), tensor(np.zeros_like(A))
    strides = (ctypes.c_int64 * 1)(1)
    half = Tensor(whole.memory, A, byte_offset=A.nbytes, strides=strides)
    vecadd.add(half, tensor(B), out)
    np.testing.assert_array_equal(total(out), A + B)
    vecadd.add_many([half] * 3, [tensor(B, strides=None) for _ in range(3)], outs := [tensor(A) for _ in range(3)])
    assert all(np.array_equal(total(out), A + B) for out in outs)


@pytest.mark.parametrize(
    "fields",
    [{"device_type": CPU}, {"bits": 128}, {"lanes": 2}, {"ndim": -1}, {"ndim": 99}, None],
    ids=["device", "bits", "lanes", "ndim", "dimensions", "the table fails"],
)
def test_what_is_not_plain_is_read_by_the_interface(tensor, fields):
    a, out = tensor(A, **(fields or {})), tensor(np.zeros_like(A))
    a.breaks = fields is None
    vecadd.add(a, tensor(B), out)
    np.testing.assert_array_equal(total(out), A + B)


def test_tensors_of_a_dtype_that_torch_does_not_add_are_refused(tensor, monkeypatch):
    x = np.zeros(A.shape, np.uint8)
    known, tensors = tensor(A), [tensor(x, code=10, bits=8) for _ in range(2)]
    for each in tensors:
        monkeypatch.setattr(each, "dtype", "torch.float8_e4m3fn", raising=False)
    with pytest.raises(NotImplementedError, match=r"does not add tensors of torch\.float8_e4m3fn"):
        vecadd.add(*tensors)
    out = tensor(np.zeros_like(A))
    vecadd.add(known, tensor(B), out)
    np.testing.assert_array_equal(total(out), A + B)


def test_tensor_that_needs_its_gradient_is_read_through_the_table_where_none_is_kept(tensor, torch):
    torch.is_grad_enabled = lambda: False
    a, out = tensor(A), tensor(np.zeros_like(A))
    a.requires_grad = out.requires_grad = True
    vecadd.add(a, tensor(B), out)
    assert Tensor.reads == 3
    np.testing.assert_array_equal(total(out), A + B)


def test_a_list_of_tensors_that_need_gradients_is_left_to_torch_where_it_keeps_them(tensor, torch, monkeypatch):
    monkeypatch.setattr(Tensor, "device", SimpleNamespace(index=0), raising=False)
    xs, ys, outs = ([tensor(x) for _ in range(3)] for x in (A, B, np.zeros_like(A)))
    ys[1].requires_grad = True
    left = []
    torch.add = lambda a, b, out: left.append((a, b))
    vecadd.add_many(xs, ys, outs)
    assert left == [(xs[1], ys[1])]
    torch.is_grad_enabled = lambda: False
    vecadd.add_many(xs, ys, outs)
    assert len(left) == 1
    assert all(np.array_equal(total(out), A + B) for out in outs)


@pytest.mark.parametrize("other", [1, 0])
def test_the_outs_of_a_list_are_counted_whichever_pairs_are_ours(tensor, foreign, other):
    xs, ys, outs = ([tensor(x) for _ in range(3)] for x in (A, B, np.zeros_like(A)))
    outs[other] = foreign(np.zeros_like(A))
    vecadd.add_many(xs, ys, outs)
    assert written(*(out for i, out in enumerate(outs) if i != other))


@pytest.mark.parametrize("start", [0, 1])
@pytest.mark.parametrize(
    ("shape", "strides"),
    [((12,), (2,)), ((1,), (1,)), ((), ()), ((3, 2), (4, 2)), ((3, 1), (4, 1)), ((1, 6), (1, 4))],
    ids=str,
)
def test_a_negated_view_is_found_wherever_it_begins(tensor, shape, strides, start):
    """An imaginary part's elements are two apart. Others' complex numbers need not be aligned to their size."""
    x = np.zeros(shape, np.float32)
    view = Tensor(
        tensor(np.zeros(30, np.float32)).memory, x, strides=(ctypes.c_int64 * 2)(*strides), byte_offset=4 * start
    )
    vecadd.add(tensor(x), tensor(x), view)
    view.negated = True
    with pytest.raises(ValueError, match="conjugated or negated"):
        vecadd.add(tensor(x), tensor(x), view)


@pytest.mark.parametrize("start", [0, 1])
@pytest.mark.parametrize(
    ("shape", "strides"), [((12,), (1,)), ((3, 2), (2, 1)), ((3, 4), (1, 3)), ((3,), (5,))], ids=str
)
def test_tensors_that_are_no_views_are_not_asked_whether_they_are_negated(tensor, shape, strides, start, monkeypatch):
    """The question takes as long as all else that is read of a tensor."""
    monkeypatch.setattr(Tensor, "is_neg", None)
    x = np.zeros(shape, np.float32)
    memory = tensor(np.zeros(30, np.float32)).memory
    view = Tensor(memory, x, strides=(ctypes.c_int64 * 2)(*strides), byte_offset=4 * start)
    vecadd.add(tensor(x), tensor(x), view)
    assert Tensor.reads == 3


@pytest.mark.parametrize(("dtype", "code"), [("float32", FLOAT), ("int32", 0), ("complex64", COMPLEX)])
@pytest.mark.parametrize("is_view", [True, False], ids=["view", "inference"])
def test_a_negated_view_whose_elements_are_adjacent_is_found(tensor, torch, is_view, dtype, code):
    """torch._neg_view() makes one of any tensor; of inference tensors PyTorch does not say that they are views."""
    x = np.arange(12).astype(dtype)
    state = SimpleNamespace(inside=False)
    torch.is_inference_mode_enabled = lambda: state.inside
    torch.result_type = lambda a, b: f"torch.{dtype}"
    Inference = type("Tensor", (Tensor,), {"__module__": "torch", "_version": 0, "is_inference": lambda self: False})
    a, b, out = (Inference(tensor(values).memory, values, code=code) for values in (x, -x, x))
    vecadd.add(out, out, out)
    reads = Inference.reads = 0
    vecadd.add(a, a, out)
    assert Inference.reads > reads
    state.inside = not is_view
    a._base = b if is_view else None
    a.negated = True
    a.resolve_conj = lambda: SimpleNamespace(resolve_neg=lambda: b)
    for add in (lambda: vecadd.add(a, b, out), lambda: vecadd.add_many([a], [b], [out])):
        add()
        np.testing.assert_array_equal(out.memory.numpy(), -x - x)
        vecadd.add(b, out, out)
    with pytest.raises(ValueError, match="conjugated or negated"):
        vecadd.add(b, b, a)


@pytest.mark.parametrize("field", [{"shape": (ctypes.c_int64 * 1)(1 << 40)}, {"strides": (ctypes.c_int64 * 1)(2)}])
def test_extents_and_strides_beyond_the_allocation_are_refused(tensor, field):
    with pytest.raises(ValueError, match="do not fit"):
        vecadd.add(tensor(A, **field), tensor(B), tensor(A))


def test_what_is_known_of_a_type_stays_when_a_tensor_of_it_is_read_by_the_interface(tensor):
    """The other tensors of the call, and those of other threads, are being read by it."""

    before = known_kinds()[Tensor]
    a, out = tensor(A), tensor(np.zeros_like(A))
    a.breaks = True
    vecadd.add(tensor(B), a, out)
    assert known_kinds()[Tensor] is before
    np.testing.assert_array_equal(total(out), A + B)

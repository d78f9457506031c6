"""DLPack tensors in host memory whose fields say what no array is: refused, and deleted once."""

import gc
from types import SimpleNamespace

import numpy as np
import pytest
from foreign import DLPackArray

import vecadd
from vecadd import _core

N = 100


class RaisingIndex:
    def __index__(self):
        raise LookupError("asked for its index")


CPU, CUDA, CUDA_HOST = 1, 2, 3
READ_ONLY, COPIED = 1, 2  # DLPack's flags
ERRORS = {"on the host": BufferError, "version 2": BufferError, "2 lanes": TypeError}  # by message; others: ValueError
# name: (fields of the tensor, what the message says)
BAD_HOST_TENSORS = {
    "no shape": ({"shapeless": True}, "shape"),
    "no shape of many dimensions": ({"shapeless": True, "ndim": 64}, "shape"),
    "negative number of dimensions": ({"ndim": -1}, "-1 dimensions"),
    "65 dimensions": ({"ndim": 65, "shape": (1,) * 65}, "65 dimensions"),
    "negative extent": ({"shape": (-N,)}, "shape"),
    "two negative extents": ({"shape": (-10, -10)}, "shape"),
    "huge extent": ({"shape": (2**62,)}, "shape"),
    "product of extents wraps around to 0": ({"shape": (2**32, 2**32)}, "shape"),
    "no element, and other extents beyond any memory": ({"shape": (0, 2**62)}, "shape"),
    "stride beyond 64 bits in bytes": ({"strides": (2**62,)}, "stride"),
    "stride that wraps around to 0": ({"strides": (-(2**62),)}, "stride"),
    "strides that lead out of the address space": ({"strides": (2**60,)}, "stride"),
    "strides that lead below the address 0": ({"strides": (-(2**58),), "shape": (9,)}, "stride"),
    "null pointer": ({"data": 0}, "null"),
    "null pointer with strides": ({"data": 0, "strides": (2**20,)}, "null"),
    "memory that ends beyond the address space": ({"data": 2**64 - 8}, "address space"),
    "rows that end beyond the address space": (
        {"data": 2**64 - 8, "shape": (2, 4), "strides": (8, 1)},
        "address space",
    ),
    "offset beyond the address space": ({"byte_offset": 2**64 - 4096}, "offset"),
    "memory that its capsule has on a GPU": ({"device": (CUDA, 0), "says": (CPU, 0)}, "on the host"),
    "two lanes": ({"dtype": (2, 32, 2)}, "2 lanes"),
    "version of the future": ({"major": 2}, "version 2"),
}


def on_host(x, **fields):
    """The NumPy array x with __dlpack__, as memory of the host, with fields of its tensor replaced."""
    array = SimpleNamespace(pointer=x.ctypes.data, dtype=x.dtype, shape=x.shape)
    return DLPackArray(array, **{"device": (CPU, 0), **fields})


@pytest.mark.parametrize("name", BAD_HOST_TENSORS)
def test_bad_tensor_on_the_host_is_refused_and_deleted_once(name):
    fields, message = BAD_HOST_TENSORS[name]
    bad = on_host(np.ones(N, np.float32), **fields)
    with pytest.raises(ERRORS.get(message, ValueError), match=message):
        _core.host_view(bad)
    assert (bad.given, bad.deleted) == (1, 1)


@pytest.mark.parametrize(
    "says", [(2**32 + CPU, 0), (CPU, 2**32), (RaisingIndex(), 0), (CPU, RaisingIndex())], ids=range(4)
)
def test_tensor_of_no_device_is_not_asked_for(says):
    bad = on_host(np.ones(N), says=says)
    with pytest.raises((ValueError, LookupError), match=r"device|index"):
        _core.host_view(bad)
    assert bad.given == 0


@pytest.mark.parametrize(
    "fields",
    [{"shape": (0,), "data": 0}, {"shape": (3, 0), "data": 0, "strides": (2**62, 1)},
     {"shape": (1,), "strides": (2**59,)}, {"shape": (), "ndim": 0, "shapeless": True}],
    ids=["no element and no memory", "no element and any stride", "one element and any stride", "no dimension"],
)  # fmt: skip
def test_fields_of_a_tensor_on_the_host_that_mean_nothing_may_be_anything(fields):
    lent = on_host(np.full(N, 7.0), **fields)
    view = _core.host_view(lent)
    assert view.shape == fields["shape"]
    assert view.tolist() == np.full(fields["shape"], 7.0).tolist()
    del view
    gc.collect()
    assert lent.deleted == 1


@pytest.mark.parametrize("versions", [(0,), (0, 1)], ids=["unversioned", "versioned"])
def test_a_tensor_without_a_deleter_is_read_and_left_to_its_library(versions):
    x = np.arange(float(N))
    lent = on_host(x, versions=versions, kept=True)
    view = _core.host_view(lent)
    assert view.ctypes.data == x.ctypes.data
    assert view.tolist() == x.tolist()
    del view
    gc.collect()
    assert (lent.given, lent.deleted) == (1, 0)


class Refuses(DLPackArray):
    """Whose library cannot give it away now: the error says why."""

    def produce(self, stream):
        raise BufferError("not while it is written")


def test_a_library_that_refuses_is_asked_once_and_its_error_is_told():
    """Only TypeError says that a library is of the days before the keywords."""
    refuses = Refuses(SimpleNamespace(pointer=0, dtype=np.dtype("f8"), shape=(N,)), device=(CPU, 0))
    with pytest.raises(BufferError, match="not while it is written"):
        _core.host_view(refuses)
    assert len(refuses.asked) == 1


def test_page_locked_memory_is_on_the_host(device):
    x = vecadd.empty_pinned(N)
    x[:] = 7
    assert _core.host_view(on_host(x, device=(CUDA_HOST, 0))).tolist() == [7] * N


@pytest.mark.parametrize(
    ("fields", "writable"),
    [({}, True), ({"flags": READ_ONLY}, False), ({"flags": COPIED}, True), ({"versions": (0,)}, True)],
    ids=["versioned", "read-only", "copied", "unversioned"],
)
def test_a_view_is_read_only_where_its_tensor_says_so(fields, writable):
    x = np.ones(N)
    view = _core.host_view(on_host(x, **fields))
    assert view.flags.writeable == writable
    assert view.ctypes.data == x.ctypes.data

"""Host arrays of a library that gives an ``out`` of another shape new memory, as torch.add does: vecadd broadcasts into
it, or refuses it.

A library of this file's own takes PyTorch's place; test_torch.py has the real one.
"""

import numpy as np
import pytest

import vecadd
from vecadd import interop

ROW = np.arange(3, dtype=np.float32)


class Tensor:
    """An array of the library "tensors", with the methods of PyTorch's that are called."""

    __module__ = "tensors.core"

    def __init__(self, x):
        self.x = np.asarray(x)

    ndim, shape = property(lambda self: self.x.ndim), property(lambda self: self.x.shape)

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, **keywords):
        x = self.x if self.x.flags.writeable else self.x.copy()  # NumPy lends no broadcast array
        return x.__dlpack__(**{**keywords, "copy": None})

    def expand(self, shape):
        return Tensor(np.broadcast_to(self.x, shape))

    def new_empty(self, shape):
        return Tensor(np.empty(shape, self.x.dtype))


class Tensors(interop.Library):
    """Takes an ``out`` of any shape, and alone adds tensors of int8."""

    has_host_arrays = True

    def export(self, array, writing):
        return None

    def must_add(self, operands, out):
        return "it has rules of its own" if any(x.x.dtype == np.int8 for x in operands) else None

    def from_host(self, total, like):
        return Tensor(total)

    def add(self, a, b, out, stream=None):
        total = np.add(*(getattr(x, "x", x) for x in (a, b)))
        if not np.can_cast(total.dtype, out.x.dtype, "same_kind"):
            raise RuntimeError("no such cast")
        if total.shape != out.shape:
            out.x = np.empty(total.shape, out.x.dtype)
        out.x[...] = total
        return out


@pytest.fixture(autouse=True)
def library(monkeypatch):
    monkeypatch.setitem(interop.LIBRARIES, "tensors", Tensors())


@pytest.mark.parametrize("shape", [(2, 3), (4, 1, 3), (0, 3)])
@pytest.mark.parametrize(
    "other", [2.5, ROW, ROW.astype(np.float64), ROW[:1], ROW[0]], ids=["number", "same", "dtype", "one", "scalar"]
)
def test_the_operands_are_broadcast_into_out(shape, other):
    out = Tensor(np.full(shape, -1, np.float64))
    memory = out.x
    assert vecadd.add(Tensor(ROW), other if isinstance(other, float) else Tensor(other), out) is out
    assert out.x is memory
    np.testing.assert_array_equal(out.x, np.add(ROW, other, out=np.empty(shape)))


def added(a, b, out):
    vecadd.add(a, b, out)


def added_in_a_list(a, b, out):
    first = Tensor(np.zeros(3, np.float32))
    try:
        vecadd.add_many([a, a], [a, b], [first, out])
    finally:
        assert not first.x.any()


def planned(a, b, out):
    vecadd.plan([a], [b], [out])


@pytest.mark.parametrize("call", [added, added_in_a_list, planned])
@pytest.mark.parametrize("shape", [(), (0,), (2,), (3, 2)], ids=str)
@pytest.mark.parametrize("other", [ROW, 2.5], ids=["same", "number"])
def test_an_out_into_which_the_sum_is_not_broadcast_is_refused(call, shape, other):
    out = Tensor(np.full(shape, -1, np.float32))
    with pytest.raises(ValueError, match=r"out has shape .*pass one of \(3,\)"):
        call(Tensor(ROW), other if isinstance(other, float) else Tensor(other), out)
    assert out.shape == shape
    assert (out.x == -1).all()


@pytest.mark.parametrize("call", [added, added_in_a_list, planned])
def test_shapes_that_do_not_go_together_are_refused(call):
    with pytest.raises(ValueError, match="broadcast"):
        call(Tensor(ROW), Tensor(np.zeros(4)), Tensor(np.zeros((2, 3))))


@pytest.mark.parametrize("call", [added, added_in_a_list, planned])
@pytest.mark.parametrize("other", [ROW, ROW[0], 2.5], ids=["same", "scalar", "number"])
def test_the_library_judges_the_dtypes_before_anything_is_written(call, other):
    out = Tensor(np.full(3, -1, np.int32))
    with pytest.raises(RuntimeError, match="no such cast"):
        call(Tensor(ROW), other if isinstance(other, float) else Tensor(other), out)
    assert (out.x == -1).all()


def test_lists_are_added_as_pairs_are():
    outs = [Tensor(np.zeros((2, 3))), Tensor(np.zeros(3, np.float32)), Tensor(np.zeros((2, 3)))]
    vecadd.add_many([Tensor(ROW)] * 3, [2.5, Tensor(ROW), Tensor(ROW[0])], outs)
    for out, row in zip(outs, (ROW + 2.5, ROW + ROW, ROW), strict=True):
        np.testing.assert_array_equal(out.x, np.broadcast_to(row, out.shape))


def test_what_the_library_alone_adds_it_judges_itself():
    a, out = Tensor(np.ones(3, np.int8)), Tensor(np.zeros(2))
    vecadd.add(a, a, out)
    assert out.shape == (3,)


def test_the_route_of_a_plan_of_tensors_is_numpys():
    out = Tensor(np.zeros(3, np.float32))
    plan = vecadd.plan(Tensor(ROW), Tensor(ROW), out)
    assert plan.route == "numpy"
    assert plan() is out
    np.testing.assert_array_equal(out.x, ROW + ROW)

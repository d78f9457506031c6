"""Lists of tensors: plain pairs alike are read together, and a pair of any other kind among them as by itself."""

import ctypes
from types import SimpleNamespace

import inference_tensors
import numpy as np
import pytest
import test_exchange_table as table

import vecadd

torch, tensor = table.torch, table.tensor

COUNT = 7
A, B, ONE = table.A, table.B, np.ones(1, np.float32)


def contents(array, like):
    data = array.memory.driver.read(array.memory.pointer, like.nbytes)
    return np.frombuffer(data, like.dtype).reshape(like.shape)


@pytest.fixture
def lists(tensor):
    """xs, ys, outs of COUNT plain pairs in three dtypes' widths and shapes, each twice and more in a row."""
    shapes = [(12,), (12,), (3, 4), (3, 4), (12,), (), ()]
    values = [np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape) + 1 for shape in shapes]
    return [[tensor(scale * x) for x in values] for scale in (1, 2, 0)], values


def test_each_tensor_is_read_once(lists):
    (xs, ys, outs), values = lists
    table.Tensor.reads = 0
    assert vecadd.add_many(xs, ys, outs) is outs
    assert table.Tensor.reads == 3 * COUNT
    assert all(np.array_equal(contents(out, x), 3 * x) for out, x in zip(outs, values, strict=True))
    assert table.written(*outs)
    table.Tensor.reads = 0
    assert vecadd.add_many(xs, ys, xs) is xs
    assert table.Tensor.reads == 2 * COUNT
    assert all(np.array_equal(contents(out, x), 3 * x) for out, x in zip(xs, values, strict=True))
    assert table.written(*xs)


def test_outs_that_are_the_second_operands(lists):
    (xs, ys, _), values = lists
    vecadd.add_many(xs, ys, ys)
    assert all(np.array_equal(contents(out, x), 3 * x) for out, x in zip(ys, values, strict=True))
    assert table.written(*ys)


def test_tensors_of_one_memory_are_told_apart(tensor):
    """Their addresses differ alone: one description serves them, and one range of memory contains them."""
    memories = [tensor(np.arange(36, dtype=np.float32) * scale).memory for scale in (1, 2, 0)]
    lists = [[table.Tensor(memory, A, byte_offset=4 * 12 * i) for i in range(3)] for memory in memories]
    vecadd.add_many(*lists)
    np.testing.assert_array_equal(contents(lists[2][0], np.zeros(36, np.float32)), np.arange(36) * 3)


@pytest.mark.parametrize("at", [0, COUNT // 2, COUNT - 1])
@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda x, y, out: (x, again(y, A[:-1]), out), ValueError, "operands could not be broadcast"),
        (lambda x, y, out: (x, again(y, A, data=64), out), ValueError, "b: 0x40 is not memory that CUDA knows"),
        (lambda x, y, out: (again(x, A, data=64), y, out), ValueError, "a: 0x40 is not memory that CUDA knows"),
        (lambda x, y, out: (x, y, again(out, A, data=64)), ValueError, "out: 0x40 is not memory that CUDA knows"),
        (lambda x, y, out: tuple(again(each, A, shape=LONG) for each in (x, y, out)), ValueError, "a: .* do not fit"),
        (lambda x, y, out: (x, y, again(out, A, byte_offset=20)), ValueError, "out: .* do not fit"),
        (lambda x, y, out: (x, y, A.copy()), TypeError, "device memory and out is not"),
        (lambda x, y, out: (x, A, out), TypeError, "b is in host memory"),
        (lambda x, y, out: (A, B, A.copy()), TypeError, "its arrays are in host memory|in device memory"),
        (lambda x, y, out: (x, None, out), TypeError, "y is None"),
        (lambda x, y, out: negated(x, y, out), ValueError, "conjugated or negated"),
    ],
    ids=["shape", "y", "x", "out", "long", "end", "host out", "host y", "host", "none", "negated"],
)
def test_outs_are_untouched_by_an_error_wherever_its_pair_is(tensor, at, change, error, message):
    lists = [[tensor(x) for _ in range(COUNT)] for x in (A, B, np.zeros_like(A))]
    outs = list(lists[2])
    for each, changed in zip(lists, change(*(each[at] for each in lists)), strict=True):
        each[at] = changed
    # The first pair decides where all are, so the second is the one that is not there.
    named = 1 if error is TypeError and at == 0 and message.startswith("its arrays") else at
    with pytest.raises(error, match=f"pair {named}: .*({message})"):
        vecadd.add_many(*lists)
    assert not any(contents(out, A).any() for out in outs)
    assert table.written()


LONG = (ctypes.c_int64 * 1)(1 << 40)


def again(tensor, x, **fields):
    """A tensor in the same memory."""
    return table.Tensor(tensor.memory, x, **fields)


def negated(x, y, out):
    """Of one element, which may be a view of a complex number's imaginary part."""
    pair = [again(each, ONE) for each in (x, y, out)]
    pair[2].negated = True
    return pair


@pytest.mark.parametrize("at", [0, COUNT // 2, COUNT - 1])
@pytest.mark.parametrize("kind", ["gradient", "device array", "other library", "strided", "dtype", "unaligned", "type"])
def test_pairs_that_are_not_alike_are_added_wherever_they_are(tensor, torch, foreign, monkeypatch, at, kind):
    monkeypatch.setattr(table.Tensor, "device", SimpleNamespace(index=0), raising=False)
    xs, ys, outs = ([tensor(x) for _ in range(COUNT)] for x in (A, B, np.zeros_like(A)))
    left = []
    torch.add = lambda a, b, out: left.append((a, b))
    if kind == "gradient":
        ys[at].requires_grad = True
    elif kind == "strided":
        ys[at] = again(tensor(np.repeat(A, 2)), A, strides=(ctypes.c_int64 * 1)(2))
    elif kind == "unaligned":
        ys[at] = table.Tensor(foreign(B, 1), B)
    elif kind == "dtype":
        whole = np.arange(12, dtype=np.int32)
        ys[at] = tensor(whole, code=0)
        ys[at].dtype = "torch.int32"
    elif kind == "type":
        ys[at] = type("Tensor", (table.Tensor,), {"__module__": "torch"})(ys[at].memory, B)
    else:
        ys[at] = vecadd.to_device(B) if kind == "device array" else foreign(B)
    vecadd.add_many(xs, ys, outs)
    assert left == ([(xs[at], ys[at])] if kind == "gradient" else [])
    for i, out in enumerate(outs):
        expected = 0 * A if i == at and left else A + A if i == at and kind in ("dtype", "strided") else A + B
        np.testing.assert_array_equal(contents(out, A), expected)
    counted = [out for i, out in enumerate(outs) if i != at or not left]
    assert sorted(map(id, table.WRITTEN)) == sorted(map(id, counted))


@pytest.mark.parametrize("other", range(3))
def test_an_out_in_another_tensors_memory_is_refused(tensor, other):
    """Whatever the order of their addresses: each list's middle tensor begins within the first pair's out."""
    lists = [[tensor(x) for _ in range(3)] for x in (A, B, np.zeros_like(A))]
    long = tensor(np.zeros(24, np.float32))
    lists[2][0] = again(long, A, byte_offset=16)
    lists[other][1] = again(long, A)
    with pytest.raises(ValueError, match=r"pair \d: its out overlaps an array of pair \d"):
        vecadd.add_many(*lists)
    assert not contents(long, np.zeros(24, np.float32)).any()
    assert table.written()


@pytest.mark.parametrize("at", [0, 3])
@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("known", [False, True], ids=["first tensors", "known tensors"])
def test_an_inference_tensor_among_the_outs_is_torchs_to_refuse(lists, torch, monkeypatch, known, in_place, at):
    (xs, ys, outs), values = lists

    Inference = inference_tensors.kind(table.Tensor)
    Inference.__name__, Inference.__module__ = "Tensor", "torch"
    inside = SimpleNamespace(mode=False)
    torch.is_inference_mode_enabled = lambda: inside.mode
    monkeypatch.setattr(table.Tensor, "device", SimpleNamespace(index=0), raising=False)
    left = []
    torch.add = lambda a, b, out: left.append(out)
    outs = [Inference(out.memory, x) for out, x in zip(outs, values, strict=True)]
    xs = outs if in_place else xs
    if known:
        vecadd.add_many(xs, ys, outs)
        assert left == []
    outs[at].inference = True
    vecadd.add_many(xs, ys, outs)
    assert left == [outs[at]]
    inside.mode = True
    vecadd.add_many(xs, ys, outs)
    assert left == [outs[at]]

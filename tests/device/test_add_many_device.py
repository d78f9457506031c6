"""add_many on the device: sums, launches, streams and failures, and the lists of PyTorch and CuPy."""

import contextlib

import numpy as np
import pytest
from arrays import assert_same_values, numpys_sum, tame_values, values
from conftest import ON_DOUBLE
from foreign import produced_late
from hypothesis import given, settings
from hypothesis import strategies as st
from orders import order_fixture
from pairs import PAIRS, X, numbers, on_device

import vecadd
from vecadd import _core


@settings(max_examples=25)
@given(pairs=PAIRS, seed=st.integers(0, 1000))
def test_device_sums_are_numpys_at_any_size_dtype_and_alignment(device, foreign, request, pairs, seed):
    if ON_DOUBLE:
        request.getfixturevalue("double").reset(seed)
    xs, ys, outs, expected = [], [], [], []
    for i, (dtype, n, offsets, where) in enumerate(pairs):
        typestr = {} if dtype.kind != "V" else {"typestr": dtype.str}
        a, b = values(dtype, n, i), values(dtype, n, i + 100)
        starts = [offset * dtype.itemsize for offset in offsets]
        x, y = foreign(a, starts[0], tail=64, **typestr), foreign(b, starts[1], tail=64, **typestr)
        expected.append(numpys_sum(a, b))
        xs.append(x)
        ys.append(y)
        outs.append({"own": foreign(np.zeros_like(a), starts[2], tail=64, **typestr), "x": x, "y": y}[where])
    assert vecadd.add_many(xs, ys, outs) is outs
    for out, want in zip(outs, expected, strict=True):
        assert_same_values(out.numpy(), want)
        assert set(out.beside()) <= {0xAB}


LAUNCH = "cudaLaunchKernel"
order = order_fixture(20, 3)


def windows(array, count):
    """`count` stretches of 3 elements of one array."""
    return [array.window(3 * i, 3) for i in range(count)]


@pytest.mark.parametrize("count", [1, 127, 128, 255, 256, 511, 512, 1023, 1024, 2500])
def test_lists_of_any_length_are_added(device, foreign, count):
    x, y = (tame_values(np.dtype("int32"), 3 * count, seed) for seed in (1, 2))
    out, tail = foreign(np.zeros_like(x), tail=64), np.full(64, 0xAB, np.uint8)
    vecadd.add_many(windows(foreign(x), count), windows(foreign(y), count), windows(out, count))
    assert_same_values(out.numpy(), x + y)
    assert out.beside() == tail.tobytes()


@pytest.mark.parametrize(("count", "launches"), [(1, 1), (1023, 1), (1024, 2)])
def test_a_launch_takes_1023_pairs(double, device, foreign, count, launches):
    x = foreign(np.ones(3 * count, "int32"))
    vecadd.add_many(windows(x, count), windows(x, count), windows(x, count))
    assert double.calls(LAUNCH) == launches
    assert (x.numpy() == 2).all()


def test_new_sums_have_their_pairs_shape_and_dtype(device):
    xs = [np.ones((2, 3), "float32"), np.ones(5, "int8"), np.ones((), "float64"), np.ones((4, 0), "float32")]
    got = vecadd.add_many(on_device(xs), on_device(xs))
    for sum_, x in zip(got, xs, strict=True):
        assert_same_values(sum_.numpy(), x + x)


def test_a_pair_may_overlap_itself_in_part(device, foreign):
    a = numbers(1000, 1)
    whole, other = foreign(a), foreign(numbers(100, 2))
    x, out = whole.window(0, 900), whole.window(50, 900)
    vecadd.add_many([other, x], [other, x], [other, out])
    assert_same_values(out.numpy(), a[:900] + a[:900])
    assert_same_values(other.numpy(), 2 * numbers(100, 2))


def refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_device_outs_are_untouched_by_an_error_of_a_later_pair(device, foreign):
    good = [foreign(numbers(10, seed)) for seed in (1, 2)]
    out, read_only = foreign(np.zeros(10, "float32")), foreign(np.zeros(10, "float32"))
    read_only.__cuda_array_interface__["data"] = (read_only.pointer, True)
    null = foreign(np.zeros(10, "float32"), data=(0, False))
    unknown = foreign(np.zeros(10, "float32"), data=(64, False))
    for third, error, message in [
        ((good[0], foreign(np.zeros(3, "float32")), None), ValueError, "pair 1: operands could not be broadcast"),
        ((good[0], good[1], read_only), ValueError, "pair 1: .*read-only"),
        ((good[0], null, None), ValueError, "pair 1: b: a null pointer"),
        ((unknown, good[0], None), ValueError, "pair 1: a: 0x40 is not memory that CUDA knows"),
        ((good[0], good[1], out), ValueError, "pair 0: its out overlaps an array of pair 1|pair 1: .*of pair 0"),
        ((good[0], X, None), TypeError, "pair 1: b is in host memory"),
        ((X, X, None), TypeError, "pair 1: its arrays are in host memory"),
        ((good[0], good[1], X), TypeError, "pair 1: .*device memory and out is not"),
    ]:
        lists = [[first, second] for first, second in zip((good[0], good[1], out), third, strict=True)]
        refused(lambda lists=lists: vecadd.add_many(*lists), error, message)
        assert not out.numpy().any()
        assert not read_only.numpy().any()


@pytest.mark.parametrize(("then", "typestr"), [(10, "<f4"), (999_999, "<f4"), (1_000_000, "<f2")])
def test_an_array_that_is_another_at_the_second_look_is_refused(device, foreign, then, typestr):
    """Its sum is made like it, and would be too small for the first look's elements."""
    whole, looks = foreign(np.ones(1_000_000, "float32")), []

    class Changes:
        @property
        def __cuda_array_interface__(self):
            looks.append(None)
            interface = whole.__cuda_array_interface__
            return interface if len(looks) == 1 else interface | {"shape": (then,), "typestr": typestr}

    with pytest.raises(ValueError, match="pair 0: x has been resized while the lists were looked at"):
        vecadd.add_many([Changes()], [whole])


def test_sums_come_after_every_producer_and_before_what_their_owners_queue_next(order, driver, foreign):
    streams = [driver.stream() for _ in range(3)]
    hosts = [numbers(1000, seed) for seed in range(6)]
    late = [produced_late(driver, x, streams[i % 3]) for i, x in enumerate(hosts)]
    outs = [foreign(np.zeros(1000, "float32"), stream=streams[i]) for i in range(3)]
    later = foreign(numbers(1000, 9))
    vecadd.add_many(late[:3], late[3:], outs, stream=driver.stream())
    for x, stream in zip(late, streams * 2, strict=True):
        driver.copy_late(stream, x.pointer, later.pointer, later.nbytes)
    for out, x, y in zip(outs, hosts[:3], hosts[3:], strict=True):
        assert_same_values(out.numpy(), x + y)


def test_each_stream_is_joined_once(double, device, driver, foreign):
    streams = [driver.stream() for _ in range(2)]
    xs = [foreign(X, stream=streams[i % 2]) for i in range(10)]
    vecadd.add_many(xs, xs, xs)
    assert double.calls("cudaStreamWaitEvent") == 2  # the other one's work, and ours by it
    assert double.calls(LAUNCH) == 1


FAILING = ["cudaLaunchKernel", "cudaEventRecord", "cudaStreamWaitEvent", "cudaGetDevice", "cudaMallocFromPoolAsync"]


@pytest.mark.parametrize("call", FAILING)
@pytest.mark.parametrize("nth", [1, 2, 3])
def test_a_failing_cuda_call_leaks_nothing_and_the_next_call_works(double, device, driver, foreign, call, nth):
    stream = driver.stream()
    arrays = [vecadd.to_device(np.full(10, i, "float32")) for i in range(3)]
    elsewhere = foreign(np.ones(10, "float32"), stream=stream)
    ys = [elsewhere] * len(arrays)
    counts = _core.memory_counts()
    double.fail(call, nth, 999)
    with contextlib.suppress(RuntimeError, MemoryError):
        vecadd.add_many(arrays, ys)
    double.reset(nth)
    assert _core.memory_counts() == counts
    assert_same_values(vecadd.add_many(arrays, ys)[2].numpy(), np.full(10, 3, "float32"))


# ---- PyTorch


@pytest.fixture
def torch(on_gpu):
    return on_gpu("torch")


@pytest.mark.gpu
def test_torch_lists_give_torch_lists(torch):
    xs = [torch.arange(n, device="cuda").to(dtype) for n, dtype in [(1000, torch.float32), (7, torch.bfloat16)]]
    xs += [torch.ones(4, 4, device="cuda").t(), torch.ones(5, device="cuda", requires_grad=True)]
    with torch.no_grad():
        got = vecadd.add_many(xs, xs)
        assert vecadd.add_many(xs, xs, xs) is xs
    assert all(torch.equal(sum_, x) for sum_, x in zip(got, xs, strict=True))
    kept = vecadd.add_many(xs, xs)
    assert [sum_.requires_grad for sum_ in kept] == [False, False, False, True]
    assert all(torch.equal(sum_.detach(), 2 * x.detach()) for sum_, x in zip(kept, xs, strict=True))


@pytest.mark.gpu
def test_torch_lists_of_every_alignment(torch):
    whole = torch.arange(60_000, device="cuda", dtype=torch.float16).reshape(10, 6000)
    xs = [whole[i, i : i + 5000] for i in range(10)]
    ys = [whole[9 - i, 2 * i : 2 * i + 5000] for i in range(10)]
    for sum_, x, y in zip(vecadd.add_many(xs, ys), xs, ys, strict=True):
        assert torch.equal(sum_, x + y)


@pytest.mark.gpu
def test_a_torch_list_is_captured_in_a_graph(torch):
    xs = [torch.full((1000 + i,), float(i), device="cuda") for i in range(200)]
    outs = [torch.zeros_like(x) for x in xs]
    vecadd.add_many(xs, xs, outs)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        vecadd.add_many(xs, xs, outs)
    for x in xs:
        x += 1
    graph.replay()
    assert all(torch.equal(out, 2 * x) for out, x in zip(outs, xs, strict=True))


@pytest.mark.gpu
def test_cupy_lists_give_cupy_lists(on_gpu):
    cupy = on_gpu("cupy")
    xs = [cupy.arange(n, dtype="float32") for n in (1, 1000, 30_000)]
    for sum_, x in zip(vecadd.add_many(xs, xs), xs, strict=True):
        assert type(sum_) is cupy.ndarray
        cupy.testing.assert_array_equal(sum_, 2 * x)

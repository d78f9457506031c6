"""Streams: a sum runs after what its operands' producers queued and before what their owners queue next.

On the double, work that nothing orders runs in a random legal order, another one for each seed: a join left out turns
these tests red for some of them.
"""

import contextlib
import ctypes
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
from arrays import assert_same_values
from foreign import ForeignStream, produced_late
from orders import order_fixture

import vecadd
from vecadd import _core

N = 1000
LEGACY, PER_THREAD = 1, 2  # cudaStreamLegacy, cudaStreamPerThread
WAITS = ["cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize", "cudaEventQuery", "cudaStreamQuery"]
order = order_fixture(40, 3)


def numbers(seed):
    return np.random.default_rng(seed).integers(-1000, 1000, N, np.int32)


def test_partial_overlap_on_streams_keeps_the_order(order, driver, foreign):
    a, stream = numbers(1), driver.stream()
    memory = produced_late(driver, a, stream)
    want = a.copy()
    want[10:510] = a[0:500] + a[100:600]
    vecadd.add(memory.window(0, 500), memory.window(100, 500), memory.window(10, 500), stream=driver.stream())
    assert_same_values(memory.numpy(), want)


def test_a_copy_comes_after_the_sum_on_its_arrays_own_stream(order, driver, foreign):
    stream, a = driver.stream(), numbers(1)
    late = produced_late(driver, a, stream)
    total = vecadd.add(late, late.window(0, a.size), stream=stream)
    assert_same_values(total.copy().numpy(), a + a)


def test_freed_memory_is_reused_only_after_its_users(order, driver, foreign):
    a, other = numbers(1), driver.stream()
    x = vecadd.to_device(a)
    got = vecadd.add(x, x, stream=other)
    del x
    for seed in range(5):
        vecadd.to_device(numbers(seed + 10))
    assert_same_values(got.numpy(), a + a)


def test_any_program_of_sums_over_streams_gives_what_it_gives_in_one_order(order, driver, foreign):
    choose = random.Random(order)
    streams = [driver.stream() for _ in range(3)] + [None, 0, LEGACY, PER_THREAD]
    host = [numbers(i) for i in range(6)]
    device = [vecadd.to_device(x) for x in host[:3]] + [foreign(x, stream=driver.stream()) for x in host[3:]]
    for _ in range(40):
        i, j, k = (choose.randrange(6) for _ in range(3))
        out = choose.choice([None, device[k]])
        host[k] = host[i] + host[j]
        device[k] = vecadd.add(device[i], device[j], out, stream=choose.choice(streams))
    for got, want in zip(device, host, strict=True):
        assert_same_values(got.numpy(), want)


STREAMS = {
    "a handle": int,
    "an object of the protocol": ForeignStream,
    "an attribute, which cuda.core had first": lambda handle: SimpleNamespace(__cuda_stream__=(0, handle)),
    "CuPy's": lambda handle: SimpleNamespace(ptr=handle),
    "PyTorch's": lambda handle: SimpleNamespace(cuda_stream=handle),
    "Numba's": lambda handle: SimpleNamespace(handle=ctypes.c_void_p(handle)),
}


@pytest.mark.parametrize("wrap", STREAMS.values(), ids=STREAMS)
def test_stream_may_be_a_handle_or_a_stream_object(wrap, driver, foreign):
    """A bare handle is no array's home: nothing keeps its stream."""
    a, handle = numbers(1), driver.stream()
    got = vecadd.add(foreign(a), foreign(a), stream=wrap(handle))
    assert (got.__cuda_array_interface__["stream"] == handle) is (wrap is not int)
    assert_same_values(got.numpy(), a + a)


@pytest.mark.parametrize("stream", [0, LEGACY, None])
def test_legacy_default_stream_is_the_default_and_is_named_1_in_the_interface(stream, foreign):
    a = numbers(1)
    got = vecadd.add(foreign(a), foreign(a), stream=stream)
    assert got.__cuda_array_interface__["stream"] == LEGACY
    assert_same_values(got.numpy(), a + a)


def test_per_thread_default_stream_is_2_and_no_arrays_home(foreign):
    """Its handle names another stream in each thread, and an array goes from thread to thread."""
    a = numbers(1)
    got = vecadd.add(foreign(a), foreign(a), stream=PER_THREAD)
    assert got.__cuda_array_interface__["stream"] not in (0, LEGACY, PER_THREAD)
    assert_same_values(got.numpy(), a + a)


@pytest.mark.parametrize("stream", [LEGACY, PER_THREAD])
def test_interfaces_names_of_the_default_streams_are_understood(stream, driver, foreign):
    a = numbers(1)
    got = vecadd.add(foreign(a), foreign(a, stream=stream))
    assert (got.__cuda_array_interface__["stream"] == LEGACY) == (stream == LEGACY)
    assert_same_values(got.numpy(), a + a)


# The per-thread default stream, and arrays that go from thread to thread.


@pytest.fixture
def in_another_thread(driver):
    """Gives what work() gives in a thread of its own. The threads end once the device is done: CUDA (driver 580, on an
    H200) hangs in the next thread's first call where one ends while its per-thread default stream has work."""
    pools = []

    def run(work):
        pools.append(ThreadPoolExecutor(1))
        return pools[-1].submit(work).result(60)

    yield run
    driver.synchronize(0)
    for pool in pools:
        pool.shutdown()


@pytest.fixture(params=[None, True, False], ids=["no capture", "blocking capture", "non-blocking capture"])
def captures(request, driver):
    """What a third thread captures meanwhile: nothing, a blocking stream, beside which the legacy default stream cannot
    be used, or another stream."""
    if request.param is None:
        yield contextlib.nullcontext
        return
    if not request.param:
        stream = driver.stream()
        yield lambda: driver.capture(stream)
        return
    double = request.getfixturevalue("double")
    stream = double.stream_create(0, nonblocking=False)
    yield lambda: driver.capture(stream)
    double.stream_destroy(stream)


@contextlib.contextmanager
def captured_by_a_third_thread(captures):
    begun, over = threading.Event(), threading.Event()

    def capture():
        with captures():
            begun.set()
            over.wait(60)

    with ThreadPoolExecutor(1) as pool:
        result = pool.submit(capture)
        try:
            begun.wait(60)
            yield
        finally:
            over.set()
        result.result(60)


@pytest.mark.parametrize("many", [False, True], ids=["add", "add_many"])
def test_sums_on_the_per_thread_stream_are_used_in_any_thread(
    order, driver, foreign, captures, many, in_another_thread
):
    a, stream = numbers(1), driver.stream()
    x, y = (produced_late(driver, a, s) for s in (PER_THREAD, driver.stream()))

    def add(p, q, **keywords):
        return vecadd.add_many([p], [q], **keywords)[0] if many else vecadd.add(p, q, **keywords)

    with captured_by_a_third_thread(captures):
        sums = [add(x, y, stream=PER_THREAD)]
        sums.append(in_another_thread(lambda: add(sums[0], sums[0])))
        sums.append(in_another_thread(lambda: add(sums[0], sums[1], stream=PER_THREAD)))
        fourth = in_another_thread(lambda: add(sums[2], sums[0], stream=stream))
        sums.clear()
        got = in_another_thread(lambda: fourth.numpy())
    assert_same_values(got, 8 * a)


def test_memory_of_the_per_thread_stream_goes_back_after_its_users(order, driver, foreign, captures, in_another_thread):
    a = numbers(1)
    x, out = produced_late(driver, a, PER_THREAD), foreign(np.zeros_like(a))
    sums = []
    with captured_by_a_third_thread(captures):
        sums.append(vecadd.add(x, x, stream=PER_THREAD))
        vecadd.add(sums[0], x, out, stream=PER_THREAD)
        in_another_thread(sums.clear)
        for i in range(3):
            in_another_thread(lambda i=i: vecadd.add(x, x, stream=PER_THREAD) is None)
    assert_same_values(out.numpy(), 3 * a)


def test_consumer_on_the_per_thread_stream_may_drop_its_capsule_in_any_thread(
    order, driver, foreign, captures, in_another_thread
):
    a = numbers(1)
    x, target = produced_late(driver, a, PER_THREAD), foreign(np.zeros_like(a))
    capsules = []
    with captured_by_a_third_thread(captures):
        total = vecadd.add(x, x, stream=PER_THREAD)
        pointer = total.__cuda_array_interface__["data"][0]
        capsules.append(total.__dlpack__(stream=PER_THREAD))
        del total
        driver.copy(PER_THREAD, target.pointer, pointer, a.nbytes)
        in_another_thread(capsules.clear)
        again = in_another_thread(lambda: vecadd.add(x, x, stream=PER_THREAD))
    assert_same_values(target.numpy(), a + a)
    del again


@pytest.mark.parametrize("many", [False, True], ids=["plan", "plan of lists"])
def test_a_plan_on_the_per_thread_stream_runs_in_any_thread(order, driver, foreign, captures, many, in_another_thread):
    a = numbers(1)
    x, out = foreign(a), vecadd.to_device(np.zeros_like(a))
    plan = vecadd.plan([out], [x], [out], stream=PER_THREAD) if many else vecadd.plan(out, x, out, stream=PER_THREAD)
    for i in range(3):
        in_another_thread(plan) if i % 2 else plan()
    assert_same_values(in_another_thread(out.numpy), 3 * a)


def test_the_host_waits_for_nothing(double, driver, foreign):
    """However many streams there are to order."""
    a, late = numbers(1), foreign(np.zeros(N, np.int32), stream=driver.stream())
    source, out = foreign(a), foreign(np.zeros(N, np.int32), stream=driver.stream())
    x = vecadd.to_device(a)
    driver.copy_late(late.__cuda_array_interface__["stream"], late.pointer, source.pointer, a.nbytes)
    before = [double.calls(call) for call in WAITS]
    vecadd.add(late, x, out, stream=driver.stream())
    vecadd.add_many([late, x], [x, x], stream=driver.stream())
    vecadd.add(out, x).__dlpack__(stream=driver.stream())
    assert [double.calls(call) for call in WAITS] == before
    assert_same_values(out.numpy(), a + a)


def test_each_stream_is_joined_once_and_none_to_itself(double, driver, foreign):
    a, run_on, other = numbers(1), driver.stream(), driver.stream()
    x, y, out = (foreign(a, stream=stream) for stream in (other, other, run_on))
    for operands, joins in (((x, y, out), 2), ((out, out, out), 0)):  # after the other stream, and before it
        before = double.calls("cudaStreamWaitEvent")
        vecadd.add(*operands, stream=run_on)
        assert double.calls("cudaStreamWaitEvent") == before + joins


def test_sum_runs_on_the_first_operands_stream(driver, foreign):
    a, stream = numbers(1), driver.stream()
    operands = foreign(a, stream=stream), foreign(a, stream=driver.stream())
    assert _core.explain_route(*operands)["stream"] == stream
    assert_same_values(vecadd.add(*operands).numpy(), a + a)


def test_sum_runs_on_the_home_stream_of_a_device_array(driver, foreign):
    a, stream = numbers(1), driver.stream()
    first = vecadd.add(foreign(a), foreign(a), stream=ForeignStream(stream))
    assert vecadd.add(first, first).__cuda_array_interface__["stream"] == stream


def test_home_stream_of_out_is_kept(driver, device):
    a = vecadd.to_device(numbers(1))
    home = a.__cuda_array_interface__["stream"]
    vecadd.add(a, a, a, stream=driver.stream())
    assert a.__cuda_array_interface__["stream"] == home
    assert_same_values(a.numpy(), 2 * numbers(1))


@pytest.mark.parametrize("device", [None, "cuda"])
@pytest.mark.parametrize("stream", [0, 1, 2])
def test_stream_with_host_operands_is_a_type_error(driver, stream, device):
    a = numbers(1)
    with pytest.raises(TypeError, match="stream"):
        vecadd.add(a, a, device=device, stream=stream)


@pytest.mark.parametrize("given", ["stream=", "interface"])
def test_stream_of_another_device_is_refused_before_any_work(given, second_device, driver, foreign):
    a, stream = numbers(1), driver.stream(second_device)
    keywords, interface = ({"stream": stream}, {}) if given == "stream=" else ({}, {"stream": stream})
    x, out = foreign(a, **interface), foreign(np.zeros_like(a))
    for target in (None, out):
        with pytest.raises(ValueError, match=f"stream is on cuda:{second_device} and the arrays are on cuda:0"):
            vecadd.add(x, x, target, **keywords)
    assert not out.numpy().any()

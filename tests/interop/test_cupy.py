"""CuPy's arrays: added where they are, on CuPy's current stream, the sum a CuPy array."""

import threading

import numpy as np
import pytest
from arrays import NUMPY_DTYPES, assert_same_values, numpys_sum, values
from foreign import Borrowed

import vecadd
import vecadd.interop

cupy = pytest.importorskip("cupy")
pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def gpu(runtime):
    if runtime != "gpu":
        pytest.skip("needs a GPU")


@pytest.mark.parametrize("dtype", NUMPY_DTYPES, ids=str)
@pytest.mark.parametrize("n", [0, 1, 3, 17, 1000, 100_003])
def test_sum_is_numpys_and_a_cupy_array(n, dtype):
    a, b = values(dtype, n, 1), values(dtype, n, 2)
    got = vecadd.add(cupy.asarray(a), cupy.asarray(b))
    assert type(got) is cupy.ndarray
    assert_same_values(got.get(), numpys_sum(a, b))


@pytest.mark.parametrize("start", range(9))
def test_views_at_every_alignment(start):
    whole, out = cupy.arange(1000, dtype=np.int8), cupy.zeros(600, dtype=np.int8)
    a = whole[start : start + 500]
    vecadd.add(a, a, out[3 * start : 3 * start + 500])
    assert_same_values(out[3 * start : 3 * start + 500].get(), a.get() + a.get())
    assert not out[: 3 * start].any()
    assert not out[3 * start + 500 :].any()


def test_out_and_in_place():
    a, b, out = cupy.arange(1000.0), cupy.ones(1000), cupy.zeros(1000)
    assert vecadd.add(a, b, out) is out
    assert vecadd.add(a, b, a) is a
    assert_same_values(a.get(), out.get())
    assert_same_values(out.get(), np.arange(1000.0) + 1)


@pytest.mark.parametrize("shape", [(), (3, 4), (2, 0, 3)], ids=str)
def test_shape_is_kept(shape):
    a = cupy.ones(shape)
    assert vecadd.add(a, a).shape == shape


def test_sum_runs_on_the_current_stream():
    host = np.arange(1_000_000.0)
    with cupy.cuda.Stream(non_blocking=True) as stream:
        a = cupy.asarray(host)
        for _ in range(50):
            a += 1
        got = vecadd.add(a, a)
        stream.synchronize()
    assert_same_values(got.get(), 2 * (host + 50))


def test_plans_add_at_each_call():
    a, one = cupy.zeros(1000), cupy.ones(1000)
    plan = vecadd.plan(a, one, a)
    for _ in range(2000):
        plan()
    assert plan.route == "device"
    assert_same_values(a.get(), np.full(1000, 2000.0))


def test_arrays_are_read_without_their_interface(monkeypatch):
    a = cupy.arange(1000.0)
    vecadd.add(a, a, a)
    calls = []
    monkeypatch.setattr(vecadd.interop.CuPy, "export", lambda self, array, writing: calls.append(array))
    assert_same_values(vecadd.add(a, a).get(), 4 * np.arange(1000.0))
    assert calls == []


def test_sums_may_be_captured_into_a_graph():
    a, b, out = cupy.arange(1000.0), cupy.ones(1000), cupy.zeros(1000)
    vecadd.add(a, b, out)
    cupy.cuda.Device().synchronize()  # CuPy orders no stream after another
    with cupy.cuda.Stream(non_blocking=True) as stream:
        total = cupy.empty_like(a)
        stream.begin_capture()
        vecadd.add(a, b, total)
        vecadd.add(total, vecadd.add(total, 1), out)
        graph = stream.end_capture()
        for i in range(3):
            a.fill(i)
            graph.launch(stream)
            stream.synchronize()
            assert_same_values(out.get(), np.full(1000, 2.0 * (i + 1) + 1))


@pytest.mark.parametrize("spelled", [lambda s: s, lambda s: s.ptr], ids=["object", "handle"])
def test_stream_may_be_cupys(spelled):
    stream, a = cupy.cuda.Stream(non_blocking=True), cupy.arange(1000.0)
    got = vecadd.add(a, a, stream=spelled(stream))
    stream.synchronize()
    assert_same_values(got.get(), 2 * np.arange(1000.0))


@pytest.mark.parametrize(
    ("make", "exception"),
    [
        (lambda a: (a, a.get()), TypeError),
        (lambda a: (a, a[:-1]), ValueError),
    ],
)
def test_what_cannot_be_added_is_refused(make, exception):
    with pytest.raises(exception):
        vecadd.add(*make(cupy.arange(10.0)))


def test_device_arrays_and_cupy_arrays_mix():
    a = np.arange(100.0)
    x, c = vecadd.to_device(a), cupy.asarray(a)
    assert type(vecadd.add(c, x)) is cupy.ndarray
    assert type(vecadd.add(x, c)) is vecadd.DeviceArray
    assert_same_values(vecadd.add(c, x).get(), a + a)


def test_cupy_reads_device_arrays():
    a = np.arange(100.0)
    assert_same_values(cupy.asarray(vecadd.to_device(a)).get(), a)


N = 10_000_000


def slowly_copied(y):
    """The contents of y now, copied on the current stream after work that takes the GPU some milliseconds."""
    busy, target = cupy.zeros(N), cupy.empty_like(y)
    cupy.cuda.Device().synchronize()  # CuPy orders no stream after another
    for _ in range(100):
        busy += 1
    target[...] = y
    return target


@pytest.mark.parametrize("non_blocking", [False, True])
def test_a_loan_outlives_the_stream_that_was_current(non_blocking):
    """CuPy destroys a stream with its last object."""
    for k in range(5):
        x = vecadd.to_device(np.full(N, k))
        with cupy.cuda.Stream(non_blocking=non_blocking):
            y = cupy.from_dlpack(x)
            target = slowly_copied(y)
        del x, y
        after = vecadd.to_device(np.full(N, -1))  # may take the memory
        cupy.cuda.Device().synchronize()
        assert bool((target == k).all())
        assert (after.numpy() == -1).all()


def test_a_sum_outlives_the_stream_that_it_was_made_on():
    x = vecadd.to_device(np.arange(1000.0))
    for non_blocking in (False, True):
        with cupy.cuda.Stream(non_blocking=non_blocking) as stream:
            totals = vecadd.add(x, 1, stream=stream), vecadd.add(x, 1, stream=stream.ptr)
            del stream
        for total in totals:
            assert_same_values((total + total).numpy(), 2 * np.arange(1000.0) + 2)
        del totals, total


def lend_and_drop(failed):
    try:
        for k in range(50):
            x = vecadd.to_device(np.full(100_000, k))
            with cupy.cuda.Stream(non_blocking=bool(k % 2)):
                y = cupy.from_dlpack(x)
                total = y + y
                del y, x
                cupy.cuda.get_current_stream().synchronize()
            assert bool((total == 2 * k).all())
    except BaseException as error:
        failed.append(error)


@pytest.mark.parametrize("captured", [False, True], ids=["no capture", "beside a capture"])
def test_eight_threads_lend_to_streams_of_their_own(captured):
    failed, out = [], cupy.zeros(1000)
    vecadd.add(out, 1, out)
    lend_and_drop(failed)
    cupy.cuda.Device().synchronize()
    threads = [threading.Thread(target=lend_and_drop, args=(failed,)) for _ in range(8)]
    stream = cupy.cuda.Stream(non_blocking=True)
    if captured:
        with stream:
            stream.begin_capture(mode=cupy.cuda.runtime.streamCaptureModeRelaxed)
            vecadd.add(out, 1, out)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    vecadd.release()
    if captured:
        with stream:
            vecadd.add(out, 1, out)
            stream.end_capture().launch(stream)
            stream.synchronize()
        assert bool((out == 3).all())
    assert failed == []


def test_memory_lent_to_a_bare_handle_is_not_used_again_before_its_work():
    runtime = cupy.cuda.runtime
    for flags in (runtime.streamDefault, runtime.streamNonBlocking):
        for k in range(5):
            x, target = vecadd.to_device(np.full(N, k)), cupy.empty(N, np.int64)
            handle = runtime.streamCreateWithFlags(flags)
            y = Borrowed(x, handle)
            busy = cupy.zeros(N)
            cupy.cuda.Device().synchronize()
            for _ in range(100):
                runtime.memsetAsync(busy.data.ptr, 0, busy.nbytes, handle)
            runtime.memcpyAsync(target.data.ptr, y.pointer, target.nbytes, runtime.memcpyDeviceToDevice, handle)
            runtime.streamDestroy(handle)
            del x, y
            after = [vecadd.to_device(np.full(N, -1)) for _ in range(2)]  # may take the memory
            cupy.cuda.Device().synchronize()
            assert bool((target == k).all())
            del after
        vecadd.release()

"""Two GPUs: where the data is decides, the caller's current device stays what it was, and devices do not mix.

Every test runs with each of the two devices current, and ends with that one current, also after errors.
"""

import warnings

import numpy as np
import pytest
from arrays import assert_same_values
from foreign import DLPACK_CUDA, DLPackArray
from orders import orders

import vecadd
from vecadd import _core

N = 1000
A = np.arange(N, dtype=np.float32)
FIRST, SECOND = 0, 1


@pytest.fixture(params=[FIRST, SECOND], ids=["first is current", "second is current"])
def current(request, second_device, driver):
    """The caller's current device, which it is still in the end."""
    vecadd.to_device(A, SECOND).numpy()
    with driver.on(request.param):
        yield request.param
        assert driver.current_device() == request.param


@pytest.fixture
def make(current, foreign):
    """make[kind](x, device): the NumPy array x on a device, as DeviceArray, by array interface or by DLPack."""
    return {
        "DeviceArray": vecadd.to_device,
        "interface": lambda x, device: foreign(x, device=device),
        "DLPack": lambda x, device: DLPackArray(foreign(x, device=device), device=(DLPACK_CUDA, device)),
    }


KINDS = ["DeviceArray", "interface", "DLPack"]


def finish(driver):
    """All work is done, and vecadd has released what it kept for it."""
    for device in (FIRST, SECOND):
        driver.synchronize(device)
    _core.release()


@pytest.mark.parametrize("kind", KINDS)
def test_sum_is_made_where_the_operands_are(make, driver, kind):
    for device in (SECOND, FIRST, SECOND):
        x = make[kind](A, device)
        got = vecadd.add(x, x)
        assert got.device == f"cuda:{device}"
        assert_same_values(got.numpy(), A + A)
    finish(driver)


@pytest.mark.parametrize("kind", ["DeviceArray", "DLPack"])
def test_empty_sum_is_made_where_the_empty_operands_are(make, kind):
    for device in (SECOND, FIRST):
        x = make[kind](A[:0], device)
        assert vecadd.add(x, x).device == f"cuda:{device}"


def test_out_and_in_place(make):
    x, out = make["DeviceArray"](A, SECOND), make["interface"](A, SECOND)
    assert vecadd.add(x, x, out) is out
    assert_same_values(out.numpy(), A + A)
    x += 1
    assert_same_values(x.numpy(), A + 1)


def test_views_copies_and_casts(make):
    x = make["DeviceArray"](A, SECOND)
    for got, want in [(x[::2] + 1.0, A[::2] + 1), (x[::-1].copy(), A[::-1]), (x + x[:1], A + A[:1])]:
        assert got.device == f"cuda:{SECOND}"
        assert_same_values(got.numpy(), want)
    y = make["DeviceArray"](A.astype("f8"), SECOND)
    assert_same_values(vecadd.add(x, y).numpy(), A + A.astype("f8"))


def test_many_additions_and_a_planned_one(make):
    xs = [make["DeviceArray"](A + i, SECOND) for i in range(20)]
    for i, got in enumerate(vecadd.add_many(xs, xs)):
        assert got.device == f"cuda:{SECOND}"
        assert_same_values(got.numpy(), 2 * (A + i))
    plan = vecadd.plan(xs[0], xs[1], xs[0])
    for _ in range(3):
        plan()
    assert_same_values(xs[0].numpy(), A + 3 * (A + 1))


def test_host_arrays_by_way_of_a_named_device(current):
    assert_same_values(vecadd.add(A, A, device=f"cuda:{SECOND}"), A + A)


def test_sum_comes_after_what_is_queued_on_the_other_device(make, foreign, driver):
    stream = driver.stream(SECOND)
    source, x = foreign(A, device=SECOND), foreign(np.zeros_like(A), device=SECOND, stream=stream)
    driver.copy_late(stream, x.pointer, source.pointer, A.nbytes)
    assert_same_values(vecadd.add(x, x).numpy(), A + A)


@pytest.mark.parametrize("source", ["DeviceArray", "sum"])
def test_the_other_device_reads_and_writes_an_arrays_memory(make, foreign, driver, source):
    for device, other in [(FIRST, SECOND), (SECOND, FIRST)]:
        x = make["DeviceArray"](A, device)
        x, want = (x, A) if source == "DeviceArray" else (x + x, A + A)
        theirs, stream = foreign(np.zeros_like(A), device=other), driver.stream(other)
        pointer = x.__cuda_array_interface__["data"][0]
        driver.synchronize(device)
        driver.copy(stream, theirs.pointer, pointer, A.nbytes, other)
        assert_same_values(theirs.numpy(), want)
        driver.write(theirs.pointer, A + 5)
        driver.copy(stream, pointer, theirs.pointer, A.nbytes, other)
        driver.synchronize(other)
        assert_same_values(x.numpy(), A + 5)


def test_stream_of_the_arrays_device(make, driver):
    x, stream = make["DeviceArray"](A, SECOND), driver.stream(SECOND)
    assert_same_values(vecadd.add(x, x, stream=stream).numpy(), A + A)


def test_legacy_default_stream_is_that_of_the_arrays_device(make, driver):
    """A handle alone says 1 for every device's: the producer is asked, and takes it, with its own device current."""
    seen = []

    class Producer(DLPackArray):
        def produce(self, stream):
            seen.append((stream, driver.current_device()))

    for device in (SECOND, FIRST):
        x = make["DLPack"](A, device)
        producer = Producer(x.array, device=(DLPACK_CUDA, device))
        assert_same_values(vecadd.add(producer, x.array).numpy(), A + A)
        assert_same_values(vecadd.add(x.array, producer, stream=0).numpy(), A + A)
    assert seen == [(1, SECOND)] * 2 + [(1, FIRST)] * 2
    finish(driver)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("other", KINDS)
def test_operands_on_two_devices_are_refused(make, driver, kind, other):
    x, y = make[kind](A, FIRST), make[other](A, SECOND)
    with pytest.raises(ValueError, match="a is on cuda:0 and b on cuda:1"):
        vecadd.add(x, y)
    with pytest.raises(ValueError, match="a is on cuda:1 and b on cuda:0"):
        vecadd.add(y, x)
    finish(driver)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x, y: vecadd.add(x, x, y), "a is on cuda:0 and out on cuda:1"),
        (lambda x, y: vecadd.add(x, 1, y), "a is on cuda:0 and out on cuda:1"),
        (lambda x, y: vecadd.add(1, x, y), "b is on cuda:0 and out on cuda:1"),
        (lambda x, y: vecadd.plan(x, x, y), "a is on cuda:0 and out on cuda:1"),
        (lambda x, y: vecadd.add(x.reshape(-1, 1), y + 0.5), r"cuda:0.*cuda:1"),
        (lambda x, y: vecadd.add(y, y, device="cuda:0"), r"cuda:0.*cuda:1"),
        (lambda x, y: vecadd.add_many([x, y], [x, y]), "pair 1: it is on cuda:1 and the arrays before it on cuda:0"),
    ],
    ids=["out", "number", "number first", "plan", "broadcast", "device=", "pairs"],
)
def test_what_is_on_two_devices_is_refused_and_untouched(make, call, message):
    x, y = make["DeviceArray"](A, FIRST), make["DeviceArray"](A, SECOND)
    with pytest.raises(ValueError, match=message):
        call(x, y)
    assert_same_values(y.numpy(), A)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: vecadd.add(x, x[:-1]),
        lambda x: vecadd.add(x, A),
        lambda x: vecadd.add(x, x, stream=3),
        lambda x: vecadd.add(x, x, device="cuda:7"),
        lambda x: x.numpy(out=np.zeros(3, "f4")),
        lambda x: x.__dlpack__(stream=0),
        lambda x: vecadd.plan(x, x[:-1], x),
        lambda x: vecadd.add_many([x], [A]),
    ],
    ids=["shape", "host", "stream", "ordinal", "numpy", "dlpack", "plan", "add_many"],
)
def test_bad_calls_leave_the_current_device(make, call):
    x = make["DeviceArray"](A, SECOND)
    with pytest.raises((ValueError, TypeError)):
        call(x)


# Other libraries', each with its own idea of a current device.


class Torch:
    def __init__(self):
        self.torch = pytest.importorskip("torch")

    def make(self, x, device):
        return self.torch.from_numpy(x).to(f"cuda:{device}")

    def current(self):
        return self.torch.cuda.current_device()

    def device(self, x):
        return x.get_device()

    def host(self, x):
        return x.cpu().numpy()


class CuPy:
    def __init__(self):
        self.cupy = pytest.importorskip("cupy")

    def make(self, x, device):
        with self.cupy.cuda.Device(device):
            return self.cupy.asarray(x)

    def current(self):
        return self.cupy.cuda.runtime.getDevice()

    def device(self, x):
        return x.device.id

    def host(self, x):
        return x.get()


class JAX:
    def __init__(self):
        self.jax = pytest.importorskip("jax")
        if self.jax.default_backend() != "gpu":
            pytest.skip("needs a JAX that can use the GPUs")

    def make(self, x, device):
        return self.jax.device_put(x, self.jax.devices()[device])

    def current(self):
        return FIRST

    def device(self, x):
        return next(iter(x.devices())).local_hardware_id

    def host(self, x):
        return np.asarray(x)


class Numba:
    def __init__(self):
        self.cuda = pytest.importorskip("numba.cuda")

    def make(self, x, device):
        with self.cuda.gpus[device]:
            return self.cuda.to_device(x)

    def current(self):
        return self.cuda.current_context().device.id

    def device(self, x):
        return x.gpu_data.context.device.id if hasattr(x.gpu_data, "context") else SECOND

    def host(self, x):
        # Numba copies in its current context, which reads no stream-ordered memory of another device.
        with self.cuda.gpus[self.device(x)]:
            return x.copy_to_host()


LIBRARIES = [Torch, CuPy, JAX, Numba]


@pytest.fixture(params=LIBRARIES, ids=lambda library: library.__name__)
def library(request, second_device, runtime):
    if runtime != "gpu":
        pytest.skip("needs two GPUs")
    return request.param()


@pytest.mark.gpu
def test_sums_of_libraries_arrays_are_where_they_are(library):
    before = library.current()
    for _ in range(20):
        x, y = library.make(A, SECOND), library.make(A + 1, SECOND)
        got = vecadd.add(x, y)
        assert type(got) is type(x)
        assert library.device(got) == SECOND
        assert library.current() == before
        assert_same_values(library.host(got), A + A + 1)
        assert_same_values(library.host(vecadd.add(got, vecadd.to_device(A, SECOND))), A + A + 1 + A)


@pytest.mark.gpu
def test_libraries_arrays_on_two_devices_are_refused(library):
    x, y, before = library.make(A, FIRST), library.make(A, SECOND), library.current()
    with pytest.raises(ValueError, match="a is on cuda:0 and b on cuda:1"):
        vecadd.add(x, y)
    with pytest.raises(ValueError, match="a is on cuda:1 and b on cuda:0"):
        vecadd.add(y, vecadd.to_device(A, FIRST))
    assert library.current() == before


@pytest.mark.gpu
def test_sum_of_jax_arrays_comes_after_what_jax_still_computes_there(second_device, runtime):
    library = JAX() if runtime == "gpu" else pytest.skip("needs two GPUs")
    slowly = library.jax.jit(lambda x: library.jax.lax.fori_loop(0, 2000, lambda i, y: y + 1, x))
    a = library.make(np.zeros(1_000_000, np.int32), SECOND)
    slowly(a).block_until_ready()
    for _ in range(5):
        late = slowly(a)
        assert int(vecadd.add(late, late).min()) == 4000


@pytest.mark.gpu
def test_torchs_streams_and_captures_on_the_second_device(second_device, runtime):
    library = Torch() if runtime == "gpu" else pytest.skip("needs two GPUs")
    torch = library.torch
    before = library.current()
    a, out = library.make(A, SECOND), library.make(np.zeros_like(A), SECOND)
    with torch.cuda.stream(torch.cuda.Stream(SECOND)):
        b = a + 1
        got = vecadd.add(b, b)
        torch.cuda.current_stream(SECOND).synchronize()
    assert torch.equal(got, 2 * (a + 1))
    with torch.cuda.device(SECOND):
        graph = torch.cuda.CUDAGraph()
        # Without a stream of its own PyTorch makes one for all captures of the process, on this device.
        with torch.cuda.graph(graph, stream=torch.cuda.Stream(SECOND)):
            vecadd.add(a, a, out)
        out.zero_()
        graph.replay()
    torch.cuda.synchronize(SECOND)
    assert torch.equal(out, a + a)
    assert library.current() == before


@pytest.mark.gpu
def test_torch_copies_an_adopted_sum_between_gpus(second_device, runtime):
    library = Torch() if runtime == "gpu" else pytest.skip("needs two GPUs")
    torch = library.torch
    for device, other in [(FIRST, SECOND), (SECOND, FIRST)]:
        x = vecadd.to_device(A, device)
        adopted, theirs = torch.from_dlpack(x + x), library.make(A, other)
        assert torch.equal(torch.empty_like(theirs).copy_(adopted), theirs + theirs)
        adopted.copy_(theirs)
        assert_same_values(library.host(adopted), A)


@pytest.mark.gpu
def test_a_kernel_of_cupys_uses_an_adopted_sum_of_the_other_gpu(second_device, runtime):
    cupy = CuPy().cupy if runtime == "gpu" else pytest.skip("needs two GPUs")
    for device, other in [(FIRST, SECOND), (SECOND, FIRST)]:
        x = vecadd.to_device(A, device)
        adopted = cupy.from_dlpack(x + x)
        with cupy.cuda.Device(other), warnings.catch_warnings():
            warnings.simplefilter("ignore", cupy._util.PerformanceWarning)  # that peer access is slower
            theirs = adopted + 1
            cupy.add(adopted, 5, out=adopted)
            cupy.cuda.get_current_stream().synchronize()
        assert_same_values(theirs.get(), A + A + 1)
        assert_same_values(adopted.get(), A + A + 5)


def test_memory_is_not_freed_beside_a_capture_on_its_device(second_device, double, driver):
    """A free on the legacy default stream would end the capture of a blocking stream; the other device has none."""
    before = _core.memory_counts()
    x = vecadd.to_device(np.ones(1 << 20, np.int8), SECOND)
    with driver.on(SECOND):
        stream = double.stream_create(SECOND, nonblocking=False)
    with driver.on(FIRST):
        with driver.capture(stream):
            del x
        _core.release()
        assert _core.memory_counts() == before
    double.stream_destroy(stream)


def beside_a_capture(double, driver, call):
    """call(), while the other device is current and this thread's per-thread stream captures there."""
    with driver.on(SECOND):
        double.capture_begin(2)
        result = call()
        double.capture_end(2)
    return result


@pytest.mark.parametrize("seed", orders(10, 3))
def test_a_consumer_on_the_per_thread_stream_waits_where_the_array_is(second_device, double, driver, foreign, seed):
    double.reset(seed)
    double.devices(2)
    x, target = vecadd.add(foreign(A), 1, stream=driver.stream()), foreign(np.zeros_like(A))
    capsule = beside_a_capture(double, driver, lambda: x.__dlpack__(stream=2))
    with driver.on(FIRST):
        driver.copy(2, target.pointer, x.__cuda_array_interface__["data"][0], A.nbytes)
        double.stream_synchronize(2)
    assert_same_values(target.numpy(), A + 1)
    del capsule
    finish(driver)


def test_a_producer_is_told_the_per_thread_stream_where_the_array_is(second_device, double, driver, foreign):
    with driver.on(FIRST):
        x = DLPackArray(foreign(A))
        vecadd.add(x, 0, stream=2)
    x.asked.clear()
    beside_a_capture(double, driver, lambda: vecadd.add(x, 0, stream=2))
    assert x.asked[0]["stream"] == 2
    finish(driver)

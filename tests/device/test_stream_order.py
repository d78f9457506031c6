"""Each library's order: its arrays are read when its stream has made them, and it reads and reuses memory in its order.

What a sum has to come after, or before, takes its time: on a GPU a delay of some milliseconds is queued before it, on
the double work that nothing orders runs in a random legal order, another one for each seed. A sum without its order is
wrong in each of these tests.
"""

import contextlib
import gc

import numpy as np
import pytest
from arrays import assert_same_values
from foreign import Driver, ForeignArray, ForeignStream
from orders import order_fixture

import vecadd
from vecadd import interop

N = 100_000
order = order_fixture(6, 2)
A, B, OTHER = (np.random.default_rng(seed).integers(-1000, 1000, N, np.int32) for seed in range(3))
ZEROS = np.zeros_like(A)


class Interface:
    """Arrays whose interface names the stream that their owner works on."""

    def __init__(self, driver):
        self.driver = driver

    def stream(self):
        """A stream that its allocator may remember for longer than a test that fails."""
        return self.driver.stream()

    def on(self, stream):
        """Makes it the library's current stream, where it has such a thing."""
        return contextlib.nullcontext()

    def make(self, x, stream):
        """x as an array of the library's, used on that stream."""
        return ForeignArray(self.driver, x, stream=stream)

    def pointer(self, array):
        return array.__cuda_array_interface__["data"][0]

    def empty(self, stream):
        """The address that its allocator gives for an array that is used on that stream."""
        raise NotImplementedError

    def order_of(self, total, stream):
        """The stream on which its next reader, who works on `stream`, finds a sum."""
        return total.__cuda_array_interface__["stream"]

    def host(self, array):
        return array.numpy()


class DeviceArray(Interface):
    def make(self, x, stream):
        a, zeros = ForeignArray(self.driver, x), ForeignArray(self.driver, ZEROS)
        made = vecadd.add(a, zeros, stream=ForeignStream(stream))
        self.driver.synchronize(0)  # before the operands' memory is given back
        return made


class Pool(interop.Library):
    """The library "pooled": a current stream, and memory that is used again at once in the order of the stream that it
    was made on, unless another one's use was recorded. So do PyTorch's allocator and CuPy's."""

    records_streams = True

    def __init__(self, driver: Driver) -> None:
        self.driver, self.current = driver, 0
        self.free: dict[int, list[int]] = {}

    def take(self, stream):
        free = self.free.setdefault(stream, [])
        return free.pop() if free else self.driver.allocate(ZEROS.nbytes)

    def current_stream(self, device):
        return self.current

    def record_stream(self, array, stream):
        array.recorded.append(stream)

    def empty_like(self, array, stream, shape=None, dtype=None):
        return Pooled(self, self.current if stream is None else stream)


class Pooled:
    __module__ = "pooled"

    def __init__(self, pool, stream):
        self.pool, self.stream, self.memory, self.recorded = pool, stream, pool.take(stream), []
        self.__cuda_array_interface__ = {
            "shape": A.shape, "typestr": A.dtype.str, "data": (self.memory, False), "version": 2
        }  # fmt: skip

    def __del__(self):
        if not set(self.recorded) - {self.stream}:
            self.pool.free[self.stream].append(self.memory)


class StandIn(Interface):
    def __init__(self, driver):
        super().__init__(driver)
        self.library = interop.LIBRARIES["pooled"] = Pool(driver)
        self.sources = {id(x): ForeignArray(driver, x) for x in (A, OTHER, ZEROS)}

    @contextlib.contextmanager
    def on(self, stream):
        before, self.library.current = self.library.current, stream
        yield
        self.library.current = before

    def make(self, x, stream):
        made = Pooled(self.library, stream)
        self.driver.copy(stream, made.memory, self.sources[id(x)].pointer, x.nbytes)
        return made

    def order_of(self, total, stream):
        return stream

    def host(self, array):
        return np.frombuffer(self.driver.read(array.memory, A.nbytes), A.dtype)

    def empty(self, stream):
        return Pooled(self.library, stream).memory


class Torch(Interface):
    def __init__(self, driver):
        super().__init__(driver)
        self.torch = pytest.importorskip("torch")
        self.made = {}
        self.sources = {id(x): self.torch.from_numpy(x).pin_memory() for x in (A, OTHER, ZEROS)}

    def stream(self):
        made = self.torch.cuda.Stream()
        self.made[made.cuda_stream] = made
        return made.cuda_stream

    def on(self, stream):
        return self.torch.cuda.stream(self.made[stream])

    def make(self, x, stream):
        with self.on(stream):
            return self.sources[id(x)].to("cuda", non_blocking=True)

    def order_of(self, total, stream):
        return stream

    def host(self, array):
        return array.cpu().numpy()

    def empty(self, stream):
        with self.torch.cuda.stream(self.torch.cuda.ExternalStream(stream)):
            return self.torch.empty(N, dtype=self.torch.int32, device="cuda").data_ptr()


class CuPy(Interface):
    def __init__(self, driver):
        super().__init__(driver)
        self.cupy = pytest.importorskip("cupy")
        self.made = {}

    def stream(self):
        made = self.cupy.cuda.Stream(non_blocking=True)
        self.made[made.ptr] = made
        return made.ptr

    def on(self, stream):
        return self.made[stream]

    def make(self, x, stream):
        with self.on(stream):
            return self.cupy.asarray(x)

    def order_of(self, total, stream):
        return stream

    def host(self, array):
        return array.get()

    def empty(self, stream):
        with interop.CuPy._stream(stream, 0):
            return self.cupy.empty(N, np.int32).data.ptr


class Numba(Interface):
    def __init__(self, driver):
        super().__init__(driver)
        self.cuda = pytest.importorskip("numba.cuda")

    def make(self, x, stream):
        return self.cuda.to_device(x, stream=self.cuda.external_stream(stream))

    def host(self, array):
        return array.copy_to_host()


EVERYWHERE, ON_GPU = [Interface, DeviceArray, StandIn], [Torch, CuPy, Numba]


@pytest.fixture(params=EVERYWHERE + [pytest.param(kind, marks=pytest.mark.gpu) for kind in ON_GPU])
def kind(request, order, driver, runtime):
    """A library, its memory settled."""
    if request.param in ON_GPU and runtime != "gpu":
        pytest.skip("needs a GPU")
    yield request.param(driver)
    interop.LIBRARIES.pop("pooled", None)
    interop._known.pop(Pooled, None)
    gc.collect()


def made_late(kind, driver, foreign, x, stream):
    """x as its library gives it away: not there yet, but queued on its stream. To make an array after it would wait."""
    source, late = foreign(x), kind.make(ZEROS, stream)
    driver.synchronize(0)
    driver.delay(stream)
    driver.copy(stream, kind.pointer(late), source.pointer, x.nbytes)
    return late


@pytest.mark.parametrize("first", [True, False], ids=["a", "b"])
def test_sum_comes_after_its_producers_write(kind, driver, foreign, first):
    stream, other, out = kind.stream(), foreign(B), foreign(ZEROS)
    late = made_late(kind, driver, foreign, A, stream)
    with kind.on(stream):
        vecadd.add(*((late, other) if first else (other, late)), out)
    assert_same_values(out.numpy(), A + B)


def test_sum_on_another_stream_comes_after_its_producers_write(kind, driver, foreign):
    stream, other, out = kind.stream(), foreign(B), foreign(ZEROS)
    late = made_late(kind, driver, foreign, A, stream)
    with kind.on(stream):
        vecadd.add(late, other, out, stream=kind.stream())
    assert_same_values(out.numpy(), A + B)


def test_sum_comes_after_the_writes_of_two_producers(kind, driver, foreign):
    stream, out, its_stream, source = kind.stream(), foreign(ZEROS), kind.stream(), foreign(B)
    other = foreign(ZEROS, stream=its_stream)
    late = made_late(kind, driver, foreign, A, stream)
    driver.delay(its_stream)
    driver.copy(its_stream, other.pointer, source.pointer, B.nbytes)
    with kind.on(stream):
        vecadd.add(late, other, out)
    assert_same_values(out.numpy(), A + B)


def test_sums_of_lists_come_after_their_producers_writes(kind, driver, foreign):
    stream, other, out = kind.stream(), foreign(B), [foreign(ZEROS), foreign(ZEROS)]
    late = made_late(kind, driver, foreign, A, stream)
    with kind.on(stream):
        vecadd.add_many([other, late], [late, late], out, stream=kind.stream())
    assert_same_values(out[0].numpy(), A + B)
    assert_same_values(out[1].numpy(), A + A)


def test_owner_may_overwrite_an_operand_at_once(kind, driver, foreign):
    stream, run_on, later = kind.stream(), kind.stream(), foreign(OTHER)
    x, other, out = kind.make(A, stream), foreign(B), foreign(ZEROS)
    driver.synchronize(0)
    driver.delay(run_on)
    with kind.on(stream):
        vecadd.add(x, other, out, stream=run_on)
    driver.copy(stream, kind.pointer(x), later.pointer, A.nbytes)
    assert_same_values(out.numpy(), A + B)


def test_out_is_written_after_its_owners_earlier_read(kind, driver, foreign):
    stream, run_on, target = kind.stream(), kind.stream(), foreign(ZEROS)
    x, out = foreign(A), kind.make(OTHER, stream)
    driver.synchronize(0)
    driver.delay(stream)
    driver.copy(stream, target.pointer, kind.pointer(out), A.nbytes)
    with kind.on(stream):
        vecadd.add(x, x, out, stream=run_on)
    assert_same_values(target.numpy(), OTHER)
    assert_same_values(kind.host(out), A + A)


def test_owner_of_out_may_read_it_at_once(kind, driver, foreign):
    stream, run_on, target = kind.stream(), kind.stream(), foreign(ZEROS)
    x, out = foreign(A), kind.make(ZEROS, stream)
    driver.synchronize(0)
    driver.delay(run_on)
    with kind.on(stream):
        vecadd.add(x, x, out, stream=run_on)
    driver.copy(stream, target.pointer, kind.pointer(out), A.nbytes)
    assert_same_values(target.numpy(), A + A)


def test_reader_of_a_new_sum_comes_after_it(kind, driver, foreign):
    stream, run_on, target = kind.stream(), kind.stream(), foreign(ZEROS)
    x = kind.make(A, stream)
    driver.synchronize(0)
    driver.delay(run_on)
    with kind.on(stream):
        total = vecadd.add(x, x, stream=run_on)
    driver.copy(kind.order_of(total, stream), target.pointer, kind.pointer(total), A.nbytes)
    assert_same_values(target.numpy(), A + A)


def test_operand_may_be_dropped_and_its_memory_used_at_once(kind, driver, foreign):
    stream, run_on, out = kind.stream(), kind.stream(), foreign(ZEROS)
    x = kind.make(A, stream)
    driver.synchronize(0)
    driver.delay(run_on)
    with kind.on(stream):
        vecadd.add(x, x, out, stream=run_on)
    del x
    again = kind.make(OTHER, stream)
    assert_same_values(out.numpy(), A + A)
    del again


@pytest.mark.parametrize(
    "kind", [StandIn, *(pytest.param(kind, marks=pytest.mark.gpu) for kind in (Torch, CuPy))], indirect=True
)
@pytest.mark.parametrize("many", [False, True], ids=["add", "add_many"])
def test_new_sum_is_allocated_by_its_library_for_the_stream_that_it_runs_on(kind, driver, many):
    """Given back, it is what the library's allocator gives next on that stream, which had nothing before."""
    stream, run_on = kind.stream(), driver.stream()
    x = kind.make(A, stream)
    with kind.on(stream):
        total = vecadd.add_many([x], [x], stream=run_on)[0] if many else vecadd.add(x, x, stream=run_on)
    pointer = kind.pointer(total)
    driver.synchronize(0)
    del total
    assert kind.empty(run_on) == pointer


def add(x, out, stream):
    vecadd.add(x, x, out, stream=stream)


def add_many(x, out, stream):
    vecadd.add_many([x], [x], [out], stream=stream)


def plan(x, out, stream):
    vecadd.plan(x, x, out, stream=stream)()


def plan_many(x, out, stream):
    vecadd.plan([x], [x], [out], stream=stream)()


@pytest.mark.parametrize("call", [add, add_many, plan, plan_many])
@pytest.mark.parametrize("kind", [StandIn, pytest.param(Torch, marks=pytest.mark.gpu)], indirect=True)
def test_memory_of_a_third_stream_is_not_used_again_before_the_sum(kind, driver, foreign, call):
    """Made on one stream, which does not wait for the sum, while another one is current: the allocator is told."""
    made_on, stream, run_on, out = kind.stream(), kind.stream(), kind.stream(), foreign(ZEROS)
    x = kind.make(A, made_on)
    driver.synchronize(0)
    driver.delay(run_on)
    with kind.on(stream):
        call(x, out, run_on)
    del x
    again = kind.make(OTHER, made_on)
    assert_same_values(out.numpy(), A + A)
    del again


def test_consumer_by_dlpack_comes_after_the_sum(order, driver, foreign):
    run_on, stream, x, target = driver.stream(), driver.stream(), foreign(A), foreign(ZEROS)
    driver.synchronize(0)
    driver.delay(run_on)
    total = vecadd.add(x, x, stream=run_on)
    capsule = total.__dlpack__(stream=stream)
    driver.copy(stream, target.pointer, total.__cuda_array_interface__["data"][0], A.nbytes)
    assert_same_values(target.numpy(), A + A)
    del capsule


def test_numpy_comes_after_the_sum_on_any_stream(order, driver, foreign):
    run_on, x = driver.stream(), foreign(A)
    driver.delay(run_on)
    total = vecadd.add(x, x, stream=run_on)
    assert_same_values(total.numpy(stream=driver.stream()), A + A)


def test_a_use_on_the_per_thread_stream_is_recorded_as_one_of_all_threads(driver, monkeypatch):
    """Its library looks at it when the memory goes, in whichever thread."""
    library, per_thread = Pool(driver), 2
    monkeypatch.setitem(interop.LIBRARIES, "pooled", library)
    library.current, other = driver.stream(), driver.stream()
    arrays = [Pooled(library, library.current) for _ in range(3)]
    for stream, recorded in ((per_thread, 0), (other, other), (library.current, None)):
        vecadd.add(*arrays, stream=stream)
        assert [array.recorded for array in arrays] == [[] if recorded is None else [recorded]] * 3
        for array in arrays:
            array.recorded.clear()
    interop._known.pop(Pooled)

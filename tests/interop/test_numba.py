"""Numba's device arrays: added where they are, in the order of their streams, the sum a Numba array."""

import gc

import numpy as np
import pytest
from arrays import NUMPY_DTYPES, assert_same_values, numpys_sum, values

import vecadd

cuda = pytest.importorskip("numba.cuda")
pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def gpu(runtime):
    if runtime != "gpu" or not cuda.is_available():
        pytest.skip("needs a GPU and a Numba that can use it")


@pytest.mark.parametrize("dtype", NUMPY_DTYPES, ids=str)
@pytest.mark.parametrize("n", [1, 17, 100_003])
def test_sum_is_numpys_and_a_numba_array(n, dtype):
    a, b = values(dtype, n, 1), values(dtype, n, 2)
    got = vecadd.add(cuda.to_device(a), cuda.to_device(b))
    assert cuda.is_cuda_array(got)
    assert type(got) is type(cuda.to_device(a))
    assert_same_values(got.copy_to_host(), numpys_sum(a, b))


def test_sums_with_a_number_first_and_of_lists_are_numba_arrays():
    a = np.arange(1000.0)
    x = cuda.to_device(a)
    got = [vecadd.add(1, x), vecadd.add(x, 1), *vecadd.add_many([x, 1, x], [x, x, 1])]
    for total, want in zip(got, [a + 1, a + 1, a + a, a + 1, a + 1], strict=True):
        assert type(total) is type(x)
        assert_same_values(total.copy_to_host(), want)


def test_out_and_in_place():
    a = np.arange(1000.0)
    x, out = cuda.to_device(a), cuda.device_array(1000)
    assert vecadd.add(x, x, out) is out
    assert vecadd.add(x, x, x) is x
    assert_same_values(out.copy_to_host(), a + a)
    assert_same_values(x.copy_to_host(), a + a)


def test_sum_comes_after_what_is_queued_on_the_arrays_stream():
    a = np.arange(1_000_000.0)
    x = cuda.to_device(a)
    for _ in range(5):
        stream = cuda.stream()
        y = cuda.device_array(a.shape, a.dtype, stream=stream)
        for _ in range(50):
            y.copy_to_device(x, stream=stream)
        assert_same_values(vecadd.add(y, y).copy_to_host(), a + a)


@pytest.mark.parametrize(
    "spelled", [lambda s: s, lambda s: int(getattr(s.handle, "value", s.handle) or 0)], ids=["object", "handle"]
)
def test_stream_may_be_numbas(spelled):
    a, stream = np.arange(1000.0), cuda.stream()
    x = cuda.to_device(a)
    got = vecadd.add(x, x, stream=spelled(stream))
    stream.synchronize()
    assert_same_values(got.copy_to_host(), a + a)


def test_device_arrays_and_numba_arrays_mix():
    a = np.arange(100.0)
    x, y = vecadd.to_device(a), cuda.to_device(a)
    assert type(vecadd.add(x, y)) is vecadd.DeviceArray
    assert type(vecadd.add(y, x)) is type(y)
    assert_same_values(vecadd.add(y, x).copy_to_host(), a + a)


def test_numba_reads_device_arrays():
    a = np.arange(100.0)
    assert_same_values(cuda.as_cuda_array(vecadd.to_device(a)).copy_to_host(), a)


def test_an_adopted_sum_outlives_the_stream_that_its_operand_names():
    """Numba destroys a stream some time after its last object; the caller never named it."""
    n = 10_000_000
    for k in range(5):
        stream, a = cuda.stream(), np.full(n, k)
        x = cuda.to_device(a, stream=stream)
        total = vecadd.add(x, x)
        again = vecadd.add(total, total)
        target = cuda.device_array(n, a.dtype)
        for _ in range(50):
            target.copy_to_device(total, stream=stream)
        del x, stream
        gc.collect()
        cuda.current_context().deallocations.clear()
        del total
        after = vecadd.to_device(np.full(n, -1))  # may take the memory
        assert (target.copy_to_host() == 2 * k).all()
        assert (again.copy_to_host() == 4 * k).all()
        del again, after

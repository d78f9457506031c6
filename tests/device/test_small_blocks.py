"""Small arrays of the legacy default stream are in memory that earlier ones left, so that a + b makes no CUDA call for
its memory; all else comes from the device's pool."""

import numpy as np
import pytest
from arrays import assert_same_values
from foreign import ForeignStream

import vecadd
from vecadd import _core

SMALL = 64 << 10  # bytes of the largest block that is kept
KEPT = 16  # blocks

ASKED = ("cudaMallocFromPoolAsync", "cudaFreeAsync")


def array(nbytes, fill=1):
    return np.full(nbytes, fill, np.uint8)


def pool_calls(double):
    return sum(double.calls(call) for call in ASKED)


@pytest.fixture(autouse=True)
def nothing_kept(device):
    vecadd.release()
    yield
    vecadd.release()


@pytest.mark.parametrize("nbytes", [1, 4096, SMALL])
def test_sums_after_the_first_ask_cuda_for_no_memory(nbytes, double):
    a = vecadd.to_device(array(nbytes))
    a + a
    double.reset(0)
    for _ in range(5):
        assert_same_values((a + a).numpy(), array(nbytes, 2))
    assert pool_calls(double) == 0


def test_larger_arrays_come_from_the_pool(double):
    a = vecadd.to_device(array(SMALL + 1))
    a + a
    double.reset(0)
    a + a
    assert [double.calls(call) for call in ASKED] == [1, 1]


def test_blocks_are_kept_for_their_own_size(double):
    a, b = vecadd.to_device(array(1000)), vecadd.to_device(array(1001))
    a + a
    double.reset(0)
    b + b
    assert double.calls("cudaMallocFromPoolAsync") == 1


def test_arrays_of_other_streams_come_from_the_pool(driver, double):
    a, stream = vecadd.to_device(array(1000)), ForeignStream(driver.stream())
    vecadd.add(a, a, stream=stream)
    double.reset(0)
    vecadd.add(a, a, stream=stream)
    assert [double.calls(call) for call in ASKED] == [1, 1]


def test_no_more_than_some_are_kept(double):
    arrays = [vecadd.to_device(array(1000)) for _ in range(KEPT + 5)]
    double.reset(0)
    arrays.clear()
    assert double.calls("cudaFreeAsync") == 5


def test_kept_blocks_have_no_owner_and_are_released(double):
    before, live = _core.memory_counts(), double.live()
    a = vecadd.to_device(array(1000))
    del a
    assert _core.memory_counts() == before
    assert double.live().device_blocks == live.device_blocks + 1
    vecadd.release()
    assert double.live() == live


def test_a_release_has_the_device_give_its_pool_back(double):
    a = vecadd.to_device(array(SMALL + 1))
    del a
    before = double.calls("cudaMemPoolTrimTo")
    vecadd.release()
    assert double.calls("cudaMemPoolTrimTo") > before


def test_kept_blocks_whose_stream_a_capture_keeps_busy_are_released_after_it(double):
    """Beside the capture of a blocking stream the legacy default stream cannot be used."""
    live = double.live()
    a = vecadd.to_device(array(1000))
    del a
    stream = double.stream_create(0, nonblocking=False)
    double.capture_begin(stream)
    vecadd.release()
    assert double.live().device_blocks == live.device_blocks + 1
    double.graph_destroy(double.capture_end(stream))
    double.stream_destroy(stream)
    vecadd.release()
    assert double.live().device_blocks == live.device_blocks


def test_a_kept_block_that_is_used_again_is_counted_again(device):
    before = _core.memory_counts()
    for _ in range(3):
        a = vecadd.to_device(array(1000))
        now = _core.memory_counts()
        assert now["device_bytes"] == before["device_bytes"] + 1000
        assert now["device_blocks"] == before["device_blocks"] + 1
        del a
        assert _core.memory_counts() == before


def test_a_block_with_another_holder_is_not_reused(device):
    a = vecadd.to_device(array(1000, 7))
    capsule = a.__dlpack__()
    del a
    others = [vecadd.to_device(array(1000, 9)) for _ in range(3)]
    del others, capsule

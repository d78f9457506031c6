"""Arrays of more than 2^31 elements: every index is 64 bits wide."""

import ctypes
import mmap
import os

import numpy as np
import pytest

import vecadd
from vecadd import _core, _machine

N = 2**31 + 5
PERIOD = 1009 * mmap.PAGESIZE  # a prime number of pages, so that no block of a power of two is another's copy

needs_memory = pytest.mark.skipif(_machine.memory_available() < 3 * N + 2**30, reason="needs 7.5 GB of memory")

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.mmap.restype = ctypes.c_void_p
LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
MAP_FIXED = 0x10


def filled(seed):
    """N bytes that repeat, in memory that does too: one file's pages again and again. Gigabytes of memory of its own
    would take a virtual machine ten seconds to find."""
    file = os.memfd_create("pattern")
    os.write(file, np.random.default_rng(seed).integers(-128, 128, PERIOD, np.int8))
    x = np.frombuffer(mmap.mmap(-1, N, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS), np.int8)
    for start in range(0, N, PERIOD):
        address, nbytes = x.ctypes.data + start, min(PERIOD, N - start)
        assert LIBC.mmap(address, nbytes, mmap.PROT_READ, mmap.MAP_SHARED | MAP_FIXED, file, 0) == address
    os.close(file)
    return x


def assert_sum(a, b, out):
    for start in range(0, N, PERIOD):
        part = slice(start, start + PERIOD)
        assert np.array_equal(out[part], a[part] + b[part]), f"in the block from element {start} on"


@pytest.mark.slow
@needs_memory
def test_host_sum_of_more_than_2_to_the_31_elements():
    a, b = filled(1), filled(2)
    out = np.zeros(N, np.int8)
    assert vecadd.add(a, b, out) is out
    assert_sum(a, b, out)


@pytest.mark.slow
@pytest.mark.gpu
@needs_memory
def test_device_sum_of_more_than_2_to_the_31_elements(runtime, device):
    if runtime != "gpu":
        pytest.skip("7 GB and 2^31 threads are too much for the double")
    a, b = filled(1), filled(2)
    assert_sum(a, b, vecadd.add(vecadd.to_device(a), vecadd.to_device(b)).numpy())


@pytest.mark.slow
@pytest.mark.gpu
@needs_memory
def test_transfer_of_more_than_2_to_the_31_elements(runtime, device):
    if runtime != "gpu":
        pytest.skip("7 GB are too much for the double")
    a, b = filled(1), filled(2)
    out = np.zeros(N, np.int8)
    vecadd.add(a, b, out, device="cuda")
    assert_sum(a, b, out)


@pytest.mark.slow
@pytest.mark.gpu
def test_device_sum_of_views_with_more_than_2_to_the_31_elements_in_each_row(runtime, device):
    if runtime != "gpu":
        pytest.skip("17 GB and 2^33 threads are too much for the double")
    shape, most = (2, 65537, 65536), 18 * 10**9
    if _core.gpu_facts()[device]["memory"] < most:
        pytest.skip(f"needs {most / 1e9:.0f} GB of memory on the GPU")
    row = np.resize(np.arange(251, dtype=np.uint8) * 7, shape[:2])
    column = np.resize(np.arange(241, dtype=np.uint8) * 11, shape[2:])
    a = vecadd.add(vecadd.to_device(row[:, :, None]), vecadd.to_device(column))
    total = vecadd.add(a[:, :-1], a[:, 1:])
    assert total.shape == (2, 65536, 65536)
    step = 1024  # rows: 134 MB of both halves come to the host at a time
    for start in range(0, 65536, step):
        rows = slice(start, start + step)
        expected = (row[:, :-1] + row[:, 1:])[:, rows, None] + (column + column)
        assert np.array_equal(total[:, rows].numpy(), expected), f"in the rows from {start} on"

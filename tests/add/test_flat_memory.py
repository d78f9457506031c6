"""A long-running process: what Python, malloc and the device have given out is after many calls what it was before.

VECADD_TEST_CALLS says how many, 20000 without it. A leak of the smallest object by one of the calls is seen: Python's
blocks and malloc's bytes are counted, where the resident memory has room for a leak in pages that are there.
"""

import os

import pytest
from builds import UNDER_ASAN

pytestmark = pytest.mark.no_native

if UNDER_ASAN:
    pytest.skip("AddressSanitizer keeps freed memory for a while", allow_module_level=True)

CALLS = int(os.environ.get("VECADD_TEST_CALLS", "20000"))

LOOP = f"""
import ctypes, gc, os, sys
import numpy as np, vecadd
from vecadd import _core
n = 1000
a, out = np.arange(n, dtype=np.float32), np.empty(n, np.float32)
{{prepare}}

class MallocInfo(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in
                "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()]

libc = ctypes.CDLL(None)
libc.mallinfo2.restype = MallocInfo
libc.malloc.restype = ctypes.c_void_p

def resident():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

def in_use():
    gc.collect()
    info = libc.mallinfo2()
    return resident(), info.uordblks + info.hblkhd, sys.getallocatedblocks()

def refused():
    try:
        vecadd.add(a, a[:-1])
    except ValueError:
        pass

calls = [{{calls}}]
def work(rounds):
    for i in range(rounds):
        for call in calls:
            call()
    {{settle}}

rounds = {CALLS} // len(calls)
work(rounds // 10 + 1)
counts = _core.memory_counts()
for _ in range(3):  # a leak grows each time; CUDA's driver takes 32 KiB of malloc's once in a while
    before = in_use()
    work(rounds)
    resident_bytes, malloc_bytes, blocks = (now - then for now, then in zip(in_use(), before))
    print(f"after {CALLS} calls {{{{resident_bytes}}}} resident bytes more, {{{{malloc_bytes}}}} of malloc's, "
          f"{{{{blocks}}}} Python blocks")
    if resident_bytes < 2**20 and malloc_bytes < 8 * rounds and blocks < rounds // 2:
        break
else:
    raise AssertionError("memory grows with the calls")
assert _core.memory_counts() == counts, (counts, _core.memory_counts())
"""

ON_HOST = """
    lambda: vecadd.add(a, a),
    lambda: vecadd.add(a, a, out),
    lambda: vecadd.add(a, 1),
    lambda: vecadd.add(a, a, dtype="f8"),
    lambda: vecadd.add(a[:-1], a[1:], out[:-1]),
    lambda: vecadd.add(matrix, row),
    lambda: vecadd.add(matrix, 1.5),
    lambda: vecadd.add_many([a, a], [a, 1]),
    refused,
"""
ON_DEVICE = """
    lambda: x + x,
    lambda: vecadd.add(x, x, y),
    lambda: vecadd.add(x, 1.0),
    lambda: plan(),
    lambda: plan_many(),
    lambda: x[::2] + 1.0,
    lambda: vecadd.add_many([x, y], [y, x]),
    lambda: vecadd.add(lent, x),
    lambda: x.__dlpack__(),
    refused,
"""
PREPARE_DEVICE = """
class Lent:
    def __dlpack__(self, **keywords): return x.__dlpack__(**keywords)
    def __dlpack_device__(self): return x.__dlpack_device__()
x, y, lent = vecadd.to_device(a), vecadd.to_device(a), Lent()
plan, plan_many = vecadd.plan(x, x, y), vecadd.plan([x, x], [x, x], [y, vecadd.to_device(a)])
"""
OF_A_LIBRARY = """
    lambda: vecadd.add(x, y),
    lambda: vecadd.add(x, y, out=z),
    lambda: vecadd.add(x, 1.0),
    lambda: vecadd.add(x[::2], y[::2]),
    lambda: vecadd.add_many([x, y], [y, x]),
    lambda: vecadd.add(x, y, stream=stream),
    plan,
    refused,
"""
PREPARE = {
    "torch": "import torch; x, y, z = (torch.arange(n, dtype=torch.float32, device='cuda') for _ in range(3)); "
    "stream = torch.cuda.Stream(); plan = vecadd.plan(x, y, z)",
    "cupy": "import cupy; x, y, z = (cupy.arange(n, dtype='f4') for _ in range(3)); "
    "stream = cupy.cuda.Stream(non_blocking=True); plan = vecadd.plan(x, y, z)",
}
SETTLE = {"torch": "torch.cuda.synchronize()", "cupy": "cupy.cuda.Device().synchronize()"}


PREPARE_HOST = "matrix, row = np.ones((100, 800), 'f4'), np.ones(800, 'f4')"


def test_additions_on_the_host(child):
    print(child(LOOP.format(prepare=PREPARE_HOST, calls=ON_HOST, settle="pass")).stdout)


@pytest.mark.parametrize("leak", ["leaked.append(object())", "libc.malloc(1)"], ids=["an object", "a byte of malloc's"])
def test_a_leak_of_one_object_by_one_of_the_calls_is_seen(child, leak):
    calls = ON_HOST + f"    lambda: {leak},\n"
    result = child(LOOP.format(prepare=PREPARE_HOST + "\nleaked = []", calls=calls, settle="pass"), check=False)
    assert result.returncode != 0
    assert "memory grows with the calls" in result.stderr


def test_additions_on_the_device(device, child):
    print(child(LOOP.format(prepare=PREPARE_DEVICE, calls=ON_DEVICE, settle="y.numpy()")).stdout)


@pytest.mark.gpu
@pytest.mark.parametrize("library", PREPARE)
def test_additions_of_a_librarys_arrays(runtime, child, library):
    pytest.importorskip(library)
    if runtime != "gpu":
        pytest.skip("needs a GPU")
    print(child(LOOP.format(prepare=PREPARE[library], calls=OF_A_LIBRARY, settle=SETTLE[library])).stdout)

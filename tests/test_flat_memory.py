"""A long-running process: resident and device memory are after many calls what they were after the first thousands.

VECADD_TEST_CALLS says how many, 100000 without it.
"""

import os

import pytest

CALLS = int(os.environ.get("VECADD_TEST_CALLS", "100000"))

LOOP = f"""
import gc, os
import numpy as np, vecadd
from vecadd import _core
n = 1000
a, out = np.arange(n, dtype=np.float32), np.empty(n, np.float32)
{{prepare}}

def resident():
    gc.collect()
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

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
before, held = resident(), _core.memory_counts()
work(rounds)
grown = resident() - before
print(grown, "bytes of resident memory more after {CALLS} calls")
assert grown < 2**20, f"{{{{grown}}}} bytes more than before {CALLS} calls"
assert _core.memory_counts() == held, (held, _core.memory_counts())
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


@pytest.mark.slow
def test_additions_on_the_host(child):
    prepare = "matrix, row = np.ones((100, 800), 'f4'), np.ones(800, 'f4')"
    print(child(LOOP.format(prepare=prepare, calls=ON_HOST, settle="pass")).stdout)


@pytest.mark.slow
def test_additions_on_the_device(device, child):
    print(child(LOOP.format(prepare=PREPARE_DEVICE, calls=ON_DEVICE, settle="y.numpy()")).stdout)


@pytest.mark.slow
@pytest.mark.gpu
@pytest.mark.parametrize("library", PREPARE)
def test_additions_of_a_librarys_arrays(runtime, child, library):
    pytest.importorskip(library)
    if runtime != "gpu":
        pytest.skip("needs a GPU")
    print(child(LOOP.format(prepare=PREPARE[library], calls=OF_A_LIBRARY, settle=SETTLE[library])).stdout)

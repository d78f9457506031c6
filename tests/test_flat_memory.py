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
assert grown < 2**20, f"{{{{grown}}}} bytes more than before {CALLS} calls"
assert _core.memory_counts() == held, (held, _core.memory_counts())
"""

ON_HOST = "lambda: vecadd.add(a, a), lambda: vecadd.add(a, a, out), lambda: vecadd.add(a, 1), refused"
ON_DEVICE = (
    "lambda: x + x, lambda: vecadd.add(x, x, y), lambda: vecadd.add(x, 1.0), lambda: plan(), lambda: x[::2] + 1.0, "
    "lambda: vecadd.add_many([x, y], [y, x]), lambda: x.__dlpack__(), refused"
)


@pytest.mark.slow
def test_additions_on_the_host(child):
    child(LOOP.format(prepare="", calls=ON_HOST, settle="pass"))


@pytest.mark.slow
def test_additions_on_the_device(device, child):
    prepare = "x, y = vecadd.to_device(a), vecadd.to_device(a); plan = vecadd.plan(x, x, y)"
    child(LOOP.format(prepare=prepare, calls=ON_DEVICE, settle="y.numpy()"))

"""What fails in Python's memory: each allocation of each call fails once, and is a MemoryError that leaves nothing.

CPython's own test hook lets the n-th allocation of its allocators fail; those in C are made to fail in tests/c.
"""

import pytest

FAILING = """
import gc, sys
import _testcapi
import numpy as np, vecadd
from vecadd import _core

n = 5000
a, out = np.arange(n, dtype="f4"), np.empty(n, "f4")
matrix, row = np.ones((300, 1100), "f4"), np.ones(1100, "f8")
{prepare}
calls = {{{calls}}}
ATTEMPTS = 12  # that go well, one after the other: there is no allocation left

def told(call):
    "How many attempts ended in an exception. Nothing else may be left of them."
    failures = nth = well = 0
    while well < ATTEMPTS:
        nth += 1
        error = None
        _testcapi.set_nomemory(nth, nth + 1)
        try:
            call()
        except BaseException as raised:
            error = raised
        finally:
            _testcapi.remove_mem_hooks()
        assert error is None or isinstance(error, MemoryError), (nth, error)
        well = 0 if error else well + 1
        failures += error is not None
        call()
    return failures

def settled():
    gc.collect()
    return _core.memory_counts(), sys.getrefcount(a), sys.getrefcount(out)

for name, call in calls.items():
    call(), call()
    before = settled()
    failures = told(call)
    assert settled() == before, (name, before, settled())
    print(name, failures)
"""

ON_HOST = """
    "new sum": lambda: vecadd.add(a, a),
    "large sum": lambda: vecadd.add(matrix, matrix),
    "rows": lambda: vecadd.add(matrix, row),
    "number": lambda: vecadd.add(matrix, 1.5),
    "NumPy scalar": lambda: vecadd.add(matrix, np.float64(1)),
    "out": lambda: vecadd.add(a, a, out=out),
    "many": lambda: vecadd.add_many([a, a], [a, a]),
    "many into out": lambda: vecadd.add_many([a, a], [a, a], [out, np.empty_like(a)]),
    "many and others": lambda: vecadd.add_many([a, a], [a, 1]),
    "explain": lambda: _core.explain_route(matrix, row),
    "statistics": vecadd.memory_stats,
"""

PREPARE_DEVICE = """
class ByDLPack:
    def __init__(self, x): self.x = x
    def __dlpack__(self, **keywords): return self.x.__dlpack__(**keywords)
    def __dlpack_device__(self): return self.x.__dlpack_device__()

class ByInterface:
    def __init__(self, x): self.__cuda_array_interface__ = x.__cuda_array_interface__

x, y, i = vecadd.to_device(a), vecadd.to_device(a), vecadd.to_device(a.astype("i4"))
lent, described = ByDLPack(x), ByInterface(x)
plan, plan_many = vecadd.plan(x, x, y), vecadd.plan([x], [x], [y])
"""

ON_DEVICE = """
    "new sum": lambda: vecadd.add(x, x),
    "out": lambda: vecadd.add(x, x, out=y),
    "in place": lambda: y.__iadd__(x),
    "number": lambda: vecadd.add(x, 1.5),
    "two dtypes": lambda: vecadd.add(x, i),
    "views": lambda: x[::2] + x[1::2],
    "reshape": lambda: x.reshape(50, -1)[3:, ::-1].copy(),
    "plan": lambda: vecadd.plan(x, x, y)(),
    "planned": plan,
    "plan of lists": lambda: vecadd.plan([x], [x], [y])(),
    "planned lists": plan_many,
    "many": lambda: vecadd.add_many([x, y], [y, x]),
    "stream": lambda: vecadd.add(x, x, stream=2),
    "DLPack": lambda: vecadd.add(lent, lent),
    "DLPack to out": lambda: vecadd.add(lent, x, out=lent),
    "interface": lambda: vecadd.add(described, described),
    "export": lambda: (x.__dlpack__(), x.__dlpack__(max_version=(1, 0)), x.__cuda_array_interface__),
    "to the device": lambda: vecadd.to_device(a),
    "to the host": lambda: x.numpy(),
    "through the GPU": lambda: vecadd.add(a, a, device="cuda"),
    "pinned": lambda: vecadd.empty_pinned(10, "f4"),
    "pickle": lambda: x.__reduce__(),
    "explain": lambda: _core.explain_route(x, i),
    "facts": _core.gpu_facts,
    "rung": lambda: _core.run_rung("naive", x, x, y),
"""


def allocations(child, prepare, calls):
    """By call, how many failing allocations were reported."""
    pytest.importorskip("_testcapi")
    output = child(FAILING.format(prepare=prepare, calls=calls)).stdout
    return {line.rpartition(" ")[0]: int(line.rpartition(" ")[2]) for line in output.splitlines()}


def test_every_allocation_of_a_call_on_the_host_may_fail_once(child):
    told = allocations(child, "", ON_HOST)
    assert told["rows"] >= 1
    assert told["many"] >= 3
    assert told["explain"] >= 3


@pytest.mark.laboratory
def test_every_allocation_of_a_call_on_the_device_may_fail_once(device, child):
    told = allocations(child, PREPARE_DEVICE, ON_DEVICE)
    assert told["plan of lists"] >= 3
    assert told["DLPack"] >= 3
    assert told["interface"] >= 3
    assert told["to the device"] >= 1

"""Sums of medium size are the pool's while a program keeps them, and NumPy's else."""

import sys
from pathlib import Path

import pytest
from builds import UNDER_ASAN

THP = Path("/sys/kernel/mm/transparent_hugepage/enabled")

pytestmark = pytest.mark.skipif(
    not THP.exists() or "[never]" in THP.read_text(), reason="the system has no huge pages that blocks are cut from"
)

address_again = pytest.mark.skipif(UNDER_ASAN, reason="ASan's heap gives no address again, so that all look kept")

BEGIN = """
import gc, sys
import numpy as np, vecadd

def pair(nbytes):
    n = nbytes // 4
    return np.arange(n, dtype=np.float32), np.full(n, 0.5, np.float32)

def used():
    return vecadd.memory_stats()["output_used_blocks"]

def keep(a, b, megabytes):
    return [vecadd.add(a, b) for _ in range((megabytes << 20) // a.nbytes)]

"""


def said(child, code, **environment):
    return child(BEGIN + code, **({"VECADD_POOL_BYTES": str(1 << 30)} | environment)).stdout.split()


@pytest.mark.parametrize("kib", [16, 20, 64, 100, 256, 1000])
def test_sums_that_are_kept_are_the_pools_and_right(child, kib):
    code = f"""
a, b = pair({kib} << 10)
sums = keep(a, b, 40)
in_heap = len(sums) - used()
print(used() > 0, in_heap * a.nbytes < 5 << 20, len({{x.ctypes.data for x in sums}}) == len(sums))
print(all(np.array_equal(x, a + b) for x in sums), all(x.flags.owndata for x in sums))
del sums
print(used(), vecadd.memory_stats()["output_kept_blocks"] > 0)
vecadd.release()
print(vecadd.memory_stats()["output_kept_bytes"])
"""
    assert said(child, code) == ["True"] * 5 + ["0", "True", "0"]


@address_again
@pytest.mark.parametrize("alive", [1, 2, 12, 100])  # those of more than 3 MiB look kept at first
def test_sums_that_take_turns_are_numpys(child, alive):
    code = f"""
a, b = pair(16 << 10)

def taken(add):
    turns, addresses, most = [None] * {alive}, set(), 0
    for i in range(4000):
        turns[i % {alive}] = add(a, b)
        addresses.add(turns[i % {alive}].ctypes.data)
        most = max(most, used())
    return most, len(addresses)

print(taken(vecadd.add)[0], taken(np.add)[1])
"""
    most, addresses = map(int, said(child, code))
    if addresses > 1000:
        pytest.skip(f"NumPy's sums have {addresses} addresses here: all look kept")
    assert most == 0


@pytest.mark.parametrize("alive", [100, 400, 1000])
def test_large_sets_that_take_turns_are_numpys_in_the_end(child, alive):
    code = f"""
a, b = pair(64 << 10)
turns = [None] * {alive}
for i in range(12000):
    turns[i % {alive}] = vecadd.add(a, b)
print(used())
"""
    assert said(child, code) == ["0"]


@address_again
def test_a_program_that_keeps_no_more_sums_has_numpys_again(child):
    code = """
a, b = pair(64 << 10)
sums = keep(a, b, 20)
in_use = used()
for _ in range(400):
    x = vecadd.add(a, b)
print(in_use > 0, used() - in_use, np.array_equal(x, a + b), all(np.array_equal(x, a + b) for x in sums))
more = keep(a, b, 20)
print(used() > in_use)
"""
    assert said(child, code) == ["True", "0", "True", "True", "True"]


def test_sums_below_16_kib_stay_numpys(child):
    assert said(child, "sums = keep(*pair(16 * 1024 - 4), 40)\nprint(used())") == ["0"]


def test_a_pool_that_may_keep_little_is_for_large_sums_alone(child):
    assert said(child, "sums = keep(*pair(64 << 10), 40)\nprint(used())", VECADD_POOL_BYTES="33554431") == ["0"]


def test_many_and_strided_sums_are_kept_there_too(child):
    code = """
a, b = pair(64 << 10)
sums = keep(a, b, 20)
in_use = used()
more = vecadd.add_many([a] * 8, [b] * 8)
print(used() - in_use, all(np.array_equal(x, a + b) for x in more))
x, y = np.ones((512, 256), np.float32), np.ones(256, np.float32)
rows = vecadd.add(x, y)
print(used() - in_use, bool((rows == 2).all()))
"""
    assert said(child, code) == ["8", "True", "9", "True"]


# What a finalizer may do in the middle of a call. Before Python 3.12 a context variable that is set while another one
# is being set ends the process.
FINALIZERS = {
    "resizes": "x.resize(16, refcheck=False)",
    "gives another shape": "x.resize((x.size // 4, 4), refcheck=False)\n        "
    "kept.extend(np.broadcast_to(np.float32(0), 1 << 60) for _ in range(4))",
    "sets a context variable": "with np.errstate(all='ignore'): pass",
    "adds": "kept.append(vecadd.add(a, b))",
}


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="the garbage collector runs only between two instructions")
@pytest.mark.parametrize("finalizer", FINALIZERS.values(), ids=FINALIZERS)
def test_no_finalizer_runs_while_a_sum_is_made(child, finalizer):
    """Before Python 3.12 the garbage collector runs where NumPy is told of the pool's memory, unless it is kept from
    it. At each threshold another allocation of the call is the one that collects."""
    code = f"""
a, b = pair(64 << 10)
sums, kept, during = keep(a, b, 20), [], 0

class Finalized:
    def __init__(self): self.itself = self
    def __del__(self):
        global during
        during += adding
        {finalizer}

gc.disable()
adding = False
add = vecadd.add
for threshold in range(1, 200):
    x = np.ones(a.size, np.float32)
    Finalized()
    gc.set_threshold(threshold)
    gc.enable()
    adding = True
    total = add(x, b)
    adding = False
    gc.disable()
    assert total.shape == b.shape and (total == b + 1).all()
    gc.set_threshold(700)
    gc.collect()
print(during)
"""
    assert said(child, code) == ["0"]


def test_the_collector_is_left_as_it_was(child):
    code = """
a, b = pair(64 << 10)
for set in (gc.disable, gc.enable):
    set()
    sums = keep(a, b, 20)
    print(gc.isenabled(), used() > 0)
"""
    assert said(child, code) == ["False", "True", "True", "True"]


def test_memory_is_given_back_while_single_sums_stay(child):
    code = """
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096

a, b = pair(64 << 10)
sums = keep(a, b, 4)
before = resident()
sums = keep(a, b, 128)
assert resident() - before > 100 << 20
sums = sums[::64]
vecadd.release()
print(resident() - before < 20 << 20, all(np.array_equal(x, a + b) for x in sums))
"""
    assert said(child, code) == ["True", "True"]

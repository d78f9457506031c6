"""Contexts: work on one GPU makes none on another, and what was current in a thread is current again."""

import contextlib
import itertools

import numpy as np
import pytest
from arrays import assert_same_values

import vecadd

A = np.arange(1000, dtype=np.float32)

# In a process that does not use its first GPU: each line works on the second one.
ON_THE_SECOND = """
import threading
import numpy as np, vecadd, foreign
from vecadd import _core

driver = foreign.open_driver({on_double})
a, large = np.arange(1000, dtype=np.float32), np.ones(9_000_000, np.float32)

def is_sum(got, want=a + a):
    assert np.array_equal(got, want)

def in_another_thread(call):
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()

x = vecadd.to_device(a, 1)
lent, out = foreign.Lent(x), vecadd.to_device(a, 1)
for line in {lines}:
    exec(line)
    assert driver.has_context(1)
    assert not driver.has_context(0), line
vecadd.add(a, a, device="cuda:0")  # and the thread's device is still the first one
assert vecadd.to_device(a).device == "cuda:0" and driver.has_context(0)
"""

LINES = [
    "pass",
    "is_sum((x + x).numpy())",
    "is_sum(vecadd.add(x, x, out).numpy())",
    "is_sum((x + 1.0).numpy(), a + 1)",
    "is_sum((x[::2] + x[1::2]).numpy(), a[::2] + a[1::2])",
    "is_sum((x + x).copy().numpy(stream=2))",
    "is_sum(vecadd.add(x, x, stream=2).numpy())",
    "is_sum(vecadd.add_many([x, x], [x, x])[1].numpy())",
    "plan = vecadd.plan(x, x, out); plan(); plan(); del plan; is_sum(out.numpy())",
    "in_another_thread(lambda: is_sum(vecadd.add(lent, x, stream=2).numpy()))",
    "in_another_thread(lambda: is_sum(vecadd.add(lent, vecadd.add(x, 0, stream=2)).numpy()))",
    "is_sum(vecadd.add(lent, lent).numpy())",
    "del out; y = x + x; del y",
    "vecadd.explain(x, x)",
    "is_sum(vecadd.add(a, a, device='cuda:1'))",
    "pinned = [vecadd.empty_pinned(a.shape, 'f4') for _ in range(3)]; pinned[0][:] = pinned[1][:] = a",
    "is_sum(vecadd.add(*pinned, device='cuda:1'))",
    "pinned.clear()",
    "is_sum(vecadd.add(large, large, large.copy()), large + large)",
    "vecadd.explain(large, large)",
    "vecadd.info(); vecadd.memory_stats(); _core.gpu_facts()",
    "_core.device_launch_configs(1); _core.device_memory(1)",
    "_core.rung_facts('float4', 'float32', 1000, device=1)",
    "is_sum(vecadd.ladder.run('float4', x, x).numpy())",
    "is_sum(vecadd.ladder.run('graph', x, x).numpy())",
    "_core.raw_launches(x, x, vecadd.to_device(a, 1), calls=3)",
    "_core.pattern_write(x, 'address', 0)",
    "_core.probe('rates', 1, 1 << 16, 1); _core.probe('link', 1, 1 << 16, 1)",
    "vecadd.release()",
    "del lent, x; vecadd.release()",
]


@pytest.mark.laboratory
def test_work_on_the_second_gpu_makes_no_context_on_the_first(second_device, runtime, child):
    child(ON_THE_SECOND.format(on_double=runtime == "double", lines=LINES))


def test_another_librarys_context_is_current_again(second_device, driver):
    """After work on another GPU, whose context takes its place meanwhile."""
    with driver.another_context() as context:
        x = vecadd.to_device(A, second_device)
        for _ in range(2):
            assert_same_values(vecadd.add(x, x).numpy(), A + A)
            assert driver.current_context() == context
        with pytest.raises(ValueError, match="cuda:1"):
            vecadd.add(x, vecadd.to_device(A, 0))
        assert driver.current_context() == context


CALLS = ["cuCtxSetCurrent", "cuCtxGetCurrent", "cudaGetDevice", "cudaMallocFromPoolAsync", "cudaLaunchKernelExC",
         "cudaEventRecord", "cudaStreamWaitEvent", "cudaMemcpyAsync", "cudaStreamSynchronize",
         "cudaEventCreateWithFlags"]  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
def test_what_was_current_is_so_again_after_each_call_that_fails(second_device, double, driver, call):
    """A cuCtxSetCurrent that fails may have changed what is current, or not."""
    x, stream = vecadd.to_device(A, second_device), driver.stream(second_device)
    with driver.another_context() as context:
        for seed, nth in itertools.product(range(4), range(1, 8)):
            double.reset(seed)
            double.fail(call, nth)
            with contextlib.suppress(MemoryError, RuntimeError):
                assert_same_values(vecadd.add(x, x, stream=stream).numpy(), A + A)
                vecadd.to_device(A, second_device)
            assert driver.current_context() == context, (seed, nth)


def add_on_two_streams(driver, foreign):
    x, y = foreign(A, stream=driver.stream()), foreign(A, stream=driver.stream())
    out = foreign(np.zeros_like(A), stream=driver.stream())
    vecadd.add(x, y, out)
    assert_same_values(out.numpy(), A + A)


def test_additions_go_on_after_a_context_that_has_ended(driver, foreign):
    """With it end its events and streams, which vecadd must not use in another one."""
    add_on_two_streams(driver, foreign)
    for _ in range(3):
        with driver.another_context():
            add_on_two_streams(driver, foreign)
        add_on_two_streams(driver, foreign)


FIRST_IN_A_CONTEXT = """
import numpy as np, vecadd, foreign

driver = foreign.open_driver({on_double})
a = np.arange(1000, dtype=np.float32)

def work(x):
    assert np.array_equal(vecadd.add(x, x).numpy(), a + a)
    assert np.array_equal(vecadd.add(x, x, stream=2).numpy(), a + a)
    y = vecadd.add(x, 1, stream=2)
    assert np.array_equal((y + y).numpy(), 2 * (a + 1))
    assert np.array_equal(vecadd.add(a, a, device="cuda"), a + a)

with driver.another_context():
    x, pinned = vecadd.to_device(a), [vecadd.empty_pinned(1000, "f4") for _ in range(3)]
    pinned[0][:] = pinned[1][:] = a
    work(x)
    assert np.array_equal(vecadd.add(*pinned, device="cuda"), a + a)
work(x)
assert np.array_equal(pinned[0], a)
assert np.array_equal(vecadd.add(*pinned, device="cuda"), a + a)
with driver.another_context():
    work(x)
work(x)
"""


def test_what_is_first_made_in_a_context_of_the_drivers_outlives_it(device, runtime, child):
    """The pool, the streams and page-locked memory of transfers, empty_pinned's memory, DeviceArrays."""
    child(FIRST_IN_A_CONTEXT.format(on_double=runtime == "double"))


WITHOUT_POOLS = """
import numpy as np, pytest, vecadd, foreign
from double import control
from vecadd import _core

control.memory_pools(False)
driver = foreign.open_driver(True)
a = np.arange(1000, dtype=np.float32)
x, y = foreign.ForeignArray(driver, a), foreign.ForeignArray(driver, a, stream=driver.stream())
out = foreign.ForeignArray(driver, a[::-1].copy())
for operands in [(x, y), (x, 1.0), (y, y)]:
    vecadd.add(*operands, out)
    assert np.array_equal(out.numpy(), vecadd.add(*(a if o is x or o is y else o for o in operands)))
vecadd.add(out, x, out)
vecadd.add_many([x, y], [y, x], [out, foreign.ForeignArray(driver, a)])
plan = vecadd.plan(x, y, out)
plan()
assert np.array_equal(out.numpy(), a + a)
before = out.numpy()
for refused in [
    lambda: vecadd.add(x, y),
    lambda: vecadd.to_device(a),
    lambda: vecadd.add(a, a, device="cuda"),
    lambda: vecadd.add(x.window(0, 10), y.window(0, 10), x.window(1, 10)),
]:
    with pytest.raises(RuntimeError, match="device 0 has no memory pools"):
        refused()
assert np.array_equal(x.numpy(), a) and control.take_errors() == 0
pinned = [vecadd.empty_pinned(1000, "f4") for _ in range(3)]
pinned[0][:] = pinned[1][:] = a
assert np.array_equal(vecadd.add(*pinned, device="cuda"), a + a)  # the kernel reads them where they are
large = [vecadd.empty_pinned(9_000_000, "f4") for _ in range(3)]
for each in large:
    each[:] = 1
for _ in range(8):
    assert vecadd.add(*large)[-1] == 2  # whichever way is chosen
vecadd.release()
assert control.faults() == 0 and control.calls("cudaMemPoolTrimTo") == 0
"""


def test_a_gpu_without_memory_pools_adds_what_needs_no_memory(double, child):
    child(WITHOUT_POOLS)

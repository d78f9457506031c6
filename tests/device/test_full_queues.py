"""While a stream's queue is full, no call keeps the GIL: the queue may have a Python function that wants it.

CuPy's launch_host_func queues such functions, and the queue empties only when they have run. On an H200 a call that
waits for room keeps others waiting, on any stream, that make or destroy an event, a stream or a graph, or allocate.
"""

import pytest

HEAD = """
import faulthandler, threading, time
import numpy as np, vecadd, foreign
from foreign import take_deleter
from double import control
from vecadd import _core

faulthandler.dump_traceback_later(20, exit=True)  # where it hangs, without the GIL
a = np.arange(100_000, dtype=np.float32)  # too large for the blocks that are kept
driver = foreign.open_driver(True)
stream, blocking = driver.stream(), driver.stream(blocking=True)
out, theirs = foreign.ForeignArray(driver, a), foreign.ForeignArray(driver, a, stream=stream)
pinned = [vecadd.empty_pinned(a.shape, "f4") for _ in range(3)] if {started} else None
x = vecadd.to_device(a) if {started} else None
called = False

def host_function():
    while not called and not control.waiting():
        time.sleep(0.001)
    control.fill_queues(False)

def meanwhile(call):
    global called
    thread = threading.Thread(target=host_function)
    control.fill_queues()
    thread.start()
    result = call()
    called = True
    thread.join()
    return result
"""

# name: (what is prepared, the call)
CALLS = {
    "add": ("", "vecadd.add(x, x, out)"),
    "a new sum": ("", "vecadd.add(x, x)"),
    "strided": ("", "vecadd.add(x[::2], x[1::2])"),
    "two streams": ("", "vecadd.add(theirs, x)"),
    "per-thread stream": ("", "vecadd.add(x, x, stream=2)"),
    "dropped": ("kept = [x + x]", "kept.clear()"),
    "add_many": ("", "vecadd.add_many([x, theirs], [x, x])"),
    "plan": ("plan = vecadd.plan(x, x, out)", "plan()"),
    "plan of lists": ("plan = vecadd.plan([x], [x], [out])", "plan()"),
    "plan made": ("", "vecadd.plan(x, x, out)"),
    "plan dropped": ("kept = [vecadd.plan(x, x, out)]", "kept.clear()"),
    "plan of lists dropped": ("kept = [vecadd.plan([x], [x], [out])]", "kept.clear()"),
    "lent": ("y = foreign.DLPackArray(theirs)", "vecadd.add(y, x)"),
    "to_device": ("", "vecadd.to_device(a)"),
    "numpy": ("", "x.numpy()"),
    "numpy on a stream": ("", "x.numpy(stream=stream)"),
    "copy": ("", "x.copy()"),
    "exported": ("", "x.__dlpack__(stream=stream, max_version=(1, 0))"),
    "capsule dropped": ("kept = [(x + x).__dlpack__(stream=blocking)]", "kept.clear()"),
    "capsule consumed": ("delete = take_deleter((x + x).__dlpack__(stream=blocking, max_version=(1, 0)))", "delete()"),
    "capsule of a stream that is not kept": ("kept = [(x + x).__dlpack__(stream=stream)]", "kept.clear()"),
    "page-locked": ("", "vecadd.empty_pinned(100)"),
    "page-locked dropped": ("", "pinned.clear()"),
    "staged": ("", "vecadd.add(a, a, device='cuda')"),
    "pinned": ("", "vecadd.add(*pinned, device='cuda')"),
    "release": ("kept = x + x; del kept", "vecadd.release()"),
    "memory_stats": ("delete = take_deleter((x + x).__dlpack__(stream=blocking, max_version=(1, 0))); delete()",
                     "vecadd.memory_stats()"),
}  # fmt: skip

FIRST = {
    "to_device": ("", "vecadd.to_device(a)"),
    "lent": ("y = foreign.DLPackArray(theirs)", "vecadd.add(y, y)"),
    "of a library": ("", "vecadd.add(theirs, theirs)"),
    "tune's recipes": ("", "_core.device_launch_configs(0)"),
}


@pytest.mark.parametrize("name", CALLS)
def test_call_goes_on_when_a_host_function_has_run(double, child, name):
    prepare, call = CALLS[name]
    child(f"{HEAD.replace('{started}', 'True')}\n{prepare}\nmeanwhile(lambda: {call})\n")


@pytest.mark.parametrize("name", FIRST)
def test_first_use_of_a_device_goes_on_when_a_host_function_has_run(double, child, name):
    prepare, call = FIRST[name]
    child(f"{HEAD.replace('{started}', 'False')}\n{prepare}\nmeanwhile(lambda: {call})\n")


def test_a_consumers_deleter_has_the_memory_go_back_soon(double, child):
    """Python's main thread gives it back, whichever thread called the deleter: no call of vecadd's is needed."""
    child(f"""{HEAD.replace("{started}", "True")}
for _ in range(3):
    delete = take_deleter((x + x).__dlpack__(stream=blocking, max_version=(1, 0)))
    blocks = control.live().device_blocks
    thread = threading.Thread(target=delete)
    thread.start()
    thread.join()
    for _ in range(1000):
        pass
    assert control.live().device_blocks == blocks - 1
""")


def test_two_threads_that_share_a_plan_do_not_wait_for_each_other(double, child):
    """A host function may wait for a thread that runs the plan: the graph is then replaced by its kernel."""
    child(f"""{HEAD.replace("{started}", "True")}
total = vecadd.to_device(np.zeros_like(a))
plan = vecadd.plan(total, x, total)
control.fill_queues()
threads = [threading.Thread(target=plan) for _ in range(2)]
for thread in threads:
    thread.start()
while control.waiting() < 2:  # one launches the graph, the other one the kernel
    time.sleep(0.001)
control.fill_queues(False)
for thread in threads:
    thread.join()
assert (total.numpy() == 2 * a).all()
""")

"""The end of a process that has all that vecadd gives away: status 0, nothing on stderr, no hang.

A forked child has the same and makes no CUDA call, which the double would say on stderr.
"""

import pytest
from conftest import ON_DOUBLE

OBJECTS = f"""
import gc, os, sys, threading, warnings
import numpy as np, vecadd
import foreign
warnings.simplefilter("ignore", DeprecationWarning)  # Python's own, about forks of processes with threads
a = np.arange(100_000, dtype=np.float32)
driver = foreign.open_driver({ON_DOUBLE})
x = vecadd.to_device(a)
y = vecadd.to_device(a)
objects = dict(
    view=x[::2],
    sum=x + x,
    pinned=vecadd.empty_pinned(10, "f4"),
    plan=vecadd.plan(x, x, y),
    many=vecadd.plan([x, y], [x, y], [vecadd.to_device(a), vecadd.to_device(a)]),
    capsule=x.__dlpack__(max_version=(1, 0)),
    unversioned=x.__dlpack__(),
    lent=foreign.DLPackArray(foreign.ForeignArray(driver, a)),
)
for _ in range(3):
    objects["plan"](), objects["many"]()
objects["of lent"] = vecadd.add(objects["lent"], objects["lent"])  # its owner is kept until the kernel is done
"""

WAYS = {
    "at the end": "",
    "sys.exit": "sys.exit(0)",
    "os._exit": "os._exit(0)",
    "in sys": "sys.vecadd_objects = objects; del objects, x, y",
    "in a cycle": "objects['itself'] = objects; del objects, x, y",
    "dropped": "del objects, x, y; gc.collect(); vecadd._core.release()",
    "in an exit handler": "import atexit; atexit.register(lambda: (objects.clear(), vecadd._core.release()))",
}

THREADS = """
def busy(work):
    while True:
        work()
started = threading.Barrier(5)
staged = lambda: vecadd.add(a, a, device="cuda")
for work in (lambda: x + x, lambda: (x + 1).numpy(), staged, lambda: vecadd.to_device(a)):
    threading.Thread(target=lambda work=work: (work(), started.wait(), busy(work)), daemon=True).start()
started.wait()
"""

IN_A_CHILD = """
pid = os.fork()
if pid == 0:
    {leave}
    sys.exit(0)
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
assert status == 0, status
assert (objects["of lent"].numpy() == a + a).all()
objects["plan"]()
assert (y.numpy() == a + a).all()
"""


@pytest.mark.parametrize("way", WAYS)
def test_process_ends_with_all_of_it(device, child, way):
    assert child(f"{OBJECTS}\n{WAYS[way]}").stderr == ""


@pytest.mark.parametrize("way", ["at the end", "sys.exit", "os._exit"])
def test_process_ends_while_threads_add(device, child, way):
    assert child(f"{OBJECTS}\n{THREADS}\n{WAYS[way]}").stderr == ""


@pytest.mark.parametrize("way", WAYS)
def test_forked_child_ends_with_all_of_it_and_makes_no_cuda_call(device, child, way):
    assert child(OBJECTS + IN_A_CHILD.format(leave=WAYS[way])).stderr == ""


@pytest.mark.parametrize("way", ["sys.exit", "os._exit"])
def test_forked_child_of_a_process_whose_threads_add(device, child, way):
    code = IN_A_CHILD.format(leave=f"assert (vecadd.add(a, a) == a + a).all(); {WAYS[way]}")
    assert child(OBJECTS + THREADS + code).stderr == ""


@pytest.mark.parametrize("way", ["at the end", "dropped", "in a cycle"])
@pytest.mark.parametrize("call", ["cudaLaunchKernelExC", "cudaStreamSynchronize"])
def test_process_ends_after_an_error_that_stays(double, child, way, call):
    lost = f"""
from double import control
control.fail("{call}", 1, 700)
try:
    (x + x).numpy()
except vecadd.DeviceLostError:
    pass
else:
    raise AssertionError("no error")
"""
    assert child(f"{OBJECTS}\n{lost}\n{WAYS[way]}").stderr == ""


def test_forked_child_after_an_error_that_stays(double, child):
    lost = """
from double import control
control.fail("cudaStreamSynchronize", 1, 700)
try:
    x.numpy()
except vecadd.DeviceLostError:
    pass
"""
    leave = IN_A_CHILD.format(leave="sys.exit(0)").partition("assert (objects")[0]
    assert child(f"{OBJECTS}\n{lost}\n{leave}").stderr == ""

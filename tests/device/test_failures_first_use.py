"""What fails once a process, in children: the first use of the device and a device that is lost; and where there is no
GPU, a broken one or an old driver, the messages say which."""

import re

import pytest
from cuda_failures import CUDA_CALLS, ILLEGAL_ADDRESS, LAUNCH, UNKNOWN

from vecadd import _core

FIRST_USE = """
import os, sys
import numpy as np, vecadd
from double import control
calls, statuses = {calls!r}, {{}}
a = np.arange(10.0)
for name in calls:
    for nth in range(1, 50):
        pid = os.fork()
        if pid == 0:
            control.fail(name, nth, {status}, False)
            failed = False
            try:
                vecadd.to_device(a).numpy()
            except (RuntimeError, MemoryError):
                failed = True
            right = ((vecadd.to_device(a) + vecadd.to_device(a)).numpy() == a + a).all()
            pools = control.calls("cudaMemPoolCreate") - control.calls("cudaMemPoolDestroy")
            right = right and pools == 1 + (failed and name == "cudaMemPoolCreate")  # that of the device, and no other
            os._exit(0 if not failed and right else 1 if right else 2)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        statuses[name, nth] = status
        if status == 0:
            break
bad = {{key: status for key, status in statuses.items() if status not in (0, 1)}}
assert not bad, bad
assert any(status == 1 for status in statuses.values())
"""


def test_every_call_of_the_first_use_may_fail_once(double, child):
    drivers = ["cuDevicePrimaryCtxRetain", "cuCtxGetCurrent", "cuCtxSetCurrent"]
    child(FIRST_USE.format(calls=CUDA_CALLS + drivers, status=UNKNOWN))


FIRST_ALLOCATIONS = """
import os
import numpy as np, vecadd
from double import control
a, large = np.arange(10.0), np.arange(2.0**20)
statuses = []
while statuses[-3:] != [0, 0, 0]:
    pid = os.fork()
    if pid == 0:
        failed = 0
        control.fail_allocation(len(statuses) + 1)
        try:
            {work}
        except MemoryError:
            failed = 1
        control.fail_allocation(0)
        assert (vecadd.add(large, large) == large + large).all()
        assert ((vecadd.to_device(a) + vecadd.to_device(a)).numpy() == a + a).all()
        os._exit(2 * failed)
    statuses.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    assert statuses[-1] in (0, 2), statuses
    assert len(statuses) < 200
print(statuses.count(2))
"""


@pytest.mark.parametrize(
    ("work", "least"),
    [
        ("vecadd.add(large, large)", 0),
        ("vecadd.add(large.reshape(1024, -1), 1.0)", 0),
        ("vecadd.add_many([a] * 9, [a] * 9)", 1),
        ("vecadd.to_device(a).numpy()", 1),
        ("vecadd.add(large, large, device='cuda')", 1),
        ("vecadd.use_gpu(), vecadd.add(large, large)", 0),
    ],
)
def test_every_allocation_of_the_first_use_may_find_no_memory(work, least, double, child):
    assert int(child(FIRST_ALLOCATIONS.format(work=work)).stdout) >= least


DEVICE_LOST = """
import numpy as np, vecadd, pytest
from double import control
a = np.arange(100.0)
x = vecadd.to_device(a)
y = vecadd.to_device(a)
control.fail("{call}", 1, {status}, False)
calls = [lambda: vecadd.add(x, y).numpy(), lambda: vecadd.to_device(a).numpy(),
         lambda: vecadd.add(a, a, device="cuda"), lambda: x.numpy()]
for attempt in range(2):
    for call in calls:
        with pytest.raises(vecadd.DeviceLostError, match="no device call"):
            call()
        assert (vecadd.add(a, a) == a + a).all()
assert issubclass(vecadd.DeviceLostError, RuntimeError)
del x, y
"""


@pytest.mark.parametrize(
    ("call", "status"), [(LAUNCH, 719), ("cudaMemcpyAsync", ILLEGAL_ADDRESS), ("cudaStreamSynchronize", 214)]
)
def test_after_an_error_that_stays_only_the_host_adds(double, child, call, status):
    child(DEVICE_LOST.format(call=call, status=status))


LENT = """
import numpy as np, vecadd
import foreign
from double import control
memory = foreign.ForeignArray(foreign.open_driver(True), np.zeros(1000, "f4"))
lent = foreign.DLPackArray(memory)
control.fail("{call}", 1, 719)
try:
    vecadd.add(lent, lent)
except vecadd.DeviceLostError:
    print(lent.given, lent.deleted)
"""


def test_what_is_lent_to_a_device_that_is_then_lost_is_given_back(double, child):
    """Nothing will ever say that the kernel is done."""
    assert child(LENT.format(call=LAUNCH), VECADD_DOUBLE_DEVICES="1").stdout == "2 2\n"


FIRST_ERROR = """
import numpy as np, vecadd
from double import control
a = {make}
a[:] = 1
vecadd.add(a, a, device="cuda")
control.fail("cudaLaunchKernel", 1, 719)
try:
    vecadd.add(a, a, device="cuda")
except vecadd.DeviceLostError as error:
    print(error)
"""


@pytest.mark.parametrize("make", ["np.empty(1000)", "vecadd.empty_pinned(1000)"], ids=["ordinary", "pinned"])
def test_of_a_transfer_the_error_that_came_first_is_told(double, child, make):
    """And not one of those that it leads to: after a fault every call fails."""
    told = child(FIRST_ERROR.format(make=make)).stdout
    assert re.fullmatch(r"no device call .* \(cudaLaunchKernel: .*, 719\); the output is undefined\n", told)


WITHOUT_GPU = """
import numpy as np, vecadd
from vecadd import _core
a = np.arange(10.0)
for call in (lambda: vecadd.add(a, a, device="cuda"), lambda: vecadd.to_device(a), _core.gpu_facts,
             lambda: vecadd.empty_pinned(3, "f4"), lambda: vecadd.add(a, a, device="cuda:0")):
    for attempt in range(2):
        try:
            call()
        except RuntimeError as error:
            print(error)
        else:
            raise AssertionError("no error")
        assert (vecadd.add(a, a) == a + a).all()
"""


@pytest.mark.parametrize(
    ("devices", "driver", "message"),
    [
        ("1", "0", "no NVIDIA driver"),
        ("0", None, "sees no GPU"),
        ("1", "12080", r"driver is too old.*12\.8.*13\.\d"),
    ],
)
def test_why_there_is_no_gpu_is_said(double, child, devices, driver, message):
    output = child(WITHOUT_GPU, VECADD_DOUBLE_DEVICES=devices, VECADD_DOUBLE_DRIVER=driver).stdout.splitlines()
    assert len(output) == 10
    assert all(re.search(message, line) for line in output), output


def test_versions_tell_an_old_driver_from_none(double, child):
    code = "from vecadd import _core; print(*_core.cuda_versions())"
    runtime = _core.CUDA_RUNTIME_VERSION
    assert child(code, VECADD_DOUBLE_DRIVER="0").stdout.split() == ["0", str(runtime)]
    assert child(code, VECADD_DOUBLE_DRIVER="12080").stdout.split() == ["12080", str(runtime)]

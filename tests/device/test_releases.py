"""Memory that is lent, in either direction, is given back as often as it was taken, whatever is done in which order."""

import ctypes
import gc
import os
import time

import numpy as np
import pytest
from conftest import ON_DOUBLE
from foreign import DLPackArray, take_deleter
from forks import fork
from hypothesis import given, settings
from hypothesis import strategies as st
from threads import run_together

import vecadd
from vecadd import _core

N = 5000
X = np.arange(N, dtype=np.int32)


class World:
    """Arrays that another library lends, and what a program keeps."""

    def __init__(self, driver, foreign):
        self.driver, self.stream = driver, driver.stream()
        self.arrays = [foreign(X) for _ in range(3)]
        self.lent, self.kept = [], []

    def lend(self, at=0):
        self.lent.append(DLPackArray(self.arrays[at]))
        return self.lent[-1]


def new_sum(world):
    world.kept.append(vecadd.add(world.lend(), world.lend(1), stream=world.stream))


def into_out(world):
    vecadd.add(world.lend(), world.lend(1), world.lend(2))


def lists(world):
    outs = [world.lend(2), None]
    world.kept += vecadd.add_many([world.lend(), world.lend()], [world.lend(1), world.lend(1)], outs)


def plan(world):
    world.kept.append(vecadd.plan(world.lend(), world.lend(1), world.lend(2)))
    world.kept[-1]()


def plan_of_lists(world):
    vecadd.plan([world.lend()], [world.lend(1)], [world.lend(2)], stream=world.stream)()


def error(world):
    with pytest.raises(ValueError, match="shape"):
        vecadd.add(world.lend(), world.lend(1), vecadd.to_device(X[1:]))
    with pytest.raises(ValueError, match="shape"):
        vecadd.add_many([world.lend()], [world.lend(1)], [vecadd.to_device(X[1:])])


def error_in_cuda(world):
    if ON_DOUBLE:
        world.double.fail("cudaLaunchKernelExC", 1, 999)
        with pytest.raises(RuntimeError, match="999"):
            vecadd.add(world.lend(), world.lend(1), world.lend(2))


def capture(world):
    with world.driver.capture(world.stream) as graph:
        vecadd.add(world.lend(), world.lend(1), world.lend(2), stream=world.stream)
    world.driver.launch(graph[0], world.stream)


def drop(world):
    world.kept.clear()


def release(world):
    vecadd.release()


def lend_ours(world):
    """To a consumer that lets go in a thread of its own, and to one that never takes it."""
    x = vecadd.to_device(X)
    capsules = [x.__dlpack__(max_version=(1, 0), stream=-1) for _ in range(2)]
    run_together(take_deleter(capsules[0]))


def fork_once(world):
    child = fork()
    if child == 0:
        world.kept.clear()
        gc.collect()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


OPERATIONS = [
    new_sum, into_out, lists, plan, plan_of_lists, error, error_in_cuda, capture, drop, release, lend_ours, fork_once
]  # fmt: skip


# Collects and forks: 2,000 examples would take half an hour.
@settings(max_examples=min(200, settings.default.max_examples))
@given(operations=st.lists(st.sampled_from(OPERATIONS), min_size=2, max_size=8))
def test_what_is_lent_comes_back_as_often_as_it_was_taken(device, driver, foreign, request, operations):
    world = World(driver, foreign)
    if ON_DOUBLE:
        world.double = request.getfixturevalue("double")
    before = _core.memory_counts()
    for operation in operations:
        operation(world)
    world.kept.clear()
    gc.collect()
    driver.synchronize(0)
    vecadd.release()
    assert [lent.deleted for lent in world.lent] == [lent.given for lent in world.lent]
    assert _core.memory_counts() == before


def test_a_release_that_python_could_not_be_asked_for_leaves_room_to_ask_for_the_next(double, device):
    """A deleter, which may not wait, has the main thread give memory back: by a pending call, of which Python
    takes a limited number."""
    nothing = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(lambda _: 0)
    large = np.zeros(1 << 20, np.uint8)  # beyond what is kept for the next array
    before = double.live().device_blocks
    deleters = [take_deleter(vecadd.to_device(large).__dlpack__(max_version=(1, 0))) for _ in range(2)]

    def fill_and_delete():
        while ctypes.pythonapi.Py_AddPendingCall(nothing, None) == 0:
            pass
        deleters[0]()

    for call in (fill_and_delete, deleters[1]):
        run_together(call)
    end = time.monotonic() + 60
    while double.live().device_blocks > before and time.monotonic() < end:
        pass
    assert double.live().device_blocks == before

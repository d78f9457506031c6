"""Which streams a sum joins in another library's capture: one that captures leads, and streams that other threads use
are never led into it."""

import threading

import numpy as np
import pytest
from arrays import assert_same_values
from foreign import ForeignStream

import vecadd
from vecadd import _core

N = 1000
A, B = np.arange(N, dtype=np.int32), np.full(N, 7, np.int32)

many = pytest.mark.parametrize("many", [False, True], ids=["add", "add_many"])


@pytest.fixture
def stream(driver):
    yield driver.stream()
    driver.synchronize(0)
    _core.release()


def added(many, x, y):
    return vecadd.add_many([x], [y])[0] if many else vecadd.add(x, y)


@many
@pytest.mark.parametrize("captured_first", [False, True])
@pytest.mark.parametrize("home", [None, 2], ids=["legacy", "vecadd's own"])
def test_the_operand_whose_stream_captures_leads(driver, foreign, stream, many, captured_first, home):
    """Whatever the operands' order; an array from before is of the legacy default stream, or of vecadd's own."""
    x = vecadd.to_device(A) if home is None else vecadd.add(foreign(A), 0, stream=home)
    y0, out = foreign(B, stream=stream), foreign(np.zeros_like(A), stream=stream)
    driver.synchronize(0)
    with driver.capture(stream) as graph:
        y = vecadd.add(y0, 0)
        vecadd.add(added(many, *((y, x) if captured_first else (x, y))), 0, out)
        del y  # a graph frees its own memory
    driver.launch(graph[0], stream)
    assert_same_values(out.numpy(), A + B)


@many
def test_another_threads_sum_does_not_become_part_of_a_capture(driver, foreign, stream, many):
    x, apart = (vecadd.add(foreign(A), k, stream=2) for k in (0, 1))
    y0, out = foreign(B, stream=stream), foreign(np.zeros_like(A), stream=stream)
    theirs = foreign(np.zeros_like(A))
    driver.synchronize(0)
    with driver.capture(stream) as graph:
        vecadd.add(added(many, x, vecadd.add(y0, 0)), 0, out)
        thread = threading.Thread(target=lambda: vecadd.add(apart, apart, theirs))
        thread.start()
        thread.join()
    driver.synchronize(0)
    assert_same_values(theirs.numpy(), 2 * (A + 1))
    driver.launch(graph[0], stream)
    assert_same_values(out.numpy(), A + B)


def refused(call):
    with pytest.raises(RuntimeError, match="the legacy default stream cannot wait for a stream that captures"):
        call()


def test_a_shared_stream_is_not_led_into_a_capture(driver, foreign, stream):
    """By an array that goes to it, or by a plan from before whose stream it is: the capture goes on."""
    x = vecadd.to_device(A)
    y, out = (foreign(values, stream=stream) for values in (B, np.zeros_like(A)))
    plan = vecadd.plan(x, vecadd.add(y, 0, stream=ForeignStream(stream)), vecadd.to_device(A))
    with driver.capture(stream) as graph:
        inside = vecadd.add(y, 0)
        refused(inside.__dlpack__)
        refused(plan)
        vecadd.add(inside, x, out)
        del inside
    driver.launch(graph[0], stream)
    assert_same_values(out.numpy(), A + B)

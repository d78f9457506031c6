"""Two CUDA calls fail, in two calls of ours one after the other or in one: nothing is lost, and the next call works."""

import numpy as np
import pytest
import test_failures as first
from cuda_failures import UNKNOWN
from orders import orders

import vecadd
from vecadd import _core

work = first.work
ROUTES = {route.__name__: route for route in first.ROUTES} | first.OTHERS


def pairs(failures):
    """Each failure first in one pair, with another one that is nearer or farther from pair to pair."""
    return [(each, failures[(7 * at + 3) % len(failures)]) for at, each in enumerate(failures)]


def fail(double, *failures):
    assert (double.faults(), double.take_errors()) == (0, 0)
    double.reset(0)
    for call, nth in failures:
        double.fail(call, nth, UNKNOWN, False)


def each_pair_failing(route, double, work):
    """Each pair of the route's calls fails, in one attempt and in two; it is looked at after an attempt that works."""
    made = first.calls_of(route, double, work)
    for pair in pairs([(call, nth) for call, times in made.items() for nth in range(1, times + 1)]):
        for attempts in ([pair], [pair[:1], pair[1:]]):
            for failures in attempts:
                fail(double, *failures)
                error = first.attempt(route, work)
                assert error is None or "999" in str(error)
            fail(double)
            assert first.attempt(route, work) is None
            yield pair, attempts


@pytest.mark.parametrize("route", ROUTES.values(), ids=ROUTES)
def test_two_calls_of_a_route_may_fail(route, double, work):
    assert first.attempt(route, work) is None
    before = first.allocated(double)
    for pair in each_pair_failing(route, double, work):
        assert first.is_as_before(double, before), pair


@pytest.mark.parametrize("route", first.LENT.values(), ids=first.LENT)
def test_what_was_lent_is_let_go_whichever_two_calls_fail(route, double, work):
    assert first.attempt(route, work) is None
    vecadd.release()
    for again in (False, True):  # the first time makes the events that are kept for later
        before = first.allocated(double)
        for pair in each_pair_failing(route, double, work):
            vecadd.release()
            assert _core.memory_counts() == before[0], pair
        assert not again or first.is_as_before(double, before)


@pytest.mark.parametrize("seed", orders(8, 8))
def test_nothing_of_a_list_is_queued_any_more_when_its_second_launch_has_failed(seed, double, driver, foreign):
    """Its owner may write to out at once, on a stream that nothing of ours has been ordered with."""
    n = 3 * 1024  # elements; the pairs take two launches
    own = driver.stream()
    x, out, later = foreign(np.ones(n, np.int32)), foreign(np.zeros(n, np.int32)), foreign(np.full(n, 9, np.int32))
    xs, outs = ([array.window(at, 3) for at in range(0, n, 3)] for array in (x, out))
    double.reset(seed)
    double.fail("cudaLaunchKernel", 2, UNKNOWN, False)
    with pytest.raises(RuntimeError, match="999"):
        vecadd.add_many(xs, xs, outs, stream=driver.stream())
    driver.copy_late(own, out.pointer, later.pointer, out.nbytes)
    assert (out.numpy() == 9).all()

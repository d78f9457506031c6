"""The expected times of transfers: their calls, copies and memory, on a host and a GPU that are numbers."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from modelled import LIMITS, RUNGS, expect

from vecadd.model.engines import Link, Queue, Spend, Wait, run

TRANSFERS = [name for name, rung in RUNGS.items() if rung["kind"] == "transfer"]
PAGEABLE = ("pageable", "streams4_pageable", "copy_blocking", "copy_async", "copy_stream", "staged")
LINK = Link(up=50e9, down=50e9, both=80e9)


def test_transfers_go_from_the_sum_of_their_stages_to_the_links_limit():
    n = 2**28
    up, down = 8 * n / LIMITS.to_device, 4 * n / LIMITS.to_host
    assert expect("pinned_reused", n) == pytest.approx(up + down, rel=0.02)
    both = 8 * n / LIMITS.both + 4 * n / LIMITS.to_device
    assert both < expect("streams2", n, allocates=0) < 1.02 * both
    assert expect("streams2", n, allocates=0) < expect("streams4", n) < expect("stream1_pinned", n)


def test_small_transfers_are_their_calls():
    copies = 2 * LIMITS.up.seconds(4000) + LIMITS.down.seconds(4000)
    waited = expect("pinned_reused", 1000)
    assert copies < waited < copies + LIMITS.call_one + LIMITS.kernel_between + 1e-6
    assert expect("stream1_pinned", 1000) < waited
    assert expect("streams4", 1000) > expect("stream1_pinned", 1000) + 4 * LIMITS.made_stream


@pytest.mark.parametrize("name", TRANSFERS)
def test_every_transfer_takes_longer_for_more_and_what_the_link_takes_at_least(name):
    times = [expect(name, n) for n in (1, 10**3, 10**5, 10**7, 10**8)]
    assert times[0] > LIMITS.waited
    assert all(less <= more * 1.05 for less, more in pairwise(times))
    if name != "hybrid":
        assert times[-1] > 8e8 / LIMITS.to_device


@pytest.mark.parametrize("name", ["hybrid", "tuned_transfer"])
def test_ordinary_memory_is_slower_where_a_rung_takes_either(name):
    assert expect(name, 10**7, memory="pageable") > expect(name, 10**7, memory="pinned") == expect(name, 10**7)


@pytest.mark.parametrize("name", PAGEABLE)
def test_memory_that_a_rung_does_not_take_is_refused(name):
    assert expect(name, 1000, memory="pageable") == expect(name, 1000)
    with pytest.raises(ValueError, match="pageable memory, not on 'pinned'"):
        expect(name, 1000, memory="pinned")


def test_managed_pages_take_what_the_probes_took():
    n = 2**20
    assert expect("managed", n) == pytest.approx(LIMITS.managed.seconds(4 * n))
    assert expect("managed", n, allocates=1) - expect("managed", n) == pytest.approx(LIMITS.managed_made.seconds(4 * n))


@pytest.mark.parametrize("name", TRANSFERS)
def test_a_run_of_before_these_limits_were_probed_refuses_in_words(name):
    without = dict.fromkeys(("queued_up", "pageable_up", "mapped", "managed", "malloc", "threads"))
    with pytest.raises(ValueError, match=r"did not measure (queued_up|pageable_up|mapped|managed|malloc|threads)"):
        expect(name, 2**22, limits=replace(LIMITS, **without), memory=None)


def test_allocation_and_streams_cost_what_they_cost_alone():
    n = 2**16
    kept = expect("streams2", n, allocates=0)
    made = 2 * LIMITS.made_stream + LIMITS.malloc.seconds(4 * n)  # one block of 2 MiB has room for six arrays
    assert expect("streams2", n) - kept == pytest.approx(made)
    assert expect("pool", n) - expect("stream1_pinned", n) == pytest.approx(LIMITS.pool.seconds(4 * n))
    each = LIMITS.malloc.seconds(2**24)
    assert expect("malloc_each_call", 2**22) - expect("stream1_pinned", 2**22) == pytest.approx(each)


def test_asynchronous_copies_of_ordinary_memory_wait_all_the_same():
    n = 2**24
    assert expect("copy_async", n) == pytest.approx(expect("pageable", n), rel=0.01)
    assert expect("streams4_pageable", n) > 0.99 * expect("pageable", n, allocates=0)


def test_a_slow_kernel_is_a_part_of_the_way():
    assert expect("pageable", 2**20, kernel=4) > expect("single_thread", 2**20, footprint=3 * 2**22)
    assert expect("pageable", 2**20, kernel=5) > expect("pageable", 2**20)


def test_zero_copy_takes_what_the_probes_kernel_took_on_such_arrays():
    for n in (1000, 10**7):
        assert expect("zero_copy", n) == pytest.approx(LIMITS.mapped.seconds(4 * n))
    assert expect("tuned_transfer", 2**19) == expect("zero_copy", 2**19)


def test_few_chunks_of_ordinary_memory_do_not_wait_for_threads_that_sleep():
    slow = replace(LIMITS, wake=1.0, wake_one=0.5)
    assert expect("staged", 50_000, limits=slow) < 0.01


def test_processor_and_gpu_together_are_ahead_of_either():
    n = 10**8
    assert expect("hybrid", n) < min(LIMITS.host_add.seconds(4 * n), expect("tuned_transfer", n)) * 1.1
    assert expect("hybrid", n) < expect("hybrid", n, threads=4)


# The engines.


def test_steps_of_a_thread_follow_one_another():
    assert run([iter([Spend(1.0), Spend(2.0)])], LINK) == pytest.approx(3)
    assert run([iter([Spend(1.0)]), iter([Spend(2.5)])], LINK) == pytest.approx(2.5)


def test_a_stream_keeps_its_order_and_engines_run_beside_each_other():
    def work(*streams):
        for stream, engine in zip(streams, ("up", "kernel"), strict=True):
            yield Queue(stream, engine, 0.0, 1.0)

    assert run([work(0, 0)], LINK) == pytest.approx(2)
    assert run([work(0, 1)], LINK) == pytest.approx(1)


def test_an_engine_does_one_thing_at_a_time():
    assert run([iter([Queue(0, "up", 0.0, 1.0), Queue(1, "up", 0.0, 1.0)])], LINK) == pytest.approx(2)


def test_both_ways_share_the_link():
    both = [Queue(0, "up", 0.0, 0.0, 40e9), Queue(1, "down", 0.0, 0.0, 20e9)]
    assert run([iter(both[:1])], LINK) == pytest.approx(0.8)
    # 20e9 bytes each way at 40e9 a second, then the rest at 50e9.
    assert run([iter(both)], LINK) == pytest.approx(0.5 + 0.4)


def test_a_wait_ends_when_its_stream_is_empty_and_seen():
    assert run([iter([Queue(0, "up", 0.25, 1.0), Wait(0, 0.5), Spend(1.0)])], LINK) == pytest.approx(2.75)
    assert run([iter([Wait(3, 0.5)])], LINK) == pytest.approx(0.5)


def test_an_idle_thread_that_finds_nothing_to_do_is_not_waited_for():
    assert run([iter([Spend(1.0)]), iter([Spend(5.0, idle=True)])], LINK) == pytest.approx(1)
    assert run([iter([Spend(1.0)]), iter([Spend(5.0, idle=True), Spend(1.0)])], LINK) == pytest.approx(6)


def test_threads_wait_for_each_others_streams():
    assert run([iter([Queue(0, "up", 0.0, 2.0)]), iter([Spend(0.1), Wait(0), Spend(1.0)])], LINK) == pytest.approx(3)


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["up", "down", "kernel"]), st.floats(0, 2)), max_size=20))
def test_all_work_takes_as_long_as_its_busiest_engine_and_no_longer_than_one_after_the_other(works):
    steps = [Queue(stream, engine, 0.01, seconds) for stream, engine, seconds in works]
    seconds = run([iter(steps)], LINK)
    of_engines = [sum(step.fixed for step in steps if step.engine == engine) for engine in ("up", "down", "kernel")]
    total = sum(step.fixed + step.call for step in steps)
    assert max(of_engines) - 1e-9 <= seconds <= total + 1e-9

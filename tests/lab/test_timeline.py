"""_core.timeline: when each copy and kernel of a transfer rung ran, on which stream, in an order that can be."""

import numpy as np
import pytest
from arrays import assert_same_values, pinned
from conftest import ON_DOUBLE

from vecadd import _core

N = 70_001
RUNGS = {rung["name"]: rung for rung in _core.rungs() if rung["kind"] == "transfer" and rung["stages"] != "shared"}
COPIED = ["to_device", "to_device", "kernel", "to_host"]  # of one chunk: a and b go up


@pytest.fixture
def operands():
    """Makes page-locked a and b, and an out without a sum yet."""

    def make(n=N):
        a = np.arange(n, dtype=np.float32)
        return pinned(a), pinned(2 * a), pinned(np.full(n, np.nan, np.float32))

    return make


def timeline(name, operands, **params):
    """The entries of one run, whose sum must be right."""
    a, b, out = operands
    entries = _core.timeline(name, a, b, out, params=params)
    assert_same_values(out, a + b)
    return entries


def chunks(entries):
    """The entries on streams, by (stream, chunk), in the order of the list."""
    found = {}
    for entry in entries:
        if entry[1] >= 0:
            found.setdefault(entry[1:3], []).append(entry)
    return found


# So few elements tuned_transfer would not copy, and hybrid gives none of them to the GPU: it has tests of its own.
PARAMS = {
    "streams2": {"chunk": 8192},
    "staged": {"threads": 2},
    "tuned_transfer": {"way": 1},
}


def assert_each_goes_up_is_added_and_comes_down(found):
    for steps in found.values():
        assert [what for what, *_ in steps] == COPIED
        times = [time for step in steps for time in step[3:]]
        assert times == sorted(times)


@pytest.mark.parametrize("order", range(4 if ON_DOUBLE else 1))
@pytest.mark.parametrize("name", RUNGS)
def test_each_chunk_goes_up_is_added_and_comes_down(order, name, request, device, operands):
    if ON_DOUBLE:
        request.getfixturevalue("double").reset(order)
    entries = timeline(name, operands(), **PARAMS.get(name, {}))
    assert min(begin for *_, begin, _ in entries) == 0
    assert all(begin <= end for *_, begin, end in entries)
    if name not in ("managed", "zero_copy"):
        assert_each_goes_up_is_added_and_comes_down(chunks(entries))
    for stream in {entry[1] for entry in entries} - {-1}:
        times = [time for step in entries if step[1] == stream for time in step[3:]]
        assert times == sorted(times)


CUT = {
    "pageable": ({}, [(0, 0)]),
    "stream1_pinned": ({}, [(0, 0)]),
    "copy_async": ({}, [(0, 0)]),
    "streams2": ({"chunk": 20_000}, [(0, 0), (1, 1), (0, 2), (1, 3)]),
    "streams4": ({}, [(0, 0), (1, 1), (2, 2), (3, 3)]),
    "streams4_pageable": ({}, [(0, 0), (1, 1), (2, 2), (3, 3)]),
    "staged": ({"threads": 1}, [(0, 0), (1, 1), (0, 2)]),
}


@pytest.mark.parametrize("name", CUT)
def test_streams_and_chunks_are_the_rungs_own(device, name, operands):
    params, want = CUT[name]
    assert list(chunks(timeline(name, operands(), **params))) == want


@pytest.mark.parametrize("order", range(4))
def test_the_gpus_share_of_a_hybrid_is_chunks_on_two_streams(order, double, device, operands):
    double.reset(order)
    double.clock(10**9)  # by which the processor is slow
    steps = chunks(timeline("hybrid", operands(3_000_000), threads=1))
    assert len(steps) > 2
    assert [number for _, number in steps] == list(range(len(steps)))
    assert {stream for stream, _ in steps} == {0, 1}
    assert_each_goes_up_is_added_and_comes_down(steps)


def test_so_few_elements_of_a_hybrid_are_the_processors(device, operands):
    assert timeline("hybrid", operands()) == []


def test_tuned_transfer_tapers_its_chunks(device, operands):
    steps = chunks(timeline("tuned_transfer", operands(1_500_000), way=1))
    assert [number for _, number in steps] == list(range(len(steps)))
    assert len(steps) > 4
    assert {stream for stream, _ in steps} == {0, 1}


@pytest.mark.parametrize(
    ("name", "params"),
    [(name, {}) for name in RUNGS]
    + [(name, {"allocates": how}) for name in RUNGS if "allocates" in RUNGS[name]["params"] for how in (0, 1)],
    ids=str,
)
def test_allocation_is_by_the_hosts_clock_where_it_is_timed(device, name, params, operands):
    entries = timeline(name, operands(), **PARAMS.get(name, {}) | params)
    host = [(what, stream) for what, stream, *_ in entries if what in ("allocate", "free")]
    wanted = RUNGS[name]["allocates"] or params.get("allocates", RUNGS[name]["params"].get("allocates", (0, 0, 0))[1])
    assert host == ([("allocate", -1), ("free", -1)] if wanted else [])


def test_zero_copy_is_one_kernel(device, operands):
    assert [entry[:3] for entry in timeline("zero_copy", operands())] == [("kernel", 0, 0)]


def test_managed_is_copied_by_the_host(device, operands):
    entries = timeline("managed", operands())
    assert [entry[:3] for entry in entries] == [
        *(("to_device", -1, 0), ("to_device", -1, 0)),
        *(("kernel", 0, 0), ("to_host", -1, 0)),
    ]


def test_no_elements_are_no_steps(device, operands):
    assert all(timeline(name, operands(0)) == [] for name in RUNGS)


def test_only_transfer_rungs_have_one(device):
    x = np.zeros(3)
    with pytest.raises(ValueError, match="threads is a host rung; a timeline is of a transfer rung"):
        _core.timeline("threads", x, x, x)
    with pytest.raises(ValueError, match="unknown rung sideways"):
        _core.timeline("sideways", x, x, x)


def test_what_run_rung_refuses_is_refused(device):
    x = np.zeros(3)
    with pytest.raises(ValueError, match="rung pinned takes page-locked memory and a is not"):
        _core.timeline("pinned", x, x, x)
    with pytest.raises(TypeError, match="rung pinned has no parameter chunk"):
        _core.timeline("pinned", x, x, x, params={"chunk": 1})

"""The expected times of kernels and of launches: what grows with what, what bounds them, and what is refused."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from modelled import H200, LIMITS, RUNGS, expect

import vecadd.ladder
from vecadd import _core, model
from vecadd.model import Limits, hosts, kernels

pytestmark = pytest.mark.no_native

DEVICE_RUNGS = [rung for rung in RUNGS.values() if rung["kind"] == "device"]


@pytest.mark.parametrize("rung", DEVICE_RUNGS, ids=lambda rung: rung["name"])
def test_every_device_rung_takes_a_launch_at_least_and_longer_for_more(rung):
    for dtype in rung["dtypes"]:
        times = [model.expected(rung, None, H200, LIMITS, dtype, n, {}) for n in (1, 10**3, 10**5, 10**7)]
        assert times[0] >= LIMITS.kernel
        assert times == sorted(times)
        moved = model.bytes_moved(10**7, _core.DTYPES[dtype])
        assert times[-1] > moved / LIMITS.write


def test_the_launch_itself_may_be_described_by_the_runtime(device):
    gpu = _core.gpu_facts()[device]
    for rung in DEVICE_RUNGS:
        if rung["min_cc"] <= 10 * gpu["cc_major"]:
            facts = _core.rung_facts(rung["name"], rung["dtypes"][0], 2**20)
            assert model.expected(rung, facts, gpu, LIMITS, rung["dtypes"][0], 2**20, {}) > LIMITS.kernel


def test_full_size_vectors_take_what_the_memory_takes():
    n = 2**28
    assert expect("float4", n) == pytest.approx(LIMITS.memory_seconds(8 * n, 4 * n), rel=0.01)


def test_few_bytes_in_flight_are_behind_many():
    assert expect("float4", 2**26) < expect("naive", 2**26) < expect("grid_stride", 2**26, blocks_per_sm=1)
    assert expect("naive", 2**28, "int8") > 2 * expect("float4", 2**28, "int8")


@pytest.mark.parametrize("stride", [2, 4, 8])
def test_a_stride_moves_whole_sectors(stride):
    assert expect("strided", 2**26, stride=2 * stride) > 1.9 * expect("strided", 2**26, stride=stride)


def test_what_is_in_the_l2_comes_sooner():
    assert expect("naive", 10**4, footprint=10**5) < expect("naive", 10**4, footprint=10**9)


def test_an_atomic_addition_is_one_of_a_block():
    n = 10**5
    assert expect("atomic", n, block=256) == pytest.approx(256 * n * LIMITS.atomic, rel=0.01)


@given(st.sampled_from([rung["name"] for rung in DEVICE_RUNGS if "float32" in rung["dtypes"]]), st.floats(1, 4))
def test_a_slower_machine_is_never_expected_to_be_faster(name, factor):
    base = expect(name, 10**6)
    for limit in ("kernel", "dram", "stream", "page", "l1", "block", "turnaround", "atomic"):
        slower = replace(LIMITS, **{limit: factor * getattr(LIMITS, limit)})
        assert expect(name, 10**6, limits=slower) >= base * (1 - 1e-9), limit


def test_a_prediction_names_the_term_that_decides():
    def dominant(name, n, **params):
        return model.predict(RUNGS[name], None, H200, LIMITS, "float32", n, params).dominant

    assert dominant("float4", 2**28) == "memory"
    assert dominant("naive", 1000) == "launch"
    assert dominant("single_thread", 2**20) == "latency"
    assert dominant("grid_stride", 2**26, blocks_per_sm=1) == "latency"


def test_a_loop_of_launches_is_bound_by_who_launches():
    small = expect("launch_loop", 100, adds=1000)
    assert small == pytest.approx(1000 * LIMITS.issued, rel=0.1)
    assert expect("launch_loop", 2**24, adds=10) > 10 * LIMITS.memory_seconds(8 * 2**24, 4 * 2**24)


def test_a_graph_is_one_call_and_its_nodes():
    assert expect("graph", 100, adds=1000) > 1000 * LIMITS.node
    assert expect("graph", 100, adds=1000) < expect("launch_loop", 100, adds=1000)


def test_a_chain_that_the_l2_keeps_is_sooner_than_pieces_that_it_does_not():
    assert expect("graph", 2**16, chain=1) < expect("graph", 2**16)
    assert expect("graph", 2**26, chain=1) == expect("graph", 2**26)
    times = [expect("graph", n << 20, chain=1) for n in range(1, 12)]
    assert times == sorted(times)


def test_a_chain_is_kept_in_whole_by_room_for_its_two_arrays_and_not_at_all_by_half_of_that():
    room = H200["l2"] // kernels.L2_PARTS
    kept, half, lost = (expect("graph", room * part // 16, chain=1) for part in (2, 3, 4))
    assert expect("graph", room // 4, chain=0) == lost
    plain = [expect("graph", room * part // 16, chain=0) for part in (2, 3)]
    assert kept < plain[0]
    assert kept < half < plain[1]


def test_a_rest_of_blocks_is_a_generation_of_its_own():
    full, more, twice = (expect("waves", 2**26, percent=percent) for percent in (100, 110, 200))
    assert more > 1.15 * full
    assert twice == pytest.approx(full, rel=0.02)


def test_large_blocks_wait_for_their_last_warp():
    assert expect("naive", 2**26, block=256) < expect("naive", 2**26, block=512) < expect("naive", 2**26, block=1024)


def test_threads_without_work_are_started_all_the_same():
    """Four planes of a volume, in blocks that are 32 and 4 deep."""
    prediction = model.predict(RUNGS["block_shape"], None, H200, LIMITS, "float32", 2**20, {"x": 4, "y": 2})
    assert prediction.seconds > 2**15 * LIMITS.block
    assert prediction.seconds > 2 * expect("block_shape", 2**20, x=32, y=2)


def test_a_blocks_loads_stand_in_for_one_where_a_run_probed_them():
    assert LIMITS.far == LIMITS.stream
    assert replace(LIMITS, stream=None).far == LIMITS.dram


def test_blocks_of_a_warp_wait_for_their_start():
    prediction = model.predict(RUNGS["naive"], None, H200, LIMITS, "float32", 2**26, {}, block=32)
    assert prediction.dominant == "start"
    assert prediction.seconds > 2**21 * LIMITS.block


def test_programmatic_launches_are_sooner_until_blocks_are_many():
    loop, pdl, trigger = (expect(name, 1000, adds=1000) for name in ("launch_loop", "pdl", "pdl_trigger"))
    assert trigger <= pdl < loop
    assert expect("graph_pdl_trigger", 1000, adds=1000) < expect("graph", 1000, adds=1000)
    n = 2**26
    assert expect("pdl_trigger", n, adds=4) > 4 * n / 256 * LIMITS.triggering_block > expect("pdl", n, adds=4)


@pytest.mark.parametrize("name", [name for name in vecadd.ladder.names() if name != "hybrid"])
def test_every_rung_has_an_expectation_from_a_full_set_of_limits(name):
    assert None not in vars(LIMITS).values()
    for dtype in RUNGS[name]["dtypes"]:
        assert 0 < expect(name, 10**5, dtype) < 10


def test_the_other_threads_wake_one_after_the_other_between_the_first_and_the_last():
    limits = Limits(threads=4, wake_one=3e-6, wake=9e-6)
    assert [hosts.wake(limits, number) for number in (1, 2, 3, 4)] == pytest.approx([3e-6, 6e-6, 9e-6, 9e-6])
    assert hosts.wake(replace(limits, wake_one=None), 1) == 9e-6
    assert hosts.wake(replace(limits, threads=2), 1) == 3e-6


def test_processors_together_are_ahead_of_one_once_they_have_woken():
    assert expect("threads_stream", 10**8) < expect("threads", 10**8) < expect("one_thread", 10**8)
    assert expect("threads", 1000) == expect("one_thread", 1000)
    assert expect("threads", 10**8, threads=2) == pytest.approx(expect("one_thread", 10**8) / 2, rel=0.01)


def test_kernels_of_a_graph_that_find_nothing_in_a_cache_take_what_the_probes_did():
    adds, n = 1000, 2**13
    spacing = expect("graph", n, adds=adds) / adds
    assert spacing == pytest.approx(LIMITS.fresh_node.seconds(12 * n), rel=0.02)
    assert expect("graph", n, adds=adds, chain=1) < adds * spacing


def test_a_batch_is_its_table_and_one_kernel():
    small, large = (expect("batched", 100, adds=adds) for adds in (1, 1001))
    assert small > LIMITS.table
    assert large - small >= 1000 * LIMITS.job
    slower = expect("batched", 100, limits=replace(LIMITS, l2=LIMITS.l2 + 1e-6, table=LIMITS.table + 1e-3), adds=1)
    assert slower - small > 1e-3 + 1e-6  # a block looks its addition up in the L2
    n, adds = 2**20, 256
    assert expect("batched", n, adds=adds) > adds * LIMITS.memory_seconds(8 * n, 4 * n)


@pytest.mark.parametrize(
    ("name", "dtype", "n", "limits", "message"),
    [
        ("naive", "float32", 0, LIMITS, "n must be"),
        ("async_copy", "int8", 10, LIMITS, "does not take int8"),
        ("naive", "float32", 10, Limits(), "did not measure"),
        ("threads", "float32", 10, replace(LIMITS, host_add=None), "did not measure host_add"),
        ("pdl", "float32", 10, replace(LIMITS, programmatic_issued=None), "did not measure programmatic_issued"),
        ("batched", "float32", 10, replace(LIMITS, table=None), "did not measure table"),
    ],
)
def test_what_the_model_does_not_know_is_refused_by_name(name, dtype, n, limits, message):
    with pytest.raises(ValueError, match=message):
        expect(name, n, dtype, limits)

"""vecadd.model: known values, what grows with what, every branch of the advice, and what it refuses."""

import json
from dataclasses import asdict, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import model_check
from vecadd import _core, model
from vecadd.model import Limits

RUNGS = {rung["name"]: rung for rung in _core.rungs()}

H200 = {
    "cc_major": 9,
    "cc_minor": 0,
    "multiprocessors": 132,
    "threads_per_multiprocessor": 2048,
    "blocks_per_multiprocessor": 32,
    "registers_per_multiprocessor": 65536,
    "shared_per_multiprocessor": 233_472,
    "shared_reserved": 1024,
    "clock_khz": 1_980_000,
    "memory_clock_khz": 3_201_000,
    "memory_bus_bits": 6016,
    "memory": 150_109_880_320,
    "l2": 62_914_560,
}
T4 = H200 | {"cc_major": 7, "cc_minor": 5, "multiprocessors": 40, "threads_per_multiprocessor": 1024}
A100 = H200 | {"cc_major": 8, "multiprocessors": 108}

# Round numbers of the order of an H200's; no test depends on how near they are.
LIMITS = Limits(
    read=4.5e12,
    write=4.6e12,
    copy=4.2e12,
    l2_read=6.5e12,
    l2_write=3.6e12,
    kernel=3e-6,
    block=0.6e-9,
    turnaround=150e-9,
    queued=1.9e-6,
    node=0.8e-6,
    issued=3.5e-6,
    l1=20e-9,
    l2=150e-9,
    page=400e-9,
    dram=430e-9,
    stream=500e-9,
    atomic=1.75e-9,
    to_device=55e9,
    to_host=55e9,
    both=100e9,
    waited_copy=8e-6,
    queued_copy=3e-6,
    made_stream=5e-6,
)

DEVICE_RUNGS = [rung for rung in RUNGS.values() if rung["kind"] == "device"]


def expect(name, n, dtype="float32", limits=LIMITS, gpu=H200, facts=None, block=0, footprint=None, **params):
    return model.expected(RUNGS[name], facts, gpu, limits, dtype, n, params, block=block, footprint=footprint)


# Formulas, with the founding documents' figures.


def test_an_addition_moves_each_array_once():
    assert model.bytes_moved(2**28, 4) == 3 * 2**30
    assert model.bytes_moved(10, 2, arrays=4) == 80
    assert model.bytes_moved(0, 8) == 0


@pytest.mark.parametrize(("itemsize", "bytes_an_addition"), [(1, 3), (2, 6), (4, 12), (8, 24)])
def test_intensity_is_one_addition_for_three_elements(itemsize, bytes_an_addition):
    assert model.arithmetic_intensity(itemsize) == 1 / bytes_an_addition


def test_the_roofline_is_the_lower_of_memory_and_arithmetic():
    peak, bandwidth = 33e12, 4.8e12
    ridge = model.balance(bandwidth, peak)
    assert model.roofline(1 / 12, bandwidth, peak) == bandwidth / 12
    assert model.roofline(2 * ridge, bandwidth, peak) == peak
    assert model.roofline(ridge, bandwidth, peak) == pytest.approx(peak)


def test_little_asks_an_h200_for_20_kib_on_each_multiprocessor():
    needed = model.bytes_needed(4.8e12, 600e-9) / 132
    assert 20 * 1024 < needed < 22 * 1024


@pytest.mark.parametrize(
    ("rung", "kib"), [("naive", 16), ("float2", 32), ("float4", 64), ("float4_unroll2", 128), ("single_block", 3)]
)
def test_bytes_in_flight_are_loads_times_bytes_times_threads(rung, kib):
    assert model.bytes_in_flight(RUNGS[rung], H200, 2**26, 4, {}) == kib * 1024


def test_waves_are_whole_where_the_last_one_is_full():
    assert model.waves(132 * 8, 8, 132) == 1
    assert model.waves(132 * 8 * 2, 8, 132) == 2
    assert model.waves(132 * 8 + 66 * 8, 8, 132) == 1.5


def test_overlap_goes_from_the_sum_to_the_longest_stage():
    assert model.overlap(100, 10, 100, 1) == 210
    assert model.overlap(100, 10, 100, 2) == 155
    assert model.overlap(100, 10, 100, 10**9) == pytest.approx(100)


seconds = st.floats(0, 1e3)


@given(seconds, seconds, seconds, st.integers(1, 64))
def test_overlap_is_between_its_bounds_and_falls_with_streams(up, kernel, down, streams):
    total = model.overlap(up, kernel, down, streams)
    assert max(up, kernel, down) <= total <= (up + kernel + down) * (1 + 1e-12)
    assert model.overlap(up, kernel, down, streams + 1) <= total * (1 + 1e-12)


rates = st.floats(1e6, 1e15)


@given(rates, rates, rates)
def test_more_bandwidth_never_lowers_the_roof(intensity, bandwidth, peak):
    assert model.roofline(intensity, bandwidth, peak) <= model.roofline(intensity, 2 * bandwidth, peak)


@pytest.mark.parametrize(
    "call",
    [
        lambda: model.bytes_moved(-1, 4),
        lambda: model.arithmetic_intensity(0),
        lambda: model.roofline(1, 0, 1),
        lambda: model.roofline(float("nan"), 1, 1),
        lambda: model.balance(1, -1),
        lambda: model.bytes_needed(0, 1),
        lambda: model.waves(1, 0, 1),
        lambda: model.overlap(-1, 0, 0, 1),
        lambda: model.overlap(1, 0, 0, 0),
        lambda: model.occupancy(H200, 0),
        lambda: model.occupancy(H200, 2048),
        lambda: model.occupancy(H200, 256, registers=0),
        lambda: model.Gpu.of(H200 | {"cc_major": 3}),
    ],
)
def test_what_cannot_be_is_a_value_error(call):
    with pytest.raises(ValueError, match=r"must be|below"):
        call()


# Occupancy.


@pytest.mark.parametrize(
    ("block", "registers", "shared", "blocks", "occupancy", "limit"),
    [
        (256, 16, 0, 8, 1, "threads"),
        (1024, 32, 0, 2, 1, "threads"),
        (32, 16, 0, 32, 0.5, "blocks"),
        (768, 16, 0, 2, 0.75, "threads"),
        (256, 64, 0, 4, 0.5, "registers"),
        (256, 33, 0, 6, 0.75, "registers"),  # 40 a thread: they come by the 256 a warp
        (256, 16, 100 << 10, 2, 0.25, "shared memory"),
    ],
)
def test_occupancy_is_what_the_tightest_resource_leaves(block, registers, shared, blocks, occupancy, limit):
    assert model.occupancy(H200, block, registers, shared) == (blocks, occupancy, limit)


def test_occupancy_is_the_runtimes(device):
    """The double reckons it with one number of registers, a GPU with each kernel's own."""
    gpu = _core.gpu_facts()[device]
    for name in ("naive", "float4", "grid_stride"):
        for block in (32, 96, 256, 768, 1024):
            facts = _core.rung_facts(name, "float32", 2**20, block=block)
            shared = facts["static_shared"] + facts["dynamic_shared"]
            ours = model.occupancy(gpu, block, facts["registers"], shared)
            assert (ours.blocks, ours.occupancy) == (facts["active_blocks"], facts["occupancy"]), (name, block)


@given(st.integers(1, 1024), st.integers(1, 254), st.integers(0, 200 << 10))
def test_more_registers_and_shared_memory_never_raise_occupancy(block, registers, shared):
    held = model.occupancy(H200, block, registers, shared)
    assert 0 <= held.occupancy <= 1
    assert model.occupancy(H200, block, registers + 1, shared).blocks <= held.blocks
    assert model.occupancy(H200, block, registers, shared + 4096).blocks <= held.blocks


def test_a_recorded_gpu_is_the_same_as_a_live_one():
    """A result file's, of before these said more than the compute capability."""
    recorded = {"compute_capability": "9.0", "multiprocessors": 132, "l2": 62_914_560, "bandwidth": 4.814304e12}
    assert model.Gpu.of(recorded) == replace(model.Gpu.of(H200), clock=None)


# Advice: the tree, from the root.


def test_the_root_is_that_there_is_something_to_add():
    assert model.advise(H200, "float32", 0, 16).bound == "nothing"


def test_a_few_bytes_are_the_launchs():
    advice = model.advise(H200, "float32", 1000, 16)
    assert advice.bound == "launch"
    assert advice.rungs[0] == "batched"


def test_enough_bytes_in_flight_stop_the_search():
    advice = model.advise(H200, "float32", 2**26, 16, bytes_per_load=16)
    assert (advice.bound, advice.rungs) == ("memory", ())
    assert "stop" in str(advice)
    assert advice.in_flight >= advice.needed


@pytest.mark.parametrize(
    ("gpu", "dtype", "alignment", "options", "rungs"),
    [
        (H200, "float32", 16, {}, ("float4",)),
        (H200, "float32", 8, {}, ("float2",)),
        (H200, "int8", 8, {}, ("float2",)),
        (H200, "int8", 8, {"block": 32}, ("float2", "float2_unroll2")),
        (H200, "float32", 4, {}, ("tuned", "unroll2")),
        (H200, "float32", 8, {"bytes_per_load": 8, "block": 32}, ("tuned", "float2_unroll2")),
        (H200, "float32", 16, {"bytes_per_load": 16, "block": 32, "registers": 128}, ("float4_unroll2",)),
        (H200, "float32", 16, {"target": "shared memory", "tile": 1023}, ("async_copy",)),
        (H200, "float32", 16, {"target": "shared memory", "tile": 1024}, ("async_copy", "bulk_copy")),
        (H200, "float32", 16, {"target": "shared memory", "tile": 2048}, ("async_copy", "bulk_copy")),
        (H200, "float32", 16, {"target": "shared memory", "tile": 2049}, ("bulk_copy",)),
        (H200, "float32", 8, {"target": "shared memory"}, ("async_copy",)),
        (H200, "float32", 4, {"target": "shared memory"}, ("async_copy",)),
        (H200, "int8", 1, {"target": "shared memory"}, ("naive",)),
        (A100, "float32", 16, {"target": "shared memory"}, ("async_copy",)),
        (T4, "float32", 16, {"target": "shared memory"}, ("float4", "unroll2")),
    ],
)
def test_each_branch_names_the_rungs_to_try(gpu, dtype, alignment, options, rungs):
    advice = model.advise(gpu, dtype, 2**28, alignment, **options)
    assert (advice.bound, advice.rungs) == ("latency", rungs)
    assert advice.in_flight < advice.needed
    assert set(rungs) <= set(RUNGS)
    assert all(step.endswith(".") for step in advice.steps)


def test_low_occupancy_is_named_with_what_bounds_it():
    advice = model.advise(H200, "float32", 2**26, 16, registers=128)
    assert "bounded by registers" in str(advice)


def test_a_runs_limits_stand_in_for_theory():
    slow = replace(LIMITS, dram=5e-6)
    assert model.advise(H200, "float32", 2**26, 16, bytes_per_load=16, limits=LIMITS).bound == "memory"
    assert model.advise(H200, "float32", 2**26, 16, bytes_per_load=16, limits=slow).bound == "latency"


def test_a_device_may_be_given_by_its_number(device):
    assert model.advise(device, "float32", 2**26, 16) == model.advise(_core.gpu_facts()[device], "float32", 2**26, 16)


@pytest.mark.parametrize("number", [-1, 99])
def test_a_device_that_is_not_there_is_a_value_error(device, number):
    with pytest.raises(ValueError, match="there is no device"):
        model.advise(number, "float32", 2**26, 16)


@pytest.mark.parametrize(
    ("arguments", "options", "error"),
    [
        (("float32", -1, 16), {}, ValueError),
        (("float32", 10, 3), {}, ValueError),
        (("float32", 10, 0), {}, ValueError),
        (("float32", 10, 16), {"target": "disk"}, ValueError),
        (("float33", 10, 16), {}, TypeError),
        (("float32", 2**26, 16), {"block": 4096}, ValueError),
    ],
)
def test_advice_refuses_what_is_no_addition(arguments, options, error):
    with pytest.raises(error):
        model.advise(H200, *arguments, **options)


# Limits.


def test_limits_are_read_from_a_result_files_meta_in_si_units():
    meta = {
        "device": {"read_gbps": 4481.7, "write_gbps": 4657.9, "gbps": 4538.9},
        "launch": {"kernel_seconds": 3e-6},
        "link": {"to_device_gbps": 55.4},
    }
    limits = Limits.of(meta)
    assert (limits.read, limits.write, limits.kernel) == (4481.7e9, 4657.9e9, 3e-6)
    assert limits.to_device == 55.4e9
    assert "dram" in limits.missing()
    with pytest.raises(ValueError, match="did not measure dram"):
        limits.need("dram")


def test_memory_takes_its_turns_from_what_a_copy_takes():
    assert LIMITS.memory_seconds(1e9, 1e9) == pytest.approx(2e9 / LIMITS.copy)
    assert LIMITS.memory_seconds(1e9, 0) == pytest.approx(1e9 / LIMITS.read)
    assert replace(LIMITS, copy=None).memory_seconds(0, 1e9) == pytest.approx(1e9 / LIMITS.write)


# Expected times.


@pytest.mark.parametrize("rung", DEVICE_RUNGS, ids=lambda rung: rung["name"])
def test_every_device_rung_takes_a_launch_at_least_and_longer_for_more(rung):
    for dtype in rung["dtypes"]:
        times = [model.expected(rung, None, H200, LIMITS, dtype, n, {}) for n in (1, 10**3, 10**5, 10**7)]
        assert times[0] >= LIMITS.kernel
        assert times == sorted(times)
        moved = model.bytes_moved(10**7, np.dtype("u2" if dtype == "bfloat16" else dtype).itemsize)
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


def test_transfers_go_from_the_sum_of_their_stages_to_the_links_limit():
    n = 2**28
    up, down = 8 * n / LIMITS.to_device, 4 * n / LIMITS.to_host
    assert expect("pinned_reused", n) == pytest.approx(up + down, rel=0.02)
    both = 8 * n / LIMITS.both + 4 * n / LIMITS.to_device
    assert both < expect("streams2", n, allocates=0) < 1.02 * both
    assert expect("streams2", n, allocates=0) < expect("streams4", n) < expect("stream1_pinned", n)


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


def test_small_transfers_are_their_calls():
    waited, queued = 3 * LIMITS.waited_copy + LIMITS.issued, 3 * LIMITS.queued_copy + LIMITS.issued
    assert expect("pinned_reused", 1000) == pytest.approx(waited + LIMITS.kernel, rel=0.02)
    assert expect("streams4", 1000) > 4 * (queued + LIMITS.made_stream)
    assert expect("stream1_pinned", 1000) < expect("pinned_reused", 1000)


def test_blocks_of_a_warp_wait_for_their_start():
    prediction = model.predict(RUNGS["naive"], None, H200, LIMITS, "float32", 2**26, {}, block=32)
    assert prediction.dominant == "start"
    assert prediction.seconds > 2**21 * LIMITS.block


@pytest.mark.parametrize(
    ("name", "dtype", "n", "limits", "message"),
    [
        ("naive", "float32", 0, LIMITS, "n must be"),
        ("async_copy", "int8", 10, LIMITS, "does not take int8"),
        ("naive", "float32", 10, Limits(), "did not measure"),
        ("threads", "float32", 10, LIMITS, "no host rungs"),
        ("pageable", "float32", 10, LIMITS, "no measured limit"),
        ("streams2", "float32", 10, LIMITS, "no measured limit"),  # allocates in the timed part, as its document did
        ("pdl", "float32", 10, LIMITS, "no probe"),
    ],
)
def test_what_the_model_does_not_know_is_refused_by_name(name, dtype, n, limits, message):
    with pytest.raises(ValueError, match=message):
        expect(name, n, dtype, limits)


# The model beside recorded cells.


@pytest.fixture
def recording(tmp_path):
    """A result file whose naive cell took what the model expects, and whose float4 cell twice that."""
    rows = [
        {"sweep": "ladder", "rung": rung, "dtype": "float32", "n": 2**20, "params": params, "seconds": seconds}
        for rung, params, seconds in (
            ("naive", {"bytes_in_flight": 1}, expect("naive", 2**20)),
            ("float4", {}, 2 * expect("float4", 2**20)),
            ("float4", {}, None),
            ("race", {"parameters": {}, "block": [256, 1, 1]}, expect("race", 2**20)),
        )
    ]
    rows.append({**rows[0], "sweep": "host", "rung": "threads"})
    rows.append({**rows[0], "sweep": "transfer", "rung": "pageable"})
    path = tmp_path / "ladder.json"
    path.write_text(json.dumps({"meta": {"gpu": [H200], "limits": {}}, "rows": rows}))
    return path


def test_recorded_cells_are_compared_one_by_one(recording, capsys):
    assumed = [f"--assume={name}={value}" for name, value in asdict(LIMITS).items()]
    assert model_check.main([str(recording), *assumed, "--misses"]) == 1
    said = capsys.readouterr().out
    assert "2 of 3 cells within 10 %" in said
    assert "ladder float4 float32 1048576" in said
    assert "-50.0 %" in said
    assert "ladder naive" not in said
    assert "missed, 1 rows of float4 (-50 %): nothing explains it" in said
    assert "not covered, 1 rows: failed" in said
    assert "not covered, 1 rows: no measured limit decides the time of pageable" in said
    assert "assumed, not measured: dram" in said


def test_a_recording_without_limits_covers_nothing(recording, capsys):
    assert model_check.main([str(recording)]) == 1
    assert "0 of 0 cells" in capsys.readouterr().out

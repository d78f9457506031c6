"""vecadd.model: known values, what grows with what, every branch of the advice, and what it refuses."""

import json
from dataclasses import fields, replace
from pathlib import Path
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st
from modelled import H200, LIMITS, RUNGS

from vecadd import _core, model
from vecadd.model import Curve, Limits, Loaded
from vecadd.model.limits import RECORDED

pytestmark = pytest.mark.no_native

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


@pytest.mark.parametrize(("n", "share"), [(132 * 100, 800), (132 * 100 + 1, 801), (132 * 100 - 1, 800), (1, 1), (0, 0)])
def test_bytes_in_flight_are_at_most_an_uneven_share_of_the_inputs(n, share):
    """132 multiprocessors wait for 8 bytes an element between them: the one with the most of it rounds up."""
    assert model.bytes_in_flight(RUNGS["naive"], H200, n, 4, {}) == share


def test_waves_are_whole_where_the_last_one_is_full():
    assert model.waves(132 * 8, 8, 132) == 1
    assert model.waves(132 * 8 * 2, 8, 132) == 2
    assert model.waves(132 * 8 + 66 * 8, 8, 132) == 1.5
    assert model.waves(1, 8, 132) == pytest.approx(1 / 1056)


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
        (32, 80, 0, 24, 0.375, "registers"),  # 6 warps in each of four partitions, which leaves room for one in none
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
    assert limits.dram is None
    with pytest.raises(ValueError, match="did not measure dram"):
        limits.need("dram")


@pytest.mark.parametrize(
    ("part", "names"),
    [
        (
            "launch",
            "kernel block turnaround queued node issued waited table job waiting triggering triggering_node "
            "triggering_block programmatic_issued released",
        ),
        ("latency", "l1 l2 page dram stream atomic"),
        ("crew", "wake wake_one"),
        ("device", "read write copy l2_read l2_write"),
        ("link", "to_device to_host both"),
    ],
)
def test_each_limit_is_read_from_the_figure_of_its_name(part, names):
    scale, ending = (1e9, "gbps") if part in ("device", "link") else (1.0, "seconds")
    values = {name: float(at) for at, name in enumerate(names.split(), 1)}
    limits = Limits.of({part: {f"{name}_{ending}": value for name, value in values.items()}})
    assert {name: getattr(limits, name) for name in values} == {name: scale * value for name, value in values.items()}


@pytest.mark.parametrize("name", [field.name for field in fields(Limits) if getattr(RECORDED, field.name) is not None])
def test_what_stands_in_for_a_run_is_what_the_recorded_runs_measured(name):
    files = (Path(__file__).parents[2] / "benchmarks/results/h200").glob("*.json")
    runs = [Limits.of(json.loads(file.read_text())["meta"].get("limits", {})) for file in files]
    measured = [value for run in runs if (value := getattr(run, name)) is not None]
    assert getattr(RECORDED, name) == pytest.approx(median(measured), rel=0.1)


def test_the_memory_under_load_is_read_from_a_probes_lists():
    limits = Limits.of(
        {"loaded": {"bytes_in_flight": [512, 1024, 4096], "gbps": [200, 400, 1000], "seconds": [0, 0, 0]}}
    )
    assert limits.loaded == Loaded(((512, 200e9), (1024, 400e9), (4096, 1000e9)))


def test_memory_takes_its_turns_from_what_a_copy_takes():
    assert LIMITS.memory_seconds(1e9, 1e9) == pytest.approx(2e9 / LIMITS.copy)
    assert LIMITS.memory_seconds(1e9, 0) == pytest.approx(1e9 / LIMITS.read)
    assert replace(LIMITS, copy=None).memory_seconds(0, 1e9) == pytest.approx(1e9 / LIMITS.write)


def test_a_curve_is_straight_between_what_was_probed():
    curve = Curve(((4096.0, 5e-6), (16384.0, 8e-6), (65536.0, 8e-6), (2.0**20, 30e-6)))
    assert curve.seconds(1) == curve.seconds(4096) == 5e-6
    assert curve.seconds(10240) == pytest.approx(6.5e-6)
    assert curve.seconds(40000) == 8e-6
    assert curve.seconds(2**21 - 2**16) == pytest.approx(52e-6)
    assert Curve.line(1e-6, 50e9).seconds(10**12) == pytest.approx(20, rel=1e-5)
    assert Curve(((100.0, 2.0), (200.0, 1.0))).seconds(150) == 2.0  # more never takes less: a probe was disturbed
    assert curve.rate(1) == curve.rate(4096) == 4096 / 5e-6
    assert curve.rate(2**20) == 2**20 / 30e-6


def test_curves_are_read_from_lists_beside_their_bytes():
    meta = {"crew": {"bytes": [4096, 16384], "add_seconds": [5e-6, 6e-6], "threads": 16}}
    limits = Limits.of(meta)
    assert limits.host_add == Curve(((4096, 5e-6), (16384, 6e-6)))
    assert limits.threads == 16
    assert limits.seconds("host_add", 10240) == pytest.approx(5.5e-6)
    with pytest.raises(ValueError, match=r"did not measure host_add_one: .*add_one_seconds"):
        limits.seconds("host_add_one", 1)

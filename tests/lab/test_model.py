"""vecadd.model: formulas, limits, and the expected time of every kind of rung."""

import json
from collections.abc import Iterator
from dataclasses import fields, replace
from math import prod
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from modelled import H200, LIMITS, RUNGS, T4, expect

from benchmarks import model_check
from vecadd import _core, model
from vecadd.bench import probes
from vecadd.bench.run import ON_DEVICE, ON_THE_WAY, Machine
from vecadd.bench.sweeps import transfer
from vecadd.figures import Figure, read_run, write_run
from vecadd.model import Curve, Limits, Loaded, kernels
from vecadd.model.limits import RECORDED
from vecadd.model.predict import wake
from vecadd.model.theory import load_bytes, with_parameters
from vecadd.tables import show_size

# vecadd.model: known values, what grows with what, every branch of the advice, and what it refuses.

pytestmark = pytest.mark.no_native

# What the model expects and advises, each in a file whose changes show in words. `PYTHONPATH=.:tests python
# tests/lab/test_model.py`, on a build with CUDA, writes both anew; read what has changed.
EXPECTED, ADVICE = (Path(__file__).parents[1] / "golden" / "model" / f"{name}.txt" for name in ("expected", "advice"))

# Formulas, with the founding documents' figures.


def test_the_roofline_is_the_lower_of_memory_and_arithmetic():
    peak, bandwidth = 33e12, 4.8e12
    ridge = model.balance(bandwidth, peak)
    assert model.roofline(1 / 12, bandwidth, peak) == bandwidth / 12
    assert model.roofline(2 * ridge, bandwidth, peak) == peak
    assert model.roofline(ridge, bandwidth, peak) == pytest.approx(peak)


@pytest.mark.parametrize(("n", "share"), [(132 * 100, 800), (132 * 100 + 1, 801), (132 * 100 - 1, 800), (1, 1), (0, 0)])
def test_bytes_in_flight_are_at_most_an_uneven_share_of_the_inputs(n, share):
    """132 multiprocessors wait for 8 bytes an element between them: the one with the most of it rounds up."""
    assert model.bytes_in_flight(RUNGS["naive"], H200, n, 4, {}) == share


seconds = st.floats(0, 1e3)


@given(seconds, seconds, seconds, st.integers(1, 64))
def test_overlap_is_between_its_bounds_and_falls_with_streams(up, kernel, down, streams):
    total = model.overlap(up, kernel, down, streams)
    assert max(up, kernel, down) <= total <= (up + kernel + down) * (1 + 1e-12)
    assert model.overlap(up, kernel, down, streams + 1) <= total * (1 + 1e-12)


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


def test_a_recorded_gpu_is_the_same_as_a_live_one():
    """A result file's, of before these said more than the compute capability."""
    recorded = {"compute_capability": "9.0", "multiprocessors": 132, "l2": 62_914_560, "bandwidth": 4.814304e12}
    assert model.Gpu.of(recorded) == replace(model.Gpu.of(H200), clock=None)


# Limits.


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
def test_the_defaults_without_a_run_are_what_the_recorded_runs_measured(name):
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


# The probes of a GPU: what they measure is in order, and a call that fails leaks nothing.


UNKNOWN = 999
MIB = 1 << 20

PROBES = {
    "rates": lambda: _core.probe("rates", 0, 4 * MIB, 1),
    "link": lambda: _core.probe("link", 0, MIB, 1),
    "latency": lambda: _core.probe("latency", 0),
    "loaded": lambda: _core.probe("loaded", 0, 32 * MIB, 1),
    "launches": lambda: _core.probe("launches", 0),
}
MORE_RATES = ["copy_gbps", "l2_read_gbps", "l2_write_gbps"]
LAUNCHES = [f"{what}_seconds" for what in ("kernel", "block", "turnaround", "queued", "node", "issued", "waited")]
TABLES = ["table_seconds", "job_seconds", "bytes", "fresh_node_seconds"]
PROGRAMMATIC = [
    f"{what}_seconds"
    for what in ("waiting", "triggering", "triggering_node", "triggering_block", "programmatic_issued", "released")
]


@pytest.mark.parametrize("name", PROBES)
def test_a_probe_names_the_devices_that_there_are(name, device):
    with pytest.raises(ValueError, match="device must be at least 0, not -1"):
        _core.probe(name, -1, MIB, 1)
    with pytest.raises(ValueError, match="this process sees"):
        _core.probe(name, 99, MIB, 1)
    with pytest.raises(TypeError):
        _core.probe(name, "cuda:0", MIB, 1)


def test_other_names_and_numbers_are_refused():
    with pytest.raises(ValueError, match="no probe is called 'disk': there are 'rates', 'link', 'latency'"):
        _core.probe("disk", 0)
    for nbytes, rounds in ((0, 1), (-1, 1), (1, 0)):
        with pytest.raises(ValueError, match=f"nbytes and rounds must be at least 1, not {nbytes} and {rounds}"):
            _core.probe("link", 0, nbytes, rounds)


def test_each_rate_is_kept_under_its_own_name_in_gigabytes_a_second(monkeypatch):
    rates = {"read": 4e12, "write": 2e12, "copy": 3e12, "l2_read": 8e12, "l2_write": 6e12}
    asked = []
    monkeypatch.setattr(_core, "probe", lambda *arguments: asked.append(arguments) or rates)
    small, large = (probes.probe_device(1, 50 * MIB, memory) for memory in (4096 * MIB, 1 << 40))
    assert asked == [("rates", 1, 1024 * MIB, probes.PROBE_ROUNDS), ("rates", 1, 1600 * MIB, probes.PROBE_ROUNDS)]
    assert small == large
    assert small == {
        "read_gbps": 4000.0, "write_gbps": 2000.0, "gbps": 3000.0, "copy_gbps": 3000.0, "l2_read_gbps": 8000.0,
        "l2_write_gbps": 6000.0,
    }  # fmt: skip
    monkeypatch.setattr(_core, "probe", lambda *arguments: {"to_device": 50e9, "to_host": 40e9, "both": 200e9})
    assert probes.probe_link(0) == {
        "to_device_gbps": 50.0, "to_host_gbps": 40.0, "both_gbps": 200.0, "gbps": pytest.approx(75.0)
    }  # fmt: skip


def test_a_point_of_the_loaded_memory_that_was_not_measured_is_left_out(monkeypatch):
    found = {"bytes": [0, 1024, 2048], "seconds": [0.0, 1e-6, 2e-6], "rate": [0.0, 2e9, 3e9]}
    monkeypatch.setattr(_core, "probe", lambda *arguments: found)
    assert probes.probe_loaded(0, MIB, 1 << 40) == {
        "bytes_in_flight": [1024, 2048], "seconds": [1e-6, 2e-6], "gbps": [2.0, 3.0]
    }  # fmt: skip


@pytest.mark.parametrize(("memory", "count", "alone"), [(1 << 40, 5, 4), (16 * 64 * MIB, 4, 4), (16 * 4 * MIB, 2, 2)])
def test_the_hosts_probe_takes_a_sixteenth_of_its_memory_an_array_and_one_thread_up_to_64_mib(
    memory, count, alone, monkeypatch
):
    monkeypatch.setattr(_core, "wake_limits", lambda: {"threads": 2, "wake": 5e-6, "wake_one": 4e-6})
    monkeypatch.setattr(probes, "_host_add", lambda nbytes, threads: (nbytes, threads))
    found = probes.probe_threads(memory)
    sizes = [nbytes * MIB for nbytes in (1, 4, 16, 64, 128)][:count]
    assert found == {
        "threads": 2, "wake_seconds": 5e-6, "wake_one_seconds": 4e-6, "bytes": sizes,
        "add_seconds": [(nbytes, 0) for nbytes in sizes], "add_one_seconds": [(nbytes, 1) for nbytes in sizes[:alone]],
    }  # fmt: skip


@pytest.mark.parametrize("probe", PROBES.values(), ids=PROBES)
def test_every_call_of_a_probe_is_seen_to_fail(probe, device, double):
    for call in ("cudaStreamCreateWithFlags", "cudaStreamSynchronize", "cudaEventRecord"):
        double.reset(0)
        double.fail(call, 1, UNKNOWN, False)
        with pytest.raises(RuntimeError, match=str(UNKNOWN)):
            probe()


def test_a_run_keeps_what_the_probes_found(device, monkeypatch):
    monkeypatch.setattr(probes, "LINK_BYTES", 1 << 20)
    monkeypatch.setattr(probes, "DEVICE_CACHES", 1)
    machine = Machine()
    machine.probe(*ON_DEVICE, "link")
    assert machine.device_limit == machine.probed["device"]["gbps"]
    assert set(machine.probed["device"]) == {"read_gbps", "write_gbps", "gbps", *MORE_RATES}
    assert set(machine.probed["latency"]) == {
        f"{where}_seconds" for where in ("l1", "l2", "page", "dram", "stream", "atomic")
    }
    loaded = machine.probed["loaded"]
    assert set(loaded) == {"bytes_in_flight", "seconds", "gbps"}
    assert loaded["bytes_in_flight"] == sorted(loaded["bytes_in_flight"])
    programmatic = PROGRAMMATIC if machine.capability >= 90 else []
    assert set(machine.probed["launch"]) == {*LAUNCHES, *TABLES, *programmatic}
    assert machine.limits("link") is machine.probed["link"]


def test_a_transfers_run_keeps_the_links_rates_and_how_soon_threads_wake(device, monkeypatch):
    monkeypatch.setattr(probes, "LINK_BYTES", 64 << 10)
    monkeypatch.setattr(probes, "HOST_ARRAYS", (4 << 10, 16 << 10))
    machine = Machine()
    machine.probe(*ON_THE_WAY)
    assert not machine.missing
    assert set(machine.probed["link"]) == {"to_device_gbps", "to_host_gbps", "both_gbps", "gbps"}
    crew = machine.probed["crew"]
    assert crew["bytes"] == [4 << 10, 16 << 10]
    assert len(crew["add_seconds"]) == len(crew["add_one_seconds"]) == 2


def test_a_transfers_limit_is_of_the_best_rates_that_any_probe_found(monkeypatch):
    """A probe in memory that the link reaches slowly does not bound cells in memory that it reaches faster."""
    ahead = [(50.0, 40.0, 75.0), MemoryError("no page-locked memory"), (1.0, 1.0, 1.0), (50.0, 40.0, 74.0)]
    rates = iter([*ahead, (45.0, 55.0, 100.0), (1.0, 1.0, 1.0)])

    def probe(device):
        found = next(rates)
        if isinstance(found, MemoryError):
            raise found
        return dict(zip(("to_device_gbps", "to_host_gbps", "both_gbps", "gbps"), (*found, 0.0), strict=True))

    monkeypatch.setattr(probes, "probe_link", probe)
    machine = Machine()
    limit = transfer.LinkLimit(machine)
    assert round(limit.gbps, 9) == round(3 / (2 / 75 + 1 / 50), 9)
    limit.close()
    best = {"to_device_gbps": 50.0, "to_host_gbps": 55.0, "both_gbps": 100.0, "gbps": 75.0}
    assert machine.probed["link"] == best
    limit.close()
    assert limit.gbps == 75.0
    assert machine.probed["link"] == best


def test_idle_threads_wake_after_some_time():
    found = _core.wake_limits()
    assert found["threads"] == _core.host_facts()["threads"]
    assert 0 < found["wake_one"] < 1
    assert 0 < found["wake"] < 1


@pytest.fixture
def gpu(device, runtime):
    """Its ordinal; the double has no memory to be timed."""
    if runtime != "gpu":
        pytest.skip("needs a GPU")
    return device


@pytest.mark.gpu
def test_caches_are_ahead_of_the_memory(gpu):
    latency = _core.probe("latency", gpu)
    rates = _core.probe("rates", gpu, 8 * _core.gpu_facts()[gpu]["l2"], 5)
    assert latency["l1"] < latency["l2"] < latency["dram"] < 5e-6
    assert latency["dram"] < 1.5 * latency["stream"] < 5e-6
    assert rates["l2_read"] > rates["read"]


@pytest.mark.gpu
def test_the_rate_and_the_latency_of_the_memory_grow_with_the_bytes_in_flight(gpu):
    facts = _core.gpu_facts()[gpu]
    found = _core.probe("loaded", gpu, 8 * facts["l2"], 5)
    idle = _core.probe("latency", gpu)["dram"]
    in_flight, seconds, rates = (np.array(found[key]) for key in ("bytes", "seconds", "rate"))
    assert (np.diff(in_flight[in_flight > 0]) > 0).all()
    assert idle / 2 < seconds[0] < 3 * idle
    assert seconds[-1] > 2 * seconds[0]
    assert rates[-1] > 10 * rates[0]
    np.testing.assert_allclose(in_flight * facts["multiprocessors"], seconds * rates, rtol=1e-6)  # Little's law


@pytest.mark.gpu
def test_a_block_starts_sooner_than_a_kernel(gpu):
    launch = _core.probe("launches", gpu)
    assert 0 < launch["block"] < 1e-7
    assert 0 < launch["node"] < 2e-5
    assert launch["block"] < launch["turnaround"] < launch["queued"] < 2e-5
    assert probes.probe_launch(gpu)["kernel_seconds"] < 1e-4


# The expected times of kernels and of launches: what grows with what, what bounds them, and what is refused.


DEVICE_RUNGS = [rung for rung in RUNGS.values() if rung["kind"] == "device"]


def test_the_launch_itself_may_be_described_by_the_runtime(device):
    gpu = _core.gpu_facts()[device]
    for rung in DEVICE_RUNGS:
        if rung["min_cc"] <= 10 * gpu["cc_major"]:
            facts = _core.rung_facts(rung["name"], rung["dtypes"][0], 2**20)
            assert model.predict(rung, facts, gpu, LIMITS, rung["dtypes"][0], 2**20, {}).seconds > LIMITS.kernel


def test_what_is_in_the_l2_comes_sooner():
    assert expect("naive", 10**4, footprint=10**5) < expect("naive", 10**4, footprint=10**9)


@given(st.sampled_from([rung["name"] for rung in DEVICE_RUNGS if "float32" in rung["dtypes"]]), st.floats(1, 4))
def test_a_slower_machine_is_never_expected_to_be_faster(name, factor):
    base = expect(name, 10**6)
    for limit in ("kernel", "dram", "stream", "page", "l1", "block", "turnaround", "atomic"):
        slower = replace(LIMITS, **{limit: factor * getattr(LIMITS, limit)})
        assert expect(name, 10**6, limits=slower) >= base * (1 - 1e-9), limit


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


def test_a_blocks_loads_replace_one_where_a_run_probed_them():
    assert LIMITS.far == LIMITS.stream
    assert replace(LIMITS, stream=None).far == LIMITS.dram


def test_the_other_threads_wake_one_after_the_other_between_the_first_and_the_last():
    limits = Limits(threads=4, wake_one=3e-6, wake=9e-6)
    assert [wake(limits, number) for number in (1, 2, 3, 4)] == pytest.approx([3e-6, 6e-6, 9e-6, 9e-6])
    assert wake(replace(limits, wake_one=None), 1) == 9e-6
    assert wake(replace(limits, threads=2), 1) == 3e-6


def test_processors_together_are_ahead_of_one_once_they_have_woken():
    assert expect("threads_stream", 10**8) < expect("threads", 10**8) < expect("one_thread", 10**8)
    assert expect("threads", 1000) == expect("one_thread", 1000)
    assert expect("threads", 10**8, threads=2) == pytest.approx(expect("one_thread", 10**8) / 2, rel=0.01)


@pytest.mark.parametrize(
    ("name", "dtype", "n", "limits", "message"),
    [
        ("naive", "float32", 0, LIMITS, "n must be"),
        ("async_copy", "int8", 10, LIMITS, "does not take int8"),
        ("naive", "float32", 10, Limits(), "did not measure"),
        ("threads", "float32", 10, replace(LIMITS, host_add=None), "did not measure host_add"),
        ("pdl", "float32", 10, replace(LIMITS, programmatic_issued=None), "did not measure programmatic_issued"),
        ("batched", "float32", 10, replace(LIMITS, table=None), "did not measure table"),
        ("transpose_naive", "float32", 10, LIMITS, "no model predicts transposes"),
    ],
)
def test_what_the_model_does_not_know_is_refused_by_name(name, dtype, n, limits, message):
    with pytest.raises(ValueError, match=message):
        expect(name, n, dtype, limits)


# The expected times of transfers: the sum of their stages where they are serial, the slowest where they overlap.


RECORDED_TRANSFERS = Path(__file__).parents[2] / "benchmarks" / "results" / "h200" / "transfer.json"


def test_a_kernel_is_chosen_by_the_name_of_its_rung():
    for rung in RUNGS.values():
        assert set(rung["choices"]) <= set(rung["params"])
        for name, names in rung["choices"].items():
            least, _, most = rung["params"][name]
            assert (least, most) == (0, len(names) - 1)
    assert set(RUNGS["pageable"]["choices"]["kernel"]) <= {name for name in RUNGS if RUNGS[name]["kind"] == "device"}


# Document 004's own example: 100 ms of input, 10 ms of kernel, 100 ms of output, 210 in series and 100 overlapped; and
# 10, 100 and 10 ms.
N = 10**8
NBYTES = 4 * N


def of_document(up, kernel, down):
    """Limits by which uploads, kernel and download of N elements take that many seconds, both ways undisturbed."""
    rate = 3 * NBYTES / (kernel - 1e-6)
    free = dict.fromkeys(("kernel", "block", "turnaround", "l1", "l2", "page", "dram", "stream"), 1e-12)
    return replace(
        LIMITS,
        **free,
        to_device=2 * NBYTES / up,
        to_host=NBYTES / down,
        both=2 * max(2 * NBYTES / up, NBYTES / down),
        read=rate,
        write=rate,
        copy=rate,
        l2_read=1e18,
        l2_write=1e18,
    )


@pytest.mark.parametrize(
    ("stages", "serial", "overlapping"),
    [((0.100, 0.010, 0.100), 0.210, 0.100), ((0.010, 0.100, 0.010), 0.120, 0.100)],
)
def test_the_documents_example_comes_out(stages, serial, overlapping):
    limits = of_document(*stages)
    assert expect("pinned", N, limits=limits, kernel=2) == pytest.approx(serial, rel=0.001)
    assert expect("streams4", N, limits=limits, kernel=2) == pytest.approx(overlapping, rel=0.001)


def test_a_slow_kernel_is_a_stage_like_the_others():
    alone = expect("single_thread", N, footprint=3 * NBYTES)
    assert expect("pageable", N, kernel=4) == pytest.approx(alone + expect("pageable", N), rel=0.01)
    assert expect("streams4", N, kernel=4) == pytest.approx(alone)
    assert model.predict(RUNGS["pageable"], None, H200, LIMITS, "float32", N, {"kernel": 4}).dominant == "kernel"


def test_no_recorded_transfer_is_faster_and_full_ones_of_page_locked_memory_are_near():
    run = read_run(RECORDED_TRANSFERS)
    meta, rows = run.meta, run.figures
    limits, gpu = Limits.of(meta["limits"]), meta["gpu"][0]
    ratios, full, with_allocations = [], [], []
    for row in rows:
        rung = RUNGS.get(transfer.THE_CALL if row.name == "add" else row.name)
        if not rung or not row.seconds or rung["stages"] == "shared":
            continue
        chosen = row.params.get("parameters", {})
        ratios.append(row.seconds / model.predict(rung, None, gpu, limits, row.dtype, row.n, chosen).seconds)
        if row.n == 2**28 and row.params["memory"] == "pinned":
            (with_allocations if rung["allocates"] else full).append(ratios[-1])
    assert len(ratios) > 150
    assert len(full) > 5
    assert min(ratios) > 0.98  # what two runs of a link differ by
    assert max(full) < 1.15
    assert max(with_allocations) < 1.25  # streams made in each call, which the model does not know


# vecadd.model.advise: every branch of its tree, what it refuses, and that no recorded run contradicts it.

RECORDED_RUNS = sorted((Path(__file__).parents[2] / "benchmarks" / "results").glob("*/*.json"))
WORTH_A_KERNEL = 1.1  # times as fast as what is to stop here


def advise(n=2**28, gpu=H200, dtype="float32", alignment=16, limits=LIMITS, **options):
    return model.advise(gpu, dtype, n, alignment, limits=limits, **options)


# The tree, from the root.


SLOW = Loaded(tuple((4 * nbytes, rate) for nbytes, rate in LIMITS.loaded.points))
KNOWN = {
    "nothing": None,
    "no start of blocks": replace(LIMITS, block=None),
    "no memory under load": replace(LIMITS, loaded=None),
    "a slow memory": replace(LIMITS, loaded=SLOW),
}
WIDE, SMALL = {"bytes_per_load": 16}, {"block": 32}
QUESTIONS: tuple[dict[str, Any], ...] = (
    *({"n": 0}, {"n": 1000}, {"n": 2**20, **WIDE}, WIDE, {"registers": 128}),
    {**WIDE, "loads_in_flight": 3, "arrays": 4},
    # Blocks that start one after the other, blocks that loop, too few blocks.
    *(SMALL, {**WIDE, **SMALL}, {**WIDE, **SMALL, "limits": "no start of blocks"}),
    *({**WIDE, "loads_in_flight": 4, "grid": 132 * 8}, {"grid": 1}, {"grid": 132}),
    # The latency of an idle memory says nothing of how many bytes a full one needs.
    *({"limits": known, "bytes_per_load": width} for known in ("nothing", "no memory under load") for width in (4, 16)),
    {**WIDE, "limits": "a slow memory"},
    # What alignment and dtype leave.
    *({"alignment": 8}, {"alignment": 4}, {"dtype": "int8", "alignment": 8, "grid": 132 * 8}),
    {"dtype": "int8", "alignment": 8, **SMALL, "grid": 132 * 32},
    {"alignment": 8, "bytes_per_load": 8, **SMALL, "grid": 132 * 32},
    {**WIDE, **SMALL, "registers": 128, "grid": 132 * 16},
)


def advice() -> Iterator[str]:
    """What is asked, what bounds it, the rungs to try, the bytes in flight and those that are needed, and the steps."""
    for asked in QUESTIONS:
        given = dict(asked)
        if "limits" in asked:
            given["limits"] = KNOWN[asked["limits"]]
        found = advise(**given)
        assert set(found.rungs) <= set(RUNGS)
        what = ", ".join(f"{name} {value}" for name, value in asked.items())
        needed = "unknown" if found.needed is None else f"{found.needed:.0f}"
        tried = "stop" if found.stop else ", ".join(found.rungs) or "nothing"
        yield f"{what}: {found.bound}, {found.in_flight:.0f} bytes of {needed}, then {tried}"
        yield from (f"    {step}" for step in found.steps)


def test_the_advice_is_what_the_golden_file_says() -> None:
    assert list(advice()) == ADVICE.read_text().splitlines()


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
        (("float33", 10, 16), {}, TypeError),
        (("float32", 2**26, 16), {"block": 4096}, ValueError),
        (("float32", 2**26, 16), {"grid": 0}, ValueError),
        (("float32", 2**26, 16), {"arrays": 5}, ValueError),
    ],
)
def test_advice_refuses_what_is_no_addition(arguments, options, error):
    with pytest.raises(error):
        model.advise(H200, *arguments, **options)


# The curve.


def test_the_curve_goes_through_its_points_and_rises():
    loaded = LIMITS.loaded
    for nbytes, rate in loaded.points:
        assert loaded.rate(nbytes) == pytest.approx(rate)
        assert loaded.latency(nbytes, 132) == pytest.approx(132 * nbytes / rate)
    rates = [loaded.rate(nbytes) for nbytes in range(512, 200_000, 512)]
    assert rates == sorted(rates)
    assert loaded.rate(10**9) == loaded.best
    assert loaded.rate(1024) == pytest.approx(loaded.rate(4096) / 4)  # the latency is that of the first point


@pytest.mark.parametrize("share", [0.1, 0.5, 0.8, 0.95, 1.0])
def test_the_bytes_that_are_needed_make_that_share_of_the_rate(share):
    loaded = LIMITS.loaded
    assert loaded.rate(loaded.needed(share)) == pytest.approx(share * loaded.best)


def test_a_curve_takes_two_rates_at_least():
    assert Loaded.through([(4096, 1e12)]) is None
    assert Loaded.through([(8192, 1e12), (4096, 1e12)]) is None
    assert Loaded.through([(8192, 2e12), (4096, 1e12)]) == Loaded(((4096, 1e12), (8192, 2e12)))


def test_blocks_that_end_leave_places_empty_the_more_the_more_warps_they_have():
    loaded, places = LIMITS.loaded, 48 << 10
    averages = [loaded.on_average(places, 132, warps, start=230e-9) for warps in (1, 4, 8, 16, 32)]
    assert averages == sorted(averages, reverse=True)
    assert averages[0] < places
    assert loaded.on_average(places, 132, 1, start=0.0) == places


# Recorded runs.


def recorded(path):
    """The GPU, the limits, and the rows of kernels of a recorded run; () where it has none."""
    run = read_run(path)
    meta, rows = run.meta, run.figures
    kernels = [row for row in rows if row.seconds and RUNGS.get(row.name, {}).get("kind") == "device"]
    if not meta["gpu"] or not kernels or "device" not in meta.get("limits", {}):
        return ()
    return meta["gpu"][0], Limits.of(meta.get("limits", {})), kernels


RUNS = {path.stem: run for path in RECORDED_RUNS if (run := recorded(path))}


def of_row(gpu, limits, row):
    rung = with_parameters(RUNGS[row.name], row.params.get("parameters", {}))
    return model.advise(
        gpu,
        row.dtype,
        row.n,
        16,
        bytes_per_load=load_bytes(rung, _core.DTYPES[row.dtype]),
        loads_in_flight=rung["loads_in_flight"],
        arrays=rung["bytes_per_element"] // 4,
        block=row.params["block"],
        grid=prod(row.params["grid"]),
        registers=row.params["registers"],
        limits=limits,
    )


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_no_rung_is_told_to_stop_that_another_of_its_run_beats(run):
    gpu, limits, rows = run
    assert limits.loaded
    told = [row for row in rows if of_row(gpu, limits, row).stop]
    assert told, "no rung is told to stop: the test is of nothing"
    for row in told:
        best = min(other.seconds for other in rows if (other.dtype, other.n) == (row.dtype, row.n))
        assert row.seconds <= WORTH_A_KERNEL * best, row


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_a_rung_whose_launch_is_said_to_decide_takes_no_twice_the_best(run):
    gpu, limits, rows = run
    for row in rows:
        # advise is not told what part of a sector strided uses, and on how many paths a warp of divergent goes.
        if row.name not in ("strided", "divergent") and of_row(gpu, limits, row).bound == "launch":
            best = min(other.seconds for other in rows if (other.dtype, other.n) == (row.dtype, row.n))
            assert row.seconds < 2 * best, row


def test_an_h200_under_load_answers_later_the_more_it_is_asked():
    """Of the recorded ladder's probe: an idle memory's latency up to 4 KiB in flight, then more and more."""
    _, limits, _ = RUNS["ladder"]
    points = [(nbytes, limits.loaded.latency(nbytes, 132)) for nbytes, _ in limits.loaded.points]
    few = [seconds for nbytes, seconds in points if nbytes <= 4096]
    more = [seconds for nbytes, seconds in points if nbytes >= 4096]
    assert max(few) < 1.1 * min(few)
    assert limits.dram < min(few) < 1.5 * limits.dram
    assert more == sorted(more)
    assert more[-1] > 8 * more[0]


def test_large_blocks_are_told_to_load_more():
    """Recorded on an H200: float2 in blocks of 1024 takes 1.11 times as long as float4, in blocks of 256 1.02 times."""
    gpu, limits, _ = RUNS["blocksize"]
    assert advise(2**26, gpu, limits=limits, bytes_per_load=8, block=256).stop
    advice = advise(2**26, gpu, limits=limits, bytes_per_load=8, block=1024)
    assert (advice.bound, advice.rungs) == ("latency", ("float4",))
    assert "waits for its slowest warp (of 32)" in str(advice)


# The model beside recorded cells: what is compared, what is not, and what is said of it.


@pytest.fixture
def recording(tmp_path):
    """A result file whose naive cell took what the model expects, and whose float4 cell twice that."""
    rows = [
        Figure("ladder", rung, "float32", 2**20, params, value=seconds)
        for rung, params, seconds in (
            ("naive", {"bytes_in_flight": 1}, expect("naive", 2**20)),
            ("float4", {}, 2 * expect("float4", 2**20)),
            ("float4", {}, None),
            ("race", {"parameters": {}, "block": 256}, expect("race", 2**20)),
        )
    ]
    others = {"host": "threads", "latency": "batched", "transfer": "pageable"}
    rows += [replace(rows[0], sweep=sweep, name=name) for sweep, name in others.items()]
    path = tmp_path / "ladder.json"
    write_run(path, {"gpu": [{**H200, "name": "H200"}], "limits": {}}, rows)
    return path


def test_recorded_cells_are_compared_one_by_one(recording, monkeypatch, capsys):
    monkeypatch.setattr(model_check.Limits, "of", lambda meta_limits: replace(LIMITS, table=None))
    assert model_check.main([str(recording), "--misses"]) == 1
    said = capsys.readouterr().out
    assert "2 of 3 cells within 10 %" in said
    assert "ladder float4 float32 1048576" in said
    assert "-50.0 %" in said
    assert "ladder naive" not in said
    assert "missed, 1 rows of float4: -50 %" in said
    assert "not covered, 1 rows: failed" in said
    assert "not covered, 1 rows: this run did not measure table" in said
    assert "pageable" not in said


def test_a_recording_without_limits_covers_nothing(recording, capsys):
    assert model_check.main([str(recording)]) == 1
    assert "0 of 0 cells" in capsys.readouterr().out


# What the model expects of every rung, as a file in tests/golden/model: a change shows by its terms.


SIZES = (1000, 2**16, 2**20, 2**26)


def expectations() -> Iterator[str]:
    """A line each: of every rung of additions at its usual parameters, then with other dtypes, parameters and GPUs."""
    rungs = [rung for rung in RUNGS.values() if rung["kind"] != "matrix"]
    for rung in rungs:
        for n in SIZES:
            yield line(rung, n)
    for rung in rungs:
        if rung["kind"] in ("device", "latency"):
            yield line(rung, 2**20, T4, "T4")
        if rung["kind"] == "device":
            yield line(rung, 2**20, dtype=rung["dtypes"][-1])
            for name, (least, usual, most) in rung["params"].items():
                yield from (line(rung, 2**20, **{name: value}) for value in sorted({least, most} - {usual}))
        if "chain" in rung["params"]:
            yield from (line(rung, n, chain=1, adds=50) for n in SIZES[:3])


def line(
    rung: dict[str, Any], n: int, gpu: dict[str, int] = H200, name: str = "H200", dtype: str = "", **params: int
) -> str:
    """Microseconds in all, by which term, and of each term; or why nothing is expected."""
    dtype = dtype or ("float32" if "float32" in rung["dtypes"] else rung["dtypes"][0])
    chosen = "".join(f" {key} {value}" for key, value in params.items())
    begin = f"{rung['name']}{chosen}, {dtype} {show_size(n)} on {name}:"
    try:
        found = model.predict(rung, None, gpu, LIMITS, dtype, n, params)
    except ValueError as error:
        return f"{begin} {error}"
    terms = ", ".join(f"{term} {1e6 * seconds:.9g}" for term, seconds in found.terms.items())
    return f"{begin} {1e6 * found.seconds:.9g} us by its {found.dominant} ({terms})"


def test_the_model_expects_what_the_golden_file_says() -> None:
    assert list(expectations()) == EXPECTED.read_text().splitlines()


if __name__ == "__main__":
    for path, lines in ((EXPECTED, expectations()), (ADVICE, advice())):
        path.write_text("".join(f"{line}\n" for line in lines))

"""The probes of a GPU: what they measure is in order, and a call that fails leaves nothing behind."""

from contextlib import suppress

import numpy as np
import pytest

from vecadd import _core
from vecadd.bench import probes
from vecadd.bench.run import ON_DEVICE, ON_THE_WAY, Machine
from vecadd.bench.sweeps import transfer

pytestmark = pytest.mark.no_native

UNKNOWN = 999
MIB = 1 << 20

PROBES = {
    "rates": lambda: _core.probe("rates", 0, 4 * MIB, 1),
    "link": lambda: _core.probe("link", 0, MIB, 1),
    "latency": lambda: _core.probe("latency", 0),
    "loaded": lambda: _core.probe("loaded", 0, 32 * MIB, 1),
    "launches": lambda: _core.probe("launches", 0),
}
# Which the double's clock cannot resolve, where nothing takes time.
DIFFERENCES = ("block", "turnaround", "queued", "node", "job", "fresh_node")
DIFFERENCES += ("waiting", "triggering", "triggering_node", "triggering_block", "released")
LONG = ("latency", "launches")  # of which tests/c/kernels/test_probes.c fails many more calls
MORE_RATES = ["copy_gbps", "l2_read_gbps", "l2_write_gbps"]
LAUNCHES = [f"{what}_seconds" for what in ("kernel", "block", "turnaround", "queued", "node", "issued", "waited")]
TABLES = ["table_seconds", "job_seconds", "bytes", "fresh_node_seconds"]
PROGRAMMATIC = [
    f"{what}_seconds"
    for what in ("waiting", "triggering", "triggering_node", "triggering_block", "programmatic_issued", "released")
]
CALLS = ["cudaStreamCreateWithFlags", "cudaEventCreate", "cudaMallocFromPoolAsync", "cudaEventRecord"]
CALLS += ["cudaStreamSynchronize", "cudaEventElapsedTime"]


@pytest.mark.parametrize("probe", PROBES.values(), ids=PROBES)
def test_a_probe_gives_rates_and_seconds_that_can_be(probe, device):
    for name, found in probe().items():
        for value in found if isinstance(found, list) else [found]:
            assert 0 <= value < 1e15, name
            assert value > 0 or name in DIFFERENCES, name


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


@pytest.mark.parametrize("probe", PROBES.values(), ids=PROBES)
def test_a_probe_that_fails_leaves_nothing_and_works_again(probe, device, double):
    before = double.live()
    for call in CALLS:
        for nth in (1,) if probe in [PROBES[name] for name in LONG] else (1, 2, 5):
            double.reset(0)
            double.fail(call, nth, UNKNOWN, False)
            with suppress(RuntimeError):
                probe()
            assert double.live() == before, (call, nth)
    double.reset(0)
    assert probe()


def test_the_device_bound_reads_two_thirds_and_writes_one():
    assert probes.device_gbps(read=4e12, write=4e12) == pytest.approx(4000)
    assert probes.device_gbps(read=4e12, write=2e12) == pytest.approx(3000)


def test_the_link_bound_overlaps_the_download_with_one_upload():
    seconds = 3 * 400e6 / (probes.link_gbps(to_device=55.4e9, both=100e9) * 1e9)
    assert seconds == pytest.approx(400e6 / 50e9 + 400e6 / 55.4e9)


def test_a_link_with_independent_directions_is_bound_by_its_uploads():
    assert probes.link_gbps(to_device=50e9, both=200e9) == pytest.approx(75)


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
    """A probe that lay in memory that the link reaches slowly does not bound the cells behind a better one."""
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
    held, seconds, rates = (np.array(found[key]) for key in ("bytes", "seconds", "rate"))
    assert (np.diff(held[held > 0]) > 0).all()
    assert idle / 2 < seconds[0] < 3 * idle
    assert seconds[-1] > 2 * seconds[0]
    assert rates[-1] > 10 * rates[0]
    np.testing.assert_allclose(held * facts["multiprocessors"], seconds * rates, rtol=1e-6)  # Little's law


@pytest.mark.gpu
def test_a_block_starts_sooner_than_a_kernel(gpu):
    launch = _core.probe("launches", gpu)
    assert 0 < launch["block"] < 1e-7
    assert 0 < launch["node"] < 2e-5
    assert launch["block"] < launch["turnaround"] < launch["queued"] < 2e-5
    assert probes.probe_launch(gpu)["kernel_seconds"] < 1e-4

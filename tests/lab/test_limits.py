"""The probes of a GPU: what they measure is in order, and a call that fails leaves nothing behind."""

from contextlib import suppress

import numpy as np
import pytest

from vecadd import _core
from vecadd.bench import limits
from vecadd.bench.sweeps import ON_DEVICE, ON_THE_WAY, Machine, transfer

pytestmark = pytest.mark.no_native

UNKNOWN = 999
MIB = 1 << 20

PROBES = {
    "device_limits": lambda: _core.device_limits(0, 4 * MIB, 1),
    "link_limits": lambda: _core.link_limits(0, MIB, 1),
    "device_latency": lambda: _core.device_latency(0),
    "loaded_latency": lambda: _core.loaded_latency(0, 32 * MIB, 1),
    "launch_limits": lambda: _core.launch_limits(0),
}
# Which the double's clock cannot resolve, where nothing takes time.
DIFFERENCES = ("block", "turnaround", "queued", "node", "job", "fresh_node")
DIFFERENCES += ("waiting", "triggering", "triggering_node", "triggering_block", "released")
LONG = ("device_latency", "launch_limits")  # of which tests/c/kernels/test_probes.c fails many more calls
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


@pytest.mark.parametrize("probe", [_core.device_latency, _core.launch_limits])
def test_a_probe_names_the_devices_that_there_are(probe, device):
    with pytest.raises(ValueError, match="at least 0"):
        probe(-1)
    with pytest.raises(ValueError, match="this process sees"):
        probe(99)
    with pytest.raises(TypeError):
        probe("cuda:0")


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


@pytest.mark.parametrize("probe", PROBES.values(), ids=PROBES)
def test_every_call_of_a_probe_is_seen_to_fail(probe, device, double):
    for call in ("cudaStreamCreateWithFlags", "cudaStreamSynchronize", "cudaEventRecord"):
        double.reset(0)
        double.fail(call, 1, UNKNOWN, False)
        with pytest.raises(RuntimeError, match=str(UNKNOWN)):
            probe()


def test_a_run_keeps_what_the_probes_found(device, monkeypatch):
    monkeypatch.setattr(limits, "LINK_BYTES", 1 << 20)
    monkeypatch.setattr(limits, "DEVICE_CACHES", 1)
    machine = Machine()
    machine.probe(*ON_DEVICE, "link_limit")
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
    assert machine.link_limit == machine.probed["link"]["gbps"]


def test_a_transfers_run_keeps_the_links_rates_and_how_soon_threads_wake(device, monkeypatch):
    monkeypatch.setattr(limits, "LINK_BYTES", 64 << 10)
    monkeypatch.setattr(limits, "HOST_ARRAYS", (4 << 10, 16 << 10))
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
    probes = iter([*ahead, (45.0, 55.0, 100.0), (1.0, 1.0, 1.0)])

    def probe(device):
        found = next(probes)
        if isinstance(found, MemoryError):
            raise found
        return dict(zip(("to_device_gbps", "to_host_gbps", "both_gbps", "gbps"), (*found, 0.0), strict=True))

    monkeypatch.setattr(limits, "probe_link", probe)
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
    found = _core.thread_probe_limits()
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
    latency = _core.device_latency(gpu)
    rates = _core.device_limits(gpu, 8 * _core.gpu_facts()[gpu]["l2"], 5)
    assert latency["l1"] < latency["l2"] < latency["dram"] < 5e-6
    assert latency["dram"] < 1.5 * latency["stream"] < 5e-6
    assert rates["l2_read"] > rates["read"]


@pytest.mark.gpu
def test_the_rate_and_the_latency_of_the_memory_grow_with_the_bytes_in_flight(gpu):
    facts = _core.gpu_facts()[gpu]
    found = _core.loaded_latency(gpu, 8 * facts["l2"], 5)
    idle = _core.device_latency(gpu)["dram"]
    held, seconds, rates = (np.array(found[key]) for key in ("bytes", "seconds", "rate"))
    assert (np.diff(held[held > 0]) > 0).all()
    assert idle / 2 < seconds[0] < 3 * idle
    assert seconds[-1] > 2 * seconds[0]
    assert rates[-1] > 10 * rates[0]
    np.testing.assert_allclose(held * facts["multiprocessors"], seconds * rates, rtol=1e-6)  # Little's law


@pytest.mark.gpu
def test_a_block_starts_sooner_than_a_kernel(gpu):
    launch = _core.launch_limits(gpu)
    assert 0 < launch["block"] < 1e-7
    assert 0 < launch["node"] < 2e-5
    assert launch["block"] < launch["turnaround"] < launch["queued"] < 2e-5
    assert limits.probe_launch(gpu)["kernel_seconds"] < 1e-4

"""vecadd check --soak: memory is filled and looked through, and what flips a bit, slows down or is full is told."""

import itertools
import threading
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from checks import Check, hide_gpus, make_quick
from cuda_failures import CUDA_CALLS, ILLEGAL_ADDRESS

from vecadd import _core
from vecadd.check import measure, soak
from vecadd.check.measure import Measured
from vecadd.check.soak import PATTERNS, Part
from vecadd.figures import Figure

pytestmark = pytest.mark.no_native

BRIEF = 1e-4  # minutes: each pattern once


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory that the double has time for."""
    monkeypatch.setattr(soak, "CHUNK", 1 << 14)
    monkeypatch.setattr(soak, "MARGIN", 1 << 16)
    monkeypatch.setattr(soak._machine, "memory_available", lambda: 100_000)


def soaked(gpus: int, memory: str) -> dict[str, Figure]:
    found, interrupted = soak.soak(gpus, BRIEF, memory, lambda text: None)
    assert not interrupted
    return {finding.name: finding for finding in found}


def fill(double: Any, nbytes: int) -> None:
    """Leaves that many bytes of the first device's memory free."""
    _core.release()
    left, whole = _core.device_memory(0)
    double.capacity(whole - left + nbytes)


def test_all_free_memory_but_a_margin_is_soaked(second_device: int, double: Any) -> None:
    fill(double, 200_000)
    left, whole = zip(*(_core.device_memory(gpu) for gpu in (0, 1)), strict=True)
    found = soaked(2, "device")
    assert list(found) == ["soak/gpu 0/memory", "soak/gpu 0/rate", "soak/gpu 1/memory", "soak/gpu 1/rate"]
    for gpu in (0, 1):
        memory = found[f"soak/gpu {gpu}/memory"]
        assert (memory.severity, memory.value, memory.next) == ("pass", 0, "")
        nbytes = (left[gpu] - max(1 << 16, int(soak.MARGIN_SHARE * whole[gpu]))) // 8 * 8
        assert memory.meaning.startswith(f"5 passes of 5 patterns in turn over {nbytes / 2**30:.4g} GiB")
        assert found[f"soak/gpu {gpu}/rate"].severity == "pass"


def test_a_share_of_all_of_a_gpus_memory_is_left_free_and_not_of_what_is_free(
    device: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(soak._core, "device_memory", lambda gpu: (1_000_000, 10_000_000))
    assert sum(array.nbytes for array in soak._arrays(Part("gpu 0", device))) == 700_000


def test_half_of_the_hosts_memory_is_soaked() -> None:
    found = soaked(0, "both")
    assert list(found) == ["soak/host/memory", "soak/host/rate"]
    assert f"over {50_000 / 2**30:.4g} GiB: every word was found as written" in found["soak/host/memory"].meaning


@pytest.mark.parametrize("where", ["device", "host"])
def test_a_bit_that_flips_is_told_by_its_address(
    device: int, double: Any, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    fill(double, 200_000)
    real, flipped = _core.pattern_write, {}

    def write(x: Any, pattern: str, seed: int) -> float:
        """Between the writing and the look a bit of the third pattern's first array flips."""
        seconds = real(x, pattern, seed)
        if pattern == "walking one" and not flipped:
            words = x if where == "host" else x.numpy()
            address = x.ctypes.data if where == "host" else x.__cuda_array_interface__["data"][0]
            flipped.update(address=address + 8 * 77, before=int(words[77]), after=int(words[77]) ^ 1 << 40)
            if where == "host":
                x[77] = flipped["after"]
            else:
                double.device_write(flipped["address"], flipped["after"].to_bytes(8, "little"))
        return seconds

    monkeypatch.setattr(soak._core, "pattern_write", write)
    name = "gpu 0" if where == "device" else "host"
    memory = soaked(1, where)[f"soak/{name}/memory"]
    assert (memory.severity, memory.value) == ("critical", 1)
    assert (
        f"1 words were wrong; the first in pass 3 (walking one) at address {flipped['address']:#x}: "
        f"{flipped['before']:#018x} was written and {flipped['after']:#018x} found, bit 40." in memory.meaning
    )
    assert memory.next.startswith("Take the machine out of service")


def test_a_gpu_that_others_fill_is_unknown(device: int, double: Any) -> None:
    fill(double, 1 << 15)
    (finding,) = soaked(1, "device").values()
    assert (finding.name, finding.severity, finding.value) == ("soak/gpu 0/memory", "unknown", None)
    assert "bytes of the GPU's memory are free: other work uses the rest" in finding.meaning


def test_a_gpu_that_fails_on_the_way_is_critical(device: int, double: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(double, 200_000)
    real, calls = _core.pattern_check, []

    def check(*arguments: Any) -> Any:
        calls.append(None)
        if len(calls) == 20:
            raise RuntimeError("it fell off the bus")
        return real(*arguments)

    monkeypatch.setattr(soak._core, "pattern_check", check)
    memory = soaked(1, "device")["soak/gpu 0/memory"]
    assert memory.severity == "critical"
    assert memory.meaning.endswith("Then it failed: RuntimeError: it fell off the bus")


LOST, FULL, DENIED = "DeviceLostError: it fell off the bus", "MemoryError: 8 bytes", "OSError: it may not be asked"
WRONG: dict[str, Any] = {"nbytes": 1 << 30, "wrong": 3, "first": "the first in pass 1 (address)"}
TOLD = "3 words were wrong; the first in pass 1 (address). Then it failed: "


@pytest.mark.parametrize(
    ("part", "severity", "value", "meaning"),
    [
        (WRONG | {"failure": LOST}, "critical", 3, TOLD + LOST),
        (WRONG | {"failure": FULL}, "critical", 3, TOLD + FULL),
        ({"failure": LOST}, "critical", None, f"It failed before the first pattern was through: {LOST}"),
        # What says nothing of the memory leaves it unknown.
        ({"failure": FULL}, "unknown", None, f"the soak could not run: {FULL}."),
        ({"failure": DENIED}, "unknown", None, f"the soak could not run: {DENIED}."),
        ({}, "unknown", None, "it was interrupted before the first pattern was through."),
    ],
)
def test_a_soak_that_ends_in_its_first_pass_is_told_by_its_reason(
    part: dict[str, Any], severity: str, value: int | None, meaning: str
) -> None:
    (memory,) = soak._figures(Part("gpu 0", 0, **part))
    assert (memory.severity, memory.value) == (severity, value)
    assert memory.next.startswith("Take the machine out" if severity == "critical" else "End other work")
    assert memory.meaning.endswith(meaning)


def test_an_error_is_known_by_the_kind_that_it_is_of(monkeypatch: pytest.MonkeyPatch) -> None:
    def arrays(part: Part) -> Any:
        raise PermissionError("it may not be asked")

    monkeypatch.setattr(soak, "_arrays", arrays)
    assert soaked(0, "host")["soak/host/memory"].severity == "unknown"


def test_patterns_go_round_with_another_seed_until_the_soak_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[tuple[str, int]] = []

    def write(x: Any, pattern: str, seed: int) -> float:
        written.append((pattern, seed))
        return 1.0

    clock = itertools.count()  # a second passes from look to look, and none is taken before each pattern is through
    monkeypatch.setattr(soak._core, "pattern_write", write)
    monkeypatch.setattr(soak._core, "pattern_check", lambda *arguments: (1.0, 0, 0, []))
    monkeypatch.setattr(soak, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    part = Part("host", None)
    soak._soak_part(part, 2.0, threading.Event())
    assert (part.passes, part.failure) == (7, None)
    assert list(dict.fromkeys(written)) == [*((name, 0) for name in PATTERNS), (PATTERNS[0], 1), (PATTERNS[1], 1)]


def test_of_several_wrong_words_the_first_is_told_and_all_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = itertools.count(2)
    monkeypatch.setattr(soak._core, "pattern_write", lambda *arguments: 1.0)
    monkeypatch.setattr(soak._core, "pattern_check", lambda *arguments: (1.0, 3, 0x1000, [(next(wrong), 1, 7)]))
    part = Part("host", None)
    for _ in range(2):
        soak._pass(part, [np.zeros(8, np.uint64)] * 2)
    assert part.wrong == 12
    assert part.first == (
        "the first in pass 1 (address) at address 0x1010: 0x0000000000000001 was written and 0x0000000000000007 "
        "found, bits 1, 2"
    )


# Rates over time


def rate(rates: list[float], clocks: list[float | None]) -> Figure:
    part = Part("gpu 0", 0, nbytes=1 << 30, passes=5)
    for at, (each, clock) in enumerate(zip(rates, clocks, strict=True)):
        part.moved(int(each * 1e9), 1.0)
        part.point(float(at), {"clock MHz": clock})
        part.point(float(at), {})
    return list(soak._figures(part))[1]


def test_a_rate_that_stays_passes() -> None:
    """If no work was done since the last point, no point is recorded."""
    found = rate([100.0, 98.0, 99.0, 101.0], [None] * 4)
    assert (found.severity, found.value, found.interval) == ("pass", 99.5, (98.0, 101.0))
    assert found.more["series"] == [
        {"at": float(at), "GB/s": each, "clock MHz": None} for at, each in enumerate([100.0, 98.0, 99.0, 101.0])
    ]


def test_a_clock_that_falls_shows() -> None:
    found = rate([100.0] * 5 + [70.0] * 5, [1980.0] * 5 + [1400.0] * 5)
    assert found.severity == "warning"
    assert found.meaning.endswith("It fell by 30 %. The clock went from 1980 to 1400 MHz.")


def test_the_hosts_rate_may_vary_more_and_its_first_writing_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    assert rate([100.0] * 5 + [85.0] * 5, [None] * 10).severity == "warning"
    part = Part("host", None, nbytes=8, passes=5)
    for each in [100.0] * 5 + [85.0] * 5:
        part.moved(int(each * 1e9), 1.0)
        part.point(0.0, {})
    assert list(soak._figures(part))[1].severity == "pass"

    fresh = Part("host", None)
    arrays = list(soak._arrays(fresh))
    monkeypatch.setattr(soak._core, "pattern_write", lambda *arguments: 2.0)
    monkeypatch.setattr(soak._core, "pattern_check", lambda *arguments: (1.0, 0, 0, []))
    for seconds in (1.0, 1.0 + 3.0):  # the look of the first pass; then both of the second
        soak._pass(fresh, arrays)
        assert fresh._moved[1] == seconds * len(arrays)


@pytest.mark.parametrize(("minutes", "seconds"), [(1, 1.0), (60, 30.0)])
def test_the_whole_soak_has_120_points_and_none_sooner_than_a_second(
    minutes: float, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = []
    monkeypatch.setattr(soak, "_soak_part", lambda *arguments: None)
    monkeypatch.setattr(soak, "_watch", lambda parts, running, begin, step, tell: steps.append(step))
    soak.soak(0, minutes, "host", lambda text: None)
    assert steps == [seconds]


def test_a_point_has_what_nvidia_smi_says_of_that_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its order is another than CUDA's, and it leaves out what a driver does not say."""
    buses = [{"index": "0", "pci.bus_id": "00000000:9A:00.0"}, {"index": "1", "pci.bus_id": "00000000:18:00.0"}]
    seen = [
        {"index": "0", "clocks.sm": "1980", "power.draw": "ERR!"},
        {"index": "1", "clocks.sm": "1400", "clocks.mem": "3201", "temperature.gpu": "61", "power.draw": "512.5"},
    ]
    monkeypatch.setattr(
        soak._machine, "query_nvidia_smi", lambda what, *fields: buses if "pci.bus_id" in fields else seen
    )
    facts = [{"pci_domain": 0, "pci_bus": bus, "pci_device": 0} for bus in (0x18, 0x9A)]
    monkeypatch.setattr(soak._core, "gpu_facts", lambda: facts)
    monkeypatch.setattr(soak, "time", SimpleNamespace(monotonic=lambda: 100.0))
    parts = [Part("gpu 0", 0, passes=3), Part("gpu 1", 1, failure="it fell off the bus"), Part("host", None, passes=4)]
    for part in parts:
        part.moved(int(4e9), 2.0)
    running: Future[None] = Future()
    told = []

    def tell(text: str) -> None:
        told.append(text)
        running.set_result(None)

    soak._watch(parts, [running], 10.0, 0.001, tell)
    assert [part.series for part in parts] == [
        [{"at": 90.0, "GB/s": 2.0, "clock MHz": 1400.0, "memory clock MHz": 3201.0, "°C": 61.0, "W": 512.5}],
        [{"at": 90.0, "GB/s": 2.0, "clock MHz": 1980.0, "W": None}],
        [{"at": 90.0, "GB/s": 2.0}],
    ]
    assert told == ["soak for 1.5 minutes: 3 passes"]


# The command


def test_a_gpu_that_is_lost_before_the_soak_fails_the_check_and_leaves_the_hosts_soak(
    device: int, double: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def host(measured: Measured, time: Any, gpu: int) -> None:
        measured.add("host", "add 2^14", 100.0)

    def lose(*arguments: Any) -> None:
        for call in CUDA_CALLS:
            double.fail(call, status=ILLEGAL_ADDRESS, forever=True)

    make_quick(monkeypatch)
    monkeypatch.setattr(measure, "MEASUREMENTS", {"host": host})
    monkeypatch.setattr(measure, "repeat_failed", lose)
    status, content = Check(tmp_path)("--soak", str(BRIEF))
    assert (status, content["status"]) == (1, "failed")
    severities = {each["id"]: each["severity"] for each in content["findings"]}
    assert (severities["soak/gpu 0/memory"], severities["soak/host/memory"]) == ("critical", "pass")


def test_the_command_soaks_after_its_rounds_and_an_interrupt_keeps_what_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def host(measured: Measured, time: Any, gpu: int) -> None:
        measured.add("host", "add 2^14", 100.0)

    def watch(parts: Any, running: Any, *rest: Any) -> None:
        while any(part.passes < len(PATTERNS) for part in parts):
            pass
        raise KeyboardInterrupt

    hide_gpus(monkeypatch)
    monkeypatch.setattr(measure, "MEASUREMENTS", {"host": host})
    monkeypatch.setattr(soak, "_watch", watch)
    status, content = Check(tmp_path)("--soak", "60", "--soak-memory", "host")
    assert (status, content["machine"]["interrupted"], content["status"]) == (130, True, "passed")
    (memory,) = (each for each in content["findings"] if each["id"] == "soak/host/memory")
    assert memory["value"] == 0

"""vecadd.why on a GPU: additions through it are recorded with their route and replayed, those on it are set beside the
GPU's limit."""

from collections.abc import Iterator
from math import inf
from typing import Any

import numpy as np
import pytest

import vecadd
from vecadd import _core
from vecadd.why import diagnosis, recording, replay
from vecadd.why.diagnosis import AT_LIMIT, GAP, UNKNOWN, USE_PLAN, Change
from vecadd.why.layout import Layout
from vecadd.why.recording import AdditionGroup
from vecadd.why.replay import Form

N = 50_000  # float32: 200 KB


@pytest.fixture(autouse=True)
def with_a_device(runtime: str | None) -> None:
    if runtime is None:
        pytest.skip("needs a GPU or the CUDA-runtime double")


@pytest.fixture
def record() -> Iterator[Any]:
    """record(f): the one addition that f makes."""

    def only(work: Any) -> AdditionGroup:
        recording.start()
        try:
            work()
        finally:
            found = recording.stop()
        (group,) = found.groups
        return group

    return only


def host(make: Any = np.ones) -> Any:
    return [make(N, np.float32) for _ in range(3)]


def shows(name: str, group: AdditionGroup) -> bool:
    (reason,) = (reason for reason in diagnosis.REASONS if reason.name == name)
    return reason.find_evidence(group) is not None


def test_operands_in_ordinary_memory_are_a_pageable_copy(record: Any) -> None:
    a, b, out = host()
    found = record(lambda: vecadd.add(a, b, out, device="cuda"))
    assert (found.via, found.device, found.nbytes) == ("add", "cuda", 3 * a.nbytes)
    assert (found.route["route"], found.route["memory"]) == ("transfer", "ordinary")
    assert shows("a pageable copy", found)
    assert not shows("one thread", found)


def test_page_locked_operands_are_none(record: Any) -> None:
    a, b, out = host(vecadd.empty_pinned)
    found = record(lambda: vecadd.add(a, b, out, device="cuda"))
    assert found.route["memory"] == "pinned"
    assert not shows("a pageable copy", found)


def test_a_transfer_is_replayed_through_the_gpu_from_both_kinds_of_memory() -> None:
    layout = Layout(np.dtype("float32"), (N,), (4,), 1 << 50)
    other = Layout(np.dtype("float32"), (N,), (4,), 2 << 50)
    was = Form(layout, layout, other, "add", device="cuda")
    (reason,) = (reason for reason in diagnosis.REASONS if reason.name == "a pageable copy")
    before = vecadd.memory_stats()["pinned_bytes"]
    found = replay.replay({"was": was, "mended": reason.mend(was)}, 1)
    assert found["was"].warm > 0
    assert found["mended"].warm > 0
    assert vecadd.memory_stats()["pinned_bytes"] == before


@pytest.mark.parametrize("form", ["new", "out", "number"])
def test_an_addition_on_a_device_is_recorded_with_its_bytes(form: str, record: Any) -> None:
    x, y, out = (vecadd.to_device(each) for each in host())
    calls = {"new": lambda: vecadd.add(x, y), "out": lambda: vecadd.add(x, y, out), "number": lambda: vecadd.add(x, 1)}
    found = record(calls[form])
    assert (found.route["route"], found.new) == ("device", form != "out")
    assert found.nbytes == (2 if form == "number" else 3) * x.nbytes


def test_calls_that_take_longer_than_the_gpu_needs_are_a_gap(record: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of three calls is set beside the time of its own bytes."""
    x, y, out = (vecadd.to_device(each) for each in host())
    group = record(lambda: [vecadd.add(x, y, out) for _ in range(3)])
    rate = 3 * x.nbytes / group.typical  # at which the GPU adds as long as the calls take
    monkeypatch.setattr(replay, "device_rate", {0: 10 * rate}.__getitem__)
    found = diagnosis.diagnose(group)
    assert (found.reason, found.limit) == (GAP, pytest.approx(group.typical / 10))
    assert found.changes == (Change(GAP, found.evidence, USE_PLAN, None),)
    monkeypatch.setattr(replay, "device_rate", {0: rate}.__getitem__)
    assert diagnosis.diagnose(group).reason == AT_LIMIT


@pytest.mark.laboratory
def test_the_rates_of_the_gpu_and_its_link_are_probed() -> None:
    for rate in (replay.device_rate(0), replay.link_rate(0)):
        assert rate is not None
        assert 0 < rate < inf


def test_without_the_laboratory_no_limit_is_told_and_no_gap(record: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_core, "LAB_BUILD", False)
    for rate in (replay.device_rate, replay.link_rate):
        monkeypatch.setattr(replay, rate.__name__, rate.__wrapped__)  # type: ignore[attr-defined]
    x, y, out = (vecadd.to_device(each) for each in host())
    found = diagnosis.diagnose(record(lambda: vecadd.add(x, y, out)))
    assert (found.reason, found.limit, found.changes) == (UNKNOWN, None, ())
    assert found.evidence == "this build has no probe of what the GPU allows"
    a, b, out = host()
    assert diagnosis.diagnose(record(lambda: vecadd.add(a, b, out, device="cuda"))).limit is None


def test_where_cuda_fails_the_reason_is_not_known(record: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(number: int) -> float:
        raise RuntimeError("out of order")

    x, y, out = (vecadd.to_device(each) for each in host())
    group = record(lambda: vecadd.add(x, y, out))
    monkeypatch.setattr(replay, "device_rate", fails)
    found = diagnosis.diagnose(group)
    assert (found.reason, found.evidence) == (UNKNOWN, "it could not be replayed: out of order")

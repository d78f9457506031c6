"""vecadd.why on a GPU: additions through it and on it are noted with their route, and rehearsed there."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import vecadd
from vecadd.why import device, noted, reasons, rehearsal
from vecadd.why.device import DeviceTimes
from vecadd.why.layout import Layout
from vecadd.why.noted import Noted
from vecadd.why.reasons import AT_LIMIT, GAP, UNKNOWN
from vecadd.why.rehearsal import Form

N = 50_000  # float32: 200 KB


@pytest.fixture(autouse=True)
def with_a_device(runtime: str | None) -> None:
    if runtime is None:
        pytest.skip("needs a GPU or the CUDA-runtime double")


@pytest.fixture
def watch() -> Iterator[Any]:
    """watch(f): the one addition that f makes."""

    def only(work: Any) -> Noted:
        noted.start()
        try:
            work()
        finally:
            found = noted.stop()
        (addition,) = found.additions
        return addition

    return only


def host(make: Any = np.ones) -> Any:
    return [make(N, np.float32) for _ in range(3)]


def test_operands_in_ordinary_memory_are_a_pageable_copy(watch: Any) -> None:
    a, b, out = host()
    found = watch(lambda: vecadd.add(a, b, out, device="cuda"))
    assert (found.via, found.device, found.nbytes) == ("add", "cuda", 3 * a.nbytes)
    assert (found.route["route"], found.route["memory"]) == ("transfer", "ordinary")
    assert shows("a pageable copy", found)
    assert not shows("one thread", found)


def test_page_locked_operands_are_none(watch: Any) -> None:
    a, b, out = host(vecadd.empty_pinned)
    found = watch(lambda: vecadd.add(a, b, out, device="cuda"))
    assert found.route["memory"] == "pinned"
    assert not shows("a pageable copy", found)


def shows(name: str, addition: Noted) -> bool:
    (reason,) = (reason for reason in reasons.REASONS if reason.name == name)
    return reason.shows(addition) is not None


def test_a_transfer_is_rehearsed_through_the_gpu_from_both_kinds_of_memory() -> None:
    layout = Layout(np.dtype("float32"), (N,), (4,), 1 << 50)
    other = Layout(np.dtype("float32"), (N,), (4,), 2 << 50)
    was = Form(layout, layout, other, "add", device="cuda")
    (reason,) = (reason for reason in reasons.REASONS if reason.name == "a pageable copy")
    held = vecadd.memory_stats()["pinned_bytes"]
    found = rehearsal.rehearse({"was": was, "mended": reason.mended(was)})
    assert found["was"].warm > 0
    assert found["mended"].warm > 0
    assert vecadd.memory_stats()["pinned_bytes"] == held


@pytest.mark.parametrize("form", ["new", "out", "number"])
def test_an_addition_on_a_device_is_noted_with_its_bytes(form: str, watch: Any) -> None:
    x, y, out = (vecadd.to_device(each) for each in host())
    calls = {"new": lambda: vecadd.add(x, y), "out": lambda: vecadd.add(x, y, out), "number": lambda: vecadd.add(x, 1)}
    found = watch(calls[form])
    assert (found.route["route"], found.new) == ("device", form != "out")
    assert found.nbytes == (2 if form == "number" else 3) * x.nbytes


def on_device(watch: Any) -> Noted:
    x, y, out = (vecadd.to_device(each) for each in host())
    addition: Noted = watch(lambda: vecadd.add(x, y, out))
    return addition


def test_a_call_that_takes_longer_than_the_gpu_is_a_gap(watch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    noted_addition = on_device(watch)
    taken = noted_addition.typical
    monkeypatch.setattr(device, "rehearse", lambda nbytes, number: DeviceTimes(taken, taken / 3, taken / 10))
    found = reasons.find(noted_addition)
    assert found.reason == GAP
    assert found.change is not None
    assert found.change.gain == pytest.approx(3)  # a ratio of two ratios
    monkeypatch.setattr(device, "rehearse", lambda nbytes, number: DeviceTimes(taken, taken / 3, taken))
    assert reasons.find(noted_addition).reason == AT_LIMIT


def test_what_is_rehearsed_on_a_device_is_one_call_of_several(watch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def rehearse(nbytes: int, number: int) -> DeviceTimes:
        asked.append((nbytes, number))
        return DeviceTimes(1.0, 1.0, 1.0)

    monkeypatch.setattr(device, "rehearse", rehearse)
    x, y, out = (vecadd.to_device(each) for each in host())
    reasons.find(watch(lambda: [vecadd.add(x, y, out) for _ in range(3)]))
    assert asked == [(3 * x.nbytes, 0)]


def test_a_rehearsal_adds_as_many_bytes_there(watch: Any, double: Any) -> None:
    before = vecadd.memory_stats()["device_bytes"]
    found = device.rehearse(3 * 4 * N, 0)
    assert min(found.added, found.planned, found.busy) > 0
    assert vecadd.memory_stats()["device_bytes"] == before


def test_where_cuda_fails_the_reason_is_not_known(watch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(nbytes: int, number: int) -> DeviceTimes:
        raise RuntimeError("out of order")

    addition = on_device(watch)
    monkeypatch.setattr(device, "rehearse", fails)
    found = reasons.find(addition)
    assert (found.reason, found.evidence) == (UNKNOWN, "it could not be rehearsed: out of order")

"""vecadd.why.replay and layout: the same addition again, on arrays with the same strides and offsets, and its times."""

import errno
import mmap
import re
import resource
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from test_why_diagnosis import SHOWING, layout_of

from vecadd import _core
from vecadd.why import diagnosis, layout, replay
from vecadd.why.layout import Layout, allocate_like, allocate_untouched, compact, moved_apart
from vecadd.why.replay import Form, ReplayTimes

pytestmark = pytest.mark.no_native

X, Y = np.ones(1 << 14), np.ones(1 << 14)


# --- arrays


@pytest.mark.parametrize(
    "take",
    [
        lambda x: (x, x),
        lambda x: (x[1:], x[:-1]),
        lambda x: (x[::2], x[1::2]),
        lambda x: (x[::-1], x),
        lambda x: (x.reshape(10, -1).T, x[:50]),
        lambda x: (x, np.ones(7)),
    ],
    ids=["same", "shifted", "interleaved", "reversed", "transposed", "apart"],
)
def test_arrays_are_made_with_these_layouts(take: Any) -> None:
    given = take(np.arange(1000.0))
    remade = allocate_like([layout_of(x) for x in given])
    for x, y in zip(given, remade, strict=True):
        assert (x.dtype, x.shape, x.strides) == (y.dtype, y.shape, y.strides)
        assert x.ctypes.data % mmap.PAGESIZE == y.ctypes.data % mmap.PAGESIZE
        assert not y.any()
    assert np.shares_memory(*given) == np.shares_memory(*remade)
    if np.may_share_memory(*given):
        assert given[0].ctypes.data - given[1].ctypes.data == remade[0].ctypes.data - remade[1].ctypes.data


def test_arrays_moved_apart_begin_as_far_into_a_page_as_numpys_new_ones() -> None:
    new = np.empty(layout.MAPPED, np.uint8).ctypes.data % mmap.PAGESIZE
    given, backwards = layout_of(X[3::2]), layout_of(X[::-1])
    mended, reverse = allocate_like([moved_apart(compact(given), 1), moved_apart(backwards, 2)])
    untouched = allocate_untouched(given)
    assert mended.ctypes.data % mmap.PAGESIZE == new
    assert (reverse.ctypes.data - (X.size - 1) * 8) % mmap.PAGESIZE == new
    assert (untouched.ctypes.data - given.address) % mmap.PAGESIZE == 0


@pytest.mark.parametrize(("nbytes", "huge"), [(3 << 20, False), (8 << 20, True)])
def test_arrays_have_the_pages_that_numpy_asks_for(nbytes: int, huge: bool) -> None:
    wanted = Layout(np.dtype("u1"), (nbytes,), (1,), 1 << 50)
    for array in (*allocate_like([wanted]), allocate_untouched(wanted)):
        flags, found = "", False
        for line in Path("/proc/self/smaps").read_text().splitlines():
            if match := re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line):
                found = int(match[1], 16) <= array.ctypes.data + nbytes // 2 < int(match[2], 16)
            elif found and line.startswith("VmFlags"):
                flags = line
        assert ("hg" in flags.split()) is huge


def test_pages_are_written_but_those_that_are_asked_for_untouched() -> None:
    def faults(array: Any) -> int:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        array.fill(1)
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

    wanted = Layout(np.dtype("u1"), (64 << 20,), (1,), 1 << 50)
    assert faults(allocate_like([wanted])[0]) < 16 <= faults(allocate_untouched(wanted))  # 32 huge pages


class WithoutHugePages(mmap.mmap):
    """Memory of a kernel that was built without huge pages."""

    def madvise(self, *advice: int) -> None:
        raise OSError(errno.EINVAL, "Invalid argument")


def test_a_kernel_without_huge_pages_has_arrays_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mmap, "mmap", WithoutHugePages)
    wanted = Layout(np.dtype("f8"), (layout.HUGE_FROM // 8,), (8,), 0x1000)
    for array in (allocate_untouched(wanted), *allocate_like([wanted])):
        array += 1
        assert array.shape == wanted.shape


# --- times


@pytest.mark.parametrize("name", list(SHOWING)[1:])
def test_every_form_can_be_replayed(name: str) -> None:
    """With the real clock: each takes some time, and leaves NumPy's loops as they were."""
    group = SHOWING[name]
    was = Form(group.a, group.b, group.out, untouched=diagnosis.is_faulted_in(group))  # type: ignore[arg-type]
    (mended,) = (reason.mend(was) for reason in diagnosis.REASONS if reason.name == name)
    found = replay.replay({"was": was, name: mended}, 10)
    assert list(found) == ["was", name]
    assert all(0 < times.warm <= times.cold for times in found.values())
    assert not _core.loop_counts()["installed"]


@pytest.fixture
def times(monkeypatch: pytest.MonkeyPatch) -> dict[Form, list[float]]:
    """times[form]: the seconds of its calls, one after the other, by a clock that is given here. Each block has six."""
    found: dict[Form, list[float]] = {}
    clock = [0.0]

    def time_call(self: Any) -> float:
        taken = found[self._form].pop(0)
        clock[0] += taken
        return taken

    monkeypatch.setattr(replay._Series, "_time_call", time_call)
    monkeypatch.setattr(replay, "time", SimpleNamespace(perf_counter=lambda: clock[0]))
    monkeypatch.setattr(replay, "BLOCK", 0.0)
    monkeypatch.setattr(replay, "SECONDS", 1e9)
    return found


def test_the_first_call_with_full_caches_is_cold_and_the_others_are_warm(times: dict[Form, list[float]]) -> None:
    form = Form(layout_of(X), float, layout_of(Y))
    times[form] = [x + turn for turn in range(replay.ROUNDS) for x in (9.0, 2.0, 2.0, 2.0, 2.0, 2.0)]
    assert replay.replay({"was": form}, 6)["was"] == ReplayTimes(warm=5.0, cold=12.0)  # of the median round
    assert ReplayTimes(1.0, 3.0).mix(0.25) == 1.5


def test_operands_that_no_cache_has_room_for_are_as_cold_as_warm(
    times: dict[Form, list[float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_core, "host_facts", lambda: {"l3": X.nbytes // 4})
    form = Form(layout_of(X), float, layout_of(Y))
    times[form] = [9.0, 1, 2, 3, 4, 5] * replay.ROUNDS
    assert replay.replay({"was": form}, 6)["was"] == ReplayTimes(3, 3)


def test_a_quick_form_has_more_rounds_than_a_slow_one_beside_it(
    times: dict[Form, list[float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, quick = (Form(layout_of(x), layout_of(Y), layout_of(Y)) for x in (X.astype("f4"), X))
    times[slow], times[quick] = [1.0] * 600, [0.1] * 600
    monkeypatch.setattr(replay, "SECONDS", 2 * 6 * 0.45)  # each has half of it, and a block has six calls
    found = replay.replay({"was": slow, "written": slow, "mended": quick}, 6)
    assert list(found) == ["was", "written", "mended"]
    assert (600 - len(times[slow]), 600 - len(times[quick])) == (6, 6 * 5)  # equal forms are replayed once


def test_no_more_calls_count_than_the_program_made(
    times: dict[Form, list[float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The calls after the first count, at least CALLS of them."""
    monkeypatch.setattr(replay, "CALLS", 3)
    monkeypatch.setattr(replay, "BLOCK", 20.0)
    form = Form(layout_of(X), float, layout_of(Y))
    for calls, warm in ((1, 3.5), (5, 2.5), (1000, 2.0)):
        times[form] = [9.0, 4.0, 3.0, 2.0, 1.0, 1.0] * replay.ROUNDS  # a block ends after the sixth
        assert replay.replay({"was": form}, calls)["was"] == ReplayTimes(warm, 9.0)


def test_forms_are_added_as_the_program_added_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """By numpy.add or vecadd.add, with a number of the same type, into new pages or the same sum."""
    asked: list[tuple[Any, ...]] = []
    kept: list[Any] = []

    def keep(array: Any) -> Any:
        kept.append(array)
        return array

    def add(a: Any, b: Any, out: Any) -> None:
        asked.append((type(b), _core.loop_counts()["installed"], out.ctypes.data))

    monkeypatch.setattr(np, "add", add)
    monkeypatch.setattr(_core, "add", lambda a, b, out, device: asked.append((device, out.ctypes.data)))
    form = Form(layout_of(X), float, layout_of(Y))

    def two_calls(form: Form) -> list[tuple[Any, ...]]:
        asked.clear()
        series = replay._Series(form, allocate_like([layout_of(X), layout_of(Y)]), 10)
        series._time_call()
        series._time_call()
        return list(asked)

    first, second = two_calls(form)
    assert first == second
    assert first[:2] == (float, False)
    assert [installed for _, installed, _ in two_calls(replace(form, installed=True))] == [True] * 2
    assert [device for device, _ in two_calls(replace(form, via="add", device="cpu"))] == ["cpu"] * 2
    monkeypatch.setattr(replay, "allocate_untouched", lambda layout: keep(allocate_untouched(layout)))
    assert [address for *_, address in two_calls(replace(form, untouched=True))] == [x.ctypes.data for x in kept]
    kept.clear()
    monkeypatch.setattr(_core, "empty_pinned", lambda *what: keep(np.empty(*what)))
    assert [address for *_, address in two_calls(replace(form, pinned=True))] == [kept[1].ctypes.data] * 2


# --- limits


@pytest.mark.parametrize(("mib", "probed"), [(6, 2), (96, 32), (240, 32)])
def test_the_limit_of_large_arrays_is_by_the_rate_of_the_largest_that_is_probed(
    mib: int, probed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of three arrays together, with a probe that takes 1 ns an element, and more in other rounds than the second."""
    more = iter([1.0, 0.0, 2.0])

    def probe(a: Any, b: Any, out: Any) -> Any:
        assert a.nbytes == b.nbytes == out.nbytes == probed << 20
        return a.size

    monkeypatch.setattr(_core, "host_limit", probe)
    monkeypatch.setattr(_core, "host_limit_round", lambda size: 1e-9 * size + next(more))
    assert replay.host_limit.__wrapped__(mib << 20) == pytest.approx(1e-9 * (mib << 20) / 3 / 4)


def test_the_limit_is_probed() -> None:
    assert replay.host_limit(3 << 16) > 0

"""vecadd bench: rounds, checks, limits and figures. Nothing wrong passes, and nothing measured is lost."""

import csv
import gc
import io
import itertools
import random
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vecadd import _core, _machine
from vecadd.bench import options, output, probes, timing
from vecadd.bench.contestants import Contestant, numpy_add
from vecadd.bench.operands import HOST, PERIOD_A, Buffers, Pattern, WrongSumError
from vecadd.bench.options import Options
from vecadd.bench.run import Machine, Session, Sweep
from vecadd.bench.sweeps import make_tables
from vecadd.bench.timing import Cell, Measurement, Samples, TimePredictor, paired_ratio
from vecadd.figures import Figure
from vecadd.model import theory
from vecadd.tables import show_size

pytestmark = pytest.mark.no_native

FLOAT32 = np.dtype("float32")
HOST_DTYPES = sorted({dtype for rung in _core.rungs() if rung["kind"] == "host" for dtype in rung["dtypes"]})


def contestant(name: str, add: Callable[[Any, Any, Any], object], seconds: float = 1e-3) -> Contestant:
    """One that does what `add` does and says that it took that long."""

    def time(sets: Any) -> float:
        for a, b, out, _ in sets:
            add(a, b, out)
        return seconds

    return Contestant(name, HOST, time)


def add_rightly(a: Any, b: Any, out: Any) -> None:
    np.add(a, b, out=out)


def cell(*contestants: Contestant, n: int = 1000, limit: float | None = None, **keywords: Any) -> Cell:
    return Cell(FLOAT32, n, contestants, limit, sets=1, **keywords)


def measured(*cells: Cell, seconds: float = 0.01) -> Session:
    running = Session(Options(seconds=seconds))
    running.measure([Sweep("host", lambda options, machine: iter(cells), "none")], lambda *progress: None)
    return running


def names(rows: list[Figure]) -> list[str]:
    return [row.name for row in rows]


# Options


@pytest.mark.parametrize(
    ("text", "sizes"), [("2^10", (1024,)), ("2**3,1e6", (8, 10**6)), (" 7 , 1.5e3", (7, 1500)), ("1e9", (10**9,))]
)
def test_sizes_are_read_as_people_write_them(text: str, sizes: tuple[int, ...]) -> None:
    assert options.parse_sizes(text) == sizes


def test_what_is_named_twice_is_measured_once() -> None:
    """Two rows of one name would be one figure to `vecadd compare`."""
    assert options.parse_sizes("1024,2^10,1e3") == (1024, 1000)
    assert options.parse_dtypes("int8,float32,int8") == ("int8", "float32")
    assert options.parse_rungs("add,numpy,add") == ("add", "numpy")


@pytest.mark.parametrize(("n", "text"), [(1024, "2^10"), (1 << 28, "2^28"), (1000, "1000"), (16, "16"), (1025, "1025")])
def test_sizes_are_shown_as_people_write_them(n: int, text: str) -> None:
    assert show_size(n) == text


# Operands and their check


@pytest.mark.parametrize("dtype", HOST_DTYPES)
def test_the_check_takes_numpys_sum_and_finds_one_wrong_bit(dtype: str) -> None:
    pattern = Pattern(options.find_dtype(dtype))
    (used,) = pattern.buffers(HOST, 1001, 1)
    np.add(used.a, used.b, out=used.out)
    pattern.check(HOST, used)
    used.out.view(np.uint8)[-1] ^= 1
    with pytest.raises(WrongSumError, match="element 1000 is"):
        pattern.check(HOST, used)


def test_minus_zero_is_not_zero() -> None:
    pattern = Pattern(FLOAT32)
    (used,) = pattern.buffers(HOST, 1000, 1)
    pattern._a[:], pattern._b[:] = 0.0, 0.0
    used.out[:] = -0.0
    with pytest.raises(WrongSumError):
        pattern.check(HOST, used)


def test_sets_have_different_values_and_patterns_go_on_past_their_period() -> None:
    first, second = Pattern(FLOAT32).buffers(HOST, PERIOD_A + 10, 2)
    assert not np.array_equal(first.a, second.a)
    np.testing.assert_array_equal(first.a[:10], first.a[PERIOD_A:])


@pytest.mark.parametrize(
    ("set_bytes", "cache", "memory", "sets"),
    [
        (12 << 10, 2 << 20, 1 << 30, theory.MOST_SETS),
        (1 << 20, 2 << 20, 1 << 30, 8),
        (100 << 20, 2 << 20, 1 << 30, 1),
        (1 << 20, 2 << 20, 3 << 20, 3),
        (1 << 20, 2 << 20, 0, 1),
    ],
)
def test_sets_rotate_past_the_cache_within_memory(set_bytes: int, cache: int, memory: int, sets: int) -> None:
    assert theory.rotating_sets(set_bytes, cache, memory) == sets


# Limits


@pytest.mark.parametrize("best", range(3))
def test_the_hosts_bound_is_its_probes_best_round_and_its_typical_way_the_median(
    best: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = [4e-6, 3e-6]
    seconds.insert(best, 1e-6)
    monkeypatch.setattr(_core, "host_limit", lambda *arrays: iter(seconds))
    monkeypatch.setattr(_core, "host_limit_round", next)
    limit = probes.HostLimit()
    limit.open({HOST.name: Pattern(FLOAT32).buffers(HOST, 1000, 1)})
    for _ in seconds:
        limit.round()
    limit.close()
    assert limit.gbps == pytest.approx(12.0)
    assert limit.typical == 3e-6


# Rounds


def test_every_round_has_every_contestant_and_the_limit_in_random_order() -> None:
    turns: list[str] = []

    class Watched(probes.Limit):
        def round(self) -> None:
            turns.append("limit")

    def watched(name: str) -> Contestant:
        return contestant(name, lambda a, b, out: (turns.append(name), add_rightly(a, b, out)))

    watching = Cell(FLOAT32, 10, [watched("x"), watched("y")], Watched(), sets=1)
    measurement = Measurement(watching, Pattern(FLOAT32), random.Random(1))
    measurement.run(seconds=1e-9)
    rounds = [tuple(turns[at : at + 3]) for at in range(2, len(turns), 3)]  # after the two warm-ups
    assert len(rounds) == timing.FEWEST_ROUNDS
    assert {tuple(sorted(turn)) for turn in rounds} == {("limit", "x", "y")}
    assert len(set(rounds)) > 1


def test_rounds_go_on_until_their_time_is_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = itertools.count()  # a second passes from look to look
    monkeypatch.setattr(timing, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    measurement = Measurement(cell(contestant("x", add_rightly)), Pattern(FLOAT32), random.Random(0))
    measurement.run(20)
    assert len(measurement.timed[0].seconds) == 20


def test_a_cell_may_ask_for_more_rounds_than_its_time_allows() -> None:
    asking = replace(cell(contestant("x", add_rightly)), min_rounds=timing.FEWEST_ROUNDS + 3)
    measurement = Measurement(asking, Pattern(FLOAT32), random.Random(0))
    measurement.run(1e-9)
    assert len(measurement.timed[0].seconds) == timing.FEWEST_ROUNDS + 3


def test_a_sample_of_a_slow_contestant_is_short() -> None:
    lengths: dict[str, set[int]] = {"slow": set(), "quick": set()}

    def timed(name: str, seconds: float) -> Contestant:
        def time(sets: Any) -> float:
            lengths[name].add(len(sets))
            for a, b, out, _ in sets:
                np.add(a, b, out=out)
            return seconds

        return Contestant(name, HOST, time)

    together = cell(timed("slow", timing.LONGEST_SAMPLE / 2), timed("quick", timing.SAMPLE / 100), n=10)
    assert measured(together).ok
    assert (max(lengths["slow"]), max(lengths["quick"])) == (2, 100)


def test_a_paired_ratio_is_of_times_of_the_same_round() -> None:
    """Times that rise and fall, each of them the other's own: sorted, all ratios would be 1."""
    ours, theirs = [1.0, 8.0, 2.0, 4.0], [8.0, 1.0, 4.0, 2.0]
    assert paired_ratio(Samples(numpy_add(), seconds=theirs), Samples(numpy_add(), seconds=ours)) == (0.125, 1.25, 8.0)
    late = paired_ratio(
        Samples(numpy_add(), seconds=theirs[:2]), Samples(numpy_add(), seconds=ours)
    )  # it failed in round 3
    assert late == (0.125, (8 + 0.125) / 2, 8.0)


# What goes wrong


WRONG: dict[str, Callable[[Any, Any, Any], object]] = {
    "nothing written": lambda a, b, out: None,
    "the tail forgotten": lambda a, b, out: np.add(a[:-1], b[:-1], out=out[:-1]),
    "the last bit": lambda a, b, out: np.add(a, b * np.float32(1 + 2**-23), out=out),
    "subtracted": lambda a, b, out: np.subtract(a, b, out=out),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_sum_is_a_failed_row_and_the_others_stay(name: str) -> None:
    """It has no value, but what was to be moved, and the limit."""
    both = contestant("wrong", WRONG[name]), contestant("right", add_rightly)
    wrong, right = measured(cell(*both, limit=50.0)).figures
    assert wrong == Figure("host", "wrong", "float32", 1000, bytes=12_000, limit=50.0, error=wrong.error)
    assert str(wrong.error).startswith("wrong result: element ")
    assert right.ok
    assert right.checked


def test_a_rung_that_is_right_only_at_first_is_caught() -> None:
    sizes = itertools.chain([1000] * 6, itertools.repeat(999))

    def tire(a: Any, b: Any, out: Any) -> None:
        n = next(sizes)
        np.add(a[:n], b[:n], out=out[:n])

    (row,) = measured(cell(contestant("tired", tire))).figures
    assert str(row.error).startswith("wrong result: element 999 is")


def test_predictions_do_not_scale_fixed_costs() -> None:
    calls: list[int] = []

    def time(sets: Any) -> float:
        calls.append(len(sets[0].out))
        return 1e-3 + len(sets[0].out) * 1e-8

    predicted = TimePredictor().seconds(Contestant("x", HOST, time), Pattern(FLOAT32), 1 << 24)
    assert predicted == pytest.approx((1 << 24) * 1e-8, rel=0.2)
    assert max(calls) <= 1 << 20


def test_predictions_leave_out_the_first_call_which_may_load_a_kernel() -> None:
    seen: set[int] = set()

    def time(sets: Any) -> float:
        n = len(sets[0].out)
        loading = 0.0 if n in seen else 1.0
        seen.add(n)
        return loading + n * 1e-6

    assert TimePredictor().seconds(Contestant("x", HOST, time), Pattern(FLOAT32), 1 << 16) == pytest.approx(0.065536)


def test_a_prediction_of_up_to_sixteen_times_as_many_elements_times_nothing() -> None:
    known = TimePredictor()
    never = Contestant("x", HOST, lambda sets: pytest.fail("timed"))
    known.note(never, FLOAT32, 1 << 12, 1e-6)
    assert known.seconds(never, Pattern(FLOAT32), 1 << 16) == 16e-6


@pytest.mark.parametrize("collects", [True, False])
def test_no_garbage_is_collected_within_a_round_and_then_again_as_before(collects: bool) -> None:
    seen = set()
    watching = contestant("x", lambda a, b, out: (seen.add(gc.isenabled()), add_rightly(a, b, out)))
    (gc.enable if collects else gc.disable)()
    try:
        Measurement(cell(watching), Pattern(FLOAT32), random.Random(0)).run(1e-9)
        assert (seen, gc.isenabled()) == ({False}, collects)
    finally:
        gc.enable()


@pytest.mark.parametrize(("on_gpu", "slept"), [(True, [0.3]), (False, [])])
def test_a_gpu_settles_after_its_memory_was_filled(
    on_gpu: bool, slept: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[float] = []
    monkeypatch.setattr(timing, "time", SimpleNamespace(perf_counter=itertools.count().__next__, sleep=told.append))
    there = replace(contestant("x", add_rightly), memory=replace(HOST, on_gpu=on_gpu))
    Measurement(cell(there), Pattern(FLOAT32), random.Random(0)).run(1)
    assert told == slept


def test_what_has_failed_is_not_inspected() -> None:
    def inspect(buffers: Buffers) -> dict[str, Any]:
        return {"seen": 1}

    wrong, right = measured(
        cell(
            *(
                replace(contestant(name, add), extra_params=inspect)
                for name, add in (("wrong", WRONG["subtracted"]), ("right", add_rightly))
            )
        )
    ).figures
    assert str(wrong.error).startswith("wrong result")
    assert ("seen" in wrong.params, right.params["seen"]) == (False, 1)


def test_a_cell_that_does_not_fit_is_left_out_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_machine, "memory_available", lambda: 10_000)
    running = measured(cell(contestant("x", add_rightly)))
    assert running.figures == []
    assert running.skipped == [
        "host float32 1000: needs 0.0 GiB of host memory, 0.0 GiB are free: choose at most 512 elements"
    ]


class OutOfMemoryError(RuntimeError):
    """PyTorch's and CuPy's have this name, and no common class with MemoryError."""


@pytest.mark.parametrize(
    ("error", "skipped", "failures"),
    [
        (MemoryError("8 GiB"), ["host float32 1000: out of memory: 8 GiB"], []),
        (OutOfMemoryError("8 GiB"), ["host float32 1000: out of memory: 8 GiB"], []),
        (RuntimeError("no probe"), [], ["host float32 1000: RuntimeError: no probe"]),
    ],
    ids=repr,
)
def test_a_cell_whose_limit_has_no_memory_or_fails_leaves_the_others(
    error: Exception, skipped: list[str], failures: list[str]
) -> None:
    class Broken(probes.Limit):
        def open(self, buffers: Mapping[str, Sequence[Buffers]]) -> None:
            raise error

    broken = Cell(FLOAT32, 1000, [contestant("lost", add_rightly)], Broken(), sets=1)
    running = measured(broken, cell(contestant("right", add_rightly)))
    assert names(running.figures) == ["right"]
    assert (running.ok, running.skipped, running.failures) == (not failures, skipped, failures)


def test_a_sweep_that_cannot_start_leaves_the_others() -> None:
    def broken(chosen: Options, machine: Machine) -> Iterator[Cell]:
        raise RuntimeError("the GPU fell off the bus")

    running = Session(Options(seconds=0.01))
    working = Sweep("working", lambda chosen, machine: iter([cell(contestant("x", add_rightly))]), "none")
    running.measure([Sweep("broken", broken, "none"), working], lambda *progress: None)
    assert names(running.figures) == ["x"]
    assert running.failures == ["broken: RuntimeError: the GPU fell off the bus"]
    assert not running.ok


def test_an_interrupt_keeps_what_was_measured() -> None:
    calls = itertools.count()

    def interrupt(a: Any, b: Any, out: Any) -> None:
        if next(calls) == 5:  # on a busy machine there are no more than nine
            raise KeyboardInterrupt
        add_rightly(a, b, out)

    running = measured(
        cell(contestant("first", add_rightly)),
        cell(contestant("second", interrupt)),
        cell(contestant("x", add_rightly)),
    )
    assert running.interrupted
    assert names(running.figures) == ["first", "second"]


def test_an_interrupt_after_a_cell_keeps_its_figures() -> None:
    def interrupt(figures: list[Figure]) -> list[Figure]:
        raise KeyboardInterrupt

    running = measured(cell(contestant("first", add_rightly), add_derived=interrupt))
    assert running.interrupted
    assert names(running.figures) == ["first"]


# Outputs that are added to


def accumulating(times: int, lost: int = 0, **keywords: Any) -> Contestant:
    """One that adds to its output that often, and loses some of these additions."""

    def time(sets: Any) -> float:
        for a, b, out, _ in sets:
            for _ in range(times - lost):
                np.add(out, a + b, out=out)
        return 1e-6

    return Contestant("accumulating", HOST, time, adds=times, **keywords)


@pytest.mark.parametrize("times", [1, 256])
def test_an_output_that_is_added_to_begins_at_zero(times: int) -> None:
    """And not at so little that a sum does not show it, as the poison of float32 is."""
    begun: list[float] = []
    adding = accumulating(times)

    def time(sets: Any) -> float:
        begun.append(float(sets[0].out[0]))
        return adding.time(sets)

    measurement = Measurement(cell(replace(adding, time=time), n=100), Pattern(FLOAT32), random.Random(0))
    measurement.run(1e-9)
    assert (measurement.timed[0].error, measurement.timed[0].checks) == (None, 2)
    assert (begun[1], begun[-1]) == (0.0, 0.0)  # of the first round, after the warm-up, and of the last


@pytest.mark.parametrize("batch", [1, 3, 7])
def test_an_output_is_added_to_as_often_as_its_set_comes_round(batch: int) -> None:
    adding, begun = accumulating(1), []

    def time(sets: Any) -> float:
        adding.time(sets)
        begun.append(len(sets))
        return timing.SAMPLE / (batch + 0.5)

    three = replace(cell(replace(adding, time=time), n=100), sets=3)
    measurement = Measurement(three, Pattern(FLOAT32), random.Random(0))
    measurement.run(1e-9)
    assert (measurement.timed[0].error, begun[-1]) == (None, batch)


def test_a_lost_addition_is_a_failed_row() -> None:
    (row,) = measured(cell(accumulating(256, lost=1), n=100)).figures
    assert str(row.error).startswith("wrong result: element 0 is")


def test_a_race_is_caught_and_no_failure() -> None:
    running = measured(cell(accumulating(256, lost=1, races=True), n=100))
    (row,) = running.figures
    assert running.ok
    assert (row.error, row.checked, row.seconds) == (None, False, pytest.approx(1e-6))
    assert row.params["caught"].startswith("element 0 is")
    (table,) = make_tables([replace(row, sweep="ladder")])
    assert table.notes[-1].startswith("ladder accumulating float32 100 is caught: ")


# Every figure of a bench and of its CSV, recomputed by hand from clocks that are lists of times.

N = 1000
BEFORE = 3  # calls before the first round: two for a prediction and one to warm up
# The sign test's places among that number of sorted ratios, from tables: 0 is the least.
PLACES = {6: (0, 5), 9: (1, 7), 25: (7, 17), 100: (39, 60)}
SECONDS = st.floats(1e-4, 1e-2)


def contestant_by_clock(name: str, times: Sequence[float], **more: Any) -> Contestant:
    clock = itertools.chain([times[0]] * BEFORE, times, itertools.repeat(times[-1]))

    def time(sets: Any) -> float:
        for a, b, out, _ in sets:
            np.add(a, b, out=out)
        return next(clock)

    return Contestant(name, HOST, time, **more)


def percentile(values: Sequence[float], share: float) -> float:
    """Linear between the two nearest of the sorted values."""
    ordered, at = sorted(values), share * (len(values) - 1)
    low = int(at)
    return ordered[low] + (at - low) * (ordered[min(low + 1, len(ordered) - 1)] - ordered[low])


@given(data=st.data(), rounds=st.sampled_from(sorted(PLACES)), arrays=st.sampled_from([1, 2, 3]))
def test_each_figure_follows_from_the_clocks(data: st.DataObject, rounds: int, arrays: int) -> None:
    ours, theirs = (data.draw(st.lists(SECONDS, min_size=rounds, max_size=rounds)) for _ in range(2))
    both = contestant_by_clock("ours", ours), contestant_by_clock("theirs", theirs, arrays=arrays)
    session = measured(cell(*both, limit=50.0, reference="ours", min_rounds=rounds), seconds=1e-9)
    for figure, times, moved in zip(session.figures, (ours, theirs), (3, arrays), strict=True):
        seconds = statistics.median(times)
        gbps = 4 * moved * N / seconds / 1e9
        assert (figure.sweep, figure.dtype, figure.n, figure.bytes) == ("host", "float32", N, 4 * moved * N)
        assert figure.seconds == pytest.approx(seconds)
        assert figure.spread == pytest.approx((percentile(times, 0.1), percentile(times, 0.9)))
        assert (figure.gbps, figure.limit) == (pytest.approx(gbps), 50.0)
        assert figure.fraction == pytest.approx(gbps / 50)
    ratios = sorted(b / a for a, b in zip(ours, theirs, strict=True))
    low, high = PLACES[rounds]
    assert "ratio" not in session.figures[0].params
    assert session.figures[1].params["reference"] == "ours"
    assert session.figures[1].params["ratio"] == pytest.approx(statistics.median(ratios))
    assert session.figures[1].params["ratio_interval"] == pytest.approx([ratios[low], ratios[high]])
    read = csv.DictReader(io.StringIO(output.as_csv(session.figures)))
    for line, figure in zip(read, session.figures, strict=True):
        assert [line[name] for name in ("sweep", "rung", "dtype", "n", "bytes")] == [
            "host", figure.name, "float32", str(N), str(figure.bytes)
        ]  # fmt: skip
        assert figure.spread is not None
        wanted = figure.seconds, *figure.spread, figure.gbps, figure.limit, figure.fraction
        found = [float(line[name]) for name in ("seconds", "p10", "p90", "gbps", "limit_gbps", "fraction")]
        assert found == list(wanted)
        assert (line["checked"], line["error"]) == ("yes", "")


@pytest.mark.parametrize(("seconds", "timed"), [(1.99, True), (2.01, False)])
def test_an_addition_of_more_than_two_seconds_is_left_out(seconds: float, timed: bool) -> None:
    """By the larger of two sizes: 2^12 elements take a quarter of the time."""
    both = contestant_by_clock("slow", [seconds / 4]), contestant_by_clock("quick", [1e-3])
    session = measured(cell(*both, n=1 << 14), seconds=1e-9)
    assert [figure.name for figure in session.figures] == ["slow"] * timed + ["quick"]
    said = f"slow of host float32 2^14: one addition would take about {seconds:.1f} s"
    assert session.skipped == ([] if timed else [said])
    assert timing.LONGEST == 2.0


@given(read=st.floats(1e9, 1e13), write=st.floats(1e9, 1e13), both=st.floats(1e9, 1e13))
def test_the_bounds_follow_from_the_probes(read: float, write: float, both: float) -> None:
    """By the seconds of 3 GB: two of them read and one written; two up, one down beside one of them."""
    assert probes.device_gbps(read, write) == pytest.approx(3 / (2e9 / read + 1e9 / write))
    assert probes.device_gbps(read, write, 1) == pytest.approx(2 / (1e9 / read + 1e9 / write))
    up = read
    one_each_way, one_up = 2e9 / both, 1e9 / up
    assert probes.link_gbps(up, both) == pytest.approx(3 / (one_up + max(one_each_way, one_up)))

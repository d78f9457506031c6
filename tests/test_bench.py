"""vecadd bench: what it measures, that nothing wrong passes, and that nothing measured is lost."""

import importlib.util
import io
import itertools
import json
import random
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from vecadd import _core, _host
from vecadd.bench import axes, buffers, ladder, latencies, limits, recorded, run, sweeps, terminal, timing
from vecadd.bench.axes import Axes
from vecadd.bench.buffers import HOST, PERIOD_A, Buffers, Pattern, WrongSumError
from vecadd.bench.contestants import Contestant, numpy_add
from vecadd.bench.limits import FixedLimit
from vecadd.bench.results import Row
from vecadd.bench.run import Run
from vecadd.bench.sweeps import Sweep
from vecadd.bench.tables import tables
from vecadd.bench.timing import Cell, Measurement, Predictions, Timed, paired_ratio
from vecadd.cli import main

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
    return Cell("host", FLOAT32, n, list(contestants), FixedLimit(limit), sets=1, **keywords)


def measured(*cells: Cell, seconds: float = 0.01) -> Run:
    running = Run(Axes(seconds=seconds))
    running.measure([Sweep("host", lambda axes, machine: iter(cells), "none")], lambda *progress: None)
    return running


def names(rows: list[Row]) -> list[str]:
    return [row.rung for row in rows]


# Axes


@pytest.mark.parametrize(
    ("text", "sizes"), [("2^10", (1024,)), ("2**3,1e6", (8, 10**6)), (" 7 , 1.5e3", (7, 1500)), ("1e9", (10**9,))]
)
def test_sizes_are_read_as_people_write_them(text: str, sizes: tuple[int, ...]) -> None:
    assert axes.sizes(text) == sizes


@pytest.mark.parametrize(("n", "text"), [(1024, "2^10"), (1 << 28, "2^28"), (1000, "1000"), (16, "16"), (1025, "1025")])
def test_sizes_are_shown_as_people_write_them(n: int, text: str) -> None:
    assert axes.show_size(n) == text


# Operands and their check


@pytest.mark.parametrize("dtype", HOST_DTYPES)
def test_the_check_takes_numpys_sum_and_finds_one_wrong_bit(dtype: str) -> None:
    pattern = Pattern(axes.dtype_named(dtype))
    (used,) = pattern.buffers(HOST, 1001, 1)
    np.add(used.a, used.b, out=used.out)
    pattern.check(HOST, used)
    used.out.view(np.uint8)[-1] ^= 1
    with pytest.raises(WrongSumError, match="element 1000 is"):
        pattern.check(HOST, used)


def test_an_output_that_nobody_wrote_is_found() -> None:
    pattern = Pattern(FLOAT32)
    (used,) = pattern.buffers(HOST, 1000, 1)
    with pytest.raises(WrongSumError, match="element 0 is"):
        pattern.check(HOST, used)


def test_minus_zero_is_not_zero() -> None:
    pattern = Pattern(FLOAT32)
    (used,) = pattern.buffers(HOST, 1000, 1)
    pattern._a[:], pattern._b[:] = 0.0, 0.0
    used.out[:] = -0.0
    with pytest.raises(WrongSumError):
        pattern.check(HOST, used)


def test_sets_hold_different_values_and_patterns_go_on_past_their_period() -> None:
    first, second = Pattern(FLOAT32).buffers(HOST, PERIOD_A + 10, 2)
    assert not np.array_equal(first.a, second.a)
    np.testing.assert_array_equal(first.a[:10], first.a[PERIOD_A:])


@pytest.mark.parametrize(
    ("set_bytes", "cache", "memory", "sets"),
    [
        (12 << 10, 2 << 20, 1 << 30, buffers.MOST_SETS),
        (1 << 20, 2 << 20, 1 << 30, 8),
        (100 << 20, 2 << 20, 1 << 30, 1),
        (1 << 20, 2 << 20, 3 << 20, 3),
        (1 << 20, 2 << 20, 0, 1),
    ],
)
def test_sets_rotate_past_the_cache_within_memory(set_bytes: int, cache: int, memory: int, sets: int) -> None:
    assert buffers.rotation(set_bytes, cache, memory) == sets


# Limits


def test_the_device_bound_reads_two_thirds_and_writes_one() -> None:
    assert limits.device_gbps(read=4e12, write=4e12) == pytest.approx(4000)
    assert limits.device_gbps(read=4e12, write=2e12) == pytest.approx(3000)


def test_the_link_bound_overlaps_the_download_with_one_upload() -> None:
    seconds = 3 * 400e6 / (limits.link_gbps(to_device=55.4e9, both=100e9) * 1e9)
    assert seconds == pytest.approx(400e6 / 50e9 + 400e6 / 55.4e9)


def test_a_link_with_independent_directions_is_bound_by_its_uploads() -> None:
    assert limits.link_gbps(to_device=50e9, both=200e9) == pytest.approx(75)


# Rounds


def test_every_round_has_every_contestant_and_the_limit_in_random_order() -> None:
    turns: list[str] = []

    class Watched(FixedLimit):
        def round(self) -> None:
            turns.append("limit")

    def watched(name: str) -> Contestant:
        return contestant(name, lambda a, b, out: (turns.append(name), add_rightly(a, b, out)))

    watching = Cell("host", FLOAT32, 10, [watched("x"), watched("y")], Watched(None), sets=1)
    measurement = Measurement(watching, Pattern(FLOAT32), random.Random(1))
    measurement.run(seconds=1e-9)
    rounds = [tuple(turns[at : at + 3]) for at in range(2, len(turns), 3)]  # after the two warm-ups
    assert len(rounds) == timing.FEWEST_ROUNDS
    assert {tuple(sorted(turn)) for turn in rounds} == {("limit", "x", "y")}
    assert len(set(rounds)) > 1


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


def test_median_and_spread_are_of_the_rounds() -> None:
    timed = Timed(numpy_add(), samples=[float(x) for x in range(1, 12)])
    assert timed.median == 6
    assert timed.spread == (2, 10)


def test_a_paired_ratio_sees_through_a_machine_that_slows_down() -> None:
    slow = np.linspace(1, 3, 101)
    ours, theirs = Timed(numpy_add(), samples=list(slow)), Timed(numpy_add(), samples=list(1.1 * slow))
    assert paired_ratio(theirs, ours) == pytest.approx((1.1, 1.1, 1.1))


def test_the_interval_of_a_paired_ratio_holds_the_median() -> None:
    generator = np.random.default_rng(0)
    ours = Timed(numpy_add(), samples=[1.0] * 100)
    hits = 0
    for _ in range(200):
        theirs = Timed(numpy_add(), samples=list(generator.lognormal(0, 0.2, 100)))
        low, median, high = paired_ratio(theirs, ours)
        assert low <= median <= high
        hits += low <= 1 <= high
    assert hits >= 180


def test_ratios_are_to_the_cells_reference() -> None:
    twice = cell(contestant("ours", add_rightly, 1e-3), contestant("peer", add_rightly, 2e-3), reference="ours")
    ours, peer = measured(twice).rows
    assert "ratio" not in ours.params
    assert (peer.params["reference"], peer.params["ratio"]) == ("ours", pytest.approx(2))


# What goes wrong


WRONG: dict[str, Callable[[Any, Any, Any], object]] = {
    "nothing written": lambda a, b, out: None,
    "the tail forgotten": lambda a, b, out: np.add(a[:-1], b[:-1], out=out[:-1]),
    "the last bit": lambda a, b, out: np.add(a, b * np.float32(1 + 2**-23), out=out),
    "subtracted": lambda a, b, out: np.subtract(a, b, out=out),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_sum_is_a_failed_row_and_the_others_stay(name: str) -> None:
    wrong, right = measured(cell(contestant("wrong", WRONG[name]), contestant("right", add_rightly))).rows
    assert (wrong.checked, wrong.seconds, wrong.gbps) == (False, None, None)
    assert str(wrong.error).startswith("wrong result: element ")
    assert right.ok
    assert right.checked


def test_a_rung_that_is_right_only_at_first_is_caught() -> None:
    sizes = itertools.chain([1000] * 6, itertools.repeat(999))

    def tire(a: Any, b: Any, out: Any) -> None:
        n = next(sizes)
        np.add(a[:n], b[:n], out=out[:n])

    (row,) = measured(cell(contestant("tired", tire))).rows
    assert str(row.error).startswith("wrong result: element 999 is")


def test_a_failing_rung_is_a_row_and_the_others_stay() -> None:
    def fail(a: Any, b: Any, out: Any) -> None:
        raise RuntimeError("no more")

    failed, right = measured(cell(contestant("failing", fail), contestant("right", add_rightly))).rows
    assert failed.error == "RuntimeError: no more"
    assert right.ok


def test_a_fraction_above_1_is_impossible() -> None:
    exact = 12 * 1000 / 1e-3 / 1e9
    possible, impossible = measured(
        cell(contestant("fits", add_rightly), limit=exact), cell(contestant("beats", add_rightly), limit=exact * 0.99)
    ).rows
    assert possible.ok
    assert impossible.impossible
    assert not impossible.ok


def test_a_slow_addition_is_left_out_and_named() -> None:
    slow = contestant("slow", add_rightly, seconds=timing.LONGEST)
    running = measured(cell(slow, contestant("quick", add_rightly), n=1 << 14))
    assert names(running.rows) == ["quick"]
    assert running.skipped == ["slow of host float32 2^14: one addition would take about 8.0 s"]


def test_predictions_do_not_scale_fixed_costs() -> None:
    calls: list[int] = []

    def time(sets: Any) -> float:
        calls.append(len(sets[0].out))
        return 1e-3 + len(sets[0].out) * 1e-8

    predicted = Predictions().seconds(Contestant("x", HOST, time), Pattern(FLOAT32), 1 << 24)
    assert predicted == pytest.approx((1 << 24) * 1e-8, rel=0.2)
    assert max(calls) <= 1 << 20


def test_a_cell_that_does_not_fit_is_left_out_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_host, "memory_available", lambda: 10_000)
    running = measured(cell(contestant("x", add_rightly)))
    assert running.rows == []
    assert running.skipped == ["host float32 1000: needs 0.0 GiB of host memory, 0.0 GiB are there"]


def test_a_sweep_that_cannot_start_leaves_the_others() -> None:
    def broken(chosen: Axes, machine: sweeps.Machine) -> Iterator[Cell]:
        raise RuntimeError("the GPU fell off the bus")

    running = Run(Axes(seconds=0.01))
    working = Sweep("working", lambda chosen, machine: iter([cell(contestant("x", add_rightly))]), "none")
    running.measure([Sweep("broken", broken, "none"), working], lambda *progress: None)
    assert names(running.rows) == ["x"]
    assert running.failures == ["broken: RuntimeError: the GPU fell off the bus"]
    assert not running.ok


def test_a_cell_whose_limit_fails_leaves_the_others() -> None:
    class Broken(FixedLimit):
        def open(self, buffers: Mapping[str, Sequence[Buffers]]) -> None:
            raise RuntimeError("no probe")

    without = Cell("host", FLOAT32, 10, [contestant("lost", add_rightly)], Broken(None), sets=1)
    running = measured(without, cell(contestant("x", add_rightly)))
    assert names(running.rows) == ["x"]
    assert running.failures == ["host float32 10: RuntimeError: no probe"]


def test_an_interrupt_keeps_what_was_measured() -> None:
    calls = itertools.count()

    def interrupt(a: Any, b: Any, out: Any) -> None:
        if next(calls) == 20:
            raise KeyboardInterrupt
        add_rightly(a, b, out)

    running = measured(
        cell(contestant("first", add_rightly)),
        cell(contestant("second", interrupt)),
        cell(contestant("x", add_rightly)),
    )
    assert running.interrupted
    assert names(running.rows) == ["first", "second"]


# The real sweeps


@pytest.mark.parametrize("dtype", ["float32", "int8", "complex128", "bfloat16"])
def test_the_host_sweep_measures_every_rung_beside_numpy(dtype: str) -> None:
    running = Run(Axes(sizes=(1000, 65536), dtypes=(dtype,), seconds=0.01))
    running.measure([sweeps.SWEEPS["host"]], lambda *progress: None)
    expected = ["numpy", *(rung["name"] for rung in _core.rungs() if rung["kind"] == "host"), "add"]
    assert names(running.rows) == expected * 2
    assert all(row.checked and row.error is None for row in running.rows)
    assert all(row.limit_gbps for row in running.rows)


def rungs_of(kind: str, family: str = "") -> set[str]:
    return {rung["name"] for rung in _core.rungs() if (rung["kind"], rung["family"]) == (kind, family)}


# Of each sweep on a GPU: what it measures at 1000 elements.
GPU_SWEEPS: dict[str, set[str]] = {
    "size": {"add", "naive", "float4", "tuned"},
    "ladder": rungs_of("device", "kernels"),
    "blocksize": {*ladder.BLOCKSIZE_RUNGS, "waves"},
    "precision": {"numpy", "naive", "float4", "tuned", *rungs_of("device", "precision")},
    "transfer": {"add", *rungs_of("transfer")} - {"managed"},
    "latency": rungs_of("latency"),
}


PROBES = {name: cache(getattr(limits, name)) for name in dir(limits) if name.startswith("probe_")}


@pytest.fixture
def swept(device: int, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Run]:
    """swept(sweep, **axes): a run of 1000 elements that is soon over, because the double takes its time: two buffer
    sets and rounds, ten small additions in the place of a thousand, and the probes of the first such run."""
    for name, probe in PROBES.items():
        monkeypatch.setattr(limits, name, probe)
    for name in ("LINK_BYTES", "ALLOCATED", "MAPPED", "COPIED"):
        monkeypatch.setattr(limits, name, 1 << 20)
    monkeypatch.setattr(limits, "HOST_ARRAYS", (1 << 20,))
    monkeypatch.setattr(buffers, "MOST_SETS", 2)
    monkeypatch.setattr(timing, "FEWEST_ROUNDS", 2)
    monkeypatch.setattr(timing, "MOST_IN_SAMPLE", 2)
    monkeypatch.setattr(latencies, "MOST_ADDS", 10)

    def sweep_once(sweep: str, **chosen: Any) -> Run:
        running = Run(Axes(**{"sizes": (1000,), "seconds": 1e-3, **chosen}))
        running.measure([sweeps.SWEEPS[sweep]], lambda *progress: None)
        return running

    return sweep_once


def test_every_sweep_is_either_the_hosts_or_a_gpus() -> None:
    assert list(sweeps.SWEEPS) == ["host", *GPU_SWEEPS]


@pytest.mark.parametrize("sweep", GPU_SWEEPS)
def test_the_gpu_sweeps_measure_their_rungs(sweep: str, swept: Callable[..., Run]) -> None:
    running = swept(sweep)
    assert {row.rung for row in running.rows} == GPU_SWEEPS[sweep]
    assert [row.error for row in running.rows] == [None] * len(running.rows)
    assert all(row.checked or "caught" in row.params for row in running.rows)
    assert running.failures == []
    bears = {"device", "launch", "latency"}
    if sweep == "transfer":
        bears |= {"link", "copies", "allocation", "mapped", "managed", "crew"}
    assert set(running.machine.probed) == bears


@pytest.mark.parametrize(
    ("sweep", "broken"),
    [("size", "float4"), ("ladder", "naive"), ("blocksize", "float4"), ("precision", "half2"), ("transfer", "pinned"),
     ("latency", "graph")],
)  # fmt: skip
def test_a_failing_rung_keeps_the_rest_of_every_sweep(
    sweep: str, broken: str, swept: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = _core.run_rung

    def fail(name: str, *operands: Any, **how: Any) -> float:
        if name == broken:
            raise RuntimeError("no more")
        return real(name, *operands, **how)

    monkeypatch.setattr(_core, "run_rung", fail)
    running = swept(sweep, rungs=(broken, *sorted(GPU_SWEEPS[sweep] - {broken})[:2]))
    assert not running.ok
    assert {row.error for row in running.rows if row.rung == broken} == {"RuntimeError: no more"}
    assert [row.error for row in running.rows if row.rung != broken] == [None] * sum(
        row.rung != broken for row in running.rows
    )
    assert all(table.lines for table in tables(running.rows))


def test_a_look_that_fails_is_a_failed_row(swept: Callable[..., Run], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_core, "rung_facts", {}.popitem)
    naive, add = swept("size", rungs=("naive", "add")).rows
    assert str(naive.error).startswith("TypeError: ")
    assert add.error is None


def test_rows_of_kernels_tell_what_their_launch_takes(swept: Callable[..., Run]) -> None:
    (row,) = swept("ladder", rungs=("naive",), block=128).rows
    facts = _core.rung_facts("naive", "float32", 1000, block=128)
    assert (row.params["block"], row.params["grid"]) == (128, list(facts["grid"]))
    assert {key: row.params[key] for key in ("launches", "registers", "occupancy", "waves")} == {
        key: facts[key] for key in ("launches", "registers", "occupancy", "waves")
    }
    assert row.params["load"] == "LDG.E"


def test_block_sizes_are_an_axis_and_one_that_is_asked_for_is_the_only_one(swept: Callable[..., Run]) -> None:
    every, one = swept("blocksize", rungs=("naive",)), swept("blocksize", rungs=("naive",), block=64)
    assert [row.params["block"] for row in every.rows] == list(ladder.BLOCKS)
    assert [row.params["block"] for row in one.rows] == [64]


def test_precision_meets_the_processor_at_every_size(swept: Callable[..., Run]) -> None:
    rows = swept("precision", sizes=(1000, 2000), rungs=("numpy", "naive", "half")).rows
    cells = [(row.n, row.dtype, row.rung) for row in rows]
    assert cells == [
        (n, dtype, rung)
        for n in (1000, 2000)
        for dtype, kernel in (("float32", "naive"), ("float16", "half"), ("bfloat16", "half"))
        for rung in ("numpy", kernel)
    ]
    assert all(row.params["launch_share"] > 0 for row in rows if row.rung != "numpy")


def test_precision_without_bfloat16_says_what_it_needs(
    swept: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    running = swept("precision", rungs=("numpy",))
    assert [row.dtype for row in running.rows] == ["float32", "float16"]
    assert running.machine.missing == [
        "precision bfloat16: bfloat16 needs the package ml_dtypes: pip install ml_dtypes"
    ]


def test_only_the_largest_transfer_has_a_timeline(swept: Callable[..., Run]) -> None:
    small, large = (row for row in swept("transfer", sizes=(1000, 2000), rungs=("streams2",)).rows[:2])
    assert "timeline" not in small.params
    assert {what for what, *_ in large.params["timeline"]} >= {"to_device", "kernel", "to_host"}
    assert set(large.params["stages"]) == {"to_device", "kernel", "to_host"}
    assert large.params["model_seconds"] > 0


def test_document_004s_stages_are_made_again(swept: Callable[..., Run]) -> None:
    rows = [row for row in swept("transfer").rows if "stage" in row.params]
    assert [row.params["stage"] for row in rows] == [
        "single_thread",
        "single_block",
        "grid_stride",
        "pinned",
        "streams4",
    ]
    assert [(row.rung, row.params["kernel"]) for row in rows] == list(recorded.STAGES)


def test_what_the_processor_adds_has_no_limit_by_the_link(swept: Callable[..., Run]) -> None:
    hybrid, tuned = swept("transfer", rungs=("hybrid", "tuned_transfer")).rows[::2]
    assert (hybrid.rung, hybrid.fraction) == ("hybrid", None)
    assert tuned.fraction is not None


def test_rows_that_no_rounds_give_are_asked_for_by_name(swept: Callable[..., Run]) -> None:
    (row,) = swept("transfer", rungs=("gpudirect_rdma",)).rows
    assert (row.rung, row.seconds, row.error) == ("gpudirect_rdma", None, None)
    assert row.params["says"].startswith("not measured: ")
    assert f"gpudirect_rdma: {row.params['says']}" in tables([row])[0].notes


def test_small_additions_are_independent_and_in_a_chain(swept: Callable[..., Run]) -> None:
    rows = swept("latency", rungs=("launch_loop", "graph", "batched")).rows
    assert [(row.rung, row.params["parameters"]["chain"]) for row in rows] == [
        ("launch_loop", 0), ("graph", 0), ("batched", 0), ("launch_loop", 1), ("graph", 1)
    ]  # fmt: skip
    assert all(row.params["seconds_per_add"] == row.seconds / 10 for row in rows if row.seconds)
    assert all(row.bytes == 10 * 12 * 1000 for row in rows)
    assert {"capture", "instantiate", "destroy", "break_even"} <= set(rows[1].params)


@pytest.mark.parametrize(("n", "adds"), [(2560, 1000), (2**18, 1000), (2**22, 64), (2**26, 4), (2**28, 2)])
def test_fewer_additions_are_run_where_they_are_large(n: int, adds: int) -> None:
    assert latencies.adds_of(n, 4) == adds


@pytest.mark.parametrize(("seconds", "repeats"), [(1e-3, 3), (2e-3, 4), (6e-3, None)])
def test_a_graph_pays_when_it_has_saved_what_it_cost(seconds: float, repeats: int | None) -> None:
    stages = {"capture": 7e-3, "instantiate": 4e-3, "destroy": 1e-3}
    assert latencies.break_even(seconds, 5e-3, stages) == repeats


def test_a_chain_adds_again_and_again() -> None:
    pattern = Pattern(FLOAT32)
    (used,) = pattern.buffers(HOST, 1000, 1)
    np.add(used.a, used.b, out=used.out)
    np.add(used.out, used.b, out=used.out)
    pattern.check(HOST, used, chain=2)
    with pytest.raises(WrongSumError):
        pattern.check(HOST, used, chain=3)


@pytest.mark.parametrize(("dtype", "digits"), [("float16", 11), ("bfloat16", 8)])
def test_sums_of_16_bits_are_checked_against_the_correctly_rounded_ones(dtype: str, digits: int) -> None:
    pattern = Pattern(axes.dtype_named(dtype))
    (used,) = pattern.buffers(HOST, 50_000, 1)
    exact = used.a.astype(np.float64) + used.b.astype(np.float64)  # 53 digits hold it: the exponents are near
    fractions, exponents = np.frexp(exact)
    rounded = np.ldexp(np.rint(np.ldexp(fractions, digits)), exponents - digits)  # ties to even
    least = 2.0**-24 if dtype == "float16" else 0.0
    used.out[:] = np.where(np.abs(exact) < 2.0**-14, np.rint(exact / least) * least if least else rounded, rounded)
    pattern.check(HOST, used)


def test_a_wrong_kernel_is_caught_on_the_device(swept: Callable[..., Run], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_core, "run_rung", lambda name, a, b, out, **how: 1e-3)
    (row,) = swept("size", rungs=("naive",)).rows
    assert str(row.error).startswith("wrong result: element 0 is")


# The ladder


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
    (row,) = measured(cell(accumulating(times), n=100)).rows
    assert (row.error, row.checked) == (None, True)


def test_a_lost_addition_is_a_failed_row() -> None:
    (row,) = measured(cell(accumulating(256, lost=1), n=100)).rows
    assert str(row.error).startswith("wrong result: element 0 is")


def test_a_race_is_caught_and_no_failure() -> None:
    running = measured(cell(accumulating(256, lost=1, races=True), n=100))
    (row,) = running.rows
    assert running.ok
    assert (row.error, row.checked, row.seconds) == (None, False, pytest.approx(1e-6))
    assert row.params["caught"].startswith("element 0 is")
    (table,) = tables([replace(row, sweep="ladder")])
    assert table.notes[-1].startswith("ladder accumulating float32 100 is caught: ")


def test_rates_count_the_arrays_that_move() -> None:
    (row,) = measured(cell(accumulating(1, arrays=4), n=1000)).rows
    assert row.bytes == 16000
    assert row.gbps == pytest.approx(16)


def test_the_ladder_measures_every_rung_and_variant(swept: Callable[..., Run]) -> None:
    running = swept("ladder")
    rungs = [rung["name"] for rung in _core.rungs() if rung["family"] == "kernels"]
    labels = [name for name in rungs for _ in ladder.VARIANTS.get(name, ({},))]
    assert names(running.rows) == labels
    assert [row.error for row in running.rows] == [None] * len(labels)
    assert len({row.label for row in running.rows}) == len(labels)


def test_the_ladder_searches_the_tuned_kernel_where_it_is_named(swept: Callable[..., Run]) -> None:
    running = swept("ladder", rungs=("tuned",))
    assert [row.params.get("parameters", {}) for row in running.rows] == list(ladder.RECIPES)
    assert [row.error for row in running.rows] == [None] * len(ladder.RECIPES)


def test_the_ladder_takes_a_block_size(swept: Callable[..., Run]) -> None:
    running = swept("ladder", rungs=("single_thread", "naive", "atomic"), block=64)
    assert [row.error for row in running.rows] == [None] * 3
    assert [row.params.get("block") for row in running.rows] == [1, 64, 64]


def test_a_rung_above_the_gpus_capability_is_left_out(
    swept: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeps.Machine, "capability", 80)
    measured_rungs = {row.rung for row in swept("ladder", rungs=("async_copy", "bulk_copy")).rows}
    assert "async_copy" in measured_rungs
    assert "bulk_copy" not in measured_rungs


GPU = {"multiprocessors": 132, "threads_per_multiprocessor": 2048}
BIG = 2**28


@pytest.mark.parametrize(
    ("rung", "itemsize", "params", "block", "kib"),
    [
        ("single_thread", 4, {}, 0, 1 / 128),
        ("single_block", 4, {}, 0, 3),
        ("grid_stride", 4, {"blocks_per_sm": 4}, 0, 12),
        ("grid_stride", 4, {"blocks_per_sm": 32}, 0, 24),
        ("naive", 4, {}, 0, 16),
        ("naive", 2, {}, 0, 8),
        ("naive", 4, {}, 768, 12),
        ("unroll2", 4, {}, 0, 32),
        ("float2", 2, {}, 0, 32),
        ("float4", 4, {}, 0, 64),
        ("tuned", 1, {}, 0, 64),
    ],
)
def test_bytes_in_flight_are_loads_times_threads(
    rung: str, itemsize: int, params: dict[str, int], block: int, kib: float
) -> None:
    (row,) = (row for row in _core.rungs() if row["name"] == rung)
    assert ladder.bytes_in_flight(row, GPU, BIG, itemsize, params, block) == kib * 1024


def test_no_more_bytes_are_in_flight_than_there_are() -> None:
    (naive,) = (row for row in _core.rungs() if row["name"] == "naive")
    assert ladder.bytes_in_flight(naive, GPU, 132 * 100, 4, {}) == 2 * 4 * 100


def test_what_the_documents_recorded_is_of_rungs_and_settings_that_exist() -> None:
    rungs = {rung["name"] for rung in _core.rungs()}
    documented = {figure.rung for figure in recorded.FIGURES}
    assert documented | {*recorded.NOTES, *ladder.VARIANTS, *ladder.WAVES} <= rungs | {*recorded.NO_RUNGS, "numpy"}
    assert {figure.setting for figure in recorded.FIGURES} == set(recorded.SETTINGS)


def test_the_ladders_table_tells_gain_and_documents(swept: Callable[..., Run]) -> None:
    running = swept("ladder", rungs=("naive", "restrict", "strided"))
    printed = io.StringIO()
    terminal.show(tables(running.rows), Console(file=printed, width=200))
    printed = printed.getvalue()
    assert "4.02 ms (000)" in printed
    assert "one element a thread" in printed
    assert "after naive:" in printed
    assert "  stride 32" in printed
    assert "the documents: 000 RTX 5060 Ti, 2^27; 001 RTX Titan, 2^20; 002a A100, n unknown" in printed


@pytest.mark.parametrize("block", ["31", "0", "2048", "x", "-32"])
def test_a_block_that_no_gpu_has_is_wrong_usage(block: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["bench", "ladder", f"--block={block}"])
    assert f"{block!r} is not a block size" in capsys.readouterr().err


# The command


def test_the_command_prints_a_table_and_writes_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "host.json"
    arguments = ["host", "--sizes", "2^16", "--rungs", "numpy,add", "--seconds-per-cell", "0.05", "--json", str(path)]
    status = main(["bench", *arguments])
    content = json.loads(path.read_text())
    printed = capsys.readouterr().out
    beyond = any(row["fraction"] > 1 for row in content["rows"])  # in noise, or where our code alone is instrumented
    assert status == int(beyond), printed
    assert [row["rung"] for row in content["rows"]] == ["numpy", "add"]
    assert content["meta"]["clocks"] == {"host": sweeps.SWEEPS["host"].clock}
    assert sweeps.SWEEPS["host"].clock in printed
    assert "% of limit" in printed
    assert "2^16" in printed


def test_the_command_writes_every_format_and_the_pictures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["host", "--sizes", "1000", "--rungs", "numpy,add", "--seconds-per-cell", "0.01"]
    for name in ("csv", "markdown"):
        arguments += [f"--{name}", str(tmp_path / name)]
    assert main(["bench", *arguments, "--plot", str(tmp_path / "pictures")]) in (0, 1)  # 1: beyond a limit in noise
    assert (tmp_path / "csv").read_text().startswith("sweep,rung,dtype,n,seconds,")
    assert (tmp_path / "markdown").read_text().startswith("# vecadd bench\n\n- machine: ")
    assert [path.name for path in sorted((tmp_path / "pictures").iterdir())] == ["host.png", "host.svg"]
    printed = capsys.readouterr().out
    assert printed.startswith("machine: ")
    assert [line for line in printed.splitlines() if line.startswith("written to ")] == [
        f"written to {tmp_path / name}" for name in ("csv", "markdown", "pictures/host.png", "pictures/host.svg")
    ]


def test_pictures_without_matplotlib_are_refused_before_anything_is_measured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "matplotlib" else real(name))
    monkeypatch.setattr(Run, "measure", lambda *nothing: pytest.fail("measured"))
    assert main(["bench", "host", "--plot", str(tmp_path)]) == 2
    assert capsys.readouterr().err == "vecadd bench needs the package matplotlib: pip install 'vecadd[plot]'\n"


def test_bench_alone_runs_every_sweep_on_few_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def measure(self: Run, chosen: Any, tell: Any) -> None:
        asked.extend([self.axes, [sweep.name for sweep in chosen]])

    monkeypatch.setattr(Run, "measure", measure)
    main(["bench"])
    brief, names = asked
    assert brief.brief
    assert brief.seconds == axes.BRIEF_SECONDS
    assert names in (["host"], ["host", *GPU_SWEEPS])
    machine = sweeps.Machine()
    cells = list(sweeps.SWEEPS["host"].cells(brief, machine))
    assert max(cell.n for cell in cells) < max(axes.DEFAULT_SIZES)


def test_the_command_fails_when_a_row_does(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(_core, "run_rung", lambda name, a, b, out, **how: 1e-3)
    path = tmp_path / "host.json"
    arguments = ["host", "--sizes", "1000", "--seconds-per-cell", "0.01", "--json", str(path)]
    assert main(["bench", *arguments]) == 1
    rows = {row["rung"]: row for row in json.loads(path.read_text())["rows"]}
    assert not rows["threads"]["checked"]
    assert rows["numpy"]["checked"]
    assert "host threads float32 1000 failed: wrong result" in capsys.readouterr().out


def test_the_command_writes_what_it_has_when_interrupted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    real = Run._measure

    def interrupt(self: Run, cell: Cell, *rest: Any) -> None:
        if cell.n == 2000:
            raise KeyboardInterrupt
        real(self, cell, *rest)

    monkeypatch.setattr(run.Run, "_measure", interrupt)
    path = tmp_path / "host.json"
    arguments = ["host", "--sizes", "1000,2000,3000", "--seconds-per-cell", "0.01", "--json", str(path)]
    assert main(["bench", *arguments]) == 130
    assert {row["n"] for row in json.loads(path.read_text())["rows"]} == {1000}
    assert "interrupted" in capsys.readouterr().out


def test_a_gpu_sweep_without_a_gpu_is_status_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.executable", "")
    assert main(["bench", "size", "--sizes", "1000"]) == 1
    assert "size needs a GPU: " in capsys.readouterr().err


def test_the_default_sweep_is_the_one_that_is_promised() -> None:
    assert (min(axes.DEFAULT_SIZES), max(axes.DEFAULT_SIZES)) == (1 << 10, 1 << 28)
    assert {str(cell.dtype) for cell in sweeps.SWEEPS["host"].cells(Axes(), sweeps.Machine())} == {"float32"}


def test_timed_work_ends_when_its_time_is_spent() -> None:
    begin = time.perf_counter()
    measured(cell(contestant("x", lambda a, b, out: (time.sleep(1e-3), add_rightly(a, b, out)))), seconds=0.2)
    assert 0.2 <= time.perf_counter() - begin < 5

"""Figures of made-up machines through files, bounds, compare and fleet: what comes out is what was put in, or as many
times as much."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import made_up
import pytest
import simulated_fleet as simulated
from checks import H200
from hypothesis import given
from hypothesis import strategies as st

from vecadd import compare
from vecadd.check import expected
from vecadd.check.document import read_check
from vecadd.check.measure import Measured, Series
from vecadd.figures import Figure, read_run, write_run
from vecadd.fleet import outliers

pytestmark = pytest.mark.no_native

LEAST = 0.05
MEASURED = [figure for some in made_up.FIGURES.values() for figure in some if figure.seconds is not None]
FACTORS = pytest.mark.parametrize("factor", [0.5, 0.8, 1.0, 1.25, 2.0])


def slower(figure: Figure, factor: float) -> Figure:
    """That figure where everything takes that many times as long, with a narrow spread."""
    assert figure.seconds is not None
    seconds = factor * figure.seconds
    return replace(figure, value=seconds, spread=(0.999 * seconds, 1.001 * seconds))


@FACTORS
def test_a_bench_beside_itself_is_the_same_and_slower_by_the_factor_beside_a_faster_one(
    factor: float, tmp_path: Path
) -> None:
    sides = []
    for name, by in (("old", 1.0), ("new", factor)):
        made = [slower(figure, by) for figure in MEASURED]
        write_run(tmp_path / name, made_up.META, made)
        assert read_run(tmp_path / name).figures == made
        sides.append(compare.side_of(compare.read_runs(compare.read_objects_of(tmp_path / name))))
    compared = compare.compare_sides(*sides, LEAST).rows
    assert len(compared) == len({(figure.title, json.dumps(figure.params, default=str)) for figure in MEASURED})
    said = "same" if factor == 1 else "slower" if factor > 1 else "faster"
    for each in compared:
        assert each.old is not None
        assert each.interval is not None
        assert (each.new, each.ratio, each.verdict) == (pytest.approx(factor * each.old), pytest.approx(factor), said)
        assert each.interval[0] < factor < each.interval[1] < 1.01 * factor


def fleet_of(values: dict[str, float], host: str, day: int = 1) -> dict[str, Any]:
    """A machine with these factors of the usual figures, by unit."""
    found = [
        simulated.finding(identifier, each.name, where, each.value * values.get(each.unit, 1.0), each.unit)
        for each in simulated.MEASUREMENTS
        for identifier, where in each.ids()
    ]
    return simulated.content(host, found, day=day)


@pytest.mark.parametrize("unit", ["GB/s", "us"])
@FACTORS
def test_of_ten_machines_one_that_is_other_by_a_factor_is_worse_by_it(unit: str, factor: float) -> None:
    contents = [fleet_of({unit: factor} if at == 7 else {}, f"node{at:02}") for at in range(10)]
    found = outliers.find_outliers([read_check(Path("x"), each) for each in contents], LEAST)
    goodness = factor if unit == "GB/s" else 1 / factor
    deviations = [each for cause in found.causes for each in cause.deviations]
    assert {each.host for each in deviations} == ({"node07"} if goodness < 1 else set())
    of_the_unit = [each for each in simulated.MEASUREMENTS if each.unit == unit]
    usual = {each.name: each.value for each in of_the_unit}
    assert len(deviations) == (0 if goodness >= 1 else sum(len(each.ids()) for each in of_the_unit))
    for each in deviations:
        assert each.usual == pytest.approx(usual[each.measurement])
        assert (each.value, each.ratio) == (pytest.approx(factor * each.usual), pytest.approx(goodness))


@FACTORS
def test_a_machine_that_has_changed_by_a_factor_is_worse_or_better_by_it(factor: float) -> None:
    before, now = (read_check(Path("x"), fleet_of({"GB/s": by}, "node1", day)) for by, day in ((1.0, 1), (factor, 2)))
    newest, earlier = outliers.find_last_runs([now, before])
    found = outliers.find_changes(newest, earlier, LEAST)
    told = [each for cause in found.worse + found.better for each in cause.deviations]
    assert (bool(found.worse), bool(found.better)) == (factor < 1, factor > 1)
    for each in told:
        assert (each.unit, each.ratio) == ("GB/s", pytest.approx(factor))
        assert each.value == pytest.approx(factor * each.usual)


# What an H200 has to reach, by hand: its memory's 4.814 TB/s, and 63.0 GB/s a way of PCIe 5 x16.
BOUNDS = {
    ("device", "read", "GB/s"): 0.90 * 4814.304,
    ("device", "write", "GB/s"): 0.90 * 4814.304,
    ("link", "to the device", "GB/s"): 0.75 * 16 * 32 * 128 / 130 / 8,
    ("link", "to the host", "GB/s"): 0.75 * 16 * 32 * 128 / 130 / 8,
    ("link", "both ways", "GB/s"): 0.60 * 2 * 16 * 32 * 128 / 130 / 8,
    ("link", "width", "lanes"): 16.0,
    ("link", "generation", "generation"): 5.0,
    ("host", "add 2^26", "GB/s"): 0.60 * 140.0,
    ("host", "add 2^10", "s"): 300e-9,
    ("launch", "empty kernel", "s"): 3 * 4.5e-6,
    ("launch", "queued kernel", "s"): 3 * 1.6e-6,
    ("launch", "call of add", "s"): 4 * 2.2e-6,
}


@given(kind=st.sampled_from(sorted(BOUNDS)), shares=st.lists(st.floats(0.9, 1.1), min_size=1, max_size=5))
def test_the_median_of_the_rounds_decides_at_each_bound(kind: tuple[Any, Any, Any], shares: list[float]) -> None:
    row = Series(*kind, values=[share * BOUNDS[kind] for share in shares])
    probes, limits = {"host": 140.0, "numpy": 300e-9}, {0: {"launch": {"issued_seconds": 2.2e-6}}}
    measured = Measured(rows={row.title: row}, probes=probes, limits=limits)
    expected.expect_from_theory([H200], measured)
    assert row.bound == pytest.approx(BOUNDS[kind])
    good = sorted(shares, reverse=row.unit == "s")
    middle = (good[(len(good) - 1) // 2] + good[len(good) // 2]) / 2
    passes = [(share <= 1) if row.unit == "s" else (share >= 1) for share in (middle, good[0])]
    near = any(abs(share - 1) < 1e-9 for share in (middle, good[0]))
    assert near or row.severity == ("critical" if not passes[0] else "pass" if passes[1] else "warning")

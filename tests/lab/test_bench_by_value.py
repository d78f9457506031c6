"""Every figure of a bench and of its CSV, recomputed by hand from clocks that are lists of times."""

import csv
import io
import itertools
import statistics
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vecadd.bench import output, probes, timing
from vecadd.bench.contestants import Contestant
from vecadd.bench.operands import HOST
from vecadd.bench.options import Options
from vecadd.bench.run import Session, Sweep
from vecadd.bench.timing import Cell
from vecadd.figures import Figure

pytestmark = pytest.mark.no_native

N = 1000
BEFORE = 3  # calls before the first round: two for a prediction and one to warm up
# The sign test's places among that many sorted ratios, from tables: 0 is the least.
PLACES = {6: (0, 5), 9: (1, 7), 25: (7, 17)}
SECONDS = st.floats(1e-4, 1e-2)


def contestant(name: str, times: Sequence[float], **more: Any) -> Contestant:
    clock = itertools.chain([times[0]] * BEFORE, times, itertools.repeat(times[-1]))

    def time(sets: Any) -> float:
        for a, b, out, _ in sets:
            np.add(a, b, out=out)
        return next(clock)

    return Contestant(name, HOST, time, **more)


def measured(*contestants: Contestant, n: int = N, **more: Any) -> Session:
    cell = Cell(np.dtype("float32"), n, contestants, sets=1, **more)
    session = Session(Options(seconds=1e-9))
    session.measure([Sweep("host", lambda options, machine: iter([cell]), "none")], lambda *progress: None)
    return session


def percentile(values: Sequence[float], share: float) -> float:
    """Linear between the two nearest of the sorted values."""
    ordered, at = sorted(values), share * (len(values) - 1)
    low = int(at)
    return ordered[low] + (at - low) * (ordered[min(low + 1, len(ordered) - 1)] - ordered[low])


@given(data=st.data(), rounds=st.sampled_from(sorted(PLACES)), arrays=st.sampled_from([1, 2, 3]))
def test_each_figure_follows_from_the_clocks(data: st.DataObject, rounds: int, arrays: int) -> None:
    ours, theirs = (data.draw(st.lists(SECONDS, min_size=rounds, max_size=rounds)) for _ in range(2))
    session = measured(
        contestant("ours", ours), contestant("theirs", theirs, arrays=arrays), limit=50.0,
        reference="ours", min_rounds=rounds,
    )  # fmt: skip
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
    session = measured(contestant("slow", [seconds / 4]), contestant("quick", [1e-3]), n=1 << 14)
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


def test_a_figure_that_failed_has_no_value() -> None:
    """But it has what was to be moved, and the limit."""
    wrong = Contestant("wrong", HOST, lambda sets: 1e-3)
    (figure,) = measured(wrong, limit=50.0).figures
    assert figure == Figure("host", "wrong", "float32", N, bytes=12 * N, limit=50.0, error=figure.error)
    assert str(figure.error).startswith("wrong result: element 0 is")

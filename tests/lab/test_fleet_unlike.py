"""vecadd fleet: how far a figure is from its peers, and how far it may be; by hand and by published quantiles."""

from math import log

import numpy as np
import pytest

from vecadd.fleet.outliers import student, unlike

pytestmark = pytest.mark.no_native


@pytest.mark.parametrize(
    ("probability", "freedom", "table", "found"),
    [(0.975, 5, 2.571, 2.567765), (0.995, 3, 5.841, 5.6461075), (0.95, 10, 1.812, 1.8124156)],
)
def test_students_quantile_is_that_of_the_tables_by_its_expansion(
    probability: float, freedom: float, table: float, found: float
) -> None:
    assert student(probability, freedom) == pytest.approx(table, rel=0.04)
    assert student(probability, freedom) == pytest.approx(found, rel=1e-6)


def test_a_score_is_the_distance_from_the_median_by_the_mad() -> None:
    """Of 0, 1, 2, 3, 4, 6 and -50 hundredths: the median is 2, and the distances from it 0, 1, 1, 2, 2, 4 and 52."""
    judged = unlike(np.array([0.0, 0.01, 0.02, 0.03, 0.04, 0.06, -0.5]), 0.05)
    assert judged.deviations == pytest.approx([-0.02, -0.01, 0.0, 0.01, 0.02, 0.04, -0.52])
    assert judged.scores == pytest.approx(judged.deviations / (1.4826 * 0.02))
    assert judged.fence == pytest.approx(student(1 - 0.05 / 7, 0.37 * 6) * 1.4826 * 0.02)


def test_the_fence_is_farther_the_more_is_compared_and_never_nearer_than_what_is_of_interest() -> None:
    figures = np.array([0.0, 0.01, 0.02, 0.03, 0.04, 0.06, -0.5])
    assert unlike(figures, 0.05, 1000).fence == pytest.approx(student(1 - 0.05 / 1000, 0.37 * 6) * 1.4826 * 0.02)
    assert unlike(figures, 0.05, 3).fence == unlike(figures, 0.05).fence
    assert unlike(np.zeros(9), 0.05).fence == -log(0.95)
    equal = unlike(np.array([0.0] * 8 + [-0.7]), 0.05)
    assert equal.scores[-1] == pytest.approx(-0.7 / 1e-4)


@pytest.mark.parametrize(("count", "best"), [(999, 0.3), (2999, 0.1)])
def test_what_the_best_are_above_the_median_others_may_be_below_but_for_freaks(count: int, best: float) -> None:
    """The very best one is none, nor is one in a thousand more."""
    figures = np.zeros(count)
    figures[:4] = (0.9, 0.3, 0.2, 0.1)
    assert unlike(figures, 0.05).fence == pytest.approx(2.5 * best)

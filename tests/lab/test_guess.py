"""A reader's guess is set beside the figure and scored; without one, the notebook runs on."""

import math
import re
from typing import Any

import pytest

from vecadd import laboratory

pytestmark = pytest.mark.no_native


@pytest.mark.parametrize(
    ("yours", "says"),
    [
        (200, "You are not off: right, 3 of 3 points."),
        (210, "You are 1.05 x as high: right, 3 of 3 points."),
        (250, "You are 1.25 x as high: close, 2 of 3 points."),
        (160, "You are 1.25 x as low: close, 2 of 3 points."),
        (1000, "You are 5 x as high: the right order of magnitude, 1 of 3 points."),
        (1, "You are 200 x as low: far off, 0 of 3 points."),
    ],
)
def test_a_guess_gets_points_by_how_many_times_it_is_off(
    yours: float, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    laboratory.guess("time of naive", yours, unit="us").score(200)
    assert capsys.readouterr().out == f"time of naive: you said {yours} us, it is 200 us. {says}\n"


@pytest.mark.parametrize("figure", [0, -1.5])
def test_a_figure_that_is_not_above_zero_is_far_off(figure: float, capsys: pytest.CaptureFixture[str]) -> None:
    laboratory.guess("gain", 2).score(figure)
    assert re.fullmatch(r"gain: you said 2.*, it is .*: far off, 0 of 3 points\.\n", capsys.readouterr().out)


def test_without_a_guess_the_figure_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    laboratory.guess("gain", unit="x").score(1.285)
    line = "gain: it is 1.28 x; you gave no guess.\n"
    assert capsys.readouterr().out == line


def test_what_was_not_measured_gives_no_points(capsys: pytest.CaptureFixture[str]) -> None:
    laboratory.guess("gain", 2).score(None)
    assert capsys.readouterr().out == "gain: not measured, so that no guess is wrong.\n"


@pytest.mark.parametrize(
    ("yours", "error", "says"),
    [
        (0, ValueError, "a guess is a number greater than 0, not 0: 'gain'"),
        (-2.0, ValueError, "greater than 0, not -2.0"),
        (math.nan, ValueError, "greater than 0, not nan"),
        (math.inf, ValueError, "greater than 0, not inf"),
        ("2", TypeError, "a guess is a number or None, not str: 'gain'"),
    ],
)
def test_a_guess_that_no_figure_can_be_is_refused(yours: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        laboratory.guess("gain", yours)

"""Fleets of a thousand machines with planted faults: what is found, how many false alarms, by this method and others.

docs/fleet.md has the counts.
"""

from math import log
from pathlib import Path

import numpy as np
import pytest
import simulated_fleet as simulated

from vecadd.check import document
from vecadd.fleet import outliers
from vecadd.fleet.outliers import MAD_TO_SIGMA, Numbers, Unlike, unlike

pytestmark = [pytest.mark.no_native, pytest.mark.slow]

MACHINES, SEEDS = 1000, range(3)
DOCUMENT = Path(__file__).parents[2] / "docs" / "fleet.md"


def scored(logarithms: Numbers) -> tuple[Numbers, Numbers, float]:
    deviations = logarithms - np.median(logarithms)
    sigma = max(MAD_TO_SIGMA * float(np.median(np.abs(deviations))), 1e-4)
    return deviations, deviations / sigma, sigma


def fixed(logarithms: Numbers, least: float, comparisons: int = 0) -> Unlike:
    deviations, scores, _ = scored(logarithms)
    return Unlike(deviations, scores, -log(1 - least))


def plain(logarithms: Numbers, least: float, comparisons: int = 0) -> Unlike:
    deviations, scores, sigma = scored(logarithms)
    return Unlike(deviations, scores, 3.5 * sigma)


METHODS = {"5 % below the median": fixed, "modified z-score, 3.5": plain, "the method of `vecadd fleet`": unlike}


def test_all_that_was_planted_is_found_and_the_document_has_the_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = {method: [0, 0, 0] for method in METHODS}
    for seed in SEEDS:
        faults = simulated.planted(simulated.hosts(MACHINES), seed)
        fleet = [document.read_check(Path("x"), content) for content in simulated.fleet(MACHINES, seed, faults)]
        for name, method in METHODS.items():
            monkeypatch.setattr(outliers, "unlike", method)
            found = simulated.places(outliers.find_outliers(fleet, 0.05).causes)
            for at, more in enumerate((len(found & set(faults)), len(faults), len(found - set(faults)))):
                counts[name][at] += more
    found, planted, false = counts["the method of `vecadd fleet`"]
    assert found == planted == 28 * len(SEEDS)
    assert false <= len(SEEDS)
    text = DOCUMENT.read_text()
    lines = [f"| {name} | {found} of {planted} | {false} |" for name, (found, planted, false) in counts.items()]
    assert [line for line in lines if line not in text] == []


def test_a_healthy_fleet_has_next_to_no_false_alarm() -> None:
    false = 0
    for seed in SEEDS:
        fleet = [document.read_check(Path("x"), content) for content in simulated.fleet(MACHINES, 100 + seed)]
        false += len(simulated.places(outliers.find_outliers(fleet, 0.05).causes))
    assert false <= len(SEEDS)

"""How unlike its peers a figure is: the modified z-score, by median and MAD.

B. Iglewicz and D. C. Hoaglin, "How to Detect and Handle Outliers" (ASQC, 1993): the distance from the median over
1.4826 times the median absolute deviation (MAD). Neither is moved by the faults themselves, as long as fewer than half
of the peers have one. Logarithms are compared, so that twice as slow is as far as twice as fast, whatever the unit.

Their limit of 3.5 is passed by chance among thousands of figures. In its place stands the largest of three:

- the deviation that the normal law passes with a chance of 5 % anywhere in a healthy fleet, by Student's quantile at
  one figure's part of that chance (Bonferroni), because the MAD of few figures is itself uncertain;
- two and a half times as far as the best of the peers lie above the median: what noise does upwards it does downwards,
  and only faults are on one side alone. The very best one says nothing, nor does one in a thousand more: they may be
  freaks;
- the smallest difference of interest.

Not done is what SuperBench does (Xiong et al., USENIX ATC 2024): it compares the distributions of many samples of a
node by the area between them, at a fixed similarity of 0.95. A check keeps one figure of each measurement, for which
such a limit is a fixed difference; docs/fleet.md counts what that finds.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Figures = NDArray[np.float64]

CHANCE = 0.05  # that anything in a healthy fleet is beyond the limit
MAD_TO_SIGMA = 1.4826
EFFICIENCY = 0.37  # of the MAD beside the standard deviation: its degrees of freedom
LEAST_SIGMA = 1e-4  # figures that are all equal, such as a link's width, have no spread to divide by
BEYOND_THE_BEST = 2.5
FREAKS = 1 / 1000  # of the peers, besides the very best one


@dataclass(frozen=True)
class Unlike:
    """``deviations`` are those of the logarithms from their median, ``scores`` the modified z-scores. What lies further
    from the median than ``fence`` is unlike its peers."""

    deviations: Figures
    scores: Figures
    fence: float


def unlike(logarithms: Figures, least: float, comparisons: int = 0, machines: Sequence[str] = ()) -> Unlike:
    """Compares each figure with all of them. More is better in them; ``least`` is the smallest share of interest, 0.05
    say. ``comparisons`` is how many figures the whole fleet compares, if more than these. ``machines`` says of which
    machine each figure is: then the best ones are those of so many machines, because all parts of one may be freaks."""
    deviations = logarithms - np.median(logarithms)
    sigma = max(MAD_TO_SIGMA * float(np.median(np.abs(deviations))), LEAST_SIGMA)
    count = len(logarithms)
    limit = student(1 - CHANCE / max(count, comparisons), EFFICIENCY * (count - 1))
    tops = deviations
    if machines:
        of_machine = np.unique(machines, return_inverse=True)[1]
        tops = np.full(of_machine.max() + 1, -np.inf)
        np.maximum.at(tops, of_machine, deviations)
    best = np.sort(tops)[-2 - int(FREAKS * len(tops))]
    fence = max(limit * sigma, BEYOND_THE_BEST * float(best), -log(1 - least))
    return Unlike(deviations, deviations / sigma, fence)


def student(probability: float, freedom: float) -> float:
    """Student's quantile for so many degrees of freedom, by the expansion of Cornish and Fisher: M. Abramowitz and I.
    A. Stegun, "Handbook of Mathematical Functions" (1964), 26.7.5."""
    z = NormalDist().inv_cdf(probability)
    return (
        z
        + (z**3 + z) / (4 * freedom)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3)
    )

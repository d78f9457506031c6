"""What the founding documents recorded of the rungs they describe, beside which ours are printed.

The figures are in `recorded.json`, beside this file. The documents omit a size or a GPU here and there, and contradict
themselves in places: a figure has what is known, a note what cannot be right. Another GPU's seconds are no goal; the
gain from one rung to the next is.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import NamedTuple

from vecadd.tables import show_seconds, show_size


@dataclass(frozen=True)
class Setting:
    """What a document measured on: ``gpu`` and ``elements`` are None where it does not say."""

    document: str
    gpu: str | None
    elements: int | None

    def __str__(self) -> str:
        return f"{self.gpu or 'GPU unknown'}, {show_size(self.elements) if self.elements else 'n unknown'}"


@dataclass(frozen=True)
class Figure:
    """One time that a document recorded. ``n`` and ``block`` are given where the document varies them: other figures
    are of the setting's size and the rung's own block."""

    rung: str
    setting: str
    seconds: float
    n: int | None = None
    block: int | None = None

    def __str__(self) -> str:
        return f"{show_seconds(self.seconds)} ({self.setting})"


@dataclass(frozen=True)
class Profile:
    """What a document's profiler said of a rung: ``metrics`` by the keys of `vecadd.profile.metrics.ROWS`, the kind of
    its loads and why most of its warps wait, "" where it does not say. ``elements`` of a launch, where a run is
    several."""

    rung: str
    setting: str
    metrics: Mapping[str, float]
    load: str = ""
    stall: str = ""
    elements: int | None = None


class Stage(NamedTuple):
    """A stage of document 004: seconds, and the percent of kernel and copies as it prints them, which are not in all
    of its stages those of its seconds."""

    kernel: float
    to_host: float
    to_device: float
    shares: str


_RECORDED = json.loads((files("vecadd.bench") / "recorded.json").read_text(encoding="utf-8"))

# By the name in a figure's `setting`: the document, and a letter where it has several settings.
SETTINGS: Mapping[str, Setting] = {name: Setting(**each) for name, each in _RECORDED["settings"].items()}

FIGURES: tuple[Figure, ...] = tuple(Figure(**each) for each in _RECORDED["figures"])

PROFILES: tuple[Profile, ...] = tuple(Profile(**each) for each in _RECORDED["profiles"])
PROFILED_PROGRAM: str = _RECORDED["profiled_program"]

# Document 004's stages at 1e8 elements, by (transfer rung, kernel).
STAGES: Mapping[tuple[str, str], Stage] = {
    (each.pop("rung"), each.pop("runs")): Stage(**each) for each in _RECORDED["stages"]
}

# Document 004's cold start at 1e6 elements, seconds by the stage of ours that does the same: of the program on the GPU,
# which nsys has timed, and of the one on the processor.
COLD_GPU: Mapping[str, float] = _RECORDED["cold_start"]["gpu"]
COLD_CPU: Mapping[str, float] = _RECORDED["cold_start"]["cpu"]

# Document 004's tables of its products, digit by digit: milliseconds; threads a block and blocks; shared memory a block
# in KB and registers a thread; occupancy in theory and achieved, and the throughput of each unit, in percent.
SGEMM: Mapping[str, Mapping[str, str]] = _RECORDED["sgemm"]

NOTES: Mapping[str, str] = _RECORDED["notes"]


def figures(rung: str, *, n: int | None = None) -> list[Figure]:
    """What is recorded of a rung: at that size where a document varies the size, else at each setting's own."""
    found = [figure for figure in FIGURES if figure.rung == rung]
    if n is not None:
        return [figure for figure in found if figure.n == n]
    return [
        figure for figure in found if figure.block is None and figure.n in (None, SETTINGS[figure.setting].elements)
    ]


def legend(settings: Iterable[str]) -> str:
    """What these settings are: "000 RTX 5060 Ti, 2^27; ..."."""
    used = set(settings)
    return "; ".join(f"{name} {setting}" for name, setting in SETTINGS.items() if name in used)

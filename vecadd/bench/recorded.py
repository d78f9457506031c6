"""What the founding documents recorded of the rungs they describe, beside which ours are printed.

The documents name no size or no GPU here and there, and contradict themselves in places: what is known is in the
figure, what cannot be right is in the note. Another GPU's seconds are no goal; the gain from one rung to the next is.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from vecadd.bench.axes import show_size


@dataclass(frozen=True)
class Setting:
    """What a document measured on: ``elements`` is None where it does not say."""

    document: str
    gpu: str
    elements: int | None

    def __str__(self) -> str:
        return f"{self.gpu}, {show_size(self.elements) if self.elements else 'n unknown'}"


# By what stands behind a figure: the document, and a letter where it has several settings.
SETTINGS: dict[str, Setting] = {
    "000": Setting("000", "RTX 5060 Ti", 2**27),
    "001": Setting("001", "RTX Titan", 2**20),
    "002a": Setting("002", "A100", None),
    "002b": Setting("002", "T4", None),
    "004a": Setting("004", "RTX 4060 Ti", 10**8),
    "004b": Setting("004", "RTX 4060 Ti", 10**6),
}

# Seconds by setting.
FIGURES: dict[str, dict[str, float]] = {
    "single_thread": {"004a": 4.984, "004b": 47.249e-3},
    "single_block": {"004a": 104e-3},
    "grid_stride": {"004a": 6e-3},
    "naive": {"000": 4.02e-3, "001": 25.0e-6, "002a": 241.97e-6, "002b": 1.57692e-3},
    "restrict": {"000": 4.02e-3},
    "coarsen2": {"002a": 237.8e-6, "002b": 1.91419e-3},
    "coarsen4": {"002a": 277.15e-6},
    "float4": {"000": 4.00e-3, "001": 23.3e-6, "002a": 235.21e-6},
    "float4_float2": {"002a": 233.46e-6},
    "float4_arg": {"002a": 236.61e-6},
    "chunked": {"000": 2.66e-3},
}

NOTES: dict[str, str] = {
    "grid_stride": "document 004 advises 2 to 4 blocks a multiprocessor, later one element a thread",
    "coarsen2": "document 002 saw a gain of 2 % on an A100 and a loss of 21 % on a T4",
    "chunked": "document 000 adds up 32 launches of 83.14 us each, without what lies between them",
    "block_shape": "document 004's shapes, (16, 16, 16), (32, 16, 16) and (64, 8, 8), have more than the 1024 threads "
    "that a block can have",
    "race": "wrong on purpose; document 004 saw some multiple of a + b",
    "atomic": "document 004 adds 1 + 2 by 256 threads and finds 768.00",
}


def legend(rungs: Iterable[str]) -> str:
    """What the settings are that these rungs have figures of: "000 RTX 5060 Ti, 2^27; ..."."""
    used = {setting for rung in rungs for setting in FIGURES.get(rung, ())}
    return "; ".join(f"{name} {setting}" for name, setting in SETTINGS.items() if name in used)

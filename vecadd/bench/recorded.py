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

# Rows of the transfer sweep that are no rungs.
NO_RUNGS = ("cold_start",)

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
    # Host memory, GPU, host memory, end to end.
    "pageable": {"000": 310.244537e-3, "004a": 523e-3},
    "pinned": {"000": 140.64e-3, "004a": 97e-3},
    "streams2": {"000": 119.95e-3},
    "copy_blocking": {"002a": 3.69951e-3},
    "copy_async": {"002a": 3.72505e-3},
    "copy_stream": {"002a": 3.69809e-3},
    # A whole program, from its start to its end.
    "cold_start": {"004b": 3.8},
}

# Document 004's stages at 1e8 elements, seconds by (transfer rung, kernel).
STAGES: dict[tuple[str, str], dict[str, float]] = {
    ("pageable", "single_thread"): {"kernel": 4.984, "to_host": 409e-3, "to_device": 134e-3},
    ("pageable", "single_block"): {"kernel": 104e-3, "to_host": 456e-3, "to_device": 137e-3},
    ("pageable", "grid_stride"): {"kernel": 6e-3, "to_host": 386e-3, "to_device": 131e-3},
    ("pinned", "grid_stride"): {"kernel": 6e-3, "to_host": 61e-3, "to_device": 30e-3},
    ("streams4", "naive"): {"kernel": 4e-3, "to_host": 61e-3, "to_device": 30e-3},
}

NOTES: dict[str, str] = {
    "grid_stride": "document 004 advises 2 to 4 blocks a multiprocessor, later one element a thread",
    "coarsen2": "document 002 saw a gain of 2 % on an A100 and a loss of 21 % on a T4",
    "chunked": "document 000 adds up 32 launches of 83.14 us each, without what lies between them",
    "block_shape": "document 004's shapes, (16, 16, 16), (32, 16, 16) and (64, 8, 8), have more than the 1024 threads "
    "that a block can have",
    "race": "wrong on purpose; document 004 saw some multiple of a + b",
    "atomic": "document 004 adds 1 + 2 by 256 threads and finds 768.00",
    "pageable": "document 000 with naive; with restrict 310.173401 ms, with float4 310.333466: the kernel does not "
    "matter; one upload of 512 MiB took 70.519 ms. Document 004 is the sum of its stages with grid_stride",
    "pinned": "document 000: one upload of 512 MiB took 42.717 ms. Document 004 is the sum of its stages; two arrays "
    "go up and one comes down, so that its 61 ms down and 30 ms up are probably swapped, and its kernel adds to "
    "memory that was never cleared",
    "launch_loop": "document 003 captures 1000 launches; it names no GPU and gives no seconds",
    "graph": "document 003 has no figure for a graph alone",
    "pdl": "document 003 has no figure for programmatic dependent launch alone",
    "pdl_trigger": "document 003 has no figure for an early trigger alone",
    "graph_pdl_trigger": "document 003: up to 3 times as fast as a launch each at about 10 KB, fading to no gain above "
    "1 GB, from graph, programmatic launch and trigger together",
    "streams4": "document 004 gives the stages, 61 ms down and 30 ms up, probably swapped, and never their total",
    "copy_blocking": "document 002 calls its pointers device pointers: at its speed these copies cannot have crossed "
    "PCIe, and are not to be compared with pageable",
    "copy_async": "as copy_blocking",
    "copy_stream": "as copy_blocking",
    "malloc_each_call": "document 004 gives the calls alone: three cudaMalloc 140.87 ms, of which 140.30 is the first "
    "one's context, and three cudaFree 0.725 ms",
    "cold_start": "document 004: the same program on the CPU takes 8 ms; of the GPU's 3800 ms the kernel is 47.249, "
    "three uploads 1.162, the download 2.347 and the launch 1.919",
}


def legend(rungs: Iterable[str]) -> str:
    """What the settings are that these rungs have figures of: "000 RTX 5060 Ti, 2^27; ..."."""
    used = {setting for rung in rungs for setting in FIGURES.get(rung, ())}
    return "; ".join(f"{name} {setting}" for name, setting in SETTINGS.items() if name in used)

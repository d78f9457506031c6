"""What the founding documents recorded of the rungs they describe, beside which ours are printed.

The documents omit a size or a GPU here and there, and contradict themselves in places: the figure holds what is known,
the note what cannot be right. Another GPU's seconds are no goal; the gain from one rung to the next is.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from vecadd.bench.axes import show_size
from vecadd.bench.show import show_seconds


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


# By the name that stands behind a figure: the document, and a letter where it has several settings.
SETTINGS: dict[str, Setting] = {
    "000": Setting("000", "RTX 5060 Ti", 2**27),
    "001": Setting("001", "RTX Titan", 2**20),
    "002a": Setting("002", "A100", None),
    "002b": Setting("002", "T4", None),
    "004a": Setting("004", "RTX 4060 Ti", 10**8),
    "004b": Setting("004", "RTX 4060 Ti", 10**6),
    "004c": Setting("004", "RTX 4060 Ti", None),  # its matrices
}

# Document 001's table, milliseconds: a row a size, a column a rung.
_PRECISION_RUNGS = ("numpy", "naive", "float4", "half", "half2", "half8", "half8_pack")
_PRECISION = {
    2**10: (0.0030, 0.0078, 0.0079, 0.0079, 0.0080, 0.0082, 0.0078),
    2**12: (0.0120, 0.0060, 0.0059, 0.0077, 0.0077, 0.0081, 0.0080),
    2**14: (0.0472, 0.0044, 0.0044, 0.0044, 0.0044, 0.0050, 0.0048),
    2**16: (0.1875, 0.0096, 0.0099, 0.0097, 0.0096, 0.0103, 0.0109),
    2**18: (0.7488, 0.0111, 0.0105, 0.0108, 0.0101, 0.0107, 0.0109),
    2**20: (3.0058, 0.0250, 0.0233, 0.0163, 0.0132, 0.0161, 0.0158),
}

FIGURES: tuple[Figure, ...] = (
    Figure("single_thread", "004a", 4.984),
    Figure("single_thread", "004b", 47.249e-3),
    Figure("single_block", "004a", 104e-3),
    Figure("grid_stride", "004a", 6e-3),
    Figure("naive", "000", 4.02e-3),
    Figure("naive", "002a", 241.97e-6),
    Figure("naive", "002b", 1.57692e-3),
    Figure("naive", "004a", 4e-3),
    Figure("naive", "002a", 241.97e-6, block=256),
    Figure("naive", "002a", 241.37e-6, block=512),
    Figure("naive", "002a", 253.51e-6, block=1024),
    Figure("naive", "002b", 1.57692e-3, block=256),
    Figure("naive", "002b", 1.57281e-3, block=512),
    Figure("naive", "002b", 1.57914e-3, block=1024),
    Figure("restrict", "000", 4.02e-3),
    Figure("coarsen2", "002a", 237.8e-6),
    Figure("coarsen2", "002b", 1.91419e-3),
    Figure("coarsen2", "002a", 239.0e-6, block=128),
    Figure("coarsen2", "002a", 237.8e-6, block=256),
    Figure("coarsen2", "002a", 245.63e-6, block=512),
    Figure("coarsen2", "002b", 1.91706e-3, block=128),
    Figure("coarsen2", "002b", 1.91419e-3, block=256),
    Figure("coarsen4", "002a", 277.15e-6),
    Figure("coarsen4", "002a", 277.15e-6, block=256),
    Figure("float4", "000", 4.00e-3),
    Figure("float4", "002a", 235.21e-6),
    Figure("float4_float2", "002a", 233.46e-6),
    Figure("float4_arg", "002a", 236.61e-6),
    Figure("chunks_reused", "000", 2.66e-3),
    # Host memory, GPU, host memory, end to end.
    Figure("pageable", "000", 310.244537e-3),
    Figure("pageable", "004a", 523e-3),
    Figure("pinned", "000", 140.64e-3),
    Figure("pinned", "004a", 97e-3),
    Figure("streams2", "000", 119.95e-3),
    Figure("copy_blocking", "002a", 3.69951e-3),
    Figure("copy_device", "002a", 3.69951e-3),
    Figure("copy_async", "002a", 3.72505e-3),
    Figure("copy_stream", "002a", 3.69809e-3),
    # Matrices.
    Figure("transpose_naive", "004c", 30e-3),
    Figure("transpose_shared", "004c", 21e-3),
    Figure("sgemm_naive", "004c", 556.38e-3),
    Figure("sgemm_shared", "004c", 411.00e-3),
    Figure("sgemm_tiled", "004c", 130e-3),
    Figure("sgemm_tuned", "004c", 122e-3),
    # A whole program, from its start to its end.
    Figure("cold_start", "004b", 3.8),
    *(
        Figure(rung, "001", milliseconds / 1e3, n=n)
        for n, row in _PRECISION.items()
        for rung, milliseconds in zip(_PRECISION_RUNGS, row, strict=True)
    ),
)


class Stage(NamedTuple):
    """A stage of document 004: seconds, and the percent of kernel and copies as it prints them, which are not in all
    of its stages those of its seconds."""

    kernel: float
    to_host: float
    to_device: float
    shares: str


# Document 004's stages at 1e8 elements, by (transfer rung, kernel).
STAGES: dict[tuple[str, str], Stage] = {
    ("pageable", "single_thread"): Stage(4.984, 409e-3, 134e-3, "89.0 : 11.0"),
    ("pageable", "single_block"): Stage(104e-3, 456e-3, 137e-3, "14.5 : 85.5"),
    ("pageable", "grid_stride"): Stage(6e-3, 386e-3, 131e-3, "1.0 : 99.0"),
    ("pinned", "grid_stride"): Stage(6e-3, 61e-3, 30e-3, "6.2 : 93.8"),
    ("streams4", "naive"): Stage(4e-3, 61e-3, 30e-3, "5.0 : 95.0"),
}

# Document 004's cold start at 1e6 elements, seconds by the stage of ours that does the same: of the program on the GPU,
# which nsys has timed, and of the one on the processor.
COLD_GPU: dict[str, float] = {
    "upload": 1.162e-3, "launch": 1.919e-3, "kernel": 47.249e-3, "download": 2.347e-3, "own": 3.8
}  # fmt: skip
COLD_CPU: dict[str, float] = {"own": 8e-3}

# Document 004's tables of its products, digit by digit: milliseconds; threads a block and blocks; shared memory a block
# in KB and registers a thread; occupancy in theory and achieved, and the throughput of each unit, in percent.
_SGEMM_COLUMNS = (
    *("ms", "block", "grid", "shared", "registers"),
    *("occupancy", "achieved", "dram", "memory", "compute", "l2"),
)
SGEMM: dict[str, dict[str, str]] = {
    rung: dict(zip(_SGEMM_COLUMNS, figures.split(), strict=True))
    for rung, figures in {
        "sgemm_naive": "556.38 256 524288 0 40 100 99.93 93.53 93.53 81.66 26.32",
        "sgemm_shared": "411.00 1024 131072 8.19 37 66.67 66.65 32.88 76.45 76.45 9.30",
        "sgemm_tiled": "130 256 64 8.19 94 33.33 31.22 26.65 50.12 36.75 9.46",
        "sgemm_tuned": "122 256 32768 4.10 56 66.67 66.67 53.97 53.97 51.61 14.73",
    }.items()
}

NOTES: dict[str, str] = {
    "transpose_naive": "document 004 does not say how large its matrix is: its listing has 1024 by 512, but its copies "
    "of 162 and 166 ms are of some 2^29 elements",
    "transpose_shared": "document 004 has 21 ms in its table and from 21 to 15 in its text",
    "sgemm_naive": "document 004 does not say how large its matrices are: its grids make 2^27 elements of a product by "
    "every rung but sgemm_tiled; a product of 8192 x 16384 elements, with 4096 inner ones, is ours",
    "sgemm_tiled": "document 004's grid of 64 blocks makes 2^20 elements",
    "grid_stride": "document 004 advises 2 to 4 blocks a multiprocessor, later one element a thread",
    "naive": "document 004's 4 ms are the sum of four launches, each of a quarter of 10^8 elements",
    "coarsen2": "document 002 saw a gain of 2 % on an A100 and a loss of 21 % on a T4",
    "chunks_reused": "document 000 adds up 32 kernels of 83.14 us each, without what lies between them; 50.3 MB in "
    "83.14 us are 605 GB/s on a card of 448, but the 33.6 MB that are read are 404: the sum, 16.8 MB, is still in the "
    "L2 when its kernel ends",
    "copy_device": "document 002 has 3.70 ms of cudaMemcpy, 3.73 of cudaMemcpyAsync and 3.70 on a stream of its own",
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
    "PCIe, and are not to be compared with pageable but with copy_device",
    "copy_async": "as copy_blocking",
    "copy_stream": "as copy_blocking",
    "malloc_each_call": "document 004 gives the calls alone: three cudaMalloc 140.87 ms, of which 140.30 is the first "
    "one's context, and three cudaFree 0.725 ms",
    "cold_start": "document 004: the same program on the CPU takes 8 ms; of the GPU's 3800 ms the kernel is 47.249, "
    "three uploads 1.162, the download 2.347 and the launch 1.919",
    "gpudirect_storage": "document 004 names it and measures nothing",
    "gpudirect_rdma": "document 004 names it and measures nothing",
    "half": "document 001 calls its float16 sums wrong because it compares them with float32 sums; ours are compared "
    "with the correctly rounded float16 sum, and are exact",
    "half8": "document 001 gives times of half8 and not its listing: four half2 loads are our reading of it",
    "half8_pack": "document 001's listing loads before it checks the bounds; ours checks first",
}


def figures(rung: str, *, n: int | None = None, block: int | None = None) -> list[Figure]:
    """What is recorded of a rung: at that size where a document varies the size, at that block where it varies the
    block, else at each setting's own."""
    found = [figure for figure in FIGURES if figure.rung == rung]
    if block is not None:
        return [figure for figure in found if figure.block == block]
    if n is not None:
        return [figure for figure in found if figure.n == n]
    return [
        figure for figure in found if figure.block is None and figure.n in (None, SETTINGS[figure.setting].elements)
    ]


def legend(settings: Iterable[str]) -> str:
    """What these settings are: "000 RTX 5060 Ti, 2^27; ..."."""
    used = set(settings)
    return "; ".join(f"{name} {setting}" for name, setting in SETTINGS.items() if name in used)

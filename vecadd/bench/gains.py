"""The steps from rung to rung in the founding documents: their gain, the gain in a run of ours, and why the two differ.
Seconds on another GPU say little; the gain of a step says what limits the machine. Each rung runs at its usual
parameters, which are those of its document: a gain over a better setting would be another step's."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from vecadd import _core
from vecadd.bench.results import Row
from vecadd.model.theory import usual


@dataclass(frozen=True)
class Which:
    """Which row is meant: a rung, its dtype, and its block and whether it is a chain where the sweep has several. All
    other parameters are as usual."""

    rung: str
    dtype: str = "float32"
    block: int | None = None
    chain: int | None = None

    def __str__(self) -> str:
        return self.rung if self.block is None else f"{self.rung}, {self.block} threads"


@dataclass(frozen=True)
class Step:
    """From one rung to another in a sweep, at ``n`` elements, or at the largest size that both ran at where it is None;
    at the document's ``own`` elements where the sweep of the documents' experiments has both. ``gain`` is the
    document's: how many times as fast the second was."""

    document: str
    where: str  # the document's GPU
    sweep: str
    before: Which
    after: Which
    gain: float
    why: str  # where ours differs, in one sentence
    n: int | None = None
    own: int | None = None


_HALF = "float16"
DOCUMENTS = "documents"  # the sweep at the documents' own sizes

STEPS: Sequence[Step] = (
    Step("004", "RTX 4060 Ti", "ladder", Which("single_thread"), Which("single_block"), 4.984 / 0.104,
         "One thread waits for each load in turn, 256 threads for 256 at a time; but they share one multiprocessor, "
         "and read a third array.", own=10**6),
    Step("004", "RTX 4060 Ti", "ladder", Which("single_block"), Which("grid_stride"), 104 / 6,
         "One block keeps 3 KiB in flight; the document's grid has 136 blocks, an H200's 528. And 288 GB/s are full "
         "long before 4.8 TB/s.", own=10**8),
    Step("004", "RTX 4060 Ti", "ladder", Which("grid_stride"), Which("naive"), 6 / 4,
         "naive saves a quarter of the bytes, because it writes where grid_stride adds: 1.33 times. The rest is that "
         "four blocks a multiprocessor keep 12 KiB in flight, naive's eight 16.", own=10**8),
    Step("000", "RTX 5060 Ti", "ladder", Which("naive"), Which("restrict"), 1.0,
         "The same bytes in flight by another instruction: nothing is to be gained.", own=2**27),
    Step("000", "RTX 5060 Ti", "ladder", Which("restrict"), Which("float4"), 4.02 / 4.00,
         "448 GB/s are full with the 12 KiB in flight that a multiprocessor of 1536 threads has; 4.8 TB/s are not with "
         "an H200's 16, and 16-byte loads keep four times as many in flight.", own=2**27),
    Step("000", "RTX 5060 Ti", DOCUMENTS, Which("float4"), Which("chunks_reused"), 4.00 / 2.66,
         "The document adds up the kernels that its profiler shows one by one, at 605 GB/s on a card of 448: each sum "
         "is still in the L2 when its kernel ends, and writing it to memory is not counted. On an H200 what 32 "
         "kernels take to start and to end is more than that saves.", n=2**27),
    Step("002", "A100", "blocksize", Which("naive", block=256), Which("naive", block=512), 241.97 / 241.37,
         "Both fill the multiprocessor with 2048 threads, but a block's place is free only when its last warp has "
         "ended, and of 512 threads more wait for that than of 256."),
    Step("002", "A100", "blocksize", Which("naive", block=256), Which("naive", block=1024), 241.97 / 253.51,
         "Two large blocks leave half a multiprocessor idle while one of them drains."),
    Step("002", "A100", "ladder", Which("naive"), Which("coarsen2"), 241.97 / 237.8,
         "Neighbouring elements of one thread make each load of a warp touch twice the lines. The second element's "
         "loads wait for the first one's store, so that no more is in flight; half as many blocks start and end."),
    Step("002", "T4", "ladder", Which("naive"), Which("coarsen2"), 1.57692 / 1.91419,
         "Probably a T4's L1, 64 KiB at most for an H200's 256, keeps less of each line for its second half."),
    Step("002", "A100", "ladder", Which("coarsen2"), Which("coarsen4"), 237.8 / 277.15,
         "Each load of a warp is spread over four times the lines: it costs the more, the less the memory is the "
         "limit."),
    Step("002", "A100", "ladder", Which("naive"), Which("float4"), 241.97 / 235.21,
         "An H200 has 1.9 times an A100's bandwidth for each multiprocessor, and naive's 16 KiB in flight are not "
         "enough for it."),
    Step("002", "A100", "ladder", Which("float4"), Which("float4_float2"), 235.21 / 233.46,
         "The tails are a few elements of millions."),
    Step("001", "RTX Titan", "precision", Which("naive"), Which("float4"), 25.0 / 23.3,
         "At this size the launch is half of the time, so that a faster kernel gains little.", n=2**20),
    Step("001", "RTX Titan", "precision", Which("naive"), Which("half", _HALF), 25.0 / 16.3,
         "Half the bytes, but half the bytes in flight too, and the launch stays.", n=2**20),
    Step("001", "RTX Titan", "precision", Which("half", _HALF), Which("half2", _HALF), 16.3 / 13.2,
         "Two elements a load restore the bytes in flight.", n=2**20),
    Step("001", "RTX Titan", "precision", Which("half2", _HALF), Which("half8", _HALF), 13.2 / 16.1,
         "The document's GPU lost the threads that hid its latency. Here each thread has four times the bytes in "
         "flight, and half a wave of blocks in the place of 1.94.", n=2**20),
    Step("001", "RTX Titan", "precision", Which("half8", _HALF), Which("half8_pack", _HALF), 16.1 / 15.8,
         "One load in the place of four: fewer instructions, the same bytes.", n=2**20),
    Step("000", "RTX 5060 Ti", "transfer", Which("pageable"), Which("pinned"), 310.244537 / 140.64,
         "The driver stages ordinary memory through a pinned buffer of its own by one processor core: the faster the "
         "link, the more it waits."),
    Step("000", "RTX 5060 Ti", "transfer", Which("pinned"), Which("streams2"), 140.64 / 119.95,
         "Overlap hides most of the download behind the uploads. The rest of the gain is that the first rung allocates "
         "three whole arrays in each call."),
    Step("003", "GPU unknown", "latency", Which("launch_loop", chain=0), Which("graph_pdl_trigger", chain=0), 3.0,
         "Of independent additions of 10 KB only the launches take time, and a graph launches them from the GPU.",
         n=2560),
)  # fmt: skip


def measured(step: Step, rows: Iterable[Row]) -> tuple[int, float] | None:
    """The size and the gain of the step in these rows; None where no size has both of its rungs."""
    rows = [row for row in rows if row.seconds and "stage" not in row.params]
    found = _gains(step, [row for row in rows if row.sweep == DOCUMENTS and row.n == step.own])
    found = found or _gains(step, [row for row in rows if row.sweep == step.sweep and step.n in (None, row.n)])
    return max(found.items(), default=None)


def _gains(step: Step, rows: Sequence[Row]) -> dict[int, float]:
    """The gain of the step in these rows by size."""
    before, after = (_fastest(rows, which) for which in (step.before, step.after))
    return {n: before[n] / after[n] for n in before.keys() & after.keys()}


def _fastest(rows: Iterable[Row], which: Which) -> dict[int, float]:
    """The fastest time of the rows that are meant, by size."""
    rung = next(rung for rung in _core.rungs() if rung["name"] == which.rung)
    wanted = usual(rung, {} if which.chain is None else {"chain": which.chain})
    found: dict[int, float] = {}
    for row in rows:
        if (
            (row.rung, row.dtype) == (which.rung, which.dtype)
            and which.block in (None, row.params.get("block"))
            and usual(rung, row.params.get("parameters", {})) == wanted
            and row.seconds
        ):
            found[row.n] = min(row.seconds, found.get(row.n, row.seconds))
    return found

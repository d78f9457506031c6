"""Claims of document 003: Little's law, loads in flight, asynchronous copies, graphs and programmatic launches."""

from benchmarks.claims.claim import Claim, Verdict
from benchmarks.claims.picks import Pick, ladder, latency
from benchmarks.claims.quantities import (
    Is,
    Recorded,
    about,
    at_least,
    at_most,
    from_rows,
    gain,
    limit_share,
    param,
    param_ratio,
    percent,
    printed,
    seconds_of,
)
from benchmarks.claims.steps import of_steps
from vecadd.bench.show import show_gain
from vecadd.profile import documents

_WIDE = ("unroll2", "unroll4", "float2", "float2_unroll2", "float4")
_ASYNC = (ladder("async_copy"), ladder("async_copy", stages=3), ladder("bulk_copy"), ladder("bulk_tensor_copy"))
_LARGEST = 2**28  # elements of the largest recorded additions in a row: 3.2 GB


_CODE, _COMMENT = "c[i] = a[i] + b[i]", "mul a[i1], b[i1]"


def _adds_and_multiplies(found: tuple[bool, bool]) -> str:
    adds, multiplies = found
    return f"the code {'adds' if adds else 'does not'}, the comment {'multiplies' if multiplies else 'adds'}"


def _kib(number: float) -> str:
    return f"{number / 1024:.3g} KiB"


def _latencies(rows: Recorded) -> float:
    """The memory's latency at the most bytes in flight over that at the fewest."""
    times = [seconds_of(row) for row in rows.by_size(Pick("inflight", "probe")).values()]
    return max(times) / min(times)


def _fastest_wide(rows: Recorded) -> str:
    return min(_WIDE, key=lambda rung: seconds_of(rows.row(ladder(rung))))


def _launches_share(rows: Recorded) -> float:
    """Of many small additions, the share of the time that one launch for all of them saves."""
    return 1 - seconds_of(rows.row(latency("batched"))) / seconds_of(rows.row(latency("launch_loop")))


def _pays_after(rows: Recorded) -> float:
    """Runs of a graph until what it saves is as much as making it took."""
    graph, loop = latency("graph"), latency("launch_loop")
    making = sum(rows.param(graph, part) for part in ("capture", "instantiate", "destroy"))
    return float(making) / (seconds_of(rows.row(loop)) - seconds_of(rows.row(graph)))


CLAIMS = (
    Claim(
        "A multiprocessor has 2 x 4 x 256 x 8 = 16 KB of the naive kernel in flight",
        "16 KB",
        param(ladder("naive"), "bytes_in_flight", _kib),
        Is(2 * 4 * 256 * 8),
        why="2048 threads with two loads of 4 bytes each fit on an H200's multiprocessor.",
    ),
    Claim(
        "Bandwidth and latency are given by the hardware, and software supplies the bytes in flight",
        "no figure",
        from_rows(_latencies, show_gain),
        at_most(1.2),
        why_not="The latency grows with the load: it is a curve, and bytes beyond its knee only wait longer.",
    ),
    Claim(
        "Newer GPUs have more bandwidth, and simple kernels use a smaller share of it",
        f"{documents.FIGURES['naive']['000']['dram']} % on document 000's RTX 5060 Ti",
        limit_share(ladder("naive")),
        at_most(0.85),
        why="An H200's multiprocessor has more bandwidth to fill, and naive's thread still has two 4-byte loads in "
        "flight.",
    ),
    Claim(
        "Two elements a thread by unrolling double the bytes in flight",
        "8 to 16 bytes a thread",
        param_ratio(ladder("unroll2"), ladder("naive"), "bytes_in_flight"),
        Is(2),
        why="As many threads fit, each with twice the loads.",
    ),
    Claim(
        "More loads in flight a thread raise the bandwidth",
        "no figure",
        gain(ladder("naive"), ladder("unroll2")),
        at_least(1.1),
        why="16 KiB in flight are too few for an H200's multiprocessor, and 32 are nearly enough, as the memory's "
        "curve shows.",
    ),
    Claim(
        "float2 in the place of float raises the bandwidth",
        "no figure",
        gain(ladder("naive"), ladder("float2")),
        at_least(1.1),
        why="Two loads of 8 bytes keep as much in flight as four of 4, by half the instructions.",
    ),
    Claim(
        "The listing of float2 has 16 bytes a thread in flight",
        "4 loads, 4 x 4 B = 16 B",
        printed(lambda: 4 * 8, lambda number: f"4 x 8 B = {number} B"),
        Is(16),
        why_not="The listing is unrolled by two and loads float2: four loads of 8 bytes.",
        otherwise=Verdict.SLIP,
    ),
    Claim(
        "The widest load, 128 bit, is the first thing to try",
        "no figure",
        from_rows(_fastest_wide, str),
        Is("float4"),
        why="Of the ways to more bytes in flight it takes the fewest instructions.",
    ),
    Claim(
        "After 128-bit loads, moderate unrolling brings more",
        "no figure",
        gain(ladder("float4"), ladder("float4_unroll2")),
        at_least(1.02),
        why_not="64 KiB in flight are enough already, and the loop costs instructions.",
    ),
    Claim(
        "With enough bytes in flight there is nothing left to optimise: 64 KiB against 32",
        "no figure",
        gain(ladder("unroll2"), ladder("unroll4")),
        at_most(1.02),
        why="The memory's curve is flat from 32 KiB on.",
    ),
    Claim(
        "At the end of wide loads and unrolling, synchronous loads still stall, and asynchronous ones gain more",
        "no figure",
        from_rows(lambda rows: max(rows.gain(ladder("float4"), pick) for pick in _ASYNC), show_gain),
        at_least(1.02),
        why_not="An addition that fills the memory has nothing left to overlap.",
    ),
    Claim(
        "A bulk copy, ordered by one thread, is better than asynchronous copies by all threads from tiles of 2 KB on",
        "more than 2 KB",
        gain(ladder("async_copy"), ladder("bulk_copy")),
        at_least(1.02),
        why="Two instructions a block order what all threads of the other kernel order together.",
    ),
    Claim(
        "Synchronous loads need no alignment: one element past the boundary costs little",
        "no constraint",
        gain(ladder("naive"), ladder("offset", offset=1)),
        at_least(0.9),
        why="Each load of a warp touches one sector more, which the next warp needs too.",
    ),
    Claim(
        "Asynchronous copies of 4 bytes work, and are worse than those of 16",
        "4, 8 or 16 bytes",
        gain(ladder("async_copy", bytes=4), ladder("async_copy")),
        at_least(1.05),
        why="A warp issues four times the copies for the same bytes.",
        why_not="The copies of a warp are merged, so that their width hardly counts.",
    ),
    Claim(
        "The launch is the bottleneck of small additions",
        "no figure",
        from_rows(_launches_share, percent),
        at_least(0.8),
        why="One launch for a thousand additions saves nearly all of their time.",
    ),
    Claim(
        "A graph of small kernels saves most of the processor's cost of launching",
        "no figure",
        gain(latency("launch_loop"), latency("graph")),
        at_least(1.5),
        why="The GPU starts the graph's kernels itself.",
    ),
    Claim(
        "A graph is for work that is repeated, because it has to be made first",
        "no figure",
        from_rows(_pays_after, lambda runs: f"{runs:.1f} runs"),
        at_most(10),
        why="Capture, instantiation and destruction of 1000 additions cost about as much as two runs save.",
    ),
    Claim(
        "Programmatic launches overlap a kernel's launch with the kernel before",
        "no figure",
        gain(latency("launch_loop"), latency("pdl")),
        at_least(1.1),
        why="The next kernel's blocks are placed when the one before ends.",
    ),
    Claim(
        "An early trigger makes the gaps between kernels smaller still",
        "no figure",
        gain(latency("pdl"), latency("pdl_trigger")),
        at_least(1.02),
        why_not="The processor issues such launches no faster, so that nothing waits for the trigger.",
    ),
    Claim(
        "In a graph the early trigger, with programmatic launches, gains",
        "no figure",
        gain(latency("graph"), latency("graph_pdl_trigger")),
        at_least(1.1),
        why="Where the processor issues nothing, the gap between kernels is what is left.",
    ),
    Claim(
        "All three together fade to no gain above 1 GB",
        "1 x",
        gain(latency("launch_loop", _LARGEST), latency("graph_pdl_trigger", _LARGEST)),
        about(1, 0.05),
        why_not="They lose: the early trigger lets blocks in that wait, in the place of blocks that work.",
    ),
    Claim(
        "The grid-stride listing computes what its comments say",
        f"`{_CODE}`; `{_COMMENT}`",
        printed(lambda: ("+" in _CODE, "mul" in _COMMENT), _adds_and_multiplies),
        Is((True, False)),
        why_not="Its comments multiply, its code adds, and the kernel has no name.",
        otherwise=Verdict.SLIP,
    ),
    *of_steps("003"),
)

"""Claims of document 002: block sizes, coarsening, copies and tails on an A100 and a T4."""

from benchmarks.claims.claim import Claim, Verdict
from benchmarks.claims.picks import blocksize, experiment, ladder, transfer
from benchmarks.claims.quantities import (
    Is,
    Recorded,
    about,
    at_least,
    at_most,
    digits,
    fastest_block,
    figure,
    from_rows,
    gain,
    limit_share,
    param_ratio,
    printed,
    seconds_of,
    usual_gain,
)
from benchmarks.claims.steps import of_steps
from vecadd.bench.show import show_gain

_COMMENT = "A, B, C are device pointers"


def _spread(rows: Recorded) -> float:
    """The slowest of its three blocks over the fastest."""
    times = [seconds_of(rows.row(blocksize("naive", block))) for block in (256, 512, 1024)]
    return max(times) / min(times)


def _printed_blocks(rung: str, setting: str, *blocks: int) -> str:
    return digits(*(figure(rung, setting, block=block) for block in blocks))


CLAIMS = (
    Claim(
        "From compute capability 7.0 on, 512 or 1024 threads a block are best",
        _printed_blocks("naive", "002a", 256, 512, 1024),
        fastest_block("naive"),
        at_least(512),
        why_not="A block's place is free only when its last warp has ended, and large blocks wait longer for that.",
    ),
    Claim(
        "1024 threads a block are worth trying",
        _printed_blocks("naive", "002a", 256, 1024),
        printed(lambda: figure("naive", "002a", block=256) / figure("naive", "002a", block=1024), show_gain),
        at_least(1),
        why_not="On both of its cards 1024 threads are the slowest of its three blocks, against its own advice.",
        otherwise=Verdict.SLIP,
    ),
    Claim(
        "On some GPUs 512 threads a block have a higher occupancy than 256",
        "no figure",
        param_ratio(blocksize("naive", 512), blocksize("naive", 256), "occupancy"),
        at_least(1.01),
        why_not="Blocks of 256 fill multiprocessors of 1024, 1536 and 2048 threads, and more than full they cannot be.",
    ),
    Claim(
        "An occupancy of 75 % or more makes a kernel fast: also the naive one with 64 threads a block",
        "at least 75 %",
        limit_share(blocksize("naive", 64)),
        at_least(0.7),
        why_not="It is at full occupancy; small blocks end sooner than new ones start, and that rate is the limit.",
    ),
    Claim(
        "A kernel needs 75 % of occupancy to be fast: also float4_unroll2 with 32 threads a block",
        "at least 75 %",
        limit_share(blocksize("float4_unroll2", 32)),
        at_most(0.7),
        why_not="It is at half occupancy: its threads loop, and with two 16-byte loads of each input half of them are "
        "enough.",
    ),
    Claim(
        "On the T4 the block hardly matters: 256, 512 and 1024 threads within 0.4 %",
        _printed_blocks("naive", "002b", 256, 512, 1024),
        from_rows(_spread, show_gain),
        at_most(1.02),
        why_not="The less a kernel has in flight for its memory, the more it loses while a large block drains.",
        otherwise=Verdict.ON_ITS_CARD,
    ),
    Claim(
        "coarsen2 is 3 % slower with 512 threads a block than with 256",
        _printed_blocks("coarsen2", "002a", 256, 512),
        gain(blocksize("coarsen2", 256), blocksize("coarsen2", 512)),
        about(figure("coarsen2", "002a", block=256) / figure("coarsen2", "002a", block=512), 0.02),
        why="Larger blocks drain longer.",
        why_not="Two elements a thread keep the memory busier while a block drains.",
        otherwise=Verdict.ON_ITS_CARD,
    ),
    Claim(
        "coarsen2 takes the same time with 128 threads a block as with 256",
        _printed_blocks("coarsen2", "002a", 128, 256),
        gain(blocksize("coarsen2", 256), blocksize("coarsen2", 128)),
        about(1, 0.02),
        why="Both fill the multiprocessor, and half as many blocks as naive's start soon enough.",
    ),
    Claim(
        "Four elements a thread by scalar accesses are slower than one",
        digits(figure("coarsen4", "002a"), figure("naive", "002a")),
        gain(ladder("coarsen4"), ladder("naive")),
        at_least(1.05),
        why="Each load of a warp is spread over four times the lines.",
    ),
    Claim(
        "`cudaMemcpyAsync` in place of `cudaMemcpy` gains time",
        digits(figure("copy_blocking", "002a"), figure("copy_async", "002a")),
        usual_gain(transfer("copy_blocking"), transfer("copy_async")),
        at_least(1.05),
        why="Small arrays gain: the host queues the next step while a copy goes on. The copies and the kernel still "
        "follow one another, so that large ones gain nothing.",
        why_not="Upload, kernel and download stand in one stream, one after the other, however the host waits for "
        "them.",
    ),
    Claim(
        "A stream of its own lets copies and kernel overlap",
        digits(figure("copy_async", "002a"), figure("copy_stream", "002a")),
        usual_gain(transfer("copy_async"), transfer("copy_stream")),
        at_least(1.05),
        why_not="One stream is one order, so that nothing overlaps; it takes chunks on two.",
    ),
    Claim(
        "Its copies go from host to device",
        f"`cudaMemcpyHostToDevice`; {_COMMENT}",
        printed(lambda: _COMMENT.partition("are ")[2], str),
        Is("host pointers"),
        why_not="Its comment says that A, B and C point to memory of the GPU: its copies name the wrong direction.",
        otherwise=Verdict.SLIP,
    ),
    Claim(
        "Allocating three arrays, copying and freeing them makes an addition 15 times as long",
        digits(figure("copy_blocking", "002a"), figure("naive", "002a")),
        gain(experiment("copied", "copy_device"), experiment("copied", "naive")),
        about(figure("copy_blocking", "002a") / figure("naive", "002a"), 0.25),
        why="Three times the bytes are moved, and allocating and freeing takes the rest.",
        why_not="Three times the bytes are moved; what allocating and freeing adds depends on the driver and the size.",
        otherwise=Verdict.ON_ITS_CARD,
    ),
    Claim(
        "float4 pointers as arguments are as fast as float4 from float pointers",
        digits(figure("float4", "002a"), figure("float4_arg", "002a")),
        gain(ladder("float4"), ladder("float4_arg")),
        about(1, 0.02),
        why="The L2 merges the single stores into whole sectors.",
    ),
    Claim(
        "The kernel with float4 arguments reads only its arrays",
        "`if (idx < N)`; thread 1 of N = 5",
        printed(lambda: 4 * (4 // 4) + 3, lambda last: f"element {last}"),
        at_most(4),
        why_not="Its check admits a vector that begins before the end, and reads up to 12 bytes past it.",
        otherwise=Verdict.SLIP,
    ),
    Claim(
        "An 8-byte access for the tail is faster than single elements",
        digits(figure("float4", "002a"), figure("float4_float2", "002a")),
        gain(ladder("float4"), ladder("float4_float2")),
        at_least(1.005),
        why="The tail is a few elements of millions.",
        why_not="The tail is at most three elements of millions.",
    ),
    Claim(
        "A tail in an else branch of the same kernel costs nothing",
        "no figure",
        gain(experiment("tails", "float4", 2**26 + 3), experiment("tails", "float4", 2**26 + 3, tail=1)),
        about(1, 0.02),
        why="One warp of millions takes the branch.",
        why_not="The branch costs every warp a comparison.",
    ),
    *of_steps("002"),
)

"""Claims of document 000: naive, restrict, float4, pinned memory and two streams on an RTX 5060 Ti."""

from benchmarks.claims.claim import Claim, Verdict
from benchmarks.claims.picks import experiment, ladder, profile, transfer
from benchmarks.claims.quantities import (
    Is,
    Recorded,
    about,
    at_least,
    at_most,
    code,
    digits,
    figure,
    from_rows,
    gain,
    gbps,
    limit_share,
    param,
    param_ratio,
    percent,
    printed,
    seconds_of,
    stages,
)
from benchmarks.claims.steps import of_steps
from vecadd import model
from vecadd.bench.show import show_gain, show_seconds
from vecadd.profile import documents

_NAIVE, _RESTRICT, _FLOAT4, _CHUNKED = (
    documents.FIGURES[rung]["000"] for rung in ("naive", "restrict", "float4", "chunked")
)
_LOADS = {rung: documents.LOADS[rung]["000"] for rung in ("naive", "restrict", "float4")}
_LISTING = "d_c[idx] = d_a[idx] + d_b[idx]"
_CHUNK = 1 << 22  # elements of a launch, in its listing
_SUM = 2.66e-3  # seconds of all launches, in its text
_ODD = 2**26 + 3  # elements, of which three are left over by vectors of four
_UPLOADS = 70.519e-3, 42.717e-3  # of 512 MB, from ordinary and from page-locked memory


def _kernel_share(rows: Recorded) -> float:
    parts = stages(rows, transfer("pinned"))
    return parts["kernel"] / seconds_of(rows.row(transfer("pinned")))


def _upload_gain(rows: Recorded) -> float:
    slow, fast = transfer("pageable"), transfer("pinned")
    return stages(rows, slow)["to_device"] / stages(rows, fast)["to_device"]


CLAIMS = (
    Claim(
        "An addition of float32 makes 0.083 operations a byte",
        "1/12",
        printed(lambda: model.arithmetic_intensity(4), lambda value: f"1/{1 / value:.3g}"),
        Is(1 / 12),
        why="One addition for two elements of four bytes read and one written.",
    ),
    Claim(
        "The addition is a single FMA instruction",
        f"`{_LISTING}`, 1 operation an element",
        printed(lambda: "*" in _LISTING, lambda product: f"{'a' if product else 'no'} multiplication"),
        Is(True),
        why_not="A fused multiply-add is two operations; the kernel adds once and multiplies nothing.",
        otherwise=Verdict.SLIP,
    ),
    Claim(
        "The memory is the limit of the naive kernel",
        f"{_NAIVE['dram']} % of the DRAM's rate",
        limit_share(ladder("naive")),
        at_least(0.85),
        why="One element a thread keeps enough bytes in flight here too.",
        why_not="One 4-byte load of each input a thread is too little in flight for the rate of an H200's "
        "multiprocessor.",
        otherwise=Verdict.ON_ITS_CARD,
    ),
    Claim(
        "With 16-byte loads the memory is the limit",
        f"{_FLOAT4['dram']} % of the DRAM's rate",
        limit_share(ladder("float4")),
        at_least(0.85),
        why="Four times the bytes in flight are enough for an H200 too.",
    ),
    Claim(
        "Coalesced access, 128 neighbouring bytes a warp, is what makes the naive kernel fast",
        "no figure",
        gain(ladder("strided", stride=32), ladder("naive")),
        at_least(4),
        why="The same sums by elements 32 apart move 64 bytes, a pair of sectors, for each element.",
    ),
    Claim(
        "`const __restrict__` turns the load `LDG.E` into `LDG.E.CONSTANT`",
        f"`{_LOADS['naive']}`, `{_LOADS['restrict']}`",
        from_rows(
            lambda rows: [rows.param(ladder(rung), "load") for rung in ("naive", "restrict")],
            lambda loads: ", ".join(map(code, loads)),
        ),
        Is([_LOADS["naive"], _LOADS["restrict"]]),
        why="The machine code for sm_90 has the same two instructions.",
    ),
    Claim(
        "float4 with `const __restrict__` loads by `LDG.E.128.CONSTANT`",
        code(_LOADS["float4"]),
        param(ladder("chunked"), "load", code),
        Is(_LOADS["float4"]),
        why="The rung chunked has the document's kernel, and its machine code has this load.",
    ),
    Claim(
        "SM throughput falls from 9.67 to 2.43 % because 16-byte loads need a quarter of the instructions",
        f"{_RESTRICT['sm']} and {_FLOAT4['sm']} %",
        printed(lambda: _RESTRICT["sm"] / _FLOAT4["sm"], show_gain),
        about(4, 0.05),
        why="Its two percentages, at the same time and the same work, are four to one.",
    ),
    Claim(
        "16-byte loads make SM throughput fall to a quarter",
        f"{_RESTRICT['sm']} to {_FLOAT4['sm']} %",
        param_ratio(profile("naive"), profile("float4"), "metrics", "sm"),
        about(4, 0.25),
        why="They need a quarter of the instructions.",
        why_not="They need a quarter of the instructions, but an H200 is done sooner with them.",
        otherwise=Verdict.ON_ITS_CARD,
    ),
    Claim(
        "Two streams launch the kernel in chunks, and the sum of the launches is 2.66 ms",
        f"{documents.FIGURES['chunked']['000']['duration'] * 1e6:.9g} us a launch",
        printed(lambda: (1 << 27) / _CHUNK * _CHUNKED["duration"], show_seconds),
        about(_SUM, 0.01),
        why="2^27 elements make 32 chunks of 2^22.",
    ),
    Claim(
        "Chunks are faster than one launch because a small working set hides the memory's latency better",
        f"{_CHUNKED['dram']} % of the DRAM's rate",
        printed(lambda: 3 * 4 * _CHUNK / _CHUNKED["duration"] / 1e9, gbps),
        at_most(round(3 * 4 * (1 << 27) / _NAIVE["duration"] / _NAIVE["dram"] / 1e7)),
        why_not="By its naive row the DRAM's best rate is the rule's figure: a part of each chunk's sum was still in "
        "the L2 when its kernel ended.",
        otherwise=Verdict.SLIP,
    ),
    Claim(
        "The sum of the chunks' kernels, as a profiler times them one by one, is less than one kernel's time",
        digits(_SUM, figure("float4", "000")),
        gain(experiment("sizes", "float4", 2**27), experiment("chunks", "chunks_reused", 2**27, timed=2)),
        at_least(1.1),
        why="Each kernel ends while its sum is still in the L2, and nothing that is timed writes it to memory.",
        why_not="On an H200 what 32 kernels take to start and to end is more than the sums in its L2 save.",
        otherwise=Verdict.ON_ITS_CARD,
    ),
    Claim(
        "Chunks are faster also where each writes its sum to memory",
        "no figure",
        gain(experiment("sizes", "float4", 2**27), experiment("chunks", "chunks_reused", 2**27, timed=3)),
        at_least(1.02),
        why="Even with the write-back paid, the chunks take less than one kernel.",
        why_not="With the write-back paid, nothing is left of the gain.",
    ),
    Claim(
        "An upload of 512 MB from ordinary memory runs at 7.1 GB/s, from page-locked memory at 11.7",
        "7.1 and 11.7 GB/s",
        printed(lambda: [2**29 / time / 1e9 for time in _UPLOADS], lambda rates: " and ".join(map(gbps, rates))),
        Is([7.1, 11.7]),
        why_not="What it prints are GiB a second: 512 MiB over its milliseconds.",
        otherwise=Verdict.SLIP,
    ),
    Claim(
        "Page-locked memory makes an upload 1.65 times as fast",
        digits(*_UPLOADS),
        from_rows(_upload_gain, show_gain),
        about(_UPLOADS[0] / _UPLOADS[1]),
        why_not="One processor core copies ordinary memory for the driver; the faster the link, the more it waits for "
        "that.",
        otherwise=Verdict.ON_ITS_CARD,
    ),
    Claim(
        "From host to host the kernel does not matter: naive, restrict and float4 take the same time",
        "310.244537, 310.173401 and 310.333466 ms",
        gain(transfer("pageable"), transfer("pageable", kernel=2)),
        about(1, 0.1),
        why="The copies take nearly all of the time, and they scatter by more than the kernel takes.",
    ),
    Claim(
        "The kernel's share of a transfer is small even with page-locked memory",
        digits(figure("float4", "000"), figure("pinned", "000")),
        from_rows(_kernel_share, percent),
        at_most(0.05),
        why="The memory of the GPU is many times as fast as the link.",
    ),
    Claim(
        "With two streams the link is used to the full",
        digits(figure("streams2", "000")),
        limit_share(transfer("streams2")),
        at_least(0.9),
        why="Downloads run beside uploads: the way up is always busy, and the way down half of the time.",
    ),
    Claim(
        "Page-locked memory and two streams together make the whole way 2.59 times as fast",
        digits(figure("pageable", "000"), figure("streams2", "000")),
        gain(transfer("pageable"), transfer("streams2")),
        about(figure("pageable", "000") / figure("streams2", "000")),
        why_not="The faster the link, the more of the time is the driver's copying of ordinary memory.",
        otherwise=Verdict.ON_ITS_CARD,
    ),
    Claim(
        "A chunk of 2^22 elements raises the L2's throughput",
        f"{_FLOAT4['l2']} to {_CHUNKED['l2']} %",
        param_ratio(profile("chunked"), profile("float4"), "metrics", "l2"),
        at_least(1.1),
        why="What is left in the L2 is written there and not yet to memory.",
        why_not="On an H200 chunks leave the L2 less busy: each takes 13 us, of which much is start and end.",
        otherwise=Verdict.ON_ITS_CARD,
    ),
    Claim(
        "A tail kernel of 32 threads for the last elements costs nothing that shows",
        "no figure",
        gain(experiment("tails", "float4", _ODD), experiment("tails", "float4", _ODD, tail=2)),
        about(1, 0.02),
        why="A launch more is small beside the addition.",
        why_not="A launch more shows even beside an addition of 2^26 elements.",
    ),
    *of_steps("000"),
)

"""Claims of document 004 about additions and transfers, from one thread to four streams on an RTX 4060 Ti."""

from benchmarks.claims.claim import Claim, Verdict
from benchmarks.claims.picks import Pick, experiment, ladder, stage, transfer, waves
from benchmarks.claims.quantities import (
    Between,
    Is,
    Recorded,
    about,
    at_least,
    at_most,
    digits,
    element,
    fastest_block,
    figure,
    from_rows,
    gain,
    limit_share,
    param,
    percent,
    printed,
    seconds,
    seconds_of,
    shares,
    stages,
)
from benchmarks.claims.steps import of_stages, of_steps
from vecadd.bench import recorded
from vecadd.bench.show import show_gain, show_seconds
from vecadd.profile import documents

_N = recorded.SETTINGS["004a"].elements or 0
_PROGRAM = 47248532, 2346695, 1162276  # ns of its small program: kernel, one download, three uploads
_STAGES = recorded.STAGES
_ORDINARY, _PINNED = _STAGES["pageable", "grid_stride"], _STAGES["pinned", "grid_stride"]
_SHAPES = (16, 16, 16), (32, 16, 16), (64, 8, 8)
_OVER_LINK = 2**28


def _best_blocks(rows: Recorded) -> float:
    """The better of 2 and 4 blocks a multiprocessor, in the rate of the best number."""
    times = {count: seconds_of(rows.row(ladder("grid_stride", blocks_per_sm=count))) for count in (1, 2, 4, 8, 32)}
    return min(times.values()) / min(times[2], times[4])


def _blocks_a_multiprocessor(rows: Recorded) -> float:
    """Of `waves` at 90 percent; grid_stride has as many blocks as multiprocessors at one a multiprocessor."""
    (multiprocessors, *_), (blocks, *_) = (
        rows.param(pick, "grid") for pick in (ladder("grid_stride", blocks_per_sm=1), waves(90))
    )
    return float(blocks / multiprocessors)


def _down_over_up(rows: Recorded) -> float:
    """The download's time over the two uploads'."""
    parts = stages(rows, stage("pinned"))
    return parts["to_host"] / parts["to_device"]


def _pinned_gain(rows: Recorded) -> float:
    """The copies of ordinary memory over those of page-locked memory."""
    slow, fast = stages(rows, stage("grid_stride")), stages(rows, stage("pinned"))
    return (slow["to_host"] + slow["to_device"]) / (fast["to_host"] + fast["to_device"])


def _sum_over_whole(rows: Recorded) -> float:
    pick = transfer("stream1_pinned")
    return sum(stages(rows, pick).values()) / seconds_of(rows.row(pick))


def _of_bound(rows: Recorded) -> float:
    pick = transfer("streams2")
    return seconds_of(rows.row(pick)) / float(rows.param(pick, "model_seconds"))


def _both_ways(rows: Recorded) -> float:
    """The bytes a second of streams2 over those of an upload alone."""
    row, alone = rows.row(transfer("streams2")), transfer("pinned")
    up = 2 * 4 * rows.row(alone).n / stages(rows, alone)["to_device"] / 1e9
    return (row.gbps or 0.0) / up


def _cold_start(rows: Recorded) -> float:
    """A program that has just begun, with CUDA over without it. Its document's programs start no interpreter."""
    cold = Pick("transfer", "cold_start")
    gpu, cpu = (rows.param(cold, kind, "program") - rows.param(cold, kind, "import") for kind in ("gpu", "cpu"))
    return float(gpu / cpu)


def _driver_and_context(rows: Recorded) -> float:
    cold = Pick("transfer", "cold_start")
    return float(rows.param(cold, "gpu", "driver") + rows.param(cold, "gpu", "context"))


def _of_calls(call: str, percentage: str) -> Claim:
    """The share of a call in the time of all calls of its small program."""
    totals = {name: total for name, (_, total, *_) in documents.CALLS.items()}
    return Claim(
        f"`{call}` takes {percentage} % of the time of its program's CUDA calls",
        digits(totals[call]),
        printed(lambda: f"{100 * totals[call] / sum(totals.values()):.1f}", lambda share: f"{share} %"),
        Is(percentage),
        why="The percentage is that of its nanoseconds.",
    )


def _alone(rung: str) -> Pick:
    """A rung that writes c and does not read it, so that it differs from others by one thing alone."""
    return experiment("accumulate", rung, accumulate=0)


CLAIMS = (
    # one thread, one block
    Claim(
        "One thread takes 50 ns an element",
        digits(figure("single_thread", "004a")),
        element(ladder("single_thread")),
        about(figure("single_thread", "004a") / _N, 0.25),
        why="It waits for each line in turn, and the wait is much the same on both cards.",
    ),
    Claim(
        "One block of 256 threads takes 1.04 ns an element",
        digits(figure("single_block", "004a")),
        element(ladder("single_block")),
        at_most(1.1 * figure("single_block", "004a") / _N),
        why_not="By Little's law the same bytes in flight wait longer here: the memory of the larger chip answers "
        "later.",
        otherwise=Verdict.ON_ITS_CARD,
    ),
    Claim(
        "An addition should take microseconds, not the 47 ms of one thread at 1e6 elements",
        digits(figure("single_thread", "004b")),
        seconds(ladder("naive", n=2**20)),
        at_most(100e-6),
        why="All multiprocessors work; half of the time is the launch.",
    ),
    Claim(
        "Kernel and copies of its small program share the GPU's time as 93.1 : 6.9",
        "47248532, 2346695 and 1162276 ns",
        printed(lambda: shares(_PROGRAM[0], _PROGRAM[1] + _PROGRAM[2]), str),
        Is("93.1 : 6.9"),
        why="The percentages are those of its nanoseconds.",
    ),
    Claim(
        "Downloads take 66.9 % of the copies' time in its small program",
        "2346695 and 1162276 ns",
        printed(lambda: shares(*_PROGRAM[1:]), str),
        Is("66.9 : 33.1"),
        why="The percentages are those of its nanoseconds.",
    ),
    *(_of_calls(call, percentage) for call, percentage in (("cudaMalloc", "71.6"), ("cudaMemcpy", "27.1"))),
    Claim(
        "A download is slower than an upload because the pages of its array are mapped on the way",
        "409 ms down, 134 ms up",
        gain(experiment("pages", "download_untouched"), experiment("pages", "download_touched")),
        at_least(1.5),
        why="The first touch of a page costs a fault.",
        why_not="The faults are few beside the copy.",
        otherwise=Verdict.ON_ITS_CARD,
    ),
    Claim(
        "Thread t of 256 takes the elements from `t * 256` to `t * 256 + 3907`",
        "`[t * 256, min(t * 256 + 3907, 1000000))`",
        printed(lambda: 255 * 256 + 3907, lambda end: f"the last one ends at {end}"),
        Is(1_000_000),
        why_not="Runs of 3907 begin at `t * 3907`, as its drawing has it; by its formula most elements are never "
        "added.",
        otherwise=Verdict.SLIP,
    ),
    Claim(
        "Neighbouring threads should take neighbouring elements, not a run each",
        "no figure",
        gain(ladder("single_block_chunked"), ladder("single_block")),
        at_least(1.1),
        why="A warp's load is one burst in the place of 32 sectors.",
    ),
    Claim(
        "The same with c written and not read, so that nothing else differs",
        "no figure",
        gain(_alone("single_block_chunked"), _alone("single_block")),
        at_least(1.1),
        why="A warp's load is one burst in the place of 32 sectors.",
        why_not="The L1 keeps each line for its thread's next elements.",
    ),
    Claim(
        "With a run each, 124 of 128 bytes that are moved are thrown away",
        "4 of 128 bytes",
        gain(ladder("single_block_chunked"), ladder("single_block")),
        at_least(8),
        why_not="The L1 keeps each line until its thread wants the next elements of it.",
    ),
    Claim(
        "256 threads that all add to the same elements leave an undetermined result",
        "`{3,6,9,12,15,...}`",
        from_rows(lambda rows: "caught" in rows.row(ladder("race")).params, lambda seen: "wrong" if seen else "right"),
        Is(True),
        why="Each thread reads what another may just be writing.",
    ),
    Claim(
        "With `atomicAdd` 256 threads make exactly 256 x 3 = 768",
        "768.00",
        from_rows(lambda rows: rows.row(ladder("atomic")).checked, lambda right: "right" if right else "wrong"),
        Is(True),
        why="No addition is lost: every element of the recorded run is 256 times its sum.",
    ),
    # many blocks
    Claim(
        "2 to 4 blocks a multiprocessor are enough",
        "136 blocks on 34 multiprocessors",
        from_rows(_best_blocks, percent),
        at_least(0.95),
        why_not="Four blocks keep 12 KiB in flight, with which the memory's curve is far from its best rate.",
    ),
    Claim(
        "136 blocks of 256 threads use the card's memory well",
        digits(figure("grid_stride", "004a")),
        limit_share(ladder("grid_stride", blocks_per_sm=4)),
        at_least(0.85),
        why_not="Four blocks keep 12 KiB in flight on a multiprocessor, and an H200's has more bandwidth to fill than "
        "its card's.",
        otherwise=Verdict.ON_ITS_CARD,
    ),
    Claim(
        "One element a thread, as it says later, is better than 4 blocks that loop, at the same bytes",
        "no figure",
        gain(_alone("grid_stride"), experiment("accumulate", "naive")),
        at_least(1.02),
        why="Eight blocks fit on a multiprocessor, and keep twice as much in flight as four.",
        why_not="Blocks that loop are started once.",
    ),
    Claim(
        "128 to 256 threads a block are right",
        "128 to 256",
        fastest_block("naive"),
        Between(128, 256),
        why="Smaller blocks start too slowly, larger ones drain too long.",
    ),
    Claim(
        "Whole waves are best: 1.1 waves are worse than 1.0",
        "1.1 waves",
        gain(waves(110), waves(100)),
        at_least(1.1),
        why="The last tenth of the blocks runs alone.",
    ),
    Claim(
        "At 0.9 waves a tenth of the multiprocessors' block slots is idle",
        "0.9 waves",
        gain(waves(90), waves(100)),
        at_least(1.02),
        why="A tenth fewer bytes are in flight.",
    ),
    Claim(
        "At 0.9 waves only 90 % of the multiprocessors work",
        "0.9 waves",
        from_rows(_blocks_a_multiprocessor, lambda blocks: f"{blocks:.2g} blocks on each"),
        at_most(1),
        why_not="The blocks are dealt to all multiprocessors; a wave counts block slots, of which each has several.",
    ),
    Claim(
        "Two waves are as good as one",
        "no figure",
        gain(waves(100), waves(200)),
        about(1, 0.02),
        why="Both leave no place empty but at the end.",
    ),
    # how memory is accessed
    Claim(
        "Memory comes in bursts of 128 bytes: elements 32 apart cost 32 times as much",
        "128 bytes",
        gain(ladder("strided", stride=32), ladder("naive")),
        at_least(28),
        why_not="A GPU fetches sectors of 32 bytes, from memory in pairs: the cost ends at 64 bytes for 4.",
    ),
    Claim(
        "A warp that begins 64 bytes past a boundary costs two bursts",
        "2 bursts",
        gain(ladder("offset", offset=16), ladder("naive")),
        at_least(1.8),
        why_not="Its four sectors lie in two lines, and the other half of each is its neighbour's and comes from the "
        "L1 or the L2.",
    ),
    Claim(
        "A block 16 wide wastes half of what it moves",
        "64 of 128 bytes",
        gain(ladder("block_shape", x=16, y=2), ladder("block_shape", x=32, y=2)),
        at_least(1.8),
        why_not="Each half of its warp reads two whole sectors of 32 bytes: no byte is wasted.",
    ),
    Claim(
        "Blocks of (16, 16, 16), (32, 16, 16) and (64, 8, 8) can be launched",
        ", ".join(map(str, _SHAPES)),
        printed(lambda: min(x * y * z for x, y, z in _SHAPES), lambda threads: f"{threads} threads"),
        at_most(1024),
        why_not="A block has at most 1024 threads.",
        otherwise=Verdict.SLIP,
    ),
    Claim(
        "16 x 16 x 16 threads are 128 warps",
        "128 warps",
        printed(lambda: 16**3 // 32, str),
        Is(128),
        why="32 threads are a warp.",
    ),
    Claim(
        "A warp that diverges into 32 paths takes 32 times as long",
        "32 branches",
        gain(ladder("divergent", paths=32), ladder("naive")),
        at_least(24),
        why_not="The paths run one after the other, but other warps' loads fill the wait.",
    ),
    Claim(
        "Division and remainder for an index are very expensive",
        "tens of cycles",
        gain(ladder("index_divmod"), ladder("index_dim3")),
        at_least(1.2),
        why_not="The instructions are done while the memory answers other warps.",
    ),
    Claim(
        "Division and remainder for an index are very expensive, beside one byte an element (int8)",
        "tens of cycles",
        gain(*(experiment("division", rung, dtype="int8") for rung in ("index_divmod", "index_dim3"))),
        at_least(1.2),
        why="A quarter of the bytes leaves less time to hide the same instructions in.",
        why_not="Even one byte an element leaves enough time to hide the instructions in.",
    ),
    # across the link
    Claim(
        "Upload, kernel and download take about 523 ms",
        "131, 6 and 386 ms",
        printed(lambda: _ORDINARY.to_device + _ORDINARY.kernel + _ORDINARY.to_host, lambda total: digits(total)),
        Is(0.523),
        why="It is their sum.",
    ),
    Claim(
        "Downloads take twice as long as uploads",
        digits(_PINNED.to_host, _PINNED.to_device),
        from_rows(_down_over_up, show_gain),
        at_least(1),
        why_not="Two arrays go up and one comes down: its columns of downloads and uploads are probably exchanged.",
        otherwise=Verdict.SLIP,
    ),
    Claim(
        "Page-locked memory doubles the speed of the copies",
        digits(_ORDINARY.to_host + _ORDINARY.to_device, _PINNED.to_host + _PINNED.to_device),
        from_rows(_pinned_gain, show_gain),
        about(2, 0.25),
        why_not="It does more: the driver's own copy of ordinary memory is much slower than the link, in its table "
        "too.",
    ),
    Claim(
        "Asynchronous copies of ordinary memory are synchronous",
        "no figure",
        gain(transfer("pageable"), transfer("streams4_pageable")),
        at_most(1.1),
        why="The driver copies ordinary memory itself, and the host waits for it.",
    ),
    Claim(
        "One stream of its own gains nothing over the default stream, at 2^28 elements",
        "no figure",
        gain(transfer("pinned_reused"), transfer("stream1_pinned")),
        at_most(1.1),
        why="One stream is one order. Small transfers gain: its copies are asynchronous, and the host goes on.",
    ),
    Claim(
        "Without overlap a transfer takes the sum of its parts",
        "100 + 10 + 100 = 210 ms",
        from_rows(_sum_over_whole, percent),
        about(1, 0.05),
        why="One part begins when the one before has ended.",
    ),
    Claim(
        "With overlap a transfer takes as long as its slowest part",
        "`max(T_h2d, T_compute, T_d2h)`",
        from_rows(_of_bound, show_gain),
        about(1, 0.1),
        why="All but the first upload and the last download run at the same time.",
    ),
    Claim(
        "PCIe carries both directions at the same time",
        "no figure",
        from_rows(_both_ways, show_gain),
        at_least(1.2),
        why="Two streams move more bytes a second than uploads alone.",
    ),
    Claim(
        "Small transfers cannot fill the link",
        "31.5 GB/s in theory",
        param(transfer("pinned", n=2**10), "link_fraction", percent),
        at_most(0.1),
        why="Memory is allocated and copies begin, which takes longer than 4 KiB on the link.",
    ),
    Claim(
        "Kernels that read page-locked memory directly are far slower than on device memory",
        "no figure",
        from_rows(
            lambda rows: stages(rows, transfer("zero_copy", n=_OVER_LINK))["kernel"]
            / stages(rows, transfer("pinned", n=_OVER_LINK))["kernel"],
            show_gain,
        ),
        at_least(5),
        why="The kernel waits for the link.",
    ),
    Claim(
        "Reading page-locked memory directly saves the copies",
        "no figure",
        gain(transfer("pinned", n=_OVER_LINK), transfer("zero_copy", n=_OVER_LINK)),
        at_least(1.2),
        why="Its loads and stores use both directions of the link at once.",
    ),
    Claim(
        "Managed memory is slower than copies, because each page faults",
        "no figure",
        gain(experiment("managed", "managed"), experiment("managed", "pageable")),
        at_least(1.2),
        why="A fault takes longer than the copy of its page.",
        why_not="The driver moves many pages a fault.",
    ),
    Claim(
        "GPUDirect storage and RDMA spare the way through the host's memory",
        "no figure",
        gain(experiment("gpudirect", "pinned"), experiment("gpudirect", "gpudirect_storage")),
        at_least(1.02),
        why="The disk writes into the GPU's memory.",
        why_not="The disk is slower than the way through the host's memory.",
    ),
    Claim(
        "A pool of device memory spares the allocations of each call, at 2^20 elements",
        "140866925 and 725322 ns in `cudaMalloc` and `cudaFree`",
        gain(transfer("malloc_each_call", n=2**20), transfer("pool", n=2**20)),
        at_least(1.05),
        why="`cudaMalloc` maps memory and `cudaFree` waits for the device.",
        why_not="In this recording the times of the pool scatter by more than a factor of two. From 2^10 to 2^18 "
        "elements it takes 0.39 to 0.62 of the time.",
    ),
    Claim(
        "The first `cudaMalloc` pays for CUDA's start, some 140 ms",
        "140301675 of 140866925 ns",
        from_rows(_driver_and_context, show_seconds),
        about(0.1403, 0.5),
        why="The first call of a process makes its context.",
    ),
    Claim(
        "A program that adds once takes 475 times as long with CUDA as on the processor",
        "3800 and 8 ms",
        from_rows(_cold_start, show_gain),
        at_least(100),
        why_not="Most of ours is the start of CUDA's context; what else its 3800 ms hold, its own table of calls does "
        "not show.",
        otherwise=Verdict.ON_ITS_CARD,
    ),
    *of_stages(),
    *of_steps("004"),
)

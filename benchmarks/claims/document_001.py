"""Claims of document 001: float32 and float16 from 1 K to 1 M elements on an RTX Titan."""

import numpy as np

from benchmarks.claims.claim import Claim, Verdict
from benchmarks.claims.picks import ladder, precision, profile
from benchmarks.claims.quantities import (
    Is,
    NotRecordedError,
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
    param,
    percent,
    printed,
)
from benchmarks.claims.steps import of_steps
from vecadd import model
from vecadd.bench.show import show_gain
from vecadd.profile import documents, stalls

_K, _4K, _16K, _64K, _M = 2**10, 2**12, 2**14, 2**16, 2**20
_RUNGS = ("float4", "half", "half2", "half8", "half8_pack")
_LISTING = ("FLOAT4(a)", "FLOAT4(b)", "FLOAT4(c[idx])")
_LAUNCH = 5e-6  # "5 to 6 microseconds", in its text
_PROFILED = {rung: documents.FIGURES[rung]["001"] for rung in ("naive", "float4", "half", "half2", "half8_pack")}


def _printed(rung: str, n: int) -> float:
    return figure(rung, "001", n=n)


def _longest_stall(rows: Recorded) -> str:
    """The reason for which the naive kernel's warps waited the longest, as the profiler calls it."""
    shares: dict[str, float] = rows.param(profile("naive"), "stalls")
    waits = {reason: share for reason, share in shares.items() if reason != stalls.WORKING}
    if not waits:
        raise NotRecordedError("no stall of naive is recorded, because the run had no profiler")
    return max(waits, key=lambda reason: waits[reason]).replace("_", " ")


def _best_over_naive(rows: Recorded) -> float:
    """The best gain over naive at any size below 64 K."""
    gains = (rows.gain(precision("naive", n), precision(rung, n)) for n in (_K, _4K, _16K) for rung in _RUNGS)
    return max(gains)


CLAIMS = (
    Claim(
        "An addition of float16 makes twice the operations a byte of float32",
        "1/6",
        printed(lambda: model.arithmetic_intensity(2), lambda value: f"1/{1 / value:.3g}"),
        Is(1 / 6),
        why="The same addition moves half the bytes.",
    ),
    Claim(
        "At 1 K elements the processor is faster than the GPU",
        digits(_printed("numpy", _K), _printed("naive", _K)),
        gain(precision("naive", _K), precision("numpy", _K)),
        at_least(1.05),
        why="The processor's sum is done before a kernel has begun.",
    ),
    Claim(
        "From 4 K elements the GPU is faster than the processor",
        digits(_printed("numpy", _4K), _printed("naive", _4K)),
        gain(precision("numpy", _4K), precision("naive", _4K)),
        at_least(1),
        why="The kernel takes as long as at 1 K, and the processor four times as long.",
        why_not="NumPy adds by vector instructions, which its loop did not: 4 K elements are still its own.",
        otherwise=Verdict.ON_ITS_CARD,
    ),
    Claim(
        "At 1 M elements the GPU is 120 times as fast as the processor",
        digits(_printed("numpy", _M), _printed("naive", _M)),
        gain(precision("numpy", _M), precision("naive", _M)),
        about(_printed("numpy", _M) / _printed("naive", _M)),
        why_not="Its processor adds by a plain loop, and NumPy by vector instructions.",
        otherwise=Verdict.ON_ITS_CARD,
    ),
    Claim(
        "The processor's memory bounds it at 4.2 GB/s at 1 M elements",
        digits(_printed("numpy", _K), _printed("numpy", _M)),
        printed(lambda: _printed("numpy", _M) / _printed("numpy", _K) / (_M / _K), show_gain),
        at_least(1.5),
        why_not="At 1 K, where all lies in the first cache, an element takes as long: its loop is the limit, not the "
        "memory.",
        otherwise=Verdict.SLIP,
    ),
    Claim(
        "At 1 K elements the launch takes most of the time",
        "5 to 6 us of launch, 1 to 2 of work",
        param(precision("naive", _K), "launch_share", percent),
        at_least(_LAUNCH / _printed("naive", _K)),
        why="An empty kernel takes nearly as long.",
    ),
    Claim(
        "At 1 M elements 5 to 6 us of launch are negligible in 13.2 us",
        digits(_printed("half2", _M)),
        printed(lambda: _LAUNCH / _printed("half2", _M), percent),
        at_most(0.1),
        why_not="5 of 13.2 us are more than a third.",
        otherwise=Verdict.SLIP,
    ),
    Claim(
        "The naive kernel takes 0.0078 ms for 1 K elements and 0.0044 ms for 16 K",
        digits(_printed("naive", _K), _printed("naive", _16K)),
        printed(lambda: _printed("naive", _16K) / _printed("naive", _K), show_gain),
        at_least(1),
        why_not="Sixteen times the elements cannot take half the time: the first kernels ran without a warm-up.",
        otherwise=Verdict.SLIP,
    ),
    Claim(
        "Half the bytes take nearly half the time, which proves that the memory is the limit",
        show_gain(_printed("naive", _M) / _printed("half", _M)),
        gain(precision("naive", 2**28), precision("half", 2**28)),
        at_least(1.8),
        why_not="One 2-byte element a thread halves the bytes in flight too, so that the rate falls with the bytes.",
    ),
    Claim(
        "Packed in 128 bit, float16 gains what its bytes promise, against float32 in 128 bit",
        show_gain(_printed("float4", _M) / _printed("half8_pack", _M)),
        gain(precision("float4", 2**28), precision("half8_pack", 2**28)),
        at_least(1.8),
        why="With as many bytes in flight in both, half the bytes take half the time.",
    ),
    Claim(
        "float16 falls behind float32 in bytes a second",
        "384.9 against 503.4 GB/s",
        from_rows(lambda rows: rows.gain(precision("naive"), precision("half")) / 2, percent),
        at_most(0.9),
        why="Two bytes a load keep half as many bytes in flight as four.",
    ),
    Claim(
        "Below 64 K elements the baseline is the best",
        show_gain(_printed("naive", _4K) / _printed("float4", _4K)),
        printed(
            lambda: min(_printed(rung, n) / _printed("naive", n) for n in (_K, _4K, _16K) for rung in _RUNGS), show_gain
        ),
        at_least(1),
        why_not="By its own table float4 is ahead of the baseline at 4 K.",
        otherwise=Verdict.SLIP,
    ),
    Claim(
        "Below 64 K elements no variant is ahead of the baseline by more than 5 %",
        show_gain(_printed("naive", _4K) / _printed("float4", _4K)),
        from_rows(_best_over_naive, show_gain),
        at_most(1.05),
        why="All of them take the time of a launch.",
    ),
    Claim(
        "At 1 M elements half2 is faster than half8_pack",
        digits(_printed("half2", _M), _printed("half8_pack", _M)),
        gain(precision("half8_pack", _M), precision("half2", _M)),
        at_least(1.05),
        why_not="On an H200 the greater number of bytes in flight a thread outweighs the smaller number of threads.",
        otherwise=Verdict.ON_ITS_CARD,
    ),
    Claim(
        "half8_pack loses because its registers lower the occupancy",
        f"{_PROFILED['half8_pack']['registers']} registers for half2's {_PROFILED['half2']['registers']}",
        param(precision("half8_pack", _M), "occupancy", percent),
        at_most(0.99),
        why_not="They leave room for all threads of a multiprocessor; half8_pack just has a quarter of half2's "
        "threads.",
    ),
    Claim(
        "`__hadd2` doubles the throughput of the arithmetic over two `__hadd`",
        "about 2 x",
        gain(precision("half2", 2**28), precision("half2_hadd2", 2**28)),
        at_least(1.5),
        why_not="The arithmetic is one instruction of many that wait for the memory.",
    ),
    Claim(
        "Compute throughput rises from 14 to 22 % because the units work faster on float16",
        f"{_PROFILED['naive']['sm']} and {_PROFILED['half']['sm']} %",
        printed(
            lambda: _PROFILED["half"]["sm"]
            * _PROFILED["half"]["duration"]
            / (_PROFILED["naive"]["sm"] * _PROFILED["naive"]["duration"]),
            show_gain,
        ),
        at_least(1.2),
        why_not="Percent times duration is the same for both: the same instructions in less time.",
        otherwise=Verdict.SLIP,
    ),
    Claim(
        "float4 needs a quarter of the instructions, so that compute throughput falls to a quarter",
        f"{_PROFILED['naive']['sm']} and {_PROFILED['float4']['sm']} %",
        printed(lambda: _PROFILED["naive"]["sm"] / _PROFILED["float4"]["sm"], show_gain),
        about(4, 0.05),
        why="Its two percentages are four to one.",
    ),
    Claim(
        "Occupancy is the only way of a GPU to hide the memory's latency",
        "no figure",
        gain(ladder("naive"), ladder("float4")),
        at_most(1.02),
        why_not="Both have 100 % of occupancy: more bytes in flight in each thread hide it as well.",
    ),
    Claim(
        "The naive kernel's warps wait for the memory most of all",
        documents.STALLS["naive"]["001"],
        from_rows(_longest_stall, str),
        Is(documents.STALLS["naive"]["001"]),
        why="The profiler of our run says the same.",
        why_not="The profiler of our run names another reason first.",
    ),
    Claim(
        "naive moves 503.4 GB/s at 1 M elements",
        "503.4 GB/s",
        printed(lambda: 12 * _M / _printed("naive", _M) / 1e9, gbps),
        about(503.4, 0.001),
        why="12 bytes an element in 0.0250 ms.",
    ),
    Claim(
        "The float16 kernels fail its check: 57.5938 is not 57.6",
        "an error of 0.00625229",
        printed(lambda: float(np.float16(57.6)), lambda value: f"{value:.6g}"),
        Is(57.6),
        why_not="57.5938 is the float16 nearest to 57.6: its check compares float16 sums with float32 sums.",
        otherwise=Verdict.SLIP,
    ),
    Claim(
        "The listing of float4 loads each thread's own elements",
        ", ".join(map(code, _LISTING)),
        printed(lambda: sum("[idx]" in part for part in _LISTING), lambda indexed: f"{indexed} of 3 indexed"),
        Is(3),
        why_not="Its loads lack the index `[idx]` that its store has: every thread would add the first four elements.",
        otherwise=Verdict.SLIP,
    ),
    Claim(
        "The listing of half8_pack checks its bounds",
        "`if ((idx + 7) < N)`, after the loads; thread 1 of N = 10",
        printed(lambda: 8 * 1 + 7, lambda last: f"element {last}"),
        at_most(9),
        why_not="Both loads stand before the check: of 10 elements, thread 1 reads past the end.",
        otherwise=Verdict.SLIP,
    ),
    *of_steps("001"),
)

"""Which metrics of the profiler make which row of the table, and why a warp waits.

Names are those of Nsight Compute from 2020 to 2025; where a version calls a metric otherwise, the row has both. Those
that begin with vecadd are of events.py.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Unit = Literal["seconds", "%", "count", "number", "bytes"]

# To base units. Nsight Compute says "nsecond" in older versions and "ns" in newer ones.
SCALES: Mapping[str, float] = {
    "second": 1.0, "s": 1.0,
    "msecond": 1e-3, "ms": 1e-3,
    "usecond": 1e-6, "us": 1e-6,
    "nsecond": 1e-9, "ns": 1e-9,
    "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9,
    "Kbyte/block": 1e3,
}  # fmt: skip


@dataclass(frozen=True)
class Metric:
    """One row: it shows the first of the profiler's metrics ``names`` that is there."""

    key: str
    title: str
    unit: Unit
    names: tuple[str, ...]


ROWS = (
    Metric("duration", "duration", "seconds", ("gpu__time_duration.sum",)),
    Metric("cycles", "elapsed cycles", "count", ("gpc__cycles_elapsed.max", "sm__cycles_elapsed.max")),
    Metric("sm", "SM %", "%", ("sm__throughput.avg.pct_of_peak_sustained_elapsed",)),
    Metric("memory", "memory %", "%", ("gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",)),
    Metric(
        "dram",
        "DRAM %",
        "%",
        (
            "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
            "dram__throughput.avg.pct_of_peak_sustained_elapsed",
        ),
    ),
    Metric("needed", "needed bytes, % of DRAM in theory", "%", ("vecadd__needed.pct",)),
    Metric("l1", "L1 %", "%", ("l1tex__throughput.avg.pct_of_peak_sustained_active",)),
    Metric("l2", "L2 %", "%", ("lts__throughput.avg.pct_of_peak_sustained_elapsed",)),
    Metric("occupancy", "occupancy, theoretical %", "%", ("sm__maximum_warps_per_active_cycle_pct",)),
    Metric("achieved", "occupancy, achieved %", "%", ("sm__warps_active.avg.pct_of_peak_sustained_active",)),
    Metric("warps", "warps an SM, theoretical", "number", ("sm__maximum_warps_avg_per_active_cycle",)),
    Metric("active", "warps an SM, active", "number", ("sm__warps_active.avg.per_cycle_active",)),
    Metric("limit_sm", "block limit: SM", "count", ("launch__occupancy_limit_blocks",)),
    Metric("limit_registers", "block limit: registers", "count", ("launch__occupancy_limit_registers",)),
    Metric("limit_shared", "block limit: shared memory", "count", ("launch__occupancy_limit_shared_mem",)),
    Metric("limit_warps", "block limit: warps", "count", ("launch__occupancy_limit_warps",)),
    Metric("registers", "registers a thread", "count", ("launch__registers_per_thread",)),
    Metric("static_shared", "static shared memory a block", "bytes", ("launch__shared_mem_per_block_static",)),
    Metric("dynamic_shared", "dynamic shared memory a block", "bytes", ("launch__shared_mem_per_block_dynamic",)),
    Metric("block", "block", "count", ("launch__block_size",)),
    Metric("grid", "grid", "count", ("launch__grid_size",)),
    Metric("threads", "threads", "count", ("launch__thread_count",)),
    Metric("waves", "waves", "number", ("launch__waves_per_multiprocessor",)),
    Metric(
        "instructions",
        "instructions (of warps)",
        "count",
        ("smsp__inst_executed.sum", "sm__inst_executed.sum", "smsp__inst_issued.sum"),
    ),
)


def select_metrics(raw: Mapping[str, tuple[float, str]]) -> dict[str, float]:
    """The rows' values in base units (seconds, bytes) by key, from the profiler's (value, unit); metrics that it did
    not give are left out."""
    found = {}
    for row in ROWS:
        name = next((name for name in row.names if name in raw), None)
        if name is not None:
            value, unit = raw[name]
            found[row.key] = value * SCALES.get(unit, 1.0)
    return found


# Why a warp waits, in words: the profiler's stall reasons, what causes each, and what helps.

# Cycles that a warp waits for this reason, for each instruction issued; or how often a sample met one waiting.
_NAME = re.compile(
    r"smsp__(?:average_warps_issue_stalled_(?P<average>\w+)_per_issue_active"
    r"|pcsamp_warps_issue_stalled_(?P<sampled>\w+))(?:\.\w+)?"
)
WORKING = "selected"  # not a stall: the warp issues in this cycle


@dataclass(frozen=True)
class Reason:
    """``names`` are the profiler's reasons; a row with several sums up reasons that also have rows of their own."""

    title: str
    names: tuple[str, ...]
    cause: str
    direction: str


_LONG, _SHORT = "long_scoreboard", "short_scoreboard"

REASONS = (
    Reason(
        "all scoreboard",
        (_LONG, _SHORT),
        "an operand that a load or a slow unit has yet to deliver",
        "more warps and more independent loads at a time; asynchronous copies",
    ),
    Reason(
        "long scoreboard",
        (_LONG,),
        "a load from DRAM, L2 or L1 has not come back: memory latency",
        "more bytes in flight: wider loads, more of them before the first use, more warps; shared memory for what is "
        "read twice",
    ),
    Reason(
        "short scoreboard",
        (_SHORT,),
        "a shared memory access or a special function has not come back",
        "put independent instructions between the access and its use",
    ),
    Reason(
        "execution dependency",
        ("wait",),
        "the result of the arithmetic instruction before, some cycles away",
        "more independent instructions a thread (ILP)",
    ),
    Reason("barrier", ("barrier",), "the other warps of the block at __syncthreads", "fewer barriers, smaller blocks"),
    Reason(
        "branch",
        ("branch_resolving",),
        "the target of a branch is not known yet",
        "fewer and less divergent branches: unroll, or predicate",
    ),
    Reason(
        "load/store queue full",
        ("lg_throttle",),
        "too many global or local accesses are queued",
        "fewer, wider accesses: 16 bytes a load",
    ),
    Reason("MIO queue full", ("mio_throttle",), "shared memory and special functions are queued up", "fewer of them"),
    Reason("texture queue full", ("tex_throttle",), "the texture unit is queued up", "fewer texture accesses"),
    Reason("arithmetic unit busy", ("math_pipe_throttle",), "its pipe is full: compute bound", "cheaper arithmetic"),
    Reason("not selected", ("not_selected",), "another warp was ready too and went first", "nothing: warps are plenty"),
    Reason("drain", ("drain",), "stores have to leave before the warp may end", "fewer, wider stores"),
    Reason("memory barrier", ("membar",), "a fence waits for all writes before it", "fewer or narrower fences"),
    Reason(
        "instruction fetch",
        ("no_instruction", "no_instructions"),
        "the next instruction is not in the cache: a short kernel starts, or a long one jumps",
        "smaller code, longer kernels",
    ),
    Reason(
        "constant cache", ("imc_miss",), "a constant, or an argument's first use, misses its cache", "fewer of them"
    ),
    Reason("dispatch", ("dispatch_stall",), "the dispatcher delayed the warp", "usually nothing"),
    Reason("sleeping", ("sleeping",), "nanosleep", "shorter sleeps"),
    Reason("warp group", ("gmma", "warpgroup_arrive"), "warp groups wait for each other", "nothing in an addition"),
    Reason("other", ("misc",), "none of these", "nothing to be said"),
)


def stall_shares(raw: Mapping[str, tuple[float, str]]) -> dict[str, float]:
    """Shares (0..1) of the cycles that warps spend, by the profiler's name of the reason, issuing ("selected") among
    them: from the averages an issued instruction, else from the samples; {} where there are neither."""
    averages: dict[str, float] = {}
    samples: dict[str, float] = {}
    for name, (value, _) in raw.items():
        found = _NAME.fullmatch(name)
        if found is None or name.partition(".")[0].removesuffix("_per_issue_active").endswith("_not_issued"):
            continue  # "_not_issued" counts a part of the same once more
        if found["average"]:
            averages[found["average"]] = value
        else:
            samples[found["sampled"]] = value
    chosen = averages if sum(averages.values()) > 0 else samples
    total = sum(chosen.values())
    return {name: value / total for name, value in chosen.items() if value > 0} if total > 0 else {}


def share_of_reason(reason: Reason, shares: Mapping[str, float]) -> float | None:
    """The reason's share of the cycles that warps spend; None where the profiler reports no stalls."""
    return sum(shares.get(name, 0.0) for name in reason.names) if shares else None

"""Why a warp waits, in words: the profiler's stall reasons, what causes each, and what helps."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

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
    Reason("dispatch", ("dispatch_stall",), "the dispatcher held the warp back", "usually nothing"),
    Reason("sleeping", ("sleeping",), "nanosleep", "shorter sleeps"),
    Reason("warp group", ("gmma", "warpgroup_arrive"), "warp groups wait for each other", "nothing in an addition"),
    Reason("other", ("misc",), "none of these", "nothing to be said"),
)


def of(raw: Mapping[str, tuple[float, str]]) -> dict[str, float]:
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


def share(reason: Reason, shares: Mapping[str, float]) -> float | None:
    """The reason's share of the cycles that warps spend; None where the profiler reports no stalls."""
    return sum(shares.get(name, 0.0) for name in reason.names) if shares else None

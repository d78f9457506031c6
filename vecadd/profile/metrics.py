"""The rows of the table: which of the profiler's metrics each shows, and in which unit.

Names are those of Nsight Compute from 2020 to 2025; where a version calls a metric otherwise, the row has both. Those
that begin with vecadd are of own.py.
"""

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
class Row:
    """One row: it shows the first of the profiler's metrics ``names`` that is there."""

    key: str
    title: str
    unit: Unit
    names: tuple[str, ...]


ROWS = (
    Row("duration", "duration", "seconds", ("gpu__time_duration.sum",)),
    Row("cycles", "elapsed cycles", "count", ("gpc__cycles_elapsed.max", "sm__cycles_elapsed.max")),
    Row("sm", "SM %", "%", ("sm__throughput.avg.pct_of_peak_sustained_elapsed",)),
    Row("memory", "memory %", "%", ("gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",)),
    Row(
        "dram",
        "DRAM %",
        "%",
        (
            "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
            "dram__throughput.avg.pct_of_peak_sustained_elapsed",
        ),
    ),
    Row("needed", "needed bytes, % of DRAM in theory", "%", ("vecadd__needed.pct",)),
    Row("l1", "L1 %", "%", ("l1tex__throughput.avg.pct_of_peak_sustained_active",)),
    Row("l2", "L2 %", "%", ("lts__throughput.avg.pct_of_peak_sustained_elapsed",)),
    Row("occupancy", "occupancy, theoretical %", "%", ("sm__maximum_warps_per_active_cycle_pct",)),
    Row("achieved", "occupancy, achieved %", "%", ("sm__warps_active.avg.pct_of_peak_sustained_active",)),
    Row("warps", "warps an SM, theoretical", "number", ("sm__maximum_warps_avg_per_active_cycle",)),
    Row("active", "warps an SM, active", "number", ("sm__warps_active.avg.per_cycle_active",)),
    Row("limit_sm", "block limit: SM", "count", ("launch__occupancy_limit_blocks",)),
    Row("limit_registers", "block limit: registers", "count", ("launch__occupancy_limit_registers",)),
    Row("limit_shared", "block limit: shared memory", "count", ("launch__occupancy_limit_shared_mem",)),
    Row("limit_warps", "block limit: warps", "count", ("launch__occupancy_limit_warps",)),
    Row("registers", "registers a thread", "count", ("launch__registers_per_thread",)),
    Row("static_shared", "static shared memory a block", "bytes", ("launch__shared_mem_per_block_static",)),
    Row("dynamic_shared", "dynamic shared memory a block", "bytes", ("launch__shared_mem_per_block_dynamic",)),
    Row("block", "block", "count", ("launch__block_size",)),
    Row("grid", "grid", "count", ("launch__grid_size",)),
    Row("threads", "threads", "count", ("launch__thread_count",)),
    Row("waves", "waves", "number", ("launch__waves_per_multiprocessor",)),
    Row(
        "instructions",
        "instructions (of warps)",
        "count",
        ("smsp__inst_executed.sum", "sm__inst_executed.sum", "smsp__inst_issued.sum"),
    ),
)


def of(raw: Mapping[str, tuple[float, str]]) -> dict[str, float]:
    """The rows' values in base units (seconds, bytes) by key, from the profiler's (value, unit); metrics that it did
    not give are left out."""
    found = {}
    for row in ROWS:
        name = next((name for name in row.names if name in raw), None)
        if name is not None:
            value, unit = raw[name]
            found[row.key] = value * SCALES.get(unit, 1.0)
    return found

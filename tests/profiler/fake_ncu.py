"""Replaces Nsight Compute's `ncu` where a test puts it on PATH: runs the child, and prints pages in its CSV.

The layout of each page is that of ncu 2025.3's `--csv --page raw|details|source --print-units base`: a line of units
below the raw page's names, a line a metric and a line a rule in the details page, a block a kernel in the source page.
The numbers are made up. FAKE_NCU names a way to fail instead.
"""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

REFUSALS = {
    "permission": (
        "==PROF== Connected to process 4711 (/usr/bin/python3)\n"
        "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters on "
        "the target device 0. For instructions on enabling permissions and to get more information see "
        "https://developer.nvidia.com/ERR_NVGPUCTRPERM\n"
        "==PROF== Disconnected from process 4711\n==WARNING== No kernels were profiled.\n",
        1,
    ),
    "library": ("==ERROR== Failed to initialize the profiler: LibraryNotLoaded\n", 255),
    "nonsense": ("==ERROR== The stars are wrong.\n", 3),
    "nothing": ("==PROF== Connected to process 4711\n==WARNING== No kernels were profiled.\n", 0),
}

IDENTITY = [
    "ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size",
    "Device", "CC",
]  # fmt: skip
STALLED = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"

# Name: unit, and the values of the delay kernel, naive and float4.
RAW = {
    "dram__bytes_read.sum.per_second": ("byte/s", "0", "2,983,118,771,004.31", "3,021,774,003,121.90"),
    "gpc__cycles_elapsed.max": ("cycle", "40,612", "1,437,733", "1,152,204"),
    "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": ("%", "0.02", "76.94", "93.41"),
    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": ("%", "0.01", "76.94", "93.41"),
    "gpu__time_duration.sum": ("ns", "23,232", "738,912", "592,160"),
    "l1tex__throughput.avg.pct_of_peak_sustained_active": ("%", "0.24", "24.61", "15.02"),
    "launch__block_size": ("", "1", "256", "256"),
    "launch__grid_size": ("", "1", "524,288", "131,072"),
    "launch__occupancy_limit_blocks": ("block", "32", "32", "32"),
    "launch__occupancy_limit_registers": ("block", "64", "16", "10"),
    "launch__occupancy_limit_shared_mem": ("block", "32", "32", "32"),
    "launch__occupancy_limit_warps": ("block", "64", "8", "8"),
    "launch__registers_per_thread": ("register/thread", "16", "16", "24"),
    "launch__shared_mem_per_block_static": ("byte/block", "0", "0", "0"),
    "launch__thread_count": ("thread", "1", "134,217,728", "33,554,432"),
    "launch__waves_per_multiprocessor": ("", "0.00", "496.48", "124.12"),
    "lts__throughput.avg.pct_of_peak_sustained_elapsed": ("%", "0.05", "62.10", "74.55"),
    "sm__maximum_warps_avg_per_active_cycle": ("warp", "32", "64", "64"),
    "sm__maximum_warps_per_active_cycle_pct": ("%", "50", "100", "100"),
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": ("%", "0.11", "20.83", "8.02"),
    "sm__warps_active.avg.pct_of_peak_sustained_active": ("%", "1.56", "81.47", "84.22"),
    "sm__warps_active.avg.per_cycle_active": ("warp", "1", "52.14", "53.90"),
    STALLED.format("barrier"): ("inst", "0", "0", "0"),
    STALLED.format("branch_resolving"): ("inst", "6.10", "0.49", "0.80"),
    STALLED.format("drain"): ("inst", "0", "0.95", "3.81"),
    STALLED.format("lg_throttle"): ("inst", "0", "0.02", "0.01"),
    STALLED.format("long_scoreboard"): ("inst", "0", "43.01", "180.33"),
    STALLED.format("long_scoreboard_not_issued"): ("inst", "0", "42.90", "180.01"),
    STALLED.format("selected"): ("inst", "1", "1", "1"),
    STALLED.format("short_scoreboard"): ("inst", "0", "0", "0"),
    STALLED.format("wait"): ("inst", "3.20", "2.03", "2.61"),
    "smsp__inst_executed.sum": ("inst", "81,220", "71,303,168", "22,020,096"),
    "smsp__pcsamp_sample_buffer_full": ("", "no", "no", "no"),
}  # fmt: skip
OFTEN = {"naive": "4,194,304", "float4": "1,048,576"}  # warps
SASS = {
    "naive": [
        "      LDC R1, c[0x0][0x28]", "      S2R R0, SR_TID.X", "      IMAD.WIDE.U32 R2, R0, c[0x0][0x0], R2",
        "@P0   EXIT", "      LDG.E R4, desc[UR4][R2.64]", "      LDG.E R5, desc[UR4][R6.64]", "      FADD R9, R4, R5",
        "      STG.E desc[UR4][R8.64], R9", "      EXIT",
    ],
    "float4": [
        "      LDC R1, c[0x0][0x28]", "      S2R R0, SR_TID.X", "@P0   BRA 0x7fc48541d9f0",
        "      LDG.E.128 R4, desc[UR4][R2.64]", "      LDG.E.128 R8, desc[UR4][R6.64]", "      FADD R4, R4, R8",
        "      STG.E.128 desc[UR4][R8.64], R4", "      EXIT",
    ],
}  # fmt: skip
COLUMN = {"naive": 2, "float4": 3}
DELAY = "wait_cycles(long)"


def kernel(rung):
    return f"void {rung}_add<lane_f32>(const T1::element *, const T1::element *, T1::element *, unsigned long)"


def identity(number, name, grid, block):
    return [str(number), "4711", "python3", "host", name, "1", "7", f"({block}, 1, 1)", f"({grid}, 1, 1)", "0", "9.0"]


def raw(rung):
    yield IDENTITY + list(RAW)
    yield [""] * len(IDENTITY) + [values[0] for values in RAW.values()]
    yield identity(0, DELAY, 1, 1) + [values[1] for values in RAW.values()]
    yield identity(1, kernel(rung), 524288, 256) + [values[COLUMN[rung]] for values in RAW.values()]


def details(rung):
    yield [
        *IDENTITY, "Section Name", "Metric Name", "Metric Unit", "Metric Value",
        "Rule Name", "Rule Type", "Rule Description", "Estimated Speedup Type", "Estimated Speedup",
    ]  # fmt: skip
    for number, name in enumerate((DELAY, kernel(rung))):
        who = identity(number, name, 1, 1)
        yield [*who, "GPU Speed Of Light Throughput", "Duration", "ns", "738,912", "", "", "", "", ""]
        slow = "This kernel grid is too small to fill the available resources." if number == 0 else (
            "This workload is utilizing greater than 80.0% of the available compute or memory performance of this "
            "device.\nTo further improve performance, work will likely need to be shifted."
        )  # fmt: skip
        yield [*who, "GPU Speed Of Light Throughput", "", "", "", "SOLBottleneck", "INF", slow, "", ""]
        if number:
            waits = "On average, each warp of this workload spends 43.0 cycles being stalled waiting for a scoreboard."
            yield [*who, "Warp State Statistics", "", "", "", "CPIStall", "OPT", waits, "global", "23.06"]


def source(rung):
    for name, lines, often in ((DELAY, ["      CS2R R2, SR_CLOCKLO"], "1"), (kernel(rung), SASS[rung], OFTEN[rung])):
        yield ["Kernel Name", name, ""]
        yield ["Address", "Source", "# Samples", "Instructions Executed", "Instructions Executed", "stall_long_sb"]
        for at, line in enumerate(lines):
            yield [f"0x7fc48541d{at:02x}0", line, "42", often, often, "0"]


def main(arguments):
    if "--import" in arguments:
        rung = json.loads(Path(arguments[arguments.index("--import") + 1]).read_text())["rung"]
        page = {"raw": raw, "details": details, "source": source}[arguments[arguments.index("--page") + 1]]
        csv.writer(sys.stdout, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(page(rung))
        return 0
    if way := os.environ.get("FAKE_NCU"):
        said, status = REFUSALS[way]
        print(said, end="")
        return status
    child = arguments[arguments.index(sys.executable) :]
    print("==PROF== Connected to process 4711")
    status = subprocess.run(child).returncode
    if status:
        print(f"==ERROR== The application returned an error code ({status}).")
        return status
    Path(arguments[arguments.index("--export") + 1]).write_text(child[-1])
    return 0


sys.exit(main(sys.argv[1:]))

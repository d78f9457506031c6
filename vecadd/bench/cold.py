"""A cold start: one addition by a program that has just begun, on the GPU and on the processor alone.

Document 004's row "whole program": at 1e6 elements the kernel takes the least of the time, and the processor is done
before CUDA has a context. No other row of a sweep shows what a process pays once.
"""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from time import perf_counter
from typing import Any

from vecadd._machine import python_command, run_child

ROW = "cold_start"  # what a sweep calls it, and vecadd.bench.recorded
ELEMENTS = 10**6  # of document 004

TIMEOUT = 120.0  # seconds; several GPUs without persistence mode take some 10

_PROGRAM = Path(__file__).with_name("cold_program.py")

# What each stage does, in order; each runs only once in its process.
STAGES: Mapping[str, str] = {
    "import": "NumPy and vecadd",
    "operands": "three host arrays, two of them filled",
    "driver": "the first CUDA call: starts the driver and looks for GPUs",
    "context": "the first call that needs a context: makes it and the memory pool, loads add's kernels, copies 4 bytes",
    "upload": "three arrays to the device, allocation included",
    "launch": "single_thread, document 004's <<<1, 1>>>, for the first time: loads it, launches it, waits for it",
    "download": "the sum to the host",
    "add": "the addition by the processor",
}


def measure(n: int = ELEMENTS, device: int = 0) -> dict[str, Any]:
    """Runs the program twice, each time in a process of its own, and returns seconds::

        {"n": n,
         "gpu": {"import", "operands", "driver", "context", "upload", "launch", "download",  # see STAGES
                 "kernel",  # of "launch": by CUDA events
                 "program",  # from the first line of the program to the last: the sum of the stages
                 "own",  # the same without "import": what a program without Python and NumPy pays too
                 "process",  # from before the process was started until it had ended, interpreter included
                 "checked"},  # whether the sum was right
         "cpu": {"import", "operands", "add", "program", "own", "process", "checked"}}

    float32, n elements; ``device`` is a CUDA ordinal. ``result["gpu"]["own"]`` is the figure beside document 004's
    3.8 s, ``result["cpu"]["own"]`` the one beside its 8 ms: its programs start no interpreter. This process makes no
    CUDA call. What the files of Python, CUDA and vecadd cost to read depends on whether an earlier process has read
    them.

    Raises RuntimeError where there is no GPU or a program fails or takes longer than TIMEOUT, with what it said.
    """
    return {"n": n, "gpu": _run("gpu", n, device), "cpu": _run("cpu", n, device)}


def _run(where: str, n: int, device: int) -> dict[str, Any]:
    # -P: modules in the program's own folder have the names of other modules.
    command = python_command(str(_PROGRAM), where, str(n), str(device))
    begin = perf_counter()
    try:
        result = run_child(command, TIMEOUT)
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"a cold start on the {where} took longer than {TIMEOUT:g} s") from None
    seconds = perf_counter() - begin
    if result.returncode:
        last = result.stderr.strip().rpartition("\n")[2] or f"exit status {result.returncode}"
        raise RuntimeError(f"a cold start on the {where} failed: {last}")
    found: dict[str, Any] = json.loads(result.stdout)
    return {**found, "process": seconds}

"""A launch without Nsight Compute: its time by CUDA events, and what the CUDA runtime knows of its kernel. It reads no
counter of the GPU."""

from collections.abc import Mapping
from math import prod
from statistics import median
from typing import Any

from vecadd import _core
from vecadd.bench.operands import DEVICE, Buffers, WrongSumError
from vecadd.bench.options import find_dtype
from vecadd.profile import child
from vecadd.profile.ncu import Launch, ProfilerError
from vecadd.profile.spec import Spec

RUNS = 9  # timed; the median counts

Raw = Mapping[str, tuple[float, str]]


def profile(spec: Spec, theory: float | None, why: str) -> Launch:
    """A launch of a device rung, with the names of Nsight Compute's metrics; ``theory`` is the DRAM's rate in theory,
    bytes a second, and ``why`` says why it has no counters.

    Raises ProfilerError where the rung fails."""
    seconds: list[float] = []

    def watched(used: Buffers) -> None:
        for _ in range(RUNS):
            if spec.facts["sum"] != "written":
                DEVICE.clear(used.out)
            seconds.append(
                _core.run_rung(spec.rung, used.a, used.b, used.out, block=spec.block, params=dict(spec.params))
            )

    try:
        facts = _core.rung_facts(spec.rung, spec.dtype, spec.n, block=spec.block, params=dict(spec.params))
        child.run(spec, watched)
    except (MemoryError, RuntimeError, TypeError, ValueError, WrongSumError) as error:
        raise ProfilerError(f"{type(error).__name__}: {error}") from error
    duration = median(seconds)
    return Launch(spec.rung, {**_of_time(spec, duration, theory), **_of_launch(facts)}, why=why)


def moved(spec: Spec) -> int:
    """Bytes that the rung has to move: of its operands and its sum, each once."""
    words = spec.facts["bytes_per_element"] // 4 or 3  # a transfer's row does not say
    return spec.n * words * find_dtype(spec.dtype).itemsize


def _of_time(spec: Spec, duration: float, theory: float | None) -> Raw:
    share = {"vecadd__needed.pct": (100 * moved(spec) / duration / theory, "%")} if theory and duration else {}
    return {"gpu__time_duration.sum": (duration, "s"), **share}


def _of_launch(facts: Mapping[str, Any]) -> Raw:
    block, grid = prod(facts["block"]), prod(facts["grid"])
    plain = {
        "sm__maximum_warps_per_active_cycle_pct": 100 * facts["occupancy"],
        "launch__registers_per_thread": facts["registers"],
        "launch__shared_mem_per_block_static": facts["static_shared"],
        "launch__shared_mem_per_block_dynamic": facts["dynamic_shared"],
        "launch__block_size": block,
        "launch__grid_size": grid,
        "launch__thread_count": block * grid,
        "launch__waves_per_multiprocessor": facts["waves"],
    }
    return {name: (float(value), "") for name, value in plain.items()}

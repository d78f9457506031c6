"""Rehearsals of additions that a GPU makes where the operands lie, and the limits of GPUs and links."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from statistics import median
from typing import Any

import numpy as np

from vecadd import _core
from vecadd.bench import probes

BURST, ROUNDS = 64, 5  # additions that are queued one behind the other


@dataclass(frozen=True)
class DeviceTimes:
    """Seconds of an addition among many: ``added`` by calls of `vecadd.add`, ``planned`` by a plan, and the time
    ``busy`` that the GPU's memory needs for its bytes."""

    added: float
    planned: float
    busy: float


def rehearse(nbytes: int, number: int) -> DeviceTimes:
    """Adds two arrays of float32 that move so many bytes in all, on that GPU. Raises RuntimeError where CUDA fails."""
    words = max(1, nbytes // 3 // 4)
    ones = np.ones(words, np.float32)
    x, y, out = (_core.to_device(ones, number) for _ in range(3))
    last = out.reshape(-1)[:1]
    plan = _core.plan(x, y, out)
    added = _burst(lambda: _core.add(x, y, out), last.numpy)
    planned = _burst(plan, last.numpy)
    return DeviceTimes(added, planned, nbytes / _rate(number))


def link_limit(nbytes: int, number: int = 0) -> float:
    """The least seconds in which so many bytes of three arrays go through that GPU and back."""
    return nbytes / _link(number)


def _burst(call: Callable[[], Any], wait: Callable[[], Any]) -> float:
    taken = []
    for _ in range(ROUNDS):
        wait()
        begun = time.perf_counter()
        for _ in range(BURST):
            call()
        wait()
        taken.append((time.perf_counter() - begun) / BURST)
    return median(taken)


@cache
def _rate(number: int) -> float:
    facts = _core.gpu_facts()[number]
    return 1e9 * probes.probe_device(number, facts["l2"], facts["memory"])["gbps"]


@cache
def _link(number: int) -> float:
    return 1e9 * probes.probe_link(number)["gbps"]

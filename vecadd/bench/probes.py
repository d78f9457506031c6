"""The best that the memory or the link allows, from probes in the same process as the rungs that they bound."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from vecadd import _core
from vecadd.bench.operands import HOST, Buffers

DEVICE_CACHES = 32  # the device probe's memory in L2 sizes: reuse of a full L2 would be 3 % of its traffic
PROBE_ROUNDS = 10
LOADED_ROUNDS = 5  # of 14 points each
WORD = 4  # bytes: what the host's probe adds at a time, whatever the dtype
LINK_BYTES = 64 << 20  # rates of a PCIe 5 x16 link are flat from 16 MiB on
ONE_THREADS = 64 << 20  # bytes of the largest arrays probed with one thread: 10 ms
HOST_ARRAYS = (1 << 20, 4 << 20, 16 << 20, 64 << 20, 128 << 20)  # bytes; the largest exceed every cache


class Limit:
    """A bound for one cell in GB/s, known before the rounds; None where there is none. Those that are probed among the
    rounds say more: ``round()`` is called once a round, ``gbps`` is read after the last."""

    def __init__(self, gbps: float | None = None) -> None:
        self._known = gbps

    @property
    def gbps(self) -> float | None:
        """The bound."""
        return self._known

    def open(self, buffers: Mapping[str, Sequence[Buffers]]) -> None:
        """Called before the first round, with the operands by the name of their memory."""

    def round(self) -> None:
        """Probes once."""

    def close(self) -> None:
        """Called after the last round, whatever happened."""


class HostLimit(Limit):
    """The best rate over threads, partitions and kinds of store, on the arrays that the rungs add."""

    def __init__(self) -> None:
        self._nbytes = 0
        self._rounds: list[float] = []
        self._probe: object = None

    def open(self, buffers: Mapping[str, Sequence[Buffers]]) -> None:
        """Prepares a probe of these operands."""
        a, b, out, _ = buffers[HOST.name][0]
        self._nbytes = 3 * (a.nbytes // WORD * WORD)
        if self._nbytes:
            self._probe = _core.host_limit(a, b, out)

    def round(self) -> None:
        """Adds them by each variant."""
        if self._probe is not None:
            self._rounds.append(_core.host_limit_round(self._probe))

    def close(self) -> None:
        """Lets go of the operands."""
        self._probe = None

    @property
    def gbps(self) -> float | None:
        """The best variant's rate in its best round."""
        return self._nbytes / min(self._rounds) / 1e9 if self._rounds and min(self._rounds) > 0 else None

    @property
    def typical(self) -> float | None:
        """Seconds of the best variant in the median round: a fair limit for the medians of others."""
        return statistics.median(self._rounds) if self._rounds else None


def device_gbps(read: float, write: float, reads: int = 2) -> float:
    """The bound in GB/s of a kernel that reads ``reads`` arrays and writes one, from the read-only and write-only rates
    in bytes a second: an addition takes 2 / read + 1 / write for 3 bytes. The memory's turns between reading and
    writing are not counted."""
    return (reads + 1) / (reads / read + 1 / write) / 1e9


def link_gbps(to_device: float, both: float) -> float:
    """The bound of host → GPU → host in GB/s of 3 arrays, from rates in bytes a second.

    Two arrays go up and one comes down. The download overlaps with the upload of as many bytes, at half of `both` each:
    2 / both for the two. The other array goes up alone: 1 / to_device. A link whose directions do not slow each other
    is bound by its two uploads.
    """
    return 3 / max(2 / both + 1 / to_device, 2 / to_device) / 1e9


def probe_device(device: int, l2: int, memory: int) -> dict[str, float]:
    """The device memory's rates of reading, writing and copying, the bound of an addition, its L2's rates, in GB/s."""
    rates = _core.probe("rates", device, min(DEVICE_CACHES * l2, memory // 4), PROBE_ROUNDS)
    return {
        "read_gbps": rates["read"] / 1e9,
        "write_gbps": rates["write"] / 1e9,
        "gbps": device_gbps(rates["read"], rates["write"]),
        "copy_gbps": rates["copy"] / 1e9,
        "l2_read_gbps": rates["l2_read"] / 1e9,
        "l2_write_gbps": rates["l2_write"] / 1e9,
    }


def probe_latency(device: int) -> dict[str, float]:
    """Seconds of a load in a chain of dependent loads, by where the data are, of a round of a block's loads from DRAM,
    and of an atomic addition to one address."""
    return {f"{where}_seconds": seconds for where, seconds in _core.probe("latency", device).items()}


def probe_loaded(device: int, l2: int, memory: int) -> dict[str, list[float]]:
    """The memory under load, a list each: bytes of loads in flight on each multiprocessor, seconds until they have
    arrived, and GB/s of the whole GPU."""
    found = _core.probe("loaded", device, min(DEVICE_CACHES * l2, memory // 4), LOADED_ROUNDS)
    points = [point for point in zip(*(found[key] for key in ("bytes", "seconds", "rate")), strict=True) if point[0]]
    in_flight, seconds, rates = (list(column) for column in zip(*points, strict=True))
    return {"bytes_in_flight": in_flight, "seconds": seconds, "gbps": [rate / 1e9 for rate in rates]}


def probe_launch(device: int) -> dict[str, Any]:
    """Seconds of an empty kernel by the clock of the device rungs, of each block that a grid starts, from block
    to block of a full multiprocessor, of each further kernel of a queue and node of a graph, of the host for queueing a
    kernel and until one is done, of a table of jobs, and of programmatic launches where the GPU has them; and of each
    further node of a graph whose kernels move ``bytes`` bytes that are in no cache, a list of them."""
    found = _core.probe("launches", device)
    return {what if what == "bytes" else f"{what}_seconds": seconds for what, seconds in found.items()}


def probe_link(device: int) -> dict[str, float]:
    """Rates of the link in each direction alone and of both in sum, and the resulting bound, in GB/s."""
    rates = _core.probe("link", device, LINK_BYTES, PROBE_ROUNDS)
    return {
        "to_device_gbps": rates["to_device"] / 1e9,
        "to_host_gbps": rates["to_host"] / 1e9,
        "both_gbps": rates["both"] / 1e9,
        "gbps": link_gbps(rates["to_device"], rates["both"]),
    }


def probe_threads(memory: int) -> dict[str, Any]:
    """Seconds until the host's threads wake, and seconds of the best addition of arrays of each of ``bytes`` by all
    threads and by one, a list each. ``memory`` is the host's, in bytes."""
    found = _core.wake_limits()
    sizes = [nbytes for nbytes in HOST_ARRAYS if nbytes <= memory // 16]
    return {
        "threads": found["threads"],
        "wake_seconds": found["wake"],
        "wake_one_seconds": found["wake_one"],
        "bytes": sizes,
        "add_seconds": [_host_add(nbytes, 0) for nbytes in sizes],
        "add_one_seconds": [_host_add(nbytes, 1) for nbytes in sizes if nbytes <= ONE_THREADS],
    }


def _host_add(nbytes: int, threads: int) -> float:
    a, b, out = (np.ones(nbytes // WORD, np.uint32) for _ in range(3))
    return _core.host_limit_round(_core.host_limit(a, b, out, threads))

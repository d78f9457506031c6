"""The stages: which peers meet at which sizes, and the clock that all of them are timed by."""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from time import perf_counter
from typing import Any

import numpy as np

import vecadd
from benchmarks.peers import libraries
from benchmarks.peers.libraries import Add, Library
from vecadd import _core
from vecadd.bench import contestants, limits
from vecadd.bench.axes import Axes
from vecadd.bench.buffers import DEVICE, HOST, PINNED, Buffers, rotation
from vecadd.bench.contestants import Contestant
from vecadd.bench.sweeps import Machine, Sweep, grid
from vecadd.bench.timing import Cell

ASLEEP = 200_000  # GPU cycles, 0.1 ms, that the GPU waits for each queued addition: the slowest call takes 15 us

OVERHEAD_N = 1024
OVERHEAD_CALLS = 500  # in a round; a GPU's queue holds 1024 launches, and a full one makes the caller wait

TRANSFER_N = 100_000_000

LARGE_N = 1 << 28  # float32 elements whose addition goes ahead of what is timed
READ_N = 1 << 24  # the same where the sum is read next: 200 MB, beyond the L2 and what the table holds there
RESIDENT_N = 3_750_000  # three arrays of them are 45 MB: they stay in an L2 of 60 MB
RESIDENT_ADDS = 40

BATCH = 1 << 16  # elements that a host sample adds at least: at 2^4 that is 4096 calls, or 1 ms


def device(axes: Axes, machine: Machine) -> Iterator[Cell]:
    """Device memory → device memory by CUDA events, everything on the legacy default stream."""
    makers = [
        libraries.vecadd_device_arrays,
        libraries.vecadd_torch_tensors,
        libraries.torch_tensors,
        libraries.cub_on_tensors,
        libraries.cupy_arrays,
    ]
    peers = [_contestant(peer, _by_events) for peer in libraries.found(makers)]
    for dtype, n, set_bytes in grid(axes):
        sets = rotation(set_bytes, machine.gpu["l2"], machine.gpu["memory"] // 10)
        limit = limits.FixedLimit(machine.device_limit)
        yield Cell("peer-device", dtype, n, list(peers), limit, sets, reference="vecadd")


def overhead(axes: Axes, machine: Machine) -> Iterator[Cell]:
    """What a call costs its caller: many small additions into `out`, the queue empty before and drained after."""
    del axes, machine
    makers = [
        libraries.vecadd_device_arrays,
        libraries.vecadd_torch_tensors,
        libraries.torch_tensors,
        libraries.cupy_arrays,
    ]
    peers = [_contestant(peer, _by_calls) for peer in libraries.found(makers)]
    yield Cell(
        "peer-overhead", np.dtype("float32"), OVERHEAD_N, peers, limits.FixedLimit(None), sets=1, reference="vecadd"
    )


def transfer(axes: Axes, machine: Machine) -> Iterator[Cell]:
    """Host memory → GPU → host memory, by the host's clock; NumPy on the host beside it."""
    del axes
    ours = contestants.transfer_add(PINNED, memory="pinned")
    rungs = [
        contestants.rung(name, place, memory="pinned" if place is PINNED else "pageable")
        for name, place in (("pinned_reused", PINNED), ("pinned", PINNED), ("pageable", HOST))
        if name in contestants.rung_names("transfer", "float32")
    ]
    others = [_contestant(peer, contestants.by_host_clock) for peer in libraries.found([libraries.torch_round_trip])]
    peers = [ours, *rungs, *others]
    peers += [contestants.transfer_add(HOST, memory="pageable"), contestants.numpy_add()]
    limit = limits.FixedLimit(machine.link_limit)
    yield Cell("peer-transfer", np.dtype("float32"), TRANSFER_N, peers, limit, sets=1, reference="add")


def host(axes: Axes, machine: Machine) -> Iterator[Cell]:
    """NumPy arrays on the host, back to back on the same operands; with `out=` and with a new result."""
    del machine
    into = [Contestant(f"{peer.name} out=", HOST, _back_to_back(peer.add)) for peer in _HOST_PEERS]
    fresh = [
        Contestant("vecadd", HOST, _back_to_back_new(lambda a, b: vecadd.add(a, b))),
        Contestant("numpy", HOST, _back_to_back_new(lambda a, b: np.add(a, b))),
    ]
    for dtype, n, _ in grid(axes):
        yield Cell("peer-host", dtype, n, into + fresh, limits.FixedLimit(None), sets=1, reference="vecadd out=")


def courtesy(axes: Axes, machine: Machine) -> Iterator[Cell]:
    """What an addition costs the kernels after it: those on other memory, in the L2, and those that read its sum."""
    del axes
    limit = limits.FixedLimit(None)
    ways = {"plain loads": {"loads": 1, "warps": 24}, "tuned": {}, "evict_last": {"loads": 2, "warps": 24}}
    float32 = np.dtype("float32")

    @functools.cache  # to the stage's end: a GPU is slower for a while after memory was freed
    def kept(which: str, n: int) -> Any:
        return _core.to_device(np.zeros(n, float32))

    resident = [Contestant(f"45 MB after {name}", DEVICE, _resident_after(way, kept)) for name, way in ways.items()]
    yield Cell("peer-courtesy", float32, RESIDENT_N, resident, limit, sets=1, reference="45 MB after plain loads")
    reading = [
        Contestant(f"reads the sum of {name}", DEVICE, _reading_after(way, kept), arrays=2)
        for name, way in ways.items()
    ]
    sets = rotation(3 * float32.itemsize * READ_N, machine.gpu["l2"], machine.gpu["memory"] // 10)
    yield Cell("peer-courtesy", float32, READ_N, reading, limit, sets, reference="reads the sum of plain loads")


STAGES = {
    "device": Sweep(
        "peer-device",
        device,
        "timed by CUDA events while the GPU sleeps through the queueing, so that no caller's overhead lies between the "
        "two events",
    ),
    "overhead": Sweep(
        "peer-overhead",
        overhead,
        f"timed by the host over {OVERHEAD_CALLS} queued calls, the queue empty before and drained after",
    ),
    "courtesy": Sweep(
        "peer-courtesy",
        courtesy,
        f"timed by CUDA events around each kernel that comes after the addition: the mean of {RESIDENT_ADDS} additions "
        "by the rung float4 on the same 45 MB, or one that adds the sum to itself",
    ),
    "transfer": Sweep(
        "peer-transfer",
        transfer,
        "rungs timed in C, around the whole way there and back; all else around the Python call",
    ),
    "host": Sweep(
        "peer-host",
        host,
        f"timed by the host around back-to-back calls on the same operands, at least {BATCH} elements of them",
        needs_gpu=False,
    ),
}

_HOST_PEERS = [libraries.vecadd_host(), libraries.numpy_host()]

Timer = Callable[[Sequence[Buffers]], float]


def _contestant(peer: Library, clock: Callable[[Add], Timer]) -> Contestant:
    return Contestant(peer.name, peer.place, clock(peer.add))


def _by_events(add: Add) -> Timer:
    """Events around each addition. The GPU sleeps while they are queued, or the caller's time would be between them."""
    torch = libraries.module("torch")

    def time(sets: Sequence[Buffers]) -> float:
        pairs = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in sets]
        torch.cuda.synchronize()
        torch.cuda._sleep(ASLEEP * len(sets))
        for (begin, end), (a, b, out, _) in zip(pairs, sets, strict=True):
            begin.record()
            add(a, b, out)
            end.record()
        torch.cuda.synchronize()
        milliseconds: float = sum(begin.elapsed_time(end) for begin, end in pairs)
        return milliseconds / 1e3 / len(sets)

    return time


def _by_calls(add: Add) -> Timer:
    torch = libraries.module("torch")

    def time(sets: Sequence[Buffers]) -> float:
        a, b, out, _ = sets[0]
        torch.cuda.synchronize()
        begin = perf_counter()
        for _ in range(OVERHEAD_CALLS):
            add(a, b, out)
        seconds = perf_counter() - begin
        torch.cuda.synchronize()
        return seconds / OVERHEAD_CALLS

    return time


def _resident_after(way: Mapping[str, int], kept: Callable[[str, int], Any]) -> Timer:
    """A large addition, then some on the sets' memory: the mean of those."""

    def time(sets: Sequence[Buffers]) -> float:
        a, b, out, _ = sets[0]
        large = [kept(which, LARGE_N) for which in ("a", "b", "out")]
        _core.run_rung("tuned", *large, params=dict(way))
        return sum(_core.run_rung("float4", a, b, out) for _ in range(RESIDENT_ADDS)) / RESIDENT_ADDS

    return time


def _reading_after(way: Mapping[str, int], kept: Callable[[str, int], Any]) -> Timer:
    """The sets' addition, then one that reads its sum: the second one alone."""

    def time(sets: Sequence[Buffers]) -> float:
        seconds = 0.0
        for a, b, out, _ in sets:
            twice = kept("twice", len(out))
            _core.run_rung("tuned", a, b, out, params=dict(way))
            seconds += _core.run_rung("float4", out, out, twice)
        return seconds / len(sets)

    return time


def _back_to_back(add: Add) -> Timer:
    def time(sets: Sequence[Buffers]) -> float:
        a, b, out, _ = sets[0]
        calls = max(1, BATCH // len(out))
        begin = perf_counter()
        for _ in range(calls):
            add(a, b, out)
        return (perf_counter() - begin) / calls

    return time


def _back_to_back_new(add: Callable[[Any, Any], Any]) -> Timer:
    """As _back_to_back; each result is dropped when the next one is there, and the last one is what gets checked."""

    def time(sets: Sequence[Buffers]) -> float:
        a, b, out, _ = sets[0]
        calls = max(1, BATCH // len(out))
        begin = perf_counter()
        for _ in range(calls):
            result = add(a, b)
        seconds = perf_counter() - begin
        out[...] = result
        return seconds / calls

    return time

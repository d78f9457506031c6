"""What an addition costs the kernels after it."""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.peers import libraries, tensors
from benchmarks.peers.clocks import Timer
from benchmarks.peers.libraries import Add, Entry
from vecadd import _core
from vecadd.bench.contestants import Contestant
from vecadd.bench.operands import DEVICE, Buffers
from vecadd.bench.options import Options
from vecadd.bench.run import Machine, Sweep
from vecadd.bench.timing import Cell

LARGE_N = 1 << 28  # float32 elements of the addition ahead of the timed work
READ_N = 1 << 24  # as LARGE_N, where the sum is read next: 200 MB, beyond the L2 and the lines kept there
RESIDENT_N = 3_750_000  # three arrays of them are 45 MB: they stay in an L2 of 60 MB
RESIDENT_ADDS = 40


def cells(options: Options, machine: Machine) -> Iterator[Cell]:
    """What an addition costs the kernels after it: those on other memory, in the L2, and those that read its sum."""
    del options
    ways = {"plain loads": {"loads": 1, "warps": 24}, "tuned": {}, "evict_last": {"loads": 2, "warps": 24}}
    float32 = np.dtype("float32")

    @functools.cache  # kept to the stage's end: freeing memory slows the GPU for a while
    def kept(which: str, n: int) -> Any:
        return _core.to_device(np.zeros(n, float32))

    resident = [Contestant(f"45 MB after {name}", DEVICE, _resident_after(way, kept)) for name, way in ways.items()]
    yield Cell(float32, RESIDENT_N, resident, sets=1, reference="45 MB after plain loads")
    torch = Entry("torch", "torch", "torch", lambda: libraries.module("torch").cuda.Stream())
    with_torch = bool(list(libraries.meeting("peer-l2-pollution", [torch], machine.missing)))
    on_another = [
        Contestant(f"45 MB on another stream after {name}", DEVICE, _resident_on_another_stream(way, kept))
        for name, way in ways.items()
        if with_torch
    ]
    reference = "45 MB on another stream after plain loads"
    yield Cell(float32, RESIDENT_N, on_another, sets=1, reference=reference)
    adds: dict[str, Add] = {name: functools.partial(_add_by, way) for name, way in ways.items()}
    if with_torch:
        adds["torch"] = _add_by_torch
    reading = [
        Contestant(f"reads the sum of {name}", DEVICE, _reading_after(add, kept), arrays=2)
        for name, add in adds.items()
    ]
    sets = tensors.count_sets(machine, READ_N, float32)
    yield Cell(float32, READ_N, reading, sets=sets, reference="reads the sum of plain loads")


def _resident_after(way: Mapping[str, int], kept: Callable[[str, int], Any]) -> Timer:
    """A large addition, then some on the sets' memory: the mean of the latter."""

    def time(sets: Sequence[Buffers]) -> float:
        a, b, out, _ = sets[0]
        large = [kept(which, LARGE_N) for which in ("a", "b", "out")]
        _core.run_rung("tuned", *large, params=dict(way))
        return sum(_core.run_rung("float4", a, b, out) for _ in range(RESIDENT_ADDS)) / RESIDENT_ADDS

    return time


def _resident_on_another_stream(way: Mapping[str, int], kept: Callable[[str, int], Any]) -> Timer:
    """A large addition, then torch's on the sets' memory on another stream: the mean of torch's."""

    def time(sets: Sequence[Buffers]) -> float:
        torch = libraries.module("torch")
        a, b, out = (torch.as_tensor(x, device="cuda") for x in sets[0][:3])
        large = [kept(which, LARGE_N) for which in ("a", "b", "out")]
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        stream = torch.cuda.Stream()
        _core.run_rung("tuned", *large, params=dict(way))
        with torch.cuda.stream(stream):
            begin.record()
            for _ in range(RESIDENT_ADDS):
                torch.add(a, b, out=out)
            end.record()
        end.synchronize()
        milliseconds: float = begin.elapsed_time(end)
        return milliseconds / 1e3 / RESIDENT_ADDS

    return time


def _add_by(way: Mapping[str, int], a: Any, b: Any, out: Any) -> None:
    _core.run_rung("tuned", a, b, out, params=dict(way))


def _add_by_torch(a: Any, b: Any, out: Any) -> None:
    torch = libraries.module("torch")
    x, y, z = (torch.as_tensor(array, device="cuda") for array in (a, b, out))
    torch.add(x, y, out=z)
    torch.cuda.synchronize()


def _reading_after(add: Add, kept: Callable[[str, int], Any]) -> Timer:
    """The sets' addition, then one that reads its sum: the time of the second."""

    def time(sets: Sequence[Buffers]) -> float:
        seconds = 0.0
        for a, b, out, _ in sets:
            twice = kept("twice", len(out))
            add(a, b, out=out)
            seconds += _core.run_rung("float4", out, out, twice)
        return seconds / len(sets)

    return time


STAGE = Sweep(
    "peer-l2-pollution",
    cells,
    f"timed by CUDA events around each kernel that comes after the addition: the mean of {RESIDENT_ADDS} additions by "
    "the rung float4 on the same 45 MB, by torch on another stream, or one that adds the sum to itself",
)

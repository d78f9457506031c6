"""The cost of a call to its caller, from the Python call to its return, and its stages."""

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

import vecadd
from benchmarks.peers import clocks, device_peers, jax_peer, libraries, tensors
from benchmarks.peers.clocks import Timer
from benchmarks.peers.libraries import Add, Entry
from vecadd import _core
from vecadd.bench.contestants import Contestant
from vecadd.bench.operands import DEVICE, Buffers, MemoryKind
from vecadd.bench.options import Options
from vecadd.bench.run import Machine, Sweep
from vecadd.bench.timing import Cell

N = 1024
CALLS = 500  # in a round; a GPU's queue has room for 1024 launches, and a full one makes the caller wait
SUSTAINED = 3000  # calls in a row, until the GPU is done: the queue fills
REFERENCE = "vecadd (bare launch from C)"  # what calls are compared with


def cells(options: Options, machine: Machine) -> Iterator[Cell]:
    """Many small additions, the queue empty before and drained after: into `out`, into a new array, planned."""
    del options
    found = list(libraries.meeting("peer-overhead", LIBRARIES, machine.missing))
    peers = [Contestant(peer.name, peer.place, clocks.by_calls(peer.add, CALLS)) for peer in found]
    fresh = [_allocating(peer) for peer in found]
    float32 = np.dtype("float32")
    contestants = [*_bare(machine), *peers, *fresh, *_own(), *_compilers(machine), *_stages()]
    yield Cell(float32, N, contestants, sets=1, reference=REFERENCE)


def _compilers(machine: Machine) -> Iterator[Contestant]:
    """What compiles kernels: into out, but JAX into a new array."""
    table = [entry for entry in device_peers.entries() if entry.name in _SETTINGS]
    for peer in libraries.meeting("peer-overhead", table, machine.missing):
        add = peer.settings[_SETTINGS[peer.name]]
        yield Contestant(peer.name, tensors.shared(), clocks.by_calls(add, CALLS))
    yield from libraries.meeting("peer-overhead", [Entry("jax", "jax", "jax[cuda13]", _jax)], machine.missing)


_SETTINGS = {
    "torch.compile": "default",
    "cuda.compute": "",
    "triton": "block 1024, 4 warps",
    "helion": "block 1024, 4 warps",
    "numba": "block 256",
}


def _jax() -> Contestant:
    torch, take, add = libraries.module("torch"), *jax_peer.compiled()

    def time(sets: Sequence[Buffers]) -> float:
        a, b = (take(x) for x in sets[0][:2])
        result = add(a, b).block_until_ready()
        begin = perf_counter()
        for _ in range(CALLS):
            result = add(a, b)
        seconds = perf_counter() - begin
        sets[0].out.copy_(torch.from_dlpack(result.block_until_ready()))
        return seconds / CALLS

    return Contestant("jax.jit a + b", tensors.shared(), time)


def _bare(machine: Machine) -> Iterator[Contestant]:
    """The kernel of vecadd.add launched from C, on the stream and the memory that the Python calls have."""
    yield Contestant(REFERENCE, DEVICE, lambda sets: _core.raw_launches(*sets[0][:3], calls=CALLS))
    if machine.capability >= 90:
        yield Contestant(
            "vecadd (bare programmatic launch from C)",
            DEVICE,
            lambda sets: _core.raw_launches(*sets[0][:3], calls=CALLS, way="programmatic"),
        )
    yield Contestant(
        "vecadd (bare graph launch from C)",
        DEVICE,
        lambda sets: _core.raw_launches(*sets[0][:3], calls=CALLS, way="graph"),
    )


def _own() -> Iterator[Contestant]:
    """Calls that only DeviceArrays and plans have."""
    yield Contestant("vecadd +=", DEVICE, _in_place)
    yield Contestant("vecadd Plan()", DEVICE, _planned(CALLS, until_done=False))
    yield Contestant(f"vecadd Plan(), {SUSTAINED} in a row and done", DEVICE, _planned(SUSTAINED, until_done=True))
    yield Contestant(f"vecadd, {SUSTAINED} in a row and done", DEVICE, _sustained)


def _stages() -> Iterator[Contestant]:
    """The stages of vecadd.add(a, b, out) by themselves, timed in C: they add up to the call, less the interpreter."""
    for stage in ("parse", "describe", "plan", "allocate", "launch"):
        yield Contestant(f"vecadd stage: {stage}", DEVICE, partial(_stage, stage))


def _stage(stage: str, sets: Sequence[Buffers]) -> float:
    _drain(sets)
    seconds = _core.call_stages(*sets[0][:3], calls=CALLS)[stage]
    _drain(sets)
    return seconds


def _drain(sets: Sequence[Buffers]) -> None:
    """Waits for the legacy default stream, on which all of this is."""
    sets[0].out.numpy()


def _set_to(out: Any, x: Any) -> None:
    """out = 0 + x, since DeviceArrays have no assignment: exact but for -0, which no sum of random numbers is."""
    _core.clear(out)
    vecadd.add(out, x, out)


def _assign(out: Any, x: Any) -> None:
    out[...] = x


@dataclass(frozen=True)
class Library:
    """A library: where its arrays are, how it adds into one and makes a new sum, and how that is copied into out for
    the check. A call goes to the library's own function: a Python function around one takes 0.1 us."""

    name: str
    place: MemoryKind
    add: Add
    new: Callable[[Any, Any], Any]
    copy: Callable[[Any, Any], None] = _assign


def _ours(library: str, place: Callable[[], MemoryKind]) -> Library:
    return Library(f"vecadd ({library})", place(), vecadd.add, vecadd.add)


def _theirs(library: str, place: Callable[[], MemoryKind]) -> Library:
    return Library(library, place(), libraries.module(library).add, operator.add)


LIBRARIES = (
    Entry("vecadd", "", "vecadd", lambda: Library("vecadd", DEVICE, vecadd.add, operator.add, _set_to)),
    Entry("vecadd (torch tensors)", "torch", "torch", partial(_ours, "torch tensors", libraries.torch_place)),
    Entry("torch", "torch", "torch", partial(_theirs, "torch", libraries.torch_place)),
    Entry("vecadd (CuPy arrays)", "cupy", "cupy-cuda13x", partial(_ours, "CuPy arrays", libraries.cupy_place)),
    Entry("cupy", "cupy", "cupy-cuda13x", partial(_theirs, "cupy", libraries.cupy_place)),
)


def _allocating(peer: Library) -> Contestant:
    """a + b, a new array each time; the one before is dropped when the new one exists."""
    torch = libraries.module("torch")
    add, copy = peer.new, peer.copy

    def time(sets: Sequence[Buffers]) -> float:
        a, b, out, _ = sets[0]
        result = add(a, b)
        torch.cuda.synchronize()
        begin = perf_counter()
        for _ in range(CALLS):
            result = add(a, b)
        seconds = perf_counter() - begin
        torch.cuda.synchronize()
        copy(out, result)
        return seconds / CALLS

    return Contestant(f"{peer.name} a + b", peer.place, time)


def _in_place(sets: Sequence[Buffers]) -> float:
    """out += b; then out is made 0 and both operands are added to it, for the check."""
    a, b, out, _ = sets[0]
    _core.clear(out)
    begin = perf_counter()
    for _ in range(CALLS):
        out += b
    seconds = perf_counter() - begin
    _core.clear(out)
    out += a
    out += b
    return seconds / CALLS


def _planned(calls: int, until_done: bool) -> Timer:
    plan_of = clocks.planned()

    def time(sets: Sequence[Buffers]) -> float:
        plan = plan_of(sets[0])
        _drain(sets)
        begin = perf_counter()
        for _ in range(calls):
            plan()
        if until_done:
            _drain(sets)
        seconds = perf_counter() - begin
        _drain(sets)
        return seconds / calls

    return time


def _sustained(sets: Sequence[Buffers]) -> float:
    a, b, out, _ = sets[0]
    _drain(sets)
    begin = perf_counter()
    for _ in range(SUSTAINED):
        vecadd.add(a, b, out)
    _drain(sets)
    return (perf_counter() - begin) / SUSTAINED


STAGE = Sweep(
    "peer-overhead",
    cells,
    f"timed by the host over {CALLS} queued calls, the queue empty before and drained after; the file's rows that are "
    "called 'stage', which have a table of their own, repeat one stage of vecadd.add(a, b, out) alone",
)

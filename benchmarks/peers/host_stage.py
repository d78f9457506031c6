"""NumPy arrays on the host: into `out=`, a new sum that is dropped or kept, and after a pause; arrays beyond the caches
also beside the machine's own limit, probed among the rounds.

torch's OpenMP workers spin on for milliseconds after its call and hold the processors that the next contestant needs:
on 16 cores ours then took 3 to 9 times as long. So torch's turn ends when they sleep, and calls in a row are timed
after some untimed ones.
"""

import ctypes
import functools
import time
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

import vecadd
from benchmarks.peers import libraries
from benchmarks.peers.clocks import ENOUGH, WARM, Timer, mean_in_a_row, then_resting
from vecadd.bench import limits
from vecadd.bench.axes import Axes, dtype_named
from vecadd.bench.buffers import HOST, Buffers
from vecadd.bench.contestants import Contestant
from vecadd.bench.results import Row
from vecadd.bench.sweeps import Machine, Sweep
from vecadd.bench.timing import Cell

SIZES = (*(2**power for power in range(4, 25, 2)), 2**27)
DTYPES = (
    *("float32", "float64", "float16", "bfloat16", "complex64", "complex128"),
    *("int8", "int16", "int32", "int64"),
)
# All sizes of all dtypes would last for minutes: NumPy takes 13 ns a float16, 2 a bfloat16.
OTHER_SIZES = (2**4, 2**10, 2**16, 2**18, 2**20)
LARGEST = {"float16": 2**16, "bfloat16": 2**18}
STREAMED = 2**24  # elements from which on an addition is held against the best streaming one

IDLE = 1e-3  # seconds: longer than any thread spins
IDLES = 5  # pauses in a sample of additions that are shorter than that
KEPT_BYTES = 32 << 20  # of sums that are alive at once
MOST_KEPT = 256

New = Callable[[Any, Any], Any]
Into = Callable[[Any, Any, Any], object]


@dataclass(frozen=True)
class Peer:
    """A library: how it adds into an existing array and into a new one; ``put`` makes its array from NumPy's.

    ``spins``: its workers hold their processors for longer than a sample lasts.
    """

    name: str
    into: Into
    new: New | None = None
    put: Callable[[Any], Any] = lambda x: x
    spins: bool = False


VECADD = Peer("vecadd", lambda a, b, out: vecadd.add(a, b, out=out), lambda a, b: vecadd.add(a, b))
NUMPY = Peer("numpy", lambda a, b, out: np.add(a, b, out=out), lambda a, b: np.add(a, b))


def cells(axes: Axes, machine: Machine) -> Iterator[Cell]:
    """A cell for each form, so that every library is compared with ours in the same form."""
    torch = _torch()
    for dtype, n in _grid(axes, machine):
        peers = [VECADD, NUMPY]
        if torch and str(dtype) != "bfloat16":  # torch.from_numpy does not know ml_dtypes
            peers.append(torch)
        for form, clock in FORMS.items():
            meeting = [
                Contestant(f"{peer.name} {form}", HOST, then_resting(clock(peer)) if peer.spins else clock(peer))
                for peer in peers
                if form in INTO or peer.new
            ]
            if form == LIMITED and n >= STREAMED:
                limit = limits.HostLimit()
                yield Cell(
                    *("peer-host", dtype, n, meeting, limit),
                    sets=1,
                    reference=f"vecadd {form}",
                    derive=functools.partial(_shares, limit),
                )
            else:
                yield Cell("peer-host", dtype, n, meeting, limits.FixedLimit(None), 1, f"vecadd {form}")


def _shares(limit: limits.HostLimit, rows: list[Row]) -> None:
    """Adds to each row the limit's median over the row's; the row's ``fraction`` is of the limit's best."""
    for row in rows:
        if row.seconds and limit.typical:
            row.params["limit_share"] = limit.typical / row.seconds


def _grid(axes: Axes, machine: Machine) -> Iterator[tuple[np.dtype[Any], int]]:
    for name in axes.dtypes or DTYPES:
        try:
            dtype = dtype_named(name)
        except ArgumentTypeError as error:
            machine.missing.append(f"peer-host {name}: {error}")
            continue
        own = SIZES if name == "float32" else [n for n in OTHER_SIZES if n <= LARGEST.get(name, n)]
        for n in axes.sizes or own:
            yield dtype, n


def _torch() -> Peer | None:
    """torch on the CPU, on as many threads as it takes by itself."""
    try:
        torch = libraries.module("torch")
    except Exception as error:
        print(f"left out: torch on the host: {type(error).__name__}: {error}", flush=True)
        return None
    return Peer("torch", lambda a, b, out: torch.add(a, b, out=out), put=torch.from_numpy, spins=True)


def _into(peer: Peer) -> Timer:
    def timer(sets: Sequence[Buffers]) -> float:
        return mean_in_a_row(functools.partial(peer.into, *map(peer.put, sets[0][:3])))

    return timer


def _dropped(peer: Peer) -> Timer:
    """Times new sums, each dropped before the next one is made."""

    def timer(sets: Sequence[Buffers]) -> float:
        a, b, out, _ = sets[0]
        seconds = mean_in_a_row(functools.partial(_new(peer), a, b))
        out[...] = _new(peer)(a, b)
        return seconds

    return timer


def _kept(peer: Peer) -> Timer:
    """Times new sums that all stay alive until the clock has stopped, on memory fresh from the system: neither our pool
    nor NumPy's heap still has that of the last round."""

    def timer(sets: Sequence[Buffers]) -> float:
        a, b, out, _ = sets[0]
        new = _new(peer)
        _give_back()
        count: int = max(1, min(MOST_KEPT, KEPT_BYTES // a.nbytes))
        begin = perf_counter()
        sums = [new(a, b) for _ in range(count)]
        seconds: float = perf_counter() - begin
        out[...] = sums[-1]
        return seconds / count

    return timer


def _give_back() -> None:
    """Returns the memory that our pool and the C library have kept to the system."""
    vecadd.release()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc's
    if trim:
        trim(ctypes.c_size_t(0))


def _after_a_pause(peer: Peer) -> Timer:
    def timer(sets: Sequence[Buffers]) -> float:
        call = functools.partial(peer.into, *map(peer.put, sets[0][:3]))
        samples: list[float] = []
        while len(samples) < IDLES and sum(samples) < IDLE:
            time.sleep(IDLE)
            begin = perf_counter()
            call()
            samples.append(perf_counter() - begin)
        return float(np.median(samples))

    return timer


def _new(peer: Peer) -> New:
    assert peer.new is not None
    return peer.new


FORMS: Mapping[str, Callable[[Peer], Timer]] = {
    "out=": _into,
    "a + b": _dropped,
    "a + b, kept": _kept,
    "out= after 1 ms": _after_a_pause,
}
INTO = ("out=", "out= after 1 ms")
LIMITED = "out="

STAGE = Sweep(
    "peer-host",
    cells,
    f"timed by the host: calls that follow each other on the same operands for {ENOUGH * 1e6:g} us, after "
    f"{WARM * 1e6:g} us of calls that warm up; sums that are kept, on fresh memory of the system, until there are 32 MB"
    " of them; single calls after a pause of 1 ms, in which torch's workers go on spinning; after torch's turn a rest "
    "until they sleep",
    needs_gpu=False,
)

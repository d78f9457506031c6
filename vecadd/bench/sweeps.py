"""The sweeps: which contestants meet at which sizes, against which limit. To add one, write a function and list it.

A sweep takes the axes and the bench's `Machine` and gives its cells, smallest first; no operand is allocated before its
cell is measured.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from vecadd import _core
from vecadd.bench import contestants, ladder, limits
from vecadd.bench.axes import DEFAULT_DTYPES, DEFAULT_SIZES, Axes, dtype_named
from vecadd.bench.buffers import HOST, PINNED, Place, rotation
from vecadd.bench.contestants import Contestant
from vecadd.bench.timing import Cell

# Other transfer rungs run on pinned memory.
PLACES_OF_TRANSFER = {
    **dict.fromkeys(("pageable", "streams4_pageable", "copy_blocking", "copy_async", "copy_stream", "staged"), (HOST,)),
    **dict.fromkeys(("hybrid", "tuned_transfer"), (PINNED, HOST)),
    "managed": (),  # for those who ask for it by name, on small arrays: nothing bounds its time
}
BRIEF_SIZES = (2**10, 2**14, 2**18, 2**22, 2**26)  # of a run of all sweeps
HOST_SETS = 1  # in the cache where they fit, for the rungs and for the probe, which works on the same arrays
TRANSFER_SETS = 1  # no cache helps a link, and page-locking costs 0.35 s a GiB

DEVICE_SHARE = 0.5  # of the GPU's memory for the buffer sets together


@dataclass
class Machine:
    """What the sweeps need to know of it, looked up when first asked. ``probed`` keeps what the probes found,
    ``missing`` what they did not, and what a sweep leaves out for want of a package."""

    device: int = 0
    probed: dict[str, dict[str, float]] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)

    @cached_property
    def gpu(self) -> dict[str, Any]:
        """Facts of the GPU; raises RuntimeError where there is none. This initialises CUDA."""
        return _core.gpu_facts()[self.device]

    @property
    def capability(self) -> int:
        """The GPU's compute capability, 90 for 9.0."""
        return 10 * int(self.gpu["cc_major"]) + int(self.gpu["cc_minor"])

    @cached_property
    def device_limit(self) -> float:
        self.probed["device"] = limits.probe_device(self.device, self.gpu["l2"], self.gpu["memory"])
        return self.probed["device"]["gbps"]

    @cached_property
    def latencies(self) -> dict[str, float]:
        self.probed["latency"] = limits.probe_latency(self.device)
        return self.probed["latency"]

    @cached_property
    def launches(self) -> dict[str, float]:
        self.probed["launch"] = limits.probe_launch(self.device)
        return self.probed["launch"]

    @cached_property
    def link_limit(self) -> float:
        self.probed["link"] = limits.probe_link(self.device)
        return self.probed["link"]["gbps"]

    def probe(self) -> None:
        """Asks for every limit, so that whatever a run measures opens with all of them. One that cannot be had is no
        failure but of the sweep that needs it."""
        for what in ("device_limit", "link_limit", "launches", "latencies"):
            try:
                getattr(self, what)
            except Exception as error:
                self.missing.append(f"the probe of {what.replace('_', ' ')}: {type(error).__name__}: {error}")

    def sets(self, set_bytes: int) -> int:
        """How many sets of device arrays to rotate over."""
        return rotation(set_bytes, self.gpu["l2"], int(DEVICE_SHARE * self.gpu["memory"]))

    def runs(self, rung: Mapping[str, Any], dtype: np.dtype[Any]) -> bool:
        """Whether this GPU has what the rung needs, and the rung takes the dtype."""
        return str(dtype) in rung["dtypes"] and rung["min_cc"] <= self.capability


def host(axes: Axes, machine: Machine) -> Iterator[Cell]:
    """NumPy arrays, added by the processor."""
    for dtype, n, _ in grid(axes):
        rungs = [contestants.rung(name, HOST) for name in contestants.rung_names("host", str(dtype))]
        every = [contestants.numpy_add(), *rungs, contestants.host_add()]
        yield Cell("host", dtype, n, _wanted(axes, every), limits.HostLimit(), HOST_SETS)


def size(axes: Axes, machine: Machine) -> Iterator[Cell]:
    """Device memory, added by the kernels that stand for the ladder and by the call that users make."""
    machine.probe()
    call = contestants.device_add()
    for dtype, n, set_bytes in grid(axes):
        rungs = [
            _device_rung(axes, machine, rung, dtype, n) for rung in _device_rungs(machine, dtype) if rung["headline"]
        ]
        limit = limits.FixedLimit(machine.device_limit)
        yield Cell("size", dtype, n, _wanted(axes, [*rungs, call]), limit, machine.sets(set_bytes))


def ladder_of_kernels(axes: Axes, machine: Machine) -> Iterator[Cell]:
    """Device memory, added by every kernel of the ladder in turn."""
    machine.probe()
    for dtype, n, set_bytes in grid(axes, ladder.SIZES, ladder.BRIEF_SIZES):
        every = [
            _device_rung(axes, machine, rung, dtype, n, chosen)
            for rung in _device_rungs(machine, dtype)
            for chosen in ladder.VARIANTS.get(rung["name"], ({},))
        ]
        limit = limits.FixedLimit(machine.device_limit)
        yield Cell("ladder", dtype, n, _wanted(axes, every), limit, machine.sets(set_bytes))


def blocksize(axes: Axes, machine: Machine) -> Iterator[Cell]:
    """The same kernels in blocks of every size, and one kernel on some share of the blocks that fit at once."""
    machine.probe()
    for dtype, n, set_bytes in grid(axes, ladder.BLOCKSIZE_SIZES, ladder.BLOCKSIZE_SIZES):
        every = [
            _device_rung(axes, machine, rung, dtype, n, {}, block)
            for rung in _device_rungs(machine, dtype)
            if ladder.takes_blocks(rung) and (rung["name"] in ladder.BLOCKSIZE_RUNGS or axes.names(rung["name"]))
            for block in ([axes.block] if axes.block else ladder.BRIEF_BLOCKS if axes.brief else ladder.BLOCKS)
        ]
        every += [
            _device_rung(axes, machine, rung, dtype, n, chosen)
            for rung in _device_rungs(machine, dtype)
            for chosen in ladder.WAVES.get(rung["name"], ())
        ]
        limit = limits.FixedLimit(machine.device_limit)
        yield Cell("blocksize", dtype, n, _wanted(axes, every), limit, machine.sets(set_bytes))


def transfer(axes: Axes, machine: Machine) -> Iterator[Cell]:
    """NumPy arrays, added by the GPU: up, added, and down again."""
    machine.probe()
    for dtype, n, _ in grid(axes):
        every = [
            contestants.rung(name, place, memory=_memory(place))
            for name in contestants.rung_names("transfer", str(dtype))
            for place in PLACES_OF_TRANSFER.get(name, (PINNED,))
        ]
        every += [contestants.transfer_add(place, memory=_memory(place)) for place in (PINNED, HOST)]
        yield Cell("transfer", dtype, n, _wanted(axes, every), limits.FixedLimit(machine.link_limit), TRANSFER_SETS)


@dataclass(frozen=True)
class Sweep:
    """A name, the function that gives the cells, and the clocks of the contestants, which are a part of the method."""

    name: str
    cells: Callable[[Axes, Machine], Iterator[Cell]]
    clock: str
    needs_gpu: bool = True


EVENTS = "rungs timed by CUDA events behind a delay kernel of 20 us, so that the events do not time the host's launch"

SWEEPS = {
    sweep.name: sweep
    for sweep in (
        Sweep("host", host, "rungs timed in C, around the work alone; numpy and add around the Python call", False),
        Sweep(
            "size",
            size,
            f"{EVENTS}; add (host clock) over at least {contestants.QUEUED} queued calls and until the queue is empty",
        ),
        Sweep("ladder", ladder_of_kernels, EVENTS),
        Sweep("blocksize", blocksize, EVENTS),
        Sweep(
            "transfer",
            transfer,
            "rungs timed in C, around the whole way there and back; add around the Python call",
        ),
    )
}


def grid(
    axes: Axes,
    own: tuple[int, ...] = DEFAULT_SIZES,
    brief: tuple[int, ...] = BRIEF_SIZES,
    dtypes: tuple[str, ...] = DEFAULT_DTYPES,
) -> Iterator[tuple[np.dtype[Any], int, int]]:
    """(dtype, n, bytes of one set of three arrays) of every cell, of these unless the axes name others."""
    for name in axes.dtypes or dtypes:
        dtype = dtype_named(name)
        for n in axes.sizes_of(own, brief):
            yield dtype, n, 3 * n * dtype.itemsize


def _device_rungs(machine: Machine, dtype: np.dtype[Any]) -> list[dict[str, Any]]:
    """The rungs of the kernels' ladder that can add that dtype here, in order."""
    return [
        rung
        for rung in _core.rungs()
        if rung["kind"] == "device" and rung["family"] == "kernels" and machine.runs(rung, dtype)
    ]


def _device_rung(
    axes: Axes,
    machine: Machine,
    rung: Mapping[str, Any],
    dtype: np.dtype[Any],
    n: int,
    chosen: Mapping[str, int] | None = None,
    block: int = 0,
) -> Contestant:
    chosen, block = chosen or {}, block or axes.block
    in_flight = ladder.bytes_in_flight(rung, machine.gpu, n, dtype.itemsize, ladder.usual(rung, chosen), block)
    return contestants.device_rung(rung, dtype, n, block, chosen, bytes_in_flight=in_flight)


def _wanted(axes: Axes, every: list[Contestant]) -> list[Contestant]:
    return [contestant for contestant in every if axes.wants(contestant.name)]


def _memory(place: Place) -> str:
    return "pinned" if place is PINNED else "pageable"

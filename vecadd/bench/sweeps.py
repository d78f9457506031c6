"""The sweeps: which contestants meet at which sizes, against which limit. To add one, write a function and list it.

A sweep takes the axes and the bench's `Machine` and gives its cells, smallest first; no operand is allocated before its
cell is measured.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from vecadd import _core
from vecadd.bench import contestants, ladder, limits
from vecadd.bench.axes import DEFAULT_SIZES, Axes, dtype_named
from vecadd.bench.buffers import DEVICE, HOST, PINNED, Place, rotation
from vecadd.bench.contestants import Contestant
from vecadd.bench.timing import Cell

# Other transfer rungs run on pinned memory.
PLACES_OF_TRANSFER = {
    **dict.fromkeys(("pageable", "streams4_pageable", "copy_blocking", "copy_async", "copy_stream", "staged"), (HOST,)),
    **dict.fromkeys(("hybrid", "tuned_transfer"), (PINNED, HOST)),
    "managed": (),  # for those who ask for it by name, on small arrays: nothing bounds its time
}
HOST_SETS = 1  # in the cache where they fit, for the rungs and for the probe, which works on the same arrays
TRANSFER_SETS = 1  # no cache helps a link, and page-locking costs 0.35 s a GiB

DEVICE_SHARE = 0.5  # of the GPU's memory for the buffer sets together


@dataclass
class Machine:
    """What the sweeps need to know of it, looked up when first asked. ``probed`` keeps what the probes found."""

    device: int = 0
    probed: dict[str, dict[str, float]] = field(default_factory=dict)

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
        self.probed["latency"] = limits.probe_latency(self.device)
        self.probed["launch"] = limits.probe_launch(self.device)
        return self.probed["device"]["gbps"]

    @cached_property
    def link_limit(self) -> float:
        self.probed["link"] = limits.probe_link(self.device)
        return self.probed["link"]["gbps"]


def host(axes: Axes, machine: Machine) -> Iterator[Cell]:
    """NumPy arrays, added by the processor."""
    for dtype, n, _ in grid(axes):
        rungs = [contestants.rung(name, HOST) for name in contestants.rung_names("host", str(dtype))]
        every = [contestants.numpy_add(), *rungs, contestants.host_add()]
        yield Cell("host", dtype, n, _wanted(axes, every), limits.HostLimit(), HOST_SETS)


def device(axes: Axes, machine: Machine) -> Iterator[Cell]:
    """Device memory, added by a kernel."""
    call = contestants.device_add()
    for dtype, n, set_bytes in grid(axes):
        rungs = [contestants.rung(name, DEVICE) for name in contestants.headline_names(str(dtype))]
        sets = rotation(set_bytes, machine.gpu["l2"], int(DEVICE_SHARE * machine.gpu["memory"]))
        limit = limits.FixedLimit(machine.device_limit)
        yield Cell("device", dtype, n, _wanted(axes, [*rungs, call]), limit, sets)


def ladder_of_kernels(axes: Axes, machine: Machine) -> Iterator[Cell]:
    """Device memory, added by every kernel of the ladder in turn."""
    rungs = [rung for rung in _core.rungs() if rung["kind"] == "device"]
    for dtype, n, set_bytes in grid(axes, ladder.SIZES):
        every = [
            contestants.ladder_rung(
                rung,
                axes.block,
                chosen,
                bytes_in_flight=ladder.bytes_in_flight(
                    rung, machine.gpu, n, dtype.itemsize, ladder.usual(rung, chosen), axes.block
                ),
            )
            for rung in rungs
            if str(dtype) in rung["dtypes"] and rung["min_cc"] <= machine.capability
            for chosen in ladder.VARIANTS.get(rung["name"], ({},))
        ]
        sets = rotation(set_bytes, machine.gpu["l2"], int(DEVICE_SHARE * machine.gpu["memory"]))
        yield Cell("ladder", dtype, n, _wanted(axes, every), limits.FixedLimit(machine.device_limit), sets)


def transfer(axes: Axes, machine: Machine) -> Iterator[Cell]:
    """NumPy arrays, added by the GPU: up, added, and down again."""
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
    by_default: bool = True


SWEEPS = {
    sweep.name: sweep
    for sweep in (
        Sweep("host", host, "rungs timed in C, around the work alone; numpy and add around the Python call", False),
        Sweep(
            "device",
            device,
            "rungs timed by CUDA events behind a delay kernel of 20 us, so that the events do not time the host's "
            f"launch; add (host clock) over at least {contestants.QUEUED} queued calls and until the queue is empty",
        ),
        Sweep(
            "transfer",
            transfer,
            "rungs timed in C, around the whole way there and back; add around the Python call",
        ),
        Sweep(
            "ladder",
            ladder_of_kernels,
            "rungs timed by CUDA events behind a delay kernel of 20 us",
            by_default=False,
        ),
    )
}


def grid(axes: Axes, sizes: tuple[int, ...] = DEFAULT_SIZES) -> Iterator[tuple[np.dtype[Any], int, int]]:
    """(dtype, n, bytes of one set of three arrays) of every cell, of these sizes unless the axes name others."""
    for name in axes.dtypes:
        dtype = dtype_named(name)
        for n in axes.sizes or sizes:
            yield dtype, n, 3 * n * dtype.itemsize


def _wanted(axes: Axes, every: list[Contestant]) -> list[Contestant]:
    return [contestant for contestant in every if axes.wants(contestant.name)]


def _memory(place: Place) -> str:
    return "pinned" if place is PINNED else "pageable"

"""What a sweep is, and what sweeps share: the machine as they know it, and contestants of the device.

A sweep takes the axes and the bench's `Machine` and gives its cells, smallest first; no operand is allocated before its
cell is measured.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from vecadd import _core
from vecadd._host import memory_available
from vecadd.bench import contestants, ladder, limits
from vecadd.bench.axes import DEFAULT_DTYPES, DEFAULT_SIZES, Axes, dtype_named
from vecadd.bench.buffers import rotation
from vecadd.bench.contestants import Contestant
from vecadd.bench.machine import link_theory
from vecadd.bench.timing import Cell
from vecadd.figures import Figure
from vecadd.info import info
from vecadd.model import Limits, expected
from vecadd.model.theory import usual

BRIEF_SIZES = (2**10, 2**14, 2**18, 2**22, 2**26)  # of a run of all sweeps
HOST_SETS = 1  # rungs and probe work on the same arrays, which stay in the cache where they fit

ON_DEVICE = ("device_limit", "launches", "latencies", "loaded")  # the limits of a sweep of device memory
ON_THE_WAY = ("link_limit", "crew")  # and also of a transfer

DEVICE_SHARE = 0.5  # of the GPU's memory for the buffer sets together

EVENTS = "rungs timed by CUDA events behind a delay kernel of 20 us, so that the events do not time the host's launch"


@dataclass
class Machine:
    """The machine's facts and limits, looked up when first asked. ``probed`` keeps the probes' results, ``missing`` the
    probes that failed and what a sweep leaves out because a package is missing."""

    device: int = 0
    probed: dict[str, dict[str, Any]] = field(default_factory=dict)
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
        """GB/s of an addition by the memory's own rates."""
        found = limits.probe_device(self.device, self.gpu["l2"], self.gpu["memory"])
        self.probed["device"] = found
        return found["gbps"]

    def bound(self, reads: int) -> float:
        """GB/s of a kernel that reads so many arrays and writes one, by the memory's own rates."""
        self.probe("device_limit")
        rates = self.probed["device"]
        return limits.device_gbps(1e9 * rates["read_gbps"], 1e9 * rates["write_gbps"], reads)

    @cached_property
    def latencies(self) -> dict[str, float]:
        """Seconds of one access, by where it is found."""
        self.probed["latency"] = limits.probe_latency(self.device)
        return self.probed["latency"]

    @cached_property
    def loaded(self) -> dict[str, Any]:
        """The memory's rate and latency by the bytes in flight on each multiprocessor."""
        self.probed["loaded"] = limits.probe_loaded(self.device, self.gpu["l2"], self.gpu["memory"])
        return self.probed["loaded"]

    @cached_property
    def launches(self) -> dict[str, Any]:
        """Seconds of empty kernels, however they are launched."""
        self.probed["launch"] = limits.probe_launch(self.device)
        return self.probed["launch"]

    @cached_property
    def link_limit(self) -> float:
        """GB/s of two arrays up while one comes down, by the link's own rates."""
        found = limits.probe_link(self.device)
        self.probed["link"] = found
        return found["gbps"]

    @cached_property
    def crew(self) -> dict[str, Any]:
        """How soon the host's threads wake, and what they add."""
        self.probed["crew"] = limits.probe_threads(memory_available())
        return self.probed["crew"]

    @cached_property
    def link_theory(self) -> float | None:
        """Bytes a second that the link carries each way in theory; None where the machine does not say which it is."""
        gpus = info().gpus
        own = gpus[self.device] if self.device < len(gpus) else None
        return link_theory(own.link_generation_max, own.link_width_max) if own else None

    def probe(self, *what: str) -> None:
        """Probes these limits ahead of the cells, so that a run's opening shows them. A probe that fails fails only the
        sweep that needs it."""
        for name in what:
            try:
                getattr(self, name)
            except Exception as error:
                self.missing.append(f"the probe of {name.replace('_', ' ')}: {type(error).__name__}: {error}")

    def sets(self, set_bytes: int) -> int:
        """How many sets of device arrays to rotate over."""
        return rotation(set_bytes, self.gpu["l2"], int(DEVICE_SHARE * self.gpu["memory"]))

    def runs(self, rung: Mapping[str, Any], dtype: np.dtype[Any]) -> bool:
        """Whether this GPU has what the rung needs, and the rung takes the dtype."""
        return str(dtype) in rung["dtypes"] and rung["min_cc"] <= self.capability


@dataclass(frozen=True)
class Sweep:
    """A sweep: its name, the function that gives its cells, its contestants' clocks, which are a part of the method,
    and its table and picture. ``tables`` and ``plot`` name modules, which are imported when a table or a picture is
    made: `tables(sweep, rows)` of the one and `draw(figure, meta, rows, *, recorded)` of the other are called."""

    name: str
    cells: Callable[[Axes, Machine], Iterator[Cell]]
    clock: str
    needs_gpu: bool = True
    dtypes: tuple[str, ...] = DEFAULT_DTYPES  # of a run that names none
    extra: Callable[[Axes, Machine], list[Figure]] = lambda axes, machine: []  # rows that are not measured in rounds
    tables: str = "vecadd.bench.tables.plain"
    plot: str | None = None  # None: no picture
    by_dtype: bool = False  # whether there is a picture for each dtype
    pictured: Callable[[list[Figure]], list[Figure]] = lambda rows: rows  # picks the rows that the picture shows
    roofline: str | None = None  # the name of the roofline of its rungs; None: there is none


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


def device_rungs(machine: Machine, dtype: np.dtype[Any]) -> list[dict[str, Any]]:
    """The rungs of the kernels' ladder that can add that dtype here, in order."""
    return [
        rung
        for rung in _core.rungs()
        if rung["kind"] == "device"
        and rung["family"] == "kernels"
        and not rung["by_name"]
        and machine.runs(rung, dtype)
    ]


def device_rung(
    axes: Axes,
    machine: Machine,
    rung: Mapping[str, Any],
    dtype: np.dtype[Any],
    n: int,
    chosen: Mapping[str, int] | None = None,
    block: int = 0,
) -> Contestant:
    chosen, block = chosen or {}, block or axes.block
    in_flight = ladder.bytes_in_flight(rung, machine.gpu, n, dtype.itemsize, usual(rung, chosen), block)
    return contestants.device_rung(rung, dtype, n, block, chosen, bytes_in_flight=in_flight)


def expect(machine: Machine) -> Callable[[list[Figure]], list[Figure]]:
    """Adds to the figures of matrix rungs the seconds that the model expects."""

    def derive(figures: list[Figure]) -> list[Figure]:
        known, found = {rung["name"]: rung for rung in _core.rungs()}, Limits.of(machine.probed)
        return [
            figure.with_params(
                model_seconds=expected(known[figure.name], None, machine.gpu, found, figure.dtype, figure.n, {})
            )
            if figure.name in known
            else figure
            for figure in figures
        ]

    return derive


def wanted(axes: Axes, every: list[Contestant]) -> list[Contestant]:
    return [contestant for contestant in every if axes.wants(contestant.name)]

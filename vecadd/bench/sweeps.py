"""The sweeps: which contestants meet at which sizes, against which limit. To add one, write a function and list it.

A sweep takes the axes and the bench's `Machine` and gives its cells, smallest first; no operand is allocated before its
cell is measured.
"""

from argparse import ArgumentTypeError
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from vecadd import _core
from vecadd._host import memory_available
from vecadd.bench import contestants, ladder, latencies, limits, transfers
from vecadd.bench.axes import DEFAULT_DTYPES, DEFAULT_SIZES, Axes, dtype_named
from vecadd.bench.buffers import HOST, rotation
from vecadd.bench.contestants import Contestant
from vecadd.bench.machine import link_theory
from vecadd.bench.results import Row
from vecadd.bench.timing import Cell
from vecadd.info import info

BRIEF_SIZES = (2**10, 2**14, 2**18, 2**22, 2**26)  # of a run of all sweeps
HOST_SETS = 1  # in the cache where they fit, for the rungs and for the probe, which works on the same arrays

ON_DEVICE = ("device_limit", "launches", "latencies")  # what bears on a sweep of device memory
ON_THE_WAY = ("link_limit", "crew")  # and on a transfer beside it

DEVICE_SHARE = 0.5  # of the GPU's memory for the buffer sets together


@dataclass
class Machine:
    """What the sweeps need to know of it, looked up when first asked. ``probed`` keeps what the probes found,
    ``missing`` what they did not, and what a sweep leaves out for want of a package."""

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

    @cached_property
    def latencies(self) -> dict[str, float]:
        """Seconds of one access, by where it is found."""
        self.probed["latency"] = limits.probe_latency(self.device)
        return self.probed["latency"]

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
        self.probed["crew"] = limits.probe_crew(memory_available())
        return self.probed["crew"]

    @cached_property
    def link_theory(self) -> float | None:
        """Bytes a second that the link carries each way in theory; None where the machine does not say which it is."""
        gpus = info().gpus
        own = gpus[self.device] if self.device < len(gpus) else None
        return link_theory(own.link_generation_max, own.link_width_max) if own else None

    def probe(self, *what: str) -> None:
        """Asks for these limits, so that a run opens with all that bear on it. One that cannot be had is no failure but
        of the sweep that needs it."""
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


def host(axes: Axes, machine: Machine) -> Iterator[Cell]:
    """NumPy arrays, added by the processor."""
    for dtype, n, _ in grid(axes):
        rungs = [contestants.rung(name, HOST) for name in contestants.rung_names("host", str(dtype))]
        every = [contestants.numpy_add(), *rungs, contestants.host_add()]
        yield Cell("host", dtype, n, _wanted(axes, every), limits.HostLimit(), HOST_SETS)


def size(axes: Axes, machine: Machine) -> Iterator[Cell]:
    """Device memory, added by the kernels that stand for the ladder and by the call that users make."""
    machine.probe(*ON_DEVICE)
    call = contestants.device_add()
    for dtype, n, set_bytes in grid(axes):
        rungs = [
            _device_rung(axes, machine, rung, dtype, n) for rung in _device_rungs(machine, dtype) if rung["headline"]
        ]
        limit = limits.FixedLimit(machine.device_limit)
        yield Cell("size", dtype, n, _wanted(axes, [*rungs, call]), limit, machine.sets(set_bytes))


def ladder_of_kernels(axes: Axes, machine: Machine) -> Iterator[Cell]:
    """Device memory, added by every kernel of the ladder in turn."""
    machine.probe(*ON_DEVICE)
    for dtype, n, set_bytes in grid(axes, ladder.SIZES, ladder.BRIEF_SIZES):
        every = [
            _device_rung(axes, machine, rung, dtype, n, chosen)
            for rung in _device_rungs(machine, dtype)
            for chosen in ladder.variants(rung["name"], named=axes.rungs is not None)
        ]
        limit = limits.FixedLimit(machine.device_limit)
        yield Cell("ladder", dtype, n, _wanted(axes, every), limit, machine.sets(set_bytes))


def blocksize(axes: Axes, machine: Machine) -> Iterator[Cell]:
    """The same kernels in blocks of every size, and one kernel on some share of the blocks that fit at once."""
    machine.probe(*ON_DEVICE)
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


def precision(axes: Axes, machine: Machine) -> Iterator[Cell]:
    """Half the bytes an element, beside the processor, which adds its own arrays: every dtype in turn at each size."""
    machine.probe(*ON_DEVICE)
    dtypes = _precise_dtypes(axes, machine)
    for n in axes.sizes_of(DEFAULT_SIZES, ladder.PRECISION_BRIEF_SIZES):
        for dtype in dtypes:
            processor = _wanted(axes, [contestants.numpy_add()])
            yield Cell("precision", dtype, n, processor, limits.HostLimit(), HOST_SETS)
            rungs = sorted(_core.rungs(), key=lambda rung: str(rung["family"]), reverse=True)  # its own, then others
            every = [
                _device_rung(axes, machine, rung, dtype, n)
                for rung in rungs
                if machine.runs(rung, dtype) and (rung["family"] == "precision" or rung["name"] in _beside(dtype))
            ]
            yield Cell(
                "precision",
                dtype,
                n,
                _wanted(axes, every),
                limits.FixedLimit(machine.device_limit),
                machine.sets(3 * n * dtype.itemsize),
                derive=lambda rows: _add_launch_share(rows, machine.launches["kernel_seconds"]),
            )


def transfer(axes: Axes, machine: Machine) -> Iterator[Cell]:
    """NumPy arrays, added by the GPU: up, added, and down again; then document 004's stages."""
    machine.probe(*ON_DEVICE, *ON_THE_WAY)
    sizes = axes.sizes_of(DEFAULT_SIZES, transfers.BRIEF_SIZES)
    theory = machine.link_theory

    def derive(rows: list[Row]) -> None:
        transfers.derive(rows, machine.gpu, machine.probed, theory)

    def cell(n: int, dtype: np.dtype[Any], every: list[Contestant]) -> Cell:
        limit = limits.FixedLimit(machine.link_limit)
        return Cell("transfer", dtype, n, _wanted(axes, every), limit, transfers.SETS, derive=derive)

    for name in axes.dtypes or DEFAULT_DTYPES:
        dtype = dtype_named(name)
        for n in sizes:
            yield cell(n, dtype, transfers.round_trips(axes, dtype, last=n == max(sizes)))
    dtype = dtype_named((axes.dtypes or DEFAULT_DTYPES)[0])
    yield cell(min(transfers.STAGES_SIZE, max(sizes)), dtype, transfers.stages(dtype))


def latency(axes: Axes, machine: Machine) -> Iterator[Cell]:
    """Many small additions, each by its own launch: independent ones, and a chain in which each waits for the last."""
    machine.probe(*ON_DEVICE)
    for dtype, n, set_bytes in grid(axes, latencies.SIZES, latencies.BRIEF_SIZES):
        adds = latencies.adds_of(n, dtype.itemsize)
        for chain in (0, 1):
            own_bytes = set_bytes if chain else adds * set_bytes
            # A chain finds its operands where it left them: the memory bounds it only where the L2 is a trifle.
            in_cache = chain and own_bytes < limits.DEVICE_CACHES * machine.gpu["l2"]
            yield Cell(
                "latency",
                dtype,
                n,
                latencies.small_additions(axes, dtype, adds, chain, machine.capability),
                limits.FixedLimit(None if in_cache else machine.device_limit),
                machine.sets(own_bytes),
                reference=latencies.LOOP,
                additions=adds,
                length=n if chain else adds * n,
                derive=latencies.derive,
            )


@dataclass(frozen=True)
class Sweep:
    """A name, the function that gives the cells, and the clocks of the contestants, which are a part of the method."""

    name: str
    cells: Callable[[Axes, Machine], Iterator[Cell]]
    clock: str
    needs_gpu: bool = True
    extra: Callable[[Axes, Machine], list[Row]] = lambda axes, machine: []  # rows that no rounds give


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
            "precision",
            precision,
            f"{EVENTS}; numpy around the Python call, on the host's own arrays",
        ),
        Sweep(
            "transfer",
            transfer,
            "rungs timed in C, around the whole way there and back; add around the Python call; timelines and stages "
            "of one more run, by events; cold_start once, around a process",
            extra=lambda axes, machine: transfers.extra_rows(axes, machine.device),
        ),
        Sweep(
            "latency",
            latency,
            "timed by the host in C, from the first call until the device is done; of graphs the launch alone",
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


def _precise_dtypes(axes: Axes, machine: Machine) -> list[np.dtype[Any]]:
    """The dtypes asked for, or those of the sweep without the one that needs a package which is not there."""
    if axes.dtypes is not None:
        return [dtype_named(name) for name in axes.dtypes]
    found = []
    for name in ladder.PRECISION_DTYPES:
        try:
            found.append(dtype_named(name))
        except ArgumentTypeError as error:
            machine.missing.append(f"precision {name}: {error}")
    return found


def _beside(dtype: np.dtype[Any]) -> tuple[str, ...]:
    """The rungs that stand beside the precision rungs of a dtype, or in their place where there are none."""
    name = str(dtype)
    has_own = any(rung["family"] == "precision" and name in rung["dtypes"] for rung in _core.rungs())
    return ("tuned",) if has_own else ("naive", "float4")


def _add_launch_share(rows: list[Row], empty: float) -> None:
    for row in rows:
        if row.seconds:
            row.params["launch_share"] = empty / row.seconds


def _wanted(axes: Axes, every: list[Contestant]) -> list[Contestant]:
    return [contestant for contestant in every if axes.wants(contestant.name)]

"""A run of sweeps: the machine as they know it, what a sweep is, and a session that measures cell after cell.

Contestants that do not fit or would take too long are left out; an interrupt keeps all figures.
"""

import random
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count
from typing import Any

import numpy as np

from vecadd import _core, _machine
from vecadd._machine import Info
from vecadd.bench import layout, probes
from vecadd.bench import machine as machine_facts
from vecadd.bench.contestants import Contestant
from vecadd.bench.operands import Pattern
from vecadd.bench.options import Options, find_dtype, powers
from vecadd.bench.plot import Picture
from vecadd.bench.timing import LONGEST, METHOD, Cell, Measurement, TimePredictor
from vecadd.figures import Figure, Run
from vecadd.info import info
from vecadd.model.theory import rotating_sets
from vecadd.tables import Table, show_size

DEFAULT_SIZES = powers(10, 28, 2)
BRIEF_SIZES = powers(10, 26, 4)  # of a run of all sweeps
DEFAULT_DTYPES = ("float32",)
HOST_SETS = 1  # rungs and probe work on the same arrays, which stay in the cache where they fit

USABLE = 0.9  # of the memory that is free: the rest is for copies on the way to a check
DEVICE_SHARE = 0.5  # of the GPU's memory for the buffer sets together

EVENTS = "rungs timed by CUDA events behind a delay kernel of 20 us, so that the events do not time the host's launch"

ON_DEVICE = ("device", "launch", "latency", "loaded")  # the probes of a sweep of device memory
ON_THE_WAY = ("link", "crew")  # and also of a transfer

PROBES: Mapping[str, Callable[["Machine"], dict[str, Any]]] = {
    "device": lambda machine: probes.probe_device(machine.device, machine.gpu["l2"], machine.gpu["memory"]),
    "launch": lambda machine: probes.probe_launch(machine.device),
    "latency": lambda machine: probes.probe_latency(machine.device),
    "loaded": lambda machine: probes.probe_loaded(machine.device, machine.gpu["l2"], machine.gpu["memory"]),
    "link": lambda machine: probes.probe_link(machine.device),
    "crew": lambda machine: probes.probe_threads(_machine.memory_available()),
}


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

    def limits(self, name: str) -> dict[str, Any]:
        """What the probe of that name, one of PROBES, found; it is made when it is first asked for."""
        if name not in self.probed:
            self.probed[name] = PROBES[name](self)
        return self.probed[name]

    def probe(self, *names: str) -> None:
        """Makes these probes ahead of the cells. A probe that fails fails only the sweep that needs it."""
        for name in names:
            try:
                self.limits(name)
            except Exception as error:
                self.missing.append(f"the probe of {name}: {type(error).__name__}: {error}")

    @property
    def device_limit(self) -> float:
        """GB/s of an addition by the memory's own rates."""
        return float(self.limits("device")["gbps"])

    def copy_limit(self) -> float:
        """GB/s of a kernel that reads one array and writes one, by the memory's own rates."""
        rates = self.limits("device")
        return probes.device_gbps(1e9 * rates["read_gbps"], 1e9 * rates["write_gbps"], reads=1)

    @cached_property
    def link_theory(self) -> float | None:
        """Bytes a second that the link carries each way in theory; None where the machine does not say which it is."""
        gpus = info().gpus
        own = gpus[self.device] if self.device < len(gpus) else None
        return machine_facts.link_theory(own.link_generation_max, own.link_width_max) if own else None

    def sets(self, set_bytes: int) -> int:
        """How many sets of device arrays to rotate over."""
        return rotating_sets(set_bytes, self.gpu["l2"], int(DEVICE_SHARE * self.gpu["memory"]))

    def runs(self, rung: Mapping[str, Any], dtype: np.dtype[Any]) -> bool:
        """Whether this GPU has what the rung needs, and the rung takes the dtype."""
        return str(dtype) in rung["dtypes"] and rung["min_cc"] <= self.capability

    def find_dtypes(self, names: Iterable[str], sweep: str) -> Iterator[np.dtype[Any]]:
        """The dtypes of these names; one whose package is not installed is among what is missing."""
        for name in names:
            try:
                dtype = find_dtype(name)
            except ArgumentTypeError as error:
                self.missing.append(f"{sweep} {name}: {error}")
            else:
                yield dtype

    def ladder(self, dtype: np.dtype[Any]) -> list[dict[str, Any]]:
        """The rungs of the kernels' ladder that can add that dtype here, in order."""
        return [
            rung
            for rung in _core.rungs()
            if rung["kind"] == "device"
            and rung["family"] == "kernels"
            and not rung["by_name"]
            and self.runs(rung, dtype)
        ]


@dataclass(frozen=True)
class Sweep:
    """What a sweep measures: its cells, smallest first, and its contestants' clocks, which are a part of the method. No
    operand is allocated before its cell is measured.

    ``probes`` are made ahead of the cells, so that a run's opening shows them; ``extra`` gives figures that are not
    measured in rounds; ``dtypes`` are those of a run that names none. ``tables`` and ``pictures`` show the
    sweep's figures; without one that was timed no pictures are asked for.
    """

    name: str
    cells: Callable[[Options, Machine], Iterator[Cell]]
    clock: str
    needs_gpu: bool = True
    probes: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = DEFAULT_DTYPES
    extra: Callable[[Options, Machine], Sequence[Figure]] = lambda options, machine: ()
    tables: Callable[[Sequence[Figure]], list[Table]] = layout.plain_tables
    pictures: Callable[[Run], Iterable[Picture]] = lambda run: ()


def grid(
    options: Options,
    own: Sequence[int] = DEFAULT_SIZES,
    brief: Sequence[int] = BRIEF_SIZES,
    dtypes: Sequence[str] = DEFAULT_DTYPES,
) -> Iterator[tuple[np.dtype[Any], int]]:
    """The dtype and size of every cell, of these unless the options name others."""
    for name in options.dtypes or dtypes:
        dtype = find_dtype(name)
        for n in options.choose_sizes(own, brief):
            yield dtype, n


Tell = Callable[[str, int, int], object]  # (what is measured now, cells done, cells in all)


@dataclass
class Session:
    """A run in progress: its figures so far are complete at any time."""

    options: Options
    machine: Machine = field(default_factory=Machine)
    figures: list[Figure] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)  # of whole sweeps and cells; a rung's own is in its figure
    clocks: dict[str, str] = field(default_factory=dict)  # of each sweep that has begun
    interrupted: bool = False

    def measure(self, sweeps: Iterable[Sweep], tell: Tell) -> None:
        """Fills ``figures``; an interrupt ends it, and keeps what was measured."""
        predictor = TimePredictor()
        order = random.Random(0)
        patterns: dict[str, Pattern] = {}
        try:
            plan = [(sweep, self._plan_cells(sweep)) for sweep in sweeps]
            total, done = sum(len(cells) for _, cells in plan), count()
            for sweep, cells in plan:
                self.clocks[sweep.name] = sweep.clock
                for cell in cells:
                    tell(cell.name, next(done), total)
                    if str(cell.dtype) not in patterns:
                        patterns[str(cell.dtype)] = Pattern(cell.dtype)
                    self._measure_cell(cell, patterns[str(cell.dtype)], predictor, order)
                self._add_extra(sweep)
        except KeyboardInterrupt:
            self.interrupted = True

    @property
    def ok(self) -> bool:
        """Whether there are figures and none of them, nor a sweep, failed."""
        return bool(self.figures) and not self.failures and all(figure.ok for figure in self.figures)

    def result(self, found: Info, conditions: dict[str, Any]) -> Run:
        """The run as its result file has it. ``conditions`` is what `conditions_since` gives."""
        meta = machine_facts.meta(
            found,
            conditions,
            method=METHOD,
            clocks=self.clocks,
            limits=self.machine.probed,
            skipped=[*self.machine.missing, *self.skipped],
            failures=self.failures,
            interrupted=self.interrupted,
        )
        return Run(meta, self.figures)

    def _plan_cells(self, sweep: Sweep) -> list[Cell]:
        """The sweep's cells with the contestants that the options want."""
        try:
            self.machine.probe(*sweep.probes)
            cells = []
            for cell in sweep.cells(self.options, self.machine):
                wanted = [contestant for contestant in cell.contestants if self.options.wants(contestant.name)]
                if wanted:
                    sets = cell.sets or self.machine.sets(cell.set_bytes)
                    cells.append(replace(cell, sweep=sweep.name, contestants=wanted, sets=sets))
            return cells
        except Exception as error:  # a GPU that cannot be probed does not keep the host from being measured
            self._note_failure(sweep.name, error)
            return []

    def _add_extra(self, sweep: Sweep) -> None:
        try:
            self.figures += sweep.extra(self.options, self.machine)
        except Exception as error:
            self._note_failure(sweep.name, error)

    def _measure_cell(self, cell: Cell, pattern: Pattern, predictor: TimePredictor, order: random.Random) -> None:
        if not self._fits(cell):
            return
        cell = self._without_slow_contestants(cell, pattern, predictor)
        if not cell.contestants:
            return
        measurement = Measurement(cell, pattern, order)
        try:
            measurement.run(self.options.seconds)
        except Exception as error:
            if _is_lack_of_memory(error):
                self.skipped.append(f"{cell.name}: out of memory: {error}")
            else:
                self._note_failure(cell.name, error)
        finally:
            self._add_figures(cell, measurement.figures())
        for timed in measurement.timed:
            if timed.error is None and timed.seconds:
                predictor.note(timed.contestant, cell.dtype, cell.elements, timed.median)

    def _add_figures(self, cell: Cell, figures: list[Figure]) -> None:
        try:
            if cell.add_derived is not None:
                figures = cell.add_derived(figures)
        except Exception as error:
            self._note_failure(cell.name, error)
        finally:  # after an interrupt too
            self.figures += figures

    def _note_failure(self, what: str, error: Exception) -> None:
        self.failures.append(f"{what}: {type(error).__name__}: {error}")

    def _fits(self, cell: Cell) -> bool:
        memories = {contestant.memory.name: contestant.memory for contestant in cell.contestants}.values()
        rotation = cell.sets * cell.set_bytes
        on_gpu = rotation * sum(memory.on_gpu for memory in memories)
        on_host = rotation * sum(not memory.on_gpu for memory in memories)
        for what, needed, there in (
            ("host", on_host, _machine.memory_available()),
            ("GPU", on_gpu, self.machine.gpu["memory"] if on_gpu else 0),
        ):
            if needed > USABLE * there:
                most = int(cell.n * USABLE * there / needed)
                self.skipped.append(
                    f"{cell.name}: needs {needed / 2**30:.1f} GiB of {what} memory, {there / 2**30:.1f} GiB are free: "
                    + (f"choose at most {show_size(1 << most.bit_length() - 1)} elements" if most else "not one fits")
                )
                return False
        return True

    def _without_slow_contestants(self, cell: Cell, pattern: Pattern, predictor: TimePredictor) -> Cell:
        # Their sweeps have seen to that: a loop of launches does not grow with its elements, a product not as they do.
        if cell.additions > 1 or cell.operands is not None:
            return cell
        quick: list[Contestant] = []
        for contestant in cell.contestants:
            try:
                seconds = predictor.seconds(contestant, pattern, cell.elements)
            except Exception:  # it will fail again when it is measured, which makes its figure
                seconds = 0.0
            if seconds > LONGEST:
                line = f"{contestant.name} of {cell.name}: one addition would take about {seconds:.1f} s"
                self.skipped.append(line)
            else:
                quick.append(contestant)
        return replace(cell, contestants=quick)


def _is_lack_of_memory(error: Exception) -> bool:
    """Ours, or PyTorch's and CuPy's OutOfMemoryError: they keep memory for themselves that `_fits` counts as free."""
    return isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"

"""A run: cell after cell. Contestants that do not fit or would take too long are left out; an interrupt keeps all
rows."""

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from vecadd import _host
from vecadd._machine import Info
from vecadd.bench import machine
from vecadd.bench.axes import Axes
from vecadd.bench.buffers import Pattern
from vecadd.bench.rows import rows_of
from vecadd.bench.sweeps import Machine, Sweep
from vecadd.bench.timing import LONGEST, METHOD, Cell, Measurement, Predictions
from vecadd.figures import Figure
from vecadd.tables import show_size

USABLE = 0.9  # of the memory that is free: the rest is for copies on the way to a check

Tell = Callable[[str, int, int], object]  # (what is measured now, cells done, cells in all)


@dataclass
class Run:
    """A run in progress: its rows so far are complete at any time."""

    axes: Axes
    machine: Machine = field(default_factory=Machine)
    rows: list[Figure] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)  # of whole sweeps and cells; a rung's own is in its row
    clocks: dict[str, str] = field(default_factory=dict)  # of each sweep that has begun
    interrupted: bool = False

    def measure(self, sweeps: Iterable[Sweep], tell: Tell) -> None:
        """Fills ``rows``; an interrupt ends it, and keeps what was measured."""
        predictions = Predictions()
        order = random.Random(0)
        patterns: dict[str, Pattern] = {}
        try:
            sweeps = list(sweeps)
            plan = [(sweep, self._cells(sweep)) for sweep in sweeps]
            total, done = sum(len(cells) for _, cells in plan), count()
            for sweep, cells in plan:
                self.clocks[sweep.name] = sweep.clock
                for cell in cells:
                    tell(cell.name, next(done), total)
                    if str(cell.dtype) not in patterns:
                        patterns[str(cell.dtype)] = Pattern(cell.dtype)
                    self._measure(cell, patterns[str(cell.dtype)], predictions, order)
                self._extra(sweep)
        except KeyboardInterrupt:
            self.interrupted = True

    @property
    def ok(self) -> bool:
        """Whether there are rows and none of them, nor a sweep, failed."""
        return bool(self.rows) and not self.failures and all(row.ok for row in self.rows)

    def meta(self, found: Info, conditions: dict[str, Any]) -> dict[str, Any]:
        """The "meta" of this run's result file."""
        return machine.meta(
            found,
            conditions,
            method=METHOD,
            clocks=self.clocks,
            limits=self.machine.probed,
            skipped=[*self.machine.missing, *self.skipped],
            failures=self.failures,
            interrupted=self.interrupted,
        )

    def _cells(self, sweep: Sweep) -> list[Cell]:
        try:
            return [cell for cell in sweep.cells(self.axes, self.machine) if cell.contestants]
        except Exception as error:  # a GPU that cannot be probed does not keep the host from being measured
            self.failures.append(f"{sweep.name}: {type(error).__name__}: {error}")
            return []

    def _extra(self, sweep: Sweep) -> None:
        try:
            self.rows += sweep.extra(self.axes, self.machine)
        except Exception as error:
            self.failures.append(f"{sweep.name}: {type(error).__name__}: {error}")

    def _measure(self, cell: Cell, pattern: Pattern, predictions: Predictions, order: random.Random) -> None:
        if not self._fits(cell):
            return
        self._leave_out_the_slow(cell, pattern, predictions)
        if not cell.contestants:
            return
        measurement = Measurement(cell, pattern, order)
        try:
            measurement.run(self.axes.seconds)
        except Exception as error:
            if _is_lack_of_memory(error):
                self.skipped.append(f"{cell.name}: out of memory: {error}")
            else:
                self.failures.append(f"{cell.name}: {type(error).__name__}: {error}")
        finally:
            self._keep(cell, rows_of(measurement))
        for timed in measurement.timed:
            if timed.error is None and timed.samples:
                predictions.note(timed.contestant, cell.dtype, cell.elements, timed.median)

    def _keep(self, cell: Cell, rows: list[Figure]) -> None:
        try:
            self.rows += rows if cell.derive is None else cell.derive(rows)
        except Exception as error:
            self.rows += rows
            self.failures.append(f"{cell.name}: {type(error).__name__}: {error}")

    def _fits(self, cell: Cell) -> bool:
        places = {contestant.place.name: contestant.place for contestant in cell.contestants}.values()
        rotation = cell.sets * cell.set_bytes
        on_gpu = rotation * sum(place.on_gpu for place in places)
        on_host = rotation * sum(not place.on_gpu for place in places)
        for what, needed, there in (
            ("host", on_host, _host.memory_available()),
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

    def _leave_out_the_slow(self, cell: Cell, pattern: Pattern, predictions: Predictions) -> None:
        # Their sweeps have seen to that: a loop of launches does not grow with its elements, a product not as they do.
        if cell.additions > 1 or cell.operands is not None:
            return
        for contestant in list(cell.contestants):
            try:
                seconds = predictions.seconds(contestant, pattern, cell.elements)
            except Exception:  # it will fail again when it is measured, which makes its row
                continue
            if seconds > LONGEST:
                cell.contestants.remove(contestant)
                self.skipped.append(f"{contestant.name} of {cell.name}: one addition would take about {seconds:.1f} s")


def _is_lack_of_memory(error: Exception) -> bool:
    """Ours, or PyTorch's and CuPy's OutOfMemoryError: they keep memory for themselves that `_fits` counts as free."""
    return isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"

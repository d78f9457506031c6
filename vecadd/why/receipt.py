"""The receipt: the lines of a program whose additions took longest, each with its reason and what mends it."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from vecadd.bench import machine
from vecadd.figures import write_json
from vecadd.info import info
from vecadd.tables import Screen, Table, columns, prose, show_bytes, show_gain, show_seconds
from vecadd.why import diagnosis, recording
from vecadd.why.diagnosis import Change, Diagnosis
from vecadd.why.layout import Layout
from vecadd.why.recording import AdditionGroup, Recording

SECONDS = 5.0  # of replays, the additions that took longest first
INTERRUPTED = "the replays were interrupted"
SHARE = 0.005  # of the additions' time: a group that took less is not replayed
SHOWN = 20  # lines of the table

METHOD = (
    "each addition whose sum exceeds 64 KiB timed as the program ran; page faults by getrusage, for each sum of 2 MiB "
    "or more and for the first 64 smaller ones of a line; calls of NumPy's loops in the first addition of a line; "
    "after the run the same addition replayed, as it was and with each change, as many times in a row as the program "
    "made it, and from memory: a gain is the ratio of two replays"
)


@dataclass(frozen=True)
class Line:
    """The additions of one line that have one reason; ``parts`` are they, by kind of operands, longest first."""

    parts: tuple[tuple[AdditionGroup, Diagnosis], ...]

    @property
    def where(self) -> str:
        """ "file.py:12"."""
        return str(self.parts[0][0].line)

    @property
    def diagnosis(self) -> Diagnosis:
        """That of the part that took longest."""
        return self.parts[0][1]

    @property
    def calls(self) -> int:
        """Additions."""
        return sum(group.calls for group, _ in self.parts)

    @property
    def nbytes(self) -> int:
        """Bytes that they read and wrote."""
        return sum(group.nbytes for group, _ in self.parts)

    @property
    def seconds(self) -> float:
        """What they took together."""
        return sum(group.seconds for group, _ in self.parts)

    @property
    def limit(self) -> float | None:
        """What they would have taken at this machine's limit; None where that is not known of all."""
        limits = [(group.calls, diagnosis.limit) for group, diagnosis in self.parts]
        return sum(calls * (limit or 0.0) for calls, limit in limits) if all(limit for _, limit in limits) else None

    @property
    def saved(self) -> float:
        """Seconds of the run that the change saves; 0 where that was not replayed."""
        return sum(saving(group, diagnosis.change) or 0.0 for group, diagnosis in self.parts if diagnosis.change)

    @property
    def gain(self) -> float | None:
        """How many times as fast the line is with the change."""
        return self.seconds / (self.seconds - self.saved) if self.saved else None


def saving(group: AdditionGroup, change: Change) -> float | None:
    """Seconds that a change saves of all calls; the first one's own cost stays."""
    return group.typical * group.calls * (1 - 1 / change.gain) if change.gain else None


@dataclass(frozen=True)
class Receipt:
    """What a program's additions took, and why. ``str()`` of it is a table; a notebook shows one too."""

    recording: Recording
    lines: tuple[Line, ...]

    @property
    def seconds(self) -> float:
        """What the additions took together."""
        return sum(line.seconds for line in self.lines) + self.recording.missed_seconds

    def heading(self) -> str:
        """How much of the run the additions took."""
        calls = sum(line.calls for line in self.lines) + self.recording.missed
        said = "no addition above 64 KiB was made"
        if calls:
            said = (
                f"{calls:,} addition{'s' * (calls > 1)} above 64 KiB took {show_seconds(self.seconds)} "
                f"of {show_seconds(self.recording.seconds)}"
            )
        return f"{said}; smaller ones, not timed: {self.recording.small:,}" if self.recording.small else said

    def table(self) -> Table:
        """A line of the program a line."""
        reason, change = prose("reason", 2), prose("change", 2)
        table = Table(
            f"why: {self.heading()}",
            columns("line", "calls", "moved", "time", "limit", reason, change, "gain", "saves"),
            optional_columns=("moved", "calls", "limit"),
        )
        for line in self.lines[:SHOWN]:
            found, gain = line.diagnosis, line.gain
            table.add(
                line.where,
                f"{line.calls:,}",
                show_bytes(line.nbytes),
                show_seconds(line.seconds),
                show_seconds(line.limit) if line.limit else "-",
                f"{found.reason}: {found.evidence}" if found.evidence else found.reason,
                found.change.change if found.change else "-",
                show_gain(gain) if gain else "-",
                show_seconds(line.saved) if gain else "-",
            )
        rest = self.lines[SHOWN:]
        if rest:
            table.notes.append(f"{len(rest)} more lines took {show_seconds(sum(line.seconds for line in rest))}")
        missed, seconds = self.recording.missed, self.recording.missed_seconds
        if missed:
            table.notes.append(f"there was no room for {missed:,} additions, which took {show_seconds(seconds)}")
        return table

    def as_dict(self) -> dict[str, Any]:
        """For the file: a row for each line and kind of operands."""
        return {
            "seconds": self.recording.seconds,
            "additions_seconds": self.seconds,
            "missed": self.recording.missed,
            "small": self.recording.small,
            "lines": [_row(group, diagnosis) for line in self.lines for group, diagnosis in line.parts],
        }

    def save(self, path: Path | str) -> None:
        """Writes the receipt as JSON, with the machine; "-" is standard output."""
        conditions = machine.conditions_since(machine.conditions_now())
        write_json(path, {"meta": machine.meta(info(), conditions, method=METHOD), **self.as_dict()})

    def show(self) -> None:
        """Prints the table on standard error: standard output is the program's."""
        screen = Screen(sys.stderr)
        if self.lines:
            screen.show([self.table()])
        else:
            screen.say(f"why: {self.heading()}")

    def __str__(self) -> str:
        return str(self.table())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


def stop(tell: Callable[[str], object] = lambda what: None) -> Receipt:
    """Ends the recording, replays the additions that took longest, and gives the receipt. ``tell`` hears what is done.

    Raises RuntimeError where nothing is recorded.
    """
    recorded = recording.stop()
    whole = sum(group.seconds for group in recorded.groups)
    end, interrupted = time.perf_counter() + SECONDS, False
    found: dict[tuple[object, ...], list[tuple[AdditionGroup, Diagnosis]]] = {}
    for group in sorted(recorded.groups, key=lambda group: -group.seconds):
        if group.seconds < SHARE * whole:
            why = Diagnosis(diagnosis.UNKNOWN, "it took too little of the run to be replayed")
        elif interrupted:
            why = Diagnosis(diagnosis.UNKNOWN, INTERRUPTED)
        elif time.perf_counter() > end:
            why = Diagnosis(diagnosis.UNKNOWN, "other lines took longer, and were replayed first")
        else:
            tell(f"replays {group.line}")
            try:
                why = diagnosis.diagnose(group)
            except KeyboardInterrupt:
                why, interrupted = Diagnosis(diagnosis.UNKNOWN, INTERRUPTED), True
        found.setdefault((group.line, why.reason), []).append((group, why))
    lines = [Line(tuple(parts)) for parts in found.values()]
    return Receipt(recorded, tuple(sorted(lines, key=lambda line: -line.seconds)))


def _row(group: AdditionGroup, why: Diagnosis) -> dict[str, Any]:
    return {
        "file": group.line.file,
        "line": group.line.line,
        "function": group.line.function,
        "through": str(group.through) if group.through else None,
        "via": group.via,
        "operands": _operand_texts(group),
        "calls": group.calls,
        "bytes": group.nbytes,
        "seconds": group.seconds,
        "first_seconds": group.first_seconds,
        "faults": group.faults,
        "first_faults": group.first_faults,
        "faulted": group.faulted,
        "loops": group.loops,
        "loop_elements": group.loop_elements,
        "installed": group.installed,
        "reason": why.reason,
        "evidence": why.evidence,
        "limit_seconds": group.calls * why.limit if why.limit else None,
        "replayed_seconds": group.calls * why.replayed if why.replayed else None,
        "from_memory": why.cold,
        "changes": [{**asdict(change), "saved_seconds": saving(group, change)} for change in why.changes],
    }


def _operand_texts(group: AdditionGroup) -> Sequence[str]:
    """What a, b and the sum are."""
    names = [f"{x.dtype} {x.shape}" if isinstance(x, Layout) else x.__name__ for x in (group.a, group.b, group.out)]
    return [*names[:2], f"{'a new ' if group.new else ''}{names[2]}"]


# --- `%%why`: a cell of a notebook, and the receipt of its additions below it

# What of a shell shows a cell's error; handlers of one's own for some errors would show them, too.
_SHOWING = ("showtraceback", "showsyntaxerror", "showindentationerror")
_HANDLED = "custom_exceptions"


def register_magic(shell: Any) -> None:
    """Gives the shell the cell magic ``%%why``, which gives the receipt."""

    def why(line: str, cell: str) -> Receipt | None:
        usage_error: type[Exception] = import_module("IPython.core.error").UsageError  # the shell shows it as one line
        if line.strip():
            raise usage_error(f"%%why takes nothing after it, not {line.strip()}; its receipt has save(file)")
        receipt: Receipt | None = None
        wrong: str | None = None
        recording.start()
        try:
            with _keep_errors(shell) as errors:
                ran = shell.run_cell(cell)
        finally:
            try:
                receipt = stop()
            except RuntimeError as why_not:  # the cell has ended it
                wrong = f"%%why: there is no receipt: {why_not}"
        for error in errors:  # those after which the cell went on, as after %run
            if error[1] not in (ran.error_before_exec, ran.error_in_exec):
                shell.showtraceback(error)
        if receipt and not ran.success:  # a cell that fails shows no result
            import_module("IPython.display").display(receipt)
        if wrong and not ran.success:
            print(wrong, file=sys.stderr)
        ran.raise_error()
        if wrong:
            raise usage_error(wrong)
        return receipt

    shell.register_magic_function(why, "cell", "why")


def unregister_magic(shell: Any) -> None:
    """Takes it away again."""
    shell.magics_manager.magics["cell"].pop("why", None)


@contextmanager
def _keep_errors(shell: Any) -> Iterator[list[Any]]:
    """The errors that the shell would show, as sys.exc_info() has them. The cell's own is shown where the cell around
    it fails by it, once and below the receipt."""
    own, errors = vars(shell), []

    def keep(error: Any = None, *arguments: Any, **options: Any) -> None:
        errors.append(error if isinstance(error, tuple) else sys.exc_info())

    silent = {**dict.fromkeys(_SHOWING, keep), _HANDLED: ()}
    before = {name: own[name] for name in silent if name in own}
    own.update(silent)
    try:
        yield errors
    finally:
        for name in silent:
            own.pop(name, None)
        own.update(before)

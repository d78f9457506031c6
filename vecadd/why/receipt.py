"""The receipt: the lines of a program whose additions took longest, each with its reason and what mends it."""

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path
from typing import Any

from vecadd.bench import machine
from vecadd.figures import write_json
from vecadd.info import info
from vecadd.tables import Screen, Table, columns, prose, show_bytes, show_gain, show_seconds
from vecadd.why import noted, reasons
from vecadd.why.layout import Layout
from vecadd.why.noted import Noted, Run
from vecadd.why.reasons import Change, Finding

SECONDS = 5.0  # of rehearsals, the additions that took longest first
INTERRUPTED = "the rehearsals were interrupted"
SHARE = 0.005  # of the additions' time: one that took less is not rehearsed
SHOWN = 20  # lines of the table

METHOD = (
    "each addition whose sum exceeds 64 KiB timed as the program ran; page faults by getrusage and calls of NumPy's "
    "loops counted in a part of them; after the run the same addition rehearsed, as it was and with each change, as "
    "many times in a row as the program made it, and from memory: a gain is the ratio of two rehearsals"
)


@dataclass(frozen=True)
class Line:
    """The additions of one line that have one reason; ``parts`` are they, by kind of operands, longest first."""

    parts: tuple[tuple[Noted, Finding], ...]

    @property
    def where(self) -> str:
        """ "file.py:12"."""
        return str(self.parts[0][0].place)

    @property
    def finding(self) -> Finding:
        """That of the part that took longest."""
        return self.parts[0][1]

    @property
    def calls(self) -> int:
        """Additions."""
        return sum(part.calls for part, _ in self.parts)

    @property
    def nbytes(self) -> int:
        """Bytes that they read and wrote."""
        return sum(part.nbytes for part, _ in self.parts)

    @property
    def seconds(self) -> float:
        """What they took together."""
        return sum(part.seconds for part, _ in self.parts)

    @property
    def limit(self) -> float | None:
        """What they would have taken at this machine's limit; None where that is not known of all."""
        limits = [(part.calls, finding.limit) for part, finding in self.parts]
        return sum(calls * (limit or 0.0) for calls, limit in limits) if all(limit for _, limit in limits) else None

    @property
    def saved(self) -> float:
        """Seconds of the run that the change saves."""
        return sum(saving(part, finding.change) for part, finding in self.parts if finding.change)

    @property
    def gain(self) -> float | None:
        """How many times as fast the line is with the change."""
        return self.seconds / (self.seconds - self.saved) if self.finding.change else None


def saving(part: Noted, change: Change) -> float:
    """Seconds that a change saves of all calls; the first one's own cost stays."""
    return part.typical * part.calls * (1 - 1 / change.gain)


@dataclass(frozen=True)
class Receipt:
    """What a program's additions took, and why. ``str()`` of it is a table; a notebook shows one too."""

    run: Run
    lines: tuple[Line, ...]

    @property
    def seconds(self) -> float:
        """What the additions took together."""
        return sum(line.seconds for line in self.lines) + self.run.missed_seconds

    def heading(self) -> str:
        """One sentence: how much of the run the additions took."""
        calls = sum(line.calls for line in self.lines) + self.run.missed
        if not calls:
            return "no addition above 64 KiB was made"
        about = "about " if any(part.estimated for line in self.lines for part, _ in line.parts) else ""
        return (
            f"{about}{calls:,} addition{'s' * (calls > 1)} above 64 KiB took {show_seconds(self.seconds)} "
            f"of {show_seconds(self.run.seconds)}"
        )

    def table(self) -> Table:
        """A line of the program a line."""
        reason, change = prose("reason", 2), prose("change", 2)
        table = Table(
            f"why: {self.heading()}",
            columns("line", "calls", "moved", "time", "limit", reason, change, "gain", "saves"),
            optional_columns=("moved", "calls", "limit"),
        )
        for line in self.lines[:SHOWN]:
            finding, gain = line.finding, line.gain
            table.add(
                line.where,
                f"{line.calls:,}",
                show_bytes(line.nbytes),
                show_seconds(line.seconds),
                show_seconds(line.limit) if line.limit else "-",
                f"{finding.reason}: {finding.evidence}" if finding.evidence else finding.reason,
                finding.change.change if finding.change else "-",
                show_gain(gain) if gain else "-",
                show_seconds(line.saved) if gain else "-",
            )
        rest = self.lines[SHOWN:]
        if rest:
            table.notes.append(f"{len(rest)} more lines took {show_seconds(sum(line.seconds for line in rest))}")
        if self.run.missed:
            table.notes.append(
                f"{self.run.missed:,} additions of further lines, {show_seconds(self.run.missed_seconds)}, had no room"
            )
        return table

    def as_dict(self) -> dict[str, Any]:
        """For the file: a row for each line and kind of operands."""
        return {
            "seconds": self.run.seconds,
            "additions_seconds": self.seconds,
            "missed": self.run.missed,
            "lines": [_row(part, finding) for line in self.lines for part, finding in line.parts],
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
        table = self.table()
        return "\n".join([table.title, *("  ".join(line.cells) for line in table.lines if line), *table.notes])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        table = self.table()
        head = "".join(f"<th style='text-align:left'>{escape(column.name)}</th>" for column in table.columns)
        rows = (
            "".join(f"<td style='text-align:left'>{escape(cell)}</td>" for cell in line.cells)
            for line in table.lines
            if line
        )
        body = "".join(f"<tr>{cells}</tr>" for cells in rows)
        notes = "".join(f"<p>{escape(note)}</p>" for note in table.notes)
        return f"<p>{escape(table.title)}</p><table><tr>{head}</tr>{body}</table>{notes}"


def stop(tell: Callable[[str], object] = lambda what: None) -> Receipt:
    """Notes no more additions, rehearses those that took longest, and gives the receipt. ``tell`` hears what is done.

    Raises RuntimeError where nothing was noted.
    """
    run = noted.stop()
    whole = sum(part.seconds for part in run.additions)
    end, interrupted = time.perf_counter() + SECONDS, False
    found: dict[tuple[object, ...], list[tuple[Noted, Finding]]] = {}
    for part in sorted(run.additions, key=lambda part: -part.seconds):
        if part.seconds < SHARE * whole:
            finding = Finding(reasons.UNKNOWN, "it took too little of the run to be rehearsed")
        elif interrupted:
            finding = Finding(reasons.UNKNOWN, INTERRUPTED)
        elif time.perf_counter() > end:
            finding = Finding(reasons.UNKNOWN, "other lines took longer, and were rehearsed first")
        else:
            tell(f"rehearses {part.place}")
            try:
                finding = reasons.find(part)
            except KeyboardInterrupt:
                finding, interrupted = Finding(reasons.UNKNOWN, INTERRUPTED), True
        found.setdefault((part.place, finding.reason), []).append((part, finding))
    lines = [Line(tuple(parts)) for parts in found.values()]
    return Receipt(run, tuple(sorted(lines, key=lambda line: -line.seconds)))


def _row(part: Noted, finding: Finding) -> dict[str, Any]:
    return {
        "file": part.place.file,
        "line": part.place.line,
        "function": part.place.function,
        "through": str(part.through) if part.through else None,
        "via": part.via,
        "operands": _words(part),
        "calls": part.calls,
        "estimated": part.estimated,
        "bytes": part.nbytes,
        "seconds": part.seconds,
        "first_seconds": part.first_seconds,
        "faults": part.faults,
        "first_faults": part.first_faults,
        "faulted": part.faulted,
        "loops": part.loops,
        "loop_elements": part.elements,
        "installed": part.installed,
        "reason": finding.reason,
        "evidence": finding.evidence,
        "limit_seconds": part.calls * finding.limit if finding.limit else None,
        "rehearsed_seconds": part.calls * finding.rehearsed if finding.rehearsed else None,
        "from_memory": finding.cold,
        "changes": [{**asdict(change), "saved_seconds": saving(part, change)} for change in finding.changes],
    }


def _words(part: Noted) -> Sequence[str]:
    """What a, b and the sum are."""
    names = [
        f"{x.dtype} {x.shape}" if isinstance(x, Layout) else "nothing" if x is None else x.__name__
        for x in (part.a, part.b, part.out)
    ]
    return [*names[:2], f"{'a new ' if part.new else ''}{names[2]}"]

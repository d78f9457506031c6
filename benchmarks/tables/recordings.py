"""The recorded runs that the tables show, and the notes under the tables on where, when and how they were made.

Under each table: the machine, the day and the commit. A document says the versions of the other libraries under a
commit's first table; a clock and a method under the first table of those that follow each other and have them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from vecadd.bench.timing import METHOD
from vecadd.figures import Run, read_run, show_date

OWN = ("vecadd", "kernel")  # among a file's versions: not those of other libraries

# The method of every run that has the present one. In braces: where the full text is.
BRIEFLY = (
    "medians of interleaved rounds over rotating buffers, sums compared bit for bit after their outputs were poisoned "
    "([all of it]({}))"
)


@dataclass(frozen=True)
class Recording(Run):
    """The recorded run of one sweep."""

    sweep: str = ""

    @property
    def machine(self) -> str:
        """The GPU and its driver, or the processor where there was none."""
        cpu, gpus = self.meta["cpu"], self.meta["gpu"]
        if gpus:
            return f"{gpus[0]['name']}, driver {self.meta['driver']}"
        return f"{cpu['model'] or 'processor unknown'}, {cpu['threads']} threads"

    @property
    def clock(self) -> str:
        """How the sweep is timed; "" where the file does not say."""
        return str(self.meta.get("clocks", {}).get(self.sweep, ""))

    @property
    def versions(self) -> list[str]:
        """Of the other libraries; of CUDA where there was a GPU."""
        found = {name: version for name, version in self.meta.get("versions", {}).items() if name not in OWN}
        if not self.meta["gpu"]:
            found.pop("cuda", None)
        return [f"{name} {version}" for name, version in found.items()]


def newest(folder: Path, sweep: str) -> dict[str, Recording]:
    """The newest recorded run of a sweep on each machine that has a folder in this one."""
    found: dict[str, Recording] = {}
    for path in sorted(folder.glob("*/*.json")):
        run = read_run(path).of_sweep(sweep)
        known = found.get(path.parent.name)
        if run.figures and (known is None or known.meta["date"] < run.meta["date"]):
            found[path.parent.name] = Recording(run.meta, run.figures, path, sweep)
    return found


def origin(runs: Sequence[Recording]) -> str:
    """The machine, days and commits."""
    return "; ".join(dict.fromkeys([*(run.machine for run in runs), *(show_date(run.meta) for run in runs)]))


def notes(tables: Sequence[Sequence[Recording]], method_at: str) -> list[list[str]]:
    """The paragraphs under each table of a document, each table by the runs that it is made from."""
    told: set[str] = set()  # versions: a commit's figures have those under its first table
    clock = method = ""  # as under the last table that says one
    under: list[list[str]] = []
    for runs in tables:
        lines, parts = [], [origin(runs)]
        versions = ", ".join(dict.fromkeys(version for run in runs for version in run.versions))
        if versions and parts[0] + versions not in told:
            told.add(parts[0] + versions)
            parts[0] += f"; {versions}"
        if runs and runs[0].clock != clock:
            clock = runs[0].clock
            parts.append(clock[:1].upper() + clock[1:])
        methods = dict.fromkeys(run.meta["method"] for run in runs)
        if runs and method != (now := "; ".join(BRIEFLY.format(method_at) if m == METHOD else m for m in methods)):
            method = now
            lines = [f"*Method: {method}.*"]
        under.append([f"*{'. '.join(filter(None, parts))}.*", *lines] if runs else [])
    return under

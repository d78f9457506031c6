"""The recorded runs behind the tables, and the notes under the tables on where, when and how they were made.

A section of a document says once what holds for all of its tables: machines, dates, revisions, whether the sources have
changed since, and the method. Under each table stands its clock, of a comparison the
versions of the other libraries, and its machine where the section has several.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vecadd.bench import results
from vecadd.bench.results import Row
from vecadd.bench.timing import METHOD

OWN = ("vecadd", "kernel")  # among a file's versions: not those of other libraries

Digest = Callable[[str], str | None]  # of what a sweep's times depend on, by the sweep's name

# The method of every run that has the present one. In braces: where the full text stands.
BRIEFLY = (
    "medians of interleaved rounds over rotating buffers, sums compared bit for bit after their outputs were poisoned "
    "([all of it]({}))"
)


@dataclass(frozen=True)
class Run:
    """One recorded run of one sweep."""

    sweep: str
    meta: dict[str, Any]
    rows: list[Row]

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
    def when(self) -> str:
        """The day, the commit, and the digest of the sources."""
        return dated(self.meta)

    @property
    def versions(self) -> str:
        """Of the libraries that a comparison has beside vecadd; "" for another sweep."""
        if not self.sweep.startswith("peer-"):
            return ""
        found = [f"{name} {version}" for name, version in self.meta.get("versions", {}).items() if name not in OWN]
        return f"With {', '.join(found)}" if found else ""

    def of_other_sources(self, digest: Digest) -> bool:
        """Whether the timed sources have changed since, or the file is too old to tell."""
        recorded = self.meta.get("sources", {}).get(self.sweep)
        return recorded is None or recorded != digest(self.sweep)


def dated(meta: Mapping[str, Any]) -> str:
    """When it was recorded, and at which sources. A commit that ends in + had uncommitted changes."""
    commit = str(meta.get("commit") or "")
    changes = " with uncommitted changes" if commit.endswith("+") else ""
    parts = [meta["date"][:10], f"commit {commit.removesuffix('+')}{changes}" if commit else ""]
    return ", ".join([*filter(None, parts), f"digest of the sources {meta['revision']}"])


def newest(folder: Path, sweep: str) -> dict[str, Run]:
    """The newest recorded run of a sweep on each machine that has a folder in this one."""
    found: dict[str, Run] = {}
    for path in sorted(folder.glob("*/*.json")):
        meta, rows = results.read(path)
        run = Run(sweep, meta, [row for row in rows if row.sweep == sweep])
        known = found.get(path.parent.name)
        if run.rows and (known is None or known.meta["date"] < meta["date"]):
            found[path.parent.name] = run
    return found


def notes(tables: Sequence[Sequence[Run]], digest: Digest, method_at: str) -> list[list[str]]:
    """The paragraphs under each table of a section, each table by the runs that it is made from."""
    recorded = [runs for runs in tables if runs]
    several = len({run.machine for runs in recorded for run in runs}) > 1
    told: set[str] = set()
    under: list[list[str]] = []
    for runs in tables:
        if not runs:
            under.append([])
            continue
        first = runs[0]
        clock = "" if first.clock in told else first.clock[:1].upper() + first.clock[1:]
        versions = "" if first.versions in told else first.versions
        told |= {first.clock, first.versions}
        own = [part for part in (first.machine if several else "", clock, versions) if part]
        under.append([f"*{'. '.join(own)}.*"] if own else [])
    if recorded:
        under[-1].append(_origin([run for runs in recorded for run in runs], digest, method_at))
    return under


def _origin(runs: Sequence[Run], digest: Digest, method_at: str) -> str:
    """The note that holds for all tables of a section."""
    machines: dict[str, list[str]] = {}
    for run in runs:
        machines.setdefault(run.machine, []).append(run.when)
    recorded = " and on ".join(f"{name} ({'; '.join(dict.fromkeys(when))})" for name, when in machines.items())
    methods = dict.fromkeys(
        BRIEFLY.format(method_at) if run.meta["method"] == METHOD else run.meta["method"] for run in runs
    )
    return f"*Recorded on {recorded}. {_changed_since(runs, digest)}Method: {'; '.join(methods)}.*"


def _changed_since(runs: Sequence[Run], digest: Digest) -> str:
    changed = list(dict.fromkeys(run.sweep for run in runs if run.of_other_sources(digest)))
    if not changed:
        return ""
    whose = "" if all(run.sweep in changed for run in runs) else f" of {', '.join(changed)}"
    return f"The sources{whose} have changed since. "

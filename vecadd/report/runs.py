"""The runs of one machine, by its result files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vecadd._command import UnaskableError, refuse_inputs
from vecadd.bench.results import Row
from vecadd.compare.figures import Bench, contents, read
from vecadd.fleet.checks import Check

# What a page says of a run; `vecadd bench` and the comparisons with other libraries write all of them.
NEEDED = ("commit", "contamination", "cpu", "date", "driver", "gpu", "machine", "method", "versions")
NEEDED_WITHIN = {
    "contamination": ("cpus", "ecc_errors", "gpu_processes", "load_average", "throttled"),
    "cpu": ("model", "threads"),
    "gpu": ("l2", "multiprocessors", "name"),
    "contamination.link_width": ("generation", "generation_max", "width", "width_max"),
    "limits.device": ("gbps", "read_gbps", "write_gbps"),
    "limits.launch": ("block_seconds", "kernel_seconds", "queued_seconds"),
    "limits.latency": ("dram_seconds", "l2_seconds"),
    "limits.loaded": ("bytes_in_flight", "gbps"),
}
WITH_A_RATIO = ("ratio_interval", "reference")  # of the parameters of a row of a comparison
OF_MANY_ADDS = ("seconds_per_add",)  # of those of a row of small additions


@dataclass(frozen=True)
class Runs:
    """``benches`` and ``checks`` are ordered by time, oldest first. Of a sweep that was run several times the newest
    counts."""

    benches: list[Bench]
    checks: list[Check]

    @property
    def check(self) -> Check | None:
        """The newest one."""
        return self.checks[-1] if self.checks else None

    def of(self, *sweeps: str) -> tuple[dict[str, Any], list[Row]]:
        """The rows of these sweeps, and the meta data of the newest file that has some."""
        meta: dict[str, Any] = {}
        rows: dict[str, list[Row]] = {}
        for bench in self.benches:
            for sweep in dict.fromkeys(row.sweep for row in bench.rows):
                if sweep in sweeps or any(sweep.startswith(each[:-1]) for each in sweeps if each.endswith("*")):
                    rows[sweep] = [row for row in bench.rows if row.sweep == sweep]
                    meta = bench.meta
        return meta, [row for some in rows.values() for row in some]

    @property
    def meta(self) -> dict[str, Any]:
        """Of the newest file of rows, with the newest probe of each limit; empty without such a file."""
        limits: dict[str, Any] = {}
        for bench in self.benches:
            for group, probed in bench.meta.get("limits", {}).items():
                limits[group] = {**limits.get(group, {}), **probed}
        return {**self.benches[-1].meta, "limits": limits} if self.benches else {}


def of(paths: Sequence[Path], page: Path | str | None = None) -> Runs:
    """Reads the files, of which ``page`` must be none. Raises UnaskableError for what is not there, for other files,
    for those of two machines, and for those that do not say where they were recorded."""
    try:
        held = contents(paths)
        refuse_inputs({"out": page}, held)
        found = read(held)
    except ValueError as error:
        raise UnaskableError(str(error)) from error
    benches = [each for each in found if isinstance(each, Bench)]
    for bench in benches:
        if missing := _missing(bench.meta):
            raise UnaskableError(
                f"{bench.path} does not say its {', '.join(missing)}: give a file that vecadd bench has written"
            )
        for row in bench.rows:
            if absent := [name for name in _needed(row) if name not in row.params]:
                raise UnaskableError(f"{bench.path} is not a result file: {row.name} has no {', '.join(absent)}")
    checks = [each for each in found if isinstance(each, Check)]
    for what, names in (
        ("machines", {str(bench.meta.get("machine", "unknown")) for bench in benches}),
        ("hosts", {check.host for check in checks}),
    ):
        if len(names) > 1:
            raise UnaskableError(
                f"the files are of several {what}, {', '.join(sorted(names))}: a report is of one; vecadd compare "
                "holds two against each other, and vecadd fleet many"
            )
    return Runs(benches, checks)


def _needed(row: Row) -> tuple[str, ...]:
    """The parameters without which this row cannot be drawn."""
    if row.sweep.startswith("peer") and "ratio" in row.params:
        return WITH_A_RATIO
    return OF_MANY_ADDS if row.sweep == "latency" and row.seconds else ()


def _missing(meta: Mapping[str, Any]) -> list[str]:
    """What a page needs and these meta data do not have."""
    return [name for name in NEEDED if name not in meta] or [
        f"{name}.{field}"
        for name, fields in NEEDED_WITHIN.items()
        for within in _within(meta, name)
        for field in fields
        if field not in within
    ]


def _within(meta: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """The objects at that name ("limits.device"); none where the file has no such part."""
    group, _, part = name.rpartition(".")
    found = meta.get(group, {}).get(part) or [] if group else meta[part]
    return found if isinstance(found, list) else [found]

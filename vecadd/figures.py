"""Figures: measured numbers with what bounds them, and the result files that have them.

A result file is a JSON object. Each entry of a field that is an object has a line of its own, and so does each object
of a field that is a list of objects: a row a line. Two recordings then differ by the rows that differ, and a line of
`grep` is a whole row.

    {
     "schema": 1,
     "meta": {
      "machine": "h200",
      "date": "2026-11-22T00:43:39+00:00"
     },
     "rows": [
      {"sweep": "host", "rung": "threads", "dtype": "float32", "n": 1024, ...},
      {"sweep": "host", "rung": "threads", "dtype": "float32", "n": 4096, ...}
     ]
    }

`vecadd bench`, `vecadd profile` and the peers write "meta" and "rows" (a `Run`), `vecadd check` what its schema.json
describes (a `Check`); the fuzz program writes fields of its own in the same form.

"schema" is the version of what fields mean. It rises where a reader of the version before would misread a file; a new
field that may be ignored needs no new version.
"""

import json
import os
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.resources.abc import Traversable
from math import inf, isfinite
from pathlib import Path
from typing import Any

from vecadd._command import STDOUT, UsageError, descriptor, need, refuse_shared
from vecadd._replace import naming, replacing, write_all
from vecadd.tables import SECONDS, Screen, show_size

SCHEMA = 1  # the version that is written; the only one that is read
CHECK, CHECK_VERSION = "vecadd-check", 2  # "schema" and "schema_version" of a check's file

SEVERITIES = ("pass", "info", "warning", "critical", "unknown")
STATUSES = ("passed", "failed", "unknown")

Range = tuple[float, float]


@dataclass(frozen=True)
class Figure:
    """One measured number, with its place among others and what bounds it. Rates in GB/s (1e9 bytes a second) count
    every array once."""

    sweep: str
    name: str  # the rung's, or that of what else was measured
    dtype: str = ""
    n: int = 0
    params: Mapping[str, Any] = field(default_factory=dict)
    value: float | None = None  # the median; None where it failed
    unit: str = "s"
    spread: Range | None = None  # p10 and p90 of the samples
    bytes: int = 0  # that moved, each array once
    limit: float | None = None  # the best possible GB/s, by a probe of the same run
    checked: bool = False
    error: str | None = None
    # What a check adds; its figures have their id as their name: "device memory/gpu 0/read".
    measurement: str = ""  # the same for every part of the machine
    rounds: Sequence[float] = ()  # of which `value` is the median
    interval: Range | None = None  # the lowest and the highest round
    reference: float | None = None  # of an earlier run, a probe or theory: `expected` is a share of it
    expected: Range | None = None  # the lowest and the highest value that pass; an end without a bound is infinite
    source: str = ""  # of what is expected
    severity: str = ""  # one of SEVERITIES
    meaning: str = ""
    next: str = ""  # what to do; empty where nothing is to be done
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def where(self) -> str:
        """The part of the machine, of a check's figure: "gpu 0"."""
        return self.name.split("/")[1] if self.measurement and "/" in self.name else ""

    @property
    def seconds(self) -> float | None:
        """The value of a figure that is a time."""
        return None if self.value is None or self.unit not in SECONDS else self.value * SECONDS[self.unit]

    @property
    def gbps(self) -> float | None:
        """The rate at which the bytes moved; None if nothing moved."""
        return self.bytes / self.seconds / 1e9 if self.seconds and self.bytes else None

    @property
    def fraction(self) -> float | None:
        """The rate's share of the limit; above 1 the method is wrong, not the rung fast."""
        return self.gbps / self.limit if self.gbps and self.limit else None

    @property
    def title(self) -> str:
        """The figure's name in one line: "transfer pinned (pageable) float32 2^20"; of a check "link width, gpu 0"."""
        if self.measurement:
            return f"{self.measurement}, {self.where}" if self.where else self.measurement
        block = f" block {self.params.get('block')}" if self.sweep == "blocksize" else ""
        return f"{self.sweep} {self.label}{block} {self.dtype} {show_size(self.n)}"

    @property
    def label(self) -> str:
        """The name, its parameters, and its memory or clock where the neighbouring figures have another."""
        notes = [f"{name} {self.params.get(name, value)}" for name, value in self.params.get("parameters", {}).items()]
        notes += [self.params[key] for key in ("memory", "clock") if self.params.get(key, self.name) != self.name]
        return f"{self.name} ({', '.join(notes)})" if notes else self.name

    @property
    def is_impossible(self) -> bool:
        """Whether it is above its limit."""
        return self.fraction is not None and self.fraction > 1

    @property
    def ok(self) -> bool:
        """Whether it neither failed nor is impossible."""
        return self.error is None and not self.is_impossible

    @property
    def fails(self) -> bool:
        """Whether the machine fails its check by this figure alone."""
        return self.severity == "critical"

    @property
    def is_disturbed(self) -> bool:
        """Whether it missed what a check expected while other work kept the host busy."""
        return self.severity == "unknown" and self.value is not None

    def with_params(self, **more: Any) -> "Figure":
        """This figure with more parameters."""
        return replace(self, params={**self.params, **more})


@dataclass(frozen=True)
class Run:
    """The figures of one run, and where, when and how they were measured. ``path`` is the file that they were read
    from; None where they were just measured."""

    meta: Mapping[str, Any]
    figures: Sequence[Figure]
    path: Path | Traversable | None = None

    def of_sweep(self, name: str) -> "Run":
        """The same run with the figures of this sweep alone."""
        return replace(self, figures=[figure for figure in self.figures if figure.sweep == name])


@dataclass(frozen=True, kw_only=True)
class Check(Run):
    """One run of `vecadd check` on one machine; its meta is the field "machine". ``machine_type`` is a line that equal
    machines share, ``vecadd`` the version and the commit that measured, ``conditions`` what else went on."""

    host: str
    time: datetime
    status: str
    machine_type: str
    vecadd: Mapping[str, Any] = field(default_factory=dict)
    conditions: Mapping[str, Any] = field(default_factory=dict)


def less_is_better(unit: str) -> bool:
    """Whether a machine is the better, the less it has in that unit. In all other units more is better."""
    return unit in SECONDS or unit in ("errors", "words", "processes", "tasks", "°C", "W")


def show_date(meta: Mapping[str, Any]) -> str:
    """The day and the commit of a recording; the day alone where the commit is unknown."""
    commit = str(meta.get("commit") or "")
    changes = " with uncommitted changes" if commit.endswith("+") else ""  # see machine.commit
    return str(meta["date"])[:10] + (f", commit {commit.removesuffix('+')}{changes}" if commit else "")


# Writing


def write_run(path: Path | str, meta: Mapping[str, Any], figures: Iterable[Figure]) -> None:
    """Writes a run's result file, whole or not at all."""
    replace_file(path, run_text(meta, figures))


def run_text(meta: Mapping[str, Any], figures: Iterable[Figure]) -> str:
    """The text of a run's result file."""
    return json_text({"meta": meta, "rows": [row_of_figure(figure) for figure in figures]})


def write_json(path: Path | str, content: Mapping[str, Any]) -> None:
    """Writes any result file, whole or not at all."""
    replace_file(path, json_text(content))


def row_of_figure(figure: Figure) -> dict[str, Any]:
    """The figure as a row of a result file."""
    return {
        "sweep": figure.sweep,
        "rung": figure.name,
        "dtype": figure.dtype,
        "n": figure.n,
        "params": figure.params,
        "seconds": figure.seconds,
        "spread": figure.spread,
        "bytes": figure.bytes,
        "gbps": figure.gbps,
        "limit_gbps": figure.limit,
        "fraction": figure.fraction,
        "checked": figure.checked,
        "error": figure.error,
    }


class Outputs:
    """The files that options of a command name, by these options; the path "-" is standard output, and then the tables
    go to stderr."""

    def __init__(self, arguments: Namespace, *options: str) -> None:
        """Raises UsageError where two are one file, and where a page needs a package that is missing."""
        given = {name: getattr(arguments, name) for name in options}
        self.paths: dict[str, Path | str] = {name: path for name, path in given.items() if path is not None}
        refuse_shared(self.paths)
        if "html" in self.paths:
            need("a page", {"jinja2": "fleet"}, UsageError)

    @property
    def screen(self) -> Screen:
        """Where the tables go."""
        return Screen(sys.stderr if STDOUT in self.paths.values() else None)

    def write(self, texts: Mapping[str, Callable[[], str]]) -> None:
        """Writes each file, whole or not at all. Raises the first error after the last file: a full disk must not keep
        what took an hour to measure from the others."""
        failures: list[OSError] = []
        for name, text in texts.items():
            if name in self.paths:
                try:
                    replace_file(self.paths[name], text())
                except OSError as error:
                    failures.append(error)
        if failures:
            raise failures[0]


def content_of_check(check: Check) -> dict[str, Any]:
    """The content of a check's file."""
    return {
        "schema": CHECK,
        "schema_version": CHECK_VERSION,
        "status": check.status,
        "host": check.host,
        "time": check.time.isoformat(timespec="seconds"),
        "vecadd": check.vecadd,
        "machine": check.meta,
        "machine_type": check.machine_type,
        "findings": [_finding_of_figure(each) for each in check.figures],
        "conditions": check.conditions,
    }


def _finding_of_figure(figure: Figure) -> dict[str, Any]:
    return {
        "id": figure.name,
        "measurement": figure.measurement,
        "where": figure.where,
        "severity": figure.severity,
        "value": figure.value,
        "unit": figure.unit,
        "interval": figure.interval,
        "expected": figure.expected and [end if isfinite(end) else None for end in figure.expected],
        "source": figure.source,
        "meaning": figure.meaning,
        "next": figure.next,
        **figure.more,
        **({"rounds": figure.rounds} if len(figure.rounds) > 1 else {}),
    }


def json_text(content: Mapping[str, Any]) -> str:
    """The text of a result file: the schema's version and then these fields."""
    fields = {"schema": SCHEMA, **content}
    return _lines("{}", [f"{json.dumps(name)}: {_field_text(value)}" for name, value in fields.items()]) + "\n"


def _field_text(value: Any) -> str:
    if isinstance(value, Mapping) and value:
        return _lines("{}", [f"{json.dumps(name)}: {json.dumps(each)}" for name, each in value.items()], " ")
    if isinstance(value, list) and value and all(isinstance(each, Mapping) for each in value):
        return _lines("[]", [json.dumps(each) for each in value], " ")
    return json.dumps(value)


def _lines(brackets: str, lines: Iterable[str], indent: str = "") -> str:
    separator = f",\n{indent} "
    return f"{brackets[0]}\n{indent} {separator.join(lines)}\n{indent}{brackets[1]}"


def replace_file(path: Path | str, content: str | bytes) -> None:
    """Writes the file in one step: a reader finds the old one or the new one. The path "-" is standard output.

    A link stays a link: what it points to is replaced, and keeps its permissions. Pipes and devices are written to, not
    replaced, and so is what is open here (/dev/stdout), a file too.
    Text is UTF-8 in every locale, as pages declare and Prometheus requires. A byte of a file's name that is no UTF-8 is
    written as an escape.
    """
    data = content if isinstance(content, bytes) else content.encode(errors="backslashreplace")
    with naming(path):  # a full disk names nothing
        if path == STDOUT:
            binary = getattr(sys.stdout, "buffer", None)
            if binary is None:  # of a notebook
                sys.stdout.write(data.decode())
            else:
                sys.stdout.flush()
                binary.write(data)
                binary.flush()
            return
        path = Path(path)
        if (opened := descriptor(path)) is not None:
            with suppress(AttributeError, ValueError):  # of a program that has none, or has closed it
                sys.stdout.flush()
            with os.fdopen(os.dup(opened), "wb") as stream:  # after what was written there
                stream.write(data)
        elif path.exists() and not path.is_file():
            path.write_bytes(data)
        else:
            with replacing(path) as opened:
                write_all(opened, data)


# Reading

# The schemas of what commands find in measurements, which are no measurements, and the commands.
FLEET, COMPARISON = "vecadd-fleet", "vecadd-compare"
WRITERS = {FLEET: "vecadd fleet", COMPARISON: "vecadd compare"}


def read_objects(paths: Sequence[Path]) -> Iterator[tuple[Path, dict[str, Any] | ValueError]]:
    """The contents of these JSON files, and of every ``*.json`` in these folders and their subfolders, by name; for a
    file that cannot be read, an error that names it. In folders, pipes are left out (reading one waits for its writer),
    and so are earlier outputs of WRITERS. Raises UsageError for a missing path and for a folder without JSON files."""
    for path in paths:
        if not path.exists():
            raise UsageError(f"{path}: no such file or folder")
        files = sorted(each for each in path.rglob("*.json") if not each.is_fifo()) if path.is_dir() else [path]
        if not files:
            raise UsageError(f"{path} has no file *.json in it")
        for file in files:
            try:
                content = read_object(file)
            except (OSError, ValueError) as error:
                named = f"{file}: {error.strerror}" if isinstance(error, OSError) else str(error)
                yield file, ValueError(named)
                continue
            if file in paths or content.get("schema") not in WRITERS:
                yield file, content


def read_run(path: Path | Traversable) -> Run:
    """The run in a result file; raises ValueError, which names the file, for any other file, and OSError."""
    return run_of_content(path, read_object(path))


def run_of_content(path: Path | Traversable, content: Mapping[str, Any]) -> Run:
    """`read_run` of what has been read: a pipe can be read once."""
    content = checked_fields(path, content)
    try:
        check_kinds("meta", content["meta"], _META)
        check_kinds("rows", content["rows"], [_ROW])
        return Run(content["meta"], [figure_of_row(row) for row in content["rows"]], path)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is not a result file: {error}") from error


def figure_of_row(row: Mapping[str, Any]) -> Figure:
    """The figure in a row of a result file. Raises KeyError, TypeError or ValueError where there is none."""
    has_no_rate = row["seconds"] is not None and row["gbps"] is None  # a cold start, whose time is not its bytes'
    return Figure(
        sweep=row["sweep"],
        name=row["rung"],
        dtype=row["dtype"],
        n=row["n"],
        params=row["params"],
        value=row["seconds"],
        spread=_range("spread", row["spread"], NUMBER),
        bytes=0 if has_no_rate else row["bytes"],
        limit=row["limit_gbps"],
        checked=row["checked"],
        error=row["error"],
    )


def is_check(content: Mapping[str, Any]) -> bool:
    """Whether the object says that it is a file of the check."""
    return content.get("schema") == CHECK


def run_or_check(path: Path, content: Mapping[str, Any]) -> Run:
    """The run in that file's content, of a bench or of a check. Raises ValueError, which names the file."""
    return check_of_content(path, content) if is_check(content) else run_of_content(path, content)


def check_of_content(path: Path, content: Mapping[str, Any]) -> Check:
    """The check in that file's content. Raises ValueError, which names the file and what is wrong with it."""
    if not is_check(content):
        raise ValueError(
            f'{path} is not a file of vecadd check: its "schema" is {json.dumps(content.get("schema"))}, not '
            f'"{CHECK}"; vecadd check --json FILE writes one'
        )
    version = content.get("schema_version")
    if version != CHECK_VERSION or isinstance(version, bool):
        raise ValueError(
            f"{path} is a file of vecadd check of version {json.dumps(version)}; this vecadd reads version "
            f"{CHECK_VERSION}: install the vecadd that wrote it, or check the machine again"
        )
    try:
        check_kinds("check", content, _CHECK)
        time = datetime.fromisoformat(content["time"])
        return Check(
            meta=content.get("machine") or {},
            figures=[_figure_of_finding(each) for each in content["findings"]],
            path=path,
            host=content["host"],
            time=time if time.tzinfo else time.replace(tzinfo=UTC),
            status=content["status"],
            machine_type=content["machine_type"],
            vecadd=content.get("vecadd") or {},
            conditions=content.get("conditions") or {},
        )
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path} is not a file of vecadd check: {error}") from error


def _figure_of_finding(row: Mapping[str, Any]) -> Figure:
    return Figure(
        "check",
        row["id"],
        value=row.get("value"),
        measurement=row["measurement"],
        rounds=row.get("rounds") or (),
        interval=_range("interval", row.get("interval"), NUMBER),
        expected=_range("expected", row.get("expected"), (*NUMBER, NO)),
        severity=row["severity"],
        unit=row["unit"],
        source=str(row.get("source") or ""),
        meaning=str(row.get("meaning") or ""),
        next=str(row.get("next") or ""),
        more={name: found for name, found in row.items() if name in ("normal", "series")},
    )


def read_fields(path: Path | Traversable) -> dict[str, Any]:
    """The fields of any result file, without its schema's version.

    Raises ValueError for a file that is not a result file, or of a version that is not read.
    """
    return checked_fields(path, read_object(path))


def read_object(path: Path | Traversable) -> dict[str, Any]:
    """The object in a result file. Raises ValueError, which names the file, if it contains no object, and OSError. A
    device is refused: /dev/zero has no end."""
    if isinstance(path, Path) and path.is_char_device():
        raise ValueError(f"{path} is not a result file: it is a device")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (RecursionError, ValueError) as error:  # UnicodeDecodeError is a ValueError
        raise ValueError(f"{path} is not a result file: {error}") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path} is not a result file: it is not an object")
    return content


def checked_fields(path: Path | Traversable, content: Mapping[str, Any]) -> dict[str, Any]:
    """The content without its schema's version. Raises ValueError for another version than SCHEMA."""
    if "schema" not in content:
        raise ValueError(f'{path} is not a result file: it has no "schema"')
    found = content["schema"]
    if type(found) is not int or found != SCHEMA:
        newer = type(found) is int and found > SCHEMA
        advice = "install the vecadd that wrote it, or a newer one" if newer else "measure again to replace it"
        raise ValueError(
            f"{path} is a result file of schema {json.dumps(found)}; this vecadd reads schema {SCHEMA}: {advice}"
        )
    return {name: value for name, value in content.items() if name != "schema"}


def _range(name: str, found: Any, ends: tuple[type, ...]) -> Range | None:
    """An end that is null is open. Raises TypeError or ValueError where it is something else than two ends, or null."""
    if found is None:
        return None
    check_kinds(name, found, [ends])
    low, high = found
    return -inf if low is None else low, inf if high is None else high


# Kinds of values. A file that was written by hand, or damaged, is refused by its name when it is read, and not by the
# picture or the table that meets the field first.

NUMBER = (int, float)
NO = type(None)
OTHERS = "*"  # of an object: the fields that are not named
_MOST = 2**63  # whole numbers are below it, as C's int64_t is; a float has room for each, rounded


class Whole(dict[str, Any]):
    """The kinds of an object's fields, all of which have to be there."""


class Columns(dict[str, Any]):
    """The kinds of an object's fields, of which those that are lists have one length."""


class Positive(tuple[type, ...]):
    """Types, whose numbers are above zero and whose texts are not empty."""


class OneOf(tuple[str, ...]):
    """The texts that there are."""


# A kind is a type, several types, the kinds of an object's fields, or in a list the kind of each entry; a list of
# several kinds has as many entries.
Kind = type | tuple[type, ...] | tuple[str, ...] | Mapping[str, Any] | list[Any]

_ROW: Mapping[str, Kind] = {
    **dict.fromkeys(("sweep", "rung", "dtype"), str),
    **dict.fromkeys(("n", "bytes"), int),
    "seconds": Positive((*NUMBER, NO)),
    **dict.fromkeys(("gbps", "limit_gbps", "fraction"), (*NUMBER, NO)),
    "checked": bool,
    "error": (str, NO),
    "params": {
        "parameters": {OTHERS: int},
        "stages": {OTHERS: NUMBER},
        **dict.fromkeys(("clock", "experiment", "form", "kernel", "load", "memory", "stage"), str),
        **dict.fromkeys(("block", "bytes_in_flight", "registers"), int),
        **dict.fromkeys(("model_seconds", "seconds_per_add", "waves"), NUMBER),
        **dict.fromkeys(("break_even", "launch_share", "link_fraction", "occupancy"), (*NUMBER, NO)),
        "grid": [int],
        "shape": [int],
        **dict.fromkeys(("capture", "destroy", "instantiate"), NUMBER),
        "ratio": Positive(NUMBER),
        "timeline": [[str, int, int, NUMBER, NUMBER]],  # as vecadd.bench.timeline.Step has them
    },
}

_META: Mapping[str, Kind] = {
    **dict.fromkeys(("date", "machine", "method"), str),
    **dict.fromkeys(("commit", "driver"), (str, NO)),
    **dict.fromkeys(("clocks", "versions"), dict),
    "failures": [str],
    "skipped": [str],
    "contamination": {
        **dict.fromkeys(("cpus", "load_average"), NUMBER),
        **dict.fromkeys(("gpu_processes", "ecc_errors"), (*NUMBER, NO)),
        "throttled": {OTHERS: (*NUMBER, NO)},
        "link_width": [{OTHERS: (int, NO)}],
    },
    "cpu": {"model": (str, NO), "simd": (str, NO), "simd_levels": [str], OTHERS: int},
    "gpu": [{"name": str, "compute_capability": str, "ecc": (bool, NO), OTHERS: (*NUMBER, NO)}],
    "limits": {
        "device": {OTHERS: NUMBER},
        "latency": {OTHERS: NUMBER},
        "launch": Columns({"bytes": [NUMBER], "fresh_node_seconds": [NUMBER], OTHERS: NUMBER}),
        "link": {OTHERS: NUMBER},
        "loaded": Columns({OTHERS: [NUMBER]}),
        OTHERS: dict,
    },
}


_CHECK = Whole(
    host=Positive((str,)),
    time=str,
    status=OneOf(STATUSES),
    machine_type=str,
    machine=dict,
    findings=[
        Whole(
            id=Positive((str,)),
            measurement=Positive((str,)),
            severity=OneOf(SEVERITIES),
            value=(*NUMBER, NO),
            unit=str,
        )
    ],
)


def check_kinds(name: str, value: Any, kind: Kind) -> None:
    """Raises TypeError, which names the field, where a value or one within it is of another kind. Fields that are not
    there are not looked for, but for those of a Whole."""
    if isinstance(kind, Mapping):
        check_kinds(name, value, dict)
        if isinstance(kind, Whole) and (missing := [field for field in kind if field not in value]):
            raise TypeError(f"{name} has no {', '.join(missing)}")
        lengths = {len(within) for within in value.values() if isinstance(within, list)}
        if isinstance(kind, Columns) and len(lengths) > 1:
            raise TypeError(f"{name} has lists of {' and '.join(map(str, sorted(lengths)))} entries")
        for field_name, within in value.items():
            if (known := kind.get(field_name, kind.get(OTHERS))) is not None:
                check_kinds(f"{name}.{field_name}", within, known)
    elif isinstance(kind, list):
        check_kinds(name, value, (list, tuple))  # a tuple in no file, but in what a process answers
        if len(kind) > 1 and len(value) != len(kind):
            raise TypeError(f"{name} has {len(value)} entries, not {len(kind)}")
        for place, entry in enumerate(value):
            check_kinds(f"{name}[{place}]", entry, kind[place % len(kind)])
    elif isinstance(kind, OneOf):
        if value not in kind:
            raise TypeError(f"{name} is {json.dumps(value)[:40]}, not one of {', '.join(kind)}")
    else:
        kinds: Any = kind if isinstance(kind, tuple) else (kind,)
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            called = [word for kind, word in _KIND_NAMES.items() if kind in kinds]
            raise TypeError(f"{name} is {json.dumps(value)[:40]}, not {' or '.join(called)}")
        if isinstance(value, int | float):
            if not abs(value) < (_MOST if isinstance(value, int) else inf):
                raise TypeError(f"{name} is {json.dumps(value)[:40]}, which is not a number in range")
            if isinstance(kind, Positive) and value <= 0:
                raise TypeError(f"{name} is {json.dumps(value)[:40]}, not above zero")
        elif isinstance(kind, Positive) and value == "":
            raise TypeError(f"{name} is empty")


_KIND_NAMES = {
    str: "a text",
    int: "a whole number",
    float: "another number",
    bool: "true or false",
    dict: "an object",
    list: "a list",
    NO: "null",
}

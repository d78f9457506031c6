"""A row, and the result file.

A result file is a JSON object. Each entry of a field that is an object stands on a line, and so does each object of a
field that is a list of objects: a row a line. Two recordings then differ by the rows that differ, and a line of `grep`
is a whole row.

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

`vecadd bench`, `vecadd profile` and the peers write "meta" and "rows" (`Row`); `vecadd check` and the fuzz program
write fields of their own in the same form.

"schema" is the version of what fields mean. It rises where a reader of the version before would misread a file; a new
field that may be ignored needs no new version.
"""

import json
import os
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from vecadd import _temporary
from vecadd._command import STDOUT, descriptor
from vecadd.bench import kinds
from vecadd.tables import show_size

SCHEMA = 1  # the version that is written; the only one that is read


@dataclass(frozen=True)
class Row:
    """One contestant at one dtype and size. Rates in GB/s (1e9 bytes a second) count every array once."""

    sweep: str
    rung: str
    dtype: str
    n: int
    params: dict[str, Any]
    seconds: float | None  # median; None where it failed
    spread: tuple[float, float] | None  # p10 and p90 of the seconds
    bytes: int
    gbps: float | None
    limit_gbps: float | None
    fraction: float | None  # of the limit; above 1 the method is wrong, not the rung fast
    checked: bool
    error: str | None = None

    @property
    def name(self) -> str:
        """The row's name in one line: "transfer pinned (pinned) float32 2^20"."""
        block = f" block {self.params.get('block')}" if self.sweep == "blocksize" else ""
        return f"{self.sweep} {self.label}{block} {self.dtype} {show_size(self.n)}"

    @property
    def label(self) -> str:
        """The rung, its parameters, and its memory or clock where the neighbouring rows have another."""
        notes = [f"{name} {self.params.get(name, value)}" for name, value in self.params.get("parameters", {}).items()]
        notes += [self.params[key] for key in ("memory", "clock") if self.params.get(key, self.rung) != self.rung]
        return f"{self.rung} ({', '.join(notes)})" if notes else self.rung

    @property
    def impossible(self) -> bool:
        """Whether the row is above its limit, which means that the method is wrong."""
        return self.fraction is not None and self.fraction > 1

    @property
    def ok(self) -> bool:
        """Whether the row neither failed nor is impossible."""
        return self.error is None and not self.impossible


def dated(meta: Mapping[str, Any]) -> str:
    """The day and the commit of a recording; the day alone where the commit is unknown."""
    commit = str(meta.get("commit") or "")
    changes = " with uncommitted changes" if commit.endswith("+") else ""  # see machine.commit
    return str(meta["date"])[:10] + (f", commit {commit.removesuffix('+')}{changes}" if commit else "")


def write(path: Path | str, meta: Mapping[str, Any], rows: Iterable[Row]) -> None:
    """Writes the result file of a bench, whole or not at all."""
    save(path, {"meta": meta, "rows": [asdict(row) for row in rows]})


def save(path: Path | str, content: Mapping[str, Any]) -> None:
    """Writes any result file, whole or not at all."""
    replace(path, as_text(content))


def as_text(content: Mapping[str, Any]) -> str:
    """The text of a result file: the schema's version and then these fields."""
    fields = {"schema": SCHEMA, **content}
    return _lines("{}", [f"{json.dumps(name)}: {_field(value)}" for name, value in fields.items()]) + "\n"


def _field(value: Any) -> str:
    if isinstance(value, Mapping) and value:
        return _lines("{}", [f"{json.dumps(name)}: {json.dumps(each)}" for name, each in value.items()], " ")
    if isinstance(value, list) and value and all(isinstance(each, Mapping) for each in value):
        return _lines("[]", [json.dumps(each) for each in value], " ")
    return json.dumps(value)


def _lines(brackets: str, lines: Iterable[str], indent: str = "") -> str:
    separator = f",\n{indent} "
    return f"{brackets[0]}\n{indent} {separator.join(lines)}\n{indent}{brackets[1]}"


def replace(path: Path | str, text: str) -> None:
    """Writes the file in one step: a reader finds the old one or the new one. The path "-" is standard output.

    A link stays a link: what it points to is replaced, and keeps its permissions. Pipes and devices are written to, not
    replaced, and so is what is open here (/dev/stdout), a file too.
    UTF-8 in every locale, as pages declare and Prometheus requires. A byte of a file's name that is no UTF-8 is written
    as an escape.
    """
    content = text.encode(errors="backslashreplace")
    try:
        if path == STDOUT:
            binary = getattr(sys.stdout, "buffer", None)
            if binary is None:  # of a notebook
                sys.stdout.write(content.decode())
            else:
                sys.stdout.flush()
                binary.write(content)
                binary.flush()
            return
        path = Path(path)
        if (opened := descriptor(path)) is not None:
            with suppress(AttributeError, ValueError):  # of a program that has none, or has closed it
                sys.stdout.flush()
            with os.fdopen(os.dup(opened), "wb") as stream:  # behind what was written there
                stream.write(content)
        elif path.exists() and not path.is_file():
            path.write_bytes(content)
        else:
            _temporary.replace(path.resolve(), content)
    except OSError as error:  # which may name the temporary, or nothing where a disk is full
        error.filename, error.filename2 = str(path), None
        raise


def load(path: Path | Traversable) -> dict[str, Any]:
    """The fields of any result file, without its schema's version.

    Raises ValueError for a file that is not a result file, or of a version that is not read.
    """
    return fields(path, parsed(path, text_of(path)))


def text_of(path: Path | Traversable) -> str:
    """The file's text. Raises ValueError, which names the file, where it has none, and OSError. A device is refused:
    /dev/zero has no end."""
    if isinstance(path, Path) and path.is_char_device():
        raise ValueError(f"{path} is not a result file: it is a device")
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not a result file: {error}") from error


def parsed(path: Path | Traversable, text: str) -> dict[str, Any]:
    """The object that is a result file's text. Raises ValueError, which names the file, where it holds none."""
    try:
        content = json.loads(text)
    except (RecursionError, ValueError) as error:
        raise ValueError(f"{path} is not a result file: {error}") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path} is not a result file: it holds no object")
    return content


def fields(path: Path | Traversable, content: Mapping[str, Any]) -> dict[str, Any]:
    """What `load` gives of a file that has been read."""
    if "schema" not in content:
        raise ValueError(f'{path} is not a result file: it has no "schema"')
    _check_schema(path, content["schema"])
    return {name: value for name, value in content.items() if name != "schema"}


def _check_schema(path: Path | Traversable, found: object) -> None:
    if type(found) is int and found == SCHEMA:
        return
    newer = type(found) is int and found > SCHEMA
    advice = "install the vecadd that wrote it, or a newer one" if newer else "measure again to replace it"
    raise ValueError(
        f"{path} is a result file of schema {json.dumps(found)}; this vecadd reads schema {SCHEMA}: {advice}"
    )


def read(path: Path | Traversable) -> tuple[dict[str, Any], list[Row]]:
    """The meta data and the rows of a bench's result file; raises ValueError for any other file."""
    return rows_of(path, parsed(path, text_of(path)))


def rows_of(path: Path | Traversable, content: Mapping[str, Any]) -> tuple[dict[str, Any], list[Row]]:
    """`read` of what has been read: a pipe can be read once."""
    content = fields(path, content)
    try:
        kinds.check("meta", content["meta"], kinds.META)
        kinds.check("rows", content["rows"], [kinds.ROW])
        rows = [Row(**{**row, "spread": _spread(row["spread"])}) for row in content["rows"]]
        return content["meta"], rows
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is not a result file: {error}") from error


def _spread(found: Any) -> tuple[float, float] | None:
    """Raises TypeError or ValueError where it is something else than two numbers, or null."""
    if found is None:
        return None
    kinds.check("spread", found, [kinds.NUMBER])
    low, high = found
    return low, high

"""The files of ``vecadd tune``: csrc/base/tuned_file.h says where they lie and what is in them."""

import math
import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from vecadd import _core
from vecadd.tune.part import TunedRow

_NAME = re.compile(r"[a-z0-9_]{1,31}")
_MOST_NUMBERS = 16
_MOST_BYTES = 64 << 10


def path(kind: str, key: str) -> Path:
    """Where that file lies, or would. Raises ValueError where there is no folder for it."""
    found = _core.tuned_path(kind, key)
    if found is None:
        raise ValueError(
            "there is no folder for what is tuned: set HOME, or VECADD_CACHE_DIR to one that can be written"
        )
    return Path(found)


def folder() -> Path:
    """Where all of them lie, or would. Raises ValueError where there is no folder for them."""
    return path("recipes", "any").parent


def prepare() -> Path:
    """The folder, made where it does not exist. Raises OSError where no file can be written into it, before a search
    rather than after it."""
    made = folder()
    made.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=made):  # without a name, where it can be: a kill leaves nothing
        return made


def copy(source: Path, into: Path) -> None:
    """Copies the files of one folder into another. What else lies there stays, and so do files that cannot be read."""
    for file in source.glob(f"*{path('recipes', 'any').suffix}"):
        with suppress(PermissionError):
            if file.is_file():
                shutil.copy(file, into)


def write(kind: str, key: str, rows: Sequence[TunedRow], into: Path | None = None) -> Path:
    """Writes the file in one step, to the disk: a reader finds the old one or the new one, whole. Returns its path.

    ``into`` is the folder that this process reads, unless another is named.
    Raises ValueError for rows that the reader would refuse, OSError where they cannot be written.
    """
    text = _text(key, rows)
    target = path(kind, key) if into is None else into / path(kind, key).name
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, temporary = _temporary(target.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
    return target


def read(kind: str, key: str) -> list[tuple[str, tuple[float, ...]]] | None:
    """The file's rows as an addition would read them; None where there is no valid file."""
    return _core.tuned_rows(kind, key)


def remove(kind: str, key: str) -> bool:
    """Removes the file; returns whether there was one. Raises OSError where it cannot be removed."""
    try:
        path(kind, key).unlink()
    except FileNotFoundError:
        return False
    return True


def _temporary(folder: Path) -> tuple[int, Path]:
    """In the file's own folder: a rename does not go from one file system to another."""
    descriptor, name = tempfile.mkstemp(dir=folder, prefix=".tuned.", suffix=".tmp")
    return descriptor, Path(name)


def _text(key: str, rows: Sequence[TunedRow]) -> str:
    lines = [f"vecadd {_core.TUNED_VERSION} {key}"]
    for name, numbers in rows:
        values = [float(number) for number in numbers]
        fits = _NAME.fullmatch(name) and name != "end" and 1 <= len(values) <= _MOST_NUMBERS
        if not fits or not all(math.isfinite(value) for value in values):
            raise ValueError(
                f"{name!r} with {values} is no row: a name of lower case, digits and _, and 1 to {_MOST_NUMBERS} "
                "finite numbers are"
            )
        lines.append(" ".join([name, *map(_shortest, values)]))
    lines.append(f"end {len(rows)}")
    text = "\n".join(lines) + "\n"
    if len(text.encode()) > _MOST_BYTES:
        raise ValueError(f"{len(rows)} rows take more than the {_MOST_BYTES} bytes that are read")
    return text


def _shortest(value: float) -> str:
    """Whole numbers without a point; any other in the fewest digits that read back as the same number."""
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)

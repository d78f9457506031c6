"""The JSON files that a command is given: files, and folders with all that lies in them."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from vecadd._command import UnaskableError
from vecadd.figures import load_text, parse_json

# The schemas of what is found in measurements, and what writes it.
FLEET, COMPARISON = "vecadd-fleet", "vecadd-compare"
VERDICTS = {FLEET: "vecadd fleet", COMPARISON: "vecadd compare"}


def listed(paths: Iterable[Path]) -> Iterator[Path]:
    """The files, and the ``*.json`` of each folder and of those within it, by name. Pipes in folders are left out: to
    read one waits for its writer. Raises UnaskableError for what is not there and for a folder without any."""
    for path in paths:
        if path.is_dir():
            found = sorted(each for each in path.rglob("*.json") if not each.is_fifo())
            if not found:
                raise UnaskableError(f"{path} has no file *.json in it")
            yield from found
        elif path.exists():
            yield path
        else:
            raise UnaskableError(f"{path}: no such file or folder")


def content(path: Path) -> dict[str, Any]:
    """The object of a JSON file. Raises ValueError, which names the file, where it holds none or cannot be read."""
    try:
        return parse_json(path, load_text(path))
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from error

"""The source of a rung: its part of a file, and what defines its kernel where that is elsewhere."""

import re
from functools import cache
from typing import Any

from vecadd import _carried
from vecadd.code import kernels
from vecadd.code.text import Code

WITH_KERNELS = ("device", "latency", "matrix")  # kinds of rungs that have kernels of their own

# A family of rungs shares a file: each rung's part begins with the comment "// NAME: what it is" and ends with its row.
PART = re.compile(
    r'^// \w+: (?:.*\n)+?(?:extern "C" |static )?const struct rung \w+ = \{\n(?:.*\n)+?\};\n', re.MULTILINE
)


def source(rung: dict[str, Any]) -> Code:
    """The rung's part, and below it, under a line of its file's name, what defines its kernel."""
    pieces = _pieces()
    found = [next((path, text) for path, text in pieces if f'.name = "{rung["name"]}",' in text)]
    if rung["kind"] in WITH_KERNELS:
        kernel = re.compile(rf"__global__[^;{{]*\b{kernels.function(rung['name'])}\(")
        found += [piece for piece in pieces if kernel.search(piece[1]) and piece not in found]
    (first, text), *others = found
    text += "".join(f"\n// {path}\n\n{other}" for path, other in others)
    language = "c" if first.endswith(".c") and not others else "cuda"
    return Code(text, language, ", ".join(dict.fromkeys(path for path, _ in found)))


@cache
def _pieces() -> tuple[tuple[str, str], ...]:
    """(path, text) of the parts of all files, and of what is between them."""
    return tuple((path, piece) for path, text in _carried.sources().items() for piece in _pieces_of(text))


def _pieces_of(text: str) -> list[str]:
    pieces, at = [], 0
    for part in PART.finditer(text):
        pieces += [text[at : part.start()].strip("\n") + "\n", part[0]]
        at = part.end()
    return [*pieces, text[at:].strip("\n") + "\n"]

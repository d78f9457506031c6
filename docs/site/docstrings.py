"""Makes reStructuredText of docstrings: plain text with code in backticks, doctests and indented tables."""

import re
from itertools import groupby
from textwrap import dedent
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

CODE = re.compile(r"(``.+?``|`[^`]+`)")
NAME = re.compile(r"`vecadd(\.\w+)+`")


def convert(lines: list[str]) -> list[str]:
    """Code in backticks becomes a link where it is a name of the package, else a literal; an indented paragraph becomes
    a literal block; in all else, what reStructuredText would read as markup loses that meaning."""
    result: list[str] = []
    for empty, paragraph in groupby(lines, key=lambda line: not line.strip()):
        result += [""] if empty else _paragraph("\n".join(paragraph)).split("\n")
    return result


def _paragraph(text: str) -> str:
    if text.lstrip().startswith(">>>"):
        return dedent(text)
    if all(line.startswith(" ") for line in text.split("\n")):
        return f"::\n\n{text}"
    return "".join(map(_inline, CODE.split(text)))


def _inline(part: str) -> str:
    if part.startswith("`"):
        return part if part.startswith("``") or NAME.fullmatch(part) else f"`{part}`"
    return re.sub(r"([*|]|_(?=_*(?:\W|$)))", r"\\\1", part)


def process(app: "Sphinx", what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Called for each docstring."""
    lines[:] = convert(lines)


def setup(app: "Sphinx") -> dict[str, Any]:
    """Sphinx calls it."""
    app.connect("autodoc-process-docstring", process)
    return {"parallel_read_safe": True}

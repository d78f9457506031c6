"""The source of a rung: its part of a file, and what defines its kernel and what it runs where that is elsewhere."""

import re
from functools import cache
from typing import Any

from vecadd import _carried
from vecadd.code import kernels
from vecadd.code.text import Code

WITH_KERNELS = ("device", "latency", "matrix")  # kinds of rungs that have kernels of their own

# A family of rungs shares a file. A rung's part ends with its row; it begins with the comment "// NAME: what it is",
# or, where there is nothing to say that the row does not say, with the row.
ROW = r'(?:extern "C" |static )?const struct rung \w+ = \{\n(?:.*\n)+?\};\n'
PART = re.compile(rf"^(?:// \w+: (?:.*\n)+?)??{ROW}", re.MULTILINE)
RUN = re.compile(r"\.run = (\w+),")


def source(rung: dict[str, Any]) -> Code:
    """The rung's part, and below it, each under a line of its file's name, what defines the function that it runs and
    its kernel, and what it uses of what its file shares between rungs."""
    pieces = _pieces()
    found = [next((path, text) for path, text in pieces if f'.name = "{rung["name"]}",' in text)]
    wanted = [rf"^{run}\(" for run in RUN.findall(found[0][1])]
    if rung["kind"] in WITH_KERNELS:
        wanted.append(rf"__global__[^;{{]*\b{kernels.function(rung['name'])}\(")
    for definition in wanted:
        found += [piece for piece in pieces if re.search(definition, piece[1], re.MULTILINE) and piece not in found]
    if shared := _used_of_file(found):
        found.append((found[0][0], shared))
    text = found[0][1] + "".join(f"\n// {path}\n\n{other}" for path, other in found[1:])
    language = "c" if all(path.endswith(".c") for path, _ in found) else "cuda"
    return Code(text, language, ", ".join(dict.fromkeys(path for path, _ in found)))


def _used_of_file(found: list[tuple[str, str]]) -> str:
    """What the pieces use of the file of the first one, between the parts of its rungs: what is not in them already."""
    file = found[0][0]
    between = [text for path, text in _pieces() if path == file and not re.search(ROW, text)]
    there = [each for text in between for each in re.split(r"\n\n+(?=\S)", text.strip("\n"))]
    used = "".join(text for path, text in found if path == file)
    chosen: set[str] = set()
    while more := {each for each in there if each not in used and _defined(each) & set(re.findall(r"\w+", used))}:
        chosen |= more
        used += "\n".join(more)
    return "".join(f"{each}\n\n" for each in there if each in chosen).removesuffix("\n")


def _defined(text: str) -> set[str]:
    """The functions and constants that this defines."""
    names = re.findall(r"^(\w+)\(", text, re.MULTILINE) + re.findall(r"^constexpr \w+ (\w+)", text, re.MULTILINE)
    for constants in re.findall(r"^enum \{(.*?)\}", text, re.MULTILINE | re.DOTALL):
        names += re.findall(r"\b([A-Z]\w+) =", constants)
    return set(names)


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

"""The sources of a rung: the file that holds its row, and the one that defines its kernel where that is another."""

import re
from functools import cache
from typing import Any

from vecadd import _carried
from vecadd.code import kernels
from vecadd.code.text import Code

WITH_KERNELS = ("device", "latency", "matrix")  # kinds of rungs that have kernels of their own


def source(rung: dict[str, Any]) -> Code:
    """The rung's files, one below the other: the second and later ones each begin with a line of their name."""
    files = _files()
    found = [next(path for path, text in files.items() if f'.name = "{rung["name"]}",' in text)]
    if rung["kind"] in WITH_KERNELS:
        kernel = re.compile(rf"__global__[^;{{]*\b{kernels.function(rung['name'])}\(")
        found += [path for path, text in files.items() if kernel.search(text) and path not in found]
    first, *others = found
    text = files[first] + "".join(f"\n// {path}\n\n{files[path]}" for path in others)
    return Code(text, "c" if first.endswith(".c") and not others else "cuda", ", ".join(found))


@cache
def _files() -> dict[str, str]:
    return _carried.sources()

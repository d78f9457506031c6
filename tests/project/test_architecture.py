"""The shape of the tree: a file may know only folders below its own, and no circle of files is left.

The arrows are read off the sources (includes and imports) and off the compiled objects (which file uses a symbol that
another defines), so that a call cannot point up where no include does.
"""

import re
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from imports import ROOT, imported, modules

pytestmark = pytest.mark.no_native

# From the ground up: a file may include, and call, what is in its own folder or in one before it.
FLOORS = (
    "csrc/base",
    "csrc/host",
    "csrc/files",
    "cuda",
    "csrc/gpu",
    "csrc/transfer",
    "csrc/choose",
    "csrc/lab/base",
    "cuda/lab",
    "csrc/lab/host",
    "csrc/lab/limits",
    "csrc/lab/ladder",
    "csrc/lab",
    "csrc/py/base",
    "csrc/py/operands",
    "csrc/py/calls",
    "csrc/py/array",
    "csrc/py/files",
    "csrc/py/install",
    "csrc/py/receipt",
    "csrc/py/lab",
    "csrc/py",
)
# Headers of tests/double, for the kernels that the tests compile for the CPU.
OF_THE_DOUBLE = ("kernel_on_cpu.h", "tensor_map.h")

Arrows = dict[str, set[str]]


def native_sources() -> list[str]:
    found = (path for folder in ("csrc", "cuda") for path in (ROOT / folder).rglob("*.*"))
    return sorted(str(path.relative_to(ROOT)) for path in found if path.suffix in (".c", ".h", ".cu", ".cuh"))


def idea(path: str) -> str:
    """A source and its header are one."""
    return path.rpartition(".")[0]


def floor(name: str) -> int:
    return FLOORS.index(str(Path(name).parent))


@cache
def includes() -> Arrows:
    arrows = defaultdict(set)
    for path in native_sources():
        for name in re.findall(r'^ *# *include "([^"]+)"', (ROOT / path).read_text(), re.MULTILINE):
            if name not in OF_THE_DOUBLE:
                arrows[idea(path)].add(idea(name if name.startswith("cuda/") else f"csrc/{name}"))
    return arrows


@cache
def calls() -> Arrows:
    """Which file uses a symbol of which: by nm, from the objects that make the extension."""
    objects = ROOT / "build" / "release" / "obj"
    built = [path for path in native_sources() if (objects / f"{path}.o").exists()]
    if not built or not shutil.which("nm"):
        pytest.skip("no objects here: python -m build_native extension")
    defined, used = {}, defaultdict(set)
    for path in built:
        listing = subprocess.run(["nm", objects / f"{path}.o"], capture_output=True, text=True, check=True).stdout
        for line in listing.splitlines():
            kind, name = line.split()[-2:]
            if kind in "TDBRCVW":
                defined[name] = idea(path)
            elif kind == "U":
                used[idea(path)].add(name)
    return {path: {defined[name] for name in names if name in defined} for path, names in used.items()}


def arrows_of(arrows: Arrows) -> Iterator[tuple[str, str]]:
    return ((source, target) for source in sorted(arrows) for target in sorted(arrows[source]) if source != target)


def both() -> Arrows:
    merged = defaultdict(set)
    for source, target in (*arrows_of(includes()), *arrows_of(calls())):
        merged[source].add(target)
    return merged


def circle(arrows: Arrows) -> list[str]:
    """A circle of files, the first one found, from its beginning back to it; an empty list where there is none."""
    try:
        TopologicalSorter(arrows).prepare()
    except CycleError as error:
        return list(reversed(error.args[1]))
    return []


def upward(arrows: Arrows) -> list[str]:
    return [f"{source} -> {target}" for source, target in arrows_of(arrows) if floor(target) > floor(source)]


def test_every_folder_has_a_floor() -> None:
    assert {str(Path(path).parent) for path in native_sources()} == set(FLOORS)


def test_an_include_names_its_folder() -> None:
    known = set(native_sources())
    named = {target for _, target in arrows_of(includes())}
    assert named <= {idea(path) for path in known}


def test_no_file_includes_itself() -> None:
    for path in native_sources():
        assert f'#include "{path.removeprefix("csrc/")}"' not in (ROOT / path).read_text(), path


def test_no_include_points_up() -> None:
    assert upward(includes()) == []


def test_no_call_points_up() -> None:
    assert upward(calls()) == []


def test_there_is_no_circle_of_files() -> None:
    assert circle(both()) == []


# --- Python


def imports(package: str) -> Arrows:
    known = modules(package)
    return {name: set(imported(path, known)) - {name} for name, path in known.items()}


@pytest.mark.parametrize("package", ["vecadd", "benchmarks", "build_native"])
def test_there_is_no_circle_of_modules(package: str) -> None:
    assert circle(imports(package)) == []

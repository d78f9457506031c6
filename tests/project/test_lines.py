"""One idea a file: no file of the sources, the build or the tests is longer than 500 lines."""

from pathlib import Path

import pytest

pytestmark = pytest.mark.no_native

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = (".ci", "benchmarks", "build_native", "csrc", "cuda", "tests", "vecadd")
KINDS = {".c", ".cpp", ".cu", ".cuh", ".h", ".py", ".pyi", ""}  # what is recorded or drawn is not read by the line
MOST = 500


def lines() -> dict[str, int]:
    paths = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*")]
    paths += [path for path in ROOT.iterdir() if path.suffix in KINDS]
    return {
        str(path.relative_to(ROOT)): path.read_text().count("\n")
        for path in paths
        if path.suffix in KINDS and path.is_file()
    }


def test_no_file_is_longer_than_500_lines() -> None:
    found = lines()
    assert {"Makefile", ".ci/run", "csrc/host/threads.c", "tests/project/test_lines.py"} <= found.keys()
    assert {path: count for path, count in found.items() if count > MOST} == {}

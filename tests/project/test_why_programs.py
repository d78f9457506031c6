"""The programs of examples/why: the reason that each names shows in it, and no more in its mended version.

What was counted decides here; whether the predictions are right is timed by `python -m benchmarks.why`.
"""

import importlib
import re
from math import prod
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import vecadd
from benchmarks.why import PROGRAMS, Program, prediction
from vecadd.why import diagnosis, recording
from vecadd.why.layout import Layout
from vecadd.why.recording import AdditionGroup

pytestmark = pytest.mark.no_native

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "why-programs.md").read_text()
NAMES = sorted(program.name for program in PROGRAMS)


@pytest.fixture(autouse=True)
def two_threads() -> Any:
    before = vecadd.set_num_threads(2)
    yield
    vecadd.set_num_threads(before)


def program(name: str) -> Program:
    return next(program for program in PROGRAMS if program.name == name)


def module(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    if name == "pandas_column":  # pandas adds large columns by numexpr, where it is there, past numpy.add
        pytest.importorskip("pandas").set_option("compute.use_numexpr", False)
    monkeypatch.syspath_prepend(ROOT / "examples" / "why")
    return importlib.import_module(name)


def longest(found: list[AdditionGroup]) -> AdditionGroup:
    return max(found, key=lambda group: group.nbytes)


def shows(name: str, group: AdditionGroup) -> bool:
    (reason,) = (reason for reason in diagnosis.REASONS if reason.name == program(name).reason)
    return reason.find_evidence(group) is not None


def test_every_program_is_in_the_table_and_says_its_reason() -> None:
    files = {path.stem: path.read_text() for path in (ROOT / "examples" / "why").glob("*.py")}
    said = {name: re.search(r"^reason  (.*)$", text, re.MULTILINE) for name, text in files.items()}
    assert {name: found and found[1] for name, found in said.items()} == {each.name: each.reason for each in PROGRAMS}


@pytest.mark.parametrize("name", NAMES)
def test_the_document_has_a_section_of_each_with_its_lines(name: str) -> None:
    source = (ROOT / "examples" / "why" / f"{name}.py").read_text()
    section = re.search(
        rf"^## [^\n]*\n\n\[`{name}.py`\][^\n]*\*{program(name).reason}\*.*?(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL
    )
    assert section
    (code,) = re.findall(r"^```\n(.*?)^```", section[0], re.MULTILINE | re.DOTALL)
    lines = [line.partition("#")[0].strip() for line in code.splitlines()]
    assert [line for line in lines if line and line not in map(str.strip, source.splitlines())] == []


@pytest.mark.parametrize("name", [name for name in NAMES if program(name).reason != diagnosis.CACHE])
def test_the_reason_shows_in_the_slow_version_alone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    code = module(name, monkeypatch)
    recording.start()
    code.slow(3)
    slow = longest(recording.stop().groups)
    recording.start()
    code.mended(3)
    mended = longest(recording.stop().groups)
    assert Path(slow.line.file).name == f"{name}.py"
    assert isinstance(slow.out, Layout)
    assert (prod(slow.out.shape), str(slow.out.dtype)) == (program(name).n, program(name).dtype)
    assert shows(name, slow)
    assert not shows(name, mended)


def test_the_same_additions_are_made_in_another_order_where_the_cache_is_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    code = module("ensemble", monkeypatch)
    counts = []
    for version in (code.slow, code.mended):
        recording.start()
        version(2)
        counts.append([(group.calls, group.nbytes) for group in recording.stop().groups])
    assert counts == [[(2 * code.MODELS, 2 * code.MODELS * 3 * 8 * code.N)]] * 2


def test_a_prediction_is_that_of_the_programs_reason() -> None:
    changes = [
        {"reason": "one thread", "gain": 3.0, "change": "install", "saved_seconds": 2.0},
        {"reason": "short rows", "gain": 2.5, "change": "turn", "saved_seconds": 1.5},
    ]
    longest = {"seconds": 3.0, "bytes": 40, "changes": changes, "reason": "one thread"}
    slow = {"lines": [longest, {"seconds": 1.0, "bytes": 2, "changes": []}]}
    mended = {"lines": [{"seconds": 1.5}, {"seconds": 0.5}]}
    found = prediction("short rows", slow, mended)
    assert found == {
        "predicted": 2.5, "measured": 2.0, "seconds": 4.0, "bytes": 42, "mended_seconds": 2.0, "first": False,
    }  # fmt: skip
    assert prediction("a cast in pieces", slow, mended)["predicted"] is None

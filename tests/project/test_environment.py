"""The document has every environment variable that vecadd and its build read; info shows those of the former."""

import re
from pathlib import Path

import pytest

import vecadd
from vecadd import _machine

pytestmark = pytest.mark.no_native

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("csrc", "cuda", "vecadd", "benchmarks", "build_native", "setup.py", "build_backend.py")
NAME = re.compile(r"\bVECADD_[A-Z0-9_]+\b")
MACRO = re.compile(r"#\s*(?:define|ifn?def)\s+(VECADD_\w+)|-D(VECADD_\w+)")
DOCUMENTED = re.findall(r"^\| `(VECADD_\w+)` \| (.*) \|$", (ROOT / "docs" / "install.md").read_text(), re.MULTILINE)


def sources() -> list[str]:
    places = [ROOT / name for name in SOURCES]
    paths = [path for place in places for path in ([place] if place.is_file() else place.rglob("*"))]
    return [path.read_text() for path in paths if path.suffix in {".c", ".h", ".cu", ".cuh", ".py", ".pyi"}]


def test_every_name_in_the_sources_is_documented_or_is_a_macro() -> None:
    texts = sources()
    macros = {name for text in texts for pair in MACRO.findall(text) for name in pair}
    names = {name for text in texts for name in NAME.findall(text)}
    assert names - macros - dict(DOCUMENTED).keys() == set()


@pytest.mark.parametrize("name", dict(DOCUMENTED))
def test_every_documented_name_is_read(name: str) -> None:
    table = (ROOT / "vecadd" / "_machine.py").read_text()
    assert any(f'"{name}"' in text for text in sources() if text != table), "only the table and the document have it"


def test_the_document_says_first_what_info_says() -> None:
    shown = [(variable.name, variable.meaning) for variable in _machine.RUNNING]
    assert DOCUMENTED[: len(shown)] == shown


def test_info_shows_what_is_set_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VECADD_RECORDED", "1")
    monkeypatch.delenv("VECADD_POOL_BYTES", raising=False)
    found = vecadd.info()
    values = {variable.name: variable.value for variable in found.environment}
    assert list(values) == [variable.name for variable in _machine.RUNNING]
    assert (values["VECADD_RECORDED"], values["VECADD_POOL_BYTES"]) == ("1", None)
    assert "VECADD_RECORDED = 1: with 1 the notebooks show" in str(found)
    assert "VECADD_POOL_BYTES (not set): bytes kept" in str(found)
    assert found.as_dict()["environment"][-1]["name"] == "VECADD_RECORDED"

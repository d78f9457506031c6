"""Renamed public names: the old one works for a release, with a warning that says the new one."""

import subprocess
import sys
import tomllib
import warnings
from pathlib import Path

import pytest
from conftest import child_environment

import vecadd
from vecadd._deprecated import RENAMED, Renamed

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]

# In a process of its own: `from vecadd import` looks for a submodule first, and modules that are imported stay so.
pytestmark = pytest.mark.no_native

IMPORTS = """
import sys, warnings
from vecadd._deprecated import RENAMED, Renamed
RENAMED["sum_of"] = Renamed("add", "0.2", "0.3")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("default")
    from vecadd import sum_of
import vecadd
print(sum_of is vecadd.add, [str(warning.message) for warning in caught], {warning.filename for warning in caught})
"""


@pytest.fixture
def renamed(monkeypatch: pytest.MonkeyPatch) -> None:
    """For one test `sum_of` is an old name of `add`, and `rungs` one of a submodule's attribute."""
    monkeypatch.setitem(RENAMED, "sum_of", Renamed("add", "0.2", "0.3"))
    monkeypatch.setitem(RENAMED, "rungs", Renamed("ladder.names", "0.2", "0.3"))


@pytest.mark.usefixtures("renamed")
def test_an_old_name_gives_the_new_ones_object_and_a_warning_in_the_callers_file() -> None:
    with pytest.warns(DeprecationWarning, match="sum_of") as caught:
        assert vecadd.sum_of is vecadd.add
    (warning,) = caught
    assert str(warning.message) == "vecadd.sum_of is called vecadd.add since vecadd 0.2; the old name goes in 0.3"
    assert warning.filename == __file__


@pytest.mark.usefixtures("renamed")
def test_an_old_name_may_stand_for_what_lies_in_a_submodule() -> None:
    with pytest.warns(DeprecationWarning, match=r"is called vecadd\.ladder\.names"):
        assert vecadd.rungs is vecadd.ladder.names


@pytest.mark.usefixtures("renamed")
def test_an_old_name_is_not_listed() -> None:
    assert "sum_of" not in dir(vecadd)
    assert "sum_of" not in vecadd.__all__


def test_an_old_name_can_be_imported_and_warns_once_there() -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS], env=child_environment(), capture_output=True, text=True, check=True
    )
    text = "vecadd.sum_of is called vecadd.add since vecadd 0.2; the old name goes in 0.3"
    assert done.stdout.strip() == f"True {[text]} {{'<string>'}}"


def test_a_name_that_never_was_is_an_attribute_error_without_a_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(AttributeError, match="no attribute 'sum_of'"):
            _ = vecadd.sum_of


def version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


def overdue(renamed: dict[str, Renamed], now: str) -> list[str]:
    """Entries whose release has come, or that were not kept for a release."""
    return [
        old
        for old, entry in renamed.items()
        if not version(entry.since) < version(entry.goes_in) or version(entry.goes_in) <= version(now)
    ]


def test_no_entry_of_the_table_is_overdue() -> None:
    assert overdue(RENAMED, PROJECT["version"]) == []


def test_overdue_entries_are_found() -> None:
    entries = {
        "kept": Renamed("add", "0.2", "0.3"),
        "gone": Renamed("add", "0.1", "0.2"),
        "at_once": Renamed("add", "0.3", "0.3"),
    }
    assert overdue(entries, "0.2.0") == ["gone", "at_once"]


def test_every_entry_of_the_table_leads_to_something_and_is_public_no_more() -> None:
    for old in RENAMED:
        assert old not in vecadd.__all__
        with pytest.warns(DeprecationWarning, match=old):
            getattr(vecadd, old)

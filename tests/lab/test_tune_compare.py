"""vecadd tune says what its files change: additions by one folder of them against additions by another."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import child_environment

from vecadd.tune import compare

pytestmark = pytest.mark.no_native


@pytest.mark.parametrize(
    ("ratios", "sentences", "gains"),
    [
        ({"at 2 MiB": [1.3, 1.31, 1.29]}, ["add is 1.30 x faster at 2 MiB than before"], True),
        ({"at 2 MiB": [0.5, 0.5, 0.5]}, ["add is 2.00 x slower at 2 MiB than before"], False),
        ({"at 2 MiB": [1.02, 1.01, 1.02]}, ["nothing changed: add is as fast as before at 2 MiB"], False),
        ({"at 2 MiB": [0.7, 1.3, 1.4, 0.8, 1.2]}, ["nothing changed: add is as fast as before at 2 MiB"], False),
        ({"at 2 MiB": [0.7, 0.75, 0.8, 1.2, 1.3]}, ["nothing changed: add is as fast as before at 2 MiB"], False),
        (
            {"at 1 MiB": [1.5] * 4, "at 2 MiB": [1.0] * 4, "at 4 MiB": [1.1] * 4},
            ["add is 1.50 x faster at 1 MiB, 1.10 x faster at 4 MiB than before"],
            True,
        ),
        (
            {"at 1 MiB": [1.5] * 4, "at 8 MiB": [0.8] * 4},
            ["add is 1.50 x faster at 1 MiB than before", "add is 1.25 x slower at 8 MiB than before"],
            False,
        ),
    ],
    ids=["faster", "slower", "noise", "no agreement", "none on a loss", "several", "both"],
)
def test_what_the_ratios_say(ratios: dict[str, list[float]], sentences: list[str], gains: bool) -> None:
    assert list(compare.sentences(ratios, "before")) == sentences
    assert compare.gains(ratios) is gains


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch) -> None:
    """Child processes that add on the double where the test does."""
    monkeypatch.setenv("PYTHONPATH", child_environment()["PYTHONPATH"])
    monkeypatch.setattr(compare, "PAIRS", 1)
    monkeypatch.setattr(compare, "ROUNDS", 3)


def test_both_folders_are_measured_by_processes_of_their_own(children: None, tmp_path: Path) -> None:
    told: list[str] = []
    ratios = compare.ratios("host", tmp_path / "before", tmp_path / "after", told.append)
    assert told == [f"what has changed, {turn} of 3" for turn in (1, 2, 3)]
    assert len(ratios) == len(compare.SIZES) + len(compare.PAUSED)
    assert all(len(rounds) == 3 and min(rounds) > 0 for rounds in ratios.values())


def test_a_child_goes_by_its_folder(children: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VECADD_CACHE_DIR", str(tmp_path / "mine"))
    with compare._Child("host", tmp_path / "other") as child:
        environ = Path(f"/proc/{child._process.pid}/environ").read_bytes()
        assert child.seconds(child.cases[0]) > 0
    assert f"VECADD_CACHE_DIR={tmp_path / 'other'}".encode() in environ.split(b"\0")


@pytest.mark.parametrize(("part", "count"), [("device", 2), ("routes", 4)])
def test_the_parts_of_a_gpu_have_cases_too(part: str, count: int, double: object, child: Callable[..., Any]) -> None:
    code = (
        "from vecadd.tune import compare\n"
        "compare.SIZES = (compare.MIB // 16, compare.MIB)\n"
        f"cases = compare._cases({part!r})\n"
        "print(len(cases), all(case() > 0 for case in cases.values()))\n"
    )
    assert child(code).stdout == f"{count} True\n"


def test_a_child_that_fails_is_an_error(children: None, tmp_path: Path) -> None:
    with compare._Child("host", tmp_path) as child, pytest.raises(RuntimeError, match="ended with status"):
        child.seconds("no such case")


def test_a_child_that_ends_between_two_questions_is_an_error(children: None, tmp_path: Path) -> None:
    with compare._Child("host", tmp_path) as child:
        child._process.kill()
        child._process.wait()
        with pytest.raises(RuntimeError, match="ended with status -9"):
            child.seconds(child.cases[0])

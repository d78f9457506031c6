"""python -m tests.mutants (make mutants): what it takes out is still in its file, and the tests that it names exist."""

from pathlib import Path

import pytest

from tests.mutants import __main__ as mutants
from tests.mutants.mutant import ROOT, Mutant
from tests.mutants.table import MUTANTS
from vecadd import _core

pytestmark = pytest.mark.no_native


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_each_mutant_applies_and_its_test_is_there(mutant: Mutant) -> None:
    assert mutant.applied_to(ROOT) != (ROOT / mutant.path).read_text()
    (test,) = ROOT.glob(mutant.test if mutant.test.endswith(".py") else f"tests/c/**/{mutant.test}.c")
    assert mutant.only in test.read_text()


def test_a_text_that_is_gone_is_said() -> None:
    with pytest.raises(ValueError, match="0 times, not once"):
        Mutant("gone", "cuda/add.cu", "no such text", "", "tests/device/test_l2.py").applied_to(ROOT)


def test_a_mutants_tree_has_the_sources_and_what_is_built_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, left_out = ["csrc/gpu/a.c", "build/release/obj/a.o"], ["build/gpu/a.log", "build/asan/a.o", ".venv/a"]
    for name in kept + left_out:
        path = tmp_path / "root" / name
        path.parent.mkdir(parents=True)
        path.touch()
    monkeypatch.setattr(mutants, "ROOT", tmp_path / "root")
    tree = mutants._copy(tmp_path / "tree")
    assert sorted(str(path.relative_to(tree)) for path in tree.rglob("*.*")) == sorted(kept)


def test_a_mutant_that_the_processor_cannot_run_is_not_run(tmp_path: Path) -> None:
    mutant = Mutant("a level", "a.c", "there", "gone", "test_a", level="avx9")
    assert mutants._verdict(mutant, tmp_path) == "not run here: the processor has no avx9"


@pytest.mark.parametrize("level", _core.host_facts()["simd_levels"])
def test_a_mutant_that_it_can_run_is_applied(level: str, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"a\.c"):
        mutants._verdict(Mutant("a level", "a.c", "there", "gone", "test_a", level=level), tmp_path)

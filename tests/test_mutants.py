"""python -m tests.mutants (make mutants): what it takes out still stands where it looks, and the tests it names are."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.mutants.mutant import Mutant  # noqa: E402  the folder of the tests is no package of vecadd's
from tests.mutants.table import MUTANTS  # noqa: E402

pytestmark = pytest.mark.no_native


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_each_mutant_applies_and_its_test_is_there(mutant: Mutant) -> None:
    assert mutant.applied_to(ROOT) != (ROOT / mutant.path).read_text()
    (test,) = ROOT.glob(mutant.test if mutant.test.endswith(".py") else f"tests/c/**/{mutant.test}.c")
    assert mutant.only in test.read_text()


def test_a_text_that_is_gone_is_said() -> None:
    with pytest.raises(ValueError, match="stands 0 times"):
        Mutant("gone", "cuda/add.cu", "no such text", "", "tests/test_l2.py").applied_to(ROOT)

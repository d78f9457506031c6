"""python -m tests.mutants (make mutants): what it takes out is still in its file, and the tests that it names exist."""

import pytest

from tests.mutants.mutant import ROOT, Mutant
from tests.mutants.table import MUTANTS

pytestmark = pytest.mark.no_native


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_each_mutant_applies_and_its_test_is_there(mutant: Mutant) -> None:
    assert mutant.applied_to(ROOT) != (ROOT / mutant.path).read_text()
    (test,) = ROOT.glob(mutant.test if mutant.test.endswith(".py") else f"tests/c/**/{mutant.test}.c")
    assert mutant.only in test.read_text()

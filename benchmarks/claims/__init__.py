"""The claims of the founding documents, a row each; benchmarks.tables.ledger sets them beside what is recorded."""

from collections.abc import Mapping

from benchmarks.claims import (
    document_000,
    document_001,
    document_002,
    document_003,
    document_004,
    document_004_matrices,
)
from benchmarks.claims.claim import Claim

MACHINE = "h200"  # whose rows decide: the sentences speak of its GPU

# By the file that holds them, which shows what is worked out of a document's digits alone.
CLAIMS: Mapping[str, tuple[Claim, ...]] = {
    module.__name__.rpartition(".")[2]: module.CLAIMS
    for module in (document_000, document_001, document_002, document_003, document_004, document_004_matrices)
}

"""A claim of a founding document, and its verdict by what is recorded."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from benchmarks.claims.quantities import Between, Is, NotRecordedError, Quantity, Recorded
from vecadd.bench.results import Row


class Verdict(Enum):
    """What a claim turned out to be."""

    HOLDS = "holds"
    ON_ITS_CARD = "holds on its card"
    REFUTED = "refuted"
    SLIP = "the document's slip"
    OPEN = "open"


@dataclass(frozen=True)
class Claim:
    """One claim: what the document says, its figure, and what decides it.

    The claim holds where ``ours`` keeps the ``rule``; else it is ``otherwise``. ``why`` explains that it holds,
    ``why_not`` that it does not: a new recording that turns the verdict needs the other sentence.
    """

    says: str
    theirs: str
    ours: Quantity[Any]
    rule: Between | Is
    why: str = ""
    why_not: str = ""
    otherwise: Verdict = Verdict.REFUTED


@dataclass(frozen=True)
class Judged:
    """A claim, its verdict, our figure and the sentence for it, and the sweeps whose rows decided."""

    claim: Claim
    verdict: Verdict
    ours: str
    why: str
    sweeps: tuple[str, ...]


def judge(claim: Claim, rows: Iterable[Row]) -> Judged:
    """The verdict by these rows; OPEN where they lack one that the claim needs."""
    recorded = Recorded(rows)
    try:
        value = claim.ours.of(recorded)
    except NotRecordedError as missing:
        message = str(missing).rstrip(".")
        return Judged(claim, Verdict.OPEN, "-", f"{message[:1].upper()}{message[1:]}.", ())
    holds = claim.rule(value)
    return Judged(
        claim,
        Verdict.HOLDS if holds else claim.otherwise,
        claim.ours.show(value),
        claim.why if holds else claim.why_not,
        tuple(recorded.asked),
    )

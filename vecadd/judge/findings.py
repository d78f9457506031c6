"""What a contestant can be found to do wrong: each kind by its name, and which of them an answer of the child shows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# In words for the documents and the tables; docs/judge.md has the same list.
KINDS: Mapping[str, str] = {
    "wrong sum": "an element of out is not the sum",
    "nothing written": "out holds what it held before the call",
    "read too early": "the sum of what a and b held before they were ready: another stream than the current one",
    "kept result": "the sum of the call before: a and b have changed since",
    "side stream": "the sum comes, but on a stream that nothing orders before what is queued behind the call",
    "returned early": "work goes on after the call has returned, or after the events that time it",
    "writes outside": "memory in front of, between or behind the arrays has changed",
    "changes operands": "a or b has changed",
    "knows the sizes": "right at the sizes that were asked for, and wrong at others that are as round",
    "L2 set aside": "a part of the L2 is set aside for memory that persists there",
    "L2 warmed": "faster on operands that it can foresee than on others: it brings them into the L2 ahead",
    "replaces functions": "functions of the clocks or the checkers were replaced",
    "does not compile": "the compiler refuses the .cu file",
    "raises": "it raised an exception",
    "GPU fault": "the GPU stopped with an error",
    "crash": "its process ended",
    "hang": "it did not return in time",
}

REGIONS = ("in front of a", "a", "between a and b", "b", "between b and out", "out", "behind out")
OPERANDS, OUT = (1, 3), 5


@dataclass(frozen=True)
class Finding:
    """Why a contestant is rejected: the kind, a key of KINDS, and what was seen, in words."""

    kind: str
    words: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.words}"


@dataclass(frozen=True)
class Count:
    """How many elements of a region were wrong, the first of them, and what the wrong ones held."""

    wrong: int
    first: int
    unwritten: int
    before: int
    last: int


def of_answer(answer: Mapping[str, Any], n: int, where: str, persisting: int = 0) -> Finding | None:
    """What an answer to a call of n elements shows, at ``where`` in words; None where all is right. ``persisting``
    bytes of the L2 were set aside before."""
    if "raised" in answer:
        return Finding("raises", f"{answer['raised']} ({where})")
    if "lost" in answer:
        return Finding("GPU fault", f"{answer['lost']} ({where})")
    regions = [Count(*counts) for counts in answer["regions"]]
    for index, count in enumerate(regions):
        if count.wrong and index in OPERANDS:
            return Finding("changes operands", f"{_elements(count, n)} of {REGIONS[index]} ({where})")
        if count.wrong and index != OUT:
            words = f"{_some(count.wrong)} {REGIONS[index]}, the first one {count.first} elements into it ({where})"
            return Finding("writes outside", words)
    if answer["persisting"] > persisting:
        return Finding("L2 set aside", f"{answer['persisting']} bytes of the L2 ({where})")
    if not regions[OUT].wrong:
        if answer["unordered"]:
            words = f"what was queued behind the call was over before any kernel of the call could run ({where})"
            return Finding("side stream", words)
        return None
    return _of_out(regions[OUT], Count(*answer["at_rest"]), Count(*answer["later"]), n, where)


def _of_out(at_once: Count, at_rest: Count, later: Count, n: int, where: str) -> Finding:
    what = f"{_elements(at_once, n)} of out, the first {at_once.first} ({where})"
    # Before the sums of other operands: those may be what a call leaves that comes late.
    if not at_rest.wrong:
        return Finding("side stream", f"{what}; right when the GPU had come to rest")
    if not later.wrong:
        return Finding("returned early", f"{what}; right a while after")
    # What it holds in the end. A sum of one byte equals another now and then: most of the wrong ones decide.
    most = 0.5 * later.wrong
    kinds: Sequence[tuple[str, int]] = (
        ("read too early", later.before),
        ("kept result", later.last),
        ("nothing written", later.unwritten if later.wrong >= n else 0),
    )
    return Finding(next((kind for kind, count in kinds if count > most), "wrong sum"), what)


def _elements(count: Count, n: int) -> str:
    return "all elements" if count.wrong >= n else _some(count.wrong)


def _some(count: int) -> str:
    return "1 element" if count == 1 else f"{count} elements"

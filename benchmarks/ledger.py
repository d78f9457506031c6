"""The ledger: what the founding documents claim, and what the recorded rows say of it (docs/ledger.md).

`ledger.json`, beside this file, has a claim a line. Its keys, in this order:

    document         "001"
    says, theirs     what the document says, and its figure in its own digits
    ours             our figure, an expression
    show             how a figure is shown: a key of SHOW, or a format: "{:.1f} runs"
    rule             the figures with which the claim holds: at_least(low), at_most(high), between(low, high),
                     about(value, share) or equals('the figure as it is shown')
    why, why_not     the sentence for a claim that holds, and for one that does not; "" while the other one is needed
    otherwise        the verdict where the claim does not hold: one of VERDICTS

A claim that no arithmetic decides, for example about a listing, has `shown`, `rule`, `verdict` and `why` written down.

An expression has numbers, texts, lists, + - * / // **, min, max and these operations:

    gain(before, after)             how many times as fast `after` is, at the largest size that both ran at
    usual_gain(before, after)       the median of that over the sizes: for copies of ordinary memory, which scatter by a
                                    third at the largest
    value(rows, path)               what the row of the largest size says: a field, a param, or an entry of one as in
                                    'metrics.sm'; 'element' is its seconds an element, 'stages' are a transfer's
    every(rows, path)               what each of the rows says, a list
    largest(rows, path, *without)   the name of the largest entry there
    shares(*parts)                  the parts in percent of their sum, a list

Rows are named by sweep, rung, and words that tell them from others: 'blocksize naive block=64|128'. Without `dtype=`
float32 is meant. All parameters that a row has must be named, except `adds`. Of several rows of one size the fastest
counts, for example of 'ladder unroll2|float4'.

Further down in the file, "steps" are the documents' steps from rung to rung, and "lessons" are paragraphs whose {names}
are figures: an expression, and how it is shown.

A new recording that turns a verdict needs the other sentence: tests/lab/test_ledger.py names the claims that lack one.
"""

import ast
import json
import operator
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from vecadd.bench.steps import stages_of
from vecadd.figures import Figure, row_of_figure
from vecadd.tables import markdown, show_gain, show_rate, show_seconds, show_size

MACHINE = "h200"  # whose rows decide: the sentences speak of its GPU
NEAR = 0.05  # a step is confirmed where our gain is this near to the document's
VERDICTS = ("holds", "holds on its card", "refuted", "the document's slip", "open")
HOLDS, ON_ITS_CARD, *_, OPEN = VERDICTS
HEAD = ["claim", "its figure", "ours", "holds at", "verdict", "why", "shown by"]
WIDTH = 120  # of the lessons' lines

SHOW: Mapping[str, Callable[[Any], str]] = {
    "gain": show_gain,
    "percent": lambda share: f"{100 * share:.3g} %",
    "seconds": show_seconds,
    "GB/s": lambda rate: f"{show_rate(rate)} GB/s",
    "right": lambda right: "right" if right else "wrong",
}
RULES: Mapping[str, Callable[..., Any]] = {
    "at_least": lambda low: (low, inf),
    "at_most": lambda high: (-inf, high),
    "between": lambda low, high: (low, high),
    "about": lambda value, share: (value * (1 - share), value * (1 + share)),
    "equals": str,
}
OPERATORS: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: operator.pow,
}
LEDGER = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))


class NotRecordedError(LookupError):
    """No recorded row says what a claim needs; the message is a sentence."""


class Judged(NamedTuple):
    """A claim with its verdict, our figure and the rule as they are shown, the sentence for the verdict, the sweeps
    whose rows decided, and the number of elements of the last gain."""

    claim: Mapping[str, str]
    verdict: str
    ours: str
    rule: str
    why: str
    sweeps: Sequence[str] = ()
    elements: int = 0


def evaluate(expression: str, functions: Mapping[str, Callable[..., Any]]) -> Any:
    """The value of an expression of `ledger.json`. Raises ValueError for what no expression may have."""

    def value_at(node: ast.AST) -> Any:
        match node:
            case ast.Constant(value=int() | float() | str()):
                return node.value
            case ast.List():
                return [value_at(each) for each in node.elts]
            case ast.BinOp() if type(node.op) in OPERATORS:
                return OPERATORS[type(node.op)](value_at(node.left), value_at(node.right))
            case ast.Call(func=ast.Name(id=name), keywords=[]) if name in functions:
                return functions[name](*map(value_at, node.args))
        raise ValueError(f"{ast.unparse(node)!r} in {expression!r} is not a number, text, list, operator or operation")

    return value_at(ast.parse(expression, mode="eval").body)


class Recorded:
    """The recorded rows, and the operations of an expression on them. ``sweeps`` are those asked for so far,
    ``elements`` is the size of the last gain."""

    def __init__(self, rows: Iterable[Figure]) -> None:
        self.rows = list(rows)
        self.sweeps: list[str] = []
        self.elements = 0
        self.operations: Mapping[str, Callable[..., Any]] = {
            "min": min, "max": max, "shares": lambda *parts: [100 * part / sum(parts) for part in parts],
            "gain": self.gain, "usual_gain": lambda before, after: median(self.gains(before, after).values()),
            "value": self.value, "every": lambda rows, path: [_said(row, path, rows) for row in self.named(rows)],
            "largest": self.largest,
        }  # fmt: skip

    def named(self, name: str) -> list[Figure]:
        """The rows that a name means."""
        sweep, rung, *more = name.split()
        wanted = {"rung": rung, "dtype": "float32", **dict(word.split("=") for word in more)}
        if sweep not in self.sweeps:
            self.sweeps.append(sweep)
        found = [row for row in self.rows if row.sweep == sweep and row.seconds and _matches(row, wanted)]
        if not found:
            raise NotRecordedError(f"No row of {rung} {wanted['dtype']} ({sweep}) is recorded.")
        return found

    def fastest(self, name: str) -> dict[int, Figure]:
        """The fastest of these rows by their number of elements."""
        return {row.n: row for row in sorted(self.named(name), key=_seconds, reverse=True)}

    def gains(self, before: str, after: str) -> dict[int, float]:
        """How many times as fast the second is, by size."""
        first, second = self.fastest(before), self.fastest(after)
        if not (sizes := first.keys() & second.keys()):
            raise NotRecordedError(f"{before} and {after} are recorded at no common size.")
        return {n: _seconds(first[n]) / _seconds(second[n]) for n in sizes}

    def gain(self, before: str, after: str) -> float:
        """How many times as fast the second is, at the largest size."""
        self.elements, gain = max(self.gains(before, after).items())
        return gain

    def value(self, name: str, path: str) -> Any:
        """What the row at the largest size says."""
        return _said(max(self.fastest(name).items())[1], path, name)

    def largest(self, name: str, path: str, *without: str) -> str:
        """The name of the largest entry, with spaces."""
        entries = {entry: share for entry, share in self.value(name, path).items() if entry not in without}
        if not entries:
            raise NotRecordedError(f"The row of {name} says no {path}, because the run had no profiler.")
        return str(max(entries, key=lambda entry: entries[entry])).replace("_", " ")


def _seconds(row: Figure) -> float:
    return row.seconds or inf


def _facts(row: Figure) -> dict[str, Any]:
    """All that the row says. A choice's name is in its params, its number in the rung's parameters."""
    return {**row_of_figure(row), **row.params.get("parameters", {}), **row.params}


def _matches(row: Figure, wanted: Mapping[str, str]) -> bool:
    """Whether the row says one of the words, with bars between them, of each name, and all its parameters are named."""
    facts = {**_facts(row), "n": show_size(row.n)}
    unnamed = row.params.get("parameters", {}).keys() - wanted.keys() - {"adds"}
    return not unnamed and all(str(facts.get(name)) in words.split("|") for name, words in wanted.items())


def _said(row: Figure, path: str, name: str) -> Any:
    """What the row says there. Raises NotRecordedError where it says nothing."""
    found: Any = {**_facts(row), "element": _seconds(row) / row.n, "stages": stages_of(row) or {}}
    for part in path.split("."):
        found = found[int(part)] if isinstance(found, list) else found.get(part)
        if found is None:
            raise NotRecordedError(f"The row of {name} says no {path}.")
    return found


def judge(claim: Mapping[str, str], rows: Iterable[Figure]) -> Judged:
    """The claim's verdict by these rows; OPEN where they lack what it needs."""
    if "verdict" in claim:
        return Judged(claim, claim["verdict"], claim["shown"], claim["rule"], claim["why"])
    recorded, rule = Recorded(rows), evaluate(claim["rule"], RULES)
    words = _words(rule, claim["show"])
    try:
        value = evaluate(claim["ours"], recorded.operations)
    except NotRecordedError as missing:
        return Judged(claim, OPEN, "-", words, str(missing))
    ours = _shown(value, claim["show"])
    kept = ours == rule if isinstance(rule, str) else rule[0] <= value <= rule[1]
    verdict, why = (HOLDS, claim["why"]) if kept else (claim["otherwise"], claim["why_not"])
    return Judged(claim, verdict, ours, words, why, recorded.sweeps, recorded.elements)


def _shown(value: Any, show: str) -> str:
    """A figure as text; a list by a format of several."""
    if "{" not in show:
        return SHOW[show](value)
    return show.format(*(value if isinstance(value, list) else [value]))


def _words(rule: Any, show: str) -> str:
    """The rule as text."""
    if isinstance(rule, str):
        return rule
    low, high = rule
    if low == -inf:
        return f"at most {_shown(high, show)}"
    return f"at least {_shown(low, show)}" if high == inf else f"{_shown(low, show)} to {_shown(high, show)}"


def _step(step: Mapping[str, str]) -> Mapping[str, str]:
    """A step from rung to rung as a claim: where our gain differs, theirs is their card's."""
    return {
        "document": step["document"],
        "says": f"The step from {step['before']} to {step['after']}, {step['on']}",
        "theirs": show_gain(evaluate(step["theirs"], {})),
        "ours": step["ours"],
        "show": "gain",
        "rule": f"about({step['theirs']}, {NEAR})",
        **dict.fromkeys(("why", "why_not"), step["why"]),
        "otherwise": ON_ITS_CARD,
    }


CLAIMS: Sequence[Mapping[str, str]] = [*LEDGER["claims"], *map(_step, LEDGER["steps"])]


def ledger(rows: list[Figure]) -> list[str]:
    """Counts of claims by verdict, and each claim: what the document says, our figure beside its, and why."""
    found: dict[str, list[Judged]] = {claim["document"]: [] for claim in CLAIMS}
    for claim in CLAIMS:
        found[claim["document"]].append(judge(claim, rows))
    counts = [Counter(each.verdict for each in judged) for judged in found.values()]
    lines = [
        [name, *(str(count[verdict]) for verdict in VERDICTS), str(count.total())]
        for name, count in zip(
            [*map("Document {}".format, found), "all"], [*counts, sum(counts, Counter())], strict=True
        )
    ]
    text = markdown(["claims", *VERDICTS, "all"], lines)
    for document, judged in found.items():
        cells = [
            [each.claim["says"], each.claim["theirs"], each.ours, each.rule, each.verdict, each.why, _shown_by(each)]
            for each in judged
        ]
        text += ["", f"**Document {document}**", "", *markdown(HEAD, cells, [False] * len(HEAD))]
    return text


def _shown_by(judged: Judged) -> str:
    """The files that have the rows; the ledger's own where a document's digits decide."""
    if judged.verdict == OPEN:
        return "-"
    files = [f"results/{MACHINE}/{sweep}.json" for sweep in judged.sweeps] or ["ledger.json"]
    return ", ".join(f"[{Path(file).name}](../benchmarks/{file})" for file in files)


def steps(rows: list[Figure]) -> list[str]:
    """The documents' steps: their gain, ours, and why the two differ."""
    lines = []
    for step in LEDGER["steps"]:
        judged = judge(_step(step), rows)
        ours = ["not recorded", "-"] if judged.verdict == OPEN else [judged.ours, show_size(judged.elements)]
        place = f"{step['document']}, {step['on']}"
        lines.append([f"{step['before']} → {step['after']}", place, judged.claim["theirs"], *ours, step["why"]])
    return markdown(
        ["step", "document", "its gain", "ours", "at", "why"], lines, [False, False, True, True, True, False]
    )


def lessons(rows: list[Figure]) -> list[str]:
    """What the refuted claims teach: paragraphs, without those that need a row that is not recorded."""
    lines: list[str] = []
    for lesson in LEDGER["lessons"]:
        operations = Recorded(rows).operations
        try:
            figures = {
                name: _shown(evaluate(ours, operations), show) for name, (ours, show) in lesson["figures"].items()
            }
        except NotRecordedError:
            continue
        text = f"**{lesson['title']}.** {lesson['text'].format(**figures)}"
        lines += [*textwrap.wrap(text, WIDTH, break_on_hyphens=False), ""]
    return lines[:-1]

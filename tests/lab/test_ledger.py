"""benchmarks/ledger.json: what its expressions may have and mean, and that each verdict has its sentence.

That docs/ledger.md is what the claims and the recorded rows give, test_tables.py tests, as of every document."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from made_up import plain_figure

from benchmarks import ledger
from benchmarks.ledger import CLAIMS, OPEN, VERDICTS, Recorded, evaluate, judge
from benchmarks.tables.documents import RESULTS, ROOT, SWEEPS_OF
from vecadd.figures import Figure, read_run

pytestmark = pytest.mark.no_native

H200 = [row for sweep in SWEEPS_OF["ledger"] for row in read_run(RESULTS / ledger.MACHINE / f"{sweep}.json").figures]
DOCUMENT = ROOT / "docs" / "ledger.md"


def row(rung: str, n: int, seconds: float | None, sweep: str = "ladder", **params: Any) -> Figure:
    return plain_figure(sweep=sweep, name=rung, n=n, value=seconds, params=params)


def slower(times: float, rung: str) -> list[Figure]:
    """The recorded rows, with another time of one rung."""
    return [replace(row, value=times * (row.seconds or 0)) if row.name == rung else row for row in H200]


MADE_UP = [
    *(row("naive", n, seconds, grid=[n // 256, 1, 1]) for n, seconds in ((1024, 4.0), (2048, 8.0), (4096, 90.0))),
    *(row("float4", n, seconds, parameters={"adds": n}) for n, seconds in ((1024, 2.0), (2048, 1.0))),
    *(row("loop", 2048, seconds, parameters={"blocks": b}) for b, seconds in ((1, 5.0), (2, 3.0), (4, None))),
    *(row("loop", 4096, 7.0, sweep="blocksize", block=block, occupancy=block / 512) for block in (128, 256)),
    row("copied", 4096, 8.0, parameters={"kernel": 2}, kernel="float4", stages={"kernel": 1.0}, link=None),
    row("naive", 4096, 1.0, sweep="profile", stalls={"selected": 0.6, "long_scoreboard": 0.3, "wait": 0.1}),
    row("float4", 4096, 1.0, sweep="profile", stalls={}),
]


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("[1 + 2 * 3 - 4 / 2, 7 // 2, 2**10]", [5.0, 3, 1024]),
        ("max(1, 2) - min([3, 4])", -1),
        ("shares(1, 2 + 1)", [25.0, 75.0]),
        ("gain('ladder naive', 'ladder float4')", 8.0),  # at 2048: float4 has no 4096
        ("gain('ladder naive n=2^10', 'ladder float4')", 2.0),
        ("usual_gain('ladder naive', 'ladder float4')", 5.0),
        ("value('ladder naive', 'seconds')", 90.0),
        ("value('ladder naive n=2^11', 'element')", 8 / 2048),
        ("value('ladder naive', 'grid.0')", 16),
        ("value('ladder naive|float4|copied n=2^11', 'rung')", "float4"),
        ("value('ladder loop blocks=1|2', 'blocks')", 2),
        ("value('ladder loop blocks=1', 'seconds')", 5.0),
        ("value('ladder copied kernel=float4', 'stages.kernel')", 1.0),
        ("every('blocksize loop', 'occupancy')", [0.25, 0.5]),
        ("largest('profile naive', 'stalls', 'selected')", "long scoreboard"),
    ],
)
def test_each_operation_by_value(expression: str, value: Any) -> None:
    assert evaluate(expression, Recorded(MADE_UP).operations) == value


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("value('ladder naive dtype=int8', 'seconds')", "No row of naive int8 (ladder) is recorded."),
        ("value('ladder loop', 'seconds')", "No row of loop float32 (ladder) is recorded."),  # its blocks are not named
        ("value('ladder loop blocks=4', 'seconds')", "No row of loop float32 (ladder) is recorded."),
        ("value('ladder naive', 'metrics.sm')", "The row of ladder naive says no metrics.sm."),
        ("value('ladder copied kernel=float4', 'link')", "The row of ladder copied kernel=float4 says no link."),
        (
            "gain('ladder naive n=2^12', 'ladder float4')",
            "ladder naive n=2^12 and ladder float4 are recorded at no common size.",
        ),
        (
            "largest('profile float4', 'stalls')",
            "The row of profile float4 says no stalls, because the run had no profiler.",
        ),
    ],
)
def test_a_row_that_is_not_recorded_leaves_the_claim_open_and_is_named(expression: str, message: str) -> None:
    claim = {"ours": expression, "show": "gain", "rule": "at_least(2)"}
    assert judge(claim, MADE_UP)[1:5] == (OPEN, "-", "at least 2 x", message)


@pytest.mark.parametrize(
    "expression",
    [
        "ours", "1 if 1 else 2", "1 < 2", "-1", "not 1", "1 or 2", "None", "b'x'", "f'{1}'", "(1, 2)", "{1: 2}",
        "[x for x in [1]]", "lambda: 1", "[1][0]", "'a'.upper()", "max(*[1, 2])", "max([1, 2], default=1)",
        "open('x')", "at_least(1)", "__import__('os')", "1 % 2", "1 @ 2", "1 << 2",
    ],
)  # fmt: skip
def test_an_expression_has_nothing_else(expression: str) -> None:
    with pytest.raises(ValueError, match="is not a number, text, list, operator or operation"):
        evaluate(expression, Recorded(MADE_UP).operations)


@pytest.mark.parametrize(
    ("rule", "kept", "broken", "words"),
    [
        ("at_least(0.5)", "0.5", "0.49", "at least 50 %"),
        ("at_most(1 / 2)", "0.5", "0.51", "at most 50 %"),
        ("between(0.4, 0.5)", "0.4", "0.51", "40 % to 50 %"),
        ("about(0.5, 0.1)", "0.55", "0.56", "45 % to 55 %"),
        ("equals('25 %')", "1 / 4", "0.26", "25 %"),
    ],
)
def test_a_rule_decides_the_verdict_and_its_sentence(rule: str, kept: str, broken: str, words: str) -> None:
    claim = {"show": "percent", "rule": rule, "why": "So.", "why_not": "Not so.", "otherwise": "refuted"}
    shown = [f"{100 * float(evaluate(ours, {})):.3g} %" for ours in (kept, broken)]
    assert judge({**claim, "ours": kept}, [])[1:5] == ("holds", shown[0], words, "So.")
    assert judge({**claim, "ours": broken}, [])[1:5] == ("refuted", shown[1], words, "Not so.")


# --- the claims


def unexplained(rows: list[Figure]) -> list[str]:
    """The claims whose verdict by these rows has no sentence."""
    judged = [judge(claim, rows) for claim in CLAIMS]
    return [f"{each.claim['says']}: {each.verdict} ({each.ours})" for each in judged if not each.why]


def test_each_verdict_that_the_recorded_rows_give_has_its_sentence() -> None:
    """Where this fails after a new recording: write why_not, or why, and read the document again."""
    assert unexplained(H200) == []


def test_a_recording_that_turns_a_verdict_asks_for_a_sentence() -> None:
    turned = "A warp that diverges into 32 paths takes 32 times as long: holds (29.8 x)"
    assert unexplained(slower(6, "divergent")) == [turned]


def test_an_open_claim_has_a_sentence_for_either_verdict() -> None:
    waiting = [claim for claim in ledger.LEDGER["claims"] if "ours" in claim and judge(claim, H200).verdict == OPEN]
    assert [claim["says"] for claim in waiting if not (claim["why"] and claim["why_not"])] == []


def test_each_line_has_its_keys_in_order_and_short_sentences() -> None:
    assert {" ".join(claim) for claim in ledger.LEDGER["claims"]} == {
        "document says theirs ours show rule why why_not otherwise",
        "document says theirs shown rule verdict why",
    }
    assert {" ".join(step) for step in ledger.LEDGER["steps"]} == {"document on before after theirs ours why"}
    assert {claim.get("verdict") or claim["otherwise"] for claim in CLAIMS} == {*VERDICTS}
    assert len({(claim["document"], claim["says"]) for claim in CLAIMS}) == len(CLAIMS)
    reasons = [claim[name] for claim in CLAIMS for name in ("why", "why_not") if claim.get(name)]
    assert [text for text in reasons if not text.endswith(".")] == []
    assert [part for text in reasons for part in text.split(". ") if len(part.split()) > 40] == []


def test_the_arithmetic_that_no_expression_has() -> None:
    """Of the claims whose verdict is written down: a closed form in 75 places, and the float16 nearest to 57.6."""
    for i, j, k in ((i, j, k) for i in range(5) for j in range(5) for k in (1, 7, 64)):
        product = sum((i + inner) * (inner - j) for inner in range(k))
        assert k * (k - 1) * (2 * k - 1) / 6 + (i - j) * k * (k - 1) / 2 - k * i * j == product
    assert f"{float(np.float16(57.6)):.6g}" == "57.5938"


# --- the tables


def test_the_document_introduces_each_text_and_links_to_what_decides() -> None:
    text = DOCUMENT.read_text()
    assert set(re.findall(r"^\| (\d{3}) \|", text, re.MULTILINE)) == {claim["document"][:3] for claim in CLAIMS}
    links = {link for line in ledger.ledger(H200) for link in re.findall(r"\]\(([^)]+)\)", line)}
    assert [link for link in links if not (DOCUMENT.parent / link).exists()] == []
    assert {link.rpartition("/")[2].removesuffix(".json") for link in links} == {*SWEEPS_OF["ledger"], "ledger"}


def test_a_lesson_has_the_figures_of_the_rows_and_is_left_out_without_them() -> None:
    without = [row for row in H200 if row.name != "divergent"]
    before, after, fewer = (
        "\n".join(ledger.lessons(rows)).split("\n\n") for rows in (H200, slower(2, "single_block"), without)
    )
    assert [old[:14] for old, new in zip(before, after, strict=True) if old != new] == ["**One block.**"]
    assert "takes 3.35 ns an element on an H200 and 1.04 ns" in after[0]
    assert fewer == before[:-1]

"""docs/ledger.md: the claims of the founding documents, and the verdicts that the recorded rows give them."""

import contextlib
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.claims import CLAIMS, MACHINE, lessons
from benchmarks.claims.claim import Claim, Verdict, judge
from benchmarks.claims.picks import Pick, ladder, latency, stage, transfer
from benchmarks.claims.quantities import (
    Between,
    Is,
    NotRecordedError,
    Recorded,
    about,
    at_least,
    at_most,
    percent,
    usual_gain,
)
from benchmarks.tables import ledger
from benchmarks.tables.documents import RESULTS, ROOT, SWEEPS_OF
from benchmarks.tables.recordings import newest
from vecadd import _core
from vecadd.bench import recorded
from vecadd.bench.results import Row

pytestmark = [
    pytest.mark.no_native,
    pytest.mark.skipif(not _core.CUDA_BUILD, reason="a build without CUDA has no rungs on the device to be compared"),
]

ROWS = [
    row for sweep in SWEEPS_OF["ledger"] for machine, run in newest(RESULTS, sweep).items() if machine == MACHINE
    for row in run.rows
]  # fmt: skip
DOCUMENT = ROOT / "docs" / "ledger.md"
ALL = [(name, claim) for name, claims in CLAIMS.items() for claim in claims]
NAMES = [f"{name}: {claim.says}" for name, claim in ALL]
AWAITED = {"accumulate", "tail", "bytes", "timed"}  # parameters of rungs that are to be recorded with them
NOT_RUNGS = {"numpy", "probe", "cold_start", "gpudirect_storage", "download_touched", "download_untouched"}
AWAITED_RUNGS = {"copy_device", "chunks_reused"}


def of(says: str) -> Claim:
    """The one claim that begins so."""
    (found,) = (claim for _, claim in ALL if claim.says.startswith(says))
    return found


def changed(pick: Pick, change: Callable[[Row], Row]) -> list[Row]:
    """The recorded rows, with those of a pick changed."""
    return [change(row) if row.sweep == pick.sweep and pick.means(row) else row for row in ROWS]


def slower(times: float) -> Callable[[Row], Row]:
    return lambda row: replace(row, seconds=(row.seconds or 0.0) * times)


def sentences(text: str) -> list[str]:
    return re.split(r"(?<=\.)\s+", text)


# --- the claims


def test_no_document_makes_a_claim_twice() -> None:
    assert {name: times for name, times in Counter(NAMES).items() if times > 1} == {}


def test_each_document_is_introduced_and_has_claims() -> None:
    introduced = re.findall(r"^\| (\d{3}) \|", DOCUMENT.read_text(), re.MULTILINE)
    claimed = {re.findall(r"document_(\d{3})", name)[0] for name in CLAIMS}
    measured = {setting.document for setting in recorded.SETTINGS.values()}
    assert set(introduced) == claimed
    assert measured <= claimed


def test_a_claim_is_no_sentence_and_has_a_figure_and_a_reason() -> None:
    assert [claim.says for _, claim in ALL if claim.says.endswith(".") or not claim.theirs] == []
    assert [claim.says for _, claim in ALL if not (claim.why or claim.why_not)] == []
    assert {claim.otherwise for _, claim in ALL} == {Verdict.REFUTED, Verdict.ON_ITS_CARD, Verdict.SLIP}


def test_each_sentence_is_short_and_ends() -> None:
    reasons = [text for _, claim in ALL for text in (claim.why, claim.why_not) if text]
    assert [text for text in reasons if not text.endswith(".")] == []
    assert [sentence for text in reasons for sentence in sentences(text) if len(sentence.split()) > 40] == []


# --- the verdicts


JUDGED = [(name, judge(claim, ROWS)) for name, claim in ALL]


def test_at_least_sixty_claims_are_decided() -> None:
    assert sum(each.verdict is not Verdict.OPEN for _, each in JUDGED) >= 60


def test_every_kind_of_verdict_is_found() -> None:
    assert {each.verdict for _, each in JUDGED} >= {Verdict.HOLDS, Verdict.ON_ITS_CARD, Verdict.REFUTED, Verdict.SLIP}


def test_each_sentence_explains_the_verdict_that_the_rows_give() -> None:
    """A recording that turns a verdict needs the other sentence."""
    assert [f"{each.claim.says}: {each.verdict.value}, by {each.ours}" for _, each in JUDGED if not each.why] == []


OPEN = [each for _, each in JUDGED if each.verdict is Verdict.OPEN]


def test_an_open_claim_names_the_missing_row_and_is_ready_for_either_verdict() -> None:
    assert {each.ours for each in OPEN} <= {"-"}
    assert [each.why for each in OPEN if not re.search(r"recorded|says no|measured", each.why)] == []
    assert [each.claim.says for each in OPEN if not (each.claim.why and each.claim.why_not)] == []


class Picks(Recorded):
    """Notes the rows that are asked for."""

    def __init__(self, rows: Sequence[Row]) -> None:
        super().__init__(rows)
        self.picks: list[Pick] = []

    def by_size(self, pick: Pick) -> dict[int, Row]:
        self.picks.append(pick)
        return super().by_size(pick)


def test_claims_ask_for_rungs_that_are_there_and_sweeps_that_are_read() -> None:
    asked = Picks(ROWS)
    for _, claim in ALL:
        with contextlib.suppress(NotRecordedError):
            claim.ours.of(asked)
    assert set(asked.asked) <= set(SWEEPS_OF["ledger"])
    rungs = {rung["name"]: set(rung["params"]) for rung in _core.rungs()}
    for pick in asked.picks:
        assert pick.rung in rungs.keys() | NOT_RUNGS | AWAITED_RUNGS, pick
        assert set(pick.parameters) - AWAITED <= rungs.get(pick.rung, set()), pick


def test_a_claim_about_rows_is_judged_by_the_rows() -> None:
    claim = of("The memory is the limit of the naive kernel")
    assert judge(claim, ROWS).verdict is Verdict.ON_ITS_CARD
    faster = judge(claim, changed(ladder("naive"), lambda row: replace(row, fraction=0.9)))
    assert (faster.verdict, faster.ours, faster.why) == (Verdict.HOLDS, "90 %", claim.why)


@pytest.mark.parametrize(
    ("says", "pick", "times"),
    [
        ("A warp that begins 64 bytes past", ladder("offset", offset=16), 2),
        ("A warp that diverges into 32 paths", ladder("divergent", paths=32), 6),
        ("Division and remainder for an index are very expensive", ladder("index_divmod"), 1.3),
        ("A block 16 wide", ladder("block_shape", x=16, y=2), 2),
        ("2 to 4 blocks", ladder("grid_stride", blocks_per_sm=4), 0.5),
    ],
)
def test_other_times_turn_a_refuted_claim_into_one_that_holds(says: str, pick: Pick, times: float) -> None:
    claim = next(claim for _, claim in ALL if claim.says.startswith(says))
    assert judge(claim, ROWS).verdict is Verdict.REFUTED
    assert judge(claim, changed(pick, slower(times))).verdict is Verdict.HOLDS


def test_other_times_turn_a_claim_that_holds_into_one_that_is_refuted() -> None:
    claim = of("Programmatic launches overlap")
    assert judge(claim, ROWS).verdict is Verdict.HOLDS
    assert judge(claim, changed(latency("pdl"), slower(1.3))).verdict is Verdict.REFUTED


def test_without_its_row_a_claim_is_open() -> None:
    claim = of("Two elements a thread by unrolling")
    left = [row for row in ROWS if row.rung != "unroll2"]
    missing = judge(claim, left)
    assert (missing.verdict, missing.ours) == (Verdict.OPEN, "-")
    assert missing.why == "No row of unroll2 float32 (ladder) is recorded."


def test_what_a_machine_lacks_is_told_in_place_of_a_row() -> None:
    says = {"says": "not measured: there is no NVMe disk"}
    told = replace(ROWS[0], sweep="documents", rung="gpudirect_storage", n=0, params=says, seconds=None)
    others = [row for row in ROWS if row.rung != "gpudirect_storage"]
    lacking = judge(of("GPUDirect storage"), [*others, told])
    assert (lacking.verdict, lacking.ours) == (Verdict.OPEN, "-")
    assert lacking.why == "Not measured: there is no NVMe disk."


def test_a_row_that_does_not_say_what_is_asked_leaves_a_claim_open() -> None:
    claim = of("At 1 K elements the launch takes")
    silent = [replace(row, params={}) if row.sweep == "precision" else row for row in ROWS]
    assert judge(claim, silent).verdict is Verdict.OPEN


def test_a_slip_by_the_documents_own_digits_needs_no_row() -> None:
    slips = [each for _, each in JUDGED if each.verdict is Verdict.SLIP and not each.sweeps]
    assert len(slips) >= 20
    assert [judge(each.claim, []) for each in slips] == slips


def profiled(rung: str, **params: object) -> Row:
    """A row of the sweep of profiles."""
    return replace(ROWS[0], sweep="profile", rung=rung, dtype="float32", params={"parameters": {}, **params})


@pytest.mark.parametrize(
    ("stalls", "verdict"),
    [
        ({"long_scoreboard": 0.5, "wait": 0.1, "selected": 0.6}, Verdict.HOLDS),
        ({"long_scoreboard": 0.1, "wait": 0.5}, Verdict.REFUTED),
        ({}, Verdict.OPEN),
    ],
)
def test_a_claim_about_stalls_is_judged_by_the_profilers_row(stalls: dict[str, float], verdict: Verdict) -> None:
    claim = of("The naive kernel's warps wait")
    left = [row for row in ROWS if row.sweep != "profile"]
    assert judge(claim, [*left, profiled("naive", stalls=stalls)]).verdict is verdict


@pytest.mark.parametrize(("share", "verdict"), [(2.4, Verdict.HOLDS), (9.0, Verdict.ON_ITS_CARD)])
def test_a_claim_about_counters_is_judged_by_the_profilers_rows(share: float, verdict: Verdict) -> None:
    claim = of("16-byte loads make SM throughput fall")
    left = [row for row in ROWS if row.sweep != "profile"]
    rows = [profiled("naive", metrics={"sm": 9.7}), profiled("float4", metrics={"sm": share})]
    assert judge(claim, [*left, *rows]).verdict is verdict
    assert judge(claim, [*left, rows[0], profiled("float4", metrics={})]).verdict is Verdict.OPEN


def test_a_step_holds_within_a_twentieth_of_the_documents_gain() -> None:
    claim = of("The step from grid_stride to naive")
    assert judge(claim, ROWS).verdict is Verdict.HOLDS
    slow = changed(Pick("documents", "naive", "float32", 10**8), slower(1.1))
    assert judge(claim, slow).verdict is Verdict.ON_ITS_CARD


# --- which row is meant


def test_the_largest_size_is_meant_where_none_is_given() -> None:
    sizes = {row.n for row in ROWS if row.sweep == "ladder" and row.rung == "naive"}
    assert Recorded(ROWS).row(ladder("naive")).n == max(sizes)
    assert Recorded(ROWS).row(ladder("naive").at(min(sizes))).n == min(sizes)


def test_parameters_that_are_not_given_are_as_usual() -> None:
    usual = Recorded(ROWS).row(ladder("grid_stride"))
    assert usual.params["parameters"] == {"blocks_per_sm": 4}


def test_a_gain_is_at_a_size_that_both_ran_at() -> None:
    small = [row for row in ROWS if row.rung != "float4" or row.n <= 2**20]
    times = {row.rung: row.seconds or 0.0 for row in ROWS if row.sweep == "ladder" and row.n == 2**20}
    assert Recorded(small).gain(ladder("naive"), ladder("float4")) == times["naive"] / times["float4"]


def test_the_usual_gain_is_the_median_of_the_sizes() -> None:
    """A tenfold time at the largest size alone does not change it."""
    before, after = transfer("copy_blocking"), transfer("copy_async")
    usual = usual_gain(before, after).of(Recorded(ROWS))
    rare = Recorded(changed(before.at(2**28), slower(10)))
    assert rare.gain(before, after) > 5
    assert usual_gain(before, after).of(rare) == pytest.approx(usual, rel=0.1)


def test_a_stage_is_known_by_its_name() -> None:
    row = Recorded(ROWS).row(stage("grid_stride"))
    assert (row.rung, row.params["stage"], row.params["kernel"]) == ("pageable", "grid_stride", "grid_stride")


def test_two_rungs_without_a_common_size_have_no_gain() -> None:
    apart = [row for row in ROWS if (row.rung != "naive" or row.n > 2**20) and (row.rung != "float4" or row.n <= 2**20)]
    with pytest.raises(
        NotRecordedError, match=r"naive float32 \(ladder\) and float4 float32 \(ladder\) are recorded at no common size"
    ):
        Recorded(apart).gain(ladder("naive"), ladder("float4"))


# --- rules


@pytest.mark.parametrize(
    ("rule", "value", "kept", "said"),
    [
        (at_least(0.5), 0.5, True, "at least 50 %"),
        (at_least(0.5), 0.49, False, "at least 50 %"),
        (at_most(0.5), 0.5, True, "at most 50 %"),
        (at_most(0.5), 0.51, False, "at most 50 %"),
        (about(0.5), 0.55, True, "45 % to 55 %"),
        (about(0.5), 0.56, False, "45 % to 55 %"),
        (Is(0.25), 0.25, True, "25 %"),
        (Is(0.25), 0.26, False, "25 %"),
    ],
)
def test_a_rule_holds_at_its_bounds_and_says_itself_in_the_unit_of_its_quantity(
    rule: Between | Is, value: float, kept: bool, said: str
) -> None:
    assert rule(value) is kept
    assert rule.words(percent) == said


# --- the table


def test_every_file_that_shows_a_claim_is_there_and_holds_its_rows() -> None:
    links = re.findall(r"\]\((\.\./benchmarks/[^)]+)\)", "\n".join(ledger.ledger(ROWS)))
    assert len(links) >= 60
    for link in set(links):
        path = (DOCUMENT.parent / link).resolve()
        assert path.exists()
        assert path.suffix == ".py" or f'"sweep": "{path.stem}"' in path.read_text()


def test_the_table_counts_the_verdicts() -> None:
    counted = Counter(each.verdict for _, each in JUDGED)
    (total,) = (line for line in ledger.ledger(ROWS) if line.startswith("| all |"))
    assert total == f"| all | {' | '.join(str(counted[verdict]) for verdict in Verdict)} | {len(ALL)} |"


def test_a_line_has_the_claim_both_figures_the_rule_the_verdict_and_the_file() -> None:
    (line,) = (line for line in ledger.ledger(ROWS) if line.startswith("| A warp that begins 64 bytes"))
    claim = of("A warp that begins 64 bytes")
    assert [part.strip() for part in line.strip("| ").split(" | ")] == [
        claim.says,
        "2 bursts",
        claim.ours.show(claim.ours.of(Recorded(ROWS))),
        "at least 1.8 x",
        "refuted",
        claim.why_not,
        f"[ladder.json](../benchmarks/results/{MACHINE}/ladder.json)",
    ]


def test_no_cell_breaks_the_table() -> None:
    for line in ledger.ledger(ROWS):
        assert not line.startswith("| ") or line.count("|") in (7 + 1, len(Verdict) + 2 + 1)


# --- what the refutations teach


def test_the_figures_of_a_lesson_are_those_of_the_rows() -> None:
    block = ladder("single_block")
    found = lessons.paragraphs(ROWS)
    doubled = lessons.paragraphs(changed(block, slower(2)))
    assert {title for title in found if found[title] != doubled[title]} == {"One block"}


def test_a_lesson_without_its_row_is_left_out() -> None:
    left = [row for row in ROWS if row.rung != "divergent"]
    assert len(lessons.paragraphs(left)) == len(lessons.paragraphs(ROWS)) - 1


def test_the_document_has_every_lesson() -> None:
    text = DOCUMENT.read_text()
    assert [title for title in lessons.paragraphs(ROWS) if f"**{title}.**" not in text] == []


def test_the_files_of_the_claims_are_named_in_the_document() -> None:
    assert "(../benchmarks/claims)" in DOCUMENT.read_text()
    assert {Path(f"{ROOT}/benchmarks/claims/{name}.py").exists() for name in CLAIMS} == {True}

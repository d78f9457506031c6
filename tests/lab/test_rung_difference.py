"""vecadd.ladder.diff: what one rung changes against another, in its source and in its machine code."""

import pytest

from vecadd import code, ladder
from vecadd.code import Code, difference

pytestmark = pytest.mark.no_native


@pytest.fixture
def tool() -> None:
    if code.find_disassembler() is None:
        pytest.skip(code.MISSING)
    if "sm_90" not in code.find_cubins():
        pytest.skip("the extension has no machine code for sm_90")


def changed(diff: str, sign: str) -> list[str]:
    """The lines of one side alone."""
    return [line[1:].strip() for line in diff.splitlines()[2:] if line.startswith(sign)]


def test_sources_differ_in_the_load_and_not_in_the_comments_at_their_heads() -> None:
    diff = ladder.diff("naive", "float4")
    assert diff.startswith("--- cuda/lab/ladder/06_naive.cu\n+++ cuda/lab/ladder/14_float4.cu\n@@ ")
    assert any("reinterpret_cast<const vector *>(a)[i]" in line for line in changed(diff, "+"))
    assert any(line.startswith("naive_add(") for line in changed(diff, "-"))
    assert [line for line in (*changed(diff, "+"), *changed(diff, "-")) if line.startswith("//")] == []


def test_of_a_file_that_two_rungs_share_nothing_shows() -> None:
    diff = ladder.diff("unroll2", "unroll4")
    assert "unrolled_add" in ladder.source("unroll2")
    assert "unrolled_add" not in diff


def test_a_rung_does_not_differ_from_itself() -> None:
    assert ladder.diff("naive", "naive") == ""


@pytest.mark.usefixtures("tool")
def test_machine_code_differs_in_what_the_rung_changes_alone() -> None:
    diff = ladder.diff("naive", "restrict", "sass", arch="sm_90")
    assert [line.split()[0] for line in changed(diff, "-")] == ["LDG.E", "LDG.E"]
    assert [line.split()[0] for line in changed(diff, "+")] == ["LDG.E.CONSTANT", "LDG.E.CONSTANT"]


@pytest.mark.usefixtures("tool")
def test_machine_code_of_a_vector_rung_shows_the_vector_load() -> None:
    added = changed(ladder.diff("naive", "float4", "sass", arch="sm_90"), "+")
    assert sum(line.startswith("LDG.E.128 ") for line in added) == 2
    assert sum(line.startswith("STG.E.128 ") for line in added) == 1


@pytest.mark.usefixtures("tool")
def test_machine_code_is_of_the_dtype_that_is_asked_for() -> None:
    diff = ladder.diff("naive", "float4", "sass", dtype="float64", arch="sm_90")
    assert diff.startswith("--- naive, float64, sm_90\n+++ float4, float64, sm_90\n")
    assert sum(line.startswith("DADD") for line in changed(diff, "+")) == 2


def test_addresses_do_not_count_but_other_numbers_do() -> None:
    one = Code("/*0000*/  @!P0 BRA 0x10 ;\n/*0010*/  LOP3 R1, 0xff ;\n/*0020*/  BRA 0x20 ;\n", "text", "one")
    two = Code("/*0000*/  @!P0 BRA 0x30 ;\n/*0010*/  LOP3 R1, 0xfe ;\n/*0020*/  BRA 0x40 ;\n", "text", "two")
    diff = difference(one, two)
    assert changed(diff, "-") == ["LOP3 R1, 0xff ;"]
    assert changed(diff, "+") == ["LOP3 R1, 0xfe ;"]
    assert (diff.language, diff.caption) == ("diff", "one → two")


def test_a_kind_of_code_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="what must be 'source' or 'sass', not 'ptx'"):
        ladder.diff("naive", "float4", "ptx")  # type: ignore[arg-type]

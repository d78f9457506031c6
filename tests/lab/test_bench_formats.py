"""The bench's output formats, each as a file in tests/golden/bench: fixed rows in, exactly that text out.

`PYTHONPATH=.:tests python tests/lab/test_bench_formats.py` writes the files anew; read what has
changed before you keep it."""

import csv
import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from made_up import FIGURES, RUNGS, figure, run

from vecadd import _core
from vecadd.bench import output
from vecadd.bench.sweeps import make_tables
from vecadd.tables import Screen, Table, columns, markdown, table_as_markdown

pytestmark = pytest.mark.no_native

GOLDEN = Path(__file__).parents[1] / "golden" / "bench"


def printed(sweep: str) -> str:
    """The tables of a sweep as a pipe gets them."""
    text = io.StringIO()
    Screen(text).show(make_tables(FIGURES[sweep]))
    return text.getvalue()


def lines(texts: list[str]) -> str:
    return "\n".join(texts) + "\n"


ONE = {"name": "one", "after": None, "changes": ""}
EVERY = [row for rows in FIGURES.values() for row in rows]

FILES: dict[str, Callable[[], str]] = {
    **{f"{sweep}.txt": lambda sweep=sweep: printed(sweep) for sweep in FIGURES},  # type: ignore[misc]
    "run.md": lambda: output.as_markdown(run(EVERY)),
    "run.csv": lambda: output.as_csv(EVERY),
    "opening.txt": lambda: lines(output.describe_machine(run(EVERY))),
    "findings.txt": lambda: lines(output.list_problems(run(EVERY))),
}


@pytest.fixture(autouse=True)
def fixed_rungs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rungs' own texts are theirs to change."""
    monkeypatch.setattr(_core, "rungs", lambda: list(RUNGS.values()))


@pytest.mark.parametrize("name", FILES)
def test_fixed_rows_give_exactly_the_text_of_the_golden_file(name: str) -> None:
    assert FILES[name]() == (GOLDEN / name).read_text()


def test_csv_has_every_row_and_json_for_what_is_no_number() -> None:
    read = list(csv.DictReader(io.StringIO(output.as_csv(EVERY))))
    assert [(row["sweep"], row["rung"], int(row["n"])) for row in read] == [
        (row.sweep, row.name, row.n) for row in EVERY
    ]
    by_name: dict[str, Any] = {row["rung"]: row for row in read}
    assert json.loads(by_name["waves"]["grid"]) == [1161, 1, 1]
    assert by_name["cold_start"]["seconds"] == "1.2"


def test_markdown_tables_are_even() -> None:
    blocks = output.as_markdown(run(EVERY)).split("\n\n")
    bars = [{line.count("|") for line in block.splitlines()} for block in blocks if block.startswith("|")]
    assert len(bars) == len(make_tables(EVERY))
    assert all(len(counts) == 1 for counts in bars)


def test_block_sizes_tell_how_many_blocks_start_in_a_nanosecond() -> None:
    rows = [
        figure("blocksize", "naive", 1 << 26, seconds, block=block, grid=[(1 << 26) // block, 1, 1])
        for block, seconds in ((32, 1262e-6), (64, 634e-6), (256, 233e-6))
    ]
    (table,) = make_tables(rows)
    assert "no row starts more than 1.66 blocks a ns, which bounds small blocks at any occupancy" in table.notes


GRID_STRIDE = [
    figure("ladder", "grid_stride", 1 << 26, seconds, parameters={"blocks_per_sm": blocks})
    for blocks, seconds in ((1, 9e-4), (4, 3e-4), (8, 2e-4))
]


def test_the_documents_figure_is_shown_beside_their_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Document 004's 6 ms are of 4 blocks a multiprocessor."""
    known = {**ONE, "name": "grid_stride", "params": {"blocks_per_sm": (1, 4, 64)}}
    monkeypatch.setattr(_core, "rungs", lambda: [known])
    (table,) = make_tables(GRID_STRIDE)
    at = [column.name for column in table.columns].index("documents")
    named = {line.cells[0]: line.cells[at] for line in table.lines if line}
    assert [line.strip() for line, time in named.items() if time == "6 ms (004a)"] == ["blocks_per_sm 4"]


def test_the_ladders_gain_is_at_the_same_parameters_where_the_rung_before_has_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    blocks = {"blocks_per_sm": (1, 4, 64)}
    one, two = ({**ONE, "name": name, "params": blocks} for name in ("grid_stride", "block_range"))
    monkeypatch.setattr(_core, "rungs", lambda: [one, {**two, "after": "grid_stride"}])
    (table,) = make_tables([*GRID_STRIDE, figure("ladder", "block_range", 1 << 26, 6e-4)])
    at = [column.name for column in table.columns].index("gain")
    assert [line.cells[at] for line in table.lines if line and line.cells[0] == "block_range"] == ["0.5 x"]


@pytest.mark.parametrize("fastest", range(3))
def test_the_ladders_gain_is_over_the_fastest_variant_wherever_it_is(
    fastest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_core, "rungs", lambda: [ONE, {**ONE, "name": "two", "after": "one"}])
    variants = [figure("ladder", "one", 1 << 20, 1e-3 if at == fastest else 2e-3) for at in range(3)]
    (table,) = make_tables([*variants, figure("ladder", "two", 1 << 20, 5e-4)])
    at = [column.name for column in table.columns].index("gain")
    assert [line.cells[at] for line in table.lines if line and line.cells[0] == "two"] == ["2 x"]


def test_a_bar_in_a_cell_of_markdown_does_not_part_it() -> None:
    assert markdown(["a|b", "c"], [["|d|", "e"]]) == ["| a\\|b | c |", "| --- | ---: |", "| \\|d\\| | e |"]
    table = Table("x", columns("rung", "what|changed"))
    table.add("abs|x|", "1")
    assert table_as_markdown(table) == ["| rung | what\\|changed |", "| --- | ---: |", "| abs\\|x\\| | 1 |"]


def test_a_bar_in_a_rows_name_leaves_the_markdown_of_a_run_even() -> None:
    rows = [replace(row, name=f"{row.name}|x") for row in FIGURES["host"]]
    blocks = output.as_markdown(run(rows)).split("\n\n")
    (table,) = (block.splitlines() for block in blocks if block.startswith("|"))
    assert len({line.replace("\\|", "").count("|") for line in table}) == 1
    assert all("\\|x" in line for line in table[2:])


if __name__ == "__main__":
    _core.rungs = lambda: list(RUNGS.values())
    GOLDEN.mkdir(parents=True, exist_ok=True)
    for name, make in FILES.items():
        (GOLDEN / name).write_text(make())

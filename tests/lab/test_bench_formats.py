"""The bench's output formats, each as a file in tests/golden/bench: fixed rows in, exactly that text out.

`PYTHONPATH=.:tests python tests/lab/test_bench_formats.py` writes the files anew; read what has
changed before you keep it."""

import io
from collections.abc import Callable
from pathlib import Path

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


def test_block_sizes_tell_how_many_blocks_start_in_a_nanosecond() -> None:
    rows = [
        figure("blocksize", "naive", 1 << 26, seconds, block=block, grid=[(1 << 26) // block, 1, 1])
        for block, seconds in ((32, 1262e-6), (64, 634e-6), (256, 233e-6))
    ]
    (table,) = make_tables(rows)
    assert "no row starts more than 1.66 blocks a ns, which bounds small blocks at any occupancy" in table.notes


@pytest.mark.parametrize("fastest", range(3))
def test_the_ladders_gain_is_over_the_fastest_variant_in_any_order(
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


if __name__ == "__main__":
    _core.rungs = lambda: list(RUNGS.values())
    GOLDEN.mkdir(parents=True, exist_ok=True)
    for name, make in FILES.items():
        (GOLDEN / name).write_text(make())

"""The tables of receipts, for the documents and for the terminal: how well they predict, and what they cost."""

from collections.abc import Sequence

from vecadd.figures import Figure
from vecadd.tables import Column, Style, Table, columns, show_gain, show_seconds, show_size, table_as_markdown

WITHIN = 0.15  # of the measured gain, which a prediction should come to


def is_within(row: Figure) -> bool:
    """Whether the prediction came so near."""
    predicted, measured = row.params["predicted"], row.params["measured"]
    return predicted is not None and abs(predicted / measured - 1) <= WITHIN


def programs(rows: list[Figure]) -> list[str]:
    """A line a program, and how many predictions are within that."""
    near = sum(map(is_within, rows))
    return [
        *table_as_markdown(program_table(rows)),
        "",
        f"Of {len(rows)} predictions {near} are within {100 * WITHIN:.0f} % of the measured gain; "
        f"{len(rows[0].params['rounds'])} rounds.",
    ]


def costs(rows: list[Figure]) -> list[str]:
    """A line a size, and the range of the medians."""
    medians = [_percent(row.params["ratio"]) for row in rows]
    said = f"The medians are between {min(medians):+.1f} and {max(medians):+.1f} %."
    return [*table_as_markdown(cost_table(rows)), "", said]


def program_table(rows: Sequence[Figure]) -> Table:
    """A line a program; what is farther off than WITHIN has failed."""
    reason = Column("reason", right=False)
    table = Table("predictions", columns("program", reason, "time", "mended", "predicted", "measured", "off by"))
    for row in rows:
        predicted, measured = row.params["predicted"], row.params["measured"]
        table.add(
            row.name,
            row.params["reason"],
            show_seconds(row.seconds or 0.0),
            show_seconds(row.params["mended_seconds"]),
            show_gain(predicted) if predicted else "-",
            show_gain(measured),
            f"{100 * (predicted / measured - 1):+.0f} %" if predicted else "-",
            style=Style.PLAIN if is_within(row) else Style.FAILED,
        )
    return table


def cost_table(rows: Sequence[Figure]) -> Table:
    """A line a size: an addition without a receipt and with one."""
    table = Table("the cost of a receipt", columns("float32", "a + b", "recorded", "median", "interval", "same again"))
    for row in rows:
        table.add(
            show_size(row.n),
            show_seconds(row.seconds or 0.0),
            show_seconds(row.params["recorded_seconds"]),
            f"{_percent(row.params['ratio']):+.1f} %",
            _range(row.params["ratio_interval"]),
            _range(row.params["same_interval"]),
        )
    return table


def _range(ratios: Sequence[float]) -> str:
    """ "+0.1 to +2.3 %"."""
    return " to ".join(f"{_percent(ratio):+.1f}" for ratio in ratios) + " %"


def _percent(ratio: float) -> float:
    return 100 * (ratio - 1)

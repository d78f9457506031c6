"""The tables of receipts, for the documents and for the terminal: how well they predict, and what they cost."""

from collections.abc import Sequence

from vecadd.figures import Figure
from vecadd.tables import Column, Style, Table, columns, show_gain, show_seconds, show_size, table_as_markdown

WITHIN = 0.15  # of the measured gain, which a prediction should come to
LITTLE = 2.0  # percent, which a receipt should cost at most


def is_within(row: Figure) -> bool:
    """Whether the prediction came so near."""
    predicted, measured = row.params["predicted"], row.params["measured"]
    return predicted is not None and abs(predicted / measured - 1) <= WITHIN


def programs(rows: list[Figure]) -> list[str]:
    """A line a program, and how many predictions hold."""
    holds = sum(map(is_within, rows))
    return [
        *table_as_markdown(program_table(rows)),
        "",
        f"Of {len(rows)} predictions {holds} are within {100 * WITHIN:.0f} % of the measured gain; "
        f"{len(rows[0].params['rounds'])} rounds.",
    ]


def costs(rows: list[Figure]) -> list[str]:
    """A line a form and size, the range of the medians, and how many are told from LITTLE."""
    medians = [_percent(row.params["ratio"]) for row in rows]
    said = (
        f"The medians lie between {min(medians):+.1f} and {max(medians):+.1f} %; "
        f"{sum(cost <= LITTLE for cost in medians)} of {len(medians)} are at most {LITTLE:g} %"
    )
    intervals = [row.params["ratio_interval"] for row in rows if "ratio_interval" in row.params]
    if len(intervals) == len(rows):
        low, high = ([_percent(interval[side]) for interval in intervals] for side in (0, 1))
        said += (
            f". By their intervals {sum(cost <= LITTLE for cost in high)} are surely at most that, "
            f"{sum(cost > LITTLE for cost in low)} surely more"
        )
    return [*table_as_markdown(cost_table(rows)), "", f"{said}."]


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
    """A line a form and size: an addition without a receipt and with one; what surely takes more than LITTLE has
    failed."""
    names = ("form", "float32", "addition", "noted", "median", "interval", "same again")
    table = Table("the cost of a receipt", columns(*names))
    for row in rows:
        interval, same = (row.params.get(name) for name in ("ratio_interval", "same_interval"))
        table.add(
            row.name,
            show_size(row.n),
            show_seconds(row.seconds or 0.0),
            show_seconds(row.params["noted_seconds"]),
            f"{_percent(row.params['ratio']):+.1f} %",
            _range(interval),
            _range(same),
            style=Style.FAILED if interval and _percent(interval[0]) > LITTLE else Style.PLAIN,
        )
    return table


def _range(ratios: Sequence[float] | None) -> str:
    """ "+0.1 to +2.3 %"; "-" where it is not recorded."""
    return " to ".join(f"{_percent(ratio):+.1f}" for ratio in ratios) + " %" if ratios else "-"


def _percent(ratio: float) -> float:
    return 100 * (ratio - 1)

"""Many small additions: seconds of one, and from how many repeats capturing a graph pays."""

from itertools import groupby

from vecadd.bench.tables import parts
from vecadd.figures import Figure
from vecadd.tables import Style, Table, columns, prose, show_gain, show_seconds, show_size

KINDS = ("independent", "chain")

_COLUMNS = columns(
    "rung",
    "adds",
    "one add",
    "gain",
    "GB/s",
    "% limit",
    "capture",
    "instantiate",
    "destroy",
    "pays after",
    prose("documents", 2),
    prose("what changed", 3),
)
_SPARE = ("documents", "what changed", "destroy", "instantiate", "capture")

NOTES = (
    "independent: as many segments, each added by its own launch; chain: out = a + b, then out + b again and again, "
    "each waiting for the one before",
    "one add: the whole set's time over its additions; gain: over launch_loop of the same round",
    "pays after: repeats from which capture, instantiate and destroy are earned back against launch_loop",
)


def tables(sweep: str, rows: list[Figure]) -> list[Table]:
    """Small additions by how they are launched, and when a graph pays."""
    table = Table(sweep, _COLUMNS, optional_columns=_SPARE)
    for (dtype, n, waits), cell in groupby(rows, key=lambda row: (row.dtype, row.n, chain(row))):
        table.add(f"{dtype} {show_size(n)} {KINDS[waits]}", style=Style.HEAD)
        previous = None
        for row in cell:
            table.add(
                row.name,
                *_figures(row),
                *parts.told(row.name, previous),
                style=parts.style(row),
            )
            previous = row.name
        table.add_gap()
    table.notes = [*NOTES, *parts.document_notes(rows)]
    return [table]


def gain(row: Figure) -> float | None:
    """The gain over launch_loop in the same rounds; 1 for launch_loop."""
    if row.name == "launch_loop" and row.seconds:
        return 1.0
    return 1 / row.params["ratio"] if "ratio" in row.params else None


def chain(row: Figure) -> int:
    """1 where each addition waits for the one before, 0 where they are independent."""
    return int(bool(row.params.get("parameters", {}).get("chain")))


def _figures(row: Figure) -> tuple[str, ...]:
    one, own_gain = row.params.get("seconds_per_add"), gain(row)
    return (
        str(row.params.get("parameters", {}).get("adds", "-")),
        show_seconds(one) if one and row.seconds else "failed" if row.error else "-",
        show_gain(own_gain) if own_gain else "-",
        parts.rate(row),
        parts.fraction(row),
        *(_maybe(row, key) for key in ("capture", "instantiate", "destroy")),
        break_even(row),
    )


def _maybe(row: Figure, key: str) -> str:
    value = row.params.get(key)
    return show_seconds(value) if value else "-"


def break_even(row: Figure) -> str:
    """From how many repeats a graph pays; "-" for rungs without a graph."""
    if "break_even" not in row.params:
        return "-"
    repeats = row.params["break_even"]
    return "never" if repeats is None else f"{repeats}"

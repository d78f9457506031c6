"""The table of additions of Zarr arrays, for the documents and for the terminal."""

from collections.abc import Sequence

from vecadd.bench.results import Row
from vecadd.tables import Table, columns, show_gain, show_seconds, table_as_markdown

REFERENCE = "vecadd, threads"


def stores(rows: list[Row]) -> list[str]:
    """What was added, and a line a contestant."""
    params = rows[0].params
    setting = (
        f"Two arrays of {params['mib']} MiB, {rows[0].dtype}, in chunks of {params['chunk']} by {params['chunk']}, "
        f"compressor {params['compressor']}; the clusters have {params['workers']} workers of one thread; "
        f"{len(params['samples'])} rounds."
    )
    return [setting, "", *table_as_markdown(table(rows))]


def table(rows: Sequence[Row], missing: Sequence[str] = ()) -> Table:
    """A line a contestant. ``missing`` names those that are not installed."""
    reference = next((row.seconds for row in rows if row.rung == REFERENCE), None)
    note = [f"not installed: {', '.join(missing)}"] if missing else []
    made = Table(
        "; ".join(["additions of Zarr arrays", *note]),
        columns("contestant", "time", "time / vecadd", "of the disk's speed", "peak a worker", "tasks"),
    )
    for row in rows:
        seconds = row.seconds or 0.0
        made.add(
            row.rung,
            show_seconds(seconds),
            show_gain(seconds / reference) if reference else "-",
            f"{100 * (row.fraction or 0.0):.0f} %",
            f"{row.params['peak'] / 1e6:.0f} MB",
            str(row.params["tasks"]),
        )
    return made

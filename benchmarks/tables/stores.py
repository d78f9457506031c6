"""The table of additions of Zarr arrays, for the documents and for the terminal."""

from collections.abc import Sequence
from statistics import median

from vecadd.figures import Figure
from vecadd.tables import Table, columns, show_gain, show_seconds, table_as_markdown

REFERENCE, DISK = "vecadd, threads", "the disk, moving as much"


def stores(rows: list[Figure]) -> list[str]:
    """What was added, and a line a contestant."""
    params = rows[0].params
    setting = (
        f"Two arrays of {params['mib']} MiB, {rows[0].dtype}, in chunks of {params['chunk']} by {params['chunk']}, "
        f"compressor {params['compressor']}; the clusters have {params['workers']} workers of one thread; "
        f"{len(params['samples'])} rounds."
    )
    return [setting, "", *table_as_markdown(table(rows))]


def table(rows: Sequence[Figure], missing: Sequence[str] = ()) -> Table:
    """A line a contestant. ``missing`` names those that are not installed."""
    reference = next((row.seconds for row in rows if row.name == REFERENCE), None)
    disk = next(row.params["samples"] for row in rows if row.name == DISK)
    note = [f"not installed: {', '.join(missing)}"] if missing else []
    made = Table(
        "; ".join(["additions of Zarr arrays", *note]),
        columns("contestant", "time", "time / vecadd", "of the disk's speed", "peak a worker", "tasks"),
    )
    for row in rows:
        seconds = row.seconds or 0.0
        made.add(
            row.name,
            show_seconds(seconds),
            show_gain(seconds / reference) if reference else "-",
            f"{100 * median(by / own for by, own in zip(disk, row.params['samples'], strict=True)):.0f} %",
            f"{row.params['peak'] / 1e6:.0f} MB",
            str(row.params["tasks"]),
        )
    return made

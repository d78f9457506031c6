"""What `vecadd profile` recorded of the documents' steps: kernels beside their profilers' figures, and transfers."""

from vecadd.bench import recorded
from vecadd.figures import Figure
from vecadd.profile import documents, metrics
from vecadd.profile.tables import NOTHING, show
from vecadd.profile.transfers import TITLES
from vecadd.tables import markdown, show_seconds, show_size

# Of a kernel, as far as they were recorded; and those that the documents' profilers name.
SHOWN = ("duration", "sm", "needed", "dram", "l2", "occupancy", "achieved", "registers", "block", "grid", "waves")
TOLD = ("duration", "dram", "memory", "sm", "l2", "achieved", "registers")
SHORT = {"duration": "time", "achieved": "occupancy", "registers": "registers", "sm": "SM", "dram": "DRAM", "l2": "L2"}


def kernels(rows: list[Figure]) -> list[str]:
    """A line a rung: the metrics that any of them has, and the documents' own."""
    rows = [row for row in rows if "metrics" in row.params]
    shown = [
        row for row in metrics.ROWS if row.key in SHOWN and any(row.key in each.params["metrics"] for each in rows)
    ]
    shown.sort(key=lambda row: SHOWN.index(row.key))
    lines = [
        [
            row.name,
            show_size(row.n),
            *(show(row.params["metrics"].get(each.key), each.unit) for each in shown),
            _documents(row.name),
        ]
        for row in rows
    ]
    heads = ["rung", "n", *(row.title for row in shown), "the documents' profilers"]
    return markdown(heads, lines, [False, *[True] * (len(heads) - 2), False])


def transfers(rows: list[Figure]) -> list[str]:
    """A line for each kind of step of a rung: how many, how long, their share, and how much they copied."""
    lines = []
    for row in rows:
        for index, part in enumerate(row.params.get("parts", ())):
            each = part["seconds"] / part["count"], part["least"], part["most"]
            lines.append(
                [
                    row.name if index == 0 else "",
                    TITLES.get(part["what"], part["what"]),
                    str(part["count"]),
                    show_seconds(part["seconds"]),
                    *map(show_seconds, each),
                    f"{100 * part['share']:.1f} %",
                    NOTHING if part["bytes"] is None else f"{part['bytes'] / 1e6:,.1f}",
                    NOTHING if part["gbps"] is None else f"{part['gbps']:.1f}",
                ]
            )
    heads = ["rung", "what", "count", "total", "average", "min", "max", "share", "MB", "GB/s"]
    return markdown(heads, lines, [False, False, *[True] * 8])


def _documents(rung: str) -> str:
    """ "000 (RTX 5060 Ti, 2^27): time 4.02 ms, DRAM 89.88 %"; nothing for a rung that no document profiled."""
    units = {row.key: row.unit for row in metrics.ROWS}
    told = []
    for setting, figures in documents.FIGURES.get(rung, {}).items():
        parts = [
            f"{SHORT.get(key, key)} {show(figures[key], units[key])}{' %' if units[key] == '%' else ''}"
            for key in TOLD
            if key in figures and not (key == "memory" and "dram" in figures)  # the same figure
        ]
        told.append(f"{setting} ({recorded.SETTINGS[setting]}): {', '.join(parts)}")
    return "; ".join(told)

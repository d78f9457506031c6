"""Profiles as tables for a terminal: metrics down, rungs across, the documents' figures beside their rung."""

from collections.abc import Mapping, Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table

from vecadd.bench import recorded
from vecadd.bench.tables import show_seconds
from vecadd.profile import documents, metrics, stalls
from vecadd.profile.ncu import Launch, Rule
from vecadd.profile.spec import Spec

SMALL = 0.01  # of the cycles: a reason below it in every rung is left out
NOTHING = "-"


def tables(launches: Mapping[Spec, Launch]) -> list[Table]:
    """The metrics, and the stall reasons where the profiler gave any."""
    shares = [stalls.of(launch.raw) for launch in launches.values()]
    return [_metrics(launches), *([_stalls([spec.rung for spec in launches], shares)] if any(shares) else [])]


def notes(launches: Mapping[Spec, Launch]) -> list[str]:
    """What the settings behind the documents' columns are, and the profiler's advice, a line each."""
    used = {setting for spec in launches for setting in documents.FIGURES.get(spec.rung, ())}
    lines = []
    if used:
        legend = "; ".join(f"{name} {recorded.SETTINGS[name]}" for name in sorted(used))
        lines.append(f"the documents' columns: {legend}; other GPUs and, where they differ, other sizes than here")
    for spec, launch in launches.items():
        lines += [f"{spec.rung}: {_advice(rule)}" for rule in launch.rules]
    return lines


def show(value: float | None, unit: metrics.Unit) -> str:
    """A metric as people read it; "-" where there is none."""
    if value is None:
        return NOTHING
    if unit == "seconds":
        return show_seconds(value)
    if unit in ("%", "number"):
        return f"{value:.2f}"
    return f"{value:,.0f}" + (" B" if unit == "bytes" else "")


def _metrics(launches: Mapping[Spec, Launch]) -> Table:
    table = Table(box=SIMPLE_HEAD, title="metrics", title_justify="left", title_style="bold")
    table.add_column("metric", no_wrap=True)
    columns: list[tuple[Mapping[str, float], str, str]] = []
    for spec, launch in launches.items():
        table.add_column(spec.rung, justify="right", overflow="fold")
        executed = launch.executed
        loads = f"{sum(executed.values()):,}" if executed else NOTHING
        columns.append((metrics.of(launch.raw), ", ".join(executed) or NOTHING, loads))
        for setting, figures in documents.FIGURES.get(spec.rung, {}).items():
            table.add_column(f"({setting})", justify="right", style="dim", overflow="fold")
            columns.append((figures, documents.LOADS.get(spec.rung, {}).get(setting, NOTHING), NOTHING))
    for row in metrics.ROWS:
        table.add_row(row.title, *(show(figures.get(row.key), row.unit) for figures, _, _ in columns))
    table.add_row("load instructions (of warps)", *(count for _, _, count in columns))
    table.add_row("kind of load", *(kind for _, kind, _ in columns))
    return table


def _stalls(rungs: Sequence[str], shares: Sequence[Mapping[str, float]]) -> Table:
    """The reasons that take a share worth a line, the greatest first, those that sum up others ahead of these."""
    table = Table(
        box=SIMPLE_HEAD,
        title="why warps wait, % of their cycles",
        title_justify="left",
        title_style="bold",
        expand=True,
    )
    table.add_column("reason", no_wrap=True)
    for rung in rungs:
        table.add_column(rung, justify="right", no_wrap=True)
    table.add_column("cause", ratio=1)
    table.add_column("direction", ratio=1)
    rows = [(reason, [stalls.share(reason, share) for share in shares]) for reason in stalls.REASONS]
    for reason, values in sorted(rows, key=lambda row: -max(value or 0.0 for value in row[1])):
        if max(value or 0.0 for value in values) >= SMALL:
            table.add_row(reason.title, *map(_percent, values), reason.cause, reason.direction)
    table.add_row("none: issuing", *(_percent(share.get(stalls.WORKING)) for share in shares), "", "")
    return table


def _percent(share: float | None) -> str:
    return NOTHING if share is None else f"{100 * share:.1f}"


def _advice(rule: Rule) -> str:
    gain = f", up to {rule.speedup:.3g} % faster" if rule.speedup else ""
    return f"{rule.section} ({rule.kind}{gain}): {rule.message}"

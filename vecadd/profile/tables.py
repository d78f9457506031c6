"""Profiles as tables: metrics down, rungs across, the documents' figures beside their rung."""

from collections.abc import Mapping, Sequence

from vecadd.bench import recorded
from vecadd.profile import metrics
from vecadd.profile.child import ProfiledRung
from vecadd.profile.events import TITLES, Link, Transfer
from vecadd.profile.ncu import Launch, Rule
from vecadd.tables import Column, Table, columns, prose, show_seconds, show_size

SMALL = 0.01  # of the cycles: a reason below it in every rung is left out
NOTHING = "-"


def kernel_tables(launches: Mapping[ProfiledRung, Launch]) -> list[Table]:
    """The metrics, and the stall reasons where the profiler gave any."""
    shares = [metrics.stall_shares(launch.raw) for launch in launches.values()]
    return [
        _metrics_table(launches),
        *([_stalls_table([spec.rung for spec in launches], shares)] if any(shares) else []),
    ]


def kernel_notes(launches: Mapping[ProfiledRung, Launch]) -> list[str]:
    """The settings of the documents' columns, and the profiler's advice, a line each."""
    rungs = [spec.rung for spec in launches]
    profiles = [profile for profile in recorded.PROFILES if profile.rung in rungs]
    lines = []
    if profiles:
        legend = recorded.legend(profile.setting for profile in profiles)
        lines.append(f"the documents' columns: {legend}; other GPUs and, where they differ, other sizes than here")
    for spec, launch in launches.items():
        lines += [
            f"{spec.rung}: document {profile.setting} saw most of its warps wait: {profile.stall}"
            for profile in profiles
            if profile.rung == spec.rung and profile.stall
        ]
        lines += [f"{spec.rung}: {_show_rule(rule)}" for rule in launch.rules]
    reasons = dict.fromkeys(launch.why for launch in launches.values() if launch.why)
    return lines + [f"no counters, and times by CUDA events: {why}" for why in reasons]


def transfer_tables(transfers: Mapping[ProfiledRung, Transfer], link: Link) -> list[Table]:
    """What the copies and kernels of each rung take."""
    return [_parts_table(transfers, link), _each_table(transfers)]


def transfer_notes(link: Link) -> list[str]:
    """Where the link's rates come from, and what the documents saw."""
    lines = [f"the link: {_gbps(link.to_device)} GB/s up and {_gbps(link.to_host)} GB/s down by probes of this run"]
    if link.theory:
        lines[0] += f"; {link.theory:.1f} GB/s each way in theory ({link.name})"
    return [*lines, f"the documents: {recorded.PROFILED_PROGRAM}"]


def show_metric(value: float | None, unit: metrics.Unit) -> str:
    """A metric as text; "-" for None."""
    if value is None:
        return NOTHING
    if unit == "seconds":
        return show_seconds(value)
    if unit in ("%", "number"):
        return f"{value:.2f}"
    return f"{value:,.0f}" + (" B" if unit == "bytes" else "")


def _metrics_table(launches: Mapping[ProfiledRung, Launch]) -> Table:
    names = ["metric"]
    figures_of: list[tuple[Mapping[str, float], str, str]] = []
    elements: list[str] = []
    for spec, launch in launches.items():
        names.append(spec.rung)
        elements.append(show_size(spec.n))
        executed = launch.executed
        loads = f"{sum(executed.values()):,}" if executed else NOTHING
        figures_of.append((launch.found, ", ".join(executed) or NOTHING, loads))
        for profile in recorded.PROFILES:
            if profile.rung == spec.rung:
                names.append(f"({profile.setting})")
                figures_of.append((profile.metrics, profile.load or NOTHING, NOTHING))
                elements.append(show_size(profile.elements or recorded.SETTINGS[profile.setting].elements or 0))
    documented = sorted({name for name in names if name.startswith("(")}, reverse=True)
    table = Table("metrics", columns(*names), optional_columns=tuple(documented))
    table.add("elements", *elements)
    for row in metrics.ROWS:
        if not any(row.key in figures for figures, _, _ in figures_of):
            continue
        table.add(row.title, *(show_metric(figures.get(row.key), row.unit) for figures, _, _ in figures_of))
    table.add("load instructions (of warps)", *(count for _, _, count in figures_of))
    table.add("kind of load", *(kind for _, kind, _ in figures_of))
    return table


def _stalls_table(rungs: Sequence[str], shares: Sequence[Mapping[str, float]]) -> Table:
    """The reasons of at least SMALL, the greatest first, with sums ahead of the reasons that they add up."""
    sentences = [prose(name) for name in ("cause", "direction")]
    table = Table(
        "why warps wait, % of their cycles",
        columns("reason", *rungs, *sentences),
        optional_columns=("direction", "cause"),
    )
    rows = [(reason, [metrics.share_of_reason(reason, share) for share in shares]) for reason in metrics.REASONS]
    for reason, values in sorted(rows, key=lambda row: -max(value or 0.0 for value in row[1])):
        if max(value or 0.0 for value in values) >= SMALL:
            table.add(reason.title, *map(_percent, values), reason.cause, reason.direction)
    table.add("none: issuing", *(_percent(share.get(metrics.WORKING)) for share in shares))
    return table


def _parts_table(transfers: Mapping[ProfiledRung, Transfer], link: Link) -> Table:
    names = ("count", "seconds", "share %", "MB", "GB/s", "% of link", "% of theory")
    table = Table(
        "copies and kernels of one run",
        columns("rung", Column("what", right=False), *names),
        optional_columns=("% of theory", "count", "% of link"),
    )
    for spec, transfer in transfers.items():
        if not transfer.parts:
            table.add(spec.rung, "nothing by the GPU")
        for index, part in enumerate(transfer.parts):
            measured = {"to_device": link.to_device, "to_host": link.to_host}.get(part.what)
            table.add(
                spec.rung if index == 0 else "",
                TITLES.get(part.what, part.what),
                str(part.count),
                show_seconds(part.seconds),
                f"{100 * transfer.share(part):.1f}",
                NOTHING if part.bytes is None else f"{part.bytes / 1e6:,.1f}",
                _gbps(part.gbps),
                _percent(part.gbps / measured if part.gbps and measured else None),
                _percent(part.gbps / link.theory if part.gbps and link.theory else None),
            )
        table.add_gap()
    return table


def _each_table(transfers: Mapping[ProfiledRung, Transfer]) -> Table:
    """How long one copy, kernel, allocation or release took."""
    names = ("count", "average", "median", "min", "max")
    table = Table(
        "each copy and kernel", columns("rung", Column("what", right=False), *names), optional_columns=("median",)
    )
    for spec, transfer in transfers.items():
        for index, part in enumerate(transfer.parts):
            shown = map(show_seconds, (part.seconds / part.count, part.median, part.least, part.most))
            title = TITLES.get(part.what, part.what)
            table.add(spec.rung if index == 0 else "", title, str(part.count), *shown)
        table.add_gap()
    return table


def _gbps(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.1f}"


def _percent(share: float | None) -> str:
    return NOTHING if share is None else f"{100 * share:.1f}"


def _show_rule(rule: Rule) -> str:
    gain = f", up to {rule.speedup:.3g} % faster" if rule.speedup else ""
    return f"{rule.section} ({rule.kind}{gain}): {rule.message}"

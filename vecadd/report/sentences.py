"""What the figures of a run say, in words."""

from collections.abc import Callable, Sequence
from typing import Any

from vecadd.bench import machine, opening
from vecadd.bench.axes import show_size
from vecadd.bench.results import Row
from vecadd.bench.show import show_rate, show_seconds
from vecadd.bench.tables.table import Table, columns
from vecadd.bench.transfers import round_trips_of
from vecadd.fleet.checks import Check

NEAR = 0.9  # of the limit, or of the best rate
CALL = "add"  # vecadd.add among the rungs


def limits(meta: dict[str, Any], rows: Sequence[Row]) -> list[str]:
    """What memory, link and launches allow, by the probes of the runs."""
    return [_sentence(line) for line in opening.lines(meta, rows)[1:-1]]


def theory(meta: dict[str, Any]) -> Table:
    """The probed rates beside what clock, bus, generation and width give."""
    table = Table("Probed rates beside theory", columns("what", "GB/s", "theory", "% of theory"))
    gpu, probed = (meta["gpu"] or [{}])[0], meta["limits"]
    memory = gpu.get("bandwidth")
    link = machine.link_theory(gpu.get("link_generation_max"), gpu.get("link_width_max"))
    for what, group, key, most in (
        ("device memory, reading", "device", "read_gbps", memory),
        ("device memory, writing", "device", "write_gbps", memory),
        ("device memory, an addition", "device", "gbps", memory),
        ("link, to the device", "link", "to_device_gbps", link),
        ("link, to the host", "link", "to_host_gbps", link),
        ("link, both ways at once", "link", "both_gbps", link and 2 * link),
    ):
        rate = probed.get(group, {}).get(key)
        if rate and most:
            table.add(what, show_rate(rate), show_rate(most / 1e9), f"{100e9 * rate / most:.0f}")
    return table


def ladder(rows: Sequence[Row]) -> list[str]:
    """The fastest and the slowest rung at the largest size, and how many come near the limit."""
    here = _largest(rows)
    if not here:
        return []
    best, worst = max(here, key=_rate), min(here, key=_rate)
    near = list(dict.fromkeys(row.rung for row in here if (row.fraction or 0.0) >= NEAR))
    lines = [
        f"At {show_size(best.n)} elements of {best.dtype} {best.label} is the fastest rung: {_of_limit(best)}. "
        f"The slowest that was timed there is {worst.label}: {_of_limit(worst)}."
    ]
    if near:
        lines.append(
            f"{len(near)} of {len({row.rung for row in here})} rungs reach 90 % of the limit: {', '.join(near)}."
        )
    return lines


def sizes(rows: Sequence[Row]) -> list[str]:
    """From which size on vecadd.add is near its best rate, on the GPU and on the host, and beside NumPy."""
    lines = []
    for sweep, where in (("size", "In device memory"), ("host", "On the host")):
        own = [row for row in rows if row.sweep == sweep and row.rung == CALL and row.gbps]
        for dtype in dict.fromkeys(row.dtype for row in own):
            some = [row for row in own if row.dtype == dtype]
            best = max(some, key=_rate)
            first = min((row for row in some if _rate(row) >= NEAR * _rate(best)), key=lambda row: row.n)
            lines.append(
                f"{where} vecadd.add of {dtype} is fastest at {show_size(best.n)} elements, {_of_limit(best)}; the "
                f"smallest size with 90 % of that rate is {show_size(first.n)}."
            )
            other = {row.n: row for row in rows if (row.sweep, row.rung, row.dtype) == (sweep, "numpy", dtype)}
            ratios = {row.n: _ratio(other[row.n], row) for row in some if row.n in other and other[row.n].seconds}
            if ratios:
                most, least = (each(ratios, key=lambda n: ratios[n]) for each in (max, min))
                lines.append(
                    f"NumPy takes {ratios[least]:.3g} times as long at {show_size(least)} elements and "
                    f"{ratios[most]:.3g} times at {show_size(most)}, the least and the most."
                )
    return lines


def transfers(rows: Sequence[Row]) -> list[str]:
    """The fastest round trip at the largest size, and the fastest one of each kind of memory."""
    here = _largest(round_trips_of(rows))
    if not here:
        return []
    best = max(here, key=_rate)
    lines = [
        f"From host memory through the GPU and back, {show_size(best.n)} elements of {best.dtype}: {best.label} is the "
        f"fastest way, {_of_limit(best)}."
    ]
    for memory in dict.fromkeys(str(row.params.get("memory")) for row in here):
        some = [row for row in here if str(row.params.get("memory")) == memory]
        fastest = max(some, key=_rate)
        lines.append(f"With {memory} memory the fastest is {fastest.rung}, at {show_rate(_rate(fastest))} GB/s.")
    return lines


def latency(rows: Sequence[Row]) -> list[str]:
    """What the smallest addition costs in a loop of launches and by the cheapest way."""
    single = [row for row in rows if row.seconds and not row.params.get("parameters", {}).get("chain")]
    if not single:
        return []
    smallest = min(row.n for row in single)
    each = {row.rung: float(row.params["seconds_per_add"]) for row in single if row.n == smallest}
    best = min(each, key=lambda rung: each[rung])
    cost = show_seconds(each[best])
    line = f"Of many independent additions of {show_size(smallest)} elements each takes {cost} by {best}"
    plain = each.get("launch_loop")
    return [f"{line}, and {show_seconds(plain)} in a loop of launches." if plain else f"{line}."]


def peers(rows: Sequence[Row]) -> list[str]:
    """Of each comparison, how many times are surely longer than ours, surely shorter, or neither."""
    lines = []
    for sweep in dict.fromkeys(row.sweep for row in rows):
        others = [
            row.params
            for row in rows
            if row.sweep == sweep
            and row.seconds
            and "ratio_interval" in row.params
            and not row.rung.startswith("vecadd")
        ]
        if others:
            references = {str(params.get("reference")) for params in others}
            whose = f"that of {references.pop()}" if len(references) == 1 else "those that they are compared with"
            longer = sum(low > 1 for low, _ in (params["ratio_interval"] for params in others))
            shorter = sum(high < 1 for _, high in (params["ratio_interval"] for params in others))
            lines.append(
                f"{sweep}: of {len(others)} times beside {whose}, {longer} are surely longer, {shorter} surely "
                f"shorter, and {len(others) - longer - shorter} level."
            )
    return lines


def conditions(meta: dict[str, Any], check: Check | None) -> list[str]:
    """What else used the machine, and what its check says."""
    lines = []
    if meta:
        lines.append(_sentence(f"conditions: {machine.describe(meta['contamination'], gpu=bool(meta['gpu']))}"))
    if check:
        counts = {severity: sum(finding.severity == severity for finding in check.findings) for severity in _SEVERE}
        found = ", ".join(f"{count} {severity}" for severity, count in counts.items() if count) or "nothing to report"
        lines.append(f"The check of {check.time:%Y-%m-%d %H:%M} on {check.host}: {check.status}; {found}.")
    return lines


_SEVERE = ("critical", "warning", "info", "unknown")
Sentences = Callable[[Sequence[Row]], list[str]]


def _largest(rows: Sequence[Row]) -> list[Row]:
    """The rows with a rate at the largest size that has one, of the first dtype."""
    timed = [row for row in rows if row.gbps and row.checked]
    timed = [row for row in timed if row.dtype == timed[0].dtype]
    return [row for row in timed if row.n == max(each.n for each in timed)]


def _rate(row: Row) -> float:
    return row.gbps or 0.0


def _ratio(row: Row, reference: Row) -> float:
    return (row.seconds or 0.0) / (reference.seconds or 1.0)


def _of_limit(row: Row) -> str:
    share = "" if row.fraction is None else f", {100 * row.fraction:.3g} % of the limit"
    return f"{show_rate(_rate(row))} GB/s{share}"


def _sentence(line: str) -> str:
    return f"{line[:1].upper()}{line[1:]}."

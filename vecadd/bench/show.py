"""Figures as text."""

from collections.abc import Mapping

_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))

# Units of time in result files, in seconds.
SECONDS: Mapping[str, float] = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_BEFORE = {"generation": "PCIe ", "lanes": "x"}  # units that stand before the figure
_LONG = 1e5  # from here on with commas


def show_seconds(seconds: float) -> str:
    """Three significant digits and the unit: "735 us"."""
    scale, unit = next(((s, u) for s, u in _UNITS if seconds >= s), _UNITS[-1])
    return f"{seconds / scale:.3g} {unit}" if seconds / scale < 999.5 else f"{seconds / scale:.0f} {unit}"


def show_rate(gbps: float) -> str:
    """GB/s with three significant digits and no exponent: "4462", "38.6"."""
    return f"{gbps:.0f}" if gbps >= 100 else f"{gbps:.3g}"


def show_gain(gain: float) -> str:
    """How many times as fast: "1.26 x"."""
    return f"{gain:.0f} x" if gain >= 100 else f"{gain:.3g} x"


def show_figure(value: float | None, unit: str) -> str:
    """A figure in any unit of a result file: "735 us", "38.6 GB/s", "PCIe 5", "65,536,000 bytes"; "-" for None."""
    if value is None:
        return "-"
    if unit in SECONDS:
        return show_seconds(value * SECONDS[unit]) if value > 0 else f"{value:g} {unit}"
    if unit in _BEFORE:
        return f"{_BEFORE[unit]}{value:.0f}"
    if unit == "GB/s":
        return f"{show_rate(value)} {unit}"
    shown = f"{value:.4g}" if abs(value) < _LONG else f"{value:,.0f}"
    return shown if unit in ("", "1") else f"{shown} {unit}"


def show_bounds(low: float | None, high: float | None, unit: str) -> str:
    """What a figure should be: "at least 45 GB/s"; None for an end that is open, "-" where both are."""
    ends = [
        f"{words} {show_figure(end, unit)}" for words, end in (("at least", low), ("at most", high)) if end is not None
    ]
    return ", ".join(ends) or "-"

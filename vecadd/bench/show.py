"""Figures as text."""

_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))


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

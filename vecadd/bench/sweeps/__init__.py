"""The sweeps, a file each: which contestants meet at which sizes, against which limit, and which table and picture are
made of the rows. To add one, write a file with a SWEEP and give its name here."""

from importlib import import_module

from vecadd.bench.sweeps.sweep import ON_DEVICE, ON_THE_WAY, Machine, Sweep, grid

__all__ = ["ON_DEVICE", "ON_THE_WAY", "SWEEPS", "Machine", "Sweep", "grid"]

_NAMES = (
    "host",
    "size",
    "ladder",
    "inflight",
    "blocksize",
    "precision",
    "transfer",
    "latency",
    "transpose",
    "sgemm",
    "documents",
)

SWEEPS: dict[str, Sweep] = {name: import_module(f"{__name__}.{name}").SWEEP for name in _NAMES}

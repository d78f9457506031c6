"""The sweeps, a file each: which contestants meet at which sizes, against which limit, and which table and picture are
made of the figures. To add one, write a file with a SWEEP and give its name here."""

from importlib import import_module

from vecadd.bench.run import Sweep

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

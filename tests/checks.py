"""What the tests of vecadd check share: an H200 that is made up, and files of earlier checks."""

import json
from pathlib import Path

from vecadd import _machine

H200 = _machine.Gpu(
    index=0, name="NVIDIA H200", compute_capability="9.0", multiprocessors=132, clock=1.98e9,
    threads_per_multiprocessor=2048, blocks_per_multiprocessor=32, registers_per_multiprocessor=65536,
    shared_per_multiprocessor=233472, shared_reserved=1024, memory=150_110_011_392, l2=62_914_560,
    bandwidth=4.814304e12, ecc=True, link_generation=5, link_width=16, link_generation_max=5, link_width_max=16,
)  # fmt: skip


def earlier(path: Path, **figures: tuple[str, str, float]) -> Path:
    """A file of an earlier check: kind, name and figure of its rows."""
    rows = [{"kind": kind, "name": name, "gpu": 0, "median": value} for kind, name, value in figures.values()]
    path.write_text(json.dumps({"meta": {"machine": "elsewhere"}, "rows": rows}))
    return path

"""The rows of each place: every case by every way to add there.

The program's own file has none of this: a process that is spawned to prove another SIMD level cannot import it.
"""

import multiprocessing
import os
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

from benchmarks.proof import device_ways, host_ways
from benchmarks.proof.cases import cases
from benchmarks.proof.ways import Row, Way, prove
from vecadd import _core


class Part(NamedTuple):
    """What of a proof is made: ``lefts`` and ``dtypes`` bound the left operands, ``limit`` the seconds of a way."""

    lefts: int | None
    dtypes: Sequence[str] | None
    limit: float


def host(level: str, part: Part) -> list[Row]:
    """The host's rows at a SIMD level: a process chooses its level once, so this takes one of its own."""
    if level == _core.host_facts()["simd"]:
        return _host_here(part)
    before = os.environ.get("VECADD_SIMD")
    os.environ["VECADD_SIMD"] = level
    try:
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as executor:
            return executor.submit(_host_here, part).result()
    finally:
        if before is None:
            del os.environ["VECADD_SIMD"]
        else:
            os.environ["VECADD_SIMD"] = before


def device(part: Part) -> Iterator[Row]:
    """The rows of a GPU, one by one."""
    return _proven(part, device_ways.ways())


def _host_here(part: Part) -> list[Row]:
    """The host's rows at this process's SIMD level."""
    return list(_proven(part, host_ways.ways()))


def _proven(part: Part, ways: Sequence[Way]) -> Iterator[Row]:
    """The rows of every case; a line on standard error tells of each that vecadd adds."""
    for case in cases(part.lefts):
        if part.dtypes is None or case.a.name in part.dtypes:
            begun = time.perf_counter()
            yield from (rows := list(prove(case, ways, part.limit)))
            note = f"{case.a} + {case.b}, {case.out}: {len(case.lefts) * case.rights:,} pairs, {len(rows)} ways"
            if rows:
                print(f"{note}, {time.perf_counter() - begun:.1f} s", file=sys.stderr, flush=True)

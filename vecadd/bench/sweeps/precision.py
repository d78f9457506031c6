"""Half the bytes an element, beside the processor, which adds its own arrays: every dtype in turn at each size."""

from argparse import ArgumentTypeError
from collections.abc import Iterator
from typing import Any

import numpy as np

from vecadd import _core
from vecadd.bench.contestants import device_rung, numpy_add
from vecadd.bench.options import Options, find_dtype
from vecadd.bench.probes import HostLimit
from vecadd.bench.run import DEFAULT_SIZES, EVENTS, HOST_SETS, ON_DEVICE, Machine, Sweep
from vecadd.bench.timing import Cell
from vecadd.figures import Figure

DTYPES = ("float32", "float16", "bfloat16")
BRIEF_SIZES = (2**10, 2**14, 2**20, 2**24)


def cells(options: Options, machine: Machine) -> Iterator[Cell]:
    """At each size and dtype numpy.add, and then the rungs of the GPU: the dtype's own, then the ladder's."""
    dtypes = _choose_dtypes(options, machine)
    rungs = sorted(_core.rungs(), key=lambda rung: str(rung["family"]), reverse=True)
    for n in options.choose_sizes(DEFAULT_SIZES, BRIEF_SIZES):
        for dtype in dtypes:
            yield Cell(dtype, n, [numpy_add()], HostLimit(), HOST_SETS)
            every = [
                device_rung(rung, machine.gpu, dtype, n, block=options.block)
                for rung in rungs
                if machine.runs(rung, dtype) and (rung["family"] == "precision" or rung["name"] in _ladder_rungs(dtype))
            ]
            yield Cell(
                dtype,
                n,
                every,
                machine.device_limit,
                add_derived=lambda figures: _add_launch_share(figures, machine.limits("launch")["kernel_seconds"]),
            )


def _choose_dtypes(options: Options, machine: Machine) -> list[np.dtype[Any]]:
    """The dtypes asked for, or those of the sweep without the one that needs a package which is not there."""
    if options.dtypes is not None:
        return [find_dtype(name) for name in options.dtypes]
    found = []
    for name in DTYPES:
        try:
            found.append(find_dtype(name))
        except ArgumentTypeError as error:
            machine.missing.append(f"precision {name}: {error}")
    return found


def _ladder_rungs(dtype: np.dtype[Any]) -> tuple[str, ...]:
    """The rungs of the ladder that are run beside the precision rungs of a dtype, or in place of such rungs."""
    name = str(dtype)
    has_own = any(rung["family"] == "precision" and name in rung["dtypes"] for rung in _core.rungs())
    return ("tuned",) if has_own else ("naive", "float4")


def _add_launch_share(figures: list[Figure], empty: float) -> list[Figure]:
    return [figure.with_params(launch_share=empty / figure.seconds) if figure.seconds else figure for figure in figures]


SWEEP = Sweep(
    "precision",
    cells,
    f"{EVENTS}; numpy around the Python call, on the host's own arrays",
    probes=ON_DEVICE,
    dtypes=DTYPES,
    tables="vecadd.bench.tables.precision",
    plot="vecadd.bench.plots.precision",
    roofline="precision-roofline",
)

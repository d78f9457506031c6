"""Half the bytes an element, beside the processor, which adds its own arrays: every dtype in turn at each size."""

from argparse import ArgumentTypeError
from collections.abc import Iterator
from typing import Any

import numpy as np

from vecadd import _core
from vecadd.bench import contestants, ladder, limits
from vecadd.bench.axes import DEFAULT_SIZES, Axes, dtype_named
from vecadd.bench.sweeps.sweep import EVENTS, HOST_SETS, ON_DEVICE, Machine, Sweep, device_rung, wanted
from vecadd.bench.timing import Cell
from vecadd.figures import Figure


def cells(axes: Axes, machine: Machine) -> Iterator[Cell]:
    """Half the bytes an element, beside the processor, which adds its own arrays: every dtype in turn at each size."""
    machine.probe(*ON_DEVICE)
    dtypes = _precise_dtypes(axes, machine)
    for n in axes.sizes_of(DEFAULT_SIZES, ladder.PRECISION_BRIEF_SIZES):
        for dtype in dtypes:
            processor = wanted(axes, [contestants.numpy_add()])
            yield Cell("precision", dtype, n, processor, limits.HostLimit(), HOST_SETS)
            rungs = sorted(_core.rungs(), key=lambda rung: str(rung["family"]), reverse=True)  # its own, then others
            every = [
                device_rung(axes, machine, rung, dtype, n)
                for rung in rungs
                if machine.runs(rung, dtype) and (rung["family"] == "precision" or rung["name"] in _beside(dtype))
            ]
            yield Cell(
                "precision",
                dtype,
                n,
                wanted(axes, every),
                limits.FixedLimit(machine.device_limit),
                machine.sets(3 * n * dtype.itemsize),
                derive=lambda rows: _add_launch_share(rows, machine.launches["kernel_seconds"]),
            )


def _precise_dtypes(axes: Axes, machine: Machine) -> list[np.dtype[Any]]:
    """The dtypes asked for, or those of the sweep without the one that needs a package which is not there."""
    if axes.dtypes is not None:
        return [dtype_named(name) for name in axes.dtypes]
    found = []
    for name in ladder.PRECISION_DTYPES:
        try:
            found.append(dtype_named(name))
        except ArgumentTypeError as error:
            machine.missing.append(f"precision {name}: {error}")
    return found


def _beside(dtype: np.dtype[Any]) -> tuple[str, ...]:
    """The rungs that stand beside the precision rungs of a dtype, or in their place where there are none."""
    name = str(dtype)
    has_own = any(rung["family"] == "precision" and name in rung["dtypes"] for rung in _core.rungs())
    return ("tuned",) if has_own else ("naive", "float4")


def _add_launch_share(figures: list[Figure], empty: float) -> list[Figure]:
    return [figure.with_params(launch_share=empty / figure.seconds) if figure.seconds else figure for figure in figures]


SWEEP = Sweep(
    "precision",
    cells,
    f"{EVENTS}; numpy around the Python call, on the host's own arrays",
    dtypes=ladder.PRECISION_DTYPES,
    tables="vecadd.bench.tables.precision",
    plot="vecadd.bench.plots.precision",
    roofline="precision-roofline",
)

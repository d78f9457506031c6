"""The sweeps, a file each: which contestants meet at which sizes, against which limit, and which tables and pictures
are made of the figures."""

from collections.abc import Iterable
from importlib import import_module
from itertools import groupby

from vecadd.bench import layout, plot
from vecadd.bench.plot import Drawing, Picture
from vecadd.bench.run import Sweep
from vecadd.figures import Figure, Run
from vecadd.tables import Table

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


def make_tables(figures: Iterable[Figure]) -> list[Table]:
    """The tables of each sweep, in the order of the figures; plain ones of what is no sweep, such as the peers'."""
    found = []
    for name, group in groupby(figures, key=lambda figure: figure.sweep):
        tables = SWEEPS[name].tables if name in SWEEPS else layout.plain_tables
        if isinstance(tables, str):
            found += import_module(tables).tables(name, list(group))
        else:
            found += tables(list(group))
    return found


def list_pictures(run: Run) -> dict[str, Picture]:
    """The pictures of a run by name, not drawn yet. Sweeps without a timed figure, and sweeps without a picture, have
    none."""
    found: dict[str, Picture] = {}
    for name, sweep in SWEEPS.items():
        of_sweep = run.of_sweep(name)
        if sweep.plot is not None:
            from vecadd.bench import plots

            found |= plots.old_pictures(of_sweep, sweep)
        else:
            found |= {picture.name: picture for picture in sweep.pictures(of_sweep)}
    return found


def draw_run(run: Run) -> dict[str, Drawing]:
    """The pictures of a run by name. Needs matplotlib."""
    return {name: plot.draw(picture, run) for name, picture in list_pictures(run).items()}


def draw_picture(run: Run, name: str) -> Drawing | None:
    """The picture of that name, drawn alone: drawing all of the transfers' takes eight seconds."""
    picture = list_pictures(run).get(name)
    return plot.draw(picture, run) if picture else None

"""The sweeps, a file each: which contestants meet at which sizes, against which limit, and which tables and pictures
are made of the figures."""

from collections.abc import Iterable
from itertools import groupby

from vecadd.bench import layout, plot
from vecadd.bench.plot import Drawing, Picture
from vecadd.bench.run import Sweep
from vecadd.bench.sweeps import (
    blocksize,
    documents,
    host,
    inflight,
    ladder,
    latency,
    matrices,
    precision,
    size,
    transfer,
)
from vecadd.figures import Figure, Run
from vecadd.tables import Table

SWEEPS: dict[str, Sweep] = {
    sweep.name: sweep
    for sweep in (
        host.SWEEP,
        size.SWEEP,
        ladder.SWEEP,
        inflight.SWEEP,
        blocksize.SWEEP,
        precision.SWEEP,
        transfer.SWEEP,
        latency.SWEEP,
        matrices.TRANSPOSE,
        matrices.SGEMM,
        documents.SWEEP,
    )
}


def make_tables(figures: Iterable[Figure]) -> list[Table]:
    """The tables of each sweep, in the order of the figures; plain tables for figures of no sweep, such as the
    peers'."""
    found = []
    for name, group in groupby(figures, key=lambda figure: figure.sweep):
        found += (SWEEPS[name].tables if name in SWEEPS else layout.plain_tables)(list(group))
    return found


def list_pictures(run: Run) -> dict[str, Picture]:
    """The pictures of a run by name, not drawn yet. Sweeps without a timed figure, and sweeps without a picture, have
    none."""
    timed = {figure.sweep for figure in run.figures if figure.seconds}
    return {
        picture.name: picture
        for name, sweep in SWEEPS.items()
        if name in timed
        for picture in sweep.pictures(run.of_sweep(name))
    }


def draw_run(run: Run) -> dict[str, Drawing]:
    """The pictures of a run by name. Needs matplotlib."""
    return {name: plot.draw(picture, run) for name, picture in list_pictures(run).items()}


def draw_picture(run: Run, name: str) -> Drawing | None:
    """The picture of that name, drawn alone: drawing all of the transfers' takes eight seconds."""
    picture = list_pictures(run).get(name)
    return plot.draw(picture, run) if picture else None

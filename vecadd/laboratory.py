"""The notebooks' helper: measures a sweep where there is a GPU, else reads a sweep recorded on one.

    >>> from vecadd import laboratory
    >>> ladder = laboratory.measure("ladder", dtypes=("float32",))
    ladder: recorded on NVIDIA H200, 2026-11-20, commit 6191fcc006fe (no GPU here: no CUDA driver is loaded)
    >>> ladder.picture()
    >>> meta, rows, recorded = ladder

Needs ``pip install 'vecadd[notebook]'`` for the pictures. With VECADD_RECORDED=1 in the environment nothing is measured
even where there is a GPU.
"""

import io
import os
from argparse import ArgumentTypeError
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import inf, isfinite
from numbers import Real
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from vecadd import _carried, _core, ladder
from vecadd._command import unknown
from vecadd._machine import Info
from vecadd.bench import machine, plot
from vecadd.bench import options as bench_options
from vecadd.bench.options import Options
from vecadd.bench.run import Session
from vecadd.bench.sweeps import SWEEPS, draw_picture
from vecadd.figures import Figure, Run, read_run, show_date
from vecadd.info import info
from vecadd.model import Limits, predict
from vecadd.model.theory import has_defaults
from vecadd.tables import show_gain, show_rate, show_seconds, show_size

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

    from vecadd.code import Code

__all__ = ["Measured", "Picture", "code", "diagram", "guess", "measure", "percent", "shown", "times"]

SECONDS = 0.5  # of timed work a cell: a notebook is read while it runs, a recorded run has 2


@dataclass(frozen=True)
class Measured:
    """What a sweep gave, here or when it was recorded; ``meta, rows, recorded = measured`` takes it apart."""

    sweep: str
    run: Run

    @property
    def meta(self) -> Mapping[str, Any]:
        """Where, when and how it was measured."""
        return self.run.meta

    @property
    def rows(self) -> Sequence[Figure]:
        """The figures."""
        return self.run.figures

    @property
    def recorded(self) -> bool:
        """Whether it was read from a file."""
        return self.run.path is not None

    def __iter__(self) -> Iterator[Any]:
        return iter((self.meta, self.rows, self.recorded))

    def only(self, *rungs: str) -> "Measured":
        """This measurement with only the rows of these rungs: for a picture of few lines."""
        return replace(self, run=replace(self.run, figures=[row for row in self.rows if row.name in rungs]))

    @property
    def gpu(self) -> dict[str, Any] | None:
        """Facts of the GPU, as `vecadd.model` takes them; None where there was none."""
        return next(iter(self.meta.get("gpu", [])), None)

    def fastest(self, rung: str, n: int | None = None, dtype: str | None = None, **parameters: int) -> Figure | None:
        """The fastest row of a rung: at this size (None: the largest that it ran at), of this dtype and with these of
        its parameters; None where there is none."""
        found = [
            row
            for row in self._rows(rung, dtype)
            if n in (None, row.n) and parameters.items() <= row.params.get("parameters", {}).items()
        ]
        return min(found, key=lambda row: (-row.n, row.seconds or 0.0), default=None)

    def gain(self, rung: str, over: str, n: int | None = None, dtype: str | None = None) -> float | None:
        """How many times as fast a rung is as another, at the largest size that both ran at or at this one; None where
        no size has both. Both are taken at their usual parameters, which are those of the documents, or at their
        fastest where they did not run so."""
        mine, other = self._times(rung, dtype), self._times(over, dtype)
        both = {size for size in mine.keys() & other.keys() if n in (None, size)}
        return other[max(both)] / mine[max(both)] if both else None

    def _rows(self, rung: str, dtype: str | None) -> list[Figure]:
        """The rows of a rung that have a time, but for a document's stages, which are not whole round trips."""
        rows = (row for row in self.rows if row.name == rung and dtype in (None, row.dtype))
        return [row for row in rows if row.seconds and "stage" not in row.params]

    def _times(self, rung: str, dtype: str | None) -> dict[int, float]:
        """The least seconds of a rung by size: of its rows with the usual parameters where there are some."""
        known: Mapping[str, Any] = next((row for row in _core.rungs() if row["name"] == rung), {"params": {}})
        rows = self._rows(rung, dtype)
        as_usual = [row for row in rows if has_defaults(known, row.params.get("parameters", {}))]
        found: dict[int, float] = {}
        for row in as_usual or rows:
            found[row.n] = min(row.seconds or 0.0, found.get(row.n, row.seconds or 0.0))
        return found

    @property
    def limits(self) -> Limits:
        """The limits that the run's probes found, as `vecadd.model` takes them: None for limits that were not
        probed."""
        return Limits.of(self.meta.get("limits", {}))

    def limit(self, kind: str, name: str) -> float | None:
        """One limit of the run's probes: `limit("device", "gbps")`, `limit("latency", "dram_seconds")`; None where it
        was not probed."""
        value = self.meta.get("limits", {}).get(kind, {}).get(name)
        return None if value is None else float(value)

    def show(self, *rungs: str, n: int | None = None, dtype: str | None = None) -> None:
        """Prints time, rate and share of the limit of these rungs, a line each; those without a row say so."""
        for rung in rungs:
            row = self.fastest(rung, n, dtype)
            print(_line(row) if row else f"{rung}: no row")

    def compare(
        self,
        *steps: tuple[str, str],
        n: int | None = None,
        dtype: str | None = None,
        documents: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Prints the gain of each step, (rung, rung before it), a line each, beside the ``documents``' gain by rung."""
        for rung, over in steps:
            there = f"; in the document {documents[rung]}" if rung in documents else ""
            print(f"{rung} over {over}: {times(self.gain(rung, over, n, dtype))}{there}")

    def predict(self, *rungs: str, n: int | None = None, dtype: str | None = None) -> None:
        """Prints what `vecadd.model` expects of these rungs on this GPU by the run's limits, and what was measured, a
        line each; or why it expects nothing."""
        known = {rung["name"]: rung for rung in _core.rungs()}
        for name in rungs:
            row = self.fastest(name, n, dtype)
            if row is None or self.gpu is None:
                print(f"{name}: no row")
                continue
            if name not in known:
                taken = show_seconds(row.seconds or 0.0)
                print(f"{name}: measured {taken}; nothing is expected of it by a build without CUDA")
                continue
            chosen, block = row.params.get("parameters", {}), row.params.get("block", 0)
            try:
                found = predict(known[name], None, self.gpu, self.limits, row.dtype, row.n, chosen, block=block)
            except ValueError as error:
                print(f"{name}: {error}")
                continue
            measured = row.seconds or 0.0
            print(
                f"{row.label}, {show_size(row.n)}: expected {show_seconds(found.seconds)} by its {found.dominant}, "
                f"measured {show_seconds(measured)}, {100 * (found.seconds / measured - 1):+.0f} %"
            )

    def picture(self, name: str | None = None) -> "Picture | None":
        """The figure of that name: the sweep's own by default, or "roofline", or "timeline". None where there is
        nothing to draw it from. Raises ImportError without matplotlib."""
        if not self.rows:
            return None
        drawing = draw_picture(self.run, name or self.sweep)
        return None if drawing is None else Picture(drawing)


class Picture:
    """A figure that a notebook shows when it is a cell's last value; its ``repr`` is its alternative text: the given
    one, else what the figure's titles, axes and legends say."""

    def __init__(self, figure: "Drawing", text: str | None = None) -> None:
        self.figure = figure
        self.text = text

    def __repr__(self) -> str:
        return plot.describe_drawing(self.figure) if self.text is None else self.text

    def _repr_png_(self) -> tuple[bytes, dict[str, str]]:
        """The picture, and its metadata in a notebook."""
        target = io.BytesIO()
        plot.write(self.figure, target, "png")
        return target.getvalue(), {"alt": repr(self)}


def measure(
    sweep: str,
    *,
    sizes: Sequence[int] | None = None,
    dtypes: Sequence[str] | None = None,
    rungs: Sequence[str] | None = None,
    block: int = 0,
    seconds: float = SECONDS,
    brief: bool = False,
) -> Measured:
    """Runs a sweep of ``vecadd bench`` on this machine; where it needs a GPU and there is none, gives the newest
    recorded rows of it. The options are those of the command: sizes in elements, names of dtypes and rungs (None: those
    of the sweep), threads a block, seconds of timed work for each dtype and size. ``brief`` measures at only a few of
    the sweep's own sizes; recorded rows are not reduced.

    One line is printed that says which of the two it was. Where nothing is recorded either, that line says so and the
    result has no rows. CUDA is initialised in this process only if there is a GPU to measure.

    The recorded results come with the package; VECADD_RESULTS in the environment names another folder of them.

    Raises ValueError for an unknown sweep, dtype or rung, FileNotFoundError where VECADD_RESULTS names no
    folder.
    """
    _check_names(sweep, dtypes or (), rungs or ())
    options = Options(
        sizes=None if sizes is None else tuple(sizes),
        dtypes=None if dtypes is None else tuple(dtypes),
        rungs=None if rungs is None else tuple(rungs),
        seconds=seconds,
        block=block,
        brief=brief,
    )
    why = _why_not_here(sweep)
    measured = _run(sweep, options) if why is None else _read(sweep, options)
    print(f"{sweep}: {_source(measured, why)}")
    return measured


def code(
    rung: str, over: str | None = None, *, what: Literal["source", "sass"] = "source", dtype: str | None = None
) -> "Code | None":
    """A rung's source or machine code, or what differs in it from another rung's, ``over``, as `vecadd.ladder` has
    them. Where this installation cannot show it, None, and a printed line says why.

    Raises ValueError for a name that is not in the ladder, another ``what`` and machine code of a rung of the host,
    TypeError for a dtype that the rung does not take.
    """
    if not _core.CUDA_BUILD:
        print(f"{rung}: a build without CUDA has no kernels to show")
        return None
    try:
        if over is not None:
            return ladder.diff(over, rung, what, dtype=dtype)
        return ladder.source(rung) if what == "source" else ladder.sass(rung, dtype)
    except FileNotFoundError as error:
        print(f"{rung}: {error}")
        return None


def diagram(name: str) -> Picture:
    """A drawing that explains and measures nothing: "gpu", "threads", "coalescing", "copies", "compiler", "tree" or
    "banks" (``vecadd.diagrams``). Raises ValueError for another name, ImportError without matplotlib."""
    from vecadd import diagrams

    return Picture(diagrams.draw(name), diagrams.DIAGRAMS[name].text)


def times(gain: float | None) -> str:
    """ "1.26 x", or that there is no such figure."""
    return "not measured" if gain is None else show_gain(gain)


def percent(share: float | None) -> str:
    """ "76 %", or that there is no such figure."""
    return "not measured" if share is None else f"{100 * share:.3g} %"


def shown(value: float | None, unit: str = "", scale: float = 1) -> str:
    """The value times the scale in three digits and the unit, or that there is no such figure."""
    return "not measured" if value is None else f"{show_rate(value * scale)} {unit}".rstrip()


# A reader's guess, made before a figure is shown, and how near it came.

# Up to how many times too high or too low, points, and what is said of it.
_VERDICTS = ((1.1, 3, "right"), (1.5, 2, "close"), (10.0, 1, "the right order of magnitude"), (inf, 0, "far off"))


@dataclass(frozen=True)
class Guess:
    """What is asked, the number that the reader gave (None: none), and its unit."""

    question: str
    yours: float | None = None
    unit: str = ""

    def score(self, figure: float | None) -> None:
        """Prints the guess beside the figure, how many times too high or low it is, and its points, 3 for within a
        tenth; without a guess the figure alone. ``figure`` is None where it was not measured."""
        print(f"{self.question}: {self._said(figure)}")

    def _said(self, figure: float | None) -> str:
        if figure is None:
            return "not measured, so that no guess is wrong."
        if self.yours is None:
            return f"it is {self._shown(figure)}; you gave no guess."
        you, it = self._shown(self.yours), self._shown(figure)
        if not figure > 0:  # no guess is a number of times as high
            _, points, verdict = _VERDICTS[-1]
            return f"you said {you}, it is {it}: {verdict}, {points} of 3 points."
        ratio = self.yours / figure
        points, verdict = next((p, v) for most, p, v in _VERDICTS if max(ratio, 1 / ratio) <= most)
        off = f"{show_gain(max(ratio, 1 / ratio))} as {'high' if ratio > 1 else 'low'}" if ratio != 1 else "not off"
        return f"you said {you}, it is {it}. You are {off}: {verdict}, {points} of 3 points."

    def _shown(self, value: float) -> str:
        return f"{show_rate(value)} {self.unit}".rstrip()


def guess(question: str, yours: float | None = None, *, unit: str = "") -> Guess:
    """A guess at the figure that the question asks for, to be scored once it is known. ``yours`` is the reader's
    number in that unit; None, where there is no guess yet, is allowed, so that a notebook runs.

    >>> naive = laboratory.guess("GB/s of naive at 2^26", 4000, unit="GB/s")
    >>> naive.score(3383)
    GB/s of naive at 2^26: you said 4000 GB/s, it is 3383 GB/s. You are 1.18 x as high: close, 2 of 3 points.

    Raises TypeError for a guess that is no number, ValueError for one that is not greater than 0.
    """
    if yours is not None:
        if not isinstance(yours, Real):
            raise TypeError(f"a guess is a number or None, not {type(yours).__name__}: {question!r}")
        if not (yours > 0 and isfinite(yours)):
            raise ValueError(f"a guess is a number greater than 0, not {yours!r}: {question!r}")
    return Guess(question, None if yours is None else float(yours), unit)


def _check_names(sweep: str, dtypes: Sequence[str], rungs: Sequence[str]) -> None:
    if sweep not in SWEEPS:
        raise ValueError(unknown("sweep", sweep, SWEEPS))
    try:
        for rung in rungs:
            if rung not in _recorded_rungs():  # a build without CUDA knows fewer
                bench_options.parse_rungs(rung)
        for dtype in dtypes:
            bench_options.parse_dtypes(dtype)
    except ArgumentTypeError as error:
        raise ValueError(str(error)) from None


def _recorded_rungs() -> set[str]:
    return set() if _core.CUDA_BUILD else {row.name for path in _carried.results() for row in read_run(path).figures}


@cache
def _found() -> Info:
    return info()


def _why_not_here(sweep: str) -> str | None:
    """Why this machine does not measure the sweep; None where it does."""
    if os.environ.get("VECADD_RECORDED") == "1":
        return "VECADD_RECORDED=1 asks for what is recorded"
    found = _found()
    return f"no GPU here: {found.gpu_reason}" if SWEEPS[sweep].needs_gpu and not found.gpus else None


def _run(sweep: str, options: Options) -> Measured:
    conditions = machine.conditions_now()
    session = Session(options)
    session.measure([SWEEPS[sweep]], lambda what, done, total: None)
    for line in (*session.failures, *session.skipped):
        print(line)
    return Measured(sweep, session.result(_found(), machine.conditions_since(conditions)))


def _read(sweep: str, options: Options) -> Measured:
    """The rows of the newest file that has some for these options, preferably from a machine with a GPU, so that a
    notebook's sweeps are from one machine."""
    options = replace(options, dtypes=options.dtypes or SWEEPS[sweep].dtypes)
    found = []
    for path in _carried.results():
        run = read_run(path).of_sweep(sweep)
        wanted = [row for row in run.figures if _asked(row, options)]
        if wanted:
            found.append(replace(run, figures=wanted))
    newest = max(found, key=lambda run: (bool(run.meta["gpu"]), run.meta["date"]), default=Run({}, []))
    return Measured(sweep, newest)


def _asked(row: Figure, options: Options) -> bool:
    return (
        (options.sizes is None or row.n in options.sizes)
        and (options.dtypes is None or row.dtype in options.dtypes)
        and (options.rungs is None or row.name in options.rungs)
        and (not options.block or row.params.get("block") == options.block)
    )


def _source(measured: Measured, why: str | None) -> str:
    if not measured.rows:
        return "nothing was measured" if why is None else f"not recorded yet, and {why}"
    gpus = [gpu["name"] for gpu in measured.meta["gpu"]]
    cpu = measured.meta["cpu"]
    host = f"{cpu['model']}, {cpu['threads']} threads"
    where = gpus[0] if gpus and SWEEPS[measured.sweep].needs_gpu else host
    if why is None:
        return f"measured on {where}"
    return f"recorded on {where}, {show_date(measured.meta)} ({why})"


def _line(row: Figure) -> str:
    parts = [show_seconds(row.seconds or 0.0), f"{show_rate(row.gbps or 0.0)} GB/s"]
    if row.fraction is not None:
        parts.append(f"{percent(row.fraction)} of the limit")
    if "bytes_in_flight" in row.params:
        parts.append(f"{row.params['bytes_in_flight'] / 1024:.3g} KiB in flight an SM")
    return f"{row.label}, {row.dtype}, {show_size(row.n)}: {', '.join(parts)}"

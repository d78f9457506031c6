"""Draws the pictures of the documents, docs/pictures/*.png, from the recorded results.

    python -m benchmarks.pictures

Each file names in its text chunk "Source" the recorded run that it was drawn from; a test compares the two.
"""

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import Any

from vecadd.figures import Figure, Run, read_run, show_date
from vecadd.tables import show_seconds

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
FOLDER = ROOT / "docs" / "pictures"

SOURCE = "Source"
COLOURS = 48  # of the palette, in an octree, which keeps the few pixels of a rare colour: a third of the bytes


@dataclass(frozen=True)
class Panel:
    """Bars, each with what `show` makes of its value at its end."""

    title: str
    bars: Mapping[str, float]
    show: Callable[[float], str]
    mark: float | None = None  # a line across the bars


@dataclass(frozen=True)
class Chart:
    """A picture of README.md: its title is the finding, which README.md has as the alternative text."""

    title: str
    panels: Sequence[Panel]


@dataclass(frozen=True)
class Picture:
    """What is drawn, and the recorded files that it is drawn from: of one run a picture of `vecadd bench`, by its name,
    or a chart of one run or several."""

    files: tuple[str, ...]
    of: str | Callable[..., Chart]

    @property
    def runs(self) -> list[Run]:
        return [read_run(RESULTS / file) for file in self.files]

    @property
    def chart(self) -> Chart:
        assert not isinstance(self.of, str)
        return self.of(*self.runs)


def _ratio(row: Figure) -> float:
    return float(row.params.get("ratio", 1))


def _percent(share: float) -> str:
    return f"{100 * share:.{0 if share > 0.1 else 1}f} %"


def chart_host(*runs: Run) -> Chart:
    """float32 2^27 into ``out=``: each library's share of what the memory streams, a panel a machine. Shares are
    medians of rounds, in each of which the machine was as fast for all."""
    panels, numpys = [], []
    for run in runs:
        rows = [row for row in run.figures if (row.dtype, row.n) == ("float32", 1 << 27) and row.name.endswith(" out=")]
        shares = {row.name.removesuffix(" out="): float(row.params["limit_share"]) for row in rows}
        bars = dict(sorted(shares.items(), key=lambda bar: -bar[1]))
        threads = run.meta["cpu"]["threads"]
        numpys.append(f"{_percent(bars['numpy'])} on a machine of {threads} threads")
        panels.append(Panel(f"{threads} threads: share of what the memory streams", bars, _percent, mark=1))
    least = min(panel.bars["vecadd"] for panel in panels)
    return Chart(
        f"vecadd adds at {_percent(least)} of the rate at which the memory streams, NumPy at {' and at '.join(numpys)}",
        panels,
    )


def chart_layouts(run: Run) -> Chart:
    """The time of the nearer one of torch and CuPy over ours, for each layout and pair of dtypes."""
    nearest: dict[str, float] = {}
    for row in run.figures:
        if "ratio" in row.params:
            form = row.params["form"] + ("" if row.dtype in row.params["form"] else f", {row.dtype}")
            nearest[form] = min(nearest.get(form, _ratio(row)), _ratio(row))
    bars = dict(sorted(nearest.items(), key=lambda bar: -bar[1]))
    few, most = min(bars.values()), max(bars.values())
    return Chart(
        f"On a GPU the nearer of torch and CuPy takes {few:.2g} to {most:.2g} times vecadd's time, by layout",
        [Panel("time over vecadd's", bars, "{:.3g}".format, mark=1)],
    )


def chart_calls(run: Run) -> Chart:
    """What a call costs its caller, 1024 float32."""
    said = {
        "vecadd Plan()": "a call of vecadd.plan", "vecadd": "vecadd.add",
        "vecadd (bare launch from C)": "a launch from C",
        "vecadd (bare programmatic launch from C)": "a programmatic launch from C",
        "vecadd (bare graph launch from C)": "a graph's launch from C",
        "vecadd (CuPy arrays)": "vecadd.add of CuPy arrays", "vecadd (torch tensors)": "vecadd.add of tensors",
    }  # fmt: skip
    names = (*said, "torch", "cuda.compute", "cupy", "triton", "numba", "torch.compile", "helion")
    seconds = {said.get(name, name): row.seconds or 0 for row in run.figures for name in names if row.label == name}
    plan, call, launch, programmatic, graph = (show_seconds(seconds[text]) for text in list(said.values())[:5])
    return Chart(
        f"A call of vecadd.add takes {call}, a launch from C {launch} or, programmatic, {programmatic}; a plan's call "
        f"{plan}, a graph's launch from C {graph}",
        [Panel("the caller's time, float32 2^10", _shortest_first(seconds), show_seconds)],
    )


def chart_rungs(run: Run) -> Chart:
    """The share of the memory's limit that rungs reach, at the largest size."""
    said = {
        "single_block": "one block", "naive": "one float a thread", "coarsen4": "four floats a thread, neighbours",
        "unroll2": "two floats a thread, apart", "float2": "8 bytes a load", "float4": "16 bytes a load",
        "tuned": "vecadd.add's kernel",
    }  # fmt: skip
    largest = max(row.n for row in run.figures)
    shares: dict[str, float] = {}
    for row in run.figures:
        if row.n == largest and row.fraction:
            shares.setdefault(row.name, row.fraction)
    return Chart(
        f"One float a thread reaches {_percent(shares['naive'])} of the memory's limit, a 16-byte load "
        f"{_percent(shares['float4'])}",
        [Panel("share of the memory's limit", {f"{said[name]}: {name}": shares[name] for name in said}, _percent)],
    )


def chart_link(run: Run) -> Chart:
    """1e8 float32 in ordinary memory, through a GPU and on the host."""
    said = {
        "pageable": "plain copies to a GPU", "numpy": "NumPy on the host", "add (pageable)": 'vecadd, device="cuda"',
        "add (pinned)": "vecadd, the same, page-locked", "add by hybrid (pinned)": "vecadd, both, page-locked",
        "add on the host (pageable)": "vecadd on the host",
    }  # fmt: skip
    seconds = {said[row.label]: row.seconds or 0 for row in run.figures if row.label in said and row.n == 10**8}
    copies, _, ours, *_, host = (show_seconds(seconds[text]) for text in said.values())
    return Chart(
        f"Through a GPU vecadd takes {ours} where plain copies take {copies}, and the processor alone {host}",
        [Panel("float32 1e8, NumPy in, NumPy out", _shortest_first(seconds), show_seconds)],
    )


def _shortest_first(seconds: Mapping[str, float]) -> Mapping[str, float]:
    return dict(sorted(seconds.items(), key=lambda bar: bar[1]))


PICTURES: Mapping[str, Picture] = {
    "host": Picture(("h100/peer-host.json", "amd-epyc-2t/peer-host.json"), chart_host),
    "layouts": Picture(("h200/peer-layouts.json",), chart_layouts),
    "calls": Picture(("h200/peer-overhead.json",), chart_calls),
    "rungs": Picture(("h200/ladder.json",), chart_rungs),
    "link": Picture(("h200/peer-transfer.json",), chart_link),
    "device-sizes": Picture(("h200/size.json",), "size"),
    "ladder": Picture(("h200/ladder.json",), "ladder"),
    "bytes-in-flight": Picture(("h200/inflight.json",), "inflight"),
    "transfer-timeline": Picture(("h200/transfer.json",), "timeline"),
    "small-additions": Picture(("h200/latency.json",), "latency"),
    "host-sizes": Picture(("h200/host.json",), "host"),
}


def source(picture: Picture) -> str:
    """The recorded runs, as the picture's file names them."""
    runs = zip(picture.files, picture.runs, strict=True)
    return "; ".join(f"{file}, {run.meta['date']}, commit {run.meta['commit']}" for file, run in runs)


WIDTH = 4.2  # inches of a chart: on a telephone's 390 pixels its smallest letters are 9 pixels high
LINE = 46  # letters


def draw_chart(picture: Picture) -> Any:
    """The chart, with the finding above it and where its data come from below."""
    from matplotlib.figure import Figure as NewDrawing

    from vecadd.bench import plot

    chart = picture.chart
    lines = [len(panel.bars) for panel in chart.panels]
    above, below = (
        wrap(chart.title, LINE),
        [line for run in picture.runs for line in wrap(_show_origin(run), LINE + 16)],
    )
    height = 0.3 + 0.19 * sum(lines) + 0.3 * len(lines) + 0.17 * len(above) + 0.13 * len(below)
    with plot.applied_style():
        drawing = NewDrawing(figsize=(WIDTH, height), layout="constrained")
        drawing.suptitle("\n".join(above), x=0.01, ha="left", fontsize=9.5, fontweight="bold")
        drawing.supxlabel("\n".join(below), x=0.01, ha="left", fontsize=plot.SMALL)
        drawn = drawing.subplots(len(lines), squeeze=False, height_ratios=lines)[:, 0]
        for axes, panel in zip(drawn, chart.panels, strict=True):
            for place, (name, value) in enumerate(panel.bars.items()):
                axes.barh(place, value, **plot.bar_style(plot.BLUE if "vecadd" in name else plot.PALE))
                plot.label_bar_end(axes, panel.show(value), (value, place))
            axes.set_yticks(range(len(panel.bars)), list(panel.bars))
            axes.invert_yaxis()
            axes.margins(x=0.18, y=0.02)
            axes.set_title(panel.title)
            plot.bar_axis(axes)
            axes.set_xticks([])
            if panel.mark:
                axes.axvline(panel.mark, **plot.LIMIT)
    return drawing


def _show_origin(run: Run) -> str:
    """The processor, the GPU beside it, date and commit."""
    cpu, gpus = run.meta["cpu"], [gpu["name"] for gpu in run.meta["gpu"]]
    return f"{' beside '.join([cpu['model'], *gpus[:1]])}, {show_date(run.meta)}"


def draw(picture: Picture) -> bytes:
    """The picture as a PNG file. Raises ValueError where the files have nothing to draw it from."""
    from PIL import Image, PngImagePlugin

    from vecadd.bench import plot
    from vecadd.bench.sweeps import draw_picture

    drawing = draw_picture(picture.runs[0], picture.of) if isinstance(picture.of, str) else draw_chart(picture)
    if drawing is None:
        raise ValueError(f"{picture.files} have no rows for the figure {picture.of!r}")
    drawn, written = io.BytesIO(), io.BytesIO()
    plot.write(drawing, drawn, "png")
    text = PngImagePlugin.PngInfo()
    text.add_text(SOURCE, source(picture))
    few = Image.open(drawn).convert("RGB").quantize(COLOURS, method=Image.Quantize.FASTOCTREE)
    few.save(written, "png", optimize=True, pnginfo=text)
    return written.getvalue()


def main() -> None:
    """Writes every picture."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, picture in PICTURES.items():
        path = FOLDER / f"{name}.png"
        path.write_bytes(draw(picture))
        print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()

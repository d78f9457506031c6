"""A run for its reader: the machine with its limits and troubles in lines, CSV, Markdown, and a page of HTML."""

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from vecadd import pages
from vecadd.bench import machine
from vecadd.bench.sweeps import draw_run, make_tables
from vecadd.figures import Figure, Run, row_of_figure, show_date
from vecadd.model import Limits, Loaded
from vecadd.model.limits import ENOUGH
from vecadd.model.theory import ARRAYS
from vecadd.tables import show_rate, show_seconds, show_size, table_as_markdown

_FIELDS = (
    *("sweep", "rung", "dtype", "n", "seconds", "p10", "p90"),
    *("bytes", "gbps", "limit_gbps", "fraction", "checked", "error"),
)


def as_csv(figures: Iterable[Figure]) -> str:
    """A line a figure. The parameters follow, one column each in the order of their first appearance; what is a list or
    a table in itself is JSON in its cell."""
    figures = list(figures)
    params = list(dict.fromkeys(name for figure in figures for name in figure.params))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*_FIELDS, *params])
    for figure in figures:
        low, high = figure.spread or (None, None)
        row = {**row_of_figure(figure), "p10": low, "p90": high}
        cells = [*(row[name] for name in _FIELDS), *(figure.params.get(name) for name in params)]
        writer.writerow(map(_csv_cell, cells))
    return text.getvalue()


def _csv_cell(value: Any) -> Any:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return json.dumps(value) if isinstance(value, dict | list | tuple) else value


def as_markdown(run: Run) -> str:
    """The tables as they are printed, after the machine and its limits and before the method."""
    blocks = [_bullets([*describe_machine(run), show_origin(run)])]
    for table in make_tables(run.figures):
        blocks += [f"## {table.title}", "\n".join(table_as_markdown(table)), _bullets(table.notes)]
    blocks += [_bullets(list_problems(run)), _bullets(describe_method(run))]
    return "\n\n".join(["# vecadd bench", *filter(None, blocks)]) + "\n"


def _bullets(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def as_page(run: Run) -> str:
    """One page of HTML that needs nothing else: the machine and its limits, and of each sweep its pictures and tables.
    Needs Jinja2 and matplotlib."""
    from vecadd.pages.pictures import picture

    if not run.figures:
        verdict = pages.verdict("Nothing was measured.", bad=True)
    elif run.meta["failures"] or not all(figure.ok for figure in run.figures):
        verdict = pages.verdict("Something failed or is above its limit.", bad=True)
    else:
        verdict = pages.verdict("Every sum is right, and no figure is above its limit.", bad=False)
    sections: dict[str, list[pages.Part]] = {
        "": [verdict, *(("text", line) for line in list_problems(run))],
        "The machine": [("text", line) for line in describe_machine(run)],
    }
    for sweep in dict.fromkeys(figure.sweep for figure in run.figures):
        of_sweep = run.of_sweep(sweep)
        sections[sweep] = [picture(drawing, name) for name, drawing in draw_run(of_sweep).items()]
        sections[sweep] += map(pages.table, make_tables(of_sweep.figures))
    title = f"vecadd bench of {run.meta['machine']}"
    return pages.render(title, f"{show_origin(run)}.", sections, describe_method(run))


def show_origin(run: Run) -> str:
    """When and at which commit the run was."""
    return f"vecadd {run.meta['versions']['vecadd']}, {show_date(run.meta)}"


def describe_method(run: Run) -> list[str]:
    """How the run timed and what each sweep's clock was, a line each."""
    return [f"method: {run.meta['method']}", *(f"{sweep}: {clock}" for sweep, clock in run.meta["clocks"].items())]


def list_problems(run: Run) -> list[str]:
    """The figures that failed, that exceed their limit and that were left out, a line each."""
    return [
        *(f"{figure.title} failed: {figure.error}" for figure in run.figures if figure.error),
        *(
            f"{figure.title} is impossible: {figure.fraction:.3f} of the limit; the method is wrong, not the rung fast"
            for figure in run.figures
            if figure.is_impossible
        ),
        *(f"failed: {line}" for line in run.meta.get("failures", ())),
        *(f"skipped: {line}" for line in run.meta.get("skipped", ())),
        *(["interrupted: the tables have what was measured until then"] if run.meta.get("interrupted") else []),
    ]


def describe_machine(run: Run) -> list[str]:
    """The machine, the limits of its memory, link and launches by this run's probes, and its conditions."""
    limits, cpu = run.meta.get("limits", {}), run.meta["cpu"]
    gpu = run.meta["gpu"][0] if run.meta["gpu"] else None
    parts = [f"{cpu['model'] or 'processor unknown'}, {cpu['threads']} threads"]
    lines = []
    if gpu:
        parts.insert(0, f"{gpu['name']}, driver {run.meta['driver'] or 'unknown'}")
        lines = [
            _device(limits.get("device"), gpu),
            _link(limits.get("link"), gpu),
            _launch(limits.get("launch")),
            _latency(limits.get("latency")),
            _loaded(Limits.of(limits).loaded, gpu),
        ]
    conditions = f"conditions: {machine.describe(run.meta['contamination'], gpu=bool(gpu))}"
    return [f"machine: {'; '.join(parts)}", *filter(None, [*lines, _host(run.figures)]), conditions]


def _device(limit: Mapping[str, float] | None, gpu: Mapping[str, Any]) -> str:
    if not limit:
        return ""
    theory = gpu.get("bandwidth")
    share = f"; its clock and bus give {theory / 1e9:.0f}" if theory else ""
    return (
        f"device memory: {limit['gbps']:.0f} GB/s for an addition (reads {limit['read_gbps']:.0f}, writes "
        f"{limit['write_gbps']:.0f}{share})"
    )


def _link(limit: Mapping[str, float] | None, gpu: Mapping[str, Any]) -> str:
    if not limit:
        return ""
    theory = machine.link_theory(gpu.get("link_generation_max"), gpu.get("link_width_max"))
    share = f"; its generation and width give {theory / 1e9:.1f} each way" if theory else ""
    return (
        f"link: {show_rate(limit['gbps'])} GB/s for two arrays up and one down (up "
        f"{show_rate(limit['to_device_gbps'])}, down {show_rate(limit['to_host_gbps'])}, both at once "
        f"{show_rate(limit['both_gbps'])}{share})"
    )


def _launch(limit: Mapping[str, float] | None) -> str:
    if not limit:
        return ""
    return (
        f"launch: {show_seconds(limit['kernel_seconds'])} for an empty kernel, {show_seconds(limit['block_seconds'])} "
        f"for each of its blocks, {show_seconds(limit['queued_seconds'])} from one queued launch to the next"
    )


def _latency(limit: Mapping[str, float] | None) -> str:
    if not limit:
        return ""
    return (
        f"latency: {show_seconds(limit['l2_seconds'])} to the L2, {show_seconds(limit['dram_seconds'])} to the memory, "
        "of a load with nothing else in flight"
    )


def _loaded(loaded: Loaded | None, gpu: Mapping[str, Any]) -> str:
    """How many bytes in flight an addition takes, which loads two arrays and stores a third."""
    if not loaded:
        return ""
    alone = loaded.needed()
    needed = alone * (ARRAYS - 1) / ARRAYS / 1024
    return (
        f"under load: an addition takes {needed:.0f} KiB in flight on each multiprocessor for {100 * ENOUGH:.0f} % "
        f"of {show_rate(loaded.best / 1e9)} GB/s, and waits "
        f"{show_seconds(loaded.latency(alone, gpu['multiprocessors']))} for them"
    )


def _host(figures: Iterable[Figure]) -> str:
    of_host = [figure for figure in figures if figure.sweep == "host" and figure.limit]
    if not of_host:
        return ""
    largest = max(of_host, key=lambda figure: figure.n)
    return f"host memory: {show_rate(largest.limit or 0)} GB/s for an addition of {show_size(largest.n)} elements"

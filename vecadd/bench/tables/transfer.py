"""Host arrays through the GPU, beside document 004's model and the link; below, the document's stages repeated."""

from collections.abc import Mapping
from itertools import groupby

from vecadd.bench import cold, recorded, steps
from vecadd.bench.tables import parts
from vecadd.bench.tables.ladder import gain_over
from vecadd.figures import Figure
from vecadd.tables import Style, Table, columns, prose, show_gain, show_seconds, show_size

_COLUMNS = columns(
    "rung",
    "seconds",
    "GB/s",
    "% limit",
    "% link",
    "model",
    "of model",
    "gain",
    prose("documents", 2),
    prose("what changed", 3),
)

NOTES = (
    "% limit: of the link's own rates, measured in this run; % link: of what its generation and width give in theory, "
    "by the two uploads alone",
    "model: uploads, kernel and download at the rates of this run, their sum where a rung is serial, the slowest of "
    "them where it overlaps (document 004); of model: how many times as long it took",
)


def tables(sweep: str, rows: list[Figure]) -> list[Table]:
    """A table of the round trips, and one of the stages where they were measured."""
    whole = [row for row in rows if "stage" not in row.params]
    stages = [row for row in rows if "stage" in row.params]
    return [table for table in (_round_trips(sweep, whole), _stages(sweep, stages)) if table.lines]


def cold_start(rows: list[Figure]) -> Table:
    """What a process that has just begun pays once, beside the same on the processor and document 004's figures."""
    table = Table(
        "cold start",
        columns("stage", "GPU", "its GPU", "processor", "its processor", prose("what it does")),
        optional_columns=("what it does",),
    )
    (row,) = [row for row in rows if row.name == cold.ROW]
    gpu, cpu = row.params["gpu"], row.params["cpu"]
    told = {
        **cold.STAGES,
        "kernel": "of launch, by CUDA events",
        "own": "all but import: what a program without Python and NumPy pays too",
        "process": "from before the process was started until it had ended",
    }
    for stage, what in told.items():
        if stage in gpu or stage in cpu:
            figures = (gpu, recorded.COLD_GPU, cpu, recorded.COLD_CPU)
            table.add(stage, *(show_seconds(of[stage]) if stage in of else "-" for of in figures), what)
    table.notes = [
        f"{show_size(row.n)} float32, once, each in a process of its own; its: document 004's, "
        f"{recorded.SETTINGS['004b']}",
    ]
    return table


def _round_trips(sweep: str, rows: list[Figure]) -> Table:
    table = Table(sweep, _COLUMNS, optional_columns=("documents", "what changed", "% link", "of model", "model"))
    for (dtype, n), cell in groupby(rows, key=lambda row: (row.dtype, row.n)):
        table.add(f"{dtype} {show_size(n)}", style=Style.HEAD)
        before: dict[str, list[Figure]] = {}
        for rung, group in groupby(cell, key=lambda row: row.name):
            told: tuple[str, ...] = parts.told(rung, previous=next(reversed(before), None))
            for row in group:
                gain = gain_over(row, before)
                table.add(
                    row.label,
                    *_figures(row),
                    show_gain(gain) if gain else "-",
                    *told,
                    style=parts.style(row),
                )
                told = ()
                if row.seconds:
                    before.setdefault(rung, []).append(row)
        table.add_gap()
    table.notes = [*NOTES, *_told(rows), *parts.document_notes(rows)]
    return table


def _told(rows: list[Figure]) -> list[str]:
    """Notes from the rows that were not measured in rounds, a line each."""
    lines: list[str] = []
    for row in rows:
        if "gpu" not in row.params:
            continue
        gpu, cpu = (
            ", ".join(f"{name} {show_seconds(value)}" for name, value in row.params[where].items() if name != "checked")
            for where in ("gpu", "cpu")
        )
        lines += [f"{row.name} on the GPU: {gpu}", f"{row.name} on the processor alone: {cpu}"]
    return lines


def _figures(row: Figure) -> tuple[str, ...]:
    model = row.params.get("model_seconds")
    return (
        parts.seconds(row),
        parts.rate(row),
        parts.fraction(row),
        parts.percent(row.params.get("link_fraction")),
        show_seconds(model) if model else "-",
        f"{row.seconds / model:.3g} x" if model and row.seconds else "-",
    )


def _stages(sweep: str, rows: list[Figure]) -> Table:
    table = Table(
        f"{sweep}: document 004's stages",
        columns(
            "stage",
            "whole",
            "kernel",
            "to host",
            "to device",
            "kernel : memory",
            "its kernel",
            "its to host",
            "its to device",
            "its k : m",
            prose("made of"),
        ),
        optional_columns=("made of", "its k : m", "its to device", "its to host", "its kernel"),
    )
    for (dtype, n), cell in groupby(rows, key=lambda row: (row.dtype, row.n)):
        table.add(f"{dtype} {show_size(n)}", style=Style.HEAD)
        for row in cell:
            stage = recorded.STAGES.get((row.name, row.params.get("kernel", "")))
            table.add(
                row.params["stage"],
                parts.seconds(row),
                *_ours(steps.stages_of(row)),
                *_its(stage),
                row.label,
                style=parts.style(row),
            )
        table.add_gap()
    table.notes = [
        "kernel : memory: percent of the three, in which what overlaps counts for each; its: document 004's, "
        f"{recorded.SETTINGS['004a']}, with the percent that it prints",
    ]
    return table


def _ours(stages: Mapping[str, float] | None) -> tuple[str, ...]:
    """Kernel, download, uploads, and the kernel's share of the three."""
    if not stages:
        return ("-",) * 4
    share = 100 * stages["kernel"] / total if (total := sum(stages.values())) else 0.0
    seconds = (stages[kind] for kind in ("kernel", "to_host", "to_device"))
    return *map(show_seconds, seconds), f"{share:.1f} : {100 - share:.1f}"


def _its(stage: recorded.Stage | None) -> tuple[str, ...]:
    """The same of the document."""
    if not stage:
        return ("-",) * 4
    return *map(show_seconds, (stage.kernel, stage.to_host, stage.to_device)), stage.shares

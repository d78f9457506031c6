"""python -m benchmarks.peers --json-dir DIR [--stage device]: measures, writes a file a stage, prints short tables."""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.peers import device_peers, host_stage, libraries
from benchmarks.peers.stages import SECONDS, STAGES
from vecadd.bench import machine, options
from vecadd.bench.command import measure_with_progress
from vecadd.bench.options import Options
from vecadd.bench.run import Session
from vecadd.figures import Figure, write_run
from vecadd.info import info
from vecadd.tables import show_seconds

SECONDS_PER_CELL = 3.0


def main() -> int:
    arguments = _parser().parse_args()
    conditions = machine.conditions_now()
    found = info()
    ok = True
    table: list[str] = []
    for stage in arguments.stage or STAGES:
        if any(sweep.needs_gpu for sweep in STAGES[stage]) and not found.gpus:
            print(f"left out: {stage} needs a GPU: {found.gpu_reason}")
            ok = ok and not arguments.stage
            continue
        seconds = arguments.seconds_per_cell or SECONDS.get(stage, SECONDS_PER_CELL)
        session = Session(Options(arguments.sizes, arguments.dtypes, None, seconds))
        measure_with_progress(session, STAGES[stage])
        for line in [*session.failures, *session.skipped]:
            print(f"left out: {line}")
        meta = dict(session.result(found, machine.conditions_since(conditions)).meta)
        meta["versions"] |= libraries.versions([*device_peers.entries(), *host_stage.ENTRIES])
        write_run(arguments.json_dir / f"peer-{stage}.json", meta, session.figures)
        table += [*_lines(session.figures), *session.machine.missing]
        ok = ok and session.ok
        if session.interrupted:
            return 130
    print(*table, sep="\n")
    return 0 if ok else 1


def _lines(rows: list[Figure]) -> Iterator[str]:
    for row in rows:
        if row.seconds is None:
            yield f"{row.title}  failed: {row.error}"
            continue
        limit = f"{100 * row.fraction:6.1f} % of limit" if row.fraction else ""
        yield f"{row.title:<48} {show_seconds(row.seconds):>9} {row.gbps:>9.4g} GB/s {limit} {_ratio(row)}".rstrip()


def _ratio(row: Figure) -> str:
    if "ratio" not in row.params:
        return ""
    low, high = row.params["ratio_interval"]
    return f" {row.params['ratio']:.3f} x {row.params['reference']} [{low:.3f}, {high:.3f}]"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description="vecadd beside its peers")
    parser.add_argument("--json-dir", type=_folder, required=True, metavar="DIR", help="for the result files")
    parser.add_argument("--stage", action="append", choices=STAGES, help="may be repeated (default: all)")
    parser.add_argument(
        "--sizes", type=options.parse_sizes, metavar="N,...", help="default: the stage's own, where it has any"
    )
    parser.add_argument("--dtypes", type=options.parse_dtypes, metavar="DTYPE,...", help="the same")
    parser.add_argument(
        "--seconds-per-cell",
        type=options.parse_seconds,
        metavar="S",
        help=f"default: {SECONDS_PER_CELL:g}, or the stage's own",
    )
    return parser


def _folder(text: str) -> Path:
    path = Path(text)
    path.mkdir(parents=True, exist_ok=True)
    return path


if __name__ == "__main__":
    sys.exit(main())

"""The command ``vecadd report``: its options, what it writes, its exit status."""

import argparse
from pathlib import Path

from vecadd import pages
from vecadd._command import epilog, target
from vecadd._version import package_version
from vecadd.bench import formats, results
from vecadd.bench.opening import lines
from vecadd.report import parts, runs
from vecadd.report.runs import Runs

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What `vecadd report` takes."""
    parser.add_argument(
        "results",
        nargs="+",
        type=Path,
        metavar="RESULTS",
        help="files of vecadd bench, of the comparisons with other libraries and of vecadd check, of one machine; and "
        "folders with such files",
    )
    parser.add_argument(
        "-o", "--out", type=target, required=True, metavar="PAGE", help="write the page there; - is stdout"
    )
    parser.epilog = epilog(
        {
            "vecadd report results -o report.html": "what this machine does, by a folder of its result files",
            "vecadd report ladder.json check.json -o report.html": "by two files; the page says what is missing",
        },
        {
            0: "written",
            2: "could not be asked: a wrong option, files of another kind or of several machines, a missing package",
        },
    )


def run(arguments: argparse.Namespace) -> int:
    """Reads, draws, writes; returns the exit status."""
    pages.require("jinja2", "matplotlib")
    results.replace(arguments.out, page(runs.of(arguments.results, arguments.out)))
    return 0


def page(found: Runs) -> str:
    """The page of these runs."""
    shown = parts.of(found)
    every = [row for bench in found.benches for row in bench.rows]
    check = found.check
    if found.meta:
        name = lines(found.meta, [])[0].removeprefix("machine: ")
        dates = sorted(bench.meta["date"][:10] for bench in found.benches)
        when = f"Recorded {' to '.join(dict.fromkeys((dates[0], dates[-1])))}"
    else:
        name = check.machine_type if check else "no machine"
        when = f"Checked {check.time:%Y-%m-%d}" if check else ""
    method = dict.fromkeys(
        line for bench in found.benches if "clocks" in bench.meta for line in formats.method(bench.meta)
    )
    context = {
        "title": f"What {check.host if check else 'this machine'} does",
        "subtitle": f"{name}. {when}.",
        "parts": [*((part["anchor"], part["title"]) for part in shown), ("method", "Method")],
        "sections": shown,
        "others": parts.others(every),
        "method": list(method),
        "version": package_version(),
    }
    return pages.render("report.html", context)

"""Draws recorded runs: python -m vecadd.bench.plots RESULT.json... FOLDER"""

import argparse
from pathlib import Path

from vecadd.bench import plots
from vecadd.figures import read_run


def main() -> None:
    """Draws every file's pictures into the folder."""
    parser = argparse.ArgumentParser(prog="python -m vecadd.bench.plots", description="draws recorded runs")
    parser.add_argument("files", nargs="+", type=Path, metavar="RESULT.json", help="written by vecadd bench --json")
    parser.add_argument("folder", type=Path, help="for the pictures")
    arguments = parser.parse_args()
    for path in arguments.files:
        run = read_run(path)
        print(*plots.save(run.meta, run.figures, arguments.folder, recorded=True), sep="\n")


if __name__ == "__main__":
    main()

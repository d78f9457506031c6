"""Draws recorded runs: python -m vecadd.bench RESULT.json... FOLDER"""

import argparse
from pathlib import Path

from vecadd.bench import plot
from vecadd.bench.sweeps import draw_run
from vecadd.figures import read_run


def main() -> None:
    """Draws every file's pictures into the folder."""
    parser = argparse.ArgumentParser(prog="python -m vecadd.bench", description="draws recorded runs")
    parser.add_argument("files", nargs="+", type=Path, metavar="RESULT.json", help="written by vecadd bench --json")
    parser.add_argument("folder", type=Path, help="for the pictures")
    arguments = parser.parse_args()
    for path in arguments.files:
        print(*plot.save(draw_run(read_run(path)), arguments.folder), sep="\n")


if __name__ == "__main__":
    main()

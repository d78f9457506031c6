"""python -m benchmarks.gpu_stages FILE [STAGE VERDICT SECONDS]...: notes in FILE how stages of `make gpu` ended.

A line a stage, of JSON. A stage's later run replaces its earlier one; the others stay, so that stages may be run one by
one, on several days.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from vecadd.bench import machine

FILE = "stages.jsonl"


def main(arguments: Sequence[str]) -> int:
    """Notes the stages."""
    path, told = Path(arguments[0]), arguments[1:]
    stages = {each["stage"]: each for each in read(path)} if path.is_file() else {}
    for stage, verdict, seconds in zip(told[::3], told[1::3], told[2::3], strict=True):
        stages[stage] = {"stage": stage, "verdict": verdict, "seconds": int(seconds), **machine.origin()}
    path.write_text("".join(f"{json.dumps(each)}\n" for each in stages.values()))
    return 0


def read(path: Path) -> Iterator[dict[str, Any]]:
    """The stages that the file notes."""
    return map(json.loads, path.read_text().splitlines())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

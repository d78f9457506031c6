"""The table of what was proven and tested: which proof, long run or stage of `make gpu`, when and at which commit."""

import re
from collections.abc import Iterator
from pathlib import Path

from benchmarks import gpu_stages
from vecadd.figures import read_fields, show_date

STAGES = ("test", "large", "sanitize")  # of `make gpu`: the others measure, and their figures are in the documents

_MARKED = re.compile(r"(?P<open><!-- verified -->\n).*?(?P<close><!-- /verified -->)", re.S)


def fill(text: str, folder: Path) -> str:
    """The text with the marked table made anew."""
    return _MARKED.sub(lambda marker: "\n".join([marker["open"], *lines(folder), "", marker["close"]]), text)


def lines(folder: Path) -> Iterator[str]:
    """A line for each result file that is not in a machine's folder, then one for each stage."""
    yield "| what | when |"
    yield "| --- | --- |"
    for path in sorted(folder.glob("*.json")):
        content = read_fields(path)
        yield f"| [`{path.name}`](results/{path.name}) | {show_date(content.get('meta', content))} |"
    for path in sorted(folder.glob(f"*/{gpu_stages.FILE}")):
        for stage in gpu_stages.read(path):
            if stage["stage"] in STAGES:
                what = f"`make gpu STAGE={stage['stage']}`, {path.parent.name}: {stage['verdict']}"
                yield f"| {what} | {show_date(stage)} |"

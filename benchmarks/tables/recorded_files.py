"""The table of all that is recorded: which file, when, at which sources, and whether these have changed since."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import gpu_stages
from benchmarks.tables.recordings import Digest, dated
from vecadd.bench import results, sources

TESTS = {"build", "test", "large", "sanitize"}  # stages of `make gpu` that measure nothing: all sources count

_MARKED = re.compile(r"(?P<open><!-- recorded -->\n).*?(?P<close><!-- /recorded -->)", re.S)


def fill(text: str, folder: Path, digest: Digest = sources.digest) -> str:
    """The text with the marked table made anew."""
    return _MARKED.sub(lambda marker: "\n".join([marker["open"], *lines(folder, digest), "", marker["close"]]), text)


def lines(folder: Path, digest: Digest) -> Iterator[str]:
    """A line a result file, then one for each stage of `make gpu`."""
    yield "| what | recorded | sources that it depends on |"
    yield "| --- | --- | --- |"
    for path in sorted([*folder.glob("*/*.json"), *folder.glob("*.json")]):
        content = results.load(path)
        meta = content.get("meta", content)
        name = path.relative_to(folder)
        yield f"| [`{name}`](results/{name}) | {dated(meta)} | {_state(meta, digest)} |"
    for path in sorted(folder.glob(f"*/{gpu_stages.FILE}")):
        for stage in gpu_stages.read(path):
            what = f"`make gpu STAGE={stage['stage']}`, {path.parent.name}: {stage['verdict']} in {stage['seconds']} s"
            state = _state(stage, digest) if stage["stage"] in TESTS else "see its files"
            yield f"| {what} | {dated(stage)} | {state} |"


def _state(meta: dict[str, Any], digest: Digest) -> str:
    """A file without digests of its sweeps counts by all sources."""
    timed = meta.get("sources") or {}
    same = (
        all(found == digest(sweep) for sweep, found in timed.items())
        if timed
        else meta["revision"] == sources.revision()
    )
    return "as they are" if same else "have changed since"

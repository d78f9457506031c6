"""The command ``vecadd tune``: which parts there are, what it prints, its exit status."""

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from vecadd._command import epilog
from vecadd._names import unknown
from vecadd._terminal import status_line
from vecadd.bench.terminal import Screen
from vecadd.info import info
from vecadd.tune import compare, device, host, routes, store
from vecadd.tune.part import Found, Part, Tell

PARTS: tuple[Part, ...] = (device.PART, host.PART, routes.PART)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What `vecadd tune` takes."""
    names = ", ".join(part.name for part in PARTS)
    parser.add_argument(
        "parts", nargs="*", type=_part, metavar="PART", help=f"{names} (default: all that can run here)"
    )
    parser.add_argument("--dry-run", action="store_true", help="say what would be written, and leave the files alone")
    parser.epilog = epilog(
        {
            "vecadd tune": "everything that can run here: minutes on a GPU",
            "vecadd tune host --dry-run": "what tuning the host's threads would gain, without keeping it",
        },
        {1: "a part that was named needs a GPU, or a file cannot be written"},
    )


def run(arguments: argparse.Namespace) -> int:
    """Searches, prints, writes, and says what that changes; returns the exit status: 0, or 1 where a part that was
    named cannot run here.

    Raises ValueError where there is no folder and OSError for one that cannot be written, before anything is measured,
    and what the searches raise.
    """
    if arguments.dry_run:
        store.folder()  # refuses before the search, not after it
        return _search(arguments, {})
    folder = store.prepare()
    found: dict[Part, list[Found]] = {}
    with tempfile.TemporaryDirectory(prefix="vecadd-tune-") as kept:
        before = Path(kept)
        store.copy(folder, before)
        status = _search(arguments, found)
        for part, results in found.items():
            if not part.must_gain:  # what the others change is measured now
                Screen().say(*(f"{part.name}: {line}" for line in _changes(part.name, results, before)))
    return status


def _search(arguments: argparse.Namespace, all_found: dict[Part, list[Found]]) -> int:
    """Searches what is wanted, prints and writes what is found, and puts it under its part."""
    wanted: list[Part] = arguments.parts or list(PARTS)
    gpus = info()
    screen, status = Screen(), 0
    for part in wanted:
        if part.needs_gpu and not gpus.gpus:
            screen.say(f"{part.name}: left out: {gpus.gpu_reason}")
            status = 1 if arguments.parts else status
            continue
        with status_line(part.name) as tell:
            results = list(part.search(tell))
            if part.must_gain:
                results = [_if_it_gains(part.name, found, tell) for found in results]
        all_found[part] = results
        for found in results:
            for line in _settle(found, dry_run=arguments.dry_run):
                screen.say(f"{part.name}: {line}")
    return status


def _if_it_gains(part: str, found: Found, tell: Tell) -> Found:
    """The same, with words on what additions gain by it; without its rows unless they gain."""
    if found.rows is None:
        return found
    with tempfile.TemporaryDirectory(prefix="vecadd-tune-") as name:
        shipped, tuned = Path(name, "shipped"), Path(name, "tuned")
        store.write(found.kind, found.key, found.rows, tuned)
        ratios = compare.ratios(part, shipped, tuned, tell)
    words = [*found.words, *compare.sentences(ratios, "untuned")]
    return replace(found, rows=found.rows if compare.gains(ratios) else None, words=words)


def _settle(found: Found, *, dry_run: bool) -> Iterator[str]:
    """Writes what was found to its file. Removes an earlier search's file where nothing is better than the build
    now."""
    yield from found.words
    if found.rows is None:
        removed = not dry_run and store.remove(found.kind, found.key)
        yield "nothing written" + ("; what an earlier search had written is removed" if removed else "")
    elif dry_run:
        yield f"would be written to {store.path(found.kind, found.key)}"
    else:
        yield f"written to {store.write(found.kind, found.key, found.rows)}; used by processes that start from now on"


def _changes(part: str, results: Sequence[Found], before: Path) -> list[str]:
    """What additions gain or lose by the files that were written or removed, measured where there are any."""
    files = [store.path(found.kind, found.key) for found in results if found.key]
    if all(_content(path) == _content(before / path.name) for path in files):
        return ["nothing changed: what is kept is what was kept before"]
    with status_line(part) as tell:
        return list(compare.sentences(compare.ratios(part, before, files[0].parent, tell), "before"))


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


def _part(text: str) -> Part:
    for part in PARTS:
        if part.name == text:
            return part
    raise argparse.ArgumentTypeError(unknown("part", text, (part.name for part in PARTS)))

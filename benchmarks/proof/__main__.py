"""Adds all pairs of short numbers, and compares each sum with exact arithmetic on its operands' bits.

    make proof RESULTS=DIR                       DIR/proof-MACHINE.json
    python -m benchmarks.proof --json FILE       the same, into that file

All 2^32 pairs of two dtypes of 16 bits, 2^24 of one of 8 and one of 16, 2^16 of two of 8: on the host at every SIMD
level of the processor, with threads; where there is a GPU, by every kernel that has those dtypes and through it. A NaN
may have any sign and payload, and is quiet. A row of the result file is a way to add and the dtypes it added: how many
pairs, how many wrong, the first wrong one's bits. The exit status is 1 where a sum or a flag was wrong.

A proof may be made in parts, by --places, --levels and --dtypes: in a file of the same commit and machine the rows
stay that this run does not make.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.proof import places
from benchmarks.proof.places import Part
from benchmarks.proof.ways import Row, is_right
from vecadd import _core
from vecadd.bench import machine
from vecadd.figures import read_fields, write_json
from vecadd.info import info

PLACES = ("host", "device")
LIMIT = 600  # seconds of a way and a case


def main(arguments: Sequence[str] | None = None) -> int:
    """Proves, prints and writes; the exit status is 1 where something was wrong, or nothing was proven."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.proof", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="the result file; proof-MACHINE.json in a folder")
    parser.add_argument("--places", type=_words, default=PLACES, metavar="host,device")
    parser.add_argument("--levels", type=_words, metavar="NAME,...", help="SIMD levels; all that this machine has")
    parser.add_argument("--dtypes", type=_words, metavar="NAME,...", help="left operands of these dtypes alone")
    parser.add_argument("--lefts", type=int, metavar="N", help="only N left operands in place of all")
    parser.add_argument("--limit", type=float, default=LIMIT, metavar="SECONDS", help="leave out slower ways")
    given = parser.parse_args(arguments)
    conditions, begun = machine.conditions_now(), time.perf_counter()
    rows = []
    for row in _rows(given):
        rows.append(row)
        if not is_right(row):
            print(json.dumps(row), flush=True)
    seconds = time.perf_counter() - begun
    wrong = sum(not is_right(row) for row in rows)
    print(f"{len(rows)} ways and dtypes, {sum(row['pairs'] for row in rows):,} pairs, {wrong} wrong, {seconds:.0f} s")
    if given.json is not None:
        found = info()
        meta = machine.meta(
            found,
            machine.conditions_since(conditions),
            method=" ".join((__doc__ or "").split()),
            command=" ".join(sys.argv[1:] if arguments is None else arguments),
            seconds=round(seconds, 1),
        )
        path = given.json / f"proof-{machine.name(found)}.json" if given.json.is_dir() else given.json
        write_json(path, {"meta": meta, "rows": [*_others(path, meta, rows), *rows]})
    return 0 if rows and not wrong else 1


def _others(path: Path, meta: Mapping[str, Any], rows: Sequence[Row]) -> list[Row]:
    """The rows of the file, of the same commit and machine, that are not made anew."""
    if not path.is_file():
        return []
    earlier, made = read_fields(path), {_name(row) for row in rows}
    same = all(earlier["meta"].get(key) == meta[key] for key in ("machine", "commit"))
    return [row for row in earlier["rows"] if _name(row) not in made] if same else []


def _name(row: Row) -> tuple[str | None, ...]:
    return tuple(row.get(key) for key in ("a", "b", "out", "way", "route", "simd"))


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))


def _rows(given: argparse.Namespace) -> Iterator[Row]:
    part = Part(given.lefts, given.dtypes, given.limit)
    if "host" in given.places:
        levels = _core.host_facts()["simd_levels"] if given.levels is None else given.levels
        for level in levels:
            yield from places.host(level, part)
    if "device" in given.places and info().gpus:
        yield from places.device(part)


if __name__ == "__main__":
    sys.exit(main())

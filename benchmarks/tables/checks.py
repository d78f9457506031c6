"""The tables of docs/check.md, made from the files in benchmarks/checks that `vecadd check --json` wrote.

A table stands between <!-- check: NAME MACHINE --> and <!-- /check -->: NAME is one of TABLES, MACHINE a file's name.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from vecadd.check import document
from vecadd.figures import show_date

FOLDER = Path(__file__).resolve().parents[1] / "checks"

_MARKED = re.compile(
    r"(?P<open><!-- check: (?P<name>[\w-]+) (?P<machine>\S+) -->\n).*?(?P<close><!-- /check -->)", re.S
)

Check = Mapping[str, Any]  # a file's content


def fill(text: str, folder: Path = FOLDER) -> str:
    """The text with every marked table made anew. Raises ValueError for a marker that names no table or no check."""
    return _MARKED.sub(lambda marker: _block(marker, folder), text)


def _block(marker: re.Match[str], folder: Path) -> str:
    name, path = marker["name"], folder / f"{marker['machine']}.json"
    if name not in TABLES:
        raise ValueError(f"{marker['open'].strip()}: there is no table {name!r}; there are {', '.join(TABLES)}")
    if not path.is_file() or (check := document.of_text(path, path.read_text(encoding="utf-8"))) is None:
        raise ValueError(f"{marker['open'].strip()}: {path} is no file of vecadd check")
    origin = (
        f"*`vecadd check` on {check['machine_type']}, driver {check['machine']['driver']}, "
        f"{show_date({'date': check['time'], **check['vecadd']})}: [all of it](../benchmarks/checks/{path.name}).*"
    )
    return "\n".join([marker["open"], *TABLES[name](check), "", origin, "", marker["close"]])


def normal(check: Check) -> Iterator[str]:
    """Of the first GPU's memory: a line for each way to state its rate."""
    gpu, probed = check["machine"]["gpu"][0], check["machine"]["limits"]["device"]
    add = max(each["value"] for each in _findings(check, r"device memory/gpu 0/add .*"))
    yield "| | device memory | why |"
    yield "| --- | --- | --- |"
    lines = {
        "data sheet": (
            gpu["bandwidth"] / 1e9,
            "memory clock times bus width: no refresh, no turn between reading and writing",
        ),
        "read alone": (_value(check, "device memory/gpu 0/read"), "the bus never turns around"),
        "STREAM add, which is ours": (add, "two arrays read and one written: the bus turns around"),
        "copy": (probed["copy_gbps"], "a byte that is copied counts twice"),
        "copy, counted once": (probed["copy_gbps"] / 2, "some tools count it once"),
    }
    yield from (f"| {name} | {rate:.0f} GB/s | {why} |" for name, (rate, why) in lines.items())


def pairs(check: Check) -> Iterator[str]:
    """A line for each GPU and each other: the three ways, and how they are connected."""
    yield "| | copy | read | write | connected by |"
    yield "| --- | --- | --- | --- | --- |"
    for copy in _findings(check, r"pair/gpu \d+ to gpu \d+/copy"):
        place = copy["where"]
        rates = (f"{_value(check, f'pair/{place}/{way}'):.0f} GB/s" for way in ("copy", "read", "write"))
        yield f"| {place.replace('gpu', 'GPU')} | {' | '.join(rates)} | {copy['source']} each way |"


def soak(check: Check) -> Iterator[str]:
    """A line for each GPU: what was looked through, at which rate."""
    yield "| | found | rate |"
    yield "| --- | --- | --- |"
    for memory in _findings(check, r"soak/.*/memory"):
        rate = _value(check, f"soak/{memory['where']}/rate")
        yield f"| {memory['where'].replace('gpu', 'GPU')} | {memory['meaning']} | {rate:.0f} GB/s |"


TABLES: dict[str, Callable[[Check], Iterator[str]]] = {"normal": normal, "pairs": pairs, "soak": soak}


def _findings(check: Check, pattern: str) -> list[Mapping[str, Any]]:
    """Those whose id is of this form."""
    return [each for each in check["findings"] if re.fullmatch(pattern, each["id"])]


def _value(check: Check, id: str) -> float:
    (found,) = _findings(check, re.escape(id))
    return float(found["value"])

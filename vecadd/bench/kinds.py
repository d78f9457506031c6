"""Which kinds of values the fields of a bench's result file have, as far as a reader goes by them.

A file that was written by hand, or damaged, is refused by its name when it is read, and not by the plot or the table
that meets the field first.
"""

import json
from collections.abc import Mapping
from math import inf
from typing import Any

NUMBER = (int, float)
NO = type(None)
OTHERS = "*"  # of an object: the fields that are not named
MOST = 2**63  # whole numbers lie below it, as C's int64_t does; a float can hold each, rounded


class Whole(dict[str, Any]):
    """The kinds of an object's fields, all of which have to be there."""


class Columns(dict[str, Any]):
    """The kinds of an object's fields, of which those that are lists have one length."""


class Positive(tuple[type, ...]):
    """Types, whose numbers are above zero."""


# A kind is a type, several types, the kinds of an object's fields, or in a list the kind of each entry; a list of
# several kinds has as many entries.
Kind = type | tuple[type, ...] | Mapping[str, Any] | list[Any]

ROW: Mapping[str, Kind] = {
    **dict.fromkeys(("sweep", "rung", "dtype"), str),
    **dict.fromkeys(("n", "bytes"), int),
    "seconds": Positive((*NUMBER, NO)),
    **dict.fromkeys(("gbps", "limit_gbps", "fraction"), (*NUMBER, NO)),
    "checked": bool,
    "error": (str, NO),
    "params": {
        "parameters": {OTHERS: int},
        "stages": {OTHERS: NUMBER},
        **dict.fromkeys(("clock", "experiment", "form", "kernel", "load", "memory", "stage"), str),
        **dict.fromkeys(("block", "bytes_in_flight", "registers"), int),
        **dict.fromkeys(("model_seconds", "seconds_per_add", "waves"), NUMBER),
        **dict.fromkeys(("break_even", "launch_share", "link_fraction", "occupancy"), (*NUMBER, NO)),
        "grid": [int],
        "shape": [int],
        **dict.fromkeys(("capture", "destroy", "instantiate"), NUMBER),
        "ratio": Positive(NUMBER),
        "timeline": [[str, int, int, NUMBER, NUMBER]],  # as vecadd.bench.steps.Step has them
    },
}

META: Mapping[str, Kind] = {
    **dict.fromkeys(("date", "machine", "method"), str),
    **dict.fromkeys(("commit", "driver"), (str, NO)),
    **dict.fromkeys(("clocks", "versions"), dict),
    "failures": [str],
    "skipped": [str],
    "contamination": {
        **dict.fromkeys(("cpus", "load_average"), NUMBER),
        **dict.fromkeys(("gpu_processes", "ecc_errors"), (*NUMBER, NO)),
        "throttled": {OTHERS: (*NUMBER, NO)},
        "link_width": [{OTHERS: (int, NO)}],
    },
    "cpu": {"model": (str, NO), "simd": (str, NO), "simd_levels": [str], OTHERS: int},
    "gpu": [{"name": str, "compute_capability": str, "ecc": (bool, NO), OTHERS: (*NUMBER, NO)}],
    "limits": {
        "device": {OTHERS: NUMBER},
        "latency": {OTHERS: NUMBER},
        "launch": Columns({"bytes": [NUMBER], "fresh_node_seconds": [NUMBER], OTHERS: NUMBER}),
        "link": {OTHERS: NUMBER},
        "loaded": Columns({OTHERS: [NUMBER]}),
        OTHERS: dict,
    },
}


def check(name: str, value: Any, kind: Kind) -> None:
    """Raises TypeError, which names the field, where a value or one within it is of another kind. Fields that are not
    there are not looked for, but for those of a Whole."""
    if isinstance(kind, Mapping):
        check(name, value, dict)
        if isinstance(kind, Whole) and (missing := [field for field in kind if field not in value]):
            raise TypeError(f"{name} has no {', '.join(missing)}")
        lengths = {len(within) for within in value.values() if isinstance(within, list)}
        if isinstance(kind, Columns) and len(lengths) > 1:
            raise TypeError(f"{name} has lists of {' and '.join(map(str, sorted(lengths)))} entries")
        for field, within in value.items():
            if (known := kind.get(field, kind.get(OTHERS))) is not None:
                check(f"{name}.{field}", within, known)
    elif isinstance(kind, list):
        check(name, value, (list, tuple))  # a tuple in no file, but in what a process answers
        if len(kind) > 1 and len(value) != len(kind):
            raise TypeError(f"{name} has {len(value)} entries, not {len(kind)}")
        for place, entry in enumerate(value):
            check(f"{name}[{place}]", entry, kind[place % len(kind)])
    else:
        kinds = kind if isinstance(kind, tuple) else (kind,)
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            called = [word for kind, word in _CALLED.items() if kind in kinds]
            raise TypeError(f"{name} is {json.dumps(value)[:40]}, not {' or '.join(called)}")
        if isinstance(value, int | float):
            if not abs(value) < (MOST if isinstance(value, int) else inf):
                raise TypeError(f"{name} is {json.dumps(value)[:40]}, which is no number in range")
            if isinstance(kind, Positive) and value <= 0:
                raise TypeError(f"{name} is {json.dumps(value)[:40]}, not above zero")


_CALLED = {
    str: "a text",
    int: "a whole number",
    float: "another number",
    bool: "true or false",
    dict: "an object",
    list: "a list",
    NO: "null",
}

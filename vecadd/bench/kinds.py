"""Which kinds of values the fields of a bench's result file have, as far as a reader goes by them.

A file that was written by hand, or damaged, is refused by its name when it is read, and not by the plot or the table
that meets the field first.
"""

import json
from collections.abc import Mapping
from typing import Any

NUMBER = (int, float)
NO = type(None)
OTHERS = "*"  # of an object: the fields that are not named

# A kind is a type, several types, the kinds of an object's fields, or in a list the kind of each entry.
Kind = type | tuple[type, ...] | Mapping[str, Any] | list[Any]

ROW: Mapping[str, Kind] = {
    **dict.fromkeys(("sweep", "rung", "dtype"), str),
    **dict.fromkeys(("n", "bytes"), int),
    **dict.fromkeys(("seconds", "gbps", "limit_gbps", "fraction"), (*NUMBER, NO)),
    "checked": bool,
    "error": (str, NO),
    "params": {
        **dict.fromkeys(("parameters", "stages"), dict),
        **dict.fromkeys(("clock", "experiment", "form", "kernel", "load", "memory", "reference", "stage"), str),
        **dict.fromkeys(("block", "bytes_in_flight", "registers"), int),
        **dict.fromkeys(("model_seconds", "ratio", "seconds_per_add", "waves"), NUMBER),
        **dict.fromkeys(("break_even", "launch_share", "link_fraction", "occupancy"), (*NUMBER, NO)),
        "grid": [int],
        "shape": [int],
        "ratio_interval": [NUMBER],
        "timeline": list,
    },
}

META: Mapping[str, Kind] = {
    **dict.fromkeys(("date", "machine", "method"), str),
    **dict.fromkeys(("commit", "driver", "revision"), (str, NO)),
    **dict.fromkeys(("clocks", "sources", "versions"), dict),
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
        "launch": {"bytes": [NUMBER], "fresh_node_seconds": [NUMBER], OTHERS: NUMBER},
        "link": {"name": str, OTHERS: NUMBER},
        "loaded": {OTHERS: [NUMBER]},
        OTHERS: dict,
    },
}


def check(name: str, value: Any, kind: Kind) -> None:
    """Raises TypeError, which names the field, where a value or one within it is of another kind. Fields that are not
    there are not looked for."""
    if isinstance(kind, Mapping):
        check(name, value, dict)
        for field, within in value.items():
            if (known := kind.get(field, kind.get(OTHERS))) is not None:
                check(f"{name}.{field}", within, known)
    elif isinstance(kind, list):
        check(name, value, list)
        for place, entry in enumerate(value):
            check(f"{name}[{place}]", entry, kind[0])
    else:
        kinds = kind if isinstance(kind, tuple) else (kind,)
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            called = [word for kind, word in _CALLED.items() if kind in kinds]
            raise TypeError(f"{name} is {json.dumps(value)[:40]}, not {' or '.join(called)}")


_CALLED = {
    str: "a text",
    int: "a whole number",
    float: "another number",
    bool: "true or false",
    dict: "an object",
    list: "a list",
    NO: "null",
}

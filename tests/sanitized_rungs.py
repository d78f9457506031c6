"""Runs every rung whose kernels a sanitizer should see, and checks the sums: python tests/sanitized_rungs.py

For compute-sanitizer, under which pytest and its fixtures would take most of the time. Device, precision and latency
rungs but `race`, which is a race; each at awkward sizes, for a dtype of each width that it takes.
"""

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

import vecadd
from vecadd import _core, ladder

SIZES = (1, 3, 1027, 4096)
DTYPES = ("float32", "float64", "float16", "int8")
ADDS = 7  # of a latency rung; n has to be no multiple of it
KINDS = ("device", "latency")


def cases() -> Iterator[tuple[dict[str, Any], str, int, dict[str, int]]]:
    capability = max(10 * gpu["cc_major"] + gpu["cc_minor"] for gpu in _core.gpu_facts()[:1])
    for rung in _core.rungs():
        if rung["kind"] not in KINDS or rung["sum"] == "raced" or rung["min_cc"] > capability:
            continue
        for dtype in DTYPES:
            for n in SIZES if dtype in rung["dtypes"] else ():
                yield rung, dtype, n, {}
                if rung["kind"] == "latency" and rung["name"] != "batched":
                    yield rung, dtype, n, {"chain": 1}


def run(rung: dict[str, Any], dtype: str, n: int, params: dict[str, int]) -> bool:
    """Whether the sum is right; small whole numbers are exact in every dtype."""
    x, y = (np.arange(n) % 3).astype(dtype), (np.arange(n) % 5 % 2).astype(dtype)
    if rung["kind"] == "latency":
        params = {"adds": ADDS, **params}
    got = ladder.run(rung["name"], vecadd.to_device(x), vecadd.to_device(y), **params).numpy()
    want = x + y
    if params.get("chain"):
        want = x + y * np.dtype(dtype).type(ADDS)
    elif rung["sum"] == "added by each thread":
        want = want * np.dtype(dtype).type(rung["block"])
    return np.array_equal(got, want)


def main() -> int:
    wrong = total = 0
    for rung, dtype, n, params in cases():
        total += 1
        if not run(rung, dtype, n, params):
            wrong += 1
            print(f"wrong: {rung['name']} {dtype} {n} {params}")
    print(f"{total} runs, {wrong} wrong")
    return int(wrong > 0 or total == 0)


if __name__ == "__main__":
    sys.exit(main())

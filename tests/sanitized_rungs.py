"""Runs every rung whose kernels a sanitizer should see, and checks the sums: python tests/sanitized_rungs.py

For compute-sanitizer, under which pytest and its fixtures would take most of the time. Device, precision, latency and
matrix rungs but `race`, which is a race; each at awkward sizes, for a dtype of each width that it takes.
"""

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

import vecadd
from vecadd import _core, ladder

SIZES = (1, 3, 1027, 4096)
SHAPES = ((1, 1), (33, 65), (130, 70))
INNER = 9  # of a product of that shape
DTYPES = ("float32", "float64", "float16", "int8")
ADDS = 7  # of a latency rung; n has to be no multiple of it
KINDS = ("device", "latency", "matrix")


def cases() -> Iterator[tuple[dict[str, Any], str, Any, dict[str, int]]]:
    """Rung, dtype, elements or a matrix's shape, parameters."""
    capability = max(10 * gpu["cc_major"] + gpu["cc_minor"] for gpu in _core.gpu_facts()[:1])
    for rung in _core.rungs():
        if rung["kind"] not in KINDS or rung["sum"] == "raced" or rung["min_cc"] > capability:
            continue
        if rung["kind"] == "matrix":
            yield from ((rung, "float32", shape, {}) for shape in SHAPES)
            continue
        for dtype in DTYPES:
            for n in SIZES if dtype in rung["dtypes"] else ():
                yield rung, dtype, n, {}
                if rung["kind"] == "latency" and rung["name"] != "batched":
                    yield rung, dtype, n, {"chain": 1}


def run_matrices(rung: dict[str, Any], shape: tuple[int, int]) -> bool:
    """Whether the transpose or the product is right."""
    if rung["sum"] == "product":
        a, b = np.ones((shape[0], INNER), np.float32), np.arange(INNER * shape[1], dtype=np.float32) % 5
        factors = a, b.reshape(INNER, shape[1])
        return np.array_equal(ladder.run(rung["name"], *map(vecadd.to_device, factors)).numpy(), np.matmul(*factors))
    x = np.arange(shape[0] * shape[1], dtype=np.float32).reshape(shape)
    got = ladder.run(rung["name"], vecadd.to_device(x)).numpy()
    return np.array_equal(got, x if rung["sum"] == "copy" else x.T)


def run(rung: dict[str, Any], dtype: str, n: Any, params: dict[str, int]) -> bool:
    """Whether the sum is right; small whole numbers are exact in every dtype."""
    if rung["kind"] == "matrix":
        return run_matrices(rung, n)
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

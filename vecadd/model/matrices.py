"""The expected time of a kernel that transposes a matrix or multiplies two: an empty kernel, and the longest of what
has to be done, because a GPU does all of it at once where it has threads enough.

memory      each matrix once (`Limits.memory_seconds`)
L2          bytes between it and the multiprocessors: of a product a piece of each factor for each block; of a
            transpose, sectors that are written in part count whole
arithmetic  a multiplication and an addition for each inner element of each element of a product, at the cores' peak
loads       a multiprocessor begins one load of a warp a cycle. A thread of a product makes rows + columns of its piece
            for rows * columns multiplications. In shared memory a warp's load takes as many cycles as it finds elements
            in one bank.

Blocks that do not fill the last round of multiprocessors leave some idle: arithmetic and loads take longer by that.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from vecadd.model.gpu import WARP, Gpu
from vecadd.model.limits import Limits
from vecadd.model.prediction import Prediction

FLOAT = 4  # bytes

# Cycles of a warp's load from shared memory, and how many times the bytes the L2 is written: both follow from a block's
# shape. A half warp of transpose_naive writes 8 bytes of each of 16 sectors of 32.
_TURNS = {"transpose_shared": 32, "transpose_padded": 1}
_WRITTEN = {"transpose_naive": 4}


def product_operations(rows: int, columns: int, inner: int) -> int:
    """Multiplications and additions of a product of a rows x inner and an inner x columns matrix.

    >>> vecadd.model.product_operations(2, 3, 4)
    48
    """
    return 2 * rows * columns * inner


def predict(rung: Mapping[str, Any], gpu: Gpu, limits: Limits, shape: Sequence[int]) -> Prediction:
    """The prediction of a matrix rung for (rows, columns), or for (rows, columns, inner) of a product."""
    terms = _product(rung, gpu, limits, *shape) if rung["sum"] == "product" else _turn(rung, gpu, limits, *shape)
    dominant = max(terms, key=lambda name: terms[name])
    floor = limits.need("kernel")
    return Prediction(floor + terms[dominant], {"launch": floor, **terms}, dominant)


def _turn(rung: Mapping[str, Any], gpu: Gpu, limits: Limits, rows: int, columns: int) -> dict[str, float]:
    nbytes = rows * columns * FLOAT
    turns = _TURNS.get(rung["name"], 0)
    warps = rows * columns / WARP
    return {
        "memory": limits.memory_seconds(nbytes, nbytes),
        "L2": max(nbytes / limits.need("l2_read"), _WRITTEN.get(rung["name"], 1) * nbytes / limits.need("l2_write")),
        "loads": warps * (1 + turns) / gpu.multiprocessors / gpu.cycles(1),
    }


def _product(
    rung: Mapping[str, Any], gpu: Gpu, limits: Limits, rows: int, columns: int, inner: int
) -> dict[str, float]:
    tile_rows, tile_columns, _, thread_rows, thread_columns = rung["tile"]
    down, across = -(-rows // tile_rows), -(-columns // tile_columns)
    rounds = down * across / gpu.multiprocessors
    idle = math.ceil(rounds) / rounds
    # Whole pieces: a thread beyond the edge of the product multiplies zeros.
    multiplied = down * tile_rows * across * tile_columns * inner
    loaded = multiplied * (thread_rows + thread_columns) / (thread_rows * thread_columns)
    pieces = down * across * (tile_rows + tile_columns) * inner * FLOAT
    return {
        "memory": limits.memory_seconds((rows + columns) * inner * FLOAT, rows * columns * FLOAT),
        "L2": pieces / limits.need("l2_read"),
        "arithmetic": idle * multiplied / gpu.peak,
        "loads": idle * loaded / WARP / gpu.multiprocessors / gpu.cycles(1),
    }

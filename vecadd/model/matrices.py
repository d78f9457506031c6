"""The expected time of a kernel that transposes a matrix or multiplies two.

A transpose moves each element once, as an addition does, by one load a thread: few bytes in flight. It is predicted as
the device rungs are (`kernels`), and a square that is turned in shared memory keeps its block waiting for longer: a
warp's load takes as many cycles as it finds elements in one bank. Copies are transposes that turn nothing.

A product takes an empty kernel and the longest of

memory      each matrix once (`Limits.memory_seconds`)
L2          a piece of each factor for each block, between the L2 and the multiprocessors
work        a multiplication and an addition for each inner element of each element of the product, at the cores' peak,
            and the loads for them: a multiprocessor begins one load of a warp a cycle, and a thread makes rows +
            columns of its piece for rows * columns multiplications. The two add up, because a block's warps go through
            its loop together: all load, then all multiply. Blocks that do not fill the last round of multiprocessors
            leave some idle: work takes longer by that. And a block waits for its pieces of the factors, a round trip
            (`Limits.far`) for each, in which the other blocks of its multiprocessor work, but for blocks that have all
            begun at once: they wait together.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from vecadd.model import kernels
from vecadd.model.gpu import WARP, Gpu, occupancy
from vecadd.model.limits import Limits
from vecadd.model.prediction import Prediction

FLOAT = 4  # bytes

# Threads of a block; a square of 32 by 32 has all that a block can have.
_BLOCKS = {"transpose_naive": 256, "transpose_copy_float4": 256}
_SQUARE = 1024


def product_operations(rows: int, columns: int, inner: int) -> int:
    """Multiplications and additions of a product of a rows x inner and an inner x columns matrix.

    >>> vecadd.model.product_operations(2, 3, 4)
    48
    """
    return 2 * rows * columns * inner


def predict(rung: Mapping[str, Any], gpu: Gpu, limits: Limits, shape: Sequence[int]) -> Prediction:
    """The prediction of a matrix rung for (rows, columns), or for (rows, columns, inner) of a product. Of the
    driver's own copy it is the least: what the memory takes."""
    if rung["sum"] == "product":
        return _product(rung, gpu, limits, *shape)
    if not rung["bytes_per_load"]:
        nbytes, floor = math.prod(shape) * FLOAT, limits.need("kernel")
        memory = limits.memory_seconds(nbytes, nbytes)
        return Prediction(floor + memory, {"launch": floor, "memory": memory}, "memory")
    block = _BLOCKS.get(rung["name"], _SQUARE)
    # The bench's sets together exceed the L2.
    return kernels.many_blocks(rung, None, gpu, limits, FLOAT, math.prod(shape), {}, block, cached=False)


def _product(rung: Mapping[str, Any], gpu: Gpu, limits: Limits, rows: int, columns: int, inner: int) -> Prediction:
    tile_rows, tile_columns, tile_inner, thread_rows, thread_columns = rung["tile"]
    down, across = -(-rows // tile_rows), -(-columns // tile_columns)
    rounds = down * across / gpu.multiprocessors
    # Whole pieces: a thread beyond the edge of the product multiplies zeros.
    multiplied = down * tile_rows * across * tile_columns * inner
    loaded = multiplied * (thread_rows + thread_columns) / (thread_rows * thread_columns)
    arithmetic = multiplied / gpu.peak
    loads = loaded / WARP / gpu.multiprocessors / gpu.cycles(1)
    terms = {
        "memory": limits.memory_seconds((rows + columns) * inner * FLOAT, rows * columns * FLOAT),
        "L2": down * across * (tile_rows + tile_columns) * inner * FLOAT / limits.need("l2_read"),
        "work": math.ceil(rounds) / rounds * (arithmetic + loads),
    }
    if tile_inner:
        threads = tile_rows // thread_rows * (tile_columns // thread_columns)
        shared = (tile_rows + tile_columns) * tile_inner * FLOAT
        fit = occupancy(gpu, threads, _registers(thread_rows * thread_columns), shared).blocks
        held = min(fit, math.ceil(rounds))
        pieces = -(-inner // tile_inner)
        others = (held - 1) * (arithmetic + loads) / rounds / pieces if rounds > fit else 0.0
        terms["work"] += math.ceil(rounds / fit) * pieces * max(0.0, limits.far - others)
    dominant = max(terms, key=lambda name: terms[name])
    floor = limits.need("kernel")
    return Prediction(floor + terms[dominant], {"launch": floor, **terms}, dominant)


def _registers(sums: int) -> int:
    """Of a thread that makes so many elements: sums, a third as many for what they are made from, and addresses."""
    return 30 + 4 * sums // 3

"""Triton's addition, and Helion's, which becomes one of Triton. In a file of its own: both read a kernel's source and
the names of its file, and importing this needs Triton."""

# mypy: ignore-errors

import functools
from typing import Any

import triton
import triton.language as tl

try:
    from triton.language.extra.cuda import gdc_wait

    PROGRAMMATIC = True
except ImportError:
    PROGRAMMATIC = False

try:
    import helion
    import helion.language as hl
except Exception:  # a Helion that does not fit this Triton is no reason to leave Triton out
    helion = None


@triton.jit
def _add(a, b, c, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    tl.store(c + i, tl.load(a + i, mask=inside) + tl.load(b + i, mask=inside), mask=inside)


@triton.jit
def _add_after_wait(a, b, c, n, BLOCK: tl.constexpr):
    # The kernel ahead may still run when this one begins: this waits for its end before touching memory.
    gdc_wait()
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    tl.store(c + i, tl.load(a + i, mask=inside) + tl.load(b + i, mask=inside), mask=inside)


def add(a: Any, b: Any, c: Any, block: int, warps: int) -> None:
    """Queues c = a + b on torch's current stream."""
    _add[_grid(c, block)](a, b, c, c.numel(), BLOCK=block, num_warps=warps)


def add_programmatically(a: Any, b: Any, c: Any, block: int, warps: int) -> None:
    """Queues c = a + b to begin before the kernel ahead has ended. Needs PROGRAMMATIC and compute capability 9.0."""
    _add_after_wait[_grid(c, block)](a, b, c, c.numel(), BLOCK=block, num_warps=warps, launch_pdl=True)


def add_by_helion(a: Any, b: Any, c: Any, block: int, warps: int) -> None:
    """Queues c = a + b. Needs Helion."""
    _helions(block, warps)(a, b, c)


@functools.cache
def _helions(block: int, warps: int) -> Any:
    # For any size: compiled for each, the kernels of all cells would take minutes.
    config = helion.Config(block_sizes=[block], num_warps=warps)
    return helion.kernel(_add_tiles, config=config, static_shapes=False)


def _add_tiles(a, b, c):
    for tile in hl.tile(c.size(0)):
        c[tile] = a[tile] + b[tile]


def _grid(c: Any, block: int) -> tuple[int]:
    n = c.numel()
    if n + block > 2**31:
        raise ValueError(f"{n} elements are more than this kernel counts, 2^31")
    return (triton.cdiv(n, block),)

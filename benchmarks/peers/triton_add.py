"""Triton's addition. In a file of its own: Triton reads a kernel's source, and importing this needs Triton."""

# mypy: ignore-errors

from typing import Any

import triton
import triton.language as tl


@triton.jit
def _add(a, b, c, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    tl.store(c + i, tl.load(a + i, mask=inside) + tl.load(b + i, mask=inside), mask=inside)


def add(a: Any, b: Any, c: Any, block: int, warps: int) -> None:
    """Queues c = a + b on torch's current stream."""
    n = c.numel()
    if n + block > 2**31:
        raise ValueError(f"{n} elements are more than this kernel counts, 2^31")
    _add[(triton.cdiv(n, block),)](a, b, c, n, BLOCK=block, num_warps=warps)

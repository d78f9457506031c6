"""JAX, which has a stream of its own and no out=: timed by the host in batches, and beside vecadd in the same form."""

import os
from collections.abc import Callable, Sequence
from itertools import cycle, islice
from time import perf_counter
from typing import Any

import vecadd
from benchmarks.peers import libraries
from vecadd.bench.contestants import QUEUED, Contestant
from vecadd.bench.operands import Buffers, MemoryKind

MOST_BATCHED = 1 << 26  # bytes of a sum: larger ones are not made QUEUED at a time


def compiled() -> tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]:
    """A tensor as JAX's array, and a + b under jax.jit; raises what importing JAX raises, RuntimeError where it has no
    GPU."""
    # By default JAX takes three quarters of the GPU's memory for itself.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    jax = libraries.module("jax")
    dlpack = libraries.module("jax.dlpack")
    if jax.default_backend() != "gpu":
        raise RuntimeError(f"its backend is {jax.default_backend()}")
    jax.config.update("jax_enable_x64", True)
    return dlpack.from_dlpack, jax.jit(lambda a, b: a + b)


def contestants(place: MemoryKind) -> list[Contestant]:
    """vecadd and JAX, vecadd first; raises what `compiled` raises."""
    take, add = compiled()
    torch = libraries.module("torch")
    return [
        Contestant("vecadd (new)", place, _by_batches(vecadd.add, lambda x: x, lambda c: torch.cuda.synchronize())),
        Contestant("jax (new)", place, _by_batches(add, take, lambda c: c.block_until_ready())),
    ]


def _by_batches(
    add: Callable[[Any, Any], Any], take: Callable[[Any], Any], wait: Callable[[Any], object]
) -> Callable[[Sequence[Buffers]], float]:
    """Queued calls and one wait, by the host's clock. Afterwards copies each set's last sum into its out for the
    check."""

    def time(sets: Sequence[Buffers]) -> float:
        torch = libraries.module("torch")
        operands = [(take(used.a), take(used.b)) for used in sets]
        calls = len(sets) if sets[0].out.nbytes > MOST_BATCHED else max(QUEUED, len(sets))
        sums: list[Any] = [None] * len(sets)
        torch.cuda.synchronize()
        begin = perf_counter()
        for at in islice(cycle(range(len(sets))), calls):
            sums[at] = result = add(*operands[at])
        wait(result)
        seconds = (perf_counter() - begin) / calls
        for used, total in zip(sets, sums, strict=True):
            used.out.copy_(torch.from_dlpack(total))
        return seconds

    return time

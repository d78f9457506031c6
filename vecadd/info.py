"""vecadd.info(), which imports vecadd._machine only when called, so that importing the package stays quick."""

from typing import TYPE_CHECKING

from vecadd import _core


def memory_stats() -> dict[str, int]:
    """Bytes and blocks of memory by what uses them now.

    ``device_...`` is DeviceArrays' and ``pinned_...`` is ``empty_pinned`` arrays'. Large sums on the host, and
    those from 16 KiB on of a program that keeps them, come from a pool: ``output_used_...`` are the sums still in use;
    ``output_kept_...`` wait for the next sum, at most ``output_bound`` bytes, which is an eighth of the memory that
    this process may use, or VECADD_POOL_BYTES of the environment, and for some five seconds: a worker thread gives back
    what no sum uses, or else the next sum that is dropped. ``transfer_...`` is page-locked
    memory that waits for the next host arrays that go through a GPU: up to 4 MiB a thread. `vecadd.release` gives
    kept memory back.

    >>> total = vecadd.add(np.ones(1_000_000), 1)
    >>> vecadd.memory_stats()["output_used_bytes"] >= total.nbytes
    True
    """
    return (
        _core.memory_counts()
        | {f"output_{name}": count for name, count in _core.output_pool_counts().items()}
        | {f"transfer_{name}": count for name, count in _core.transfer_counts().items()}
    )


if TYPE_CHECKING:
    from vecadd._machine import Info

__all__ = ["info"]


def info() -> "Info":
    """What this machine and this build have: GPUs, driver and runtime versions, processor, SIMD level, threads, memory.

    The GPU is asked by a short-lived child process, so that CUDA stays uninitialised in this one. Never raises because
    of what the machine lacks: ``gpu_status`` and ``gpu_reason`` of the result say it.

    >>> vecadd.info().cpu.threads >= 1
    True
    """
    from vecadd._machine import look

    return look()

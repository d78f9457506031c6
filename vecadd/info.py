"""vecadd.info(), which imports vecadd._machine only when called, so that importing the package stays quick."""

from typing import TYPE_CHECKING

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

"""Vector addition c = a + b at the speed of memory, on CPUs and NVIDIA GPUs.

    >>> import numpy, vecadd
    >>> vecadd.add(a, b)                    # NumPy arrays: numpy.add's sum, on several threads
    >>> vecadd.add(a, b, device="cuda")     # the same by way of the GPU
    >>> vecadd.add(x, y)                    # arrays of CuPy, PyTorch, Numba or vecadd on the GPU: there, on its stream

The package needs NumPy; everything on a GPU needs an NVIDIA driver besides. Importing it does not touch CUDA.
"""

from importlib import import_module
from typing import Any

from vecadd._core import DeviceArray, DeviceLostError, Plan, add, add_many, empty_pinned, plan, release, to_device
from vecadd._memory import memory_stats
from vecadd.info import info

__all__ = [
    "DeviceArray",
    "DeviceLostError",
    "Plan",
    "add",
    "add_many",
    "empty_pinned",
    "info",
    "ladder",
    "memory_stats",
    "model",
    "plan",
    "release",
    "to_device",
]

# Submodules that are imported when they are first asked for.
_LAZY = frozenset({"bench", "ladder", "model"})


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return import_module(f"vecadd.{name}")
    if name == "__version__":
        from vecadd.info import package_version

        return package_version()
    raise AttributeError(f"module 'vecadd' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY, "__version__"})

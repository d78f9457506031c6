"""Vector addition c = a + b at the speed of memory, on CPUs and NVIDIA GPUs.

    >>> import numpy as np, vecadd
    >>> a, b = np.arange(4.0), np.ones(4)
    >>> vecadd.add(a, b)                    # NumPy arrays: numpy.add's sum, on several threads
    array([1., 2., 3., 4.])
    >>> vecadd.add(a, b, device="cuda")     # the same by way of the GPU
    array([1., 2., 3., 4.])
    >>> vecadd.explain(a, b).route          # which way it goes; print the explanation to see why
    'host'
    >>> x = vecadd.to_device(a)
    >>> vecadd.add(x, x).numpy()            # arrays that are on the GPU are added there, on their stream
    array([0., 2., 4., 6.])

Arrays on a GPU may be vecadd's own, of CuPy, PyTorch, JAX or Numba, or of any library with DLPack or
`__cuda_array_interface__`.

The package needs NumPy; everything on a GPU needs an NVIDIA driver besides. Importing it does not touch CUDA.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

try:
    from vecadd._core import (
        DeviceArray,
        DeviceLostError,
        Plan,
        add,
        add_many,
        empty_pinned,
        get_num_threads,
        plan,
        release,
        set_num_threads,
        to_device,
        use_gpu,
    )
except ModuleNotFoundError as error:
    if error.name != "vecadd._core":
        raise
    from pathlib import Path

    _package = Path(__file__).parent
    _advice = ": this installation is not whole; pip install --force-reinstall --no-deps vecadd"
    if (_package.parent / "csrc").is_dir():
        _advice = (
            ", which is vecadd's source tree and was never built. To use the vecadd that is installed, run Python from "
            f"another folder. To use the source tree: pip install -e {_package.parent}"
        )
    raise ImportError(f"vecadd's compiled part, vecadd._core, is not in {_package}{_advice}", name=error.name) from None
from vecadd._after_import import after_import as _after_import
from vecadd.info import info, memory_stats

if TYPE_CHECKING:
    from vecadd._explain import Explanation, explain
    from vecadd._install import Installation, install, uninstall
    from vecadd.files import add_files
    from vecadd.stores import add_zarr

__all__ = [
    "DeviceArray",
    "DeviceLostError",
    "Explanation",
    "Installation",
    "Plan",
    "add",
    "add_files",
    "add_many",
    "add_zarr",
    "empty_pinned",
    "explain",
    "get_num_threads",
    "info",
    "install",
    "ladder",
    "memory_stats",
    "model",
    "plan",
    "release",
    "set_num_threads",
    "to_device",
    "uninstall",
    "use_gpu",
]

# Submodules, and names of submodules, that are imported when they are first asked for.
_LAZY = frozenset({"bench", "dask", "ladder", "model"})
_LAZY_NAMES = {
    "Explanation": "_explain",
    "Installation": "_install",
    "add_files": "files",
    "add_zarr": "stores",
    "explain": "_explain",
    "install": "_install",
    "uninstall": "_install",
}


# torch.compile has to know of vecadd.add before it traces a call, and its module takes seconds to import.
_after_import("torch._dynamo", lambda: import_module("vecadd.interop.torch_compile").substitute())


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return import_module(f"vecadd.{name}")
    if name in _LAZY_NAMES:
        return getattr(import_module(f"vecadd.{_LAZY_NAMES[name]}"), name)
    if name == "__version__":
        from vecadd._command import package_version

        return package_version()
    raise AttributeError(f"module 'vecadd' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


def load_ipython_extension(shell: Any) -> None:
    """``%load_ext vecadd`` in a notebook: `vecadd.install`, and ``%%why`` for a receipt of a cell's additions."""
    import_module("vecadd._install").install()
    import_module("vecadd.why.receipt").register_magic(shell)


def unload_ipython_extension(shell: Any) -> None:
    """``%unload_ext vecadd``: `vecadd.uninstall`, and no more ``%%why``."""
    import_module("vecadd._install").uninstall()
    import_module("vecadd.why.receipt").unregister_magic(shell)

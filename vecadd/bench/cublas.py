"""cuBLAS beside the SGEMM rungs, by a library of the process that brings it: PyTorch, else CuPy. TF32 is off."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from time import perf_counter
from typing import Any

import numpy as np

from vecadd import _core
from vecadd.bench.buffers import DEVICE, Buffers
from vecadd.bench.contestants import QUEUED, Contestant
from vecadd.bench.matrices import CUBLAS, FLOAT32, Factors, compare

LARGE = 2**20  # elements of a product from which on fewer calls are timed together

# By the name of a library: whether it finds a GPU.
LIBRARIES: tuple[tuple[str, Callable[[Any], bool]], ...] = (
    ("torch", lambda torch: bool(torch.cuda.is_available())),
    ("cupy", lambda cupy: bool(cupy.is_available())),
)


def contestant(factors: Factors, n: int) -> Contestant:
    """cuBLAS by the host's clock: queues calls, then waits for them. Raises ImportError where no library has it."""
    library = _library()
    marker = _core.to_device(np.zeros(1, np.uint8))
    calls = max(1, QUEUED * LARGE // max(n, LARGE))

    def time(sets: Sequence[Buffers]) -> float:
        views = [[library.from_dlpack(x) for x in (used.a, used.b, used.out)] for used in sets]
        with _without_tf32(library):
            marker.numpy()
            begin = perf_counter()
            for _ in range(calls):
                for a, b, out in views:
                    library.matmul(a, b, out=out)
            marker.numpy()
            return (perf_counter() - begin) / calls / len(sets)

    return Contestant(
        CUBLAS,
        DEVICE,
        time,
        {"shape": list(factors.shape), "clock": "host clock", "library": f"{library.__name__} {library.__version__}"},
        arrays=factors.nbytes / FLOAT32.itemsize / n,
        check=lambda used: compare(used.out, factors.result(used.start, "product")),
    )


def _library() -> Any:
    """PyTorch or CuPy, whose matmul runs on its current stream: the legacy default stream."""
    lacking = []
    for name, finds_a_gpu in LIBRARIES:
        try:
            library: Any = import_module(name)
        except ImportError:
            lacking.append(f"{name} is not installed")
            continue
        if finds_a_gpu(library):
            return library
        lacking.append(f"{name} finds no GPU")
    raise ImportError(", ".join(lacking))


@contextmanager
def _without_tf32(library: Any) -> Iterator[None]:
    """PyTorch's own setting comes back. CuPy has TF32 off unless CUPY_TF32 is set, and the check would show it."""
    if library.__name__ != "torch":
        yield
        return
    before = library.get_float32_matmul_precision()
    library.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        library.set_float32_matmul_precision(before)

"""What is timed: the rungs of the ladder, numpy.add, vecadd.add, and cuBLAS by a library that has it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from itertools import cycle, islice
from time import perf_counter
from typing import Any

import numpy as np

from vecadd import _core
from vecadd.bench.operands import DEVICE, FLOAT32, HOST, Buffers, Factors, Matrices, MemoryKind, compare_matrices
from vecadd.model.theory import bytes_in_flight, with_defaults, with_parameters

CALLS = ("numpy", "add")  # contestants that are not rungs
CUBLAS = "cublas"  # another

QUEUED = 20  # device calls timed together: draining the queue costs 10 us, spread over these
LARGE_PRODUCT = 2**20  # elements of a product from which on fewer calls are timed together

Timer = Callable[[Sequence[Buffers]], float]


@dataclass(frozen=True)
class Contestant:
    """``time(sets)`` adds each of the sets, which are in this kind of ``memory``, and returns the mean seconds of one
    addition.

    ``adds`` is 0 where the sum is written, else how often it is added to the output's contents; ``races`` says that
    some of these additions may be lost; ``arrays`` is how many arrays an addition moves. ``chain`` is how many
    additions of b follow one another where a rung makes several of them, 1 where it makes one; ``limited`` whether the
    cell's limit bounds it.

    ``extra_params(buffers)`` is called once after the last round, outside of the clock; its result joins ``params``.
    ``check(buffers)`` replaces the comparison with a + b where something else is left, and raises WrongSumError.
    """

    name: str
    memory: MemoryKind
    time: Timer
    params: Mapping[str, Any] = field(default_factory=dict)
    adds: int = 0
    races: bool = False
    arrays: float = 3
    chain: int = 1
    limited: bool = True
    extra_params: Callable[[Buffers], Mapping[str, Any]] | None = None
    check: Callable[[Buffers], None] | None = None


def find_rung(name: str) -> dict[str, Any] | None:
    """The row of a rung of this build; None for another name, such as numpy."""
    return next((rung for rung in _core.rungs() if rung["name"] == name), None)


def rung_names(kind: str, dtype: str) -> list[str]:
    """The rungs of that kind that take the dtype, in the ladder's order."""
    return [rung["name"] for rung in _core.rungs() if rung["kind"] == kind and dtype in rung["dtypes"]]


def rung(
    name: str,
    memory: MemoryKind,
    chosen: Mapping[str, int] | None = None,
    /,
    *,
    chain: int = 1,
    limited: bool = True,
    extra_params: Callable[[Buffers], Mapping[str, Any]] | None = None,
    **params: Any,
) -> Contestant:
    """A rung with the parameters ``chosen``, timed by its own clock: the host's around its C code, or CUDA events
    around its kernel. See `Contestant` for the rest."""
    params |= {"parameters": dict(chosen)} if chosen else {}
    time = _by_its_clock(name, {"params": dict(chosen)} if chosen else {})
    return Contestant(name, memory, time, params, chain=chain, limited=limited, extra_params=extra_params)


def device_rung(
    rung: Mapping[str, Any],
    gpu: Mapping[str, Any],
    dtype: np.dtype[Any],
    n: int,
    chosen: Mapping[str, int] | None = None,
    block: int = 0,
) -> Contestant:
    """A device rung with the parameters ``chosen`` and that block (0: its own), on a GPU with these facts; its figures
    have the kernel's facts, its load instruction and its bytes in flight."""
    in_flight = bytes_in_flight(rung, gpu, n, dtype.itemsize, with_defaults(rung, chosen or {}), block)
    block = block if rung["block"] > 1 else 0
    how: dict[str, Any] = {"params": dict(chosen)} if chosen else {}
    how |= {"block": block} if block else {}
    params: dict[str, Any] = {"bytes_in_flight": in_flight, **({"parameters": dict(chosen)} if chosen else {})}
    rung = with_parameters(rung, chosen or {})
    by_each_thread = rung["sum"] in ("added by each thread", "raced")
    return Contestant(
        rung["name"],
        DEVICE,
        _by_its_clock(rung["name"], how),
        {**params, "block": block or rung["block"], "load": load_instruction(rung, chosen or {})},
        adds=0 if rung["sum"] == "written" else (block or rung["block"]) if by_each_thread else 1,
        races=rung["sum"] == "raced",
        arrays=rung["bytes_per_element"] // 4,
        extra_params=lambda used: kernel_facts(rung["name"], str(dtype), n, **how),
    )


def load_instruction(rung: Mapping[str, Any], chosen: Mapping[str, int]) -> str:
    """The load instruction of a device rung with these parameters. Asynchronous copies of 16 bytes go past the L1
    unless they are told otherwise, narrower ones through it."""
    params = with_defaults(rung, chosen)
    if "through_l1" not in params:
        return str(with_parameters(rung, params)["load"])
    past = ".BYPASS" if params["bytes"] >= 16 and not params["through_l1"] else ""
    return f"LDGSTS.E{past}" + (".128" if params["bytes"] >= 16 else ".64" if params["bytes"] >= 8 else "")


def kernel_facts(name: str, dtype: str, n: int | tuple[int, ...], **how: Any) -> dict[str, Any]:
    """The facts of a device or matrix rung's launch that its figures have; the block as its number of threads."""
    facts = _core.rung_facts(name, dtype, n, **how)
    x, y, z = facts["block"]
    return {
        "block": x * y * z,
        "grid": list(facts["grid"]),
        **{key: facts[key] for key in ("launches", "registers", "occupancy", "waves")},
    }


def matrix_rung(rung: Mapping[str, Any], matrices: Matrices, n: int) -> Contestant:
    """A matrix rung that makes n elements; its figures have the kernel's facts and its shared memory."""
    name, left, shape = rung["name"], rung["sum"], matrices.shape
    turned = shape[:2] if left == "copy" else None

    def time(sets: Sequence[Buffers]) -> float:
        outs = [used.out.reshape(turned) if turned else used.out for used in sets]
        return sum(_core.run_rung(name, used.a, used.b, out) for used, out in zip(sets, outs, strict=True)) / len(sets)

    def extra_params(_: Buffers) -> dict[str, Any]:
        shared = _core.rung_facts(name, str(FLOAT32), shape)["static_shared"]
        return {**kernel_facts(name, str(FLOAT32), shape), "shared": shared}

    return Contestant(
        name,
        DEVICE,
        time,
        {"shape": list(shape), "load": rung["load"]},
        arrays=matrices.nbytes / FLOAT32.itemsize / n,
        extra_params=extra_params,
        check=lambda used: compare_matrices(used.out, matrices.result(used.start, left)),
    )


def _by_its_clock(name: str, how: Mapping[str, Any]) -> Timer:
    def time(sets: Sequence[Buffers]) -> float:
        return sum(_core.run_rung(name, a, b, out, **how) for a, b, out, _ in sets) / len(sets)

    return time


def by_host_clock(add: Callable[..., Any], **keywords: Any) -> Timer:
    """``time`` of a contestant that is called from Python and has its sum in ``out`` when the call returns."""

    def time(sets: Sequence[Buffers]) -> float:
        begin = perf_counter()
        for a, b, out, _ in sets:
            add(a, b, out=out, **keywords)
        return (perf_counter() - begin) / len(sets)

    return time


def numpy_add() -> Contestant:
    """numpy.add(a, b, out=c)"""
    return Contestant("numpy", HOST, by_host_clock(np.add))


def host_add() -> Contestant:
    """vecadd.add(a, b, out=c)"""
    return Contestant("add", HOST, by_host_clock(_core.add))


def transfer_add(memory: MemoryKind, /, **params: Any) -> Contestant:
    """vecadd.add(a, b, out=c, device="cuda")"""
    return Contestant("add", memory, by_host_clock(_core.add, device="cuda"), params)


def device_add(**keywords: Any) -> Contestant:
    """vecadd.add(a, b, out=c, **keywords) of DeviceArrays by the host's clock: queues calls, then waits for them."""
    marker = _core.to_device(np.zeros(1, np.uint8))

    def time(sets: Sequence[Buffers]) -> float:
        calls = max(QUEUED, len(sets))
        marker.numpy()
        begin = perf_counter()
        for a, b, out, _ in islice(cycle(sets), calls):
            _core.add(a, b, out=out, **keywords)
        marker.numpy()
        return (perf_counter() - begin) / calls

    return Contestant("add", DEVICE, time, {"clock": "host clock"})


# By the name of a library: whether it finds a GPU.
_CUBLAS_LIBRARIES: tuple[tuple[str, Callable[[Any], bool]], ...] = (
    ("torch", lambda torch: bool(torch.cuda.is_available())),
    ("cupy", lambda cupy: bool(cupy.is_available())),
)


def cublas(factors: Factors, n: int) -> Contestant:
    """cuBLAS by PyTorch, else CuPy, with TF32 off, by the host's clock: queues calls, then waits for them. Raises
    ImportError where no library has it."""
    library = _find_cublas()
    marker = _core.to_device(np.zeros(1, np.uint8))
    calls = max(1, QUEUED * LARGE_PRODUCT // max(n, LARGE_PRODUCT))

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
        check=lambda used: compare_matrices(used.out, factors.result(used.start, "product")),
    )


def _find_cublas() -> Any:
    """PyTorch or CuPy, whose matmul runs on its current stream: the legacy default stream."""
    lacking = []
    for name, finds_a_gpu in _CUBLAS_LIBRARIES:
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

"""Additions of other than equal contiguous arrays: transposed, broadcast and sliced arrays, numbers, two dtypes."""

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import vecadd
from benchmarks.peers import events, libraries, tensors
from benchmarks.peers.libraries import Add, Entry
from benchmarks.peers.tensors import Kept
from vecadd.bench.contestants import Contestant
from vecadd.bench.operands import Buffers, MemoryKind, WrongSumError
from vecadd.bench.options import Options
from vecadd.bench.run import Machine, Sweep
from vecadd.bench.timing import Cell

N = 1 << 25  # elements of an array: 134 MB of float32, a set of three beyond any L2
SIDE = 128  # pixels of an image, at most

Operands = tuple[Any, Any, Any]  # x, y and the sum's array


@dataclass(frozen=True)
class Form:
    """``cut(a, b, out, kept)`` gives the operands, views of a set's arrays; an addition moves ``arrays`` of them."""

    name: str
    dtype: str  # of the sum
    cut: Callable[[Any, Any, Any, Kept], Operands]
    arrays: float = 3


def _square(x: Any) -> Any:
    edge = math.isqrt(x.numel())
    return x[: edge * edge].reshape(edge, edge)


def _squares(cut: Callable[[Any, Any, Any], Operands]) -> Callable[[Any, Any, Any, Kept], Operands]:
    return lambda a, b, out, kept: cut(_square(a), _square(b), _square(out))


def _triples(a: Any, b: Any, out: Any, kept: Kept) -> Operands:
    del kept
    rows = a.numel() // 3
    return a[: 3 * rows].reshape(rows, 3), b[:3], out[: 3 * rows].reshape(rows, 3)


def _with(dtype: str) -> Callable[[Any, Any, Any, Kept], Operands]:
    return lambda a, b, out, kept: (a, kept.converted(b, dtype), out)


def _transposed_with(dtype: str) -> Callable[[Any, Any, Any, Kept], Operands]:
    return lambda a, b, out, kept: (_square(a).T, _square(kept.converted(b, dtype)), _square(out))


def _images(channels: int) -> Callable[[Any, Any, Any, Kept], Operands]:
    """Images: x in planes, y with its channels last, the sum in planes."""

    def cut(a: Any, b: Any, out: Any, kept: Kept) -> Operands:
        del kept
        side = min(SIDE, math.isqrt(a.numel() // channels))
        n = a.numel() // (channels * side * side) * (channels * side * side)
        x, total = (whole[:n].reshape(-1, channels, side, side) for whole in (a, out))
        return x, b[:n].reshape(-1, side, side, channels).swapaxes(1, 3).swapaxes(2, 3), total

    return cut


_TRANSPOSED = _squares(lambda a, b, out: (a.T, b, out))

FORMS = (
    Form("a.T + b", "float32", _TRANSPOSED),
    Form("a.T + b", "float16", _TRANSPOSED),
    Form("a.T + b", "int8", _TRANSPOSED),
    Form("a.T + b", "complex64", _TRANSPOSED),
    Form("a.T + b.T", "float32", _squares(lambda a, b, out: (a.T, b.T, out))),
    Form("nchw + channels_last, 3 channels", "float32", _images(3)),
    Form("nchw + channels_last, 64 channels", "float32", _images(64)),
    Form("(N, 3) + (3,)", "float32", _triples, 2),
    Form("a + row", "float32", _squares(lambda a, b, out: (a, b[0], out)), 2),
    Form("a + column", "float32", _squares(lambda a, b, out: (a, b[:, :1], out)), 2),
    Form("a[:, 1:] + b[:, 1:]", "float32", _squares(lambda a, b, out: (a[:, 1:], b[:, 1:], out[:, 1:]))),
    Form("a[:, ::2] + b[:, ::2]", "float32", _squares(lambda a, b, out: (a[:, ::2], b[:, ::2], out[:, ::2])), 1.5),
    Form("a + 2.0", "float16", lambda a, b, out, kept: (a, 2.0, out), 2),
    Form("a + 2.0", "float32", lambda a, b, out, kept: (a, 2.0, out), 2),
    Form("complex64 + float32", "complex64", _with("float32"), 2.5),
    Form("complex64.T + float32", "complex64", _transposed_with("float32"), 2.5),
    Form("int32 + int8", "int32", _with("int8"), 2.25),
    Form("float32 + float16", "float32", _with("float16"), 2.5),
    Form("float64 + float32", "float64", _with("float32"), 2.5),
)


def cells(options: Options, machine: Machine) -> Iterator[Cell]:
    """A cell for each form, all libraries on the same memory; NumPy gives the expected sum."""
    place = tensors.shared()
    peers = list(libraries.meeting("peer-layouts", PEERS, machine.missing))
    for form in FORMS:
        if options.dtypes and form.dtype not in options.dtypes:
            continue
        dtype = np.dtype(form.dtype)
        for n in options.sizes or (N,):
            kept = Kept(place)
            meeting = [_contestant(f"{name} {form.name}", place, form, add, kept) for name, add in peers]
            sets = tensors.count_sets(machine, n, dtype)
            yield Cell(dtype, n, meeting, sets=sets, reference=f"vecadd {form.name}")


def _contestant(name: str, place: MemoryKind, form: Form, add: Add, kept: Kept) -> Contestant:
    by_events = events.by_events(add)

    def cut(used: Buffers) -> Operands:
        return form.cut(used.a, used.b, used.out, kept)

    def time(sets: Sequence[Buffers]) -> float:
        return by_events([Buffers(*cut(used), used.start) for used in sets])

    def check(used: Buffers) -> None:
        x, y, got = cut(used)
        want = kept.get_or_make(
            used.a, "sum", lambda: place.put(np.add(*(_host(place, operand) for operand in (x, y))))
        )
        torch = libraries.module("torch")
        flat = got.new_empty(got.numel())
        flat.copy_(got.reshape(-1))
        wrong = flat.view(torch.uint8) != want.reshape(-1).view(torch.uint8)
        if bool(wrong.any()):
            raise WrongSumError(f"{int(wrong.sum())} bytes of the sum are not numpy.add's")

    return Contestant(name, place, time, {"form": form.name}, arrays=form.arrays, extra_params=kept.forget, check=check)


def _host(place: MemoryKind, operand: Any) -> Any:
    return operand if isinstance(operand, float) else place.get(operand)


def _cupy() -> tuple[str, Add]:
    cupy = libraries.module("cupy")

    @functools.lru_cache(maxsize=64)
    def wrapped(pointer: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: str) -> Any:
        interface = {"shape": shape, "strides": strides, "data": (pointer, False), "typestr": dtype, "version": 3}
        return cupy.asarray(type("Borrowed", (), {"__cuda_array_interface__": interface})())

    def view(x: Any) -> Any:
        if isinstance(x, float):
            return x
        dtype = np.dtype(tensors.name_of(x))
        strides = tuple(step * dtype.itemsize for step in x.stride())
        return wrapped(x.data_ptr(), tuple(x.shape), strides, dtype.str)

    return "cupy", lambda x, y, out: cupy.add(view(x), view(y), out=view(out))


PEERS: tuple[Entry[tuple[str, Add]], ...] = (
    Entry("vecadd", "", "vecadd", lambda: ("vecadd", vecadd.add)),
    Entry("torch", "torch", "torch", lambda: ("torch", libraries.module("torch").add)),
    Entry("cupy", "cupy", "cupy-cuda13x", _cupy),
)

STAGE = Sweep(
    "peer-layouts",
    cells,
    "timed by CUDA events as the device stage's, into an array that is there; a and b are square where they are "
    "transposed, sliced or broadcast; every sum compared with numpy.add's byte by byte",
)

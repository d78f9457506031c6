"""Many small additions: each library's way with two lists of arrays, beside a loop over their pairs.

Pairs of mixed sizes, and lists shaped like GPT-2's parameters beside one array of the same bytes.
"""

import math
import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

import vecadd
from benchmarks.peers import events, libraries
from benchmarks.peers.clocks import Timer, planned
from benchmarks.peers.libraries import Add, Entry
from vecadd.bench.contestants import Contestant
from vecadd.bench.operands import DEVICE, HOST, Buffers, MemoryKind
from vecadd.bench.options import Options
from vecadd.bench.run import Machine, Sweep
from vecadd.bench.timing import Cell

PAIRS, N = 1000, 2560  # float32: 10 KB each
REFERENCE = "vecadd, a loop (torch tensors)"

MIXED, LEAST, MOST = 500, 1 << 4, 1 << 18  # pairs, and how many elements they have
SEED = 0

WIDTH, WORDS, POSITIONS, LAYERS = 768, 50257, 1024, 12  # of the smallest GPT-2
ONE_ARRAY = "vecadd, one array of the same bytes"
ASLEEP = 2e-3  # seconds at least that the GPU waits while a list is looked at

Shape = tuple[int, ...]


def gpt2_shapes() -> list[Shape]:
    """The shapes of GPT-2's 148 parameters, in the model's order."""
    norm: list[Shape] = [(WIDTH,), (WIDTH,)]
    attention: list[Shape] = [(WIDTH, 3 * WIDTH), (3 * WIDTH,), (WIDTH, WIDTH), (WIDTH,)]
    mlp: list[Shape] = [(WIDTH, 4 * WIDTH), (4 * WIDTH,), (4 * WIDTH, WIDTH), (WIDTH,)]
    return [(WORDS, WIDTH), (POSITIONS, WIDTH), *(LAYERS * (norm + attention + norm + mlp)), *norm]


def mixed_shapes() -> list[Shape]:
    """The shapes of the MIXED pairs: log-uniform, from LEAST to MOST elements, the same in every run."""
    drawn = random.Random(SEED)
    return [(round(2 ** drawn.uniform(math.log2(LEAST), math.log2(MOST))),) for _ in range(MIXED)]


def cells(options: Options, machine: Machine) -> Iterator[Cell]:
    """Pairs of 10 KB and pairs of mixed sizes by the host's clock, then GPT-2's parameters by the GPU's."""
    del options
    float32 = np.dtype("float32")
    contestants = [*_torch_lists(), *_cupy_lists(machine), *_own_lists(), *_host_lists()]
    yield Cell(float32, N, contestants, sets=1, reference=REFERENCE, additions=PAIRS, length=PAIRS * N)
    mixed = mixed_shapes()
    for pair in _mixed(mixed):  # a cell of in-place additions and one of new sums: each has ours as its reference
        yield Cell(float32, _elements(mixed), pair, sets=1, reference=pair[0].name)
    shapes = gpt2_shapes()
    total = _elements(shapes)
    limit = machine.device_limit
    yield Cell(float32, total, list(_parameters(shapes)), limit, 1, ONE_ARRAY)


def _elements(shapes: Sequence[Shape]) -> int:
    return sum(math.prod(shape) for shape in shapes)


def _torch_lists() -> Iterator[Contestant]:
    torch = libraries.module("torch")
    place = _lists_of(libraries.torch_place())
    yield Contestant(REFERENCE, place, _by_call(_loop(vecadd.add)))
    yield Contestant("vecadd.add_many (torch tensors)", place, _by_call(vecadd.add_many))
    yield Contestant("vecadd.add_many in place (torch tensors)", place, _in_place(_own_in_place))
    yield Contestant("vecadd.add_many, new sums (torch tensors)", place, _fresh(vecadd.add_many))
    yield Contestant("vecadd.plan (torch tensors)", place, _planned())
    yield Contestant("torch, a loop", place, _by_call(_loop(torch.add)))
    yield Contestant("torch._foreach_add_ in place", place, _in_place(torch._foreach_add_))
    yield Contestant("torch._foreach_add, new sums", place, _fresh(torch._foreach_add))


def _cupy_lists(machine: Machine) -> Iterator[Contestant]:
    cupy = Entry("cupy", "cupy", "cupy-cuda13x", libraries.cupy_place)
    for found in libraries.meeting("peer-many", [cupy], machine.missing):
        place = _lists_of(found)
        yield Contestant("vecadd, a loop (CuPy arrays)", place, _by_call(_loop(vecadd.add)))
        yield Contestant("vecadd.add_many (CuPy arrays)", place, _by_call(vecadd.add_many))
        yield Contestant("vecadd.plan (CuPy arrays)", place, _planned())
        yield Contestant("cupy, a loop", place, _by_call(_loop(libraries.module("cupy").add)))


def _own_lists() -> Iterator[Contestant]:
    place = _lists_of(DEVICE)
    yield Contestant("vecadd, a loop", place, _by_call(_loop(vecadd.add)))
    yield Contestant("vecadd.add_many", place, _by_call(vecadd.add_many))
    yield Contestant("vecadd.plan", place, _planned())


def _host_lists() -> Iterator[Contestant]:
    place = _lists_of(HOST)
    yield Contestant("numpy, a loop", place, _by_call(_loop(np.add)))
    yield Contestant("vecadd, a loop (NumPy arrays)", place, _by_call(_loop(vecadd.add)))
    yield Contestant("vecadd.add_many (NumPy arrays)", place, _by_call(vecadd.add_many))


def _mixed(shapes: list[Shape]) -> Iterator[list[Contestant]]:
    torch = libraries.module("torch")
    place = _lists_of(libraries.torch_place(), shapes)
    yield [
        Contestant("vecadd.add_many in place (mixed sizes)", place, _in_place(_own_in_place)),
        Contestant("torch._foreach_add_ in place (mixed sizes)", place, _in_place(torch._foreach_add_)),
    ]
    yield [
        Contestant("vecadd.add_many, new sums (mixed sizes)", place, _fresh(vecadd.add_many)),
        Contestant("torch._foreach_add, new sums (mixed sizes)", place, _fresh(torch._foreach_add)),
    ]


def _own_in_place(xs: Any, ys: Any) -> object:
    return vecadd.add_many(xs, ys, xs)


def _parameters(shapes: list[Shape]) -> Iterator[Contestant]:
    tensors = libraries.torch_place()
    torch, place = libraries.module("torch"), _lists_of(tensors, shapes)
    yield Contestant(ONE_ARRAY, tensors, _by_events(vecadd.add))
    yield Contestant("vecadd.add_many (GPT-2's parameters)", place, _by_events(vecadd.add_many))
    yield Contestant("torch._foreach_add_ in place (GPT-2's parameters)", place, _foreach_by_events(torch))


def _lists_of(place: MemoryKind, shapes: Sequence[Shape] | None = None) -> MemoryKind:
    """A place for lists of arrays of those shapes; None: pieces of N elements. Shorter memory gives fewer arrays."""

    def cut(x: NDArray[Any]) -> Iterator[NDArray[Any]]:
        at = 0
        for shape in shapes or [(N,)] * -(-x.size // N):
            part = x[at : at + math.prod(shape)]
            at += part.size
            if part.size:
                yield part.reshape(shape) if part.size == math.prod(shape) else part

    return MemoryKind(
        f"lists ({place.name}{'' if shapes is None else ', shaped'})",
        put=lambda x: [place.put(np.ascontiguousarray(part)) for part in cut(x)],
        get=lambda xs: np.concatenate([place.get(x).reshape(-1) for x in xs]),
        poison=lambda xs: [place.poison(x) for x in xs],
        on_gpu=place.on_gpu,
    )


def _loop(add: Add) -> Add:
    def over_pairs(xs: Any, ys: Any, outs: Any) -> None:
        for x, y, out in zip(xs, ys, outs, strict=True):
            add(x, y, out=out)

    return over_pairs


def _timed(run: Callable[[], object]) -> float:
    """Seconds from an empty queue until all is done, by the host's clock."""
    torch = libraries.module("torch")
    torch.cuda.synchronize()
    begin = perf_counter()
    run()
    torch.cuda.synchronize()
    return perf_counter() - begin


def _by_call(add: Add) -> Timer:
    def time(sets: Sequence[Buffers]) -> float:
        return sum(_timed(partial(add, one.a, one.b, one.out)) for one in sets) / len(sets)

    return time


def _in_place(add: Callable[[Any, Any], object]) -> Timer:
    """Times additions into copies of the first operands, made outside of the clock."""
    torch = libraries.module("torch")

    def time(sets: Sequence[Buffers]) -> float:
        seconds = 0.0
        for one in sets:
            torch._foreach_copy_(one.out, one.a)
            seconds += _timed(partial(add, one.out, one.b))
        return seconds / len(sets)

    return time


def _fresh(add: Callable[[Any, Any], Any]) -> Timer:
    """Times new sums; the ones before are dropped when these exist. Copies them into out for the check."""
    torch = libraries.module("torch")
    kept: list[Any] = [None]

    def make(one: Buffers) -> None:
        kept[0] = add(one.a, one.b)

    def time(sets: Sequence[Buffers]) -> float:
        seconds = sum(_timed(partial(make, one)) for one in sets)
        torch._foreach_copy_(sets[-1].out, kept[0])
        return seconds / len(sets)

    return time


def _planned() -> Timer:
    plan = planned()

    def time(sets: Sequence[Buffers]) -> float:
        plans = [plan(one) for one in sets]
        return sum(_timed(one) for one in plans) / len(plans)

    return time


def _by_events(add: Add, before: Callable[[Sequence[Buffers]], object] = bool) -> Timer:
    """Times each call by CUDA events, one at a time; the GPU sleeps while the caller works through the list."""
    clock = events.by_events(add, ASLEEP, before)
    return lambda sets: sum(clock([one]) for one in sets) / len(sets)


def _foreach_by_events(torch: Any) -> Timer:
    def fill(sets: Sequence[Buffers]) -> None:
        for one in sets:  # the same set may come twice, and has a sum after the first
            torch._foreach_copy_(one.out, one.a)

    return _by_events(lambda x, y, out: torch._foreach_add_(out, y), fill)


STAGE = Sweep(
    "peer-many",
    cells,
    f"{PAIRS} pairs of {N} elements, and {MIXED} of mixed sizes, {LEAST} to {MOST} elements drawn log-uniformly, timed "
    "by the host, from an empty queue until all is done; GPT-2's parameters by CUDA events while the GPU sleeps "
    "through the queueing; what an addition in place starts from is copied outside of the clock",
)

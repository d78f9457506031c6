"""Host memory → GPU → host memory, and whether the chosen route is the fastest."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import vecadd
from benchmarks.peers import libraries
from benchmarks.peers.libraries import Entry
from vecadd.bench import contestants
from vecadd.bench.contestants import Contestant
from vecadd.bench.operands import DEVICE, HOST, PINNED, Buffers, MemoryKind
from vecadd.bench.options import Options
from vecadd.bench.run import Machine, Sweep, grid
from vecadd.bench.timing import Cell

N = 100_000_000
SIZES = tuple(2**power for power in range(10, 29, 2))
ON_DEVICE_SIZES = tuple(2**power for power in (10, 17, 24))
DTYPES = ("float32", "float16", "float64")
MOST_BYTES = 1 << 30  # of an operand: filling and checking three of 2 GiB takes longer than timing them
WAYS_TO = 2**24  # elements: zero-copy is ahead up to this size, and level beyond
CACHED = 64 << 20  # bytes of an operand up to which a part of all three may be in the caches
CHOSEN = "add as routed"

# Past the caches four rounds of five are within 5 % of their median: 6 leave it uncertain by 4 %, 16 by 2.
ROUNDS = 16
WAYS_ROUNDS = 10  # of 0.9 s: the driver's own way takes 0.12, and each way is taken twice

MEMORY: Mapping[MemoryKind, str] = {PINNED: "pinned", HOST: "pageable", DEVICE: "device"}


def cells(options: Options, machine: Machine) -> Iterator[Cell]:
    """One size with every round trip beside the host, then the routes by memory, dtype and size."""
    vecadd.use_gpu()
    limit = float(machine.limits("link")["gbps"])
    yield Cell(np.dtype("float32"), N, _ways(machine), limit, sets=1, reference="add", min_rounds=WAYS_ROUNDS)
    for dtype, n in grid(options, SIZES, dtypes=DTYPES):
        for place in (PINNED, HOST):
            ways = place is PINNED and str(dtype) == "float32" and n <= WAYS_TO
            routes = [*_routes(place), *(_link_ways() if ways else ())]
            if n * dtype.itemsize <= CACHED:
                routes = list(map(_settled, routes))
            yield _routes_cell(dtype, min(n, MOST_BYTES // dtype.itemsize), routes)
    for dtype, n in grid(options, ON_DEVICE_SIZES, dtypes=DTYPES):
        yield _routes_cell(dtype, n, list(_on_device()))


def _ways(machine: Machine) -> list[Contestant]:
    """Timed by the host's clock: transfers alone, the transfer rungs, the host alone, both together, and others' round
    trips."""
    rungs = [
        contestants.rung(name, place, memory=MEMORY[place])
        for name, place in (("pinned_reused", PINNED), ("pinned", PINNED), ("pageable", HOST))
        if name in contestants.rung_names("transfer", "float32")
    ]
    torch = Entry("torch (pinned)", "torch", "torch", _torch_round_trip)
    others = libraries.meeting("peer-transfer", [torch], machine.missing)
    ways = [contestants.transfer_add(PINNED, memory="pinned"), *rungs, *others]
    ways.append(contestants.transfer_add(HOST, memory="pageable"))
    for place in (PINNED, HOST):
        for name, device in {CHOSEN: None, "add on the host": "cpu", "add by hybrid": "hybrid"}.items():
            time = contestants.by_host_clock(vecadd.add, device=device)
            ways.append(Contestant(name, place, time, {"memory": MEMORY[place]}, limited=False))
    numpy = Contestant("numpy", HOST, contestants.by_host_clock(np.add), limited=False)
    return list(map(_settled, (*ways, numpy)))


def _torch_round_trip() -> Contestant:
    """torch from pinned memory to the GPU and back, everything asynchronous on one stream."""
    torch = libraries.module("torch")

    def add(a: Any, b: Any, out: Any) -> None:
        up = [torch.from_numpy(x).to("cuda", non_blocking=True) for x in (a, b)]
        torch.from_numpy(out).copy_(torch.add(*up), non_blocking=True)
        torch.cuda.synchronize()

    return Contestant("torch (pinned)", PINNED, contestants.by_host_clock(add))


def _routes_cell(dtype: np.dtype[Any], n: int, routes: list[Contestant]) -> Cell:
    return Cell(dtype, n, routes, sets=1, reference=CHOSEN, min_rounds=ROUNDS)


def _routes(place: MemoryKind) -> Iterator[Contestant]:
    """The route that add chooses beside each other one.

    The choice meets itself too: how far the two differ is what the comparison can tell apart.
    """
    params = {"memory": MEMORY[place]}
    yield Contestant(CHOSEN, place, contestants.by_host_clock(vecadd.add), params, extra_params=_route)
    yield Contestant(f"{CHOSEN}, again", place, contestants.by_host_clock(vecadd.add), params)
    for name, device in {"add on the host": "cpu", "add by transfer": "cuda", "add by hybrid": "hybrid"}.items():
        if device != "hybrid" or place is PINNED:  # ordinary memory is the host's alone
            yield Contestant(name, place, contestants.by_host_clock(vecadd.add, device=device), params)


def _link_ways() -> Iterator[Contestant]:
    """The two ways over the link that a transfer of pinned memory chooses from."""
    if "tuned_transfer" in contestants.rung_names("transfer", "float32"):
        for way, number in (("copies", 1), ("zero-copy", 2)):
            yield contestants.rung("tuned_transfer", PINNED, {"way": number}, memory=MEMORY[PINNED], way=way)


def _on_device() -> Iterator[Contestant]:
    """Operands on the GPU: the only route, chosen by default and by name."""
    for name, device in {CHOSEN: None, f"{CHOSEN}, again": None, "add on the device": "cuda"}.items():
        time = contestants.device_add(device=device).time
        yield Contestant(
            name, DEVICE, time, {"memory": MEMORY[DEVICE]}, extra_params=_route if name == CHOSEN else None
        )


def _settled(contestant: Contestant) -> Contestant:
    """The contestant timed after an untimed call of its own.

    Each contestant then finds caches and threads as it leaves them itself: the host adds 1 MiB from its caches in 19
    us, and in 90 after the GPU has written the sum, so that otherwise the order of a round would be timed.
    """

    def time(sets: Sequence[Buffers]) -> float:
        contestant.time(sets[:1])
        return contestant.time(sets)

    return replace(contestant, time=time)


def _route(buffers: Buffers) -> Mapping[str, Any]:
    """The route that was taken."""
    a, b, out, _ = buffers
    return {"route": vecadd.explain(a, b, out).route}


STAGE = Sweep(
    "peer-transfer",
    cells,
    "rungs timed in C, around the whole way there and back, all else around the Python call, operands of up to "
    "64 MiB and those of 1e8 after a call of the same that is not timed; device arrays until a queue of calls is done",
)

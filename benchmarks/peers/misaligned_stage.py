"""Views that begin past a vector's boundary, by equal or different offsets, beside aligned arrays."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from benchmarks.peers import device_peers, events, libraries, tensors
from benchmarks.peers.libraries import Add
from benchmarks.peers.tensors import Kept
from vecadd.bench.contestants import Contestant
from vecadd.bench.operands import Buffers
from vecadd.bench.options import Options
from vecadd.bench.run import Machine, Sweep, grid
from vecadd.bench.timing import Cell

BYTES = (4 << 26, 4 << 28)  # of an array: as many elements of float32 as in the other tables

# By how many elements a, b and out begin past an aligned address.
FORMS = {
    "aligned": (0, 0, 0),
    "a": (1, 0, 0),
    "b": (0, 1, 0),
    "a and b": (1, 1, 0),
    "out": (0, 0, 1),
    "all alike": (1, 1, 1),
    "a against b": (1, 2, 0),
    "all against each other": (1, 2, 3),
}
PEERS_FORMS = ("aligned", "a", "all against each other")


def cells(options: Options, machine: Machine) -> Iterator[Cell]:
    """The operands' bytes are the same in all forms: an aligned set is copied once into views of each offset."""
    place = tensors.shared()
    table = [entry for entry in device_peers.entries() if entry.name in ("vecadd", "torch", "cupy")]
    peers = list(libraries.meeting("peer-misaligned", table, machine.missing))
    for dtype, _ in grid(options, (1,), dtypes=device_peers.DTYPES):
        for n in options.sizes or tuple(size // dtype.itemsize for size in BYTES):
            kept = Kept(place)
            meeting = [
                Contestant(
                    f"{peer.name} {form}",
                    place,
                    _timer(peer.settings[""], FORMS[form], kept),
                    extra_params=kept.forget,
                )
                for peer in peers
                if str(dtype) in peer.dtypes
                for form in (FORMS if peer.name == "vecadd" else PEERS_FORMS)
            ]
            sets = tensors.count_sets(machine, n, dtype)
            yield Cell(dtype, n, meeting, sets=sets, reference="vecadd aligned")


def _timer(add: Add, offsets: Sequence[int], kept: Kept) -> Callable[[Sequence[Buffers]], float]:
    by_events = events.by_events(add)

    def time(sets: Sequence[Buffers]) -> float:
        used = [
            Buffers(
                _view(each.a, offsets[0], kept),
                _view(each.b, offsets[1], kept),
                _view(each.out, offsets[2], kept),
                each.start,
            )
            for each in sets
        ]
        seconds = by_events(used)
        for each, moved in zip(sets, used, strict=True):
            if moved.out is not each.out:
                each.out.copy_(moved.out)  # for the check
                moved.out.fill_(0)
        return seconds

    return time


def _view(x: Any, offset: int, kept: Kept) -> Any:
    """x, or for an offset a copy that begins that many elements past an aligned address."""

    def copy() -> Any:
        moved = x.new_empty(x.numel() + offset)[offset:]
        moved.copy_(x)
        return moved

    return kept.get_or_make(x, f"from {offset}", copy) if offset else x


STAGE = Sweep(
    "peer-misaligned",
    cells,
    "timed by CUDA events as the device stage's; a view's name says which operands begin how many elements past an "
    "aligned address",
)

"""Whether the largest additions, beyond 2^32 elements too, take as long a byte as large ones."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from benchmarks.peers import device_peers, events, tensors
from benchmarks.peers.libraries import Add
from vecadd.bench.contestants import Contestant
from vecadd.bench.operands import Buffers
from vecadd.bench.options import Options
from vecadd.bench.run import Machine, Sweep
from vecadd.bench.timing import Cell

PIECE = 1 << 28  # elements
WHOLE = {"float32": 1 << 30, "int8": (1 << 32) + 5}


def cells(options: Options, machine: Machine) -> Iterator[Cell]:
    """The same operands at once and in pieces, in the same rounds: the ratio is of seconds a byte."""
    del options
    place = tensors.shared()
    add = device_peers.ours().settings[""]
    for name, n in WHOLE.items():
        meeting = [
            Contestant("vecadd in pieces of 2^28", place, _in_pieces(add)),
            Contestant("vecadd at once", place, events.by_events(add)),
        ]
        limit = machine.device_limit
        yield Cell(np.dtype(name), n, meeting, limit, sets=1, reference="vecadd in pieces of 2^28")


def _in_pieces(add: Add) -> Callable[[Sequence[Buffers]], float]:
    by_events = events.by_events(add)

    def time(sets: Sequence[Buffers]) -> float:
        pieces = [
            Buffers(a[at : at + PIECE], b[at : at + PIECE], out[at : at + PIECE], start)
            for a, b, out, start in sets
            for at in range(0, len(out), PIECE)
        ]
        return by_events(pieces) * len(pieces) / len(sets)

    return time


STAGE = Sweep(
    "peer-scaling",
    cells,
    "timed by CUDA events as the device stage's; of an addition in pieces the sum of its pieces",
)

"""Device memory → device memory, kernel against kernel: one addition at a time, small ones in a row, the largest."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from benchmarks.peers import device_peers, events, jax_peer, libraries, tensors
from benchmarks.peers.libraries import Add, Entry
from vecadd.bench.contestants import Contestant
from vecadd.bench.operands import Buffers
from vecadd.bench.options import Options
from vecadd.bench.run import Machine, Sweep, grid
from vecadd.bench.timing import Cell

SIZES = tuple(2**power for power in (10, 14, *range(16, 31, 2)))
DTYPES = device_peers.DTYPES

# Times as many sets as for one library alone: all add the same sets, and the next library would otherwise find the
# lines that ours asks the L2 to keep. With two sets of 200 MB each peer was 2 to 4 % faster than alone.
SPREAD = 5


def cells(options: Options, machine: Machine) -> Iterator[Cell]:
    """Cells by dtype and size, all on the legacy default stream; JAX, which has its own stream, in cells of its own."""
    place = tensors.shared()
    table = device_peers.entries(options.dtypes or DTYPES)
    peers = list(libraries.meeting("peer-device", table, machine.missing))
    jax = Entry("jax", "jax", "jax[cuda13]", lambda: jax_peer.contestants(place))
    by_host_clock = next(libraries.meeting("peer-device", [jax], machine.missing), [])
    limit = machine.device_limit
    for dtype, n in grid(options, SIZES, dtypes=DTYPES):
        sets = tensors.count_sets(machine, n, dtype, SPREAD)
        meeting = [peer.contestant(place) for peer in peers if str(dtype) in peer.dtypes]
        yield Cell(dtype, n, meeting, limit, sets, reference="vecadd")
        if by_host_clock:
            yield Cell(dtype, n, list(by_host_clock), limit, sets, reference="vecadd (new)")


STAGE = Sweep(
    "peer-device",
    cells,
    "timed by CUDA events while the GPU sleeps through the queueing, so that no caller's overhead is between the two "
    "events, on the same memory for all; of several settings of a peer the fastest in that cell; JAX, and 'vecadd "
    "(new)' beside it, by the host's clock over queued calls that allocate their sum",
)


# Small additions in a row: the time of each on a stream that is kept full. A single kernel between two events does not
# show the gap between two kernels, which is longer than a small addition. Here launches that begin before the kernel
# ahead has ended pay: Triton's are tried so too.

QUEUED_SIZES = tuple(2**power for power in (10, 14, 16, 18, 20))  # beyond, an addition takes longer than its launch
QUEUED_DTYPES = ("int8", "float16", "float32", "float64")  # the others move the same bytes


def queued_cells(options: Options, machine: Machine) -> Iterator[Cell]:
    """Cells by dtype and size: the same peers, memory and stream, without JAX, which has its own stream."""
    place = tensors.shared()
    table = device_peers.entries(options.dtypes or QUEUED_DTYPES, in_a_row=True)
    peers = list(libraries.meeting("peer-queued", table, machine.missing))
    limit = machine.device_limit
    for dtype, n in grid(options, QUEUED_SIZES, dtypes=QUEUED_DTYPES):
        if n > max(QUEUED_SIZES):
            continue
        sets = tensors.count_sets(machine, n, dtype, SPREAD)
        meeting = [peer.contestant(place, events.by_events_in_a_row) for peer in peers if str(dtype) in peer.dtypes]
        yield Cell(dtype, n, meeting, limit, sets, reference="vecadd")


QUEUED = Sweep(
    "peer-queued",
    queued_cells,
    f"timed by CUDA events around {events.IN_A_ROW} additions in a row, each on its own memory, while the GPU sleeps "
    "through the queueing: the mean of them; of several settings of a peer the fastest in that cell",
)


# Whether the largest additions, beyond 2^32 elements too, take as long a byte as large ones.

PIECE = 1 << 28  # elements
WHOLE = {"float32": 1 << 30, "int8": (1 << 32) + 5}


def scaling_cells(options: Options, machine: Machine) -> Iterator[Cell]:
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


SCALING = Sweep(
    "peer-scaling",
    scaling_cells,
    "timed by CUDA events as the device stage's; of an addition in pieces the sum of its pieces",
)

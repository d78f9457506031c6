"""Device memory → device memory, small additions in a row: the time of each on a stream that is kept full.

A single kernel between two events does not show the gap between two kernels, which is longer than a small addition.
Here launches that begin before the kernel ahead has ended pay: Triton's are tried so too.
"""

from collections.abc import Iterator

from benchmarks.peers import device_peers, events, libraries, tensors
from benchmarks.peers.device_stage import SPREAD
from vecadd.bench.options import Options
from vecadd.bench.run import Machine, Sweep, grid
from vecadd.bench.timing import Cell
from vecadd.model.theory import rotating_sets

SIZES = tuple(2**power for power in (10, 14, 16, 18, 20))  # beyond, an addition takes longer than its launch
DTYPES = ("int8", "float16", "float32", "float64")  # the others move the same bytes


def cells(options: Options, machine: Machine) -> Iterator[Cell]:
    """Cells by dtype and size: the device stage's peers, on the same memory and stream; JAX has its own stream."""
    place = tensors.shared()
    table = device_peers.entries(options.dtypes or DTYPES, in_a_row=True)
    peers = list(libraries.meeting("peer-queued", table, machine.missing))
    limit = machine.device_limit
    for dtype, n in grid(options, SIZES, dtypes=DTYPES):
        if n > max(SIZES):
            continue
        sets = rotating_sets(3 * n * dtype.itemsize, SPREAD * machine.gpu["l2"], machine.gpu["memory"] // 10)
        meeting = [peer.contestant(place, events.by_events_in_a_row) for peer in peers if str(dtype) in peer.dtypes]
        yield Cell(dtype, n, meeting, limit, sets, reference="vecadd")


STAGE = Sweep(
    "peer-queued",
    cells,
    f"timed by CUDA events around {events.IN_A_ROW} additions in a row, each on its own memory, while the GPU sleeps "
    "through the queueing: the mean of them; of several settings of a peer the fastest in that cell",
)

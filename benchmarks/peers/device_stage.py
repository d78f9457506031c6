"""Device memory → device memory, kernel against kernel."""

from collections.abc import Iterator

from benchmarks.peers import device_peers, jax_peer, libraries, tensors
from benchmarks.peers.libraries import Entry
from vecadd.bench.options import Options
from vecadd.bench.run import Machine, Sweep, grid
from vecadd.bench.timing import Cell
from vecadd.model.theory import rotating_sets

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
        sets = rotating_sets(3 * n * dtype.itemsize, SPREAD * machine.gpu["l2"], machine.gpu["memory"] // 10)
        meeting = [peer.contestant(place) for peer in peers if str(dtype) in peer.dtypes]
        yield Cell(dtype, n, meeting, limit, sets, reference="vecadd")
        if by_host_clock:
            yield Cell(dtype, n, list(by_host_clock), limit, sets, reference="vecadd (new)")


STAGE = Sweep(
    "peer-device",
    cells,
    "timed by CUDA events while the GPU sleeps through the queueing, so that no caller's overhead lies between the two "
    "events, on the same memory for all; of several settings of a peer the fastest in that cell; JAX, and 'vecadd "
    "(new)' beside it, by the host's clock over queued calls that allocate their sum",
)

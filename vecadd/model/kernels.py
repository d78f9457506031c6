"""The expected time of one kernel, or of several in a row: the device rungs, and kernels that other rungs launch.

launch      an empty kernel by the same clock; kernels of a queue or a graph follow each other as the probe's empty ones
memory      bytes over the rates of reading, writing and turning between them (`Limits.memory_seconds`)
L2          bytes between it and the multiprocessors over its rates, sectors that are used in part counted whole; a
            load that waits finds both loads and stores before it
latency     Little's law in a closed form: a thread's loads take the time of a lone block's (`Limits.far`), and a part
            of the queue, the time to move what all resident threads request together. A block that starts alone finds
            on average half of the other blocks' requests before it, and ends when the last of its own warps is served:
            (1 + its share of the multiprocessor) / 2 of the queue. In a loop all threads go round together, and each
            waits for the later of its two loads, which of two random places in the queue is at 2/3. Then comes the next
            round, or the next block in the thread's place. Loops on more blocks than fit run in generations, the last
            of which may be small.
pages       the first loads of a kernel wait for the translation of their addresses, where the bench's sets together
            exceed the L2
start       blocks start one after the other
lookups     a cycle for each line of a load that the L1 looks up, for each sector of a store that it sends and for each
            sector that comes in: the time of `single_block_chunked`, whose requests are for 32 lines each, less the
            latency
instructions an instruction that waits for the one before waits 4 cycles (CUDA C++ Programming Guide, "Multiprocessor
            Level", compute capability 7 and later)
atomics     the probe's additions to one address
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from vecadd.model.limits import Limits
from vecadd.model.theory import WARP, Gpu, Prediction, load_bytes, occupancy, rounded_up

# How each device rung accesses memory, in numbers from its kernel's source; nothing here was measured.
#
# A rung that is not listed takes one piece of ``bytes_per_load`` a thread, in neighbouring pieces, as `naive` and
# `float4` do; that is how most of them are described.

LINE = 128  # bytes of a cache line: what one lookup of the L1 finds (CUDA C++ Programming Guide, "Global Memory")
SECTOR = 32  # bytes: the least that a request moves between a multiprocessor and the L2
GRANULE = 64  # bytes: the least that moves between memory and an L2 slice, two sectors: an H200's time over strides
# doubles from 8 to 32 float32, where each sector is alone in its pair, and grows no further
WIDTH, HEIGHT = 1024, 256  # elements of a plane of block_shape's volume
DIVISION = 30  # instructions of a 64-bit division, which no GPU has, each waiting for the one before


@dataclass(frozen=True)
class Access:
    """What a thread does in one round of its loop, or in its life where it has none.

    ``elements`` that it adds; ``steps``, the loads of a round that wait for each other, the first of which fetches what
    the others find in the L1; ``lookups`` of the L1, in cycles of a multiprocessor, for all of a warp's steps.
    ``sweeps`` over all elements, each of which uses 1/sweeps of every line. ``*_waste``: bytes that move for each that
    is wanted, between memory and L2, and between L2 and multiprocessor. ``threads`` of the grid, 0: as many as there is
    work for, once; ``blocks`` of the grid, 0: as many as the threads make, more where some are idle; ``turns`` of a
    warp, in each of which it loads and stores before the next; ``instructions`` beyond an addition's that wait for each
    other.
    """

    elements: float = 1
    steps: int = 1
    lookups: float = 3
    sweeps: int = 1
    dram_waste: float = 1
    read_waste: float = 1
    write_waste: float = 1
    threads: int = 0
    blocks: int = 0
    turns: int = 1
    launches: int = 1
    instructions: int = 0


@dataclass(frozen=True)
class Launch:
    """What is to be predicted: a rung's row with all of its parameters, on a GPU with these limits, for n elements in
    blocks of ``block`` threads, 0 for the rung's own. ``facts`` is what ``_core.rung_facts`` says of it, or None."""

    rung: Mapping[str, Any]
    gpu: Gpu
    limits: Limits
    itemsize: int
    n: int
    params: Mapping[str, int]
    block: int = 0
    facts: Mapping[str, Any] | None = None

    @property
    def resident(self) -> int:
        """Threads that fit on the GPU at once."""
        return self.gpu.multiprocessors * self.gpu.threads

    @property
    def piece(self) -> int:
        """Bytes of one load."""
        return load_bytes(self.rung, self.itemsize)

    @property
    def pieces(self) -> int:
        """How many pieces of each input a thread loads before it adds, unless the rung has an access of its own."""
        return self.rung["loads_in_flight"] // 2 if self.rung.get("family") == "precision" else 1


def access(launch: Launch) -> Access:
    """The memory access of a launch."""
    usual = _pieces(launch)
    special = _SPECIAL.get(launch.rung["name"])
    return special(launch, usual) if special else usual


def _pieces(launch: Launch) -> Access:
    """A piece of each array a thread: as many lookups as the warp's bytes have lines, and sectors where they are
    stored."""
    warp = WARP * launch.piece
    reads = launch.rung["bytes_per_element"] // 4 - 1
    return Access(
        elements=launch.pieces * launch.piece / launch.itemsize,
        lookups=launch.pieces * (reads * max(1, warp / LINE) + max(1, warp / SECTOR)),
    )


def _unrolled(launch: Launch, usual: Access) -> Access:
    """A loop on as many threads as fit, with several pieces of each input at once."""
    pieces = launch.rung["loads_in_flight"] // 2
    return replace(
        usual,
        elements=usual.elements * pieces,
        lookups=usual.lookups * pieces,
        threads=min(launch.resident, rounded_up(launch.n, launch.block)),
    )


def _async_copy(launch: Launch, usual: Access) -> Access:
    """A loop on as many threads as fit; while one stage of the ring is added, the others are in flight."""
    return replace(usual, threads=min(launch.resident, rounded_up(launch.n, launch.block)))


def _blocks_per_sm(launch: Launch, usual: Access) -> Access:
    return replace(usual, threads=launch.params["blocks_per_sm"] * launch.gpu.multiprocessors * launch.block)


def _block_range(launch: Launch, usual: Access) -> Access:
    return replace(_blocks_per_sm(launch, usual), instructions=DIVISION)


def _waves(launch: Launch, usual: Access) -> Access:
    threads = launch.params["percent"] * launch.resident // 100 // launch.block * launch.block
    return replace(usual, threads=min(max(threads, launch.block), rounded_up(launch.n, launch.block)))


def _coarsened(count: int) -> Callable[[Launch, Access], Access]:
    def access(launch: Launch, usual: Access) -> Access:
        """``count`` scalar accesses whose addresses are ``count`` components apart in a warp. Each store is a request
        of its own for every sector that it fills in part."""
        lines = max(1, WARP * launch.itemsize * count / LINE)
        sectors = max(1, WARP * launch.itemsize * count / SECTOR)
        return replace(usual, elements=count, steps=count, lookups=count * (2 * lines + sectors), write_waste=count)

    return access


def _strided(launch: Launch, usual: Access) -> Access:
    """A sweep for each element of the stride: the used part of a sector or a pair shrinks with it, down to one
    element."""
    stride = min(launch.params["stride"], launch.n)
    apart = stride * launch.itemsize
    lines = min(WARP, max(1, WARP * apart / LINE))
    sectors = min(WARP, max(1, WARP * apart / SECTOR))
    waste = min(apart, GRANULE) / launch.itemsize
    return replace(
        usual,
        lookups=2 * lines + sectors,
        sweeps=stride,
        dram_waste=waste,
        read_waste=waste,
        write_waste=waste,
        instructions=DIVISION,
    )


def _divergent(launch: Launch, usual: Access) -> Access:
    """Each path is a step with 1/paths of the warp; its store is a request for each sector that it touches."""
    paths = launch.params["paths"]
    of_a_path = WARP / paths
    lines = max(1, min(of_a_path, WARP * launch.itemsize / LINE))
    sectors = max(1, min(of_a_path, WARP * launch.itemsize / SECTOR))
    moved = sectors * (SECTOR if of_a_path > 1 else GRANULE)
    return replace(
        usual,
        steps=paths,
        turns=paths,
        lookups=paths * (2 * lines + sectors),
        write_waste=max(1, moved / (of_a_path * launch.itemsize)),
    )


def _block_shape(launch: Launch, usual: Access) -> Access:
    """A warp's row is ``x`` elements; rows are far apart, so that no more than a row of a pair of sectors is used."""
    row = min(launch.params["x"], WARP) * launch.itemsize
    waste = max(1, GRANULE / row)
    x, y = launch.params["x"], launch.params["y"]
    rows = -(-launch.n // WIDTH)
    across, down, deep = min(launch.n, WIDTH), min(rows, HEIGHT), -(-rows // HEIGHT)
    z = max(1, launch.block // (x * y))
    return replace(
        usual,
        blocks=-(-across // x) * -(-down // y) * -(-deep // z),
        lookups=WARP / min(x, WARP) * (2 * max(1, row / LINE) + max(1, row / SECTOR)),
        read_waste=waste,
        write_waste=waste,
    )


def _divided(launch: Launch, usual: Access) -> Access:
    return replace(usual, instructions=DIVISION)


def _offset(launch: Launch, usual: Access) -> Access:
    """One sector more for each of a warp's requests where the offset is no multiple of one."""
    if launch.params["offset"] * launch.itemsize % SECTOR == 0:
        return usual
    sectors = max(1, WARP * launch.itemsize / SECTOR)
    return replace(usual, lookups=usual.lookups + 3, read_waste=1 + 1 / sectors, write_waste=1 + 1 / sectors)


def _chunked(launch: Launch, usual: Access) -> Access:
    return replace(usual, launches=-(-launch.n // launch.params["chunk"]))


_SPECIAL: Mapping[str, Callable[[Launch, Access], Access]] = {
    "grid_stride": _blocks_per_sm,
    "block_range": _block_range,
    "waves": _waves,
    "coarsen2": _coarsened(2),
    "coarsen4": _coarsened(4),
    "unroll2": _unrolled,
    "unroll4": _unrolled,
    "float2_unroll2": _unrolled,
    "float4_unroll2": _unrolled,
    "async_copy": _async_copy,
    "strided": _strided,
    "divergent": _divergent,
    "block_shape": _block_shape,
    "index_divmod": _divided,
    "offset": _offset,
    "chunked": _chunked,
}


LATER = 2 / 3  # of a queue: the mean place of the later of two loads at random places
DEPENDENT = 4  # cycles from an instruction to one that waits for it
AN_ADDITION = 4  # instructions that wait for each other from a load to the next: add, count, compare, branch
# From compute capability 8.0 on each half of the L2 keeps what the multiprocessors on its side read (NVIDIA A100 Tensor
# Core GPU Architecture, "A100 L2 Cache").
L2_PARTS = 2


def fits_l2(gpu: Gpu, footprint: int) -> bool:
    """Whether every multiprocessor finds that many bytes in the L2."""
    return footprint <= gpu.l2 // (L2_PARTS if gpu.capability >= 80 else 1)


def predict_kernel(launch: Launch, footprint: int) -> Prediction:
    """The prediction of a device rung; see `vecadd.model.predict`."""
    launch = replace(launch, block=launch.block or launch.rung["block"] or 256)
    cached = fits_l2(launch.gpu, footprint)
    return one_block(launch, cached) if launch.rung["blocks"] == 1 else many_blocks(launch, cached)


def many_blocks(launch: Launch, cached: bool) -> Prediction:
    """The prediction of a grid of many blocks, in which threads wait for each other's loads. ``cached``: the L2 has the
    arrays."""
    gpu, limits, facts = launch.gpu, launch.limits, launch.facts
    itemsize, n, block = launch.itemsize, launch.n, launch.block
    active = facts["active_blocks"] if facts else occupancy(gpu, block).blocks
    resident = gpu.multiprocessors * active * block
    way = access(launch)
    reads = launch.rung["bytes_per_element"] // 4 - 1
    each = min(n, launch.params["chunk"]) if way.launches > 1 else n  # elements of one launch
    threads = way.threads or -(-each // way.elements)
    if facts and way.launches == 1:
        x, y, z = facts["grid"]
        threads = x * y * z * block
    blocks = -(-int(threads) // block)

    total = way.blocks * block if way.blocks else blocks * block
    blocks = total // block
    elements = min(way.elements, each / total) if way.blocks else way.elements  # of a thread on average: some are idle
    rounds = max(1.0, each / (total * elements)) if way.threads else 1.0
    latency, moved = _latency(limits, gpu, way, cached, n * itemsize * 3)
    read, written = each * itemsize * reads, each * itemsize
    memory: float = moved(read, written)
    l2 = (way.read_waste * read / limits.need("l2_read"), way.write_waste * written / limits.need("l2_write"))
    dependent = way.instructions * DEPENDENT / gpu.cycles(1)

    def crowd(at_once: float) -> float:
        """Seconds to move what that many threads request in a round. A load waits for loads and stores before it."""
        return max(memory, sum(l2) / way.turns) * min(1.0, at_once * elements / each)

    def round_trip(at_once: float, queue: float) -> float:
        """Seconds of a round in which that many threads load at the same time, and wait for that part of the queue."""
        of_a_step = way.lookups / way.steps * at_once / gpu.multiprocessors / WARP / gpu.cycles(1)
        step = max(limits.need("l1") + AN_ADDITION * DEPENDENT / gpu.cycles(1), of_a_step)
        return latency + crowd(at_once) * queue + (way.steps - 1) * step

    start = limits.need("turnaround") + dependent
    at_once = min(resident, total)
    if way.threads:  # blocks of equal length: a generation starts when the one before ends
        waiting = 0.0
        for size in [resident] * (total // resident) + [total % resident] * (total % resident > 0):
            partly = (math.ceil(rounds) - rounds) * latency
            waiting += start + partly + rounds * max(crowd(size), round_trip(size, LATER))
    else:
        together = 1 / active if way.steps == 1 else 0  # warps that go step by step drift apart
        waiting = max(1.0, total / resident) * (start + round_trip(at_once, (1 + together) / 2))
    terms = {
        "memory": memory + latency,
        # The first sweep brings lines from the memory; the later sweeps find the lines' other parts in the L2.
        "L2": max(l2) + latency
        if way.sweeps == 1 or n * itemsize * 3 > gpu.l2
        else memory + max(l2) * (1 - 1 / way.sweeps) + limits.far,
        "latency": waiting + crowd(at_once) / 2,
        "start": blocks * limits.need("block") + latency + dependent,
        "lookups": way.lookups * rounds * total / WARP / gpu.multiprocessors / gpu.cycles(1) + latency,
    }
    dominant = max(terms, key=lambda name: terms[name])
    # The first loads of a kernel find no translation of pages that were not used for long; the last stores arrive late.
    translated = 0.0 if cached or limits.page is None else max(0.0, limits.page - limits.need("l2"))
    body = terms[dominant] + translated + limits.need("l2")
    floor = limits.need("kernel")
    between = (way.launches - 1) * limits.need("queued") if way.launches > 1 else 0.0
    seconds = floor + between + way.launches * body
    return Prediction(seconds, {"launch": floor + between, **terms}, "launch" if floor + between > body else dominant)


def _latency(limits: Limits, gpu: Gpu, way: Access, cached: bool, arrays: int) -> tuple[float, Any]:
    """Seconds of a load on an idle GPU, and the function that gives the seconds in which these bytes of inputs are
    read and these of outputs are written.

    Sweeps after the first find in the L2 what fits there. What does not is written a part of a sector at a time: the
    memory fills in the rest before it writes (its error correction covers whole sectors), which is one read more.
    """
    if cached:
        return limits.need("l2"), lambda read, written: max(
            way.read_waste * read / limits.need("l2_read"), way.write_waste * written / limits.need("l2_write")
        )
    if way.sweeps > 1 and arrays > gpu.l2:
        waste = way.dram_waste
        return limits.far, lambda read, written: limits.memory_seconds(waste * (read + written), waste * written)
    latency = limits.need("l2") + (limits.far - limits.need("l2")) / way.sweeps
    return latency, limits.memory_seconds


def one_block(launch: Launch, cached: bool) -> Prediction:
    """The prediction of one block on one multiprocessor: the sum of its waits."""
    rung, gpu, limits = launch.rung, launch.gpu, launch.limits
    itemsize, n, block = launch.itemsize, launch.n, launch.block
    floor, l2 = limits.need("kernel"), limits.need("l2")
    far = l2 if cached else limits.far
    reads = rung["bytes_per_element"] // 4 - 1
    arithmetic = (AN_ADDITION + reads - 2) * DEPENDENT / gpu.cycles(1)
    # A load brings neighbours along: the rest of the element's sector to the L1, of its pair of sectors to the L2.
    pair, sector = max(1, GRANULE // itemsize), max(1, SECTOR // itemsize)
    near = (far + (pair / sector - 1) * l2 + (pair - pair / sector) * limits.need("l1")) / pair
    warps = -(-block // WARP)
    if rung["name"] == "single_thread":
        terms = {"latency": n * (near + arithmetic)}
    elif rung["name"] == "single_block_chunked":
        run = -(-n // block)
        apart = run * itemsize  # bytes between the threads of a warp
        lookups = warps * (reads * min(WARP, max(1, WARP * apart / LINE)) + min(WARP, max(1, WARP * apart / SECTOR)))
        lookups += reads * block * itemsize / SECTOR  # and the sectors that come in
        fetched = (far + (pair / sector - 1) * l2) / pair
        terms = {
            "latency": run * (near + arithmetic),
            "lookups": run * (lookups / gpu.cycles(1) + fetched),
        }
    elif rung["name"] == "atomic":
        terms = {"atomics": n * block * limits.need("atomic"), "latency": n * (near + arithmetic)}
    elif rung["name"] == "race":
        terms = {"latency": n * (near + arithmetic)}
    else:
        terms = {"latency": -(-n // block) * (far + arithmetic)}
    dominant = max(terms, key=lambda name: terms[name])
    return Prediction(floor + l2 + terms[dominant], {"launch": floor, **terms}, dominant)

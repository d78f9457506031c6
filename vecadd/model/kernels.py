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
banks       a block that turns a square in shared memory keeps its place for the cycles that its warps' accesses take
instructions an instruction that waits for the one before waits 4 cycles (CUDA C++ Programming Guide, "Multiprocessor
            Level", compute capability 7 and later)
atomics     the probe's additions to one address
"""

import math
from collections.abc import Mapping
from typing import Any

from vecadd.model.access import GRANULE, LINE, SECTOR, Access, Launch, access
from vecadd.model.gpu import WARP, Gpu, occupancy
from vecadd.model.limits import Limits
from vecadd.model.prediction import Prediction

LATER = 2 / 3  # of a queue: the mean place of the later of two loads at random places
DEPENDENT = 4  # cycles from an instruction to one that waits for it
AN_ADDITION = 4  # instructions that wait for each other from a load to the next: add, count, compare, branch
# From compute capability 8.0 on each half of the L2 keeps what the multiprocessors on its side read (NVIDIA A100 Tensor
# Core GPU Architecture, "A100 L2 Cache").
L2_PARTS = 2


def keeps(gpu: Gpu, footprint: int) -> bool:
    """Whether every multiprocessor finds so many bytes in the L2."""
    return footprint <= gpu.l2 // (L2_PARTS if gpu.capability >= 80 else 1)


def predict(
    rung: Mapping[str, Any],
    facts: Mapping[str, Any] | None,
    gpu: Gpu,
    limits: Limits,
    itemsize: int,
    n: int,
    params: Mapping[str, int],
    block: int,
    footprint: int,
) -> Prediction:
    """The prediction of a device rung; see `vecadd.model.predict`. ``params`` are all of its parameters."""
    block, cached = block or rung["block"] or 256, keeps(gpu, footprint)
    if rung["blocks"] == 1:
        return one_block(rung, gpu, limits, itemsize, n, block, cached)
    return many_blocks(rung, facts, gpu, limits, itemsize, n, params, block, cached)


def many_blocks(
    rung: Mapping[str, Any],
    facts: Mapping[str, Any] | None,
    gpu: Gpu,
    limits: Limits,
    itemsize: int,
    n: int,
    params: Mapping[str, int],
    block: int,
    cached: bool,
) -> Prediction:
    """The prediction of a grid of many blocks, in which threads wait for each other's loads. ``cached``: the L2 has the
    arrays."""
    active = facts["active_blocks"] if facts else occupancy(gpu, block).blocks
    resident = gpu.multiprocessors * active * block
    launch = Launch(rung, params, n, itemsize, block, gpu.multiprocessors, gpu.multiprocessors * gpu.threads)
    way = access(launch)
    reads = rung["bytes_per_element"] // 4 - 1
    each = min(n, params["chunk"]) if way.launches > 1 else n  # elements of one launch
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
        """Seconds to move what so many threads request in a round. A load waits for loads and stores before it."""
        return max(memory, sum(l2) / way.turns) * min(1.0, at_once * elements / each)

    def round_trip(at_once: float, queue: float) -> float:
        """Seconds of a round in which so many threads load at the same time, and wait for that part of the queue."""
        of_a_step = way.lookups / way.steps * at_once / gpu.multiprocessors / WARP / gpu.cycles(1)
        step = max(limits.need("l1") + AN_ADDITION * DEPENDENT / gpu.cycles(1), of_a_step)
        return latency + crowd(at_once) * queue + (way.steps - 1) * step

    start = limits.need("turnaround") + dependent + way.banks * active * block / WARP / gpu.cycles(1)
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
    """Seconds of a load on an idle GPU, and the function that gives the seconds in which so many bytes of inputs are
    read and so many of outputs are written.

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


def one_block(
    rung: Mapping[str, Any], gpu: Gpu, limits: Limits, itemsize: int, n: int, block: int, cached: bool
) -> Prediction:
    """The prediction of one block on one multiprocessor: the sum of its waits."""
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

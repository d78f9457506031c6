"""The expected time of a rung from attributes of the GPU, the rung's row, and what the run's probes measured.

No constant here was fitted to a rung; which terms there are, and that a load waits for half of a queue or for 2/3, was
decided with recordings at hand. Where each term comes from:

launch      an empty kernel by the same clock; kernels of a queue or a graph follow each other as the probe's empty ones
memory      bytes over the rates of reading, writing and turning between them (`Limits.memory_seconds`)
L2          bytes between it and the multiprocessors over its rates, sectors that are used in part counted whole; a
            load that waits finds both loads and stores before it
latency     Little's law, closed: a thread's loads take what a block's take where nobody else is (`Limits.far`), and a
            part of what all threads that are resident ask for at the same time. A block that starts alone finds on
            average half of the others before it, and is not over before the last of its own warps has what it asked
            for: (1 + its share of the multiprocessor) / 2 of the queue. In a loop all threads go round together, and
            each waits for the later of its two loads, which of two random places in the queue is at 2/3. Then the next
            round, or the next block in the thread's place. Loops on more blocks than fit run in generations, the last
            of which may be small.
pages       the first loads of a kernel wait for the translation of their addresses, where the sets that the bench goes
            round are more than the L2 holds
start       blocks start one after the other
lookups     the L1 looks up one line of a load and sends one sector of a store in a cycle: what is left of the time of
            `single_block_chunked`, each of whose requests is for 32 lines, when the latency is taken off; a sector that
            comes in takes a cycle too
instructions an instruction that waits for the one before waits 4 cycles (CUDA C++ Programming Guide, "Multiprocessor
            Level", compute capability 7 and later)
atomics     the probe's additions to one address
link        `overlap` of copies at the link's rates with the kernel; beside it the host's calls: copies waited for or
            queued, and streams made inside
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vecadd import _core
from vecadd.model.access import GRANULE, LINE, SECTOR, Access, Launch, access
from vecadd.model.gpu import WARP, Gpu, occupancy
from vecadd.model.limits import Limits
from vecadd.model.theory import overlap

LATER = 2 / 3  # of a queue: where the later of two loads in random places is on average
DEPENDENT = 4  # cycles from an instruction to one that waits for it
AN_ADDITION = 4  # instructions that wait for each other from a load to the next: add, count, compare, branch
# From compute capability 8.0 on each half of the L2 keeps what the multiprocessors on its side read (NVIDIA A100 Tensor
# Core GPU Architecture, "A100 L2 Cache").
L2_PARTS = 2

# Which transfers the model knows, and how many parts of their work overlap; 0: one a chunk. The others allocate or copy
# inside of the timed part by ways whose cost no probe measures.
_TRANSFERS: Mapping[str, int] = {"pinned_reused": 1, "stream1_pinned": 1, "streams2": 0, "streams4": 4}
# The kernel of the latency rungs: a thread an element, as `naive` has it.
_SMALL_ADD = {"bytes_per_element": 12, "bytes_per_load": 4, "loads_in_flight": 2, "family": ""}
# Which limit is from kernel to kernel, and how many calls of the host that takes; 0: one a kernel. How programmatic
# launches follow each other no probe measures.
_LAUNCHED: Mapping[str, tuple[str, int]] = {"launch_loop": ("queued", 0), "graph": ("node", 1)}
# Their parameter `kernel`: what one thread or one block makes of it is a time of its own.
_SLOW_KERNELS = (4, 5)


@dataclass(frozen=True)
class Prediction:
    """``seconds`` in all, and the ``terms`` that they were made from, in seconds; those that overlap do not add up.
    ``dominant`` is the one that decides."""

    seconds: float
    terms: Mapping[str, float]
    dominant: str


def expected(
    rung: Mapping[str, Any],
    facts: Mapping[str, Any] | None,
    gpu: Mapping[str, Any],
    limits: Limits,
    dtype: str,
    n: int,
    params: Mapping[str, int],
    *,
    block: int = 0,
    footprint: int | None = None,
) -> float:
    """Seconds that a run of the rung is expected to take, on the clock of its kind; see `predict`."""
    return predict(rung, facts, gpu, limits, dtype, n, params, block=block, footprint=footprint).seconds


def predict(
    rung: Mapping[str, Any],
    facts: Mapping[str, Any] | None,
    gpu: Mapping[str, Any],
    limits: Limits,
    dtype: str,
    n: int,
    params: Mapping[str, int],
    *,
    block: int = 0,
    footprint: int | None = None,
) -> Prediction:
    """The expected time of a rung and what it is made of.

    ``rung`` is a row of ``_core.rungs()``, ``facts`` what ``_core.rung_facts`` says of the launch, or None: then its
    occupancy is reckoned from the block. ``params`` are those of the rung's parameters that are not as usual, ``block``
    its threads a block, 0 for its own, ``footprint`` the bytes that the runs go round; None: as many as the bench
    would. What fits in the L2 is found there. ``n`` is the elements of one addition, of latency rungs too.

    Raises ValueError for dtypes that the rung does not take, n < 1, limits that were not measured, and rungs whose time
    no measured limit decides: those of the host, and transfers that allocate or read ordinary memory.
    """
    if n < 1:
        raise ValueError(f"n must be at least 1, not {n!r}")
    if dtype not in rung["dtypes"]:
        raise ValueError(f"rung {rung['name']} does not take {dtype}; it takes {', '.join(rung['dtypes'])}")
    device = Gpu.of(gpu)
    chosen = {name: bounds[1] for name, bounds in rung["params"].items()} | dict(params)
    if rung["kind"] == "latency":
        return _launches(rung, device, limits, dtype, n, chosen)
    if rung["kind"] == "transfer":
        return _transfer(rung, device, limits, dtype, n, chosen)
    if rung["kind"] != "device":
        raise ValueError(f"the model knows no {rung['kind']} rungs, and {rung['name']} is one")
    itemsize = _itemsize(dtype)
    if footprint is None:
        from vecadd.bench.buffers import rotation

        of_a_set = 3 * n * itemsize
        footprint = of_a_set * rotation(of_a_set, device.l2, gpu["memory"] // 2)
    cached = footprint <= device.l2 // (L2_PARTS if device.capability >= 80 else 1)
    block = block or (facts["block"][0] * facts["block"][1] * facts["block"][2] if facts else rung["block"]) or 256
    if chosen.get("warps"):  # tuned's own way to choose a block
        block = WARP * chosen["warps"]
    if rung["blocks"] == 1:
        return _one_block(rung, device, limits, itemsize, n, block, cached)
    return _many_blocks(rung, facts, device, limits, itemsize, n, chosen, block, cached)


def _many_blocks(
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
    elements = min(way.elements, each / total) if way.blocks else way.elements  # of a thread, some of whom are idle
    rounds = max(1.0, each / (total * elements)) if way.threads else 1.0
    latency, moved = _latency(limits, gpu, way, cached, n * itemsize * 3)
    read, written = each * itemsize * reads, each * itemsize
    memory: float = moved(read, written)
    l2 = (way.read_waste * read / limits.need("l2_read"), way.write_waste * written / limits.need("l2_write"))
    dependent = way.instructions * DEPENDENT / _clock(gpu)

    def crowd(at_once: float) -> float:
        """Seconds of what so many threads ask for in a round. A load finds loads and stores in its way."""
        return max(memory, sum(l2) / way.turns) * min(1.0, at_once * elements / each)

    def round_trip(at_once: float, queue: float) -> float:
        """Of a round in which so many threads ask at the same time, and wait for that part of the queue."""
        of_a_step = way.lookups / way.steps * at_once / gpu.multiprocessors / WARP / _clock(gpu)
        step = max(limits.need("l1") + AN_ADDITION * DEPENDENT / _clock(gpu), of_a_step)
        return latency + crowd(at_once) * queue + (way.steps - 1) * step

    start = limits.need("turnaround") + dependent
    at_once = min(resident, total)
    if way.threads:  # blocks of one length: a generation starts when the one before is over
        waiting = 0.0
        for size in [resident] * (total // resident) + [total % resident] * (total % resident > 0):
            partly = (math.ceil(rounds) - rounds) * latency
            waiting += start + partly + rounds * max(crowd(size), round_trip(size, LATER))
    else:
        together = 1 / active if way.steps == 1 else 0  # warps that go step by step drift apart
        waiting = max(1.0, total / resident) * (start + round_trip(at_once, (1 + together) / 2))
    terms = {
        "memory": memory + latency,
        # The first sweep brings lines from the memory, whose other parts the others find.
        "L2": max(l2) + latency
        if way.sweeps == 1 or n * itemsize * 3 > gpu.l2
        else memory + max(l2) * (1 - 1 / way.sweeps) + limits.far,
        "latency": waiting + crowd(at_once) / 2,
        "start": blocks * limits.need("block") + latency + dependent,
        "lookups": way.lookups * rounds * total / WARP / gpu.multiprocessors / _clock(gpu) + latency,
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
    """Seconds of a load where nobody else loads, and the function that gives the seconds in which so many bytes of
    inputs are read and so many of outputs are written.

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


def _one_block(
    rung: Mapping[str, Any], gpu: Gpu, limits: Limits, itemsize: int, n: int, block: int, cached: bool
) -> Prediction:
    """One block on one multiprocessor: nothing but what it waits for."""
    floor, l2 = limits.need("kernel"), limits.need("l2")
    far = l2 if cached else limits.far
    reads = rung["bytes_per_element"] // 4 - 1
    arithmetic = (AN_ADDITION + reads - 2) * DEPENDENT / _clock(gpu)
    # Neighbours come with an element: the rest of its sector to the L1, of its pair of sectors to the L2.
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
            "lookups": run * (lookups / _clock(gpu) + fetched),
        }
    elif rung["name"] == "atomic":
        terms = {"atomics": n * block * limits.need("atomic"), "latency": n * (near + arithmetic)}
    elif rung["name"] == "race":
        terms = {"latency": n * (near + arithmetic)}
    else:
        terms = {"latency": -(-n // block) * (far + arithmetic)}
    dominant = max(terms, key=lambda name: terms[name])
    return Prediction(floor + l2 + terms[dominant], {"launch": floor, **terms}, dominant)


def _transfer(
    rung: Mapping[str, Any], gpu: Gpu, limits: Limits, dtype: str, n: int, params: Mapping[str, int]
) -> Prediction:
    """Two arrays up, a kernel, one array down, in as many parts as there are streams or chunks."""
    parts = _TRANSFERS.get(rung["name"])
    if parts is None or params.get("allocates") or params.get("kernel") in _SLOW_KERNELS:
        raise ValueError(f"no measured limit decides the time of {rung['name']} as it is called")
    parts = parts or -(-n // params["chunk"])
    nbytes = n * _itemsize(dtype)
    up, down = 2 * nbytes / limits.need("to_device"), nbytes / limits.need("to_host")
    kernel = limits.memory_seconds(2 * nbytes, nbytes)
    streams = parts * limits.need("made_stream") if rung["name"] == "streams4" else 0.0  # inside of the timed part
    if rung["name"] == "pinned_reused":  # waits for each copy; the kernel is queued
        first, others, tail = 3 * limits.need("waited_copy") + limits.need("issued"), 0.0, 0.0
    else:  # the first part has to be queued, and the last one's end to be seen; what is between goes on meanwhile
        first = 3 * limits.need("queued_copy") + limits.need("issued")
        others, tail = (parts - 1) * first, max(0.0, limits.need("waited_copy") - limits.need("queued_copy"))
    terms = {"to_device": up, "kernel": kernel, "to_host": down, "launch": streams + first + others + tail}
    if parts > 1:  # both ways at once share the link
        both = 2 * nbytes / limits.need("both") + nbytes / limits.need("to_device")
        up = max(up, both)
    going = limits.need("kernel") + overlap(up, kernel, down, parts)
    return Prediction(streams + first + max(others, going) + tail, terms, max(terms, key=lambda t: terms[t]))


def _launches(
    rung: Mapping[str, Any], gpu: Gpu, limits: Limits, dtype: str, n: int, params: Mapping[str, int]
) -> Prediction:
    """Many small additions of n elements, a launch each: the host issues them, the GPU starts them one after the
    other."""
    if rung["name"] not in _LAUNCHED:
        raise ValueError(f"no probe measures how {rung['name']} launches")
    between, calls = _LAUNCHED[rung["name"]]
    adds, nbytes = params["adds"], n * _itemsize(dtype)
    # A chain goes round b and out. What is a little more than the L2 keeps is found there in part.
    room = gpu.l2 // L2_PARTS
    kept = min(1.0, max(0.0, 2 - 2 * nbytes / room)) if params["chain"] else 0.0
    row, block = {**rung, **_SMALL_ADD}, rung["block"] or 256
    near, far = (
        _many_blocks(row, None, gpu, limits, _itemsize(dtype), n, params, block, cached) for cached in (True, False)
    )
    work = kept * near.seconds + (1 - kept) * far.seconds - limits.need("kernel")
    terms = {"issue": (calls or adds) * limits.need("issued"), "kernels": adds * (limits.need(between) + work)}
    dominant = max(terms, key=lambda name: terms[name])
    return Prediction(limits.need("kernel") + terms[dominant], terms, dominant)


def _clock(gpu: Gpu) -> float:
    return gpu.cycles(1)


def _itemsize(dtype: str) -> int:
    return _ITEMSIZES[dtype]


_ITEMSIZES = {name: int("".join(filter(str.isdigit, name)) or 8) // 8 for name in _core.DTYPES}

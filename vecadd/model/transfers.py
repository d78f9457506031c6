"""The expected time of a transfer: the calls of a rung, in its order, on a host and a GPU as the probes found them.

copies      one that the host waits for takes what the probe's of its size and memory took; one behind another in a
            stream what the device took for it, and its bytes share the link with those that go the other way
kernels     what `kernels` expects of them, between copies of a stream as the probe's empty one
memory      made in the timed part: cudaMalloc maps 2 MiB at a time, which small arrays share; a pool has what is asked
            for
streams     made and destroyed in the timed part
threads     of the host that stage or add: waking them, what they copy and add together, and calls of the driver, which
            all of them make at the same time
zero-copy   as long as the probe's kernel takes from launch to end for arrays of that size
managed     as long as the probe's pages take for arrays of that size
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

from vecadd import _core
from vecadd.model import hosts, kernels
from vecadd.model.engines import Link, Queue, Spend, Step, Thread, Wait, run
from vecadd.model.gpu import Gpu
from vecadd.model.limits import Limits
from vecadd.model.prediction import Prediction, itemsize, longest

MAPPED_AT_ONCE = 2 << 20  # bytes that cudaMalloc maps: the granularity of the driver's virtual memory
PROBED_ARRAYS = 3  # that the probes of allocation hold at once
PART = 256  # bytes that parts of an array are multiples of, as in csrc/lab/ladder/copies.c

# As in csrc/transfer/transfer.c and csrc/transfer/slots.h: bytes of a chunk of one array.
PIPELINE_LEAST, PIPELINE_MOST = 512 << 10, 16 << 20
STAGED_LEAST, STAGED_MOST = 128 << 10, 1 << 20
ZERO_COPY_MOST = 16 << 20
PAGE = 4096
# As in csrc/lab/ladder/hybrid.c.
HOST_BLOCK, HYBRID_PINNED, HYBRID_STAGED, HYBRID_SLOTS = 1 << 20, 4 << 20, 1 << 20, 2
MEMORIES = 2  # page-locked and ordinary: a bench of transfers goes round arrays of both

KERNELS = ("naive", "restrict", "float4", "tuned", "single_thread", "single_block", "grid_stride")


@dataclass(frozen=True)
class Call:
    """A run: the rung, its parameters, and where its arrays are."""

    rung: Mapping[str, Any]
    gpu: Gpu
    limits: Limits
    dtype: str
    n: int
    params: Mapping[str, int]
    pinned: bool

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return itemsize(self.dtype)

    @property
    def nbytes(self) -> int:
        """Of one array."""
        return self.n * self.itemsize

    def need(self, name: str) -> float:
        """That limit; raises ValueError where the run did not measure it."""
        return self.limits.need(name)

    def seconds(self, name: str, nbytes: float) -> float:
        """What that curve says of so many bytes; raises ValueError likewise."""
        return self.limits.seconds(name, nbytes)


@dataclass(frozen=True)
class Copies:
    """How a rung of csrc/lab/ladder/copies.c copies: streams that it makes, whether in the timed part; whether copies
    wait; whether its chunks are a parameter; and where its arrays come from: "asked" by a parameter, "kept", "malloc",
    "pool"."""

    streams: int = 0
    streams_inside: bool = False
    blocking: bool = False
    chunks: bool = False
    arrays: str = "asked"


_COPIES: Mapping[str, Copies] = {
    "pageable": Copies(blocking=True),
    "pinned": Copies(blocking=True),
    "pinned_reused": Copies(blocking=True, arrays="kept"),
    "stream1_pinned": Copies(streams=1),
    "streams2": Copies(streams=2, chunks=True),
    "streams4": Copies(streams=4, streams_inside=True),
    "streams4_pageable": Copies(streams=4, streams_inside=True),
    "copy_blocking": Copies(blocking=True),
    "copy_async": Copies(),
    "copy_stream": Copies(streams=1),
    "malloc_each_call": Copies(streams=1, arrays="malloc"),
    "pool": Copies(streams=1, arrays="pool"),
}
_PAGEABLE = ("pageable", "streams4_pageable", "copy_blocking", "copy_async", "copy_stream", "staged")
_EITHER = ("hybrid", "tuned_transfer")


def predict(
    rung: Mapping[str, Any],
    gpu: Gpu,
    limits: Limits,
    dtype: str,
    n: int,
    params: Mapping[str, int],
    memory: str | None,
) -> Prediction:
    """Of a transfer rung; see `vecadd.model.predict`. ``params`` are all of its parameters."""
    name = rung["name"]
    usual = "pageable" if name in _PAGEABLE else "pinned"
    if memory not in (None, usual) and name not in _EITHER:
        raise ValueError(f"rung {name} is expected on {usual} memory, not on {memory!r}")
    call = Call(rung, gpu, limits, dtype, n, params, (memory or usual) == "pinned")
    if name in _COPIES:
        return _by_copies(call, _COPIES[name])
    return _WAYS[name](call)


def link(call: Call) -> Link:
    """The link's engines at the rates of that run."""
    return Link(call.need("to_device"), call.need("to_host"), call.need("both"))


def kernel_seconds(call: Call, lanes: int) -> float:
    """Of the rung's kernel over so many elements, beyond an empty one. It finds what the copy has just brought."""
    row = _ROWS[KERNELS[call.params.get("kernel", KERNELS.index("tuned"))]]
    usual = {name: bounds[1] for name, bounds in row["params"].items()}
    footprint = 3 * lanes * call.itemsize
    found = kernels.predict(row, None, call.gpu, call.limits, call.itemsize, lanes, usual, 0, footprint)
    return found.seconds - call.need("kernel")


_ROWS = {row["name"]: row for row in _core.rungs() if row["name"] in KERNELS}


# Steps.


def _copy(call: Call, stream: int, way: str, nbytes: int, issued: float) -> Queue:
    """A copy of page-locked memory, which the thread does not wait for."""
    rate = call.need("to_device" if way == "up" else "to_host")
    fixed = max(0.0, call.seconds(f"queued_{way}", nbytes) - nbytes / rate)
    return Queue(stream, "up" if way == "up" else "down", issued, fixed, nbytes)


def _seen(call: Call, way: str, nbytes: int) -> float:
    """From the end of a copy until the host knows of it, and what it took to get to the device: what a copy that is
    waited for takes beyond its call and the device's work."""
    alone = call.need("queued_copy") + call.seconds(f"queued_{way}", nbytes)
    return max(0.0, call.seconds(way, nbytes) - alone)


def _waited_copy(call: Call, stream: int, way: str, nbytes: int) -> Iterator[Step]:
    if call.pinned:
        yield _copy(call, stream, way, nbytes, call.need("queued_copy"))
        yield Wait(stream, _seen(call, way, nbytes))
    else:
        yield from _pageable_copy(call, stream, way, nbytes)


def _pageable_copy(call: Call, stream: int, way: str, nbytes: int, blocking: bool = True) -> Iterator[Step]:
    """The driver waits for what is ahead, and copies a part at a time through memory of its own. A copy up that is not
    to wait returns when all of it has been read. Parts come as fast as their array: caches keep as much of them."""
    curve = f"pageable_{way}" if blocking or way == "down" else "staged_up"
    seconds = max(call.seconds(curve, nbytes), call.seconds(curve, call.nbytes) * nbytes / call.nbytes)
    if curve == "staged_up":
        least = call.limits.queued_up.points[0][0] if call.limits.queued_up else 0
        yield Queue(stream, "up", seconds, call.seconds("queued_up", min(nbytes, least)))
    else:
        yield Wait(stream)
        yield Spend(seconds)


def _kernel(call: Call, stream: int, lanes: int, issued: float) -> Queue:
    return Queue(stream, "kernel", issued, call.need("kernel_between") + kernel_seconds(call, lanes))


def _cleared(call: Call, stream: int, lanes: int, issued: float) -> Iterator[Step]:
    """The sum made 0 first, for kernels that add to it."""
    if _ROWS[KERNELS[call.params.get("kernel", KERNELS.index("tuned"))]]["sum"] != "written":
        yield Queue(stream, "kernel", issued, call.need("queued") + lanes * call.itemsize / call.need("write"))


def allocated(limits: Limits, arrays: int, nbytes: int) -> float:
    """Seconds of so many arrays of the device by cudaMalloc, made and freed."""
    return limits.seconds("malloc", nbytes) * _maps(arrays, nbytes) / _maps(PROBED_ARRAYS, nbytes)


def _maps(arrays: int, nbytes: int) -> int:
    """How often so many arrays make the driver map memory."""
    return arrays if nbytes >= MAPPED_AT_ONCE else -(-arrays * nbytes // MAPPED_AT_ONCE)


# Copies and kernels on streams.


def _by_copies(call: Call, how: Copies) -> Prediction:
    asked = how.arrays == "asked" and bool(call.params.get("allocates"))
    streams = how.streams if how.streams_inside or asked else 0
    lanes = _chunk(call, how)
    arrays = 3 * (max(1, how.streams) if how.chunks else 1)
    of_array = (lanes if how.chunks else call.n) * call.itemsize
    made = streams * call.need("made_stream") if streams else 0.0
    if asked or how.arrays == "malloc":
        made += allocated(call.limits, arrays, of_array)
    elif how.arrays == "pool":
        made += call.seconds("pool", of_array)
    way = run([_chunks(call, how, lanes)], link(call))
    return _told(call, made + way, {"memory and streams": made})


def _chunk(call: Call, how: Copies) -> int:
    if how.chunks:
        return min(call.params["chunk"], call.n)
    streams, grain = max(1, how.streams), PART // call.itemsize
    return call.n if streams == 1 else -(-call.n // (streams * grain)) * grain


def _chunks(call: Call, how: Copies, lanes: int) -> Thread:
    streams, used = max(1, how.streams), set()
    issued = call.need("call_one")
    for number, begin in enumerate(range(0, call.n, lanes)):
        stream, here = number % streams, min(lanes, call.n - begin)
        nbytes = here * call.itemsize
        used.add(stream)
        yield from _cleared(call, stream, here, issued)
        for way in ("up", "up", "kernel", "down"):
            if way == "kernel":
                yield _kernel(call, stream, here, issued)
            elif how.blocking:
                yield from _waited_copy(call, stream, way, nbytes)
            elif call.pinned:
                yield _copy(call, stream, way, nbytes, issued)
            else:
                yield from _pageable_copy(call, stream, way, nbytes, blocking=False)
    if call.pinned and not how.blocking:
        # The first wait sees what it took to get to the device; the others find their streams at their ends.
        for position, stream in enumerate(sorted(used)):
            yield Wait(stream, _seen(call, "down", lanes * call.itemsize) if position == 0 else 0.0)


def _told(call: Call, seconds: float, others: Mapping[str, float]) -> Prediction:
    """With the terms that every transfer has."""
    terms = {
        "to_device": 2 * call.nbytes / call.need("to_device"),
        "kernel": call.limits.memory_seconds(2 * call.nbytes, call.nbytes),
        "to_host": call.nbytes / call.need("to_host"),
        **others,
    }
    terms["calls and waits"] = max(0.0, seconds - sum(terms.values()))
    return longest(seconds, terms)


# No copies.


def _zero_copy(call: Call) -> Prediction:
    """Loads over the link, and stores the other way beside the loads of blocks behind them."""
    return _told(call, call.seconds("mapped", call.nbytes), {})


def _managed(call: Call) -> Prediction:
    """Pages go to whoever touches them, as the probe's do."""
    touched = call.seconds("managed", call.nbytes)
    made = call.seconds("managed_made", call.nbytes) if call.params.get("allocates") else 0.0
    return _told(call, touched + made, {"memory and streams": made})


# The package's own way.


def _tuned_transfer(call: Call) -> Prediction:
    way = call.params.get("way", 0)
    if call.pinned and (way == 2 or (way == 0 and call.nbytes <= ZERO_COPY_MOST)):
        return _zero_copy(call)
    return _pipeline(call) if call.pinned else _staged(call)


def _pipeline(call: Call) -> Prediction:
    """Chunks that grow and shrink, in turn on two streams, queued by one thread."""
    lanes = min(PIPELINE_MOST // call.itemsize, call.n)
    depth = 2 if call.nbytes > PIPELINE_LEAST else 1

    def thread() -> Thread:
        yield Spend(depth * call.need("pool_again"))
        yield from _slots_start(call, range(depth), 1.0)
        for turn, here in enumerate(_tapered(call, lanes)):
            yield from _slot_queue(call, turn % depth, here, 1.0)
        yield from _slots_finish(call, range(depth), 1.0)

    return _told(call, run([thread()], link(call)), {})


def _tapered(call: Call, lanes: int) -> Iterator[int]:
    least, page = PIPELINE_LEAST // call.itemsize, PAGE // call.itemsize
    begin, grown = 0, min(least, lanes)
    while begin < call.n:
        left = call.n - begin
        here = min(grown, max(left // 2 // page * page, min(least, left)))
        yield here
        begin, grown = begin + here, min(2 * grown, lanes)


def _slots_start(call: Call, streams: range, slower: float) -> Iterator[Step]:
    """A flag word is cleared."""
    for stream in streams:
        yield Queue(stream, "kernel", slower * call.need("call_one"), call.need("queued"))


def _slot_queue(call: Call, stream: int, lanes: int, slower: float) -> Iterator[Step]:
    nbytes, issued = lanes * call.itemsize, slower * call.need("call_one")
    yield _copy(call, stream, "up", nbytes, issued)
    yield _copy(call, stream, "up", nbytes, issued)
    yield _kernel(call, stream, lanes, issued)
    yield _copy(call, stream, "down", nbytes, issued)


def _slots_finish(call: Call, streams: range, slower: float) -> Iterator[Step]:
    """The flag words come to ordinary memory: each is waited for."""
    for stream in streams:
        yield Wait(stream)
        yield Spend(slower * call.seconds("pageable_down", 0))


def _staged(call: Call) -> Prediction:
    """Each of several threads fills one page-locked slot while its other one flies."""
    threads = call.params.get("threads") or int(call.need("threads"))
    most = min(max(call.nbytes // (2 * threads), STAGED_LEAST), STAGED_MOST)
    lanes = min(most // call.itemsize, call.n)
    chunks = -(-call.n // lanes)
    threads = min(threads, chunks)
    depth = 2 if chunks > threads else 1
    slower = _slower(call, threads)
    rate = _copy_rate(call, threads)
    begin = threads * depth * call.need("pool_again")
    taken, sets = count(0, lanes), count()

    def thread(number: int) -> Thread:
        """Whoever is awake takes the next set of slots."""
        yield Spend(begin, idle=number > 0)
        if number:
            yield Spend(hosts.wake(call.limits, number), idle=True)
        while (own := next(sets)) < threads:
            yield from work(range(own * depth, (own + 1) * depth))

    def work(streams: range) -> Thread:
        yield from _slots_start(call, streams, slower)
        flying = dict.fromkeys(streams, 0)
        while True:
            stream = next(iter(flying))
            here = flying.pop(stream)
            yield from _slot_drain(call, stream, here, rate)
            first = next(taken)
            flying[stream] = max(0, min(lanes, call.n - first))
            if first >= call.n:
                break
            yield Spend(2 * flying[stream] * call.itemsize / rate)
            yield from _slot_queue(call, stream, flying[stream], slower)
        for stream, here in flying.items():
            yield from _slot_drain(call, stream, here, rate)
        yield from _slots_finish(call, streams, slower)

    seconds = run([thread(number) for number in range(threads)], link(call))
    return _told(call, seconds, {"host": 3 * call.nbytes / (rate * threads)})


def _slot_drain(call: Call, stream: int, lanes: int, rate: float) -> Iterator[Step]:
    if lanes:
        yield Wait(stream, _seen(call, "down", lanes * call.itemsize))
        yield Spend(lanes * call.itemsize / rate)


def _slower(call: Call, threads: int) -> float:
    """How much longer a call takes where so many threads make calls: in between in proportion."""
    every = max(2, int(call.need("threads")))
    ratio = max(1.0, call.need("call_all") / call.need("call_one"))
    return 1 + (ratio - 1) * min(1.0, (threads - 1) / (every - 1))


def _copy_rate(call: Call, threads: int) -> float:
    """Bytes a second that each of so many threads copies."""
    return min(call.need("copy_one"), call.need("copy_all") / threads)


# Processor and GPU from the two ends.


def _hybrid(call: Call) -> Prediction:
    threads = call.params.get("threads") or int(call.need("threads"))
    block = HOST_BLOCK // call.itemsize
    chunk = min((HYBRID_PINNED if call.pinned else HYBRID_STAGED) // call.itemsize, call.n)
    left = [0, call.n]
    awake = [1]  # threads, the one that feeds among them
    adding_together = _add_rate(call)
    made = 0.0
    if call.params.get("allocates"):
        made = HYBRID_SLOTS * (call.need("made_stream") + 3 * call.need("pool_again"))
        if not call.pinned:
            made += 2 * HYBRID_SLOTS * call.seconds("pinned", chunk * call.itemsize)

    def take(most: int, back: bool) -> int:
        wish = left[1] % most if back and left[1] % most else most
        here = min(left[1] - left[0], wish)
        left[back] += -here if back else here
        return here

    def feeding() -> Thread:
        flying = dict.fromkeys(range(HYBRID_SLOTS), 0)
        for turn in count():
            stream = turn % HYBRID_SLOTS
            yield from _hybrid_drain(call, stream, flying[stream], _copy_rate(call, awake[0]))
            flying[stream] = take(chunk, True)
            if not flying[stream]:
                break
            if not call.pinned:
                yield Spend(2 * flying[stream] * call.itemsize / _copy_rate(call, awake[0]))
            yield from _slot_queue(call, stream, flying[stream], 1.0)
        for stream in range(HYBRID_SLOTS):
            yield from _hybrid_drain(call, stream, flying[stream], _copy_rate(call, awake[0]))

    def adding(number: int) -> Thread:
        yield Spend(hosts.wake(call.limits, number), idle=True)
        while here := take(block, False):
            awake[0] += 1
            yield Spend(
                here * call.itemsize / min(hosts.rate_alone(call.limits, call.nbytes), adding_together / awake[0])
            )
            awake[0] -= 1

    going = run([feeding(), *(adding(number) for number in range(1, threads))], link(call))
    return _told(call, made + going, {"memory and streams": made})


def _add_rate(call: Call) -> float:
    """Bytes of an array a second that all threads add. Each kind of memory has its arrays, between which the caches are
    divided; and of what comes from the memory, the link takes its part."""
    held = MEMORIES * call.nbytes
    alone = hosts.rate_together(call.limits, held)
    return max(alone / 2, alone - hosts.from_memory(call.limits, held) * call.need("both") / 3)


def _hybrid_drain(call: Call, stream: int, lanes: int, rate: float) -> Iterator[Step]:
    if lanes:
        yield Wait(stream, _seen(call, "down", lanes * call.itemsize))
        if not call.pinned:
            yield Spend(lanes * call.itemsize / rate)


_WAYS: Mapping[str, Callable[[Call], Prediction]] = {
    "zero_copy": _zero_copy,
    "managed": _managed,
    "staged": _staged,
    "tuned_transfer": _tuned_transfer,
    "hybrid": _hybrid,
}

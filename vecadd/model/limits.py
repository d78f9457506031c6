"""What the probes of a run measured, as the model takes it: seconds, bytes a second, and seconds by bytes."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Annotated, Any

# The memory under load: how many bytes a second it moves by the bytes in flight.
#
# Little's law is bytes in flight = rate * latency, but the latency is no constant: requests queue. An H200's memory,
# which answers one request in 340 ns, takes 415 ns where each multiprocessor waits for 4 KiB, and 755 where it waits
# for 24. With the idle latency the law says "enough" too early. So the rate is read off what a run measured at several
# numbers of bytes.

ENOUGH = 0.95  # of the highest rate: the rest takes several times the bytes


@dataclass(frozen=True)
class Loaded:
    """``points`` of (bytes in flight on each multiprocessor, bytes a second), the bytes rising, for a kernel that only
    reads. The bytes that a kernel stores take their part of the rate without being waited for: one that loads two
    arrays and stores a third has the rate of 3/2 of its bytes in flight.

    >>> loaded = vecadd.model.Loaded(((4096, 1.3e12), (16384, 3.9e12), (32768, 4.5e12)))
    >>> loaded.best
    4500000000000.0
    """

    points: tuple[tuple[float, float], ...]

    @classmethod
    def through(cls, points: Iterable[tuple[float, float]]) -> "Loaded | None":
        """The curve through these points, in any order, without those whose rate is not above that of fewer bytes; None
        where fewer than two are left.

        >>> vecadd.model.Loaded.through([(16384, 3.9e12), (4096, 1.3e12), (32768, 3.8e12)]).points
        ((4096, 1300000000000.0), (16384, 3900000000000.0))
        """
        found: list[tuple[float, float]] = []
        for nbytes, rate in sorted(points):
            if not found or rate > found[-1][1]:
                found.append((nbytes, rate))
        return cls(tuple(found)) if len(found) > 1 else None

    @property
    def best(self) -> float:
        """The highest rate, bytes a second."""
        return max(rate for _, rate in self.points)

    def rate(self, in_flight: float) -> float:
        """Bytes a second with ``in_flight`` bytes in flight on each multiprocessor.

        Between two points by what a byte takes, 1 / rate, which falls in a straight line with 1 / bytes where the
        latency is a fixed part and a queue; below the first at its latency, beyond the last at its rate.

        >>> vecadd.model.Loaded(((4096, 1.3e12), (16384, 3.9e12))).rate(2048)
        650000000000.0
        """
        (least, lowest), (most, highest) = self.points[0], self.points[-1]
        if in_flight <= least:
            return lowest * in_flight / least
        if in_flight >= most:
            return highest
        (x, low), (to_x, high) = next(pair for pair in pairwise(self.points) if in_flight <= pair[1][0])
        share = (1 / x - 1 / in_flight) / (1 / x - 1 / to_x)
        return 1 / (1 / low + share * (1 / high - 1 / low))

    def latency(self, in_flight: float, multiprocessors: int) -> float:
        """Seconds from a load to its data with ``in_flight`` bytes in flight on each multiprocessor, by Little's law.

        >>> f"{vecadd.model.Loaded(((4096, 1.3e12), (16384, 3.9e12))).latency(16384, multiprocessors=132):.3g}"
        '5.55e-07'
        """
        return in_flight * multiprocessors / self.rate(in_flight)

    def on_average(self, places: float, multiprocessors: int, warps: int, start: float) -> float:
        """Bytes in flight on each multiprocessor on average, where there are ``places`` for as many but blocks of
        ``warps`` warps end and others take their places.

        A place is empty while its block waits for the slowest of its warps, and for the ``start`` seconds until the
        next block loads. Waits in a queue have a long tail: the longest of m is about ln m times their mean. So an
        H200's 32 KiB for float2 are 17 in blocks of 256 threads, 14 in blocks of 1024.

        >>> loaded = vecadd.model.Loaded(((4096, 1.3e12), (16384, 3.9e12), (32768, 4.5e12)))
        >>> [round(loaded.on_average(32768, 132, warps, start=230e-9)) for warps in (8, 32)]
        [19008, 16192]
        """
        idle = self.latency(self.points[0][0], multiprocessors)

        def taken(in_flight: float) -> float:
            """Bytes of the places that keep ``in_flight`` in flight."""
            mean = self.latency(in_flight, multiprocessors)
            block = idle + (mean - idle) * max(1.0, math.log(warps)) + start
            return in_flight * block / mean

        low, high = 0.0, places
        while high - low > places / 1024:
            middle = (low + high) / 2
            low, high = (middle, high) if taken(middle) < places else (low, middle)
        return high

    def needed(self, share: float = ENOUGH) -> float:
        """Bytes in flight on a multiprocessor from which on the rate is that share of the highest.

        >>> round(vecadd.model.Loaded(((4096, 1.3e12), (16384, 3.9e12))).needed(0.5))
        6554
        """
        wanted = share * self.best
        (x, low), *_ = self.points
        if wanted <= low:
            return x * wanted / low
        (x, low), (to_x, high) = next(pair for pair in pairwise(self.points) if pair[1][1] >= wanted)
        part = (1 / low - 1 / wanted) / (1 / low - 1 / high)
        return 1 / (1 / x - part * (1 / x - 1 / to_x))


@dataclass(frozen=True)
class Curve:
    """Seconds by bytes, as probed at some sizes, smallest first: ``points`` of (bytes, seconds). It is linear between
    the points, constant below the smallest and continues beyond the largest at the rate of the last two.

    >>> vecadd.model.Curve(((1000, 1e-6), (3000, 2e-6))).seconds(2000)
    1.5e-06
    """

    points: tuple[tuple[float, float], ...]

    @classmethod
    def line(cls, start: float, rate: float) -> "Curve":
        """``start`` seconds and bytes at ``rate`` bytes a second.

        >>> vecadd.model.Curve.line(start=0.5, rate=100).seconds(200)
        2.5
        """
        return cls(((0.0, start), (rate, start + 1)))

    def rate(self, nbytes: float) -> float:
        """Bytes a second at that size; at the smallest that was probed for less.

        >>> vecadd.model.Curve.line(start=0.5, rate=100).rate(200)
        80.0
        """
        most = max(nbytes, self.points[0][0])
        return most / self.seconds(most)

    def seconds(self, nbytes: float) -> float:
        """Seconds of ``nbytes``.

        >>> vecadd.model.Curve(((100, 1.0), (200, 2.0))).seconds(400)
        4.0
        """
        (size, least), *_ = self.points
        if nbytes <= size or len(self.points) == 1:
            return least
        (x, y), (to_x, to_y) = next((pair for pair in pairwise(self.points) if nbytes <= pair[1][0]), self.points[-2:])
        return y + (nbytes - x) * max(0.0, to_y - y) / (to_x - x)


# Limits by the part of the "limits" of a result file's meta that has them, under the name of the field or another one.
OfDevice = Annotated[float | None, "device"]
OfLink = Annotated[float | None, "link"]
OfLaunch = Annotated[float | None, "launch"]
OfLatency = Annotated[float | None, "latency"]
OfCrew = Annotated[float | None, "crew"]
_RATES = ("device", "link")  # parts that have GB/s; the others have seconds


@dataclass(frozen=True)
class Limits:
    """The limits of a machine, by probes. A limit that a run did not probe is None, and raises ValueError when the
    model needs it.

    >>> vecadd.model.Limits(read=4.5e12).write is None
    True
    """

    read: OfDevice = None  # bytes a second: the memory, read and nothing else
    write: OfDevice = None
    copy: OfDevice = None  # half read, half written
    l2_read: OfDevice = None
    l2_write: OfDevice = None
    kernel: OfLaunch = None  # seconds: an empty kernel, by the clock of the device rungs
    block: OfLaunch = None  # for each block that starts
    turnaround: OfLaunch = None  # from the end of a block to the work of the next in its place
    queued: OfLaunch = None  # from kernel to kernel of a queue
    node: OfLaunch = None  # from kernel to kernel of a graph
    issued: OfLaunch = None  # of the host, for a launch
    l1: OfLatency = None  # of a load that the next waits for
    l2: OfLatency = None
    page: OfLatency = None  # found in the L2, in a page that was not used for long
    dram: OfLatency = None
    stream: OfLatency = None  # of a round of a block's loads from two arrays side by side, from DRAM
    atomic: OfLatency = None  # of one atomic addition to an address that a block adds to
    to_device: OfLink = None  # bytes a second: of the link, alone
    to_host: OfLink = None
    both: OfLink = None  # both ways at once, in sum
    waited: OfLaunch = None  # seconds of the host: of a kernel on an idle stream, until it is done
    table: OfLaunch = None  # of a table of one job that is written, copied and launched for
    job: OfLaunch = None  # of each further job
    waiting: OfLaunch = None  # from kernel to kernel of a queue of programmatic launches
    triggering: OfLaunch = None  # where each lets the next begin early
    triggering_node: OfLaunch = None  # in a graph
    triggering_block: OfLaunch = None  # for each block of them that starts
    programmatic_issued: OfLaunch = None  # of the host, for a programmatic launch
    released: OfLaunch = None  # from the end of a graph's kernel to the work of the next, which waited for it
    threads: Annotated[float | None, "crew", "threads"] = None  # of the host, that an addition may use
    wake: OfCrew = None  # seconds until they all answer after a rest
    wake_one: OfCrew = None  # until a single one does
    # From kernel to kernel of a graph, by bytes that each moves, in no cache before.
    fresh_node: Annotated[Curve | None, "launch"] = None
    # By bytes of an array: the best addition of the host's threads, and of one of them.
    host_add: Annotated[Curve | None, "crew", "add_seconds"] = None
    host_add_one: Annotated[Curve | None, "crew", "add_one_seconds"] = None
    loaded: Loaded | None = None  # the memory's rate by bytes in flight

    @classmethod
    def of(cls, meta_limits: Mapping[str, Mapping[str, Any]]) -> "Limits":
        """From the "limits" of a result file's meta.

        >>> vecadd.model.Limits.of({"device": {"read_gbps": 4500}}).read
        4500000000000.0
        """
        known: dict[str, Any] = {}
        for name, part, key in _places():
            found = meta_limits.get(part, {})
            if isinstance(value := found.get(key), list):
                known[name] = Curve(tuple(zip(found["bytes"], value, strict=False))) if value else None
            elif value is not None:
                known[name] = (1e9 if part in _RATES else 1.0) * value
        if under_load := meta_limits.get("loaded"):
            rates = (1e9 * gbps for gbps in under_load["gbps"])
            known["loaded"] = Loaded.through(zip(under_load["bytes_in_flight"], rates, strict=True))
        return cls(**known)

    def need(self, name: str) -> float:
        """That limit; raises ValueError where the run did not measure it.

        >>> vecadd.model.Limits(dram=600e-9).need("dram")
        6e-07
        """
        return float(self._known(name))

    def seconds(self, name: str, nbytes: float) -> float:
        """Seconds of ``nbytes`` by that curve; raises ValueError where the run did not measure it.

        >>> vecadd.model.Limits(host_add=vecadd.model.Curve.line(start=1.0, rate=10)).seconds("host_add", 20)
        3.0
        """
        return self.curve(name).seconds(nbytes)

    def curve(self, name: str) -> Curve:
        """That curve; raises ValueError where the run did not measure it.

        >>> vecadd.model.Limits(host_add=vecadd.model.Curve.line(start=1.0, rate=10)).curve("host_add").rate(10)
        5.0
        """
        curve: Curve = self._known(name)
        return curve

    def _known(self, name: str) -> Any:
        if (value := getattr(self, name)) is None:
            raise ValueError(self.lack(name))
        return value

    def lack(self, name: str) -> str:
        """That this limit was not measured, in words.

        >>> vecadd.model.Limits().lack("dram")
        "this run did not measure dram: its meta has no limits['latency']['dram_seconds']"
        """
        part, key = next(place for known, *place in _places() if known == name)
        return f"this run did not measure {name}: its meta has no limits[{part!r}][{key!r}]"

    @property
    def far(self) -> float:
        """Seconds of a warp's loads from the memory: `stream`, the time of the last of many sectors, or where a run did
        not measure it `dram`, the time of one sector."""
        return self.need("dram") if self.stream is None else self.stream

    def memory_seconds(self, read: float, written: float) -> float:
        """How long the memory takes for these bytes read and written together.

        Each at its own rate, and for each written byte the memory's turn from reading to writing and back, which is
        what a copy takes beyond its reads and its writes. On an H200 that is 4 % of an addition: 4.35 TB/s where reads
        and writes alone would allow 4.6.

        >>> vecadd.model.Limits(read=2e12, write=1e12).memory_seconds(read=2e9, written=1e9)
        0.002
        """
        alone = read / self.need("read") + written / self.need("write")
        turn = 0.0 if self.copy is None else 2 / self.copy - 1 / self.need("read") - 1 / self.need("write")
        return alone + min(read, written) * max(turn, 0.0)


# For where no run measured it: what the probes of an H200 did, the medians of benchmarks/results/h200.
RECORDED = Limits(kernel=4.5e-6, queued=1.6e-6)


def _places() -> Iterator[tuple[str, str, str]]:
    """The name of each limit, the part that has it, and its name there."""
    for limit in fields(Limits):
        if known := getattr(limit.type, "__metadata__", ()):
            part, *key = known
            yield limit.name, part, *(key or [f"{limit.name}_{'gbps' if part in _RATES else 'seconds'}"])

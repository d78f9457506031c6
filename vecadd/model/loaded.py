"""The memory under load: how many bytes a second it moves when so many bytes are in flight.

Little's law is bytes in flight = rate * latency, but the latency is no constant: requests queue. An H200's memory,
which answers one request in 340 ns, takes 415 ns where each multiprocessor waits for 4 KiB, and 755 where it waits for
24. With the idle latency the law says "enough" too early. So the rate is read off what a run measured at several
numbers of bytes.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

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
        """Bytes a second with so many bytes in flight on each multiprocessor.

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
        """Seconds from a load to its data with so many bytes in flight on each multiprocessor, by Little's law.

        >>> f"{vecadd.model.Loaded(((4096, 1.3e12), (16384, 3.9e12))).latency(16384, multiprocessors=132):.3g}"
        '5.55e-07'
        """
        return in_flight * multiprocessors / self.rate(in_flight)

    def on_average(self, places: float, multiprocessors: int, warps: int, start: float) -> float:
        """Bytes in flight on each multiprocessor on average, where there are places for so many but blocks of ``warps``
        warps end and others take their places.

        A place is empty while its block waits for the slowest of its warps, and for the ``start`` seconds until the
        next block loads. Waits in a queue have a long tail: the longest of m is about ln m times their mean. So an
        H200's 32 KiB for float2 are 17 in blocks of 256 threads, 14 in blocks of 1024.

        >>> loaded = vecadd.model.Loaded(((4096, 1.3e12), (16384, 3.9e12), (32768, 4.5e12)))
        >>> [round(loaded.on_average(32768, 132, warps, start=230e-9)) for warps in (8, 32)]
        [19008, 16192]
        """
        idle = self.latency(self.points[0][0], multiprocessors)

        def taken(in_flight: float) -> float:
            """Bytes of the places that keep so many in flight."""
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

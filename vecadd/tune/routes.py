"""The part ``routes``: how long host, transfer and hybrid take on this machine, by size, memory and kind of element.

csrc/choose/routes.c reads what is found and picks the fastest between the sizes by interpolation. Some seconds in all:
the routes take turns, so that a change of the clock meets all of them.
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from time import perf_counter
from typing import Any

import numpy as np

from vecadd import _core
from vecadd._rows import bytes_text
from vecadd.tune.part import Found, Part, Tell, TunedRow

# Bytes of an operand. Below the least a choice gains nothing, above the last the ratios stay the same.
SIZES = tuple(2**power for power in (16, 18, 20, 22, 24, 26, 28))

DTYPES = {"wide": "float32", "half": "float16"}  # the host's work on 16-bit floats is more than their bytes

ROUTES: Mapping[str, Mapping[str, str]] = {
    "ordinary": {"host": "cpu", "transfer": "cuda"},  # hybrid leaves ordinary memory to the host
    "pinned": {"host": "cpu", "transfer": "cuda", "hybrid": "hybrid"},
}

# Each route has at least so many turns, and as many more as fit into the seconds.
TURNS, SECONDS_A_SIZE = 5, 0.15

# Up to so many bytes of an operand a turn begins with a call that is not timed: the host adds 1 MiB from its caches in
# 19 us, and in 90 where the GPU has written the sum before.
CACHED = 32 << 20

ZERO_COPY_SIZES = tuple(2**power for power in range(14, 27))  # bytes of an operand

NOISE = 1.02  # how far two medians of the same call differ

Timed = Callable[[], object]


def search(tell: Tell) -> Sequence[Found]:
    """Measures the current GPU and the host's threads. Raises what device calls raise where there is no GPU."""
    key = _core.routes_key()
    if key is None:
        return [Found("routes", "", None, ["the driver does not say which GPU this is"])]
    rows: list[TunedRow] = [("bytes", SIZES), ("zero_copy", [_zero_copy_most(tell)])]
    words = [f"zero-copy is ahead of copies up to {rows[1][1][0]} bytes an operand"]
    for memory, routes in ROUTES.items():
        for kind, dtype in DTYPES.items():
            seconds = _sweep(memory, dtype, routes, tell)
            rows += [(f"{memory}_{kind}_{route}", times) for route, times in seconds.items()]
            words.append(f"{memory} {dtype}: {', '.join(_wins(seconds))}")
    return [Found("routes", key, rows, words)]


def _sweep(memory: str, dtype: str, routes: Mapping[str, str], tell: Tell) -> dict[str, list[float]]:
    """Seconds by route, of each size."""
    found: dict[str, list[float]] = {route: [] for route in routes}
    a, b, out = _arrays(memory, dtype, SIZES[-1])
    for size in SIZES:
        tell(f"{memory} {dtype} {bytes_text(size)}")
        n = size // a.itemsize
        parts = a[:n], b[:n], out[:n]
        calls = {route: _call(parts, device) for route, device in routes.items()}
        for route, seconds in _turns(calls, size <= CACHED).items():
            found[route].append(seconds)
    return found


def _arrays(memory: str, dtype: str, size: int) -> tuple[Any, Any, Any]:
    make = _core.empty_pinned if memory == "pinned" else np.empty
    n = size // np.dtype(dtype).itemsize
    a, b, out = make(n, dtype), make(n, dtype), make(n, dtype)
    for x, value in ((a, 1), (b, 2), (out, 0)):  # ordinary memory has its pages from here on
        x[:] = value
    return a, b, out


def _call(parts: tuple[Any, Any, Any], device: str) -> Timed:
    a, b, out = parts
    return lambda: _core.add(a, b, out, device=device)


def _turns(calls: Mapping[str, Timed], again: bool) -> dict[str, float]:
    """The median seconds of each call, in turns of random order after two calls that warm it up.

    Args:
        again: whether each turn's call comes after the same call, which is not timed.
    """
    order = random.Random(0)
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
        call()
    begin = perf_counter()
    while len(next(iter(taken.values()))) < TURNS or perf_counter() - begin < SECONDS_A_SIZE:
        names = list(calls)
        order.shuffle(names)
        for name in names:
            if again:
                calls[name]()
            start = perf_counter()
            calls[name]()
            taken[name].append(perf_counter() - start)
    return {name: float(np.median(samples)) for name, samples in taken.items()}


def _zero_copy_most(tell: Tell) -> int:
    """The most bytes of an operand up to which, without a gap, the kernel that reads page-locked memory is ahead."""
    a, b, out = _arrays("pinned", "float32", ZERO_COPY_SIZES[-1])
    most = 0
    for size in ZERO_COPY_SIZES:
        tell(f"zero-copy {bytes_text(size)}")
        n = size // a.itemsize
        calls = {way: _rung((a[:n], b[:n], out[:n]), number) for way, number in (("copies", 1), ("zero-copy", 2))}
        seconds = _turns(calls, size <= CACHED)
        if seconds["zero-copy"] > NOISE * seconds["copies"]:
            break
        most = size
    return most


def _rung(parts: tuple[Any, Any, Any], way: int) -> Timed:
    a, b, out = parts
    return lambda: _core.run_rung("tuned_transfer", a, b, out, params={"way": way})


def _wins(seconds: Mapping[str, Sequence[float]]) -> Iterator[str]:
    """Which route is the fastest from which size on."""
    before = None
    for at, size in enumerate(SIZES):
        fastest = min(seconds, key=lambda route: seconds[route][at])
        if fastest != before:
            yield f"{fastest} from {bytes_text(size)}"
        before = fastest


PART = Part("routes", search)

"""Sums on the host just below, at and just above each size at which vecadd changes its way."""

from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import vecadd
from vecadd import _core

KIB, MIB = 1 << 10, 1 << 20
FROM = _core.host_facts()["thresholds"]
# Bytes of a sum: what this machine's C code says, and the sizes of the pool of sums and of its pages.
WHERE = {name: size for name, size in FROM.items() if 0 < size <= 32 * MIB}
WHERE |= {"kept sums": 16 * KIB, "pool": MIB, "huge page": 2 * MIB, "mapping": 4 * MIB}
AWAKE = next(size for name, size in FROM.items() if name.endswith("awake"))
DTYPES = [np.dtype(name) for name in ("int8", "float16", "float32", "complex128")]
VECTOR = 64  # bytes
THREADS = 3


@pytest.fixture(autouse=True)
def several_threads() -> Iterator[None]:
    before = vecadd.set_num_threads(THREADS)
    yield
    vecadd.set_num_threads(before)


def numbers(dtype: np.dtype[Any], n: int) -> NDArray[Any]:
    return np.resize(np.arange(59), n).astype(dtype)


def schedule(nbytes: int, in_place: bool) -> tuple[int, str]:
    """Threads and stores of a sum of that many bytes, by the sizes that C says."""
    most = min(max(nbytes // (32 * KIB), 2), nbytes // (16 * KIB))
    together = max(1, min(THREADS, most)) if nbytes >= AWAKE else 1
    streams = nbytes >= FROM["stream_together" if together > 1 else "stream_alone"] and not in_place
    return together, "streaming" if streams else "ordinary"


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("where", WHERE)
def test_sums_around_a_size_are_numpys_twice_in_a_row(where: str, dtype: np.dtype[Any]) -> None:
    middle, step = WHERE[where] // dtype.itemsize, VECTOR // dtype.itemsize
    sizes = sorted({middle + near for near in (-step, -1, 0, 1, step)})
    a = numbers(dtype, sizes[-1])
    b = a[::-1].copy()
    want = a + b
    kept = []
    for n in chain(sizes, sizes):
        x, y, nbytes = a[:n], b[:n], n * dtype.itemsize
        room = np.full(n + 2, 7, dtype)
        out = room[1:-1]
        facts = _core.explain_route(x, y), _core.explain_route(x, y, out), _core.explain_route(out, y, out)
        told = [(each["threads"], each["stores"]) for each in facts]
        assert told == [schedule(nbytes, in_place) for in_place in (False, False, True)]
        kept.append(vecadd.add(x, y))
        sums = [kept[-1], vecadd.add(x, y), vecadd.add(x, y, out)]
        assert all(np.array_equal(each, want[:n]) for each in sums)
        out[:] = x
        assert np.array_equal(vecadd.add(out, y, out), want[:n])
        assert room[0] == room[-1] == 7
    assert all(np.array_equal(each, want[: each.size]) for each in kept)


@pytest.mark.parametrize(("other", "least"), [("float32", 256 * KIB), ("int16", MIB)])
def test_rows_around_the_size_from_which_they_are_ours(other: str, least: int) -> None:
    """A row is added to each row of a matrix; of two dtypes one is converted on the way."""
    row = numbers(np.dtype(other), 64)
    for rows in (least // 4 // 64 + near for near in (-1, 0, 1)):
        a = numbers(np.dtype("float32"), 64 * rows).reshape(rows, 64)
        assert _core.explain_route(a, row)["route"] == ("numpy" if a.nbytes < least else "host")
        for x, y in ((a, row), (row, a), (a, row)):
            assert np.array_equal(vecadd.add(x, y), x + y)

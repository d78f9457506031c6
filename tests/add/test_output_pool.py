"""Large sums on the host are in memory that is kept for the next one."""

import tracemalloc

import numpy as np
import pytest

import vecadd
from vecadd import _machine

MIB = 1 << 20
LARGE = 4 * MIB  # bytes of a sum that the pool makes


def pair(nbytes=LARGE, dtype=np.float32):
    n = nbytes // np.dtype(dtype).itemsize
    return np.arange(n, dtype=dtype), np.full(n, 0.5, dtype)


@pytest.fixture(autouse=True)
def empty_pool():
    vecadd.release()
    yield
    vecadd.release()


def kept():
    stats = vecadd.memory_stats()
    return stats["output_kept_blocks"], stats["output_kept_bytes"]


@pytest.mark.parametrize("nbytes", [MIB, LARGE], ids=["of the C library's memory", "of a mapping"])
def test_dropped_sum_gives_its_memory_to_the_next(nbytes):
    a, b = pair(nbytes)
    first = vecadd.add(a, b)
    address = first.ctypes.data
    del first
    assert kept() == (1, nbytes)
    second = vecadd.add(b, a)
    assert second.ctypes.data == address
    assert (second.flags.owndata, second.base, kept()) == (True, None, (0, 0))
    np.testing.assert_array_equal(second, a + b)


@pytest.mark.parametrize("start", [MIB, LARGE])
@pytest.mark.parametrize("nbytes", [MIB, 3 * MIB, 64 * MIB])
def test_sum_can_be_resized_like_any_array(start, nbytes):
    a, b = pair(start)
    x = vecadd.add(a, b)
    n = nbytes // 4
    x.resize(n, refcheck=False)
    want = np.zeros(n, np.float32)
    want[: min(n, a.size)] = (a + b)[:n]
    np.testing.assert_array_equal(x, want)


def test_numpy_sees_the_memory_in_tracemalloc():
    a, b = pair(64 * MIB)
    tracemalloc.start()
    try:
        x = vecadd.add(a, b)
        assert tracemalloc.get_traced_memory()[0] >= x.nbytes
        del x
        assert tracemalloc.get_traced_memory()[0] < MIB
    finally:
        tracemalloc.stop()


def test_release_gives_back_what_is_kept_and_says_how_much():
    a, b = pair()
    del_me = vecadd.add(a, b)
    del del_me
    alive = vecadd.add(b, b)
    other = vecadd.add(a, a)
    del other
    assert vecadd.release() == LARGE
    assert kept() == (0, 0)
    np.testing.assert_array_equal(alive, b + b)


EIGHTH = _machine.memory_total() // 8


@pytest.mark.parametrize(
    ("wish", "bound"),
    [(None, EIGHTH), ("123", 123), ("0", 0), ("18446744073709551615", 2**64 - 2)]  # 2**64 - 1: it is not known yet
    + [(nonsense, EIGHTH) for nonsense in ("", "5 ", "-1", "1e9", "all", "99999999999999999999999")],
)
def test_the_bound_is_what_is_wished_or_an_eighth_of_the_memory(child, wish, bound):
    code = "import vecadd; print(vecadd.memory_stats()['output_bound'])"
    assert child(code, VECADD_POOL_BYTES=wish).stdout == f"{bound}\n"


def test_memory_that_is_not_there_is_a_memory_error_and_the_next_call_works(child):
    code = """
import resource
import numpy as np, vecadd
a = np.ones(64 << 20, np.float32)
small = np.ones(1 << 20, np.float32)
vecadd.add(small, small)
status = open("/proc/self/statm").read()
used = int(status.split()[0]) * 4096
resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20), -1))
try:
    vecadd.add(a, a)
except MemoryError:
    print(vecadd.memory_stats()["output_kept_bytes"], (vecadd.add(small, small) == 2).all())
"""
    assert child(code, VECADD_NUM_THREADS="1").stdout.strip() == "0 True"


# NumPy's array of 512 MiB is where the address space has 640 MiB beside what the process has.
LIMITED = """
import resource
from pathlib import Path
import numpy as np, vecadd
a = np.ones(80 << 20, np.float32)
b = np.ones(1 << 20, np.float32)
def limit():
    used = int(Path("/proc/self/statm").read_text().split()[{field}]) * 4096
    resource.setrlimit(resource.{name}, (used + (640 << 20), -1))
def drop_sum():
    return bool((vecadd.add(a, a)[::4096] == 2).all() and (vecadd.add(b, b) == 2).all())
{first}
{then}
print(np.empty(512 << 20, np.uint8).size, vecadd.memory_stats()["output_kept_bytes"])
"""


@pytest.mark.parametrize(("name", "field"), [("RLIMIT_AS", 0), ("RLIMIT_DATA", 5)])
@pytest.mark.parametrize(
    "order", [("limit()", "drop_sum()"), ("drop_sum()", "limit(); drop_sum()")], ids=["before", "after"]
)
def test_nothing_is_kept_where_the_address_space_has_a_limit(child, name, field, order):
    """The pool does not see that NumPy finds no memory, and would not give its own."""
    code = LIMITED.format(name=name, field=field, first=order[0], then=order[1])
    assert child(code, VECADD_NUM_THREADS="1", VECADD_POOL_BYTES=None).stdout == f"{512 * MIB} 0\n"


def test_what_is_to_be_kept_under_a_limit_may_be_said(child):
    code = LIMITED.format(name="RLIMIT_AS", field=0, first="limit()", then="drop_sum()").replace("512", "1")
    kept = child(code, VECADD_NUM_THREADS="1", VECADD_POOL_BYTES=str(LARGE)).stdout
    assert kept == f"{MIB} {LARGE}\n"


@pytest.mark.slow
def test_what_no_sum_uses_goes_back_without_another_call(child):
    """A worker that has nothing else to do looks every five seconds; the sum that is alive stays."""
    code = """
import time
import numpy as np, vecadd
a = np.ones(16 << 20, np.float32)
alive, dropped = vecadd.add(a, a), vecadd.add(a, a)
del dropped
kept = [vecadd.memory_stats()["output_kept_blocks"]]
end = time.monotonic() + 200
while kept[-1] and time.monotonic() < end:
    time.sleep(0.1)
    kept.append(vecadd.memory_stats()["output_kept_blocks"])
print(kept[0], kept[-1], vecadd.memory_stats()["output_used_blocks"], bool((alive == 2).all()))
"""
    assert child(code, VECADD_NUM_THREADS="2").stdout == "1 0 1 True\n"

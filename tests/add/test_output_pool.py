"""Large sums on the host are in memory that is kept for the next one."""

import os
import threading
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from forks import fork

import vecadd

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


def test_dropped_sum_gives_its_memory_to_the_next():
    a, b = pair()
    first = vecadd.add(a, b)
    address = first.ctypes.data
    del first
    assert kept() == (1, LARGE)
    second = vecadd.add(b, a)
    assert second.ctypes.data == address
    assert kept() == (0, 0)
    np.testing.assert_array_equal(second, a + b)


def test_sums_that_are_alive_do_not_overlap():
    a, b = pair()
    sums = [vecadd.add(a, b) for _ in range(4)]
    assert len({x.ctypes.data for x in sums}) == 4
    assert vecadd.memory_stats()["output_used_blocks"] >= 4
    for x in sums:
        x += 1
    np.testing.assert_array_equal(vecadd.add(a, b), a + b)


def test_small_sums_are_numpys_business():  # and those up to 1 MiB where the program drops them: test_kept_sums.py
    before = vecadd.memory_stats()
    x = vecadd.add(*pair(15 << 10))
    assert vecadd.memory_stats() == before
    del x


def test_sum_owns_its_data_and_begins_on_a_huge_page():
    x = vecadd.add(*pair())
    assert x.flags.owndata
    assert x.base is None
    assert x.ctypes.data % (2 * MIB) == 0


def test_smaller_sums_of_the_c_librarys_memory_come_back_too():
    a, b = pair(MIB)
    x = vecadd.add(a, b)
    where = x.ctypes.data
    del x
    assert kept() == (1, MIB)
    x = vecadd.add(a, b)
    assert x.ctypes.data == where
    np.testing.assert_array_equal(x, a + b)
    x.resize(2 * a.size, refcheck=False)
    assert not x[a.size :].any()


@pytest.mark.parametrize("nbytes", [MIB, 3 * MIB, 64 * MIB])
def test_sum_can_be_resized_like_any_array(nbytes):
    a, b = pair(LARGE)
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


def test_bound_is_an_eighth_of_the_memory(child):
    out = child(
        "from vecadd import _machine, memory_stats; print(memory_stats()['output_bound'], _machine.memory_total())",
        VECADD_POOL_BYTES=None,
    )
    bound, total = map(int, out.stdout.split())
    assert bound == total // 8


# The oldest goes first: what was dropped last is likeliest to be in a cache.
CODE = """
import numpy as np, vecadd
a = np.ones(1 << 20, np.float32)
sums = [vecadd.add(a, a) for _ in range(3)]
newest = sums[-1].ctypes.data
while sums:
    del sums[0]
stats = vecadd.memory_stats()
again = vecadd.add(a, a)
print(stats["output_kept_bytes"], again.ctypes.data == newest, bool((again == 2).all()))
"""


@pytest.mark.parametrize(
    ("bound", "said"),
    [("0", "0 False True"), (str(LARGE), f"{LARGE} True True"), (str(9 * MIB), f"{2 * LARGE} True True")],
)
def test_no_more_is_kept_than_the_bound(child, bound, said):
    assert child(CODE, VECADD_POOL_BYTES=bound).stdout.strip() == said


@pytest.mark.parametrize("nonsense", ["", "-1", "1e9", "all", "99999999999999999999999"])
def test_bound_that_is_no_number_is_ignored(child, nonsense):
    code = "import vecadd; print(vecadd.memory_stats()['output_bound'])"
    usual = child(code, VECADD_POOL_BYTES=None).stdout
    assert child(code, VECADD_POOL_BYTES=nonsense).stdout == usual


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


def test_forked_child_adds_with_the_pool_it_inherits():
    a, b = pair()
    dropped = vecadd.add(a, b)
    del dropped
    child = fork()
    if child == 0:
        os._exit(0 if (vecadd.add(a, b) == a + b).all() and kept() == (1, LARGE) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert kept() == (1, LARGE)


def test_threads_share_it():
    a, b = pair()
    want, wrong = a + b, []

    def work():
        for _ in range(30):
            if not np.array_equal(vecadd.add(a, b), want):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert 1 <= kept()[0] <= 4


def test_resident_memory_does_not_grow():
    a, b = pair(16 * MIB)

    def resident():
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    x = vecadd.add(a, b)
    before = resident()
    for _ in range(200):
        x = vecadd.add(a, b)
    del x
    assert resident() - before < 40 * MIB


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

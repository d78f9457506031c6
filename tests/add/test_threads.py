"""The host's threads: how many, from several callers at once, across forks, and at the end of the process."""

import os
import signal
import sys
import threading
import time
from functools import partial

import numpy as np
import pytest
from arrays import assert_same_values
from builds import UNDER_ASAN
from threads import run_together

import vecadd

N = 2**20
SUMS = """
import numpy as np, vecadd
for n in (0, 1, 1000, 2**18 + 1, 2**22 + 3):
    a = np.arange(n, dtype=np.int32)
    assert (vecadd.add(a, a) == a * 2).all()
    assert (vecadd.add(a, a, np.empty_like(a)) == a * 2).all()
"""

FORKS = """
import os, sys, warnings
import numpy as np, vecadd
warnings.simplefilter("ignore", DeprecationWarning)  # Python's own, where another thread adds meanwhile
a = np.arange(2**22, dtype=np.float32)
def check():
    assert (vecadd.add(a, a) == a * 2).all()
    assert (vecadd.add(a[:100], a[:100]) == a[:100] * 2).all()
"""


@pytest.mark.parametrize("threads", ["1", "2", "3", "7", "64"])
def test_number_of_threads_may_be_set(threads, child):
    code = f"{SUMS}\nfrom vecadd import _core; print(_core.host_facts()['threads'])"
    assert child(code, VECADD_NUM_THREADS=threads).stdout.strip() == threads


def test_one_thread_is_no_thread_beside_the_callers(child):
    code = f"{SUMS}\nimport os; print(len(os.listdir('/proc/self/task')))"
    assert child(code, VECADD_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1").stdout.strip() == "1"


@pytest.mark.parametrize("threads", ["0", "-3", "many", "1e3", "257", "99999999999999999999"])
def test_nonsense_for_the_number_of_threads_is_told_once_and_does_not_stop_sums(threads, child):
    code = (
        "import sys, warnings\n"
        "with warnings.catch_warnings(record=True) as told:\n"
        "    warnings.simplefilter('always')\n"
        f"    {SUMS.replace(chr(10), chr(10) + '    ')}\n"
        "[only] = told\n"
        "print(only.category.__name__, only.message)\n"
        "print(vecadd.get_num_threads())\n"
    )
    words = (
        f'RuntimeWarning VECADD_NUM_THREADS is "{threads}": it takes a number of threads from 1 to 256; additions use '
    )
    warned, used = child(code, VECADD_NUM_THREADS=threads).stdout.splitlines()
    assert warned.startswith(words)
    assert used == child("import vecadd; print(vecadd.get_num_threads())", VECADD_NUM_THREADS=None).stdout.strip()


def test_nonsense_for_the_wake_size_is_told_and_ignored(child):
    code = (
        "import warnings\n"
        "with warnings.catch_warnings(record=True) as told:\n"
        "    warnings.simplefilter('always')\n"
        "    from vecadd import _core\n"
        "print(*told[0].message.args, _core.host_facts()['thresholds']['wake'])\n"
    )
    words = 'VECADD_WAKE_BYTES is "1e6": it takes a number of bytes; threads are woken from 524288 on 524288\n'
    assert child(code, VECADD_WAKE_BYTES="1e6", VECADD_NUM_THREADS="4").stdout == words
    code = "from vecadd import _core; print(_core.host_facts()['thresholds']['wake'])"
    for most in ("65536", str(2**64 - 1)):
        assert child(code, VECADD_WAKE_BYTES=most).stdout == f"{most}\n"


def test_256_threads_are_the_most(child):
    code = "import vecadd; print(vecadd.get_num_threads(), vecadd.set_num_threads(256), vecadd.get_num_threads())"
    assert child(code, VECADD_NUM_THREADS="256").stdout == "256 256 256\n"


def test_an_empty_number_of_threads_is_none(child):
    child(SUMS, VECADD_NUM_THREADS="")


SETS = """
import os, numpy as np, vecadd
large = np.zeros(2**23, np.float32)
def used():
    return vecadd.explain(large, large, large).details["threads"]
"""


def test_set_number_of_threads_applies_from_the_next_call_on(child):
    code = (
        f"{SETS}\n"
        "vecadd.set_num_threads(1)\n"
        "used()\n"  # asks the driver, which may start a thread
        "others = len(os.listdir('/proc/self/task'))\n"
        "for n in (1, 3, 2, np.int8(4)):\n"
        "    before = vecadd.get_num_threads()\n"
        "    assert vecadd.set_num_threads(n) == before\n"
        "    assert vecadd.get_num_threads() == used() == n\n"
        "    assert (vecadd.add(large, large) == 0).all()\n"
        "print(len(os.listdir('/proc/self/task')) - others)\n"
    )
    assert child(code).stdout == "3\n"


def test_set_number_of_threads_applies_in_every_thread_and_in_forked_children(child):
    code = (
        f"{SETS}\n"
        "import threading, warnings\n"
        "warnings.simplefilter('ignore', DeprecationWarning)\n"
        "thread = threading.Thread(target=vecadd.set_num_threads, args=(3,)); thread.start(); thread.join()\n"
        "vecadd.add(large, large)\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    vecadd.add(large, large)\n"
        "    os._exit(10 * vecadd.get_num_threads() + used())\n"
        "print(used(), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
    )
    assert child(code, VECADD_NUM_THREADS="2").stdout == "3 33\n"


@pytest.mark.parametrize(
    ("number", "error", "words"),
    [
        (0, ValueError, "takes 1 to 256 threads, not 0"),
        (-1, ValueError, "takes 1 to 256 threads, not -1"),
        (257, ValueError, "takes 1 to 256 threads, not 257"),
        (2**80, ValueError, f"not {2**80}"),
        (True, TypeError, "takes an int from 1 to 256, not True"),
        (2.0, TypeError, "takes an int from 1 to 256, not 2.0"),
        ("2", TypeError, "not '2'"),
        (None, TypeError, "not None"),
    ],
    ids=str,
)
def test_what_is_no_number_of_threads_is_refused_and_changes_nothing(number, error, words):
    before = vecadd.get_num_threads()
    with pytest.raises(error, match=words):
        vecadd.set_num_threads(number)
    assert vecadd.get_num_threads() == before


def test_a_plan_keeps_the_threads_that_it_was_made_with(child):
    code = (
        f"{SETS}\n"
        "vecadd.set_num_threads(1)\n"
        "plan = vecadd.plan(large, large, np.zeros_like(large))\n"
        "vecadd.set_num_threads(3)\n"
        "plan()\n"
        "print(len(os.listdir('/proc/self/task')))\n"
    )
    assert child(code, OPENBLAS_NUM_THREADS="1").stdout == "1\n"


def test_threads_are_no_more_than_the_processors_that_the_process_may_use(child):
    code = (
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
        f"{SUMS}\nfrom vecadd import _core; assert _core.host_facts()['threads'] == 1"
    )
    child(code, VECADD_NUM_THREADS=None)


MOVES = """
import os
from pathlib import Path
import numpy as np, vecadd
large = np.zeros(2**23, np.float32)
everywhere = os.sched_getaffinity(0)
last = {max(everywhere)}
def workers():
    names = {int(task.name): (task / "comm").read_text() for task in Path("/proc/self/task").iterdir()}
    return [os.sched_getaffinity(id) for id, name in names.items() if name == "vecadd\\n"]
"""


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two processors")
def test_threads_run_where_their_caller_may_run_now(child):
    child(
        f"{MOVES}\n"
        "count = vecadd.get_num_threads()\n"
        "vecadd.add(large, large)\n"
        "assert len(workers()) == count - 1\n"
        "os.sched_setaffinity(0, last)\n"
        "for _ in range(65): vecadd.add(large, large)\n"  # a worker may be awake yet: then the 64th looks
        "assert workers() == [last] * (count - 1)\n"
        "assert vecadd.get_num_threads() == 1\n"
        "os.sched_setaffinity(0, everywhere)\n"
        "assert vecadd.get_num_threads() == count\n"
        "vecadd.add(large, large)\n"
        "vecadd.set_num_threads(4)\n"
        "vecadd.add(large, large)\n"
        "assert everywhere in workers()\n",  # of two processors, a worker may be kept off its caller's
        VECADD_NUM_THREADS=None,
    )


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two processors")
def test_a_process_that_gets_a_second_processor_uses_it(child):
    child(
        f"{MOVES}\n"
        "os.sched_setaffinity(0, last)\n"
        "vecadd.add(large, large)\n"
        "assert (vecadd.get_num_threads(), workers()) == (1, [])\n"
        "os.sched_setaffinity(0, everywhere)\n"
        "vecadd.add(large, large)\n"
        "assert len(workers()) == vecadd.get_num_threads() - 1 > 0\n",
        VECADD_NUM_THREADS=None,
    )


def test_import_and_small_sums_start_no_thread(child):
    code = (
        "import os, numpy as np, vecadd\n"
        "a = np.ones(100); vecadd.add(a, a)\n"
        "assert len(os.listdir('/proc/self/task')) == 1\n"
    )
    child(code, OPENBLAS_NUM_THREADS="1")


@pytest.mark.parametrize("n", [10, 1000, N])
def test_many_callers_at_once(n):
    def work(i):
        a = np.full(n, i, np.int32)
        for _ in range(20):
            assert_same_values(vecadd.add(a, a), np.full(n, 2 * i, np.int32))

    run_together(*(partial(work, i) for i in range(8)))


def test_callers_of_one_array_at_once():
    a, want = np.arange(N, dtype=np.float32), 2 * np.arange(N, dtype=np.float32)
    run_together(*[lambda: [assert_same_values(vecadd.add(a, a), want) for _ in range(10)]] * 4)


LARGE = {
    "add": vecadd.add,
    "add_many": lambda a, b, out: vecadd.add_many([a], [b], [out]),
    "rows": lambda a, b, out: vecadd.add(a.reshape(8192, -1), b[:8192], out.reshape(8192, -1)),
}


@pytest.mark.parametrize("add", LARGE.values(), ids=LARGE)
def test_other_python_threads_go_on_during_a_large_sum(add):
    """With a switch interval of a minute, the sleeper wakes up in mid-sum only if the sum gave the GIL away."""
    a, out, sums, ticks = np.ones(2**26, np.float32), np.empty(2**26, np.float32), 40, 0
    adder = threading.Thread(target=lambda: [add(a, a, out) for _ in range(sums)])
    interval = sys.getswitchinterval()
    sys.setswitchinterval(60)
    try:
        adder.start()
        while adder.is_alive():
            time.sleep(0.0001)
            ticks += 1
    finally:
        sys.setswitchinterval(interval)
    assert ticks > 2 * sums


def test_threads_of_the_pool_take_no_signals(child):
    """A signal that a worker took would not wake the main thread up. Those of its own faults no other thread takes."""
    look = "from signals import FAULTS, taken_by_threads; print(*(x == FAULTS for x in taken_by_threads('vecadd')))"
    result = child(f"{SUMS}\n{look}", OPENBLAS_NUM_THREADS="1", VECADD_NUM_THREADS="4")
    assert result.stdout.split() == ["True"] * 3


@pytest.mark.skipif(UNDER_ASAN, reason="ASan reports the fault itself")
def test_a_fault_in_a_thread_of_the_pool_reaches_its_handler(tmp_path, child):
    """Of two threads the second begins with the half that is gone, while the caller adds the half that is there. On a
    busy machine the caller may get there first: one of a few runs is enough."""
    code = (
        "import faulthandler, os, numpy as np, vecadd\n"
        "faulthandler.enable()\n"
        f"name, n = {str(tmp_path / 'mapped')!r}, 2**25\n"
        "a = np.asarray(np.memmap(name, np.float32, 'w+', shape=n))\n"
        "sum = np.zeros(n, np.float32)\n"
        "vecadd.add(a, sum, sum)\n"
        "os.truncate(name, a.nbytes // 2)\n"
        "vecadd.add(a, sum, sum)\n"
    )
    for _ in range(3):
        result = child(code, check=False, VECADD_NUM_THREADS="2")
        assert result.returncode == -signal.SIGBUS
        assert result.stderr.startswith(
            "Fatal Python error: "
        )  # both threads may fault, and the second ends the process


def test_a_fork_finds_no_idle_thread(child):
    """Python 3.12 and later warn of others, here an error; the parent counts them after the fork, as this does."""
    child(
        "import os, numpy as np, vecadd\n"
        "from pathlib import Path\n"
        "a = np.ones(2**23, np.float32)\n"
        "def threads(): return int(Path('/proc/self/stat').read_text().rpartition(')')[2].split()[17])\n"
        "for _ in range(20):\n"
        "    vecadd.add(a, a)\n"
        "    assert threads() == 4\n"
        "    pid = os.fork()\n"
        "    if pid == 0: os._exit(threads())\n"
        "    assert threads() == 1\n"
        "    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1\n",
        VECADD_NUM_THREADS="4",
    )


def test_a_forked_child_counts_its_processors_again(child):
    """So that a worker of a pool that is given one processor does not begin with threads for all."""
    child(
        f"{FORKS}\n"
        "all, before = os.sched_getaffinity(0), vecadd.get_num_threads()\n"
        "def counted(processors, variable):\n"
        "    pid = os.fork()\n"
        "    if pid == 0:\n"
        "        os.sched_setaffinity(0, processors)\n"
        "        os.environ['VECADD_NUM_THREADS'] = variable\n"
        "        count = vecadd.get_num_threads()\n"
        "        check()\n"
        "        os._exit(count)\n"
        "    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])\n"
        "assert counted({min(all)}, '') == 1\n"
        "assert counted(all, '5') == 5\n"
        "assert vecadd.get_num_threads() == before\n",
        VECADD_NUM_THREADS=None,
    )


@pytest.mark.parametrize(
    "before",
    [
        "check()",
        pytest.param("", marks=pytest.mark.skipif(UNDER_ASAN, reason="ASan's allocator stays locked in the child")),
    ],
    ids=["pool", "no pool"],
)
def test_fork_while_another_thread_adds(child, before):
    """Without a pool, the first fork may find the other thread in malloc or pthread_create."""
    child(
        f"{FORKS}\n"
        f"{before}\n"
        "import threading\n"
        "stop = threading.Event()\n"
        "def busy():\n"
        "    while not stop.is_set(): vecadd.add(a, a)\n"
        "thread = threading.Thread(target=busy); thread.start()\n"
        "for _ in range(10):\n"
        "    pid = os.fork()\n"
        "    if pid == 0:\n"
        "        check(); os._exit(0)\n"
        "    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0\n"
        "stop.set(); thread.join(); check()\n",
        VECADD_NUM_THREADS="3",
    )


def test_process_ends_while_the_pool_is_idle(child):
    assert child(SUMS, VECADD_NUM_THREADS="4").stderr == ""


def test_process_ends_while_a_daemon_thread_adds(child):
    result = child(
        "import threading, time, numpy as np, vecadd\n"
        "a = np.ones(2**22)\n"
        "def busy():\n"
        "    while True: vecadd.add(a, a)\n"
        "for _ in range(3): threading.Thread(target=busy, daemon=True).start()\n"
        "time.sleep(0.2)\n",
        VECADD_NUM_THREADS="4",
    )
    assert result.stderr == ""


def test_sums_at_exit_are_right(child):
    child(
        "import atexit, os, numpy as np, vecadd\n"
        "a = np.arange(2.0**21)\n"
        "def late():\n"
        "    if not (vecadd.add(a, a) == a * 2).all(): os._exit(3)\n"
        "atexit.register(late)\n"
        "late()\n",
        VECADD_NUM_THREADS="4",
    )

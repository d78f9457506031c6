"""vecadd.install: NumPy's own addition by our loops gives NumPy's own bits, flags and errors; other loops keep theirs.

Every sum here is made by NumPy, once with our loops and once without. `least=1` gives us every run that we may add.
"""

import os
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import hypothesis
import numpy as np
import pytest
from arrays import NUMPY_DTYPES, bits, values
from builds import UNDER_ASAN
from hypothesis import strategies as st
from numpy.typing import NDArray
from other_loops import OtherLoop, place_of_loop

import vecadd
from vecadd import _core

MIB = 1 << 20
C_INTEGERS = [np.dtype(code) for code in "lLqQ"]  # one of these pairs is not of NUMPY_DTYPES


@pytest.fixture(autouse=True)
def nothing_is_left_installed() -> Iterator[None]:
    before = vecadd.set_num_threads(4)
    yield
    vecadd.set_num_threads(before)
    assert not _core.loop_counts()["installed"]


def both_ways(work: Callable[[], Any]) -> tuple[Any, Any, int]:
    """What NumPy gives, what it gives with our loops, and the elements that ours added. `work` makes its own arrays."""

    def seen() -> Any:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            result = np.asarray(work())
            result = result.astype(result.dtype.newbyteorder("="))
        return result.dtype, result.shape, bits(result).tobytes(), [str(warning.message) for warning in told]

    alone = seen()
    with vecadd.install(least=1) as installation:
        ours = seen()
    return alone, ours, installation.elements


FORMS: dict[str, Callable[[NDArray[Any], NDArray[Any]], Any]] = {
    "a + b": lambda a, b: a + b,
    "a += b": lambda a, b: a.__iadd__(b),
    "out=": lambda a, b: np.add(a, b, out=np.empty_like(a)),
    "out=b": lambda a, b: np.add(a, b, out=b),
    "a + a": lambda a, b: a + a,
    "a += a": lambda a, b: a.__iadd__(a),
    "matrices": lambda a, b: a[: a.size // 7 * 7].reshape(7, -1) + b[: a.size // 7 * 7].reshape(7, -1),
    "columns": lambda a, b: a[: a.size // 7 * 7].reshape(7, -1).T + b[: a.size // 7 * 7].reshape(7, -1).T,
    "axis 0": lambda a, b: np.add.reduce(a[: a.size // 7 * 7].reshape(7, -1), axis=0),
}
KEPT: dict[str, Callable[[NDArray[Any], NDArray[Any]], Any]] = {
    "cumsum": lambda a, b: np.cumsum(a, dtype=a.dtype),
    "cumsum in place": lambda a, b: np.add.accumulate(a, out=a),
    "sum": lambda a, b: np.add.reduce(a, dtype=a.dtype),
    "every other": lambda a, b: a[::2] + b[::2],
    "backwards": lambda a, b: a[::-1] + b,
    "into every other": lambda a, b: np.add(a[::2], b[::2], out=a[::2]),
    "from a run into every other": lambda a, b: np.add(a[: a.size // 2], b[: a.size // 2], out=np.zeros_like(a)[1::2]),
    "reduceat": lambda a, b: np.add.reduceat(a, np.arange(0, a.size, 5)),
}
OTHERS: dict[str, Callable[[NDArray[Any], NDArray[Any]], Any]] = {
    "accumulated rows": lambda a, b: np.add.accumulate(a[: a.size // 7 * 7].reshape(7, -1), axis=0),
    "where": lambda a, b: np.add(a, b, out=b, where=np.arange(a.size) % 700 > 3),
    "at": lambda a, b: (np.add.at(a, np.arange(a.size) % 11, b), a)[1],
    "casts": lambda a, b: a + b.astype(np.complex128),
    "a row": lambda a, b: a[: a.size // 7 * 7].reshape(7, -1) + b[: a.size // 7],
    "other byte order": lambda a, b: a.astype(a.dtype.newbyteorder()) + b,
    "misaligned": lambda a, b: np.frombuffer(b"x" + a.tobytes(), a.dtype, a.size, 1) + b,
}


@pytest.mark.parametrize("dtype", [*NUMPY_DTYPES, *C_INTEGERS], ids=lambda dtype: dtype.char)
@pytest.mark.parametrize("n", [7, 1000, 70_001])
@pytest.mark.parametrize("form", FORMS)
def test_runs_are_added_by_our_loops_to_the_bit(form: str, n: int, dtype: np.dtype[Any]) -> None:
    alone, ours, elements = both_ways(lambda: FORMS[form](values(dtype, n, 1), values(dtype, n, 2)))
    assert ours == alone
    assert elements > 0 or n < 14


@pytest.mark.parametrize("dtype", NUMPY_DTYPES, ids=str)
@pytest.mark.parametrize("form", KEPT)
def test_what_depends_on_the_order_or_leaves_gaps_is_numpys(form: str, dtype: np.dtype[Any]) -> None:
    alone, ours, elements = both_ways(lambda: KEPT[form](values(dtype, 100_001, 1), values(dtype, 100_001, 2)))
    assert ours == alone
    assert elements == 0


@pytest.mark.parametrize("dtype", NUMPY_DTYPES, ids=str)
@pytest.mark.parametrize("form", OTHERS)
def test_masks_casts_and_rows_keep_their_results(form: str, dtype: np.dtype[Any]) -> None:
    alone, ours, _ = both_ways(lambda: OTHERS[form](values(dtype, 100_001, 1), values(dtype, 100_001, 2)))
    assert ours == alone


@pytest.mark.parametrize("dtype", NUMPY_DTYPES, ids=str)
@pytest.mark.parametrize("n", [MIB, 3_000_001])
@pytest.mark.parametrize("swapped", [False, True])
def test_one_element_is_added_to_a_large_array_by_our_loops(swapped: bool, n: int, dtype: np.dtype[Any]) -> None:
    def work() -> Any:
        a, one = values(dtype, n, 1), values(dtype, 1, 2)
        return one + a if swapped else a + one

    alone, ours, elements = both_ways(work)
    assert ours == alone
    assert elements == n


@pytest.mark.parametrize("place", [0, 5, 999_999])
def test_one_element_of_out_itself_is_read_before_it_is_written(place: int) -> None:
    def work() -> Any:
        a = np.arange(1e6)
        return np.add(a, a[place : place + 1], out=a)

    alone, ours, _ = both_ways(work)
    assert ours == alone


@hypothesis.given(
    dtype=st.sampled_from(NUMPY_DTYPES),
    n=st.integers(0, 3000),
    starts=st.tuples(*[st.integers(0, 3000)] * 3),
    steps=st.tuples(*[st.sampled_from([1, 1, 1, 1, 2, -1])] * 3),
)
def test_operands_that_overlap_in_any_way(
    dtype: np.dtype[Any], n: int, starts: tuple[int, int, int], steps: tuple[int, int, int]
) -> None:
    def work() -> Any:
        memory = values(dtype, 12_000, n)
        a, b, out = (
            memory[start + 3000 : start + 3000 + n * step : step]
            if step > 0
            else memory[start + 3000 : start + 3000 - n : step]
            for start, step in zip(starts, steps, strict=True)
        )
        np.add(a, b, out=out)
        return memory

    alone, ours, _ = both_ways(work)
    assert ours == alone


@pytest.mark.parametrize("shift", [-9, -1, 1, 2, 9, 5000])
@pytest.mark.parametrize("of", ["a", "b", "both"])
def test_large_shifted_overlaps_in_both_directions(of: str, shift: int) -> None:
    n = MIB

    def work() -> Any:
        memory = np.arange(n + 20_000, dtype=np.float32)
        other = np.arange(n, dtype=np.float32)
        moved, out = memory[10_000 + shift : 10_000 + shift + n], memory[10_000 : 10_000 + n]
        np.add(moved if of != "b" else other, moved if of != "a" else other, out=out)
        return memory

    alone, ours, _ = both_ways(work)
    assert ours == alone


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64"])
@pytest.mark.parametrize("n", [100, MIB])
def test_floating_point_errors_are_numpys(dtype: str, n: int) -> None:
    largest = np.full(n, np.finfo(dtype).max, dtype)
    infinite = np.full(n, np.inf, dtype)
    with vecadd.install(least=1), np.errstate(all="raise"):
        with pytest.raises(FloatingPointError, match="overflow encountered in add"):
            largest + largest
        with pytest.raises(FloatingPointError, match="invalid value encountered in add"):
            infinite + -infinite
        assert (largest + 0).tobytes() == largest.tobytes()


def test_by_default_short_runs_stay_numpys() -> None:
    small, large = np.ones(1000), np.ones(4 * MIB)
    with vecadd.install() as installation:
        small + small
        assert (installation.calls, installation.elements) == (0, 0)
        large + large
        assert (installation.calls, installation.elements) == (1, large.size)
    large + large
    assert installation.elements == large.size


@pytest.mark.parametrize("form", ["a + a", "a + 1", "np.add(a, a, out=a)"])
def test_where_no_worker_is_awake_the_loop_below_adds_what_one_thread_of_ours_would(form: str, child: Any) -> None:
    """In a new process no worker has started, and none is started for a quarter of a MiB."""
    code = (
        "import numpy as np, vecadd, warnings\n"
        "vecadd.set_num_threads(4); a = np.full(1 << 16, np.finfo('f4').max, 'f4'); a[:-1] = 1\n"
        "with vecadd.install() as installed, warnings.catch_warnings(record=True) as told:\n"
        "    warnings.simplefilter('always')\n"
        f"    total = {form}\n"
        "print(installed.calls, total[0], total[-1], [str(each.message) for each in told])\n"
    )
    last = "3.4028235e+38 []" if form == "a + 1" else "inf ['overflow encountered in add']"
    assert child(code).stdout == f"0 2.0 {last}\n"


def test_where_all_threads_were_asked_for_before_they_are_no_longer(child: Any) -> None:
    """As above: no worker has started, and none is started for a quarter of a MiB."""
    code = (
        "import numpy as np, vecadd\n"
        "vecadd.set_num_threads(4); a = np.ones(1 << 16, 'f4')\n"
        "vecadd.install(least=1)\n"
        "installed = vecadd.install(); a + a; print(installed.calls)\n"
        "installed = vecadd.install(least=1); a + a; print(installed.calls)\n"
    )
    assert child(code).stdout.split() == ["0", "1"]


def test_installing_twice_is_installing_once() -> None:
    with vecadd.install() as outer:
        with vecadd.install():
            pass
        assert repr(outer).startswith("<vecadd in numpy.add: installed, ")
    assert repr(outer).startswith("<vecadd in numpy.add: not installed, ")
    vecadd.install()
    vecadd.uninstall()
    vecadd.uninstall()


def test_least_takes_a_positive_number_one_of_numpys_too() -> None:
    for least in (0, -1, 2**63, 2**64):
        with pytest.raises(ValueError, match=f"least is {least}: it takes bytes, 1 or more"):
            vecadd.install(least=least)
    with pytest.raises(TypeError):
        vecadd.install(least="1")  # type: ignore[arg-type]
    with vecadd.install(least=np.int64(8)) as installation:  # type: ignore[arg-type]
        assert installation.calls == 0


@pytest.mark.parametrize(("least", "elements"), [(1, 1), (8, 1), (9, 2), (16, 2), (17, 3)])
def test_a_run_of_fewer_bytes_than_the_least_is_left_to_numpy(least: int, elements: int) -> None:
    x = np.ones(elements)
    with vecadd.install(least=least) as installation:
        x[1:] + x[1:]
        assert installation.calls == 0
        x + x
        assert installation.calls == 1


def test_threads_add_at_once_while_it_comes_and_goes() -> None:
    wrong: list[int] = []
    done = threading.Event()

    def add(seed: int) -> None:
        a, b = values(np.dtype("int32"), 50_000, seed), values(np.dtype("int32"), 50_000, seed + 1)
        want = (a.view(np.uint32).astype(np.uint64) + b.view(np.uint32)).astype(np.uint32).tobytes()
        while not done.is_set():
            if (a + b).tobytes() != want:
                wrong.append(seed)

    threads = [threading.Thread(target=add, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(200):
        with vecadd.install(least=1):
            np.arange(10_000) + 1
    done.set()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_forked_child_adds_by_our_loops_too(child: Any) -> None:
    code = (
        "import os, numpy as np, vecadd, warnings; warnings.simplefilter('ignore')\n"
        "vecadd.set_num_threads(3); a = np.ones(4_000_000)\n"
        "with vecadd.install() as installed:\n"
        "    a + a\n"
        "    pid = os.fork()\n"
        "    if pid == 0:\n"
        "        right = ((a + a) == 2).all() and installed.calls == 2\n"
        "        os._exit(0 if right else 1)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
    )
    assert child(code).stdout == "0\n"


@pytest.fixture
def other_loop() -> Iterator[Callable[[], OtherLoop]]:
    made: list[OtherLoop] = []

    def make() -> OtherLoop:
        made.append(OtherLoop())
        return made[-1]

    yield make
    for loop in reversed(made):
        loop.take_out()


def test_loops_of_another_library_below_get_what_we_leave(other_loop: Callable[[], OtherLoop]) -> None:
    other = other_loop()
    with pytest.warns(RuntimeWarning, match="numpy.add's loops of float64 are those of .*: vecadd leaves to them what"):
        installation = vecadd.install()
    with installation:
        assert list(installation.below) == ["float64"]
        np.ones(4 * MIB) + np.ones(4 * MIB)
        assert other.lengths == []
        np.ones(1000) + np.ones(1000)
        assert other.lengths == [1000]
        assert list(vecadd.install().below) == ["float64"]  # of which the first call has warned
    np.ones(2000) + np.ones(2000)
    assert other.lengths == [1000, 2000]


def test_a_loop_above_ours_is_neither_buried_nor_left_without_ours(other_loop: Callable[[], OtherLoop]) -> None:
    vecadd.install()
    other = other_loop()
    for refused in (vecadd.install, vecadd.uninstall):
        with pytest.raises(
            RuntimeError, match=rf"^{refused.__name__}\(\): numpy.add's loop of float64 was replaced after"
        ):
            refused()
    assert (np.ones(MIB) + np.ones(MIB) == 2).all()
    assert other.lengths == [MIB]
    other.take_out()
    vecadd.uninstall()


def test_a_library_may_put_the_loop_below_ours_back() -> None:
    place = place_of_loop("dd->d")
    below = place.value
    vecadd.install()
    place.value = below
    with vecadd.install() as again:
        assert (np.ones(4 * MIB) + np.ones(4 * MIB) == 2).all()
        assert again.calls == 1
    place.value = below
    vecadd.uninstall()
    assert place.value == below


def test_large_arrays_find_the_memory_of_those_that_were_dropped() -> None:
    vecadd.release()
    with vecadd.install(allocator=True):
        first = np.ones(MIB)
        used = vecadd.memory_stats()["output_used_bytes"]
        address = first.ctypes.data
        del first
        assert vecadd.memory_stats()["output_kept_bytes"] >= 8 * MIB
        second = np.empty(MIB)
        assert (second.ctypes.data, vecadd.memory_stats()["output_used_bytes"]) == (address, used)
        assert address % 64 == 0
    outside = np.ones(MIB)
    assert vecadd.memory_stats()["output_used_bytes"] == used
    del second, outside
    assert vecadd.memory_stats()["output_used_bytes"] < used
    vecadd.release()


@pytest.mark.skipif(UNDER_ASAN, reason="ASan ends a process that asks for so much")
@pytest.mark.parametrize("make", [np.empty, np.zeros])
def test_more_than_the_machines_memory_is_refused_as_by_numpy(make: Callable[[int], NDArray[Any]]) -> None:
    """By a MemoryError, where the system refuses it, and not by the end of the process at the first write."""

    def outcome() -> str:
        try:
            return str(make(1 << 42).shape)
        except MemoryError as error:
            return str(error)

    alone = outcome()
    with vecadd.install(allocator=True):
        assert outcome() == alone


@pytest.mark.parametrize("n", [0, 1, 100, MIB - 1, MIB, 3 * MIB])
@pytest.mark.parametrize("resized", [0, 1, 100, MIB - 1, MIB, 3 * MIB, 5 * MIB])
def test_arrays_of_our_memory_are_zeroed_and_resized_as_numpys(n: int, resized: int) -> None:
    used = vecadd.memory_stats()["output_used_bytes"]
    with vecadd.install(allocator=True):
        assert not np.zeros(n, np.uint8).any()
        array = np.zeros(n, np.uint8)
        array[:] = np.resize(np.arange(251, dtype=np.uint8), n)
        before = array.copy()
        array.resize(resized, refcheck=False)
        kept = min(n, resized)
        assert (array[:kept] == before[:kept]).all()
        assert not array[kept:].any()
        del array, before
        assert vecadd.memory_stats()["output_used_bytes"] == used


def test_the_allocator_applies_in_the_context_that_installed_it() -> None:
    used = []

    def elsewhere() -> None:
        array = np.ones(4 * MIB)
        used.append(vecadd.memory_stats()["output_used_bytes"])
        del array

    with vecadd.install(allocator=True):
        before = vecadd.memory_stats()["output_used_bytes"]
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        with vecadd.install(allocator=True):
            pass
        array = np.ones(4 * MIB)
        assert used == [before]
        assert vecadd.memory_stats()["output_used_bytes"] > before
        del array
    vecadd.release()


def test_no_gpu_is_touched(child: Any) -> None:
    code = (
        "import numpy as np, vecadd\n"
        "a = np.ones(4_000_000)\n"
        "with vecadd.install(allocator=True): a + a\n"
        "print(any('libcuda.so' in line for line in open('/proc/self/maps')))\n"
    )
    assert child(code, VECADD_TEST_RUNTIME=os.environ.get("VECADD_TEST_RUNTIME")).stdout == "False\n"

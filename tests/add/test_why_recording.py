"""vecadd.why.recording: each addition above 64 KiB is recorded with its line and operands, and with what NumPy did for
it."""

import ctypes
import gc
import mmap
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forks import fork
from numpy.typing import NDArray
from other_loops import OtherLoop
from threads import run_together

import vecadd
from vecadd import _core
from vecadd.why import recording
from vecadd.why.layout import Layout
from vecadd.why.recording import AdditionGroup, Recording

N = 20_000  # float64: 160 KB
X, Z, LONG = np.ones(N), np.ones(N), np.ones(3 * N)
BUFFER = 8192  # elements that NumPy converts at a time


@pytest.fixture(autouse=True)
def nothing_is_recorded_afterwards() -> Iterator[None]:
    """Nor installed. With two threads vecadd takes additions from NumPy, where there is one processor too."""
    before = vecadd.get_num_threads()
    vecadd.set_num_threads(2)
    yield
    vecadd.uninstall()
    vecadd.set_num_threads(before)
    with pytest.raises(RuntimeError, match="no additions are being recorded"):
        recording.stop()


def run(code: str, name: str = "program.py", **names: Any) -> Recording:
    """What is recorded while the code runs; its first line is line 1."""
    given = {"np": np, "vecadd": vecadd, "a": np.ones(N), "b": np.ones(N), "c": np.ones(N), **names}
    compiled = compile(code, name, "exec")
    recording.start()
    try:
        exec(compiled, given)
    finally:
        found = recording.stop()
    return found


def only(found: Recording) -> AdditionGroup:
    (group,) = found.groups
    return group


def by_line(found: Recording) -> dict[int, int]:
    """The calls of each line."""
    lines: dict[int, int] = {}
    for group in found.groups:
        lines[group.line.line] = lines.get(group.line.line, 0) + group.calls
    return lines


# --- what is recorded


@pytest.mark.parametrize(
    ("code", "via", "new"),
    [
        ("a + b", "numpy", True),
        ("a += b", "numpy", False),
        ("np.add(a, b)", "numpy", True),
        ("np.add(a, b, c)", "numpy", False),
        ("np.add(a, b, out=c)", "numpy", False),
        ("np.add(a, b, out=(c,))", "numpy", False),
        ("np.add(a, b, **{''.join(['o', 'ut']): c})", "numpy", False),  # a name that is not interned
        ("np.add(a, b, out=None)", "numpy", True),
        ("a.__radd__(b)", "numpy", True),
        ("import operator; operator.iadd(a, b)", "numpy", False),
        ("vecadd.add(a, b)", "add", True),
        ("vecadd.add(a, b, c)", "add", False),
        ("vecadd.add(a, b, out=c)", "add", False),
        ("vecadd.add(a, b, device='cpu')", "add", True),
    ],
)
def test_an_addition_is_recorded_once_with_its_operands(code: str, via: str, new: bool) -> None:
    found = only(run("\n\n" + code))
    assert (found.line.file, found.line.line, found.line.function) == ("program.py", 3, "<module>")
    assert (found.via, found.new, found.calls, found.nbytes) == (via, new, 1, 3 * 8 * N)
    for operand in (found.a, found.b, found.out):
        assert isinstance(operand, Layout)
        assert (operand.dtype, operand.shape, operand.strides) == (np.dtype("float64"), (N,), (8,))
    assert 0 < found.seconds == found.first_seconds


def test_numbers_keywords_and_devices_are_recorded() -> None:
    assert only(run("a + 1")).b is int
    assert only(run("2.0 + a")).a is float
    assert only(run("a + 1")).nbytes == 2 * 8 * N
    assert only(run("np.add(a, b, out=c, where=a > 0)")).other_keywords
    assert not only(run("np.add(a, b, out=c)")).other_keywords
    assert only(run("vecadd.add(a, b, device='cpu')")).device == "cpu"


def test_a_list_of_additions_is_one() -> None:
    found = only(run("vecadd.add_many([a, b], [b, c])"))
    assert (found.via, found.calls, found.nbytes) == ("add_many", 1, 2 * 3 * 8 * N)
    assert found.new
    assert only(run("vecadd.add_many([a, b], [b, c], out=None)")).new
    assert not only(run("vecadd.add_many([a], [b], out=[c])")).new


class Unreadable(list[Any]):
    """A list whose items only its iterator gives."""

    def __getitem__(self, at: Any) -> Any:
        raise ValueError


def test_a_list_of_another_type_is_read_as_a_list() -> None:
    found = only(run("vecadd.add_many(pair, [b, c])", pair=Unreadable([X, Z])))
    assert (found.calls, found.nbytes) == (1, 2 * 3 * 8 * N)


def test_what_vecadd_leaves_to_numpy_is_vecadds() -> None:
    objects = np.ones(N, object)
    found = only(run("vecadd.add(objects, objects)", objects=objects))
    assert found.via == "add"


@pytest.mark.parametrize("kind", ["bool", "int16", "float32", "complex128"])
def test_sums_of_more_than_64_kib_are_recorded_and_others_counted(kind: str) -> None:
    most = np.zeros(65536 // np.dtype(kind).itemsize, kind)
    more = np.zeros(most.size + 1, kind)
    code = "most + most; most += most; np.add(most, most, out=most); most.reshape(-1, 16) + most[0]\nmore + more\n"
    code += (
        "vecadd.add(most, most); vecadd.add_many([most[:9]], [most[:9]]); vecadd.add(most, most, most, where=most == 0)"
    )
    found = run(code, most=most, more=more)
    assert (by_line(found), found.small) == ({2: 1}, 7)


def test_small_operands_may_make_a_large_sum() -> None:
    row, column, block = np.ones(129), np.ones((128, 1)), np.ones((65, 129))
    small = "column[:63] + row; np.add(row, row, out=block[:63]); np.add(row, 1.0, block[:63])\n"
    large = "column + row\nnp.add(row, row, out=block)\nnp.add(row, 1.0, out=(block,))\nblock + row[0]\n"
    found = run(small + large, row=row, column=column, block=block)
    assert (by_line(found), found.small) == ({2: 1, 3: 1, 4: 1, 5: 1}, 3)


def test_the_size_is_that_of_what_the_operands_broadcast_to() -> None:
    column, row = np.ones((300, 1)), np.ones(300)
    found = only(run("column + row", column=column, row=row))
    assert isinstance(found.out, Layout)
    assert found.out.shape == (300, 300)
    assert found.nbytes == 8 * (300 * 300 + 300 + 300)


@pytest.mark.parametrize(
    "code", ["a.sum()", "a.cumsum()", "np.add.reduceat(a, [0, 5])", "np.add.at(a, [1], 2.0)", "a * b", "a - b"]
)
def test_what_does_not_add_two_arrays_is_not_recorded(code: str) -> None:
    assert run(code).groups == []


def test_an_addition_that_fails_is_not_recorded() -> None:
    code = "try:\n    a + b[1:]\nexcept ValueError: pass\ntry:\n    vecadd.add(a, b[1:])\nexcept ValueError: pass\n"
    found = run(code)
    assert (found.groups, found.missed) == ([], 0)


def test_nothing_is_recorded_after_the_end() -> None:
    bound = vecadd.add  # a name that was bound before
    run("a + b")
    assert only(run("bound(a, b)", bound=bound)).via == "add"
    X + Z
    bound(X, Z)


# --- lines and groups


def test_calls_of_a_line_are_counted_together_and_lines_apart() -> None:
    code = "for i in range(7):\n    a + b\n    if i % 2:\n        a += b; np.add(a, b, out=c)\n"
    found = run(code)
    assert by_line(found) == {2: 7, 4: 6}
    assert sorted(group.calls for group in found.groups) == [3, 3, 7]


def test_the_line_is_that_of_the_function_that_adds() -> None:
    code = "def twice(x):\n    return (x\n        + x)\n[twice(a) for _ in range(3)]\n(lambda: a + b)()\n"
    found = {group.line.function: group for group in run(code).groups}
    assert {name: group.calls for name, group in found.items()} == {"twice": 3, "<lambda>": 1}
    assert found["twice"].line.line == 2


def test_the_program_s_line_counts_where_a_library_adds() -> None:
    found = only(run("\nnp.ma.array(a) + b"))
    assert (found.line.line, found.through) == (2, None)  # NumPy's own frames are not a library's
    pandas = pytest.importorskip("pandas")
    found = only(run("\nx = frame['a'] + frame['b']", frame=pandas.DataFrame({"a": np.ones(N), "b": np.ones(N)})))
    assert (found.line.file, found.line.line) == ("program.py", 2)
    assert found.through is not None
    assert "pandas" in Path(found.through.file).parts


def test_a_library_that_adds_for_the_program_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "site-packages"
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        found = only(run("def f():\n    a + b\nf()", str(folder / "library.py")))
    assert Path(found.line.file) == Path(__file__)  # its caller is the program
    assert found.through is not None
    assert (found.through.file, found.through.line) == (str(folder / "library.py"), 2)  # where it adds


# A line with two kinds of k, one after the other.
APART: dict[str, tuple[str, Any, Any]] = {
    "the other operand itself": ("x + k", X, Z),
    "the other operand turned around": ("x + k", X[::-1], Z[::-1]),
    "the other operand in part": ("x[1:] + k", X[:-1], Z[:-1]),
    "the same elements and others from the same address": ("LONG[::2][:N] + k", LONG[::2][:N], LONG[::3]),
    "a sum in place of a": ("np.add(x, z, out=k)", X, np.ones(N)),
    "a sum in place of b": ("np.add(x, z, out=k)", Z, np.ones(N)),
    "no sum given": ("np.add(x, z, out=k)", None, np.ones(N)),
    "a keyword": ("np.add(x, z, **k)", {}, {"where": True}),
    "a device": ("vecadd.add(x, z, **k)", {}, {"device": "cpu"}),
    "the dtype": ("x + k", X, np.ones(N, np.int64)),
    "the byte order": ("x + k", Z, np.ones(N, ">f8")),
    "the alignment": ("x + k", Z, np.zeros(8 * N + 1, np.uint8)[1:].view(np.float64)),
    "the dimensions": ("x + k", Z, np.ones((1, N))),
    "the memory order": ("x.reshape(200, 100) + k", np.ones((200, 100)), np.ones((100, 200)).T),
    "an array and a number": ("x + k", Z, 1.0),
    "two types of number": ("x + k", 1, 1.0),
    "the size by a quarter": ("k + k", np.ones(N), np.ones(N + N // 4)),
    "vecadd in numpy.add": ("k(); x + z", vecadd.uninstall, vecadd.install),
}


@pytest.mark.parametrize("what", APART)
def test_additions_that_differ_in_this_are_grouped_apart(what: str) -> None:
    line, first, second = APART[what]
    names = {"x": X, "z": Z, "LONG": LONG, "N": N}
    apart = run(f"for k in ks: {line}", ks=[first, second, first], **names)
    assert sorted(group.calls for group in apart.groups) == [1, 2]
    together = run(f"for k in ks: {line}", ks=[first, first], **names)
    assert [group.calls for group in together.groups] == [2]


def test_threads_are_recorded_together() -> None:
    def work(_: int) -> None:
        for _ in range(50):
            a + a

    a = np.ones(1 << 20)
    recording.start()
    run_together(*(partial(work, i) for i in range(4)))
    found = only(recording.stop())
    assert (found.calls, found.line.function) == (200, f"{test_threads_are_recorded_together.__name__}.<locals>.work")


def test_a_forked_child_adds_on_and_its_parent_counts_its_own() -> None:
    a = np.ones(N)
    recording.start()
    a + a
    child = fork()
    if child == 0:
        status = 1
        try:
            right = bool(((a + a) == 2).all())
            status = 0 if right and sum(group.calls for group in recording.stop().groups) == 2 else 1
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert only(recording.stop()).calls == 1


# --- times, faults and loops

CLOCKED = """
import numpy as np
from double import control
from vecadd.why import recording
x, y, large = np.ones(1 << 14), np.ones(1 << 14), np.ones(1 << 18)
recording.start()
for times, nanoseconds in ((1, 5000), (20_000, 1000)):
    control.clock(nanoseconds)
    for _ in range(times):
        np.add(x, x, out=y)
np.add(large, large, out=large)
control.clock(0)
one, other = sorted(recording.stop().groups, key=lambda group: group.line.line)
print(one.calls, one.nbytes, one.seconds, one.first_seconds, one.typical)
print(other.calls, other.nbytes, other.seconds, other.first_seconds, other.typical)
"""


def test_every_addition_counts_with_its_time_and_bytes(double: Any, child: Any) -> None:
    """By a clock that goes on by 5 us in the first addition of 128 KiB, and by 1 us in each other one."""
    one, other = (list(map(float, line.split())) for line in child(CLOCKED).stdout.splitlines())
    assert one == pytest.approx([20_001, 20_001 * 3 * 8 * 2**14, 20_005e-6, 5e-6, 1e-6])
    assert other == pytest.approx([1, 3 * 8 * 2**18, 1e-6, 1e-6, 1e-6])


def never_written(nbytes: int) -> NDArray[np.float64]:
    memory = mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError):  # of a kernel that was built without huge pages
        memory.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(memory, np.float64)


def test_page_faults_are_counted() -> None:
    pages = 256
    out = never_written(pages * mmap.PAGESIZE)
    x = np.ones(out.size)
    found = only(run("for _ in range(3):\n    np.add(x, x, out=out)\n", x=x, out=out))
    assert found.first_faults >= pages
    assert (found.faults < pages / 2, found.faulted) == (True, 0)
    found = only(run("np.add(x, x, out=out)", x=x, out=never_written(out.nbytes)))
    assert (found.faults, found.faulted) == (found.first_faults, 1)


def test_faults_are_counted_in_every_large_addition_and_in_the_first_64_small_ones() -> None:
    def faulted(nbytes: int, written: int) -> float:
        """The share of additions with faults: ``written`` into written memory, then 4 into new memory."""
        outs = [np.ones(nbytes // 8)] * written + [never_written(nbytes) for _ in range(4)]
        found = only(run("for out in outs:\n    np.add(x, x, out=out)\n", x=np.ones(nbytes // 8), outs=outs))
        assert found.calls == written + 4
        return found.faulted

    assert faulted(1 << 20, 62) == 2 / 63  # the first addition is not counted with the later ones
    assert faulted(1 << 20, 64) == 0
    assert faulted(2 << 20, 64) == 4 / 67


def loops(code: str, **names: Any) -> tuple[float | None, float | None]:
    found = only(run(code, **names))
    return found.loops, found.loop_elements


def test_loops_are_counted() -> None:
    assert loops("a + b") == (1, N)
    assert loops("a += 1") == (1, N)
    assert loops("a[::2] + b[::2]") == (1, N // 2)
    single, swapped = np.ones(4 * BUFFER, np.float32), np.ones(4 * BUFFER, ">f8")
    assert loops("single + double", single=single, double=np.ones(4 * BUFFER)) == (4, BUFFER)
    assert loops("swapped + double", swapped=swapped, double=np.ones(4 * BUFFER)) == (4, BUFFER)
    wide = np.ones((100, 20_000))
    assert loops("for _ in range(3): np.add(x, x, out=x)", x=wide[:, :15_000]) == (100, 15_000)
    assert loops("x + x", x=np.ones(N, np.longdouble)) == (None, None)  # not one of those that we count


def test_loops_are_counted_below_vecadds_too() -> None:
    x = np.ones(1 << 20)
    with vecadd.install(least=1) as installation:
        found = only(run("x + x", x=x))
    assert (found.loops, found.loop_elements, found.installed) == (1, x.size, True)
    assert installation.elements == x.size
    assert not only(run("x + x", x=x)).installed


class Adds:
    """Its addition runs within one that is recorded."""

    def __init__(self, work: Callable[[], object]) -> None:
        self.work = work

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        self.work()
        return np.ones(N)


def test_installing_while_loops_are_counted_leaves_no_counting_loop() -> None:
    run("np.add(X, other)", X=X, other=Adds(lambda: vecadd.install(least=1)))
    assert _core.loop_counts()["installed"]
    before = _core.loop_counts()["elements"]
    X + X
    assert _core.loop_counts()["elements"] == before + N
    vecadd.uninstall()
    X + X
    assert _core.loop_counts()["elements"] == before + N


def test_other_threads_faults_do_not_count_where_vecadd_is_installed_meanwhile() -> None:
    """Before the addition the thread's faults are counted, after it the process's would be."""
    thread = threading.Thread(target=lambda: never_written(16 << 20).fill(1))
    thread.start()
    thread.join()
    found = only(run("np.add(X, other)", X=X, other=Adds(vecadd.install)))
    assert found.first_faults < 2000


def test_a_loop_that_was_put_above_counting_ones_is_not_counted_in_a_circle() -> None:
    others: list[OtherLoop] = []
    run("np.add(X, other)", X=X, other=Adds(lambda: others.append(OtherLoop())))
    (other,) = others
    run("X + X", X=X)
    assert other.lengths == [N]
    other.take_out()
    assert loops("X + X", X=X) == (1, N)
    X + X
    assert other.lengths == [N]


# --- nothing else changes


@pytest.mark.parametrize("kind", ["bool", "int8", "float16", "float64", "complex64"])
def test_sums_are_numpys_to_the_bit(kind: str) -> None:
    random = np.random.default_rng(0)
    x, y = (random.integers(0, 100, 70_000).astype(kind) for _ in range(2))
    forms = "[x + y, x + x[:1], np.add(x, y, dtype=x.dtype), x[::2] + y[1::2], np.add(x, y, where=x > y, out=x.copy())]"
    alone = eval(forms, {"np": np, "x": x, "y": y})
    recording.start()
    recorded = eval(forms, {"np": np, "x": x, "y": y})
    recording.stop()
    assert [(sum_.dtype, sum_.tobytes()) for sum_ in recorded] == [(sum_.dtype, sum_.tobytes()) for sum_ in alone]


def test_warnings_and_errors_stay() -> None:
    recording.start()
    try:
        with pytest.warns(RuntimeWarning, match="overflow encountered in add"):
            np.full(N, 3e38, np.float32) + np.full(N, 3e38, np.float32)
        with pytest.raises(ValueError, match="could not be broadcast"):
            np.ones(N) + np.ones(N + 1)
        with pytest.raises(TypeError, match="positional"):
            vecadd.add(np.ones(N))
    finally:
        recording.stop()


# --- beginnings and ends


def test_beginning_twice_is_an_error() -> None:
    recording.start()
    with pytest.raises(RuntimeError, match="additions are recorded already"):
        recording.start()
    recording.stop()


class Ends:
    """Ends the receipt when its nbytes are asked for; ``first`` is called before."""

    def __init__(self, first: Callable[[], None] = lambda: None) -> None:
        self.first = first

    @property
    def nbytes(self) -> int:
        self.first()
        recording.stop()
        return 1 << 20


@pytest.mark.parametrize("count", [1, 3])
def test_an_operand_may_end_the_receipt_and_empty_its_list(count: int) -> None:
    operands: list[Any] = []
    operands += [Ends(operands.clear), *[Ends()] * (count - 1)]
    recording.start()
    with pytest.raises((TypeError, ValueError)):
        vecadd.add_many(operands, [1] * count)


def test_an_operand_may_end_the_receipt_of_its_addition() -> None:
    recording.start()
    with pytest.raises(TypeError):
        vecadd.add(Ends(), Ends())


class Cycle:
    """Calls `work` when the garbage collector finds it."""

    def __init__(self, work: Callable[[], object]) -> None:
        self.me = self
        self.work = work

    def __del__(self) -> None:
        with suppress(RuntimeError):
            self.work()


@pytest.fixture
def collect_after() -> Iterator[Callable[[int], None]]:
    """collect_after(n): the collector's next run comes with the n-th object from now."""

    def after(count: int) -> None:
        gc.set_threshold(count)

    before = gc.get_threshold()
    yield after
    gc.set_threshold(*before)


def test_the_collector_may_end_the_receipt(collect_after: Callable[[int], None]) -> None:
    ones = np.ones(N)
    for count in range(1, 12):
        recording.start()
        gc.collect()
        Cycle(recording.stop)
        collect_after(count)
        np.testing.assert_array_equal(ones + ones, np.full(N, 2.0))
        gc.collect()


def test_a_receipt_may_begin_while_another_ends(collect_after: Callable[[int], None]) -> None:
    """The end makes objects, for which the collector may run."""
    began: list[None] = []
    for count in range(1, 40):
        recording.start()
        for _ in range(8):
            X + 1.0
        gc.collect()
        Cycle(lambda: began.append(recording.start()))
        collect_after(count)
        groups = recording.stop().groups
        collect_after(10_000)
        gc.collect()
        assert [group.calls for group in groups] == [8]
        assert recording.stop().groups == []
    assert len(began) == 39


def test_an_addition_that_outlives_its_receipt_is_in_no_later_one() -> None:
    def restart() -> None:
        ended.append(recording.stop())
        recording.start()

    ended: list[Recording] = []
    recording.start()
    for _ in range(2):
        np.add(X, Adds(restart))
    assert [found.groups for found in (*ended, recording.stop())] == [[], [], []]


def test_a_receipt_that_has_ended_keeps_nothing_of_the_program() -> None:
    class Own(Adds):
        pass

    code = compile("x + other", "program.py", "exec")
    kept = [weakref.ref(each) for each in (Own, code)]
    recording.start()
    exec(code, {"x": X, "other": Own(int)})
    assert len(recording.stop().groups) == 1
    del Own, code
    gc.collect()
    assert [each() for each in kept] == [None, None]


VECTORCALL_OFFSET = 7 * ctypes.sizeof(ctypes.c_void_p)  # of tp_vectorcall_offset in PyTypeObject
CALL = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)


@pytest.fixture
def entry() -> Iterator[ctypes.c_void_p]:
    """numpy.add's vectorcall, as it was again afterwards."""
    offset = ctypes.c_ssize_t.from_address(id(np.ufunc) + VECTORCALL_OFFSET).value
    place = ctypes.c_void_p.from_address(id(np.add) + offset)
    before = place.value
    yield place
    assert place.value == before


def test_below_a_wrapper_that_was_put_above_the_first_additions_do_not_go_in_a_circle(entry: ctypes.c_void_p) -> None:
    calls: list[int] = []
    recording.start()
    ours = entry.value
    assert ours
    below = CALL(ours)

    def wrapper(ufunc: Any, arguments: Any, count: int, names: Any) -> Any:
        calls.append(count)
        return below(ufunc, arguments, count, names)

    above = CALL(wrapper)
    entry.value = ctypes.cast(above, ctypes.c_void_p).value
    recording.stop()
    try:
        for times in (1, 2):
            assert len(run("np.add(a, 1.0)").groups) == 1
            assert len(calls) == times
    finally:
        entry.value = ours
    assert len(run("np.add(a, 1.0)").groups) == 1
    assert len(calls) == 2


def test_where_another_library_has_put_numpys_entry_back_later_additions_are_recorded(entry: ctypes.c_void_p) -> None:
    """It had read that entry before ours came, and takes its own out."""
    numpys = entry.value
    recording.start()
    entry.value = numpys
    recording.stop()
    for _ in range(2):
        assert len(run("np.add(a, 1.0)").groups) == 1
        assert entry.value == numpys

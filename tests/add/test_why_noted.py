"""vecadd.why.noted: each addition above 64 KiB is noted at its line, with its operands and what NumPy did for it."""

import gc
import mmap
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forks import fork
from numpy.typing import NDArray
from other_loops import OtherLoop

import vecadd
from vecadd import _core
from vecadd.why import noted
from vecadd.why.layout import Layout
from vecadd.why.noted import Noted, Run

N = 20_000  # float64: 160 KB
BUFFER = 8192  # elements that NumPy converts at a time
KINDS = ["bool", "int8", "uint16", "int32", "int64", "float16", "float32", "float64", "complex64", "complex128"]


@pytest.fixture(autouse=True)
def nothing_is_noted_afterwards() -> Iterator[None]:
    """Nor installed. With two threads vecadd takes additions from NumPy, where there is one processor too."""
    before = vecadd.get_num_threads()
    vecadd.set_num_threads(2)
    yield
    vecadd.uninstall()
    vecadd.set_num_threads(before)
    with pytest.raises(RuntimeError, match="no additions are noted now"):
        noted.stop()


def run(code: str, name: str = "program.py", **names: Any) -> Run:
    """What is noted while the code runs; its first line is line 1."""
    given = {"np": np, "vecadd": vecadd, "a": np.ones(N), "b": np.ones(N), "c": np.ones(N), **names}
    compiled = compile(code, name, "exec")
    noted.start()
    try:
        exec(compiled, given)
    finally:
        found = noted.stop()
    return found


def only(found: Run) -> Noted:
    (addition,) = found.additions
    return addition


def by_line(found: Run) -> dict[int, int]:
    """The calls of each line."""
    lines: dict[int, int] = {}
    for addition in found.additions:
        lines[addition.place.line] = lines.get(addition.place.line, 0) + addition.calls
    return lines


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
def test_an_addition_is_noted_once_with_its_operands(code: str, via: str, new: bool) -> None:
    found = only(run("\n\n" + code))
    assert (found.place.file, found.place.line, found.place.function) == ("program.py", 3, "<module>")
    assert (found.via, found.new, found.calls, found.nbytes) == (via, new, 1, 3 * 8 * N)
    for operand in (found.a, found.b, found.out):
        assert isinstance(operand, Layout)
        assert (operand.dtype, operand.shape, operand.strides) == (np.dtype("float64"), (N,), (8,))
    assert 0 < found.seconds == found.first_seconds


def test_calls_of_a_line_are_counted_together_and_lines_apart() -> None:
    code = "for i in range(7):\n    a + b\n    if i % 2:\n        a += b; np.add(a, b, out=c)\n"
    found = run(code)
    assert by_line(found) == {2: 7, 4: 6}
    assert sorted(addition.calls for addition in found.additions) == [3, 3, 7]


def test_the_line_is_that_of_the_function_that_adds() -> None:
    code = "def twice(x):\n    return (x\n        + x)\n[twice(a) for _ in range(3)]\n(lambda: a + b)()\n"
    found = {addition.place.function: addition for addition in run(code).additions}
    assert {name: addition.calls for name, addition in found.items()} == {"twice": 3, "<lambda>": 1}
    assert found["twice"].place.line == 2


def test_operands_of_other_kinds_and_sizes_are_apart() -> None:
    code = "for x in (a, a[::2], a.reshape(2, -1), a.astype('f4'), a[: N - N // 4]):\n    x + x\n"
    assert [addition.calls for addition in run(code, N=N).additions] == [1] * 5


@pytest.mark.parametrize("kind", KINDS)
def test_sums_of_more_than_64_kib_are_noted(kind: str) -> None:
    most = np.zeros(65536 // np.dtype(kind).itemsize, kind)
    more = np.zeros(most.size + 1, kind)
    code = "most + most; most += most; np.add(most, most, out=most); most.reshape(-1, 16) + most[0]\nmore + more\n"
    assert by_line(run(code, most=most, more=more)) == {2: 1}


def test_small_operands_may_make_a_large_sum() -> None:
    row, column, block = np.ones(129), np.ones((128, 1)), np.ones((65, 129))
    small = "column[:63] + row; np.add(row, row, out=block[:63]); np.add(row, 1.0, block[:63])\n"
    large = "column + row\nnp.add(row, row, out=block)\nnp.add(row, 1.0, block)\nblock + row[0]\n"
    assert by_line(run(small + large, row=row, column=column, block=block)) == {2: 1, 3: 1, 4: 1, 5: 1}


def test_the_size_is_that_of_what_the_operands_broadcast_to() -> None:
    column, row = np.ones((300, 1)), np.ones(300)
    found = only(run("column + row", column=column, row=row))
    assert isinstance(found.out, Layout)
    assert found.out.shape == (300, 300)
    assert found.nbytes == 8 * (300 * 300 + 300 + 300)


@pytest.mark.parametrize(
    "code", ["a.sum()", "a.cumsum()", "np.add.reduceat(a, [0, 5])", "np.add.at(a, [1], 2.0)", "a * b", "a - b"]
)
def test_what_is_no_addition_of_two_arrays_is_not_noted(code: str) -> None:
    assert run(code).additions == []


def test_an_addition_that_fails_is_not_noted() -> None:
    code = (
        "try:\n    a + b[1:]\nexcept ValueError:\n    pass\ntry:\n    vecadd.add(a, b[1:])\nexcept ValueError: pass\n"
    )
    assert run(code).additions == []


def test_what_vecadd_leaves_to_numpy_is_vecadds() -> None:
    objects = np.ones(N, object)
    found = only(run("vecadd.add(objects, objects)", objects=objects))
    assert found.via == "add"


def test_numbers_and_keywords_are_said() -> None:
    assert only(run("a + 1")).b is int
    assert only(run("2.0 + a")).a is float
    assert only(run("np.add(a, b, out=c, where=a > 0)")).others
    assert not only(run("np.add(a, b, out=c)")).others
    assert only(run("vecadd.add(a, b, device='cpu')")).device == "cpu"


def test_a_list_of_additions_is_one() -> None:
    found = only(run("vecadd.add_many([a, b], [b, c])"))
    assert (found.via, found.pairs, found.calls, found.nbytes) == ("add_many", 2, 1, 2 * 3 * 8 * N)
    assert found.new
    assert only(run("vecadd.add_many([a, b], [b, c], out=None)")).new
    assert not only(run("vecadd.add_many([a], [b], out=[c])")).new


def test_the_program_s_line_counts_where_a_library_adds() -> None:
    found = only(run("\nnp.ma.array(a) + b"))
    assert (found.place.line, found.through) == (2, None)  # NumPy's own frames are no library's
    pandas = pytest.importorskip("pandas")
    found = only(run("\nx = frame['a'] + frame['b']", frame=pandas.DataFrame({"a": np.ones(N), "b": np.ones(N)})))
    assert (found.place.file, found.place.line) == ("program.py", 2)
    assert found.through is not None
    assert "pandas" in Path(found.through.file).parts


def test_a_library_that_adds_for_the_program_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "site-packages"
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        found = only(run("def f():\n    a + b\nf()", str(folder / "library.py")))
    assert Path(found.place.file) == Path(__file__)  # its caller is the program
    assert found.through is not None
    assert (found.through.file, found.through.line) == (str(folder / "library.py"), 2)  # where it adds


def test_threads_are_noted_together() -> None:
    def work() -> None:
        for _ in range(50):
            a + a

    a = np.ones(1 << 20)
    threads = [threading.Thread(target=work) for _ in range(4)]
    noted.start()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = only(noted.stop())
    assert (found.calls, found.place.function) == (200, f"{test_threads_are_noted_together.__name__}.<locals>.work")


def test_a_forked_child_adds_on_and_its_parent_counts_its_own() -> None:
    a = np.ones(N)
    noted.start()
    a + a
    child = fork()
    if child == 0:
        status = 1
        try:
            right = bool(((a + a) == 2).all())
            status = 0 if right and sum(addition.calls for addition in noted.stop().additions) == 2 else 1
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert only(noted.stop()).calls == 1


def test_arrays_that_take_turns_are_counted() -> None:
    arrays = [np.ones(N) for _ in range(3)]
    code = "for _ in range(5):\n    for x in arrays:\n        np.add(x, a, out=c)\n"
    assert only(run(code, arrays=arrays)).turns == (3, 1, 1)
    assert only(run("np.add(a, b, out=c)\n")).turns == (1, 1, 1)  # none came again


def test_other_lines_make_a_line_wait_for_its_arrays() -> None:
    turns = [
        addition.turns
        for addition in run("for _ in range(5):\n    np.add(a, b, c)\n    np.add(d, d, d)\n", d=np.ones(N)).additions
    ]
    assert turns == [(2, 2, 2), (2, 2, 2)]


def test_more_arrays_than_are_remembered_are_many() -> None:
    arrays = [np.ones(N) for _ in range(9)]
    code = "for _ in range(3):\n    for x in arrays:\n        np.add(x, a, out=c)\n"
    assert only(run(code, arrays=arrays)).turns == (noted.MANY, 1, 1)
    once = "for x in arrays:\n    np.add(x, a, out=c)\n"
    assert only(run(once, arrays=arrays)).turns == (noted.MANY, 1, 1)
    assert only(run(once, arrays=arrays[1:])).turns == (1, 1, 1)


def test_arrays_begin_in_cache_lines_as_the_programs_did() -> None:
    """Of 64, three quarters 16 bytes behind a line's beginning and a quarter 48; the other operands where they lie."""
    memory = np.ones(64 * (N + 8) + 8)
    first = -(memory.ctypes.data // 8) % 8  # elements to the next cache line
    arrays = [memory[first + at * (N + 8) + (6 if at % 4 == 3 else 2) :][:N] for at in range(64)]
    found = only(run("for x in arrays:\n    np.add(x, a, out=x)\n", arrays=arrays))
    assert isinstance(found.a, Layout)
    assert isinstance(found.b, Layout)
    assert found.out == found.a
    assert sorted(found.a.starts) == [16, 16, 16, 48]
    assert set(found.b.starts) == {found.b.address % 64 // 16 * 16}


@pytest.mark.parametrize(
    ("counts", "starts"),
    [
        ((0, 0, 0, 0), ()),
        ((5, 0, 0, 0), (0, 0, 0, 0)),
        ((0, 0, 9, 1), (32, 32, 32, 32)),
        ((1, 1, 1, 1), (0, 16, 32, 48)),
        ((0, 40, 0, 41), (48, 16, 48, 16)),
        ((0, 300, 0, 100), (16, 16, 48, 16)),
    ],
)
def test_places_in_a_cache_line_are_as_frequent_as_they_were(counts: tuple[int, ...], starts: tuple[int, ...]) -> None:
    assert noted._spread(counts) == starts


def test_small_additions_in_great_number_are_estimated() -> None:
    x = np.ones(1 << 14)  # 128 KiB: one of sixteen is noted, behind the first 512
    found = only(run("for _ in range(20_000):\n    np.add(x, x, out=y)\n", x=x, y=x.copy()))
    assert found.estimated
    assert abs(found.calls - 20_000) < 6 * (15 * 19_488) ** 0.5
    assert found.nbytes == found.calls * 3 * x.nbytes
    assert not only(run("for _ in range(500):\n    np.add(x, x, out=y)\n", x=x, y=x.copy())).estimated


ESTIMATED = """
import numpy as np
from double import control
from vecadd.why import noted
x, y, large = np.ones(1 << 14), np.ones(1 << 14), np.ones(1 << 18)
noted.start()
control.clock(1000)
for times in (20_000, 0):
    np.add(large, large, out=large)
    for _ in range(times):
        np.add(x, x, out=y)
control.clock(0)
one, many = sorted(noted.stop().additions, key=lambda addition: addition.place.line)
print(many.calls, many.nbytes, many.seconds, *many.between)
print(one.calls, one.nbytes, one.seconds, *one.between)
"""


def test_the_times_bytes_and_uses_of_an_estimate_are_those_of_all_its_additions(double: Any, child: Any) -> None:
    """By a clock that goes on by 1 us from look to look, of which each addition that is noted has two. The large
    addition's operands wait for themselves and for all small ones."""
    many, one = (list(map(float, line.split())) for line in child(ESTIMATED).stdout.splitlines())
    calls, small, large = many[0], 3 * 8 * 2**14, 3 * 8 * 2**18
    assert many[1:] == [calls * small, pytest.approx(calls * 1e-6), small, small, small]
    assert one == [2, 2 * large, pytest.approx(2e-6), *[large + calls * small] * 3]


# --- what NumPy did


def loops(code: str, **names: Any) -> tuple[float | None, float | None]:
    found = only(run(code, **names))
    return found.loops, found.elements


def test_loops_are_counted() -> None:
    assert loops("a + b") == (1, N)
    assert loops("a += 1") == (1, N)
    assert loops("a[::2] + b[::2]") == (1, N // 2)


def test_pieces_of_a_cast_are_counted() -> None:
    single = np.ones(4 * BUFFER, np.float32)
    assert loops("single + double", single=single, double=np.ones(4 * BUFFER)) == (4, BUFFER)
    swapped = np.ones(4 * BUFFER, ">f8")
    assert loops("swapped + double", swapped=swapped, double=np.ones(4 * BUFFER)) == (4, BUFFER)


def test_rows_are_counted() -> None:
    wide = np.ones((100, 20_000))
    assert loops("np.add(x, x, out=x)", x=wide[:, :15_000]) == (100, 15_000)


def test_loops_that_are_not_ours_to_count_are_unknown() -> None:
    assert loops("x + x", x=np.ones(N, np.longdouble)) == (None, None)


def test_loops_are_counted_below_vecadds_too() -> None:
    x = np.ones(1 << 20)
    with vecadd.install(least=1) as installation:
        found = only(run("x + x", x=x))
    assert (found.loops, found.elements, found.installed) == (1, x.size, True)
    assert installation.elements == x.size
    assert not only(run("x + x", x=x)).installed


def test_installing_while_loops_are_counted_leaves_no_counting_loop() -> None:
    class Installs:
        """Its addition runs within one that is noted."""

        def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
            vecadd.install(least=1)
            return np.ones(N)

    x = np.ones(N)
    run("np.add(x, other)", x=x, other=Installs())
    assert _core.loop_counts()["installed"]
    before = _core.loop_counts()["elements"]
    x + x
    assert _core.loop_counts()["elements"] == before + N
    vecadd.uninstall()
    x + x
    assert _core.loop_counts()["elements"] == before + N


def test_a_loop_that_was_put_above_counting_ones_is_not_counted_in_a_circle() -> None:
    others: list[OtherLoop] = []

    class Puts:
        """Its addition runs within one that is noted."""

        def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
            others.append(OtherLoop())
            return np.ones(N)

    x = np.ones(N)
    run("np.add(x, other)", x=x, other=Puts())
    (other,) = others
    run("x + x", x=x)
    assert other.lengths == [N]
    other.take_out()
    assert loops("x + x", x=x) == (1, N)
    x + x
    assert other.lengths == [N]


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
    assert only(run("np.add(x, x, out=out)", x=x, out=never_written(out.nbytes))).faulted == 1


def test_calls_that_fault_are_told_from_calls_that_do_not() -> None:
    outs = [never_written(16 << 20) for _ in range(2)] * 2  # the third and fourth sum find their pages
    x = np.ones(outs[0].size)
    found = only(run("for k in (0, 1, 2, 3):\n    np.add(x, x, out=outs[k])\n", x=x, outs=outs))
    assert found.faulted == 1 / 3  # of those behind the first


# --- nothing else changes


@pytest.mark.parametrize("kind", KINDS)
def test_sums_are_numpys_to_the_bit(kind: str) -> None:
    random = np.random.default_rng(0)
    x, y = (random.integers(0, 100, 70_000).astype(kind) for _ in range(2))
    forms = "[x + y, x + x[:1], np.add(x, y, dtype=x.dtype), x[::2] + y[1::2], np.add(x, y, where=x > y, out=x.copy())]"
    alone = eval(forms, {"np": np, "x": x, "y": y})
    given: dict[str, Any] = {"x": x, "y": y}
    noted.start()
    watched = eval(forms, {"np": np, **given})
    noted.stop()
    assert [(sum_.dtype, sum_.tobytes()) for sum_ in watched] == [(sum_.dtype, sum_.tobytes()) for sum_ in alone]


def test_warnings_and_errors_stay() -> None:
    noted.start()
    try:
        with pytest.warns(RuntimeWarning, match="overflow encountered in add"):
            np.full(N, 3e38, np.float32) + np.full(N, 3e38, np.float32)
        with pytest.raises(ValueError, match="could not be broadcast"):
            np.ones(N) + np.ones(N + 1)
        with pytest.raises(TypeError, match="positional"):
            vecadd.add(np.ones(N))
    finally:
        noted.stop()


def test_beginning_twice_and_ending_twice_are_errors() -> None:
    noted.start()
    with pytest.raises(RuntimeError, match="additions are noted already"):
        noted.start()
    noted.stop()
    with pytest.raises(RuntimeError, match="no additions are noted now"):
        noted.stop()


class Ends:
    """Ends the receipt when its nbytes are asked for; ``first`` is called before."""

    def __init__(self, first: Callable[[], None] = lambda: None) -> None:
        self.first = first

    @property
    def nbytes(self) -> int:
        self.first()
        noted.stop()
        return 1 << 20


@pytest.mark.parametrize("count", [1, 3])
def test_an_operand_may_end_the_receipt_and_empty_its_list(count: int) -> None:
    operands: list[Any] = []
    operands += [Ends(operands.clear), *[Ends()] * (count - 1)]
    noted.start()
    with pytest.raises((TypeError, ValueError)):
        vecadd.add_many(operands, [1] * count)


def test_an_operand_may_end_the_receipt_of_its_addition() -> None:
    noted.start()
    with pytest.raises(TypeError):
        vecadd.add(Ends(), Ends())


def test_the_collector_may_end_the_receipt() -> None:
    """Its next run comes with the first object that noting an addition makes."""

    class Cycle:
        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            with suppress(RuntimeError):
                noted.stop()

    a = np.ones(N)
    for threshold in range(1, 12):
        noted.start()
        gc.disable()
        gc.collect()
        before = gc.get_threshold()
        Cycle()
        gc.set_threshold(threshold)
        gc.enable()
        try:
            np.testing.assert_array_equal(a + a, np.full(N, 2.0))
        finally:
            gc.set_threshold(*before)
            gc.collect()


def test_nothing_is_noted_behind_the_end() -> None:
    held = vecadd.add  # a name that was bound before
    run("a + b")
    found = run("held(a, b)", held=held)
    assert only(found).via == "add"
    np.ones(N) + np.ones(N)
    held(np.ones(N), np.ones(N))

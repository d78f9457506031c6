"""A receipt of additions that begins again: below another library's wrapper, and while the one before still ends."""

import ctypes
import gc
import weakref
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from vecadd.why import noted

N = 20_000  # float64: 160 KB
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


def additions() -> int:
    noted.start()
    try:
        np.add(np.ones(N), 1.0)
    finally:
        found = noted.stop()
    return len(found.additions)


def test_below_a_wrapper_that_was_put_above_the_first_additions_do_not_go_in_a_circle(entry: ctypes.c_void_p) -> None:
    calls: list[int] = []
    noted.start()
    ours = entry.value
    assert ours
    below = CALL(ours)

    def wrapper(ufunc: Any, arguments: Any, count: int, names: Any) -> Any:
        calls.append(count)
        return below(ufunc, arguments, count, names)

    above = CALL(wrapper)
    entry.value = ctypes.cast(above, ctypes.c_void_p).value
    noted.stop()
    try:
        for times in (1, 2):
            assert additions() == 1
            assert len(calls) == times
    finally:
        entry.value = ours
    assert additions() == 1
    assert len(calls) == 2


def test_where_another_library_has_put_numpys_entry_back_later_additions_are_noted(entry: ctypes.c_void_p) -> None:
    """It had read that entry before ours came, and takes its own out."""
    numpys = entry.value
    noted.start()
    entry.value = numpys
    noted.stop()
    for _ in range(2):
        assert additions() == 1
        assert entry.value == numpys


def test_a_receipt_does_not_begin_while_one_ends() -> None:
    """A collection may begin within the end, which makes objects, and run a finalizer that begins another."""
    began: list[bool] = []

    class Cycle:
        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            with suppress(RuntimeError):
                noted.start()
                began.append(True)

    before = gc.get_threshold()
    for threshold in range(1, 40):
        noted.start()
        for _ in range(8):
            np.add(np.ones(N), 1.0)
        gc.collect()
        Cycle()
        gc.set_threshold(threshold)
        try:
            noted.stop()
        finally:
            gc.set_threshold(*before)
        gc.collect()
        if began:  # behind the end
            assert noted.stop().additions == []
            began.clear()
    assert additions() == 1


def test_an_addition_that_outlives_its_receipt_is_in_no_later_one() -> None:
    class Restarts:
        def __array_ufunc__(self, *given: Any, **keywords: Any) -> Any:
            ended.append(noted.stop())
            noted.start()
            return np.ones(N)

    ended: list[noted.Run] = []
    noted.start()
    for _ in range(2):
        np.add(np.ones(N), Restarts())
    assert [run.additions for run in (*ended, noted.stop())] == [[], [], []]


def test_a_receipt_that_has_ended_holds_nothing_of_the_program() -> None:
    class Adds:
        def __array_ufunc__(self, *given: Any, **keywords: Any) -> Any:
            return np.ones(N)

    code = compile("x + other", "program.py", "exec")
    held = [weakref.ref(each) for each in (Adds, code)]
    noted.start()
    exec(code, {"x": np.ones(N), "other": Adds()})
    assert len(noted.stop().additions) == 1
    del Adds, code
    gc.collect()
    assert [each() for each in held] == [None, None]

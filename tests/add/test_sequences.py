"""Calls in any order beside NumPy: no earlier call changes a later sum, warning or count."""

import ctypes
import os
import platform
import warnings
from collections.abc import Callable
from typing import Any

import hypothesis
import numpy as np
from arrays import bits
from forks import fork
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from numpy.typing import NDArray

import vecadd
from vecadd import _core

LIBM = ctypes.CDLL("libm.so.6")
UPWARD = {"x86_64": 0x800, "aarch64": 0x400000}[platform.machine()]
SIZES = st.sampled_from([3, 1000, 6000, 70_001, 100_000, 300_000, 1_000_000])
DTYPES = st.sampled_from([np.dtype(name) for name in ("float32", "float64", "int32", "complex64")])
KEPT = 6  # arrays at most


def operand(dtype: np.dtype[Any], n: int, special: str | None) -> NDArray[Any]:
    """Values whose sums round, and at one place one that overflows or is invalid beside its like."""
    x = np.arange(n).astype(dtype) if dtype.kind == "i" else (np.arange(n) / 3).astype(dtype)
    if special and dtype.kind != "i":
        x[n // 2] = np.finfo(dtype).max if special == "overflow" else np.inf
    return x


def heard(add: Callable[[], Any], mode: str) -> tuple[Any, list[str]]:
    """The sum, or None, and all that is said about it."""
    with warnings.catch_warnings(record=True) as told, np.errstate(all=mode):  # type: ignore[call-overload]
        warnings.simplefilter("always")
        try:
            return add(), [str(each.message) for each in told]
        except FloatingPointError as error:
            return None, [str(error)]


class Sums(RuleBasedStateMachine):
    """The model: each array that the program keeps has its bytes beside it, and every sum is made by NumPy's own loop
    too, which strided operands reach whatever is installed."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[tuple[NDArray[Any], bytes]] = []
        self.mode = "warn"
        self.least: int | None = None
        self.installed = self.forked = False

    @initialize()
    def begin(self) -> None:
        self.threads = vecadd.set_num_threads(2)
        vecadd.release()
        self.used = _core.output_pool_counts()["used_blocks"]

    @rule(
        dtype=DTYPES,
        n=SIZES,
        special=st.sampled_from([None, None, "overflow", "invalid"]),
        out=st.sampled_from(["new", "out", "a", "b"]),
        by=st.sampled_from(["vecadd.add", "numpy.add"]),
        keep=st.booleans(),
    )
    def add(self, dtype: np.dtype[Any], n: int, special: str | None, out: str, by: str, keep: bool) -> None:
        a, b = operand(dtype, n, special), operand(dtype, n, special)
        if special == "invalid":
            b = -b
        want, said = heard(lambda: np.add(np.repeat(a, 2)[::2], b), self.mode)
        into = {"new": None, "out": np.zeros_like(a), "a": a, "b": b}[out]
        before = _core.loop_counts()["elements"]
        total, said_here = heard(lambda: (vecadd.add if by == "vecadd.add" else np.add)(a, b, into), self.mode)
        assert said_here == said
        added = _core.loop_counts()["elements"] - before
        if by == "vecadd.add" or not self.installed or (self.least is None and n * dtype.itemsize < 128 << 10):
            assert added == 0
        elif self.least:
            # One thread of ours adds where streaming stores pay: where none of the last sums was, from 256 KiB on.
            alone = (0, n) if n * dtype.itemsize >= 256 << 10 and out in ("new", "out") else (0,)
            assert added in ((n,) if vecadd.get_num_threads() > 1 else alone)
        if total is not None:
            assert np.array_equal(bits(total), bits(want))
            if keep and len(self.kept) < KEPT:
                self.kept.append((total, total.tobytes()))

    @rule(sizes=st.lists(SIZES, min_size=1, max_size=4), keep=st.booleans())
    def make_and_resize(self, sizes: list[int], keep: bool) -> None:
        """An array in the memory that NumPy makes now, or a sum of before, with several sizes one after the other."""
        x = np.full(sizes[0], 7.0) if keep or not self.kept else self.kept.pop()[0]
        content = x.tobytes()
        for n in sizes:
            x.resize(n, refcheck=False)
            assert x.tobytes() == content[: x.nbytes].ljust(x.nbytes, b"\0")
            x[:] = 9
            content = x.tobytes()
        if len(self.kept) < KEPT:
            self.kept.append((x, content))

    @rule(at=st.integers(0, KEPT - 1))
    def drop(self, at: int) -> None:
        for x, model in self.kept[at : at + 1]:
            assert x.tobytes() == model
        del self.kept[at : at + 1]

    @rule()
    def release(self) -> None:
        vecadd.release()
        counts = _core.output_pool_counts()
        assert (counts["kept_blocks"], counts["kept_bytes"]) == (0, 0)

    @rule(n=st.integers(1, 4))
    def set_threads(self, n: int) -> None:
        vecadd.set_num_threads(n)

    @rule(mode=st.sampled_from(["ignore", "warn", "raise"]))
    def change_error_state(self, mode: str) -> None:
        self.mode = mode

    @rule(mode=st.sampled_from([0, UPWARD]))
    def round_to(self, mode: int) -> None:
        LIBM.fesetround(mode)

    @rule(least=st.sampled_from([None, 1]), allocator=st.booleans())
    def install(self, least: int | None, allocator: bool) -> None:
        vecadd.install(least=least, allocator=allocator)
        self.least, self.installed = least, True
        if allocator:
            before = _core.output_pool_counts()["used_blocks"]
            x = np.ones(1 << 20)
            assert (x.size, _core.output_pool_counts()["used_blocks"]) == (1 << 20, before + 1)

    @rule()
    def uninstall(self) -> None:
        vecadd.uninstall()
        self.installed = False
        before = _core.output_pool_counts()["used_blocks"]
        x = np.ones(1 << 20)
        assert (x.size, _core.output_pool_counts()["used_blocks"]) == (1 << 20, before)

    @rule()
    def add_in_a_fork(self) -> None:
        if self.forked:  # once in a sequence: a fork takes 20 ms
            return
        self.forked = True
        a = np.arange(300_000, dtype=np.int32)
        child = fork()
        if child == 0:
            right = (vecadd.add(a, a) == 2 * a).all() and all(x.tobytes() == model for x, model in self.kept)
            os._exit(0 if right else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

    def teardown(self) -> None:
        LIBM.fesetround(0)
        vecadd.uninstall()
        vecadd.set_num_threads(self.threads)
        assert all(x.tobytes() == model for x, model in self.kept)
        self.kept.clear()
        vecadd.release()
        counts = _core.output_pool_counts()
        assert (counts["used_blocks"] - self.used, counts["kept_blocks"]) == (0, 0)


TestSums = Sums.TestCase
# Without a shrink, which would take minutes.
TestSums.settings = hypothesis.settings(stateful_step_count=40, phases=[hypothesis.Phase.generate])

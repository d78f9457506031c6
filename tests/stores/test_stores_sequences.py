"""Adding Zarr arrays into one target again and again, with failures in between: a reader sees the old array or the new
one whenever it looks."""

import errno
import os
import shutil
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import hypothesis
import numpy as np
import pytest
import zarr
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from zarr_arrays import make, names, read

import vecadd
from vecadd import _zarr

pytestmark = pytest.mark.no_native

# Operands of several shapes, dtypes and codecs: the second sum must not be read by the first one's metadata.
OPERANDS = [
    (np.arange(12.0).reshape(3, 4), {"chunks": (3, 2)}),
    (np.arange(12, dtype="i2").reshape(3, 4), {"chunks": (2, 4), "compressors": None}),
    (np.full(5, 1.5, "f4"), {"chunks": (2,), "shards": (4,)}),
]
PAIRS = st.sampled_from([(0, 0), (0, 1), (1, 0), (1, 1), (2, 2)])
FAILURE = OSError(errno.EIO, os.strerror(errno.EIO))


class Sums(RuleBasedStateMachine):
    """``total`` is what the target is, None where nothing is there."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.target = self.folder / "c.zarr"
        self.total: np.ndarray | None = None
        self.left = 0  # hidden folders, of old arrays that could not be removed
        for number, (x, stored) in enumerate(OPERANDS):
            make(self.folder / str(number), x, **stored)

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    def found(self) -> np.ndarray | None:
        return read(self.target) if self.target.exists() else None

    def is_now(self, want: np.ndarray | None) -> bool:
        found = self.found()
        if found is None or want is None:
            return found is want
        return found.dtype == want.dtype and np.array_equal(found, want)

    @contextmanager
    def watched(self, new: np.ndarray) -> Iterator[None]:
        """A reader looks before each step of the addition, in whichever thread that is, and at the end."""
        lock, seen = threading.Lock(), []

        def look() -> None:
            with lock:
                assert any(self.is_now(each) for each in (self.total, new)), self.found()
                seen.append(self.is_now(self.total))

        def watch(done: Callable[..., Any]) -> Callable[..., Any]:
            def step(*arguments: Any, **keywords: Any) -> Any:
                look()
                return done(*arguments, **keywords)

            return step

        steps = [(_zarr, name) for name in ("_read", "_sync", "exchange", "write_key")]
        watched = _all(patch.object(*step, watch(getattr(*step))) for step in (*steps, (shutil, "rmtree")))
        with suppress(OSError, MemoryError), watched:
            yield
        look()
        assert seen == sorted(seen, reverse=True)  # never the old one again

    def add(self, pair: tuple[int, int], *, failing: Any = None, publishes: bool = True) -> None:
        x, y = (OPERANDS[number][0] for number in pair)
        with warnings.catch_warnings(record=True) as told, _all([failing] if failing else []), self.watched(x + y):
            warnings.simplefilter("always")
            vecadd.add_zarr(*(self.folder / str(number) for number in pair), self.target)
        if publishes:
            self.total = x + y
        self.told = [str(warning.message) for warning in told]

    @rule(pair=PAIRS)
    def succeed(self, pair: tuple[int, int]) -> None:
        self.add(pair)
        assert self.told == []

    @rule(pair=PAIRS, box=st.integers(1, 4))
    def fail_in_a_box(self, pair: tuple[int, int], box: int) -> None:
        self.add(pair, failing=patch.object(_zarr, "_read", _fails(_zarr._read, box)), publishes=False)

    @rule(pair=PAIRS)
    def fail_before_the_name(self, pair: tuple[int, int]) -> None:
        write = _fails(_zarr.write_key, 2)  # of zarr.json
        self.add(pair, failing=patch.object(_zarr, "write_key", write), publishes=False)

    @rule(pair=PAIRS)
    def fail_to_take_the_name(self, pair: tuple[int, int]) -> None:
        if self.total is None:
            self.add(pair, failing=patch.object(Path, "rename", _fails(Path.rename, 1)), publishes=False)
        else:  # after the two folders that are exchanged to see whether that works
            self.add(pair, failing=patch.object(_zarr, "exchange", _fails(_zarr.exchange, 2)), publishes=False)

    @rule(pair=PAIRS)
    def fail_to_remove_the_old_one(self, pair: tuple[int, int]) -> None:
        replaces = self.total is not None
        self.add(pair, failing=patch.object(shutil, "rmtree", _fails(shutil.rmtree, 1)))
        assert len(self.told) == replaces
        self.left += replaces

    @rule()
    def remove(self) -> None:
        shutil.rmtree(self.target, ignore_errors=True)
        self.total = None

    @invariant()
    def the_target_is_what_it_was_made(self) -> None:
        assert self.is_now(self.total)
        hidden = [name for name in names(self.folder) if name.startswith(".")]
        assert len(hidden) == self.left
        if self.total is not None:
            assert names(self.target) == ["c", "zarr.json"]
            assert zarr.open_array(self.target, mode="r").shape == self.total.shape


def _fails(done: Callable[..., Any], call: int) -> Callable[..., Any]:
    """Raises from that call on, counted from 1."""
    calls = iter(range(1, 1000))

    def fail(*arguments: Any, **keywords: Any) -> Any:
        if next(calls) >= call:
            raise FAILURE
        return done(*arguments, **keywords)

    return fail


@contextmanager
def _all(patches: Any) -> Iterator[None]:
    with ExitStack() as stack:
        for each in patches:
            stack.enter_context(each)
        yield


@pytest.fixture(autouse=True)
def small_boxes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a chunk, or a shard: two or three each."""
    monkeypatch.setattr(_zarr, "ENOUGH", 1)


class TestSums(Sums.TestCase):
    settings = hypothesis.settings(stateful_step_count=8, max_examples=10)

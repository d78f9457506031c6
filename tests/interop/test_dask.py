"""Collections of Dask and of xarray, added block by block: what x + y is, by vecadd's own addition."""

import operator
import threading
from fractions import Fraction
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from arrays import tame_values

import vecadd
from vecadd import _core
from vecadd import dask as threads_of_dask
from vecadd.dask import add

dask, xr = pytest.importorskip("dask"), pytest.importorskip("xarray")
da = pytest.importorskip("dask.array")

pytestmark = pytest.mark.no_native

X = tame_values(np.dtype("float32"), 60, seed=1).reshape(6, 10)
OTHERS: dict[str, Any] = {
    "other chunks": da.from_array(X[::-1].copy(), chunks=(4, 5)),
    "a row of another dtype": da.from_array(np.arange(10), chunks=3),
    "NumPy's array": np.arange(6.0)[:, None],
    "a number": 2.5,
    "a number that is wider": 1j,
    "NumPy's number": np.float64(3),
    "True": True,
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS.keys())
@pytest.mark.parametrize("turned", [False, True])
def test_the_sum_is_that_of_dask_and_its_blocks_too(other: Any, turned: bool) -> None:
    pair = (da.from_array(X, chunks=(3, 4)), other)
    x, y = reversed(pair) if turned else pair
    got, want = add(x, y), operator.add(x, y)
    assert (got.shape, got.dtype, got.chunks) == (want.shape, want.dtype, want.chunks)
    np.testing.assert_array_equal(got.compute(), want.compute(), strict=True)


def test_the_addition_is_fused_with_its_neighbours() -> None:
    x = da.ones((8, 8), chunks=4)
    (graph,) = dask.optimize(add(add(x, x) * 2, x))
    assert len(dict(graph.dask)) == 4  # tasks: one a block


@pytest.mark.parametrize("scheduler", ["threads", "synchronous"])
def test_blocks_are_added_by_vecadd_on_the_threads_that_are_left_to_a_task(
    scheduler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, bool]] = []

    def note(x: Any, y: Any) -> Any:
        seen.append((_core.get_num_threads(), threading.current_thread() is threading.main_thread()))
        return np.add(x, y)

    before = _core.get_num_threads()
    monkeypatch.setattr("dask.system.CPU_COUNT", 12)
    monkeypatch.setattr("vecadd.dask._core", SimpleNamespace(**{**vars(_core), "add": note}))
    x = da.from_array(X, chunks=(3, 4))
    total = add(x, x)
    seen.clear()  # Dask has tried it on empty blocks
    _core.set_num_threads(8)
    try:
        with dask.config.set(num_workers=3):
            np.testing.assert_array_equal(total.compute(scheduler=scheduler), X + X)
        assert _core.get_num_threads() == 8
    finally:
        _core.set_num_threads(before)
    assert set(seen) == {(4, False) if scheduler == "threads" else (8, True)}
    assert len(seen) == 6
    assert threads_of_dask._users == 0


@pytest.mark.parametrize("call", [1, 2, 3])
@pytest.mark.parametrize("in_a_child", [False, True])
def test_an_interrupt_leaves_the_threads_as_they_were(
    call: int, in_a_child: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the main thread, of this process or of one of Dask's: one call asks for the threads, two set them."""
    calls = iter(range(1, 4))

    def interrupted(done: Any) -> Any:
        def step(*arguments: int) -> Any:
            found = done(*arguments)
            if next(calls) == call:
                raise KeyboardInterrupt
            return found

        return step

    before = _core.get_num_threads()
    steps = {name: interrupted(getattr(_core, name)) for name in ("get_num_threads", "set_num_threads")}
    monkeypatch.setattr("dask.system.CPU_COUNT", 3)
    monkeypatch.setattr(threads_of_dask.multiprocessing, "parent_process", lambda: in_a_child or None)
    _core.set_num_threads(8)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(threads_of_dask, "_core", SimpleNamespace(**steps))
            with pytest.raises(KeyboardInterrupt), threads_of_dask.dask_threads():
                pass
        assert (_core.get_num_threads(), threads_of_dask._users) == (8, 0)
        x = da.from_array(X, chunks=(3, 4))
        np.testing.assert_array_equal(add(x, x).compute(scheduler="threads"), X + X)
        assert (_core.get_num_threads(), threads_of_dask._users) == (8, 0)
    finally:
        _core.set_num_threads(before)
        threads_of_dask._users = 0


def test_a_worker_counts_the_tasks_of_its_own_machine_and_asks_again_after_ten_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    utils = pytest.importorskip("distributed.utils")
    now, asked = [100.0], []
    hosts = {"tcp://a:1": ("a", 2), "tcp://a:2": ("a", 3), "tcp://b:1": ("b", 50)}
    workers = {address: {"host": host, "nthreads": threads} for address, (host, threads) in hosts.items()}

    def sync(loop: None, identity: str) -> dict[str, Any]:
        asked.append(now[0])
        return {"workers": workers}

    scheduler, state = SimpleNamespace(identity="identity"), SimpleNamespace(nthreads=7)
    worker = SimpleNamespace(address="tcp://a:1", loop=None, scheduler=scheduler, state=state)
    monkeypatch.setattr(utils, "sync", sync)
    monkeypatch.setattr("dask.system.CPU_COUNT", 20)
    monkeypatch.setattr(threads_of_dask, "_asked", {})
    monkeypatch.setattr(threads_of_dask, "_worker", lambda: worker)
    monkeypatch.setattr(threads_of_dask, "time", SimpleNamespace(monotonic=lambda: now[0]))
    found = []
    for seconds in (100.0, 109.0, 110.0):
        now[0] = seconds
        found.append(threads_of_dask.threads_a_task())
    assert (found, asked) == ([4, 4, 4], [100.0, 110.0])
    worker.address = "tcp://c:1"  # which the scheduler does not know yet
    assert threads_of_dask.threads_a_task() == 2
    worker.address = "tcp://b:1"
    assert threads_of_dask.threads_a_task() == 1


def masked(values: Any, mask: Any, **keywords: Any) -> Any:
    return da.from_array(np.ma.masked_array(values, mask=mask, **keywords), chunks=3)


BARE = da.from_array(np.array([1, -np.inf, 3, 4, np.inf, 6]), chunks=2)
MASKED: dict[str, tuple[Any, Any]] = {
    "one operand": (masked(np.arange(6.0), [0, 1, 0, 0, 1, 0], fill_value=-9), BARE),
    "the other one": (BARE, masked(np.arange(6.0), [0, 1, 0, 0, 1, 0])),
    "both": (masked(np.arange(6.0), [0, 1, 0, 0, 1, 0]), masked(np.arange(6), [1, 1, 0, 0, 0, 0])),
    "nothing masked": (masked(np.arange(6.0), np.ma.nomask), 2),
    "a number": (True, masked(np.arange(6), [0, 1, 0, 0, 1, 0])),
    "a hard mask": (masked(np.arange(6.0), [0, 1, 0, 0, 1, 0], hard_mask=True), BARE),
    "infinities": (masked(np.full(6, np.inf), [0, 1, 0, 0, 0, 0]), BARE),
}


@pytest.mark.parametrize(("x", "y"), MASKED.values(), ids=MASKED.keys())
@pytest.mark.parametrize("scheduler", ["threads", "synchronous"])
def test_masked_blocks_are_added_as_numpys_own_plus_adds_them(x: Any, y: Any, scheduler: str) -> None:
    """With what is below the mask as it was, and without a warning of infinities of two signs."""
    got, want = (total.compute(scheduler=scheduler) for total in (add(x, y), x + y))
    for what in ("dtype", "fill_value", "hardmask"):
        assert getattr(got, what) == getattr(want, what)
    np.testing.assert_array_equal(np.ma.getmaskarray(got), np.ma.getmaskarray(want))
    np.testing.assert_array_equal(got.data, want.data)


LEFT = xr.DataArray(
    da.from_array(X, chunks=(3, 4)), dims=("y", "x"), coords={"x": np.arange(10)}, attrs={"units": "m"}, name="left"
)
RIGHT = xr.DataArray(np.arange(10.0), dims="x", coords={"x": np.arange(3, 13), "z": 4}, attrs={"units": "m"}, name="r")
LABELLED: dict[str, tuple[Any, Any]] = {
    "arrays that overlap in part": (LEFT, RIGHT),
    "axes in another order": (LEFT.transpose(), LEFT),
    "an array and a number": (LEFT, 2),
    "an array and one of Dask's": (LEFT, da.from_array(X, chunks=2)),
    "variables": (LEFT.variable, RIGHT.variable),
    "data sets": (xr.Dataset({"u": LEFT, "v": RIGHT}), xr.Dataset({"v": LEFT, "u": RIGHT, "w": LEFT})),
    "a data set and an array": (xr.Dataset({"u": LEFT, "v": LEFT}), RIGHT),
    "an array and a data set": (RIGHT, xr.Dataset({"u": LEFT, "v": LEFT})),
    "an array and a data set whose coordinates are in another order": (LEFT[:, ::-1], xr.Dataset({"u": LEFT})),
}


@pytest.mark.parametrize(("x", "y"), LABELLED.values(), ids=LABELLED.keys())
@pytest.mark.parametrize("join", ["inner", "outer", "left", "right"])
def test_xarrays_coordinates_and_attributes_are_those_of_its_own_sum(x: Any, y: Any, join: str) -> None:
    with xr.set_options(arithmetic_join=join):
        got, want = add(x, y), x + y
    assert dask.is_dask_collection(got)
    assert got.chunks == want.chunks
    xr.testing.assert_identical(got.compute(), want.compute())


def test_blocks_on_a_gpu_are_added_there(double: ModuleType) -> None:
    x = da.from_array(X, chunks=(3, 4))
    on_device = x.map_blocks(vecadd.to_device, dtype=x.dtype, meta=np.empty((0, 0), x.dtype))
    total = add(on_device, on_device).map_blocks(_back, dtype=x.dtype, meta=np.empty((0, 0), x.dtype))
    np.testing.assert_array_equal(total.compute(scheduler="synchronous"), X + X)


def _back(block: Any) -> np.ndarray:
    assert isinstance(block, vecadd.DeviceArray)
    return block.numpy()


def test_arrays_that_are_no_collections_are_refused() -> None:
    with pytest.raises(TypeError, match=r"takes a collection of Dask, not ndarray and int; vecadd\.add adds arrays"):
        add(X, 1)


@pytest.mark.parametrize("other", [[1, 2, 3], Fraction(1, 2)], ids=str)
def test_what_numpy_makes_an_array_of_is_added(other: Any) -> None:
    x = da.ones(3, chunks=2)
    np.testing.assert_array_equal(add(x, other).compute(), (x + other).compute(), strict=True)


@pytest.mark.parametrize("other", [None, object()], ids=["None", "an object"])
def test_what_cannot_be_added_is_refused_at_once(other: Any) -> None:
    with pytest.raises(TypeError, match=type(other).__name__):
        add(da.ones(3), other)


def test_collections_of_another_kind_are_refused() -> None:
    with pytest.raises(TypeError, match=r"takes arrays of Dask, not Delayed\w*: add it with \+"):
        add(da.ones(3), dask.delayed(1))

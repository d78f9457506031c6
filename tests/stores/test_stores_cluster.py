"""Adding Zarr arrays on a Dask cluster: its workers add, fail, do not see the target, or ask for the sum themselves."""

import errno
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pytest
import zarr
from distributed import Client, LocalCluster, get_worker
from zarr.storage import MemoryStore
from zarr_arrays import add, assert_sum, fill_folder, names, read

import vecadd
from vecadd import _core, _zarr
from vecadd import dask as threads_of_dask

# Dask's own warning where the machine has no network.
pytestmark = [pytest.mark.no_native, pytest.mark.filterwarnings("ignore:Couldn't detect a suitable IP address")]


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """Of one worker in this process, of one thread: an addition that waits for itself never ends."""
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0") as cluster,
        cluster.get_client() as found,
    ):
        yield found


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    fill_folder(tmp_path)
    monkeypatch.setattr(_zarr, "ENOUGH", 1)  # a box for each of twelve chunks
    return tmp_path


def tasks(client: Client) -> set[str]:
    """The tasks of additions that the scheduler has known."""

    def keys(dask_scheduler: Any) -> list[str]:
        return [str(entry[0]) for entry in dask_scheduler.transition_log]

    return {key for key in client.run_on_scheduler(keys) if key.startswith("vecadd-add")}


class Spy:
    """In the place of vecadd._core: what is seen of each addition."""

    def __init__(self, look: Any) -> None:
        self.look, self.seen = look, []
        self.get_num_threads, self.set_num_threads = _core.get_num_threads, _core.set_num_threads

    def add(self, x: Any, y: Any) -> Any:
        self.seen.append(self.look())
        return _core.add(x, y)


def where() -> str | None:
    try:
        return get_worker().address
    except ValueError:
        return None


def test_the_active_clients_workers_add(client: Client, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, spy = tasks(client), Spy(where)
    monkeypatch.setattr(_zarr, "_core", spy)
    add(folder)
    assert_sum(folder)
    assert len(tasks(client) - before) == 12
    assert set(spy.seen) == set(client.scheduler_info()["workers"])


def test_an_addition_in_a_task_of_the_only_worker_does_not_wait_for_itself(client: Client, folder: Path) -> None:
    before = tasks(client)
    client.submit(add, folder, pure=False).result()
    assert_sum(folder)
    assert len(tasks(client) - before) == 12


def test_dasks_settings_choose_the_scheduler(client: Client, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, spy, pools = tasks(client), Spy(where), []
    pool = _zarr.ThreadPoolExecutor
    monkeypatch.setattr(_zarr, "_core", spy)
    monkeypatch.setattr(_zarr, "ThreadPoolExecutor", lambda threads: (pools.append(threads), pool(threads))[1])
    for scheduler in ("threads", "synchronous"):
        with dask.config.set(scheduler=scheduler, num_workers=2):
            add(folder)
        assert_sum(folder)
    with dask.config.set(scheduler="threads"):
        add(folder)
    assert (tasks(client), set(spy.seen), pools) == (before, {None}, [2, 2, 4])


def test_a_store_object_is_added_on_threads(client: Client, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pickled for a worker, it would be a copy, and the sum lost."""
    store, spy = MemoryStore(), Spy(where)
    monkeypatch.setattr(_zarr, "_core", spy)
    vecadd.add_zarr(folder / "a.zarr", folder / "b.zarr", store)
    np.testing.assert_array_equal(read(store), read(folder / "a.zarr") + read(folder / "b.zarr"))
    assert set(spy.seen) == {None}


def test_workers_add_on_no_more_threads_than_there_are_processors(
    client: Client, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, spy = _core.get_num_threads(), Spy(_core.get_num_threads)
    monkeypatch.setattr("dask.system.CPU_COUNT", 3)
    monkeypatch.setattr(threads_of_dask, "_before", 0)
    monkeypatch.setattr(_zarr, "_core", spy)
    _core.set_num_threads(8)
    try:
        add(folder)
        assert _core.get_num_threads() == 8
    finally:
        _core.set_num_threads(before)
    assert set(spy.seen) == {3}  # of 3 processors for one worker of one thread


def test_an_error_of_a_worker_is_raised_and_the_next_addition_works(
    client: Client, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full() -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(_zarr, "_core", Spy(full))
        with pytest.raises(OSError, match="No space left on device"):
            add(folder)
    np.testing.assert_array_equal(read(folder / "c.zarr"), [7, 7, 7])
    add(folder)
    assert_sum(folder)


def test_a_task_that_outlives_its_addition_writes_no_more(folder: Path) -> None:
    """Dask does not stop a task that runs: it must not touch what another addition writes to that place later."""
    store = MemoryStore()
    vecadd.add_zarr(folder / "a.zarr", folder / "b.zarr", store)
    _zarr.write_key(store, _zarr.UNDER_WAY, b"another addition")
    before = dict(store._store_dict)
    described = zarr.open_array(store).metadata.to_dict()
    for working in (store, str(folder / ".gone.tmp")):
        work = _zarr.Work(str(folder / "a.zarr"), str(folder / "b.zarr"), working, described, (5, 5), b"x", True, {})
        with pytest.raises(RuntimeError, match="is not there for this worker, or the addition has ended"):
            _zarr.add_boxes(work, 0, 1)
    assert store._store_dict == before
    assert names(folder) == ["a.zarr", "b.zarr", "c.zarr"]


@pytest.mark.slow
def test_a_store_that_other_processes_do_not_see_is_refused(folder: Path) -> None:
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as cluster,
        cluster.get_client(),
        pytest.raises(RuntimeError, match="memory://not/shared is not there for this worker"),
    ):
        vecadd.add_zarr(folder / "a.zarr", folder / "b.zarr", "memory://not/shared")
    with pytest.raises(FileNotFoundError):
        zarr.open_array("memory://not/shared", mode="r")

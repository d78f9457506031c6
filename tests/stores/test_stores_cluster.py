"""Adding Zarr arrays on a Dask cluster, whose workers, scheduler and disks fail."""

import errno
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pytest
import zarr
from distributed import Client, LocalCluster
from distributed.comm import CommClosedError
from zarr_arrays import fill_folder, make, names, read

import vecadd
from vecadd import _core, _dask_threads
from vecadd.stores import cluster as of_cluster
from vecadd.stores import run

# Dask's own warning where the machine has no network.
pytestmark = [pytest.mark.no_native, pytest.mark.filterwarnings("ignore:Couldn't detect a suitable IP address")]

MOMENTS = range(int(os.environ.get("VECADD_TEST_MOMENTS", "1")))


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """Of two workers in this process, of two threads each."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=2, processes=False, dashboard_address=":0") as cluster,
        cluster.get_client() as found,
    ):
        yield found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    fill_folder(tmp_path)
    return tmp_path


def add(folder: Path, **keywords: Any) -> None:
    keywords = {"memory": 12_000, **keywords}  # two pieces for each thread
    vecadd.add_zarr(folder / "a.zarr", folder / "b.zarr", folder / "c.zarr", **keywords)


def assert_whole(folder: Path) -> None:
    np.testing.assert_array_equal(read(folder / "c.zarr"), read(folder / "a.zarr") + read(folder / "b.zarr"))
    assert names(folder) == ["a.zarr", "b.zarr", "c.zarr"]


def test_workers_add_on_no_more_threads_than_there_are_processors(
    client: Client, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, seen = _core.get_num_threads(), []
    add_piece = run._add_piece
    monkeypatch.setattr("dask.system.CPU_COUNT", 12)
    monkeypatch.setattr(_dask_threads, "_before", 0)
    monkeypatch.setattr(run, "_add_piece", lambda *all: (seen.append(_core.get_num_threads()), add_piece(*all)))
    _core.set_num_threads(8)
    try:
        add(folder, scheduler=client)
        assert _core.get_num_threads() == 8
    finally:
        _core.set_num_threads(before)
    assert set(seen) == {3}  # of 12 processors for two workers of two threads
    assert_whole(folder)


def test_the_active_client_is_used(client: Client, folder: Path) -> None:
    told: list[tuple[int, int]] = []
    add(folder, progress=lambda *at: told.append(at))
    assert_whole(folder)
    assert told[-1] == (300, 300)
    assert any(key.startswith("vecadd-add") for _, key, *_ in client.run_on_scheduler(_transitions))


def _transitions(dask_scheduler: Any) -> list[tuple[Any, ...]]:
    return [(0, str(entry[0])) for entry in dask_scheduler.transition_log]


def test_an_error_of_a_worker_names_the_elements_and_resume_goes_on(
    client: Client, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(run, "_add_piece", full)
        with pytest.raises(
            OSError, match=r"No space left on device: elements \[.*\] of the sum were not added; resume"
        ):
            add(folder)
    np.testing.assert_array_equal(read(folder / "c.zarr"), [7, 7, 7])
    add(folder, resume=True)
    assert_whole(folder)


def test_a_run_that_a_killed_worker_began_is_gone_on_from_its_last_piece(
    client: Client, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dask gives it to another worker: here the task is tried again after an error, as after a kill."""
    added: list[tuple[slice, ...]] = []
    add_piece, add_run = run._add_piece, of_cluster.add_run

    def note(a: Any, b: Any, target: Any, box: tuple[slice, ...]) -> None:
        added.append(box)
        add_piece(a, b, target, box)

    def twice(addition: run.Addition, todo: tuple[int, int]) -> None:
        with pytest.raises(KeyError):
            add_run(addition, todo, lambda size: {}["killed"])
        add_run(addition, todo)

    monkeypatch.setattr(run, "_add_piece", note)
    monkeypatch.setattr(of_cluster, "add_run", twice)
    add(folder)
    assert_whole(folder)
    assert len(added) == len(set(map(str, added)))


def test_a_worker_of_another_version_is_named_before_anything_is_written(
    client: Client, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = of_cluster._facts
    monkeypatch.setattr(of_cluster, "_facts", lambda dask_worker: {**facts(dask_worker), "version": "0.0.1"})
    with pytest.raises(RuntimeError, match=r"2 of the workers of .* have another version of vecadd .* has 0\.0\.1"):
        add(folder)
    assert names(folder) == ["a.zarr", "b.zarr", "c.zarr"]


def test_a_worker_of_another_version_that_came_later_adds_nothing(folder: Path) -> None:
    with pytest.raises(RuntimeError, match=r"a worker has vecadd .*, and this addition was asked for by 0\.0\.1"):
        of_cluster.add_on_worker(None, (0, 1), "0.0.1")  # type: ignore[arg-type]


def test_a_worker_that_went_meanwhile_is_not_asked(
    client: Client, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dask knows that it went: the others add."""
    ask = client.run
    answers = lambda function, *rest, **keywords: {  # noqa: E731
        **ask(function, *rest, **keywords), "tcp://gone": CommClosedError("closed")
    }  # fmt: skip
    monkeypatch.setattr(client, "run", answers)
    add(folder, scheduler=client)
    assert_whole(folder)


def test_a_worker_that_does_not_see_the_arrays_is_named_and_nothing_stays(
    client: Client, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unseen(addition: run.Addition) -> None:
        raise FileNotFoundError(2, "No such file or directory", "a.zarr")

    monkeypatch.setattr(of_cluster, "_look", unseen)
    with pytest.raises(RuntimeError, match=r"2 of the workers of .* cannot add: inproc://.*a\.zarr"):
        add(folder)
    assert names(folder) == ["a.zarr", "b.zarr", "c.zarr"]


def test_tasks_of_an_attempt_that_ended_write_no_more(
    client: Client, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task that Dask does not stop: it may outlive the process that asked, and the next attempt."""
    add_piece, added = run._add_piece, []

    def overtaken(*arguments: Any) -> None:
        add_piece(*arguments)
        added.append(arguments)
        (left,) = folder.glob(".c.zarr.*.partial")
        (left / ".vecadd/attempt").write_text("another one")

    monkeypatch.setattr(run, "_add_piece", overtaken)
    with pytest.raises(RuntimeError, match="has ended, or another one goes on with it"):
        add(folder, memory=4000)
    assert len(added) <= 4  # one for each thread, of twelve


@pytest.mark.parametrize(
    ("memory", "least", "share"),
    [(None, 1, 64 << 20), (None, 1 << 30, 1 << 30), (8 << 20, 1, 2 << 20), (8 << 20, 1 << 30, 2 << 20)],
)
def test_a_threads_share_is_that_of_the_worker_with_least_and_enough_for_a_piece(
    memory: int | None, least: int, share: int
) -> None:
    """Unless the memory was given. Without a limit a worker has 512 MiB, and with one half of it."""
    cluster = object.__new__(of_cluster.Cluster)
    limits = {"small": (4, 512 << 20), "free": (4, None), "large": (2, 1 << 40)}
    cluster.workers = {name: {"nthreads": n, "memory_limit": limit} for name, (n, limit) in limits.items()}
    assert cluster.share(memory, least) == share


@pytest.mark.parametrize("error", [ValueError("no port"), TypeError("no keys"), OSError("refused")], ids=repr)
def test_a_client_that_failed_half_made_is_closed(
    error: Exception, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Client] = []

    async def fail(self: Client, **keywords: Any) -> None:
        made.append(self)
        self.status = "connecting"
        raise error

    monkeypatch.setattr(Client, "_start", fail)
    with pytest.raises(OSError if isinstance(error, OSError) else ValueError, match=str(error)):
        add(folder, scheduler="tcp://host:8786")
    assert [client.status for client in made] == ["closed"]
    assert names(folder) == ["a.zarr", "b.zarr", "c.zarr"]


# --- Workers in processes of their own.


def large(folder: Path) -> None:
    n, chunk = 1 << 19, 1 << 13
    make(folder / "a.zarr", np.arange(n, dtype="f8"), (chunk,), overwrite=True)
    make(folder / "b.zarr", np.ones(n), (chunk // 2,), overwrite=True)


@pytest.mark.slow
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("workers", [2, 4])
def test_a_worker_that_is_killed_at_any_moment_leaves_the_sum_right(workers: int, moment: int, folder: Path) -> None:
    """Dask gives its run to another one, or an error says what was not added, and resume goes on."""
    large(folder)
    rng = np.random.default_rng(moment)
    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0") as cluster,
        cluster.get_client() as client,
    ):
        client.wait_for_workers(workers)
        pids = list(client.run(os.getpid).values())
        killer = threading.Timer(rng.uniform(0, 0.6), os.kill, (int(rng.choice(pids)), signal.SIGKILL))
        killer.start()
        try:
            add(folder, scheduler=client, memory=1 << 20)
        except (OSError, RuntimeError) as error:
            said = str(error)
            killer.join()
            assert read(folder / "c.zarr").size == 3
            client.wait_for_workers(1)
            add(folder, scheduler=client, memory=1 << 20, resume=True)
            assert "resume" in said or "workers" in said
        killer.join()
        assert_whole(folder)


@pytest.mark.slow
def test_a_scheduler_that_goes_away_is_an_error_and_resume_goes_on(folder: Path) -> None:
    large(folder)
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "2s"}),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
    ):
        client = Client(cluster.scheduler_address, timeout="2s", set_as_default=False)
        closed: list[None] = []

        def close(done: int, size: int) -> None:
            if not closed:
                closed.append(cluster.sync(cluster.scheduler.close, reason="for the test"))

        with pytest.raises(OSError, match="of the sum were not all added; resume"):
            add(folder, scheduler=client, memory=1 << 20, progress=close)
        client.close()
    assert read(folder / "c.zarr").size == 3
    add(folder, scheduler="threads", memory=1 << 20, resume=True)
    assert_whole(folder)


@pytest.mark.slow
def test_stores_that_other_processes_do_not_see_are_refused(folder: Path) -> None:
    with pytest.raises(RuntimeError, match=r"2 of the workers of .* cannot add"):
        vecadd.add_zarr(folder / "a.zarr", folder / "b.zarr", "memory://not/shared", scheduler="local:2")
    with pytest.raises(FileNotFoundError):
        zarr.open_array("memory://not/shared", mode="r")

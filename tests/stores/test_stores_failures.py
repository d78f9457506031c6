"""Adding Zarr arrays in a process that is killed or fails: a target that is old or new, and no work done twice.

VECADD_TEST_MOMENTS says at how many moments a process is killed, 1 without it.
"""

import errno
import json
import os
import random
import resource
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from conftest import child_environment
from zarr.storage import LocalStore, MemoryStore
from zarr_arrays import fill_folder, make, names, read

import vecadd
from vecadd.stores import manifest as record
from vecadd.stores import place, run, threads

pytestmark = pytest.mark.no_native

MOMENTS = range(int(os.environ.get("VECADD_TEST_MOMENTS", "1")))
MEMORY = 6000  # bytes, for three pieces of 100 elements


@pytest.fixture(autouse=True)
def two_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """On any machine: more threads cut the same memory into smaller pieces."""
    monkeypatch.setattr(threads, "MOST_THREADS", 2)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    fill_folder(tmp_path)
    return tmp_path


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """How often each chunk was written."""
    counted: Counter[str] = Counter()
    put = LocalStore.set

    async def count(self: LocalStore, key: str, value: Any) -> None:
        await put(self, key, value)
        if key.startswith("c/"):
            counted[key] += 1

    monkeypatch.setattr(LocalStore, "set", count)
    return counted


def add(folder: Path, **keywords: Any) -> None:
    vecadd.add_zarr(folder / "a.zarr", folder / "b.zarr", folder / "c.zarr", memory=MEMORY, **keywords)


def want(folder: Path) -> np.ndarray:
    return read(folder / "a.zarr") + read(folder / "b.zarr")


def assert_old(folder: Path) -> None:
    np.testing.assert_array_equal(read(folder / "c.zarr"), [7, 7, 7])


def assert_whole(folder: Path) -> None:
    np.testing.assert_array_equal(read(folder / "c.zarr"), want(folder))
    assert names(folder) == ["a.zarr", "b.zarr", "c.zarr"]
    assert names(folder / "c.zarr") == ["c", "zarr.json"]


def fail_at(monkeypatch: pytest.MonkeyPatch, error: Exception, piece: int = 2) -> None:
    """The work fails from that piece on, counted from 1."""
    add_piece, calls = run._add_piece, iter(range(1, 1000))

    def fail(*arguments: Any) -> None:
        if next(calls) >= piece:
            raise error
        add_piece(*arguments)

    monkeypatch.setattr(run, "_add_piece", fail)


def begin(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An addition that fails behind its first piece, and can be resumed."""
    with monkeypatch.context() as patch:
        fail_at(patch, MemoryError())
        with pytest.raises(MemoryError):
            add(folder)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), OSError),
        (OSError("no bucket of this name"), OSError),
        (MemoryError(), MemoryError),
        (ValueError("a chunk that cannot be decoded"), RuntimeError),
    ],
    ids=repr,
)
def test_a_failure_names_what_was_not_added_and_resume_goes_on(
    error: Exception, kind: type[Exception], folder: Path, written: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        fail_at(patch, error)
        with pytest.raises(
            kind, match=r"elements \[\d+:\d+, \d+:\d+\] of the sum were not added; resume=True"
        ) as raised:
            add(folder)
    assert "Errno None" not in str(raised.value)
    assert_old(folder)
    before = written.copy()
    assert sum(before.values()) > 0
    add(folder, resume=True)
    assert_whole(folder)
    assert set(written.values()) == {1}
    assert len(written) == 12


def test_where_no_worker_can_go_on_what_is_finished_stays(
    folder: Path, written: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: threads.Threads, addition: run.Addition) -> None:
        raise RuntimeError("a worker does not see the arrays")

    begin(folder, monkeypatch)
    assert written
    with monkeypatch.context() as patch:
        patch.setattr(threads.Threads, "prepare", refuse)
        with pytest.raises(RuntimeError, match="does not see"):
            add(folder, resume=True)
    add(folder, resume=True)
    assert_whole(folder)
    assert set(written.values()) == {1}


def test_tasks_of_an_attempt_that_failed_write_no_more(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that a cluster has not begun yet, and cannot cancel."""
    seen: list[run.Addition] = []
    with monkeypatch.context() as patch:
        patch.setattr(threads.Threads, "prepare", lambda self, addition: seen.append(addition))
        fail_at(patch, MemoryError(), 1)
        with pytest.raises(MemoryError):
            add(folder)
    with pytest.raises(RuntimeError, match="has ended"):
        run.add_run(seen[0], (0, 1))


def test_what_a_killed_writer_left_of_a_chunk_is_removed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begin(folder, monkeypatch)
    (working,) = folder.glob(".c.zarr.*.partial")
    (working / "c/0/0.0123abcd.partial").write_bytes(b"half of a chunk")
    add(folder, resume=True)
    assert_whole(folder)
    assert list((folder / "c.zarr").rglob("*.partial")) == []


def test_the_manifest_is_the_last_of_a_record_that_goes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A record that a kill leaves a part of is known as one of an addition that is complete."""
    removed: list[str] = []
    monkeypatch.setattr(record, "delete_key", lambda store, key: removed.append(key))
    add(folder)
    assert len(removed) > 2
    assert removed.index(".vecadd/manifest.json") == len(removed) - 1


def test_a_disk_that_fills_is_gone_on_from(folder: Path) -> None:
    """Really: no file may become so large."""
    make(folder / "a.zarr", np.arange(20.0 * 1500).reshape(20, 1500), (5, 1500), overwrite=True, compressors=None)
    make(folder / "b.zarr", np.ones((20, 1)), (20, 1), overwrite=True)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
    try:
        with pytest.raises(OSError, match=r"File too large: elements \[\d+:\d+, 0:1500\] of the sum were not added"):
            vecadd.add_zarr(folder / "a.zarr", folder / "b.zarr", folder / "c.zarr")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert_old(folder)
    vecadd.add_zarr(folder / "a.zarr", folder / "b.zarr", folder / "c.zarr", resume=True)
    assert_whole(folder)


def test_an_interrupt_ends_the_work_and_resume_goes_on(folder: Path, written: Counter[str]) -> None:
    before = threading.active_count()

    def interrupt(done: int, size: int) -> None:
        if done == 100:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        add(folder, progress=interrupt, scheduler="threads")
    assert [thread.name for thread in threading.enumerate() if "vecadd" in thread.name] == []
    assert threading.active_count() <= before + 50  # Zarr's own
    assert_old(folder)
    add(folder, resume=True)
    assert_whole(folder)
    assert set(written.values()) == {1}


def test_without_resume_what_was_left_is_removed_and_all_is_added(
    folder: Path, written: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(folder, monkeypatch)
    written.clear()
    add(folder)
    assert_whole(folder)
    assert (len(written), sum(written.values())) == (12, 12)


@pytest.mark.parametrize("longer", ["c.zarr.zip", "c.zarr.0123abcd.partial"])
def test_what_is_left_of_a_longer_name_is_not_ours(folder: Path, monkeypatch: pytest.MonkeyPatch, longer: str) -> None:
    a, b = folder / "a.zarr", folder / "b.zarr"
    with monkeypatch.context() as patch:
        fail_at(patch, MemoryError())
        with pytest.raises(MemoryError):
            vecadd.add_zarr(a, b, folder / longer, memory=MEMORY)
    left = set(folder.glob(f".{longer}.*.partial"))
    add(folder)
    np.testing.assert_array_equal(read(folder / "c.zarr"), want(folder))
    assert set(folder.glob(f".{longer}.*.partial")) == left != set()


def test_resume_is_refused_for_another_addition(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begin(folder, monkeypatch)
    with pytest.raises(ValueError, match="had other operands, or another target"):
        add(folder, resume=True, compressor="none")
    with pytest.raises(ValueError, match="needs 2480 bytes of memory a thread"):
        vecadd.add_zarr(folder / "a.zarr", folder / "b.zarr", folder / "c.zarr", resume=True, memory=100)
    make(folder / "b.zarr", np.ones((20, 15), "f4"), (20, 2), overwrite=True)
    with pytest.raises(ValueError, match="had other operands, or another target"):
        add(folder, resume=True)
    assert_old(folder)


@pytest.mark.parametrize("kind", ["version 2", "in an archive"])
def test_resume_is_refused_where_an_operand_was_written_again(
    kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a = folder / ("a.zip/x" if kind == "in an archive" else "a.zarr")

    def write() -> None:
        if kind == "version 2":
            make(a, np.ones((20, 15), "f4"), (5, 5), zarr_format=2, overwrite=True)
        else:
            with zarr.storage.ZipStore(a.parent, mode="w") as store:
                zarr.create_group(store).create_array("x", data=np.ones((20, 15), "f4"), chunks=(5, 5))

    write()
    fail_at(monkeypatch, MemoryError())
    with pytest.raises(MemoryError):
        vecadd.add_zarr(a, folder / "b.zarr", folder / "c.zarr", memory=MEMORY)
    write()
    with pytest.raises(ValueError, match="had other operands, or another target"):
        vecadd.add_zarr(a, folder / "b.zarr", folder / "c.zarr", memory=MEMORY, resume=True)
    assert_old(folder)


def test_resume_without_an_addition_that_was_begun_begins(folder: Path) -> None:
    add(folder, resume=True)
    assert_whole(folder)


def test_a_target_that_another_addition_writes_is_refused(folder: Path) -> None:
    refused: list[BaseException] = []

    def once_more(done: int, size: int) -> None:
        for resume in (True, False):
            with pytest.raises(BlockingIOError, match="another addition is writing this target") as raised:
                add(folder, resume=resume)
            refused.append(raised.value)

    add(folder, progress=once_more)
    assert len(refused) > 2
    assert_whole(folder)


def test_a_record_that_was_cut_short_counts_for_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        fail_at(patch, MemoryError(), 3)
        with pytest.raises(MemoryError):
            add(folder)
    (left,) = folder.glob(".c.zarr.*.partial")
    for key in (left / record.FOLDER / "finished").iterdir():
        key.write_bytes(key.read_bytes()[:-1])
    assert record.finished(LocalStore(left)) == []
    add(folder, resume=True)
    assert_whole(folder)


DAMAGED: dict[str, Callable[[dict[str, Any]], Any]] = {
    "a later version's": lambda found: found | {"format": 2},
    "without its fields": lambda found: {"format": 1},
    "with a field more": lambda found: found | {"more": 3},
    "with a piece that is a number": lambda found: found | {"piece": 3},
    "with a piece of no elements": lambda found: found | {"piece": [0, 5]},
    "with a piece of more axes": lambda found: found | {"piece": [5, 5, 5]},
    "with a piece of text": lambda found: found | {"piece": ["5", "5"]},
    "a list": lambda found: [found],
    "a number": lambda found: 3,
    "text": lambda found: "x",
}


@pytest.mark.parametrize("damage", DAMAGED.values(), ids=DAMAGED.keys())
def test_a_record_that_is_damaged_is_named_and_without_resume_all_is_added(
    damage: Callable[[dict[str, Any]], Any], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        fail_at(patch, MemoryError(), 3)
        with pytest.raises(MemoryError):
            add(folder)
    (left,) = folder.glob(".c.zarr.*.partial")
    file = left / record.FOLDER / "manifest.json"
    file.write_text(json.dumps(damage(json.loads(file.read_text()))))
    with pytest.raises(ValueError, match=r"/\.vecadd/manifest\.json is no record of .* Without --resume"):
        add(folder, resume=True)
    add(folder)
    assert_whole(folder)


@pytest.mark.parametrize("step", ["exchange", "rmtree", "remove"])
@pytest.mark.parametrize("operand", ["c.zarr", "a.zarr"])
def test_an_addition_that_was_killed_in_its_last_step_is_not_made_twice(
    step: str, operand: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even where the target is an operand, which has its sum already."""

    class Killed(BaseException):
        pass

    total = want(folder)
    call = {"exchange": (place, "exchange"), "rmtree": (place.shutil, "rmtree"), "remove": (record, "remove")}[step]

    def kill(*arguments: Any, **keywords: Any) -> None:
        if step == "exchange":
            if (arguments[0] / "zarr.json").exists():
                original(*arguments)
                raise Killed
            original(*arguments)
            return
        raise Killed

    original = getattr(*call)
    with monkeypatch.context() as patch:
        patch.setattr(*call, kill)
        with pytest.raises(Killed):
            vecadd.add_zarr(folder / "a.zarr", folder / "b.zarr", folder / operand)
    np.testing.assert_array_equal(read(folder / operand), total)
    vecadd.add_zarr(folder / "a.zarr", folder / "b.zarr", folder / operand, resume=True)
    np.testing.assert_array_equal(read(folder / operand), total)
    assert names(folder) == ["a.zarr", "b.zarr", "c.zarr"]
    assert names(folder / operand) == ["c", "zarr.json"]


def test_a_store_without_rename_is_an_array_only_when_it_is_complete(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = MemoryStore()
    with monkeypatch.context() as patch:
        fail_at(patch, MemoryError(), 3)
        with pytest.raises(MemoryError):
            vecadd.add_zarr(folder / "a.zarr", folder / "b.zarr", store, memory=MEMORY)
    assert any(key.startswith("c/") for key in store._store_dict)
    with pytest.raises(FileNotFoundError):
        zarr.open_array(store, mode="r")
    with pytest.raises(ValueError, match="was begun and is not complete: go on with --resume"):
        vecadd.add_zarr(folder / "a.zarr", folder / "b.zarr", store)
    vecadd.add_zarr(folder / "a.zarr", folder / "b.zarr", store, resume=True)
    np.testing.assert_array_equal(read(store), want(folder))
    assert {key.partition("/")[0] for key in store._store_dict} == {"c", "zarr.json"}


def test_an_archive_is_packed_again_after_a_kill(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "c.zip").write_bytes(b"what was there before")
    with monkeypatch.context() as patch:
        patch.setattr(place, "_sync", lambda path: (_ for _ in ()).throw(OSError(errno.EIO, "Input/output error")))
        with pytest.raises(OSError, match="Input/output error"):
            vecadd.add_zarr(folder / "a.zarr", folder / "b.zarr", folder / "c.zip")
    assert (folder / "c.zip").read_bytes() == b"what was there before"
    vecadd.add_zarr(folder / "a.zarr", folder / "b.zarr", folder / "c.zip", resume=True)
    np.testing.assert_array_equal(read(folder / "c.zip"), want(folder))
    assert names(folder) == ["a.zarr", "b.zarr", "c.zarr", "c.zip"]


@pytest.mark.parametrize("sync", [True, False])
@pytest.mark.parametrize("out", ["c.zarr", "new.zarr", "new.zip"])
def test_a_target_has_its_name_on_the_disk_before_the_call_returns(
    out: str, sync: bool, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[object] = []
    exchange, rename = place.exchange, Path.rename
    monkeypatch.setattr(place, "_sync", steps.append)
    monkeypatch.setattr(place, "exchange", lambda first, second: (exchange(first, second), steps.append("named")))
    monkeypatch.setattr(Path, "rename", lambda path, target: (rename(path, target), steps.append("named")))
    vecadd.add_zarr(folder / "a.zarr", folder / "b.zarr", folder / out, sync=sync)
    assert steps[-1] == (folder.resolve() if sync else "named")


def test_chunks_are_on_the_disk_before_they_count_as_finished(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    sync_chunks, note = place.sync_chunks, record.note
    monkeypatch.setattr(run, "sync_chunks", lambda path, keys: (steps.append("sync"), sync_chunks(path, keys)))
    monkeypatch.setattr(record, "note", lambda *arguments: (steps.append("note"), note(*arguments)))
    add(folder, scheduler="threads")
    assert steps.count("sync") == steps.count("note") == 3
    assert all(steps[:at].count("sync") > steps[:at].count("note") for at, step in enumerate(steps) if step == "note")
    steps.clear()
    add(folder, sync=False)
    assert set(steps) == {"note"}


KILLED = """
    import os, sys, time
    import vecadd
    from vecadd.stores import place, run, threads
    add_piece, finish = run._add_piece, place._finish
    def slowly(*arguments):
        os.write(1, b".")
        time.sleep(0.01)
        add_piece(*arguments)
        os.write(1, b".")
        time.sleep(0.01)
    def say(*arguments):
        os.write(1, b".")
        finish(*arguments)
    run._add_piece, place._finish = slowly, say
    vecadd.add_zarr("a.zarr", "b.zarr", "c.zarr", memory=1 << 20, resume=sys.argv[1] == "resume")
"""


@pytest.mark.slow
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("way", ["resume", "anew"])
def test_a_process_that_is_killed_at_any_moment_leaves_an_old_or_a_whole_target(
    way: str, moment: int, folder: Path, written: Counter[str]
) -> None:
    """And what it has finished is not added again, where the next one resumes."""
    n, chunk = 1 << 17, 1 << 13
    make(folder / "a.zarr", np.arange(n, dtype="f8"), (chunk,), overwrite=True)
    make(folder / "b.zarr", np.ones(n), (chunk // 2,), overwrite=True)
    moments = random.Random(moment)
    command = [sys.executable, "-c", textwrap.dedent(KILLED), way]
    with subprocess.Popen(command, cwd=folder, env=child_environment(), stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.read(moments.randint(1, 33))  # two for each chunk, and one for the last step
        time.sleep(moments.uniform(0, 0.02))
        child.kill()
    finished, whole = _finished(folder), read(folder / "c.zarr").size == n
    if not whole:
        assert_old(folder)
    written.clear()
    vecadd.add_zarr(folder / "a.zarr", folder / "b.zarr", folder / "c.zarr", resume=way == "resume", memory=1 << 20)
    assert_whole(folder)
    if way == "resume" and finished:
        assert sum(written.values()) == n // chunk - len(finished)


def _finished(folder: Path) -> set[int]:
    return {
        piece
        for left in folder.glob(".c.zarr.*.partial")
        for begin, end in record.finished(LocalStore(left))
        for piece in range(begin, end)
    }


def test_the_manifest_can_be_read_by_people(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begin(folder, monkeypatch)
    (left,) = folder.glob(".c.zarr.*.partial")
    found = json.loads((left / record.FOLDER / "manifest.json").read_text())
    assert [Path(operand["name"]).name for operand in found["operands"]] == ["a.zarr", "b.zarr"]
    assert (found["described"]["shape"], found["piece"]) == ([20, 15], [20, 5])

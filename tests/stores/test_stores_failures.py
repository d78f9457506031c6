"""Adding Zarr arrays where something fails: the target is as it was, and nothing is left; or the sum, and a warning."""

import errno
import os
import re
import resource
import signal
import threading
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pytest
import zarr
from zarr.codecs import BloscCodec, Crc32cCodec, GzipCodec, ZstdCodec
from zarr.storage import LocalStore, MemoryStore
from zarr_arrays import add, assert_sum, files, fill_folder, make, names, read

import vecadd
from vecadd import _core, _zarr, cli

pytestmark = pytest.mark.no_native


@pytest.fixture(autouse=True)
def small_boxes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chunk each: twelve."""
    monkeypatch.setattr(_zarr, "ENOUGH", 1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    fill_folder(tmp_path)
    return tmp_path


def assert_old(folder: Path) -> None:
    np.testing.assert_array_equal(read(folder / "c.zarr"), [7, 7, 7])
    assert names(folder) == ["a.zarr", "b.zarr", "c.zarr"]


class Failing:
    """In the place of vecadd._core: its add raises from a call on, counted from 1."""

    def __init__(self, call: int, error: BaseException) -> None:
        self.call, self.error, self.calls = call, error, 0
        self.get_num_threads, self.set_num_threads = _core.get_num_threads, _core.set_num_threads

    def add(self, x: Any, y: Any) -> Any:
        self.calls += 1
        if self.calls >= self.call:
            raise self.error
        return _core.add(x, y)


def test_a_failure_ends_the_other_threads_before_their_next_box(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one task for each thread, of three boxes."""
    failing = Failing(1, MemoryError())
    monkeypatch.setattr(_zarr, "_core", failing)
    monkeypatch.setattr(_zarr, "MOST_TASKS", 4)
    before = set(threading.enumerate())
    with pytest.raises(MemoryError):
        add(folder)
    assert failing.calls <= 4
    assert [
        thread.name for thread in threading.enumerate() if "ThreadPoolExecutor" in thread.name and thread not in before
    ] == []
    assert_old(folder)


def test_a_disk_that_is_full_is_an_error_of_the_system(folder: Path) -> None:
    """Really: no file may become so large."""
    make(folder / "a.zarr", np.arange(20.0 * 1500).reshape(20, 1500), (5, 1500), overwrite=True, compressors=None)
    make(folder / "b.zarr", np.ones((20, 1)), (20, 1), overwrite=True)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            add(folder)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert_old(folder)


def test_an_interrupt_ends_the_work(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes to the main thread, which waits, from a thread that adds and goes on."""
    put = LocalStore.set

    async def interrupt(self: LocalStore, key: str, value: Any) -> None:
        if key == "c/1/1":
            signal.raise_signal(signal.SIGINT)
        await put(self, key, value)

    with monkeypatch.context() as patch:
        patch.setattr(LocalStore, "set", interrupt)
        with pytest.raises(KeyboardInterrupt):
            add(folder)
    assert_old(folder)
    add(folder)
    assert_sum(folder)


@pytest.mark.parametrize("sync", [True, False])
@pytest.mark.parametrize("out", ["c.zarr", "new.zarr"])
def test_after_the_exchange_a_failure_is_a_warning(
    out: str, sync: bool, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old tree cannot be removed, or the folder's entry not be synced: the sum is there all the same."""
    wait = _zarr._sync

    def fail(path: Path) -> None:
        if path == folder.resolve():
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))
        wait(path)

    def stay(path: Path, **keywords: Any) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    total = read(folder / "a.zarr") + read(folder / "b.zarr")
    with monkeypatch.context() as patch:
        patch.setattr(_zarr, "_sync", fail)
        patch.setattr(_zarr.shutil, "rmtree", stay)
        if out == "new.zarr" and not sync:
            vecadd.add_zarr(folder / "a.zarr", folder / "b.zarr", folder / out, sync=sync)
        else:
            with pytest.warns(UserWarning, match=r"zarr is complete, but then came an error: \[Errno") as told:
                vecadd.add_zarr(folder / "a.zarr", folder / "b.zarr", folder / out, sync=sync)
            assert [Path(warning.filename).name for warning in told] == [Path(__file__).name]
            assert ("which it replaced" in str(told[0].message)) == (out == "c.zarr")
    np.testing.assert_array_equal(read(folder / out), total)
    left = [name for name in names(folder) if name not in ("a.zarr", "b.zarr", "c.zarr", "new.zarr")]
    assert [bool(re.fullmatch(r"\.c\.zarr\.[0-9a-f]{8}\.tmp", name)) for name in left] == [True] * (out == "c.zarr")
    for name in left:
        np.testing.assert_array_equal(read(folder / name), [7, 7, 7])


def test_what_came_to_the_targets_name_meanwhile_stays(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sum that found no array there replaces none."""
    wait = _zarr._sync

    def come(path: Path) -> None:
        if path.name == "zarr.json":
            make(folder / "new.zarr", np.ones(3), (3,))
        wait(path)

    monkeypatch.setattr(_zarr, "_sync", come)
    with pytest.raises(OSError, match="not empty"):
        vecadd.add_zarr(folder / "a.zarr", folder / "b.zarr", folder / "new.zarr")
    np.testing.assert_array_equal(read(folder / "new.zarr"), np.ones(3))
    assert names(folder) == ["a.zarr", "b.zarr", "c.zarr", "new.zarr"]


def test_what_a_killed_worker_left_of_a_chunk_is_removed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compute = _zarr._compute

    def leave(work: _zarr.Work, *, here: bool) -> None:
        compute(work, here=here)
        (Path(str(work.working)) / "c/0/0.0123abcd.partial").write_bytes(b"half of a chunk")

    monkeypatch.setattr(_zarr, "_compute", leave)
    add(folder)
    assert_sum(folder)
    assert [name for name in files(folder) if name.endswith(".partial")] == []


@pytest.mark.parametrize("out", ["c.zarr", "new.zarr"])
def test_all_is_on_the_disk_before_the_name_and_the_name_before_the_return(
    out: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    wait, exchange, rename = _zarr._sync, _zarr.exchange, Path.rename

    def note(path: Path) -> None:
        wait(path)
        steps.append("/".join(path.relative_to(folder).parts[1:]) if path != folder else "above")

    def swap(first: Path, second: Path) -> None:
        exchange(first, second)
        if second == folder / out:
            steps.append("named")

    def name(path: Path, target: Path) -> None:
        rename(path, target)
        steps.append("named")

    monkeypatch.setattr(_zarr, "_sync", note)
    monkeypatch.setattr(_zarr, "exchange", swap)
    monkeypatch.setattr(Path, "rename", name)
    vecadd.add_zarr(folder / "a.zarr", folder / "b.zarr", folder / out)
    assert steps[-2:] == ["named", "above"]
    assert steps[-4:-2] == ["zarr.json", ""]
    chunks = {str(path.relative_to(folder / out)) for path in (folder / out / "c").rglob("*")}
    assert chunks | {"c"} <= set(steps[:-4])
    steps.clear()
    vecadd.add_zarr(folder / "a.zarr", folder / "b.zarr", folder / out, sync=False)
    assert steps == ["named"]


def test_an_object_store_has_its_chunks_first_and_its_metadata_last(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys: list[str] = []
    put = MemoryStore.set

    async def note(self: MemoryStore, key: str, *rest: Any) -> None:
        keys.append(key)
        await put(self, key, *rest)

    store = MemoryStore()
    with monkeypatch.context() as patch:
        patch.setattr(_zarr, "_core", Failing(3, MemoryError()))
        with pytest.raises(MemoryError):
            vecadd.add_zarr(folder / "a.zarr", folder / "b.zarr", store)
    assert {key.partition("/")[0] for key in store._store_dict} == {"c"}
    with pytest.raises(FileNotFoundError):
        zarr.open_array(store, mode="r")
    with pytest.raises(ValueError, match=r"is not empty, .* \(an addition that failed leaves chunks"):
        vecadd.add_zarr(folder / "a.zarr", folder / "b.zarr", store)
    store = MemoryStore()
    monkeypatch.setattr(MemoryStore, "set", note)
    vecadd.add_zarr(folder / "a.zarr", folder / "b.zarr", store)
    np.testing.assert_array_equal(read(store), read(folder / "a.zarr") + read(folder / "b.zarr"))
    assert (keys[-1], keys.count("zarr.json")) == ("zarr.json", 2)  # the first is of the description, in another store
    assert {key.partition("/")[0] for key in store._store_dict} == {"c", "zarr.json"}


STORED: dict[str, dict[str, Any]] = {
    "gzip": {"compressors": GzipCodec()},
    "zstd": {"compressors": ZstdCodec(checksum=True)},
    "blosc": {"compressors": BloscCodec()},
    "crc32c": {"compressors": Crc32cCodec()},
    "no codec, a part": {"compressors": None},
    "zlib of version 2": {"compressors": numcodecs.Zlib(), "zarr_format": 2},
    "shards": {"shards": (10, 5)},
}


@pytest.mark.parametrize("operand", ["a.zarr", "b.zarr"])
@pytest.mark.parametrize("stored", STORED.values(), ids=STORED.keys())
def test_a_damaged_chunk_is_named_by_its_operand_and_elements(
    stored: dict[str, Any], operand: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make(folder / operand, read(folder / operand), (5, 5), overwrite=True, **stored)
    key = "1.2" if "zarr_format" in stored else "c/1/2"
    (folder / operand / key).write_bytes(b"no such chunk")
    with pytest.raises(OSError, match=r"^\[Errno 5\] elements \[\d+:20, 10:15\] cannot be read: \w") as raised:
        add(folder, chunks=(20, 5))
    assert (raised.value.errno, raised.value.filename) == (errno.EIO, str(folder / operand))
    assert_old(folder)
    assert cli.main(["add", *(f"{folder}/{name}.zarr" for name in "ab"), "-o", f"{folder}/d.zarr"]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"vecadd add: {folder}/{operand}: elements [")
    assert said.count("\n") == 1

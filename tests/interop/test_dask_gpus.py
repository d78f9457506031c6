"""Dask's collections whose blocks are CuPy's: added where they are, by Dask's threads and by a cluster with a worker a
GPU, which dask-cuda starts (the extra fleet-gpu)."""

from collections.abc import Iterator
from itertools import chain, count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from arrays import assert_same_values, numpys_sum, values

import vecadd
from vecadd import _core
from vecadd.dask import add

cupy, dask = pytest.importorskip("cupy"), pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

pytestmark = [
    pytest.mark.gpu,
    # CuPy, Numba and Dask raise these when a worker starts and imports them. Python hides them by default.
    pytest.mark.filterwarnings(
        "ignore::DeprecationWarning",
        "ignore::PendingDeprecationWarning",
        "ignore::ImportWarning",
        "ignore::ResourceWarning",
    ),
]

BLOCKS, ROWS, COLUMNS = 4, 49, 21  # 1,029 elements a block: an odd number, so that vectors leave a rest
NUMBERS = count()
SECONDS = 60  # for a cluster that hangs: the longest step took 3 s on two H200s

PAIRS = [("float32", "float32"), ("float16", "float32"), ("int32", "int32"), ("complex64", "float32")]


@pytest.fixture(autouse=True)
def gpu(runtime: str | None) -> None:
    if runtime != "gpu":
        pytest.skip("needs a GPU")


@pytest.fixture(scope="module")
def client(runtime: str | None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Of two workers in processes of their own, each with another GPU as its first one."""
    if runtime != "gpu" or len(_core.gpu_facts()) < 2:
        pytest.skip("needs two GPUs")
    dask_cuda = pytest.importorskip("dask_cuda")
    pytest.importorskip("numba.cuda")  # by which Dask moves CuPy's arrays between processes
    folder = str(tmp_path_factory.mktemp("workers"))
    with (
        dask_cuda.LocalCUDACluster(n_workers=2, local_directory=folder, dashboard_address=":0") as cluster,
        cluster.get_client() as found,
    ):
        found.wait_for_workers(2, timeout=SECONDS)
        yield found


def block(dtype: str, seed: int, rows: int, number: int) -> np.ndarray:
    return values(np.dtype(dtype), rows * COLUMNS, 10 * seed + number).reshape(rows, COLUMNS)


def make(dtype: str, seed: int, rows: int, spread: int, block_id: tuple[int, int]) -> Any:
    """Makes a block, where a task runs: on each device in turn."""
    with cupy.cuda.Device(block_id[0] % spread):
        return cupy.asarray(block(dtype, seed, rows, block_id[0]))


def made(dtype: str, seed: int, *, blocks: int = BLOCKS, rows: int = ROWS, spread: int = 1) -> tuple[Any, np.ndarray]:
    """A collection of CuPy's blocks, and its elements. Its name is new: a cluster does not compute again what it still
    keeps under an old one."""
    chunks, meta, name = ((rows,) * blocks, (COLUMNS,)), cupy.empty((0, 0), dtype), f"made-{next(NUMBERS)}"
    collection = da.map_blocks(make, dtype, seed, rows, spread, chunks=chunks, dtype=dtype, meta=meta, name=name)
    return collection, np.concatenate([block(dtype, seed, rows, number) for number in range(blocks)])


def look(x: Any) -> tuple[np.ndarray, int, tuple[int, ...]]:
    """Looks at a block where it is: its elements, its device's ordinal there, and which GPU that is."""
    assert type(x) is cupy.ndarray, type(x)
    return x.get(), x.device.id, which_gpu(x.device.id)


def which_gpu(device: int = 0) -> tuple[int, ...]:
    facts = _core.gpu_facts()[device]
    return facts["pci_domain"], facts["pci_bus"], facts["pci_device"]


def assert_sum(blocks: Any, want: np.ndarray) -> None:
    assert_same_values(np.concatenate([each[0] for each in blocks]), want)


# --- Dask's threads


def by_threads(collection: Any) -> list[Any]:
    """Its blocks, in order."""
    return [look(each) for each in dask.compute(*collection.to_delayed().ravel(), scheduler="threads", num_workers=4)]


@pytest.mark.parametrize(("left", "right"), PAIRS)
def test_the_sum_is_numpys_and_its_blocks_are_cupys(left: str, right: str) -> None:
    (x, a), (y, b) = made(left, 1), made(right, 2)
    assert_sum(by_threads(add(x, y)), numpys_sum(a, b))


def test_a_number_is_added_to_each_block() -> None:
    x, a = made("float32", 1)
    assert_sum(by_threads(add(2.5, x)), numpys_sum(2.5, a))


def test_a_row_is_added_to_each_block() -> None:
    (x, a), (row, b) = made("float64", 1), made("float64", 2, blocks=1, rows=1)
    assert_sum(by_threads(add(x, row)), numpys_sum(a, b))


def test_the_addition_is_fused_with_its_neighbours() -> None:
    x, _ = made("float32", 1)
    (graph,) = dask.optimize(add(add(x, x) * 2, x))
    assert len(dict(graph.dask)) == BLOCKS  # tasks


@pytest.mark.parametrize(("left", "right"), PAIRS)
def test_blocks_on_two_devices_are_each_added_where_they_are(left: str, right: str, second_device: int) -> None:
    (x, a), (y, b) = made(left, 1, spread=2), made(right, 2, spread=2)
    got = by_threads(add(x, y))
    assert [device for _, device, _ in got] == [0, second_device] * (BLOCKS // 2)
    assert_sum(got, numpys_sum(a, b))


def test_a_pair_of_blocks_on_two_devices_is_refused(second_device: int) -> None:
    (x, _), (y, _) = made("float32", 1, spread=2), made("float32", 2)
    with pytest.raises(ValueError, match=rf"a is on cuda:{second_device} and b on cuda:0; copy one"):
        by_threads(add(x, y))


# --- A worker a GPU


def kept(client: Any, collection: Any, workers: Any = None) -> Any:
    """The collection, computed and kept on the workers: on any of them, or on those."""
    from distributed import wait

    found = client.persist(collection, workers=workers)
    wait(found, timeout=SECONDS)
    return found


def looked_at(client: Any, collection: Any, workers: Any = None) -> list[Any]:
    """Its blocks that are kept on workers, in order; by tasks on those."""
    from dask.core import flatten
    from distributed import futures_of

    futures = {future.key: future for future in futures_of(collection)}
    in_order = [futures[key] for key in flatten(collection.__dask_keys__())]
    return client.gather([client.submit(look, each, workers=workers, pure=False) for each in in_order])


def where(client: Any, collection: Any) -> set[str]:
    """The workers that keep it."""
    return set(chain.from_iterable(client.who_has(collection).values()))


@pytest.mark.parametrize(("left", "right"), PAIRS)
def test_the_clusters_sum_is_numpys_and_its_blocks_are_cupys(client: Any, left: str, right: str) -> None:
    (x, a), (y, b) = made(left, 1), made(right, 2)
    assert_sum(looked_at(client, kept(client, add(x, y))), numpys_sum(a, b))


def test_a_number_is_added_on_the_cluster(client: Any) -> None:
    x, a = made("float32", 1)
    assert_sum(looked_at(client, kept(client, add(x, 2.5))), numpys_sum(a, 2.5))


def test_each_worker_adds_on_its_own_gpu(client: Any) -> None:
    gpus = client.run(which_gpu)
    assert len(set(gpus.values())) == 2
    for worker, gpu in gpus.items():
        (x, _), (y, _) = made("float32", 1), made("float32", 2)
        total = kept(client, add(x, y), [worker])
        assert where(client, total) == {worker}
        assert {each[-1] for each in looked_at(client, total, [worker])} == {gpu}


def test_operands_that_are_kept_are_added_again_and_again(client: Any) -> None:
    (x, a), (y, b) = (made("float32", seed) for seed in (1, 2))
    x, y = kept(client, x), kept(client, y)
    for _ in range(3):
        assert_sum(looked_at(client, kept(client, add(x, y))), numpys_sum(a, b))


def test_operands_of_two_workers_are_brought_together(client: Any) -> None:
    first, second = client.run(which_gpu)
    (x, a), (y, b) = made("float32", 1), made("float32", 2)
    x, y = kept(client, x, [first]), kept(client, y, [second])
    assert (where(client, x), where(client, y)) == ({first}, {second})
    assert_sum(looked_at(client, kept(client, add(x, y))), numpys_sum(a, b))


def test_a_row_of_one_worker_is_added_to_each_block(client: Any) -> None:
    (x, a), (row, b) = made("float64", 1), made("float64", 2, blocks=1, rows=1)
    assert_sum(looked_at(client, kept(client, add(x, row))), numpys_sum(a, b))


def test_the_sum_comes_to_the_client_as_one_array_of_cupys(client: Any) -> None:
    (x, a), (y, b) = made("float32", 1), made("float32", 2)
    got, device, _ = look(client.compute(add(x, y)).result(timeout=SECONDS))
    assert device == 0
    assert_same_values(got, numpys_sum(a, b))


def test_zarr_arrays_are_added_by_the_workers(client: Any, tmp_path: Path) -> None:
    pytest.importorskip("zarr")
    from zarr_arrays import fill_folder, names, read

    want = fill_folder(tmp_path)
    asked = len(client.run_on_scheduler(additions))
    vecadd.add_zarr(*(tmp_path / f"{name}.zarr" for name in "abc"))  # the client is the active one
    assert len(client.run_on_scheduler(additions)) > asked
    assert_same_values(read(tmp_path / "c.zarr"), want)
    assert names(tmp_path) == ["a.zarr", "b.zarr", "c.zarr"]


def additions(dask_scheduler: Any) -> list[str]:
    """The transitions of tasks that add Zarr arrays."""
    keys = (str(entry[0]) for entry in dask_scheduler.transition_log)
    return [key for key in keys if key.startswith("vecadd-add")]

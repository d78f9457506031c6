"""Where arrays come from and who calls add: dask, xarray, pandas, pyarrow, maps of files, executors, help()."""

import array
import operator
import pickle
import pydoc

import numpy as np
import pytest
from arrays import assert_same, assert_same_values, tame_values

import vecadd
from vecadd import _core

pytestmark = pytest.mark.no_native

N = 300_000


def floats(n=N, seed=0):
    return tame_values(np.dtype("f4"), n, seed)


def test_map_blocks_of_dask_arrays():
    dask_array = pytest.importorskip("dask.array")
    a, b = floats().reshape(300, 1000), floats(seed=1).reshape(300, 1000)
    x, y = dask_array.from_array(a, chunks=(70, 300)), dask_array.from_array(b, chunks=(70, 300))
    total = dask_array.map_blocks(vecadd.add, x, y)
    assert total.dtype == np.float32
    assert_same_values(total.compute(scheduler="threads"), a + b)


def test_dask_arrays_themselves_are_added_their_own_way():
    dask_array = pytest.importorskip("dask.array")
    x = dask_array.from_array(floats(), chunks=70_000)
    total = vecadd.add(x, x)
    assert isinstance(total, dask_array.Array)
    assert_same_values(total.compute(scheduler="threads"), floats() * 2)


def test_apply_ufunc_of_xarray():
    xarray = pytest.importorskip("xarray")
    a = xarray.DataArray(floats().reshape(300, 1000), dims=("y", "x"), coords={"x": np.arange(1000)})
    row = xarray.DataArray(floats(1000, 1), dims="x", coords={"x": np.arange(1000)})
    total = xarray.apply_ufunc(vecadd.add, a, row)
    xarray.testing.assert_identical(total, a + row)
    xarray.testing.assert_identical(vecadd.add(a, row), a + row)


def test_columns_of_pandas():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": floats(), "b": floats(seed=1)})
    total = vecadd.add(frame["a"], frame["b"])
    pandas.testing.assert_series_equal(total, frame["a"] + frame["b"], check_names=False)
    a, b = frame["a"].to_numpy(), frame["b"].to_numpy()
    assert np.shares_memory(a, frame["a"].to_numpy())
    assert _core.explain_route(a, b)["route"] == "host"
    assert_same(vecadd.add(a, b), a + b)


def test_arrays_of_pyarrow_without_a_copy():
    pyarrow = pytest.importorskip("pyarrow")
    a, b = (pyarrow.array(floats(seed=seed)).to_numpy(zero_copy_only=True) for seed in (0, 1))
    assert not a.flags.writeable
    assert _core.explain_route(a, b)["route"] == "host"
    assert_same(vecadd.add(a, b), a + b)
    column = pyarrow.table({"a": floats()}).column("a")
    assert_same(vecadd.add(column, column), np.add(column, column))


def test_maps_of_files(tmp_path):
    for name in "ab":
        floats(seed=ord(name)).tofile(tmp_path / name)
    a, b = (np.memmap(tmp_path / name, np.float32, "r") for name in "ab")
    out = np.memmap(tmp_path / "out", np.float32, "w+", shape=N)
    assert vecadd.add(a, b, out) is out
    out.flush()
    assert_same_values(np.fromfile(tmp_path / "out", np.float32), floats(seed=97) + floats(seed=98))
    assert type(vecadd.add(a, b)) is type(np.add(a, b))


def test_arrays_over_bytes_and_array_module():
    a = np.frombuffer(floats().tobytes(), np.float32)
    assert _core.explain_route(a, a)["route"] == "host"
    assert_same(vecadd.add(a, a), a + a)
    numbers = array.array("f", floats(1000))
    assert_same(vecadd.add(numbers, numbers), np.add(numbers, numbers))


def test_add_itself_can_be_pickled():
    assert pickle.loads(pickle.dumps(vecadd.add)) is vecadd.add


@pytest.mark.parametrize("name", [name for name in vecadd.__all__ if callable(getattr(vecadd, name))])
def test_help_shows_the_call_and_what_it_is_for(name):
    text = pydoc.plain(pydoc.render_doc(getattr(vecadd, name)))
    assert name in text
    assert len(text.splitlines()) > 4
    assert "(...)" not in text.splitlines()[2]


FALLIBLE = ["add", "add_many", "empty_pinned", "explain", "plan", "to_device", "use_gpu", "Plan.__call__"]
FALLIBLE += [f"DeviceArray.{name}" for name in ("copy", "numpy", "reshape", "__array__", "__dlpack__")]


@pytest.mark.parametrize("name", FALLIBLE)
def test_help_names_what_is_raised(name):
    assert "Raises" in pydoc.plain(pydoc.render_doc(operator.attrgetter(name)(vecadd)))

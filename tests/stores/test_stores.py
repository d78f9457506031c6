"""Adding Zarr arrays: the sum, bit for bit numpy.add's, in the chunks, shards and codecs that are asked for."""

from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import zarr
from hypothesis import given
from hypothesis import strategies as st
from npy_files import operands
from zarr.codecs import BloscCodec, GzipCodec, TransposeCodec, ZstdCodec, numcodecs
from zarr.storage import LocalStore, MemoryStore
from zarr_arrays import fill_folder, make, names, read

import vecadd
from vecadd import _zarr

pytestmark = pytest.mark.no_native

DTYPES = ["bool", "int8", "uint64", "float16", "float32", ">f4", "float64", "complex64"]


def assert_same(got: np.ndarray, want: np.ndarray) -> None:
    """Shape, dtype and every bit."""
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    assert got.tobytes() == want.tobytes()


def doubled(
    x: np.ndarray, chunks: tuple[int, ...], *, asked: dict[str, Any] | None = None, **stored: Any
) -> MemoryStore:
    """The sum of an array that is stored so with itself."""
    store, total = MemoryStore(), MemoryStore()
    make(store, x, chunks, **stored)
    vecadd.add_zarr(store, store, total, **(asked or {}))
    return total


@st.composite
def additions(draw: st.DrawFn) -> tuple[list[tuple[np.ndarray, dict[str, Any]]], dict[str, Any]]:
    """Two arrays that broadcast with how they are stored, and how their sum is to be."""
    shape = tuple(draw(st.lists(st.integers(1, 9), max_size=3)))
    chunk = st.integers(1, 5)
    both = []
    for role in range(2):
        left_out = draw(st.integers(0, len(shape)))
        mine = tuple(draw(st.sampled_from((n, 1))) for n in shape[left_out:])
        stored: dict[str, Any] = {"chunks": tuple(draw(chunk) for _ in mine)}
        stored["zarr_format"] = draw(st.sampled_from((2, 3)))
        if mine and stored["zarr_format"] == 3 and draw(st.booleans()):
            stored["shards"] = tuple(extent * draw(st.integers(1, 3)) for extent in stored["chunks"])
        both.append((operands(draw(st.sampled_from(DTYPES)), mine)[role], stored))
    asked: dict[str, Any] = {}
    ndim = len(np.broadcast_shapes(*(x.shape for x, _ in both)))
    if draw(st.booleans()):
        asked["chunks"] = tuple(draw(chunk) for _ in range(ndim))
        if draw(st.booleans()):
            asked["shards"] = tuple(extent * draw(st.integers(1, 3)) for extent in asked["chunks"])
    return both, asked


def test_a_name_is_a_url_in_capitals_too_and_ends_where_its_array_does() -> None:
    assert _zarr.absolute_name("S3://bucket/a.zarr/") == "S3://bucket/a.zarr"
    assert _zarr.absolute_name("file:///tmp/a%20b") == "/tmp/a%20b"
    assert _zarr.absolute_name("local:///tmp/a") == "/tmp/a"
    assert _zarr.absolute_name(LocalStore("/tmp/a")) == "/tmp/a"
    assert _zarr.absolute_name("a.zarr/") == str(Path.cwd() / "a.zarr")


@given(additions(), st.sampled_from([1, 100, _zarr.ENOUGH]))
def test_the_elements_are_those_of_numpy_whatever_the_chunks_and_shards(
    addition: tuple[list[tuple[np.ndarray, dict[str, Any]]], dict[str, Any]], enough: int
) -> None:
    both, asked = addition
    stores = [MemoryStore(), MemoryStore(), MemoryStore()]
    for store, (x, stored) in zip(stores, both, strict=False):
        make(store, x, **stored)
    with patch.object(_zarr, "ENOUGH", enough), patch.object(_zarr, "MOST_TASKS", 5):
        vecadd.add_zarr(*stores, **asked)
    total = zarr.open_array(stores[2])
    assert_same(np.asarray(total[...]), np.asarray(np.add(both[0][0], both[1][0])))
    assert total.metadata.zarr_format == 3
    if "chunks" in asked:
        assert (total.chunks, total.shards) == (asked["chunks"], asked.get("shards") or None)


def test_folders_and_urls_are_read_and_written(tmp_path: Path) -> None:
    want, b = fill_folder(tmp_path), read(tmp_path / "b.zarr")
    vecadd.add_zarr(tmp_path / "a.zarr", f"file://{tmp_path}/b.zarr", "memory://folders/sum")
    assert_same(read("memory://folders/sum"), want)
    vecadd.add_zarr("memory://folders/sum", LocalStore(tmp_path / "b.zarr"), LocalStore(tmp_path / "c.zarr"))
    assert_same(read(tmp_path / "c.zarr"), want + b)
    assert names(tmp_path) == ["a.zarr", "b.zarr", "c.zarr"]
    assert names(tmp_path / "c.zarr") == ["c", "zarr.json"]


@pytest.mark.parametrize("name", ["keep#2", "keep?v=2.zarr", "a%20b.zarr"])
def test_a_path_after_file_is_taken_literally(name: str, tmp_path: Path) -> None:
    """Neither of them names what is under the part of its name before the sign."""
    want = fill_folder(tmp_path)
    make(tmp_path / "keep", np.full(3, 7), (3,))
    vecadd.add_zarr(f"file://{tmp_path}/a.zarr", tmp_path / "b.zarr", f"file://{tmp_path}/{name}")
    assert_same(read(tmp_path / name), want)
    assert_same(read(tmp_path / "keep"), np.full(3, 7))
    assert names(tmp_path) == sorted(["a.zarr", "b.zarr", "c.zarr", "keep", name])


def test_arrays_in_groups_are_named_by_their_path(tmp_path: Path) -> None:
    a, b = operands("int16", (7,))
    group = zarr.create_group(tmp_path / "store.zarr")
    group.create_array("inner/a", data=a, chunks=(3,))
    zipped = zarr.storage.ZipStore(tmp_path / "store.zip", mode="w")
    zarr.create_group(zipped).create_array("b", data=b, chunks=(2,))
    zipped.close()
    vecadd.add_zarr(tmp_path / "store.zarr/inner/a", tmp_path / "store.zip/b", tmp_path / "store.zarr/total")
    assert_same(np.asarray(zarr.open_group(tmp_path / "store.zarr")["total"][:]), a + b)


def test_of_a_link_what_it_points_to_is_replaced_and_keeps_its_permissions(tmp_path: Path) -> None:
    want = fill_folder(tmp_path)
    link = tmp_path / "link.zarr"
    link.symlink_to("c.zarr")
    (tmp_path / "c.zarr").chmod(0o750)
    vecadd.add_zarr(tmp_path / "a.zarr", tmp_path / "b.zarr", link)
    assert_same(read(tmp_path / "c.zarr"), want)
    assert link.is_symlink()
    assert (tmp_path / "c.zarr").stat().st_mode & 0o777 == 0o750


def test_an_archive_is_read_by_a_link_too(tmp_path: Path) -> None:
    a, b = operands("int16", (7,))
    with zarr.storage.ZipStore(tmp_path / "blob", mode="w") as store:
        make(store, a, (3,))
    (tmp_path / "a.zip").symlink_to("blob")
    make(tmp_path / "b.zarr", b, (3,))
    vecadd.add_zarr(tmp_path / "a.zip", tmp_path / "b.zarr", tmp_path / "c.zarr")
    assert_same(read(tmp_path / "c.zarr"), a + b)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_sum_without_axes_has_no_shards(zarr_format: int) -> None:
    """Zarr cannot write shards of an array without axes."""
    total = doubled(np.array(2.5), (), asked={"chunks": (), "shards": ()}, zarr_format=zarr_format)
    assert_same(read(total), np.array(5.0))
    left_out, x, total = MemoryStore(), MemoryStore(), MemoryStore()  # all that there can be of shards: the fill value
    zarr.create_array(left_out, shape=(), dtype="f8", chunks=(), shards=(), fill_value=1.5)
    make(x, np.array(2.5), ())
    vecadd.add_zarr(left_out, x, total)
    assert_same(read(total), np.array(4.0))


def test_boxes_are_whole_chunks_along_the_last_axes_first() -> None:
    mib = 1 << 20
    assert _zarr.box_shape((100, 1000), (10, 100), 8) == (100, 1000)  # all of it
    assert _zarr.box_shape((4096, 4 * mib), (1024, 1024), 8) == (1024, 2048)
    assert _zarr.box_shape((4096, 2048), (256, 1024), 8) == (1024, 2048)
    assert _zarr.box_shape((9, 8 * mib), (1, 4 * mib), 8) == (1, 4 * mib)  # a chunk that is larger
    assert _zarr.box_shape((0, 5), (2, 2), 8) == (2, 6)
    assert _zarr.box_shape((), (), 8) == ()


def test_floating_point_errors_are_the_callers(tmp_path: Path) -> None:
    """On Dask's threads, which do not inherit numpy.errstate."""
    make(tmp_path / "a.zarr", np.full(3, 3e38, "f4"), (3,))
    with np.errstate(over="raise"), pytest.raises(FloatingPointError):
        vecadd.add_zarr(tmp_path / "a.zarr", tmp_path / "a.zarr", tmp_path / "c.zarr")
    assert names(tmp_path) == ["a.zarr"]
    with np.errstate(over="ignore"):
        vecadd.add_zarr(tmp_path / "a.zarr", tmp_path / "a.zarr", tmp_path / "c.zarr")
    assert_same(read(tmp_path / "c.zarr"), np.full(3, np.inf, "f4"))


def test_times_are_added_by_numpy(tmp_path: Path) -> None:
    a, b = operands("<M8[s]", (8,))
    make(tmp_path / "a.zarr", a, (3,))
    make(tmp_path / "b.zarr", b, (3,))
    vecadd.add_zarr(tmp_path / "a.zarr", tmp_path / "b.zarr", tmp_path / "c.zarr")
    assert_same(read(tmp_path / "c.zarr"), a + b)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_negative_zeros_and_payloads_of_nan_stay(dtype: str) -> None:
    """Zarr leaves out chunks that equal the fill value, to which 0.0 and -0.0 are the same in complex numbers."""
    zeros = np.full(8, -0.0, dtype)
    payloads = np.full(8, 0x7FC12345, np.uint32).view(np.float32)
    for x, fill in ((zeros, 0), (payloads, np.nan)):
        total = doubled(x, (4,), fill_value=fill, config={"write_empty_chunks": True})
        assert_same(read(total), np.add(x, x))


def test_chunks_that_both_operands_leave_out_are_left_out_of_the_sum() -> None:
    stores = [MemoryStore(), MemoryStore(), MemoryStore()]
    for store in stores[:2]:
        array = zarr.create_array(store, shape=(100,), chunks=(10,), dtype="float32", fill_value=1.5)
        array[30:40] = 2
    vecadd.add_zarr(*stores)
    total = zarr.open_array(stores[2])
    assert total.fill_value == 3
    assert total.nchunks_initialized == 1
    np.testing.assert_array_equal(total[:], np.repeat([3, 4, 3], [30, 10, 60]))


KEPT: list[tuple[dict[str, Any], str, tuple[Any, ...]]] = [
    ({"compressors": GzipCodec(level=3)}, "keep", (GzipCodec(level=3),)),
    ({"compressors": None}, "keep", ()),
    ({"compressors": GzipCodec(level=3)}, "none", ()),
    ({"compressors": None}, "zstd", (ZstdCodec(),)),
    ({"compressors": None}, "gzip", (GzipCodec(),)),
]


@pytest.mark.parametrize(("stored", "asked", "codecs"), KEPT, ids=str)
def test_compressors_are_kept_or_named(stored: dict[str, Any], asked: str, codecs: tuple[Any, ...]) -> None:
    total = doubled(np.arange(8.0), (4,), asked={"compressor": asked}, **stored)
    assert zarr.open_array(total).compressors == codecs


@pytest.mark.filterwarnings("ignore:Numcodecs codecs are not in the Zarr version 3 specification")
def test_compressors_of_numcodecs_are_kept() -> None:
    codecs = numcodecs.Shuffle(elementsize=8), numcodecs.LZ4()
    total = doubled(np.arange(8.0), (4,), compressors=codecs)
    assert zarr.open_array(total).compressors == codecs
    assert_same(read(total), 2 * np.arange(8.0))


def test_filters_dimension_names_and_codecs_of_version_2_are_kept() -> None:
    from numcodecs import Blosc

    x = np.arange(24.0).reshape(4, 6)
    stores = [MemoryStore() for _ in range(5)]
    make(stores[0], x, (2, 3), filters=TransposeCodec(order=(1, 0)), dimension_names=("y", "x"))
    old = make(stores[1], x, (2, 3), zarr_format=2, compressors=Blosc(cname="lz4", clevel=3, shuffle=2))
    old.attrs["_ARRAY_DIMENSIONS"] = ["lat", "lon"]
    vecadd.add_zarr(stores[0], stores[1], stores[2])
    vecadd.add_zarr(stores[1], stores[0], stores[3])
    first, second = (zarr.open_array(store) for store in stores[2:4])
    assert first.filters == (TransposeCodec(order=(1, 0)),)
    assert (first.metadata.dimension_names, second.metadata.dimension_names) == (("y", "x"), ("lat", "lon"))
    (codec,) = second.compressors
    assert isinstance(codec, BloscCodec)
    configured = codec.to_dict()["configuration"]  # its attributes are enumerations before Zarr 3.4, and strings since
    assert [configured[name] for name in ("cname", "clevel", "shuffle")] == ["lz4", 3, "bitshuffle"]
    np.testing.assert_array_equal(second[:], x + x)
    make(stores[4], x.astype("float32"), (2, 3), compressors=BloscCodec(typesize=4))
    total = MemoryStore()
    vecadd.add_zarr(stores[4], stores[0], total)
    assert zarr.open_array(total).compressors[0].typesize == 8


@pytest.mark.parametrize(("shuffle", "name"), [(0, "noshuffle"), (1, "shuffle"), (2, "bitshuffle")])
def test_blosc_shuffles_as_in_version_2(shuffle: int, name: str) -> None:
    from numcodecs import Blosc

    total = doubled(np.ones(8), (3,), zarr_format=2, compressors=Blosc(shuffle=shuffle))
    (codec,) = zarr.open_array(total).compressors
    assert codec.to_dict()["configuration"]["shuffle"] == name


@pytest.mark.parametrize("names", [["lat"], ["lat", "lon", "height"], "xy"], ids=str)
def test_names_that_are_not_one_for_each_dimension_are_left_out(names: Any) -> None:
    total = doubled(np.ones((2, 2)), (2, 2), zarr_format=2, attributes={"_ARRAY_DIMENSIONS": names})
    assert zarr.open_array(total).metadata.dimension_names is None


def test_as_many_axes_as_zarr_can_write_are_added() -> None:
    total = doubled(np.ones((2, *[1] * 31)), (1,) * 32)
    np.testing.assert_array_equal(read(total), np.full((2, *[1] * 31), 2.0))

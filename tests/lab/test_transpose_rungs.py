"""The transpose rungs: every element is where it belongs, nothing else is written, and what they refuse is named."""

from typing import Any

import numpy as np
import pytest

import vecadd
from vecadd import _core, ladder

RUNGS: dict[str, dict[str, Any]] = {rung["name"]: rung for rung in _core.rungs() if rung["family"] == "transpose"}
SHAPES = [(1, 1), (1, 70), (70, 1), (16, 16), (31, 33), (32, 32), (64, 96), (100, 7), (129, 257)]
EMPTY = [(0, 0), (0, 5), (5, 0)]


def matrix(shape: tuple[int, int]) -> np.ndarray[Any, Any]:
    """No two elements have the same bits."""
    return np.arange(1, shape[0] * shape[1] + 1, dtype=np.uint32).view(np.float32).reshape(shape)


def left(name: str, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return x if RUNGS[name]["sum"] == "copy" else np.ascontiguousarray(x.T)


def test_the_rungs_are_in_order() -> None:
    assert list(RUNGS) == [
        *("transpose_copy", "transpose_copy_float4", "transpose_memcpy"),
        *("transpose_naive", "transpose_shared", "transpose_padded"),
    ]
    assert {(rung["kind"], *rung["dtypes"]) for rung in RUNGS.values()} == {("matrix", "float32")}


@pytest.mark.parametrize("name", RUNGS)
@pytest.mark.parametrize("shape", SHAPES + EMPTY, ids=str)
def test_every_element_is_where_it_belongs(name: str, shape: tuple[int, int], device: int) -> None:
    x = matrix(shape)
    got = ladder.run(name, vecadd.to_device(x))
    assert got.shape == left(name, x).shape
    assert got.numpy().tobytes() == left(name, x).tobytes()


@pytest.mark.parametrize("name", RUNGS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_nothing_is_written_beside_a_poisoned_output(name: str, shape: tuple[int, int], device: int) -> None:
    want = left(name, matrix(shape))
    rows, columns = want.shape
    room = vecadd.to_device(np.empty((rows + 2 * 100, columns), np.float32))
    _core.poison(room)
    poisoned = room.numpy()
    ladder.run(name, vecadd.to_device(matrix(shape)), out=room[100 : 100 + rows])
    got = room.numpy()
    assert got[100 : 100 + rows].tobytes() == want.tobytes()
    assert got[:100].tobytes() == poisoned[:100].tobytes()
    assert got[100 + rows :].tobytes() == poisoned[:100].tobytes()


def test_a_run_is_timed(device: int) -> None:
    x = vecadd.to_device(matrix((64, 64)))
    assert ladder.time("transpose_padded", x, out=vecadd.to_device(np.empty((64, 64), np.float32))) > 0


def test_a_transpose_comes_after_the_work_on_its_matrix(device: int) -> None:
    x = vecadd.to_device(matrix((300, 200)))
    y = vecadd.to_device(np.zeros((300, 200), np.float32))
    vecadd.add(x, x, out=y)
    assert ladder.run("transpose_naive", y).numpy().tobytes() == (2 * matrix((300, 200))).T.copy().tobytes()


def array(shape: tuple[int, ...], dtype: str = "float32") -> Any:
    return vecadd.to_device(np.ones(shape, dtype))


REFUSED = {
    "host arrays": (lambda: (np.ones((4, 5), np.float32),), TypeError, "two-dimensional DeviceArrays of float32"),
    "one dimension": (lambda: (array((20,)),), TypeError, "two-dimensional .* and a is not one"),
    "three": (lambda: (array((2, 2, 5)),), TypeError, "a is not one"),
    "another dtype": (lambda: (array((4, 5), "float64"),), TypeError, "a is not one"),
    "another order": (lambda: (array((4, 10))[:, ::2],), TypeError, "in C order, and a is not one"),
    "a second matrix": (lambda: (array((4, 5)), array((4, 5))), TypeError, "takes one matrix: b must be None"),
    "another shape of out": (
        lambda: (array((4, 5)), None, array((4, 5))),
        ValueError,
        r"out has shape \(4, 5\), and the result \(5, 4\)",
    ),
    "out of a host": (lambda: (array((4, 5)), None, np.ones((5, 4), np.float32)), TypeError, "out is not one"),
}


@pytest.mark.parametrize(("operands", "error", "message"), REFUSED.values(), ids=REFUSED)
def test_what_a_transpose_does_not_take_is_refused(operands: Any, error: Any, message: str, device: int) -> None:
    with pytest.raises(error, match=message):
        ladder.run("transpose_shared", *operands())


def test_an_output_in_the_matrix_is_refused_and_left_as_it_is(device: int) -> None:
    x = vecadd.to_device(matrix((8, 8)))
    for out in (x, x[:8], x.reshape(8, 8)):
        with pytest.raises(ValueError, match="rung transpose_naive: out overlaps an input"):
            ladder.run("transpose_naive", x, out=out)
    assert x.numpy().tobytes() == matrix((8, 8)).tobytes()


def test_a_transpose_has_no_block_to_choose_and_no_parameters(device: int) -> None:
    x = array((4, 5))
    with pytest.raises(ValueError, match="block is for device rungs, and transpose_naive is a matrix rung"):
        ladder.run("transpose_naive", x, block=64)
    with pytest.raises(TypeError, match="has no parameter stride"):
        ladder.run("transpose_naive", x, stride=2)


@pytest.mark.parametrize(
    ("name", "grid", "edge"),
    [("transpose_naive", (5, 7, 1), 16), ("transpose_copy", (3, 4, 1), 32), ("transpose_padded", (3, 4, 1), 32)],
)
def test_facts_are_those_of_the_matrix(name: str, grid: tuple[int, ...], edge: int, device: int) -> None:
    facts = _core.rung_facts(name, "float32", (100, 70))
    assert (facts["grid"], facts["block"], facts["launches"]) == (grid, (edge, edge, 1), 1)
    assert _core.rung_facts(name, "float32", (0, 70))["launches"] == 0


def test_a_kernel_for_other_dtypes_is_not_described(device: int) -> None:
    with pytest.raises(TypeError, match="rung transpose_naive does not take complex64"):
        _core.rung_facts("transpose_naive", "complex64", (1, 1))


BAD_SIZES = {
    "a number": (100, TypeError, r"n must be the tuple \(rows, columns\) of whole numbers, not 100"),
    "three": ((1, 2, 3), TypeError, r"n must be the tuple \(rows, columns\)"),
    "no numbers": ((1, "2"), TypeError, "integer"),
    "less than none": ((-1, 2), ValueError, "extents must be 0 to 2147483647, not -1"),
    "too many": ((2**31, 2), ValueError, "extents must be 0 to 2147483647, not 2147483648"),
}


@pytest.mark.parametrize(("size", "error", "message"), BAD_SIZES.values(), ids=BAD_SIZES)
def test_sizes_that_are_no_matrix_are_refused(size: Any, error: Any, message: str, device: int) -> None:
    with pytest.raises(error, match=message):
        _core.rung_facts("transpose_naive", "float32", size)


def test_a_matrix_of_more_rows_than_a_grid_has_blocks_is_an_error_of_the_launch(device: int) -> None:
    with pytest.raises(RuntimeError, match="transpose_naive"):
        _core.rung_facts("transpose_naive", "float32", (2**21, 1))

"""The matrix rungs: every element is where it belongs, nothing else is written, and what they refuse is named."""

from typing import Any

import numpy as np
import pytest

import vecadd
from vecadd import _core, ladder
from vecadd.bench.recorded import SGEMM

RUNGS: dict[str, dict[str, Any]] = {rung["name"]: rung for rung in _core.rungs() if rung["family"] == "transpose"}
SHAPES = [(1, 1), (1, 70), (70, 1), (16, 16), (31, 33), (32, 32), (64, 96), (100, 7), (129, 257)]
EMPTY = [(0, 0), (0, 5), (5, 0)]
MARGIN = 100  # rows


def matrix(shape: tuple[int, int]) -> np.ndarray[Any, Any]:
    """No two elements have the same bits."""
    return np.arange(1, shape[0] * shape[1] + 1, dtype=np.uint32).view(np.float32).reshape(shape)


def left(name: str, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return x if RUNGS[name]["sum"] == "copy" else np.ascontiguousarray(x.T)


def written(name: str, shape: tuple[int, ...], *factors: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """What the rung leaves in an output of that shape, in whose poisoned memory nothing beside it may be written."""
    rows, columns = shape
    room = vecadd.to_device(np.empty((rows + 2 * MARGIN, columns), np.float32))
    _core.poison(room)
    poisoned = room.numpy()
    a, b = (*map(vecadd.to_device, factors), None)[:2]
    ladder.run(name, a, b, room[MARGIN : MARGIN + rows])
    got = room.numpy()
    for beside in (slice(None, MARGIN), slice(MARGIN + rows, None)):
        assert got[beside].tobytes() == poisoned[beside].tobytes()
    return np.asarray(got[MARGIN : MARGIN + rows])


@pytest.mark.parametrize("name", RUNGS)
@pytest.mark.parametrize("shape", SHAPES + EMPTY, ids=str)
def test_every_element_is_where_it_belongs_and_nothing_is_written_beside(
    name: str, shape: tuple[int, int], device: int
) -> None:
    x = matrix(shape)
    want = left(name, x)
    new = ladder.run(name, vecadd.to_device(x))
    assert new.shape == want.shape
    for got in (new.numpy(), written(name, want.shape, x)):
        assert got.tobytes() == want.tobytes()


def test_a_transpose_comes_after_the_work_on_its_matrix(device: int) -> None:
    x = vecadd.to_device(matrix((300, 200)))
    y = vecadd.to_device(np.zeros((300, 200), np.float32))
    vecadd.add(x, x, out=y)
    assert ladder.run("transpose_naive", y).numpy().tobytes() == (2 * matrix((300, 200))).T.copy().tobytes()


def array(shape: tuple[int, ...], dtype: str = "float32") -> Any:
    return vecadd.to_device(np.ones(shape, dtype))


TRANSPOSE, PRODUCT = "transpose_shared", "sgemm_naive"
REFUSED: dict[str, tuple[str, Any, type[Exception], str]] = {
    "host arrays": (TRANSPOSE, lambda: (np.ones((4, 5), np.float32),), TypeError, "two-dimensional DeviceArrays of"),
    "one dimension": (TRANSPOSE, lambda: (array((20,)),), TypeError, "two-dimensional .* and a is not one"),
    "three": (TRANSPOSE, lambda: (array((2, 2, 5)),), TypeError, "a is not one"),
    "another dtype": (TRANSPOSE, lambda: (array((4, 5), "float64"),), TypeError, "a is not one"),
    "another order": (TRANSPOSE, lambda: (array((4, 10))[:, ::2],), TypeError, "in C order, and a is not one"),
    "a second matrix": (TRANSPOSE, lambda: (array((4, 5)), array((4, 5))), TypeError, "takes one matrix: b must be"),
    "another shape of out": (TRANSPOSE, lambda: (array((4, 5)), None, array((4, 5))), ValueError,
        r"out has shape \(4, 5\), and the result \(5, 4\)"),
    "out of a host": (TRANSPOSE, lambda: (array((4, 5)), None, np.ones((5, 4), "f4")), TypeError, "out is not one"),
    "one factor": (PRODUCT, lambda: (array((4, 5)),), TypeError, "of float32 in C order, and b is not one"),
    "a vector": (PRODUCT, lambda: (array((4, 5)), array((5,))), TypeError, "and b is not one"),
    "other rows": (PRODUCT, lambda: (array((4, 5)), array((6, 2))), ValueError, "a has 5 columns and b 6 rows"),
    "another out": (PRODUCT, lambda: (array((4, 5)), array((5, 2)), array((2, 4))), ValueError, r"shape \(2, 4\), and"),
    "out in a": (PRODUCT, lambda: (x := array((6, 6)), array((6, 6)), x), ValueError, "out overlaps an input"),
    "out in b": (PRODUCT, lambda: (array((6, 6)), x := array((6, 6)), x), ValueError, "out overlaps an input"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "operands", "error", "message"), REFUSED.values(), ids=REFUSED)
def test_what_a_matrix_rung_does_not_take_is_refused(
    name: str, operands: Any, error: Any, message: str, device: int
) -> None:
    with pytest.raises(error, match=message):
        ladder.run(name, *operands())


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


# The SGEMM rungs: exact where float32 is, within the bound of any summation elsewhere.

PRODUCTS: dict[str, dict[str, Any]] = {rung["name"]: rung for rung in _core.rungs() if rung["family"] == "sgemm"}
# Rows, columns and inner elements: below, at and beyond the edges of each rung's pieces.
PRODUCT_SHAPES = [(1, 1, 1), (1, 1, 100), (5, 3, 0), (8, 32, 4), (32, 32, 32), (33, 65, 17), (64, 64, 8), (128, 128, 8),
          (130, 70, 9)]  # fmt: skip
UNIT = 2.0**-24  # half the distance from 1 to the next float32

Matrix = np.ndarray[Any, Any]


def documents_factors(rows: int, columns: int, inner: int) -> tuple[Matrix, Matrix]:
    """Document 004's: a[i][k] = i + k, b[k][j] = k - j."""
    i, j, k = np.arange(rows)[:, None], np.arange(columns), np.arange(inner)
    return (i + k).astype(np.float32), (k[:, None] - j).astype(np.float32).reshape(inner, columns)


def closed_form(rows: int, columns: int, inner: int) -> Matrix:
    """Document 004's sum over k of (i + k)(k - j), in whole numbers."""
    i, j = np.arange(rows)[:, None], np.arange(columns)
    squares, numbers = inner * (inner - 1) * (2 * inner - 1) // 6, inner * (inner - 1) // 2
    return squares + (i - j) * numbers - inner * i * j


def product(name: str, a: Matrix, b: Matrix) -> Matrix:
    return written(name, (a.shape[0], b.shape[1]), a, b)


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("shape", PRODUCT_SHAPES, ids=str)
def test_the_documents_product_is_its_closed_form(name: str, shape: tuple[int, int, int], device: int) -> None:
    """No partial sum exceeds 2^24 at these sizes: float32 is exact by any order of summation."""
    a, b = documents_factors(*shape)
    np.testing.assert_array_equal(product(name, a, b), closed_form(*shape))


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("shape", [(65, 33, 7), (40, 130, 300)], ids=str)
def test_a_product_is_within_the_bound_of_any_summation(name: str, shape: tuple[int, int, int], device: int) -> None:
    """|error| <= gamma * |a| |b| with gamma = k u / (1 - k u) for k terms, by whatever order they are added and whether
    or not a product is rounded (Higham, Accuracy and Stability of Numerical Algorithms, 2002, section 3.5)."""
    rows, columns, inner = shape
    random = np.random.default_rng(sum(shape))
    a = random.standard_normal((rows, inner)).astype(np.float32)
    b = random.standard_normal((inner, columns)).astype(np.float32)
    exact, terms = a.astype(np.float64) @ b.astype(np.float64), np.abs(a).astype(np.float64) @ np.abs(b)
    assert np.all(np.abs(product(name, a, b) - exact) <= bound(inner) * terms)


def bound(inner: int) -> float:
    """The error of a sum of ``inner`` products in shares of its magnitudes, and one unit of the reference's."""
    return (inner + 1) * UNIT / (1 - (inner + 1) * UNIT)


def test_an_infinity_stays_in_its_row_and_its_column(device: int) -> None:
    """The zeros beyond an edge are multiplied with zeros alone: an infinity times one of them would be NaN."""
    a, b = np.ones((130, 9), np.float32), np.ones((9, 70), np.float32)
    a[129, 8] = np.inf
    for name in PRODUCTS:
        want = np.full((130, 70), 9, np.float32)
        want[129] = np.inf
        np.testing.assert_array_equal(product(name, a, b), want)


def test_without_an_output_the_product_is_new_memory(device: int) -> None:
    a, b = documents_factors(5, 7, 3)
    got = ladder.run("sgemm_tiled", vecadd.to_device(a), vecadd.to_device(b))
    assert got.shape == (5, 7)
    np.testing.assert_array_equal(got.numpy(), closed_form(5, 7, 3))
    assert ladder.time("sgemm_tiled", vecadd.to_device(a), vecadd.to_device(b), got) > 0


@pytest.mark.parametrize(
    ("name", "grid", "block"),
    [("sgemm_naive", (4, 17, 1), (32, 8, 1)), ("sgemm_shared", (4, 5, 1), (32, 32, 1)),
     ("sgemm_tiled", (1, 2, 1), (16, 16, 1)), ("sgemm_tuned", (2, 3, 1), (16, 16, 1))],
)  # fmt: skip
def test_a_block_makes_the_piece_that_its_row_says(
    name: str, grid: tuple[int, ...], block: tuple[int, ...], device: int
) -> None:
    facts = _core.rung_facts(name, "float32", (130, 100, 50))
    assert (facts["grid"], facts["block"], facts["launches"]) == (grid, block, 1)
    with pytest.raises(TypeError, match=r"n must be the tuple \(rows, columns, inner\)"):
        _core.rung_facts(name, "float32", (130, 100))


@pytest.mark.parametrize("name", ["sgemm_naive", "sgemm_shared", "sgemm_tuned"])
def test_the_documents_grids_make_as_many_elements_as_ours_of_its_size(name: str, device: int) -> None:
    x, y, _ = _core.rung_facts(name, "float32", (8192, 16384, 8))["grid"]
    assert x * y == int(SGEMM[name]["grid"])
    assert x * y * PRODUCTS[name]["tile"][0] * PRODUCTS[name]["tile"][1] == 2**27


def test_the_documents_grid_of_the_tiled_rung_makes_128_times_fewer(device: int) -> None:
    assert _core.rung_facts("sgemm_tiled", "float32", (1024, 1024, 8))["grid"] == (8, 8, 1)
    assert int(SGEMM["sgemm_tiled"]["grid"]) == 8 * 8
    assert 8 * 8 * 128 * 128 == 2**27 // 128

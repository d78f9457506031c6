"""The SGEMM rungs: exact where float32 is, within the bound of any summation elsewhere."""

from typing import Any

import numpy as np
import pytest

import vecadd
from vecadd import _core, ladder

RUNGS: dict[str, dict[str, Any]] = {rung["name"]: rung for rung in _core.rungs() if rung["family"] == "sgemm"}
# Rows, columns and inner elements: below, at and beyond the edges of each rung's pieces.
SHAPES = [(1, 1, 1), (1, 1, 100), (5, 3, 0), (8, 32, 4), (32, 32, 32), (33, 65, 17), (64, 64, 8), (128, 128, 8),
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
    """By the rung, into poisoned memory."""
    out = vecadd.to_device(np.empty((a.shape[0], b.shape[1]), np.float32))
    _core.poison(out)
    ladder.run(name, vecadd.to_device(a), vecadd.to_device(b), out)
    return np.asarray(out.numpy())


def test_the_rungs_are_in_order() -> None:
    assert list(RUNGS) == ["sgemm_naive", "sgemm_shared", "sgemm_tiled", "sgemm_tuned"]
    assert {rung["kind"] for rung in RUNGS.values()} == {"matrix"}


@pytest.mark.parametrize("name", RUNGS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_documents_product_is_its_closed_form(name: str, shape: tuple[int, int, int], device: int) -> None:
    """No partial sum exceeds 2^24 at these sizes: float32 is exact by any order of summation."""
    a, b = documents_factors(*shape)
    np.testing.assert_array_equal(product(name, a, b), closed_form(*shape))


@pytest.mark.parametrize("name", RUNGS)
def test_a_larger_product_is_the_closed_form_but_for_rounding(name: str, device: int) -> None:
    """The document's own bound, 1e-4 of the larger value, would fail near 0: the error is one of the terms added."""
    a, b = documents_factors(70, 90, 400)
    terms = np.abs(a).astype(np.float64) @ np.abs(b)
    assert np.all(np.abs(product(name, a, b) - closed_form(70, 90, 400)) <= bound(400) * terms)


@pytest.mark.parametrize("name", RUNGS)
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
    """The error bound of a sum of ``inner`` products, in shares of the sum of their magnitudes; and one unit for the
    reference's own."""
    return (inner + 1) * UNIT / (1 - (inner + 1) * UNIT)


@pytest.mark.parametrize("name", RUNGS)
def test_nothing_is_written_beside_the_product(name: str, device: int) -> None:
    a, b = documents_factors(35, 37, 11)
    room = vecadd.to_device(np.full((235, 37), 7, np.float32))
    ladder.run(name, vecadd.to_device(a), vecadd.to_device(b), room[100:135])
    want = np.full((235, 37), 7, np.float32)
    want[100:135] = closed_form(35, 37, 11)
    np.testing.assert_array_equal(room.numpy(), want)


def test_an_infinity_stays_in_its_row_and_its_column(device: int) -> None:
    """The zeros beyond an edge are multiplied with zeros alone: an infinity times one of them would be NaN."""
    a, b = np.ones((130, 9), np.float32), np.ones((9, 70), np.float32)
    a[129, 8] = np.inf
    for name in RUNGS:
        want = np.full((130, 70), 9, np.float32)
        want[129] = np.inf
        np.testing.assert_array_equal(product(name, a, b), want)


def test_without_an_output_the_product_is_new_memory(device: int) -> None:
    a, b = documents_factors(5, 7, 3)
    got = ladder.run("sgemm_tiled", vecadd.to_device(a), vecadd.to_device(b))
    assert got.shape == (5, 7)
    np.testing.assert_array_equal(got.numpy(), closed_form(5, 7, 3))
    assert ladder.time("sgemm_tiled", vecadd.to_device(a), vecadd.to_device(b), got) > 0


def array(*shape: int) -> Any:
    return vecadd.to_device(np.ones(shape, np.float32))


REFUSED = {
    "one matrix": (lambda: (array(4, 5),), TypeError, "two-dimensional DeviceArrays of float32 in C order, and b is"),
    "a vector": (lambda: (array(4, 5), array(5)), TypeError, "and b is not one"),
    "other rows": (lambda: (array(4, 5), array(6, 2)), ValueError, "a has 5 columns and b 6 rows"),
    "another out": (lambda: (array(4, 5), array(5, 2), array(2, 4)), ValueError, r"shape \(2, 4\), and the result \("),
}  # fmt: skip


@pytest.mark.parametrize(("operands", "error", "message"), REFUSED.values(), ids=REFUSED)
def test_factors_that_do_not_fit_are_refused(operands: Any, error: Any, message: str, device: int) -> None:
    with pytest.raises(error, match=message):
        ladder.run("sgemm_naive", *operands())


def test_an_output_in_a_factor_is_refused(device: int) -> None:
    x, y = array(6, 6), array(6, 6)
    for a, b in ((x, y), (y, x)):
        with pytest.raises(ValueError, match="out overlaps an input"):
            ladder.run("sgemm_shared", a, b, x)


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
    rows, columns, _, thread_rows, thread_columns = RUNGS[name]["tile"]
    assert (columns // thread_columns, rows // thread_rows) == block[:2]
    with pytest.raises(TypeError, match=r"n must be the tuple \(rows, columns, inner\)"):
        _core.rung_facts(name, "float32", (130, 100))


@pytest.mark.parametrize(
    ("name", "elements"), [("sgemm_naive", 2**27), ("sgemm_shared", 2**27), ("sgemm_tuned", 2**27)]
)
def test_the_documents_grids_make_as_many_elements_as_ours_of_its_size(name: str, elements: int, device: int) -> None:
    from vecadd.bench.recorded import SGEMM

    x, y, _ = _core.rung_facts(name, "float32", (8192, 16384, 8))["grid"]
    assert x * y == int(SGEMM[name]["grid"])
    assert x * y * RUNGS[name]["tile"][0] * RUNGS[name]["tile"][1] == elements


def test_the_documents_grid_of_the_tiled_rung_makes_128_times_fewer(device: int) -> None:
    from vecadd.bench.recorded import SGEMM

    assert _core.rung_facts("sgemm_tiled", "float32", (1024, 1024, 8))["grid"] == (8, 8, 1)
    assert int(SGEMM["sgemm_tiled"]["grid"]) == 8 * 8
    assert 8 * 8 * 128 * 128 == 2**27 // 128

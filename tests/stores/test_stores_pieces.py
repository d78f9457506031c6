"""How a sum is divided: boxes of whole chunks that cover it once, in bounded memory, and few runs of them."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vecadd.stores.pieces import (
    MOST_RUNS,
    Pieces,
    Side,
    choose_pieces,
    memory_needed,
    part_of,
    runs_of,
    show_box,
    smallest_piece,
    unfinished,
)

pytestmark = pytest.mark.no_native

EXTENTS = st.integers(1, 40)


@st.composite
def divisions(draw: st.DrawFn) -> tuple[list[Side], Side, int]:
    """Two operands and their sum, chunked in any way, and memory for a chunk of the sum at least."""
    shape = tuple(draw(st.lists(EXTENTS, min_size=1, max_size=3)))
    sides = []
    for _ in range(3):
        mine = shape if len(sides) == 2 else tuple(draw(st.sampled_from((n, 1))) for n in shape)
        sides.append(Side(mine, tuple(draw(EXTENTS) for _ in shape), draw(st.sampled_from((1, 4, 16)))))
    _, least = smallest_piece(sides[:2], sides[2])
    return sides[:2], sides[2], least * draw(st.sampled_from((1, 2, 10, 1000)))


def test_a_part_that_is_no_whole_number_of_chunks_may_lie_in_one_more() -> None:
    side = Side((20, 1), (4, 1), 8)
    assert side.bytes_held((8, 3), 10) == (8 * 8, 2 * 2 * 4 * 8)
    assert side.bytes_held((5, 3), 10) == (5 * 8, 2 * 3 * 4 * 8)
    assert side.bytes_held((19, 3), 10) == (19 * 8, 2 * 5 * 4 * 8)  # there are no more
    assert side.bytes_held((19, 3), 3) == (19 * 8, 2 * 3 * 4 * 8)  # of those at once


def test_a_piece_grows_to_16_mib_where_there_is_memory_for_more() -> None:
    side = Side((1 << 26,), (1 << 16,), 4)
    assert choose_pieces([side, side], side, 1 << 30).piece == (1 << 22,)


def test_a_piece_grows_beyond_that_where_less_is_read_in_all() -> None:
    """Chunks of the operand that lie across those of the sum are read for each piece that they lie in."""
    million = 10**6
    operand, total = Side((3000 * million,), (15 * million,), 1), Side((3000 * million,), (20 * million,), 1)
    assert choose_pieces([operand, operand], total, 10**12).piece == (60 * million,)


def test_runs_are_sixteen_a_thread_and_about_4096_at_most() -> None:
    assert len(runs_of([(0, 10**6)], 2)) == 32
    assert len(runs_of([(0, 10**6)], 1000)) == 4082  # of 245 pieces


@given(divisions())
def test_pieces_cover_the_sum_once_and_consist_of_whole_chunks(division: tuple[list[Side], Side, int]) -> None:
    operands, total, memory = division
    pieces = choose_pieces(operands, total, memory)
    seen = np.zeros(total.shape, int)
    for number in range(len(pieces)):
        box = pieces.box(number)
        seen[box] += 1
        assert pieces.size(number) == seen[box].size
        for part, chunk, n in zip(box, total.chunks, total.shape, strict=True):
            assert part.start % chunk == 0
            assert part.stop % chunk == 0 or part.stop == n
    assert (seen == 1).all()
    assert memory_needed(pieces.piece, operands, total) <= memory


def test_memory_for_less_than_a_chunk_is_refused() -> None:
    side = Side((1000, 1000), (100, 100), 8)
    with pytest.raises(ValueError, match=r"a chunk of the sum of shape \(100, 100\) takes 400000 with"):
        choose_pieces([side, side], side, 399_999)


def test_what_is_on_its_way_counts_by_its_largest_chunks_whoever_has_them() -> None:
    """The parts of the operands and the sum, 8 bytes each here, and twice one chunk: encoded and decoded."""
    small, large = Side((1000,), (1,), 8), Side((1000,), (1000,), 8)
    assert memory_needed((1,), [small, small], small) == 3 * 8 + 2 * 8
    for sides in ([large, small, small], [small, large, small], [small, small, large]):
        assert memory_needed((1,), sides[:2], sides[2]) == 3 * 8 + 2 * 8000


def test_chunks_that_lie_across_those_of_the_target_are_read_once() -> None:
    """Where memory allows: of columns, a piece has all rows."""
    rows, columns = Side((1000, 1000), (1, 1000), 8), Side((1000, 1000), (1000, 1), 8)
    pieces = choose_pieces([rows, columns], rows, 1 << 30)
    assert pieces.piece[0] == 1000
    few = choose_pieces([rows, columns], rows, 4 << 20)
    assert memory_needed(few.piece, [rows, columns], rows) <= 4 << 20
    assert few.piece[0] > 50


def test_a_million_chunks_make_thousands_of_runs_at_most() -> None:
    side = Side((10**6, 1000), (1, 1000), 8)
    pieces = choose_pieces([side, side], side, 1 << 20)
    assert len(pieces) > 10**4
    for threads, most in ((1, 16), (8, 128), (10_000, MOST_RUNS)):
        runs = runs_of([(0, len(pieces))], threads)
        assert most / 2 < len(runs) <= most
        assert [runs[0][0], runs[-1][1]] == [0, len(pieces)]
        assert all(one[1] == other[0] for one, other in pairwise(runs))


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)).map(sorted), max_size=5), st.integers(1, 40))
def test_what_is_unfinished_is_what_no_finished_run_has(finished: list[list[int]], threads: int) -> None:
    done = {number for begin, end in finished for number in range(begin, end)}
    todo = unfinished(30, [(begin, end) for begin, end in finished])
    assert [number for begin, end in todo for number in range(begin, end)] == sorted({*range(30)} - done)
    again = [number for begin, end in runs_of(todo, threads) for number in range(begin, end)]
    assert again == sorted({*range(30)} - done)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2)], ids=str)
def test_a_sum_without_axes_is_one_piece_and_one_without_elements_none(shape: tuple[int, ...]) -> None:
    side = Side(shape, tuple(1 for _ in shape), 8)
    pieces = choose_pieces([side, side], side, 1 << 20)
    assert len(pieces) == math.prod(shape)


def test_boxes_are_shown_as_slices_and_broadcast_axes_stay() -> None:
    box = Pieces((10, 30), (4, 20)).box(5)
    assert show_box(box) == "[8:10, 20:30]"
    assert part_of(box, (10, 1)) == (slice(8, 10), slice(0, 1))
    assert part_of(box, (30,)) == (slice(20, 30),)

"""Where the arrays of a judged call lie: apart, in their memory, and aligned as was asked."""

from random import Random

import pytest

from vecadd.judge.session import GUARD, LINE, Room

pytestmark = pytest.mark.no_native

ROOMS = [Room(n, itemsize) for n in (1, 3, 255, 256, 5000) for itemsize in (1, 2, 4, 8, 16)]


def places(room: Room, alignment: int | None) -> list[tuple[int, int, int]]:
    draw = Random(0).randrange
    return [room.aligned(draw) if alignment is None else room.misaligned(draw, alignment) for _ in range(50)]


@pytest.mark.parametrize("room", ROOMS, ids=str)
@pytest.mark.parametrize("alignment", [None, 16])
def test_the_arrays_have_guards_around_them(room: Room, alignment: int | None) -> None:
    guard = GUARD // room.itemsize
    for a, b, out in places(room, alignment):
        ends = [begin + room.n for begin in (a, b, out)]
        gaps = [a, b - ends[0], out - ends[1], room.elements - ends[2]]
        assert min(gaps) >= guard - LINE


@pytest.mark.parametrize("room", ROOMS, ids=str)
def test_aligned_ones_are_on_lines(room: Room) -> None:
    assert {begin * room.itemsize % LINE for place in places(room, None) for begin in place} == {0}


@pytest.mark.parametrize("alignment", [4, 16, 64])
def test_misaligned_ones_are_aligned_as_asked_and_no_more(alignment: int) -> None:
    offsets = {begin * 4 % LINE for place in places(Room(1000, 4), alignment) for begin in place}
    assert {offset % alignment for offset in offsets} == {0}
    assert any(offset % (2 * alignment) for offset in offsets)


def test_each_place_is_another() -> None:
    assert len(set(places(Room(5000, 4), None))) > 40

"""Few combinations of several axes' values that have all the pairs, or triples, of values: for parametrize."""

import itertools
from collections.abc import Sequence


def covering(strength: int, *axes: Sequence[object]) -> list[tuple[object, ...]]:
    """Combinations of one value of each axis, so chosen that any values of any `strength` axes meet in one of them. A
    full product has them many times over: of 3 x 4 x 6 values it makes 72 combinations, the pairs are in 24."""
    places = list(itertools.combinations(range(len(axes)), min(strength, len(axes))))
    missing = {  # a dict for its order: the choice is the same in every process
        (at, choice): None for at in places for choice in itertools.product(*(range(len(axes[i])) for i in at))
    }
    chosen = []
    while missing:
        row: list[int | None] = [None] * len(axes)
        for i, value in zip(*next(iter(missing)), strict=True):
            row[i] = value
        for i in range(len(axes)):
            if row[i] is None:
                row[i] = max(range(len(axes[i])), key=lambda value, i=i: _gain(row, i, value, places, missing))
        for at in places:
            missing.pop((at, tuple(row[i] for i in at)), None)
        chosen.append(tuple(axis[i] for axis, i in zip(axes, row, strict=True)))
    return chosen


def _gain(
    row: list[int | None],
    axis: int,
    value: int,
    places: list[tuple[int, ...]],
    missing: dict[tuple[tuple[int, ...], tuple[int, ...]], None],
) -> int:
    """How many missing combinations the row would have more with that value."""
    with_it = [*row[:axis], value, *row[axis + 1 :]]
    return sum((at, tuple(with_it[i] for i in at)) in missing for at in places if axis in at)

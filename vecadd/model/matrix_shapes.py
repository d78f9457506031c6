"""The shapes that a matrix rung is measured with, by the elements of its result."""

import math

# Columns of a product's one factor and rows of the other; document 004 does not say how many it had.
INNER = 4096


def near_square(n: int) -> tuple[int, int]:
    """Rows and columns of a matrix of n elements, as near to each other as whole numbers allow, no more rows than
    columns."""
    rows = next(rows for rows in range(math.isqrt(n), 0, -1) if n % rows == 0)
    return rows, n // rows


def extents(family: str, n: int) -> tuple[int, ...]:
    """What the bench gives a matrix rung for n elements of its result: (rows, columns), of "sgemm" (rows, columns,
    inner)."""
    return (*near_square(n), INNER) if family == "sgemm" else near_square(n)

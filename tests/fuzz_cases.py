"""Random calls of add, drawn from a seed and a number: for fuzz_add.py.

A case draws two operands and perhaps an out: dtypes, shapes that broadcast or not, strides of any sign, permuted axes,
misaligned and repeated memory, scalars of Python and NumPy, an out that overlaps, that is too narrow, too small or
read-only, dtypes that are left to NumPy.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from arrays import BFLOAT16, DTYPES, FLOAT8, tame_values, values
from numpy.typing import NDArray

POOL = 1 << 17  # elements of each dtype to draw from
LARGE = 0.03  # the share of cases with rows long enough for our own way through rows and for several threads
PAYS, MIXED_PAYS = 256 << 10, 1 << 20  # bytes of a sum from which rows are ours, of one dtype and of two
ROW = 32  # elements of a row from which they are
NUMPYS = tuple(map(np.dtype, ("longdouble", ">f4", ">i8", "m8[s]")))  # dtypes that are left to numpy.add
LONGS = tuple(map(np.dtype, ("longlong", "ulonglong")))  # ours, and int64 and uint64, but for their type number
SIDES = (0, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 5, 5, 5, 5, 5, 5, 5, 5, 17, 17, 17)
STEPS = (1, 1, 2, -1, -2)
NUMBERS = (0, 1, -1, 7, 300, 70_000, 2**40, 2**80, True, 0.5, -1e6, 1e300, float("inf"), float("nan"), 1j, 2 + 0.5j)


class Cases:
    """The calls of one seed. A call is made of its own copies, so that it can be made twice."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.pool = {key(dtype): values(dtype, POOL, seed) for dtype in DTYPES}
        for dtype in LONGS:
            self.pool[key(dtype)] = values(np.dtype(dtype.name), POOL, seed).view(dtype)
        for dtype in NUMPYS:
            self.pool[key(dtype)] = np.resize(tame_values(np.dtype("i2"), 1000, seed).astype(dtype), POOL)
        truths = np.random.default_rng(seed).integers(0, 256, POOL, np.uint8).view(bool)  # of other bytes too
        self.pool[key(truths.dtype)] = truths

    def call(self, number: int, least: int = 0) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """The call, as a function of ``add``, and its operands, by which a test finds the route that is due;
        ``least``: how many bytes the sum has at least."""
        random = np.random.default_rng((self.seed, number))
        rows = random.random() < LARGE or least > 0
        fortran = rows and random.random() < 0.2
        first = self._dtype(random, rows)
        second = first if random.random() < 0.6 else self._dtype(random, rows)
        shape = self._shape_of_rows(random, first.itemsize, least) if rows else self._shape(random)
        a, b = (self._operand(random, dtype, shape, rows, fortran) for dtype in (first, second))
        out = self._out(random, a, b, first, shape, rows, fortran)
        operands = (a, b) if out is None else (a, b, out)
        if random.random() < 0.1:
            operands = (b, a, *operands[2:])

        def call(add: Callable[..., Any]) -> Any:
            made = copied_together(operands)
            result = add(*made)
            written = made[2] if len(made) == 3 else None
            return result, result is written, written

        return call, operands

    def _dtype(self, random: np.random.Generator, rows: bool) -> np.dtype[Any]:
        kind = random.random()
        some = NUMPYS if kind < 0.04 and not rows else LONGS if kind < 0.08 else DTYPES
        return some[random.integers(len(some))]

    def _shape(self, random: np.random.Generator) -> tuple[int, ...]:
        return tuple(SIDES[k] for k in random.integers(len(SIDES), size=random.integers(0, 5)))

    def _shape_of_rows(self, random: np.random.Generator, itemsize: int, least: int) -> tuple[int, ...]:
        outer = [int(side) for side in random.integers(1, 6, size=random.integers(0, 4))]
        least = max(least, PAYS if random.random() < 0.7 else MIXED_PAYS)
        return (*outer, int(random.integers(least, least + PAYS)) // itemsize // math.prod(outer) + 1)

    def _operand(
        self, random: np.random.Generator, dtype: np.dtype[Any], shape: tuple[int, ...], rows: bool, fortran: bool
    ) -> Any:
        kind = random.random()
        if kind < 0.06:
            return NUMBERS[random.integers(len(NUMBERS))]
        if kind < 0.1:
            return self.pool[key(dtype)][random.integers(POOL)]
        if kind < 0.25:  # some axes repeated or missing
            missing = 0 if fortran else int(random.integers(len(shape) + 1))
            shape = tuple(1 if random.random() < 0.4 else side for side in shape)[missing:]
        elif kind < 0.27 and not rows:  # perhaps of no shape that goes with the other's
            shape = (*shape, int(random.integers(1, 4)))
        return self._laid_out(random, dtype, shape, rows, fortran)

    def _laid_out(
        self, random: np.random.Generator, dtype: np.dtype[Any], shape: tuple[int, ...], rows: bool, fortran: bool
    ) -> NDArray[Any]:
        if rows and shape and random.random() < 0.8:  # rows of elements side by side, and gaps between the rows
            outer = [*shape[:-1], shape[-1] + int(random.choice([0, 0, 7]))]
            steps = [*(int(random.choice([1, 1, -1])) for _ in shape[:-1]), 1]
            order = np.arange(len(shape))
        else:
            plain = random.random() < 0.5
            steps = [1 if plain else STEPS[k] for k in random.integers(len(STEPS), size=len(shape))]
            order = np.arange(len(shape)) if plain else random.permutation(len(shape))
            outer = [shape[axis] * abs(steps[axis]) for axis in order]
        count = math.prod(outer)
        start = int(random.integers(0, max(1, POOL - count)))
        pool = self.pool[key(dtype)][start : start + count]
        whole: NDArray[Any] = pool.copy() if pool.size == count else np.resize(pool, count)
        if random.random() < 0.05:  # at an odd address
            room = np.empty(whole.nbytes + 1, np.uint8)
            room[1:] = whole.view(np.uint8)
            whole = room[1:].view(dtype)
        whole = whole.reshape(outer).transpose(np.argsort(order))
        view = whole[(..., *(slice(None, None, step) for step in steps))]
        view = view[(..., *(slice(side) for side in shape))]
        return view.T if fortran else view

    def _out(
        self,
        random: np.random.Generator,
        a: Any,
        b: Any,
        dtype: np.dtype[Any],
        shape: tuple[int, ...],
        rows: bool,
        fortran: bool,
    ) -> NDArray[Any] | None:
        kind = random.random()
        arrays = [x for x in (a, b) if isinstance(x, np.ndarray) and x.flags.writeable]
        if kind < 0.5:
            return None
        if kind < 0.65 and arrays:
            return arrays[-1]
        if kind < 0.7 and arrays and arrays[0].ndim:  # overlaps in part, or reversed
            return arrays[0][::-1] if random.random() < 0.5 else arrays[0][1:]
        if kind < 0.73:
            out = self._laid_out(random, dtype, shape, rows, fortran)
            out.flags.writeable = False
            return out
        wanted = np.result_type(a, b) if kind < 0.9 and _promotes(a, b) else dtype
        return self._laid_out(random, wanted if key(wanted) in self.pool else dtype, shape, rows, fortran)


def key(dtype: np.dtype[Any]) -> str:
    """Tells dtypes apart that compare equal, long and long long."""
    return dtype.byteorder + dtype.char


OURS = frozenset(map(key, (*DTYPES, *LONGS)))
HALVES = frozenset(map(key, (FLOAT8, np.dtype("f2"), BFLOAT16)))  # to which and from which only NumPy converts


def due(operands: tuple[Any, ...]) -> str | None:
    """The route that an addition of host arrays is certain to take by what vecadd.add promises; None where it makes no
    promise. Written from the promise: it must not ask the code that it judges."""
    inputs, out = operands[:2], operands[2] if len(operands) == 3 else None
    for x, other in (inputs, inputs[::-1]):
        kind = getattr(other, "dtype", None)
        if (
            type(x) is float
            and abs(x) < 1e30
            and kind is not None
            and kind.char in "fd"
            and isinstance(other, np.ndarray)
        ):
            inputs = tuple(kind.type(x) if y is x else y for y in inputs)
    if not all(isinstance(x, np.ndarray | np.generic) and key(x.dtype) in OURS for x in inputs):
        return None
    a, b = (np.asarray(x) for x in inputs)
    if not _promotes(a, b):
        return None
    total = np.promote_types(a.dtype, b.dtype)
    mixed = {key(x.dtype) for x in (a, b)} != {key(total)}
    arrays = [a, b] if out is None else [a, b, out]
    if not all(x.flags.aligned for x in arrays) or key(total) not in OURS:
        return None
    if out is not None and not (key(out.dtype) == key(total) and out.flags.writeable):
        return None
    try:
        shape = np.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        return None
    if not shape or (out is not None and (out.shape != shape or not _apart(a, b, out))):
        return None
    one_order = all(x.flags.c_contiguous for x in arrays) or all(x.flags.f_contiguous for x in arrays)
    if one_order and not mixed and a.shape == b.shape:
        return "host"
    if math.prod(shape) * total.itemsize < (MIXED_PAYS if mixed else PAYS) or (
        mixed and HALVES & {key(x.dtype) for x in (a, b, total.type(0))}
    ):
        return None
    if any(x.ndim < 2 and x.size <= np.getbufsize() and _warns_when_cast(x, total) for x in (a, b)):
        return None  # numpy.add casts all of it before it adds, and names the cast
    views = [np.broadcast_to(x, shape) for x in (a, b)] + ([out] if out is not None else [])
    for axes in (range(len(shape))[::-1], range(len(shape))):
        if all(_rises([abs(x.strides[axis]) for axis in axes if shape[axis] > 1]) for x in views):
            row = next(axis for axis in axes if shape[axis] > 1)
            within = all(x.strides[row] in (0, x.itemsize) for x in views)
            if axes[0] == 0 and not _told_apart(views[:2]):  # NumPy's order is then its own
                return None
            return "host rows" if within and shape[row] >= ROW and (out is None or out.strides[row]) else None
    return None


def _warns_when_cast(x: NDArray[Any], dtype: np.dtype[Any]) -> bool:
    try:
        with np.errstate(invalid="raise"):
            x.astype(dtype)
    except FloatingPointError:
        return True
    return False


def _rises(steps: list[int]) -> bool:
    steps = [step for step in steps if step]
    return steps == sorted(steps)


def _told_apart(views: list[NDArray[Any]]) -> bool:
    """Whether an input walks through each axis and its neighbour."""
    walked = [[step != 0 and side > 1 for step, side in zip(x.strides, x.shape, strict=True)] for x in views]
    return all(any(x[axis] and x[axis + 1] for x in walked) for axis in range(views[0].ndim - 1))


def _apart(a: NDArray[Any], b: NDArray[Any], out: NDArray[Any]) -> bool:
    """Whether out shares no memory with an input, or is the same view of the same memory."""
    return all(
        not np.may_share_memory(x, out)
        or (x.dtype, x.shape, x.strides, x.ctypes.data) == (out.dtype, out.shape, out.strides, out.ctypes.data)
        for x in (a, b)
    )


def _promotes(a: Any, b: Any) -> bool:
    try:
        np.result_type(a, b)
    except (OverflowError, TypeError):
        return False
    return True


def copied_together(operands: tuple[Any, ...]) -> tuple[Any, ...]:
    """The operands on fresh memory; those that share memory share it again, element by element."""
    copies: dict[int, NDArray[np.uint8]] = {}
    made = []
    for x in operands:
        if not isinstance(x, np.ndarray):
            made.append(x)
            continue
        base = x
        while isinstance(base.base, np.ndarray):
            base = base.base
        if id(base) not in copies:
            copies[id(base)] = np.frombuffer(bytearray(base.tobytes("K")) + bytearray(64), np.uint8)
        strides, offset = (x.strides, offset_in(x, base)) if x.size else (None, 0)
        view: NDArray[Any] = np.ndarray(x.shape, x.dtype, copies[id(base)], offset, strides)
        view.flags.writeable = x.flags.writeable
        made.append(view)
    return tuple(made)


def offset_in(x: NDArray[Any], base: NDArray[Any]) -> int:
    return int(x.__array_interface__["data"][0] - base.__array_interface__["data"][0])

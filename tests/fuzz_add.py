"""python tests/fuzz_add.py [--cases N] [--seed S] [--jobs J] [--device] [--json FILE]: random calls beside numpy.add.

A case draws two operands and perhaps an out: dtypes, shapes that broadcast or not, strides of any sign, permuted axes,
misaligned and repeated memory, scalars of Python and NumPy, an out that overlaps, that is too narrow, too small or
read-only, dtypes that are left to NumPy. Both adds get the same call on equal memory; result, memory and warnings must
agree bit for bit, errors in type and words. Where our own code is due, it must have made the sum. A case is drawn from
(seed, number) alone, so that one that fails can be made again by itself.

With --device three cases in four have arrays in device memory, strides and all, that come as
__cuda_array_interface__: there the sum is a DeviceArray in C order, nothing warns, and errors agree in that there is
one. The fourth has its arrays on the host and is added through the GPU, in which the words of errors are our own.
"""

import argparse
import math
import multiprocessing
import os
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
from arrays import BFLOAT16, DTYPES, FLOAT8, bits, tame_values, values
from numpy.typing import NDArray

import vecadd
from vecadd import _core

POOL = 1 << 17  # elements of each dtype to draw from
LARGE = 0.03  # the share of cases with rows long enough for our own way through rows and for several threads
PAYS, MIXED_PAYS = 256 << 10, 1 << 20  # bytes of a sum from which rows are ours, of one dtype and of two
ROW = 32  # elements of a row from which they are
NUMPYS = tuple(map(np.dtype, ("longdouble", ">f4", ">i8", "m8[s]")))  # dtypes that are left to numpy.add
LONGS = tuple(map(np.dtype, ("longlong", "ulonglong")))  # ours, and int64 and uint64, but for their type number
SIDES = (0, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 5, 5, 5, 5, 5, 5, 5, 5, 17, 17, 17)
STEPS = (1, 1, 2, -1, -2)
NUMBERS = (0, 1, -1, 7, 300, 70_000, 2**40, 2**80, True, 0.5, -1e6, 1e300, float("inf"), float("nan"), 1j, 2 + 0.5j)

Add = Callable[..., Any]


class OnDevice:
    """A view, of any strides, of a NumPy array's copy in device memory."""

    def __init__(self, memory: vecadd.DeviceArray, view: NDArray[Any], offset: int) -> None:
        self.memory = memory
        data = memory.__cuda_array_interface__["data"][0] + offset
        self.__cuda_array_interface__ = {
            "shape": view.shape,
            "strides": view.strides,
            "typestr": view.dtype.str,
            "data": (data if view.size else 0, not view.flags.writeable),
            "version": 3,
        }


class Cases:
    """The calls of one seed. A call is made of its own copies, so that it can be made twice."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.pool = {_key(dtype): values(dtype, POOL, seed) for dtype in DTYPES}
        for dtype in LONGS:
            self.pool[_key(dtype)] = values(np.dtype(dtype.name), POOL, seed).view(dtype)
        for dtype in NUMPYS:
            self.pool[_key(dtype)] = np.resize(tame_values(np.dtype("i2"), 1000, seed).astype(dtype), POOL)
        truths = np.random.default_rng(seed).integers(0, 256, POOL, np.uint8).view(bool)  # of other bytes too
        self.pool[_key(truths.dtype)] = truths

    def call(self, number: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """The call as a function of add, and its operands for whoever asks about the route."""
        random = np.random.default_rng((self.seed, number))
        rows = random.random() < LARGE
        fortran = rows and random.random() < 0.2
        first = self._dtype(random, rows)
        second = first if random.random() < 0.6 else self._dtype(random, rows)
        shape = self._shape_of_rows(random, first.itemsize) if rows else self._shape(random)
        a, b = (self._operand(random, dtype, shape, rows, fortran) for dtype in (first, second))
        out = self._out(random, a, b, first, shape, rows, fortran)
        operands = (a, b) if out is None else (a, b, out)
        if random.random() < 0.1:
            operands = (b, a, *operands[2:])

        def call(add: Add) -> Any:
            made = _copied_together(operands)
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

    def _shape_of_rows(self, random: np.random.Generator, itemsize: int) -> tuple[int, ...]:
        outer = [int(side) for side in random.integers(1, 6, size=random.integers(0, 4))]
        least = PAYS if random.random() < 0.7 else MIXED_PAYS
        return (*outer, int(random.integers(least, least + PAYS)) // itemsize // math.prod(outer) + 1)

    def _operand(
        self, random: np.random.Generator, dtype: np.dtype[Any], shape: tuple[int, ...], rows: bool, fortran: bool
    ) -> Any:
        kind = random.random()
        if kind < 0.06:
            return NUMBERS[random.integers(len(NUMBERS))]
        if kind < 0.1:
            return self.pool[_key(dtype)][random.integers(POOL)]
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
        pool = self.pool[_key(dtype)][start : start + count]
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
        if kind < 0.7 and arrays and arrays[0].ndim:  # overlaps in part, or lies the other way round
            return arrays[0][::-1] if random.random() < 0.5 else arrays[0][1:]
        if kind < 0.73:
            out = self._laid_out(random, dtype, shape, rows, fortran)
            out.flags.writeable = False
            return out
        wanted = np.result_type(a, b) if kind < 0.9 and _promotes(a, b) else dtype
        return self._laid_out(random, wanted if _key(wanted) in self.pool else dtype, shape, rows, fortran)


def _key(dtype: np.dtype[Any]) -> str:
    """Tells dtypes apart that compare equal, long and long long."""
    return dtype.byteorder + dtype.char


OURS = frozenset(map(_key, (*DTYPES, *LONGS)))
HALVES = frozenset(map(_key, (FLOAT8, np.dtype("f2"), BFLOAT16)))  # to which and from which only NumPy converts


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
    if not all(isinstance(x, np.ndarray | np.generic) and _key(x.dtype) in OURS for x in inputs):
        return None
    a, b = (np.asarray(x) for x in inputs)
    if not _promotes(a, b):
        return None
    total = np.promote_types(a.dtype, b.dtype)
    mixed = {_key(x.dtype) for x in (a, b)} != {_key(total)}
    arrays = [a, b] if out is None else [a, b, out]
    if not all(x.flags.aligned for x in arrays) or _key(total) not in OURS:
        return None
    if out is not None and not (_key(out.dtype) == _key(total) and out.flags.writeable):
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
        mixed and HALVES & {_key(x.dtype) for x in (a, b, total.type(0))}
    ):
        return None
    views = [np.broadcast_to(x, shape) for x in (a, b)] + ([out] if out is not None else [])
    for axes in (range(len(shape))[::-1], range(len(shape))):
        if all(_rises([abs(x.strides[axis]) for axis in axes if shape[axis] > 1]) for x in views):
            row = next(axis for axis in axes if shape[axis] > 1)
            within = all(x.strides[row] in (0, x.itemsize) for x in views)
            if axes[0] == 0 and not _told_apart(views[:2]):  # NumPy's order is then its own
                return None
            return "host rows" if within and shape[row] >= ROW and (out is None or out.strides[row]) else None
    return None


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


def _copied_together(operands: tuple[Any, ...]) -> tuple[Any, ...]:
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
        strides, offset = (x.strides, _offset(x, base)) if x.size else (None, 0)
        view: NDArray[Any] = np.ndarray(x.shape, x.dtype, copies[id(base)], offset, strides)
        view.flags.writeable = x.flags.writeable
        made.append(view)
    return tuple(made)


def on_device(operands: tuple[Any, ...]) -> Any:
    """What vecadd.add gives for the operands' copies on the device, and leaves there."""
    made, given = _copied_together(operands), []
    memories: dict[int, vecadd.DeviceArray] = {}
    for x in made:
        if isinstance(x, np.ndarray):
            memory = memories.setdefault(id(x.base), vecadd.to_device(x.base))
            given.append(OnDevice(memory, x, _offset(x, x.base)))
        else:
            given.append(x)
    try:
        result = vecadd.add(*given)
    except (TypeError, ValueError, OverflowError):
        return "refused"
    for x in made:  # what is on the device comes back to where it was copied from
        if isinstance(x, np.ndarray):
            x.base[...] = memories[id(x.base)].numpy()
    return _left(made, None if len(made) == 3 else result.numpy())


def on_host(operands: tuple[Any, ...]) -> Any:
    """The same of numpy.add."""
    made = _copied_together(operands)
    try:
        with np.errstate(all="ignore"):
            result = np.add(*made)
    except (TypeError, ValueError, OverflowError):
        return "refused"
    return _left(made, None if len(made) == 3 else result)


def _left(made: tuple[Any, ...], result: Any) -> Any:
    """The sum's dtype, shape and bits, and the bytes around it where it is an operand."""
    total = np.asarray(made[2] if result is None else result)
    told = total.dtype, total.shape, bits(total).tobytes()
    if result is None:
        made[2][...] = 0  # compared by its values: a NaN's sign and payload are nobody's promise
    return told, [x.base.tobytes() for x in made if isinstance(x, np.ndarray)]


def _offset(x: NDArray[Any], base: NDArray[Any]) -> int:
    return int(x.__array_interface__["data"][0] - base.__array_interface__["data"][0])


def through_the_gpu(call: Callable[..., Any], operands: tuple[Any, ...]) -> tuple[Any, Any]:
    """What vecadd.add gives for host arrays that go through the GPU, and what is due: numpy.add's values, dtype, shape
    and warnings in C order, or an error where it has one: of two, either may be found first."""

    def on_gpu(*made: Any) -> Any:
        return vecadd.add(*made, device="cuda")

    got, want = outcome(call, on_gpu), outcome(call, np.add)
    if all(isinstance(told[0], type) for told, _ in (got, want)):
        return "refused", "refused"
    return _in_c_order(got), _in_c_order(want)


def _in_c_order(outcome: Any) -> Any:
    """Without the strides of the arrays that _plain tells of; a cast into out warns for itself here."""
    told, warned = outcome
    return (
        [part[:4] + part[5:] if isinstance(part, tuple) and len(part) > 4 else part for part in told],
        {(category, text.replace(" in cast", " in add")) for category, text in warned},
    )


def sums_on_devices(operands: tuple[Any, ...]) -> bool:
    """Whether the sum's dtype is one that the GPU adds, or there is none."""
    try:
        return np.result_type(*operands[:2]).newbyteorder("=").name in _core.DTYPES
    except (OverflowError, TypeError):
        return False


def suits_devices(operands: tuple[Any, ...]) -> bool:
    """Whether the rules are the same there: an array at least, dtypes that the GPU adds and the interface can name,
    which leaves bfloat16 out, elements at their own alignment, and an out of the sum's own shape that no two elements
    share."""
    arrays = [x for x in operands if isinstance(x, np.ndarray)]
    inputs = [x for x in operands[:2] if isinstance(x, np.ndarray)]
    dtypes = [x.dtype for x in operands if isinstance(x, np.ndarray | np.generic)]
    if not inputs or any(_key(dtype) not in OURS or dtype.kind == "V" for dtype in dtypes):
        return False
    if any(not x.flags.aligned for x in arrays):
        return False
    return len(operands) < 3 or operands[2].shape == np.broadcast_shapes(*(np.shape(x) for x in operands[:2]))


def outcome(call: Callable[[Add], Any], add: Add) -> Any:
    """What can be compared: the sum's kind, dtype, shape, order and bits, or the error; the warnings on the way."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result, is_out, out = call(add)
            told: Any = (_plain(result), is_out, _plain(out))
        except (TypeError, ValueError, OverflowError) as error:
            told = (type(error), str(error))
    return told, [(w.category, str(w.message)) for w in caught]


def _plain(x: Any) -> Any:
    if isinstance(x, np.ndarray | np.generic):
        array = np.asarray(x)
        known = array.dtype in DTYPES
        return (
            type(x),
            x.dtype,
            x.dtype.char,
            x.shape,
            array.strides,
            bits(array).tobytes() if known else repr(array.tolist()),
        )
    return type(x), repr(x)


def run_on_device(seed: int, numbers: Iterable[int]) -> Counter[str]:
    """As run, with the arrays on the device; cases whose rules differ there are left out, and counted."""
    cases = Cases(seed)
    counts: Counter[str] = Counter()
    for number in numbers:
        call, operands = cases.call(number)
        if number % 4 == 3:
            if not sums_on_devices(operands):
                counts["left out"] += 1
                continue
            got, want = through_the_gpu(call, operands)
            if got != want:
                raise AssertionError(
                    f"seed {seed}, case {number}: {_shown(operands)}\ngot  {got!r:.2000}\nwant {want!r:.2000}"
                )
            counts["refused" if got == "refused" else "through the GPU"] += 1
            continue
        try:
            suits = suits_devices(operands)
        except ValueError:  # shapes that do not go together
            suits = False
        if not suits:
            counts["left out"] += 1
            continue
        got, want = on_device(operands), on_host(operands)
        if got != want:
            raise AssertionError(
                f"seed {seed}, case {number}: {_shown(operands)}\ngot  {got!r:.2000}\nwant {want!r:.2000}"
            )
        counts["refused" if got == "refused" else "device"] += 1
    return counts


def run(seed: int, numbers: Iterable[int]) -> Counter[str]:
    """Makes the cases and counts them by route. Raises AssertionError with the first case that differs."""
    cases = Cases(seed)
    routes: Counter[str] = Counter()
    for number in numbers:
        call, operands = cases.call(number)
        got, want = outcome(call, vecadd.add), outcome(call, np.add)
        if got != want:
            raise AssertionError(
                f"seed {seed}, case {number}: {_shown(operands)}\ngot  {got!r:.2000}\nwant {want!r:.2000}"
            )
        route, certain = _route(operands), due(operands)
        if certain not in (None, route):
            raise AssertionError(f"seed {seed}, case {number}: {_shown(operands)}\nwent by {route}, not by {certain}")
        routes[route if certain is None else f"{route}, as due"] += 1
    return routes


def _shown(operands: tuple[Any, ...]) -> list[Any]:
    return [(x.dtype, x.shape, x.strides) if isinstance(x, np.ndarray) else x for x in operands]


def _route(operands: tuple[Any, ...]) -> str:
    try:
        found = _core.explain_route(*operands)
    except (TypeError, ValueError, OverflowError):
        return "refused"
    return f"{found['route']} {found['layout']}" if "layout" in found else str(found["route"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", action="store_true", help="arrays in device memory")
    parser.add_argument("--jobs", type=int, default=1, help="processes that share the cases")
    parser.add_argument("--json", type=Path, help="where the counts go")
    arguments = parser.parse_args()
    if arguments.jobs > 1:  # the processes are threads enough
        os.environ.setdefault("VECADD_NUM_THREADS", "3")
    begin = time.perf_counter()
    parts = [range(job, arguments.cases, arguments.jobs) for job in range(arguments.jobs)]
    with ProcessPoolExecutor(arguments.jobs, mp_context=multiprocessing.get_context("spawn")) as executor:
        routes = sum(
            executor.map(run_on_device if arguments.device else run, repeat(arguments.seed), parts), Counter[str]()
        )
    seconds = time.perf_counter() - begin
    print(f"{arguments.cases} cases of seed {arguments.seed} as numpy.add's in {seconds:.0f} s: {dict(routes)}")
    if arguments.json:
        from vecadd.bench import machine, results, sources

        record = {
            "machine": machine.name(),
            "revision": sources.revision(),
            "numpy": np.__version__,
            "date": time.strftime("%Y-%m-%d"),
            "seed": arguments.seed,
            "cases": arguments.cases,
            "differ": 0,
            "routes": dict(sorted(routes.items())),
        }
        results.save(arguments.json, record)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""python tests/fuzz_add.py [--cases N] [--seed S] [--jobs J] [--device] [--json FILE]: random calls beside numpy.add.

A case draws two operands and perhaps an out: dtypes, shapes that broadcast or not, strides of any sign, permuted axes,
misaligned and repeated memory, scalars of Python and NumPy, an out that overlaps, that is too narrow, too small or
read-only. Both adds get the same call on equal memory; result, memory and warnings must agree bit for bit, errors in
type and words. A case is drawn from (seed, number) alone, so that one that fails can be made again by itself.

With --device the arrays lie in device memory, strides and all, and come as __cuda_array_interface__. There the sum is a
DeviceArray in C order, nothing warns, and errors agree in that there is one.
"""

import argparse
import json
import multiprocessing
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
from arrays import BFLOAT16, DTYPES, bits, values
from numpy.typing import NDArray

import vecadd
from vecadd import _core

POOL = 1 << 17  # elements of each dtype to draw from
LARGE = 0.02  # the share of cases with rows long enough for our own way through rows and for several threads
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
        self.pool = {dtype: values(dtype, POOL, seed) for dtype in DTYPES}

    def call(self, number: int) -> tuple[Callable[[Add], Any], tuple[Any, ...]]:
        """The call as a function of add, and its operands for whoever asks about the route."""
        random = np.random.default_rng((self.seed, number))
        shape = self._shape(random)
        first = DTYPES[random.integers(len(DTYPES))]
        second = first if random.random() < 0.6 else DTYPES[random.integers(len(DTYPES))]
        a, b = self._operand(random, first, shape), self._operand(random, second, shape)
        out = self._out(random, a, b, first, shape)
        operands = (a, b) if out is None else (a, b, out)
        if random.random() < 0.1:
            operands = (b, a, *operands[2:])

        def call(add: Add) -> Any:
            made = _copied_together(operands)
            result = add(*made)
            written = made[2] if len(made) == 3 else None
            return result, result is written, written

        return call, operands

    def _shape(self, random: np.random.Generator) -> tuple[int, ...]:
        if random.random() < LARGE:
            rows = int(random.integers(1, 4))
            return (rows, int(random.integers(20_000, 300_000)) // rows)
        ndim = int(random.integers(0, 5))
        return tuple(int(side) for side in random.choice([0, 1, 2, 3, 5, 17], ndim, p=[0.03, 0.2, 0.2, 0.2, 0.27, 0.1]))

    def _operand(self, random: np.random.Generator, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Any:
        kind = random.random()
        if kind < 0.06:
            return NUMBERS[random.integers(len(NUMBERS))]
        if kind < 0.1:
            return self.pool[dtype][random.integers(POOL)]
        if kind < 0.25:  # some axes repeated or missing
            shape = tuple(1 if random.random() < 0.4 else side for side in shape)[
                int(random.integers(len(shape) + 1)) :
            ]
        elif kind < 0.27 and max(shape, default=0) < 100:  # perhaps of no shape that goes with the other's
            shape = (*shape, int(random.integers(1, 4)))
        return self._laid_out(random, dtype, shape)

    def _laid_out(self, random: np.random.Generator, dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
        plain = random.random() < 0.5
        steps = [1 if plain else int(random.choice([1, 1, 2, -1, -2])) for _ in shape]
        order = np.arange(len(shape)) if plain else random.permutation(len(shape))
        outer = [shape[axis] * abs(steps[axis]) for axis in order]
        count = int(np.prod(outer, dtype=int))
        start = int(random.integers(0, max(1, POOL - count)))
        whole: NDArray[Any] = np.resize(self.pool[dtype][start : start + count], count)
        if random.random() < 0.05:  # at an odd address
            room = np.empty(whole.nbytes + 1, np.uint8)
            room[1:] = whole.view(np.uint8)
            whole = room[1:].view(dtype)
        whole = whole.reshape(outer).transpose(np.argsort(order))
        return whole[(..., *(slice(None, None, step) for step in steps))]

    def _out(
        self, random: np.random.Generator, a: Any, b: Any, dtype: np.dtype[Any], shape: tuple[int, ...]
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
            out = self._laid_out(random, dtype, shape)
            out.flags.writeable = False
            return out
        wanted = np.result_type(a, b) if kind < 0.9 and _promotes(a, b) else dtype
        return self._laid_out(random, wanted if wanted in self.pool else dtype, shape)


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


def suits_devices(operands: tuple[Any, ...]) -> bool:
    """Whether the rules are the same there: an array at least, no bfloat16, which the interface cannot name, elements
    at their own alignment, and an out of the sum's own shape that no two elements share."""
    arrays = [x for x in operands if isinstance(x, np.ndarray)]
    inputs = [x for x in operands[:2] if isinstance(x, np.ndarray)]
    if not inputs or any(isinstance(x, np.ndarray | np.generic) and x.dtype == BFLOAT16 for x in operands):
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
        return type(x), x.dtype, x.shape, array.strides, bits(array).tobytes() if known else repr(array.tolist())
    return type(x), repr(x)


def run_on_device(seed: int, numbers: Iterable[int]) -> Counter[str]:
    """As run, with the arrays on the device; cases whose rules differ there are left out, and counted."""
    cases = Cases(seed)
    counts: Counter[str] = Counter()
    for number in numbers:
        _, operands = cases.call(number)
        try:
            suits = suits_devices(operands)
        except ValueError:  # shapes that do not go together
            suits = False
        if not suits:
            counts["left out"] += 1
            continue
        got, want = on_device(operands), on_host(operands)
        if got != want:
            shown = [(x.dtype, x.shape, x.strides) if isinstance(x, np.ndarray) else x for x in operands]
            raise AssertionError(f"seed {seed}, case {number}: {shown}\ngot  {got!r:.2000}\nwant {want!r:.2000}")
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
            shown = [(x.dtype, x.shape, x.strides) if isinstance(x, np.ndarray) else x for x in operands]
            raise AssertionError(f"seed {seed}, case {number}: {shown}\ngot  {got!r:.2000}\nwant {want!r:.2000}")
        routes[_route(operands)] += 1
    return routes


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
    begin = time.perf_counter()
    parts = [range(job, arguments.cases, arguments.jobs) for job in range(arguments.jobs)]
    with ProcessPoolExecutor(arguments.jobs, mp_context=multiprocessing.get_context("spawn")) as executor:
        routes = sum(
            executor.map(run_on_device if arguments.device else run, repeat(arguments.seed), parts), Counter[str]()
        )
    seconds = time.perf_counter() - begin
    print(f"{arguments.cases} cases of seed {arguments.seed} as numpy.add's in {seconds:.0f} s: {dict(routes)}")
    if arguments.json:
        from vecadd.bench import machine

        record = {
            "machine": machine.name(),
            "revision": machine.revision(),
            "numpy": np.__version__,
            "date": time.strftime("%Y-%m-%d"),
            "seed": arguments.seed,
            "cases": arguments.cases,
            "differ": 0,
            "routes": dict(sorted(routes.items())),
        }
        arguments.json.write_text(json.dumps(record, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

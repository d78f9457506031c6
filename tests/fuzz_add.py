"""python tests/fuzz_add.py [--cases N] [--seed S] [--jobs J] [--device] [--json FILE]: random calls beside numpy.add.

Both adds get the same call (fuzz_cases.py) on equal memory; result, memory and warnings must agree bit for bit, errors
in type and words. Where our own code is due, it must have made the sum. A case is drawn from (seed, number) alone, so
that one that fails can be made again by itself. Calls are drawn until our own code has added N of them. The others,
which are left to NumPy or refused, are compared and counted too.

With --device three cases in four have arrays in device memory, strides and all, that come as
__cuda_array_interface__: there the sum is a DeviceArray in C order, nothing warns, and errors agree in that there is
one. The fourth has its arrays on the host and is added through the GPU, now and then by both; the words of errors are
then our own.
"""

import argparse
import itertools
import multiprocessing
import os
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import recorded_run
from arrays import DTYPES, bits
from fuzz_cases import OURS, Cases, copied_together, due, key, offset_in
from numpy.typing import NDArray

import vecadd
from vecadd import _core

SHARED, SHARE = 500, 32 << 20  # one case in SHARED is for processor and GPU together, which share sums of SHARE bytes

ROUTES = ("host", "transfer", "hybrid", "device")  # by which our own code adds

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


def on_device(operands: tuple[Any, ...]) -> tuple[Any, str]:
    """What vecadd.add gives for the operands' copies on the device, and leaves there; the route."""
    made, given = copied_together(operands), []
    memories: dict[int, vecadd.DeviceArray] = {}
    for x in made:
        if isinstance(x, np.ndarray):
            memory = memories.setdefault(id(x.base), vecadd.to_device(x.base))
            given.append(OnDevice(memory, x, offset_in(x, x.base)))
        else:
            given.append(x)
    route = _route(tuple(given))
    try:
        result = vecadd.add(*given)
    except (TypeError, ValueError, OverflowError):
        return "refused", route
    for x in made:  # what is on the device comes back to where it was copied from
        if isinstance(x, np.ndarray):
            x.base[...] = memories[id(x.base)].numpy()
    return _left(made, None if len(made) == 3 else result.numpy()), route


def on_host(operands: tuple[Any, ...]) -> Any:
    """The same of numpy.add."""
    made = copied_together(operands)
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
        made[2][...] = 0  # compared by its values: no library promises a NaN's sign and payload
    return told, [x.base.tobytes() for x in made if isinstance(x, np.ndarray)]


def on_device_and_host(operands: tuple[Any, ...]) -> tuple[Any, Any, str]:
    """What vecadd.add gives there, what numpy.add gives here, and the route."""
    got, route = on_device(operands)
    return got, on_host(operands), route


def through_the_gpu(call: Callable[..., Any], operands: tuple[Any, ...], device: str) -> tuple[Any, Any, str]:
    """What vecadd.add gives for host arrays that go through the GPU, and what is due: numpy.add's values, dtype, shape
    and warnings in C order, or an error where it has one: of two, either may be found first. The route."""

    def on_gpu(*made: Any) -> Any:
        return vecadd.add(*made, device=device)

    route = _route(operands, device=device)
    got, want = outcome(call, on_gpu), outcome(call, np.add)
    if all(isinstance(told[0], type) for told, _ in (got, want)):
        return "refused", "refused", route
    return _in_c_order(got), _in_c_order(want), route


def _in_c_order(outcome: Any) -> Any:
    """Without the strides of the arrays that _plain lists; a cast into out warns for itself here."""
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
    if not inputs or any(key(dtype) not in OURS or dtype.kind == "V" for dtype in dtypes):
        return False
    if any(not x.flags.aligned for x in arrays):
        return False
    try:
        return len(operands) < 3 or operands[2].shape == np.broadcast_shapes(*(np.shape(x) for x in operands[:2]))
    except ValueError:  # shapes that do not go together
        return False


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


def run_on_device(seed: int, numbers: Iterable[int], most: int | None = None) -> Counter[str]:
    """As run, with the arrays on the device; cases whose rules differ there are left out, and counted."""
    cases = Cases(seed)
    counts: Counter[str] = Counter()
    for number in numbers:
        if most is not None and ours(counts) >= most:
            break
        shared = number % SHARED == 3
        call, operands = cases.call(number, SHARE if shared else 0)
        if number % 4 == 3:
            suits = sums_on_devices(operands)
            add = partial(through_the_gpu, call, operands, "hybrid" if shared else "cuda")
        else:
            suits, add = suits_devices(operands), partial(on_device_and_host, operands)
        if not suits:
            counts["left out"] += 1
            continue
        got, want, route = add()
        if got != want:
            raise _difference(seed, number, operands, got, want)
        counts["refused" if got == "refused" else route] += 1
    return counts


def run(seed: int, numbers: Iterable[int], most: int | None = None) -> Counter[str]:
    """Makes the cases and counts them by route, until our own code has added ``most``. Raises AssertionError with the
    first case that differs."""
    cases = Cases(seed)
    routes: Counter[str] = Counter()
    for number in numbers:
        if most is not None and ours(routes) >= most:
            break
        call, operands = cases.call(number)
        got, want = outcome(call, vecadd.add), outcome(call, np.add)
        if got != want:
            raise _difference(seed, number, operands, got, want)
        route, certain = _route(operands), due(operands)
        if certain not in (None, route):
            raise AssertionError(f"seed {seed}, case {number}: {_shown(operands)}\nwent by {route}, not by {certain}")
        routes[route if certain is None else f"{route}, as due"] += 1
    return routes


def ours(routes: Mapping[str, int]) -> int:
    """How many of the cases our own code has added."""
    return sum(count for route, count in routes.items() if route.startswith(ROUTES))


def _difference(seed: int, number: int, operands: tuple[Any, ...], got: Any, want: Any) -> AssertionError:
    return AssertionError(f"seed {seed}, case {number}: {_shown(operands)}\ngot  {got!r:.2000}\nwant {want!r:.2000}")


def _shown(operands: tuple[Any, ...]) -> list[Any]:
    return [(x.dtype, x.shape, x.strides) if isinstance(x, np.ndarray) else x for x in operands]


def _route(operands: tuple[Any, ...], **keywords: Any) -> str:
    try:
        found = _core.explain_route(*operands, **keywords)
    except (TypeError, ValueError, OverflowError):
        return "refused"
    return f"{found['route']} {found['layout']}" if "layout" in found else str(found["route"])


def share(seed: int, job: int, jobs: int, cases: int, device: bool) -> Counter[str]:
    """A process's part of the cases: of all numbers, each jobs-th."""
    most = cases * (job + 1) // jobs - cases * job // jobs
    return (run_on_device if device else run)(seed, itertools.count(job, jobs), most)


def _take_three_threads() -> None:
    """In each process, and not in this one, whose number of threads names the machine in the record."""
    os.environ.setdefault("VECADD_NUM_THREADS", "3")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=1000, help="that our own code adds")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", action="store_true", help="arrays in device memory")
    parser.add_argument("--jobs", type=int, default=1, help="processes that share the cases")
    parser.add_argument("--json", type=Path, help="where the counts go")
    arguments = parser.parse_args()
    begin = time.perf_counter()
    jobs = range(arguments.jobs)
    begun = _take_three_threads if arguments.jobs > 1 else None  # the processes are threads enough
    spawned = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(arguments.jobs, mp_context=spawned, initializer=begun) as executor:
        made = partial(share, arguments.seed, jobs=len(jobs), cases=arguments.cases, device=arguments.device)
        routes = sum(executor.map(made, jobs), Counter[str]())
    seconds = time.perf_counter() - begin
    drawn = f"{ours(routes):,} of {routes.total():,} cases of seed {arguments.seed} added by our own code"
    print(f"{drawn}, all as numpy.add's, in {seconds:.0f} s: {dict(routes)}")
    if arguments.json:
        recorded_run.save(
            arguments.json,
            seconds,
            numpy=np.__version__,
            seed=arguments.seed,
            cases=ours(routes),
            drawn=routes.total(),
            differ=0,
            routes=dict(sorted(routes.items())),
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())

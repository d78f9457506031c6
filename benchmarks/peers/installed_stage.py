"""NumPy's own addition with vecadd installed in it beside plain NumPy, in each form in which a program writes it.

Both are the same call of the same process. Both turns follow `vecadd.install`, which plain NumPy's turn undoes before
its clock begins: 0.2 ms of other code leave less in the caches, and 8 MiB of rows then took 3.8 % longer.
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import vecadd
from benchmarks.peers import host_stage
from benchmarks.peers.clocks import ENOUGH, WARM, Timer, mean_in_a_row
from vecadd.bench.contestants import Contestant
from vecadd.bench.operands import HOST, Buffers, WrongSumError
from vecadd.bench.options import Options, find_dtype
from vecadd.bench.run import Machine, Sweep
from vecadd.bench.timing import Cell

SIZES = (1, *(2**power for power in (4, 8, 10, 12, 13, *range(14, 23), 24, 26, 28)))
DTYPES = ("float32",)
NUMBER = 2
ROW = 8192  # elements of a row, which NumPy hands to the loop one after the other


def cells(options: Options, machine: Machine) -> Iterator[Cell]:
    """A cell for each form."""
    del machine
    for name in options.dtypes or DTYPES:
        for n in options.sizes or SIZES:
            for form, (clock, check) in FORMS.items():
                if form == ROWS and n < 2 * ROW:
                    continue
                meeting = [
                    Contestant(f"{who} {form}", HOST, timer, {"form": form}, check=check)
                    for who, timer in (("installed", _installed(clock)), ("numpy", _taken_out(clock)))
                ]
                yield Cell(find_dtype(name), n, meeting, sets=1, reference=f"installed {form}")


def _installed(clock: Timer) -> Timer:
    def timer(sets: Sequence[Buffers]) -> float:
        with vecadd.install():
            return clock(sets)

    return timer


def _taken_out(clock: Timer) -> Timer:
    def timer(sets: Sequence[Buffers]) -> float:
        with vecadd.install():
            pass
        return clock(sets)

    return timer


def _in_place(sets: Sequence[Buffers]) -> float:
    a, b, out, _ = sets[0]
    total = a.copy()
    seconds = mean_in_a_row(functools.partial(np.add, total, b, out=total))
    out[...] = a
    out += b
    return seconds


def _with_a_number(sets: Sequence[Buffers]) -> float:
    a, _, out, _ = sets[0]
    seconds = mean_in_a_row(lambda: a + NUMBER)
    out[...] = a + NUMBER
    return seconds


def _with_a_row(sets: Sequence[Buffers]) -> float:
    a, b, out, _ = sets[0]
    rows = (len(a) // ROW, ROW)
    tall, row, sums = a[: ROW * rows[0]].reshape(rows), b[:ROW], out[: ROW * rows[0]].reshape(rows)
    return mean_in_a_row(functools.partial(np.add, tall, row, out=sums))


def _check_number(buffers: Buffers) -> None:
    _check(buffers.out, np.add(buffers.a, np.array(NUMBER, buffers.a.dtype)))


def _check_rows(buffers: Buffers) -> None:
    rows = len(buffers.a) // ROW
    _check(buffers.out[: rows * ROW], (buffers.a[: rows * ROW].reshape(rows, ROW) + buffers.b[:ROW]).ravel())


def _check(found: Any, want: Any) -> None:
    if not np.array_equal(found.view(np.uint8), want.view(np.uint8)):
        raise WrongSumError("the sum is not plain NumPy's")


def _numpys(form: str) -> Timer:
    """The host stage's clock of NumPy in that form."""
    peer, (clock, into) = host_stage.numpy(), host_stage.FORMS[form]
    return clock(peer, (peer.into if into else peer.new)[""])


ROWS = f"a + row of {ROW}"
FORMS: dict[str, tuple[Timer, Callable[[Buffers], None] | None]] = {
    "a + b": (_numpys("a + b"), None),
    "out=": (_numpys("out="), None),
    "a += b": (_in_place, None),
    f"a + {NUMBER}": (_with_a_number, _check_number),
    ROWS: (_with_a_row, _check_rows),
    "out= after 1 ms": (_numpys("out= after 1 ms"), None),
}

STAGE = Sweep(
    "peer-installed",
    cells,
    f"timed by the host: calls that follow each other on the same operands for {ENOUGH * 1e6:g} us, after "
    f"{WARM * 1e6:g} us of calls that warm up, and single calls after a pause of {host_stage.IDLE * 1e3:g} ms; "
    "vecadd is installed before each turn, and taken out behind its own and before NumPy's",
    needs_gpu=False,
)

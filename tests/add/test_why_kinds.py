"""vecadd.why.noted: additions of one line are noted together where their operands are of one kind, and else apart."""

from typing import Any

import numpy as np
import pytest
from test_why_noted import run

pytestmark = pytest.mark.no_native

N = 20_000  # float64: 160 KB
X, Z, LONG = np.ones(N), np.ones(N), np.ones(3 * N)
MISALIGNED = np.zeros(8 * N + 1, np.uint8)[1:].view(np.float64)

# A line with two kinds of k, one after the other.
APART: dict[str, tuple[str, Any, Any]] = {
    "the other operand itself": ("x + k", X, Z),
    "the other operand turned around": ("x + k", X[::-1], Z[::-1]),
    "the other operand in part": ("x[1:] + k", X[:-1], Z[:-1]),
    "the same elements and others from the same address": ("LONG[::2][:N] + k", LONG[::2][:N], LONG[::3]),
    "a sum in place of a": ("np.add(x, z, out=k)", X, np.ones(N)),
    "a sum in place of b": ("np.add(x, z, out=k)", Z, np.ones(N)),
    "no sum given": ("np.add(x, z, out=k)", None, np.ones(N)),
    "a keyword": ("np.add(x, z, **k)", {}, {"where": True}),
    "a device": ("vecadd.add(x, z, **k)", {}, {"device": "cpu"}),
    "the dtype": ("x + k", X, np.ones(N, np.int64)),
    "the byte order": ("x + k", Z, np.ones(N, ">f8")),
    "the alignment": ("x + k", Z, MISALIGNED),
    "the dimensions": ("x + k", Z, np.ones((1, N))),
    "the memory order": ("x.reshape(200, 100) + k", np.ones((200, 100)), np.ones((100, 200)).T),
    "an array and a number": ("x + k", Z, 1.0),
    "two types of number": ("x + k", 1, 1.0),
    "the size by a quarter": ("k + k", np.ones(N), np.ones(N + N // 4)),
}


@pytest.mark.parametrize("what", APART)
def test_additions_that_differ_in_this_are_noted_apart(what: str) -> None:
    line, first, second = APART[what]
    names = {"x": X, "z": Z, "LONG": LONG, "N": N}
    apart = run(f"for k in ks: {line}", ks=[first, second, first], **names)
    assert sorted(addition.calls for addition in apart.additions) == [1, 2]
    together = run(f"for k in ks: {line}", ks=[first, first], **names)
    assert [addition.calls for addition in together.additions] == [2]

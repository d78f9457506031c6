"""The latency rungs: many small additions of device memory, in pieces or in a chain, each exactly NumPy's sums."""

from typing import Any

import numpy as np
import pytest
from arrays import DTYPES, assert_same_values, numpys_sum, tame_values, values

import vecadd
from vecadd import _core, ladder

RUNGS: dict[str, dict[str, Any]] = {rung["name"]: rung for rung in _core.rungs() if rung["kind"] == "latency"}
CHAINED = [name for name in RUNGS if name != "batched"]
GRAPHS = [name for name in RUNGS if name.startswith("graph")]
LARGE = 1_000_003


def numpys_chain(a: np.ndarray, b: np.ndarray, adds: int) -> np.ndarray:
    """a + b, and b added to that, adds - 1 times, rounded at each step."""
    out = numpys_sum(a, b)
    with np.errstate(all="ignore"):
        for _ in range(adds - 1):
            np.add(out, b, out=out)
    return out


def test_names_are_in_the_order_in_which_one_leads_to_the_next():
    assert ladder.names("latency") == ["launch_loop", "graph", "pdl", "pdl_trigger", "graph_pdl_trigger", "batched"]


@pytest.mark.parametrize("name", RUNGS)
@pytest.mark.parametrize("adds", [1, 2, 7, 1000])
@pytest.mark.parametrize("n", [0, 1, 3, 1003])
def test_pieces_add_up_to_the_whole(device, n, adds, name):
    a, b = values(np.dtype("float32"), n, 1), values(np.dtype("float32"), n, 2)
    out = ladder.run(name, vecadd.to_device(a), vecadd.to_device(b), adds=adds)
    assert_same_values(out.numpy(), numpys_sum(a, b))


@pytest.mark.parametrize("name", CHAINED)
@pytest.mark.parametrize("adds", [1, 2, 7, 300])
@pytest.mark.parametrize("n", [0, 1, 3, 1003])
def test_a_chain_is_numpys_step_by_step(device, n, adds, name):
    a, b = values(np.dtype("float32"), n, 1), values(np.dtype("float32"), n, 2)
    out = ladder.run(name, vecadd.to_device(a), vecadd.to_device(b), adds=adds, chain=1)
    assert_same_values(out.numpy(), numpys_chain(a, b, adds))


@pytest.mark.parametrize(
    ("name", "dtype"), [(name, d) for name in RUNGS for d in DTYPES if str(d) in RUNGS[name]["dtypes"]]
)
def test_every_dtype_is_added(device, name, dtype):
    a, b = values(dtype, 1003, 1), values(dtype, 1003, 2)
    x, y = vecadd.to_device(a), vecadd.to_device(b)
    assert_same_values(ladder.run(name, x, y, adds=7).numpy(), numpys_sum(a, b))
    if name in CHAINED:
        assert_same_values(ladder.run(name, x, y, adds=3, chain=1).numpy(), numpys_chain(a, b, 3))


@pytest.mark.parametrize("name", RUNGS)
def test_pieces_of_a_large_array_add_up(device, name):
    a, b = values(np.dtype("int32"), LARGE, 1), values(np.dtype("int32"), LARGE, 2)
    x, y = vecadd.to_device(a), vecadd.to_device(b)
    assert_same_values(ladder.run(name, x, y, adds=7).numpy(), numpys_sum(a, b))


@pytest.mark.parametrize("name", CHAINED)
def test_a_chain_of_2000_dependent_additions_is_exact(device, name):
    a, b = tame_values(np.dtype("float32"), 40, 1), tame_values(np.dtype("float32"), 40, 2)
    out = ladder.run(name, vecadd.to_device(a), vecadd.to_device(b), adds=2000, chain=1)
    assert_same_values(out.numpy(), a + 2000 * b)

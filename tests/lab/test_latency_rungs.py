"""The latency rungs: many small additions of device memory, in pieces or in a chain, each exactly NumPy's sums."""

from typing import Any

import numpy as np
import pytest
from arrays import DTYPES, assert_same_values, numpys_sum, tame_values, values
from conftest import ON_DOUBLE

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


# Every length, number of additions and chain: tests/c/kernels/test_latency_rungs.c.
CELLS = [(name, d, 1003) for name in RUNGS for d in DTYPES if str(d) in RUNGS[name]["dtypes"]]


@pytest.mark.parametrize(("name", "dtype", "n"), CELLS + [(name, np.dtype("int32"), LARGE) for name in RUNGS], ids=str)
def test_every_dtype_is_added(device, name, dtype, n):
    a, b = values(dtype, n, 1), values(dtype, n, 2)
    x, y = vecadd.to_device(a), vecadd.to_device(b)
    assert_same_values(ladder.run(name, x, y, adds=7).numpy(), numpys_sum(a, b))
    if name in CHAINED:
        assert_same_values(ladder.run(name, x, y, adds=3, chain=1).numpy(), numpys_chain(a, b, 3))


@pytest.mark.parametrize("name", RUNGS)
def test_out_may_be_an_input(device, name):
    a, b = values(np.dtype("float32"), 1003, 1), values(np.dtype("float32"), 1003, 2)
    x, y = vecadd.to_device(a), vecadd.to_device(b)
    assert ladder.run(name, x, y, x, adds=7) is x
    assert_same_values(x.numpy(), numpys_sum(a, b))


@pytest.mark.parametrize("name", CHAINED)
def test_a_chain_into_its_second_input_doubles_at_each_step(device, name):
    a, b = tame_values(np.dtype("int32"), 1003, 1), tame_values(np.dtype("int32"), 1003, 2)
    y = vecadd.to_device(b)
    ladder.run(name, vecadd.to_device(a), y, y, adds=4, chain=1)
    assert_same_values(y.numpy(), (a + b) * np.int32(8))


@pytest.mark.parametrize("order", range(8 if ON_DOUBLE else 2))
@pytest.mark.parametrize("name", RUNGS)
def test_additions_come_after_the_work_on_both_operands(order, name, request, driver, device):
    if ON_DOUBLE:
        request.getfixturevalue("double").reset(order)
    a, b = tame_values(np.dtype("int32"), 1003, 1), tame_values(np.dtype("int32"), 1003, 2)
    x, y = vecadd.to_device(a), vecadd.to_device(b)
    out, twice_x, twice_y = (vecadd.add(z, z, stream=driver.stream()) for z in (x, x, y))
    ladder.run(name, twice_x, twice_y, out, adds=3)
    assert_same_values(out.numpy(), 2 * a + 2 * b)


def test_second_device(second_device):
    a = values(np.dtype("float32"), 1003)
    x = vecadd.to_device(a, second_device)
    for name in RUNGS:
        assert_same_values(ladder.run(name, x, x, adds=7).numpy(), numpys_sum(a, a))
    assert vecadd.to_device(a).device == "cuda:0"


@pytest.mark.parametrize("name", RUNGS)
def test_stages_are_those_of_one_run(device, name):
    a, b = values(np.dtype("float32"), 1003, 1), values(np.dtype("float32"), 1003, 2)
    out = vecadd.to_device(a)
    _core.poison(out)
    stages = _core.latency_stages(name, vecadd.to_device(a), vecadd.to_device(b), out, params={"adds": 7})
    assert_same_values(out.numpy(), numpys_sum(a, b))
    graphs = {"capture", "instantiate", "launch", "destroy"} if name in GRAPHS else set()
    assert stages.keys() == {"issue", "total"} | graphs
    assert 0 < stages["issue"] <= stages["total"] < 10
    assert stages.get("launch", stages["total"]) == stages["total"]
    assert all(0 < stages[stage] < 10 for stage in graphs)


def test_stages_are_of_latency_rungs_alone(device):
    x = vecadd.to_device(np.ones(10, np.float32))
    with pytest.raises(ValueError, match="naive is a device rung: stages are those of the latency rungs"):
        _core.latency_stages("naive", x, x, x)


CALLS = {
    "launch_loop": {"cudaLaunchKernel": 7},
    "graph": {"cudaLaunchKernel": 7, "cudaStreamBeginCapture": 1, "cudaGraphInstantiate": 1, "cudaGraphLaunch": 1},
    "pdl": {"cudaLaunchKernelExC": 7},
    "pdl_trigger": {"cudaLaunchKernelExC": 7},
    "graph_pdl_trigger": {"cudaLaunchKernelExC": 7, "cudaStreamBeginCapture": 1, "cudaGraphLaunch": 1},
    "batched": {"cudaLaunchKernel": 1, "cudaMemcpyAsync": 1},
}


@pytest.mark.parametrize("name", RUNGS)
def test_each_rung_calls_what_it_is_named_after_and_leaves_nothing(double, device, name):
    x = vecadd.to_device(np.ones(1003, np.float32))
    out = vecadd.to_device(np.ones(1003, np.float32))
    ladder.run(name, x, x, out, adds=7)
    before = double.live()
    double.reset(0)
    ladder.run(name, x, x, out, adds=7)
    counted = (
        "cudaLaunchKernel",
        "cudaLaunchKernelExC",
        "cudaMemcpyAsync",
        "cudaStreamBeginCapture",
        "cudaGraphLaunch",
    )
    assert {call: double.calls(call) for call in counted} == {call: CALLS[name].get(call, 0) for call in counted}
    assert double.live() == before


@pytest.mark.parametrize("name", RUNGS)
def test_pieces_of_nothing_are_not_launched(double, device, name):
    x = vecadd.to_device(np.ones(3, np.float32))
    double.reset(0)
    ladder.run(name, x, x, x, adds=1000)
    launches = double.calls("cudaLaunchKernel") + double.calls("cudaLaunchKernelExC")
    assert launches == (1 if name == "batched" else 3)


ONES = np.ones(10, np.float32)
BAD_CALLS = {
    "host arrays": (("graph", ONES, ONES), {}, TypeError, "graph: a latency rung takes DeviceArrays, and a is "),
    "a chain at once": (("batched", "x", "x"), {"chain": 1}, ValueError, "rung batched .* chain must be 0"),
    "no addition": (("graph", "x", "x"), {"adds": 0}, ValueError, r"rung graph: adds .* must be 1 to 1048576, not 0"),
    "too many": (("pdl", "x", "x"), {"adds": 1048577}, ValueError, "must be 1 to 1048576, not 1048577"),
    "half a chain": (("pdl", "x", "x"), {"chain": 2}, ValueError, "must be 0 to 1, not 2"),
    "a block": (("pdl", "x", "x"), {"block": 64}, ValueError, "block is for device rungs, and pdl is a latency rung"),
    "another parameter": (("pdl", "x", "x"), {"stride": 2}, TypeError, "rung pdl has no parameter stride"),
}


@pytest.mark.parametrize(("arguments", "keywords", "error", "message"), BAD_CALLS.values(), ids=BAD_CALLS)
def test_what_a_latency_rung_does_not_take_is_refused(device, arguments, keywords, error, message):
    name, *operands = arguments
    a, b = (vecadd.to_device(ONES) if isinstance(x, str) else x for x in operands)
    out = vecadd.to_device(ONES)
    with pytest.raises(error, match=message):
        ladder.run(name, a, b, out, **keywords)
    assert_same_values(out.numpy(), ONES)


def test_a_dtype_without_a_kernel_is_refused(device):
    x = vecadd.to_device(np.ones(10, np.int16))
    with pytest.raises(TypeError, match="rung pdl does not take int16"):
        ladder.run("pdl", x, x)

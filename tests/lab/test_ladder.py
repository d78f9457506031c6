"""vecadd.ladder: every rung adds, is timed, says what it does not take, and what its launch would be."""

from typing import Any

import numpy as np
import pytest
import sanitized_rungs
from arrays import DTYPES, assert_same_values, numpys_sum, values
from conftest import ON_DOUBLE
from covering import covering

import vecadd
from vecadd import _core, ladder

N = 70_001
HOST, DEVICE, TRANSFER, LATENCY, MATRIX = (ladder.names(kind) for kind in ladder.KINDS)
RUNGS: dict[str, dict[str, Any]] = {rung["name"]: rung for rung in _core.rungs() if rung["kind"] == "device"}
# Rungs that write the sum and nothing else, with the dtypes that each takes. The C test has the others too.
# The transfer rungs are in test_transfer_rungs.py.
WRITTEN = {name: rung["dtypes"] for name, rung in RUNGS.items() if rung["sum"] == "written"}


def numbers(seed, n=N):
    return np.random.default_rng(seed).integers(-1000, 1000, n, np.int32)


def test_names_are_those_of_each_kind_in_one_order():
    assert ladder.names() == HOST + DEVICE + TRANSFER + LATENCY + MATRIX
    known = "'host', 'device', 'transfer', 'latency', 'matrix'"
    with pytest.raises(ValueError, match=f"kind must be {known} or None, not 'gpu'"):
        ladder.names("gpu")


@pytest.mark.parametrize(("n", "name", "dtype"), covering(2, [0, 1, N], HOST, DTYPES), ids=str)
def test_host_rungs_give_numpys_sum(n, name, dtype):
    a, b = values(dtype, n, 1), values(dtype, n, 2)
    asked = {} if name == "one_thread" else {"threads": 3}  # the second share is neither the first nor the last
    assert_same_values(ladder.run(name, a, b, **asked), numpys_sum(a, b))


# Every kernel at one length; the shortest with one dtype. tests/c/kernels/test_device_rungs.c has every length and
# alignment.
KERNELS = [(name, dtype, N) for name in WRITTEN for dtype in DTYPES if str(dtype) in WRITTEN[name]]
SHORTEST = [(name, np.dtype(WRITTEN[name][0]), n) for name in WRITTEN for n in (0, 1)]


@pytest.mark.parametrize(("name", "dtype", "n"), KERNELS + SHORTEST, ids=str)
def test_device_rungs_give_numpys_sum(device, name, dtype, n):
    a, b = values(dtype, n, 1), values(dtype, n, 2)
    got = ladder.run(name, vecadd.to_device(a), vecadd.to_device(b))
    assert_same_values(got.numpy(), numpys_sum(a, b))


@pytest.mark.parametrize("order", range(6 if ON_DOUBLE else 2))
@pytest.mark.parametrize("name", [name for name in WRITTEN if "int32" in WRITTEN[name]])
def test_device_rungs_come_after_the_work_on_both_operands(order, name, request, driver, device):
    if ON_DOUBLE:
        request.getfixturevalue("double").reset(order)
    a, b = numbers(1), numbers(2)
    x, y = vecadd.to_device(a), vecadd.to_device(b)
    out, twice_x, twice_y = (vecadd.add(z, z, stream=driver.stream()) for z in (x, x, y))
    ladder.run(name, twice_x, twice_y, out)
    assert_same_values(out.numpy(), 2 * a + 2 * b)


def test_time_is_seconds_and_fills_out():
    a, out = numbers(1), np.empty(N, np.int32)
    assert 0 < ladder.time("one_thread", a, a, out) < 10
    assert_same_values(out, a + a)


def read_only(x):
    x.flags.writeable = False
    return x


A = numbers(1, 100)
HOST_CALLS = {
    "no such rung": (("nosuch", A, A), {}, ValueError, "no rung is called 'nosuch'; there are one_thread"),
    "nearly a rung": (("thread", A, A), {}, ValueError, r"no rung is called 'thread'; did you mean threads"),
    "a list": (("threads", A, A.tolist()), {}, TypeError, "b, of <class 'list'>, is neither a contiguous DeviceArray"),
    "a strided array": (
        ("threads", A[::2], A[::2]),
        {},
        TypeError,
        "a, of <class 'numpy.ndarray'>, is neither a contiguous DeviceArray",
    ),
    "two dtypes": (("threads", A, A.astype("f4")), {}, ValueError, "100 elements of float32 where a has 100 of int32"),
    "two sizes": (("threads", A, A[:-1]), {}, ValueError, "b has 99 elements"),
    "a read-only out": (("threads", A, A, read_only(A.copy())), {}, ValueError, "read-only"),
    "an out that overlaps": (("threads", A[1:], A[1:], A[:-1]), {}, ValueError, "overlaps an input in part"),
    "host arrays on a device rung": (
        ("naive", A, A),
        {},
        TypeError,
        r"a device rung takes DeviceArrays, and a is a NumPy array; vecadd\.to_device\(a\) makes",
    ),
    "a block on a host rung": (("threads", A, A), {"block": 64}, ValueError, "block is for device rungs"),
    "no threads a block": (("threads", A, A), {"block": 0}, ValueError, "multiple of 32 up to 1024, not 0"),
}


@pytest.mark.parametrize(("arguments", "keywords", "error", "message"), HOST_CALLS.values(), ids=HOST_CALLS)
def test_what_a_rung_does_not_take_is_refused(arguments, keywords, error, message):
    before = A.copy()
    with pytest.raises(error, match=message):
        ladder.run(*arguments, **keywords)
    assert_same_values(A, before)


@pytest.mark.parametrize("block", [1, 33, 1056, 2**31 - 32])
def test_block_that_no_gpu_runs_is_refused(device, block):
    x = vecadd.to_device(A)
    with pytest.raises(ValueError, match=f"multiple of 32 up to 1024, not {block}"):
        ladder.run("naive", x, x, block=block)


def test_device_arrays_on_a_host_rung_are_refused(device):
    x = vecadd.to_device(A)
    with pytest.raises(
        TypeError, match=r"a host rung takes NumPy arrays, and a is a DeviceArray; a\.numpy\(\) makes one"
    ):
        ladder.run("threads", x, x)


def test_operands_on_two_devices_are_refused(second_device):
    x, y = vecadd.to_device(A), vecadd.to_device(A, second_device)
    with pytest.raises(ValueError, match=f"a is on cuda:0 and b on cuda:{second_device}"):
        ladder.run("naive", x, y)


# Device rungs: their parameters, and what is added to.


def operands(dtype: str, n: int = 1027) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Small whole numbers: every dtype represents them and their sums."""
    numbers = np.arange(n)
    return (numbers % 13).astype(dtype), (numbers % 7).astype(dtype)


@pytest.mark.parametrize("name", [name for name in RUNGS if "accumulate" in RUNGS[name]["params"]])
@pytest.mark.parametrize("accumulate", [0, 1])
def test_accumulate_says_whether_out_is_added_to(name: str, accumulate: int, device: int) -> None:
    x, y = operands("float32")
    out = vecadd.to_device(np.full_like(x, 100))
    ladder.run(name, vecadd.to_device(x), vecadd.to_device(y), out, accumulate=accumulate)
    np.testing.assert_array_equal(out.numpy(), 100 * accumulate + x + y)
    fresh = ladder.run(name, vecadd.to_device(x), vecadd.to_device(y), accumulate=accumulate)
    np.testing.assert_array_equal(fresh.numpy(), x + y)


def test_a_race_loses_additions(device: int, runtime: str) -> None:
    if runtime != "gpu":
        pytest.skip("the double runs one thread at a time: nothing is lost there")
    x, y = np.full(1000, 1, np.float32), np.full(1000, 2, np.float32)
    result = ladder.run("race", vecadd.to_device(x), vecadd.to_device(y), block=256)
    assert (result.numpy() < 768).all()


@pytest.mark.parametrize(("name", "param"), [(name, param) for name, rung in RUNGS.items() for param in rung["params"]])
def test_a_parameter_is_taken_within_its_bounds(name: str, param: str, device: int) -> None:
    least, usual, most = RUNGS[name]["params"][param]
    x, y = operands("float32")
    a, b = vecadd.to_device(x), vecadd.to_device(y)
    np.testing.assert_array_equal(ladder.run(name, a, b, **{param: usual}).numpy(), x + y)
    for outside in (least - 1, most + 1):
        with pytest.raises(ValueError, match=f"rung {name}: {param} .* must be {least} to {most}, not {outside}"):
            ladder.run(name, a, b, **{param: outside})


def test_a_parameter_that_is_no_whole_number_is_an_error(device: int) -> None:
    x = vecadd.to_device(np.ones(10, np.float32))
    with pytest.raises(TypeError, match="integer"):
        ladder.run("strided", x, x, stride=2.0)  # type: ignore[arg-type]


def test_the_rungs_for_the_sanitizer_are_all_and_right(device: int) -> None:
    assert sanitized_rungs.main() == 0
    ran = {rung["name"] for rung, *_ in sanitized_rungs.cases()}
    assert ran == {*ladder.names("device"), *ladder.names("latency"), *ladder.names("matrix")} - {"race"}


# rung_facts: what a rung's launch would be, and what its kernel takes of a multiprocessor; nothing is queued.

WIDE = 1 << 20  # elements: more than a block's worth for every rung
ZERO = {
    "registers": 0, "local": 0, "static_shared": 0, "dynamic_shared": 0, "grid": (0, 0, 0), "block": (0, 0, 0),
    "launches": 0, "active_blocks": 0, "occupancy": 0.0, "waves": 0.0, "loads_in_flight": 0, "bytes_per_load": 0,
}  # fmt: skip


@pytest.mark.parametrize("name", RUNGS)
def test_facts_agree_with_each_other_and_the_device(name, device):
    gpu, rung = _core.gpu_facts()[0], RUNGS[name]
    facts = _core.rung_facts(name, rung["dtypes"][-1], WIDE)
    (x, y, z), grid = facts["block"], facts["grid"]
    warps, resident = -(-x * y * z // 32), facts["active_blocks"]
    assert facts["launches"] == 1
    assert rung["block"] in (0, x * y * z)
    assert grid[0] * grid[1] * grid[2] == rung["blocks"] or not rung["blocks"]
    assert 0 < facts["registers"] < 256
    assert facts["local"] == 0, "a register array that is indexed at run time, or spilled registers"
    assert facts["occupancy"] == resident * warps * 32 / gpu["threads_per_multiprocessor"]
    assert 0 < facts["occupancy"] <= 1
    assert facts["waves"] == grid[0] * grid[1] * grid[2] / (resident * gpu["multiprocessors"])


def test_a_grid_covers_the_elements(device):
    facts = _core.rung_facts("naive", "float32", 1000)
    assert (facts["grid"], facts["block"], facts["launches"]) == ((4, 1, 1), (256, 1, 1), 1)
    assert _core.rung_facts("naive", "float32", 1000, block=32)["grid"] == (32, 1, 1)
    assert _core.rung_facts("naive", "complex64", 1000)["grid"] == (8, 1, 1)
    assert _core.rung_facts("float4", "float32", 1003)["grid"] == (1, 1, 1)
    assert _core.rung_facts("block_shape", "float32", 2048, params={"x": 32, "y": 4})["block"] == (32, 4, 2)


def test_several_launches_are_counted_and_the_first_is_shown(device):
    facts = _core.rung_facts("chunked", "float32", 10_000, params={"chunk": 4096})
    assert (facts["launches"], facts["grid"]) == (3, (4, 1, 1))  # a chunk is 1024 vectors


def test_what_add_launches_is_described_too(device):
    assert _core.rung_facts("tuned", "float32", 100)["block"] == (128, 1, 1)


@pytest.mark.parametrize(
    ("name", "params", "block", "shared"),
    [
        ("naive", {}, 0, 0),
        ("async_copy", {"stages": 2}, 256, 2 * 2 * 256 * 16),
        ("async_copy", {"stages": 3}, 1024, 3 * 2 * 1024 * 16),
        ("async_copy", {"stages": 3, "bytes": 4}, 1024, 3 * 2 * 1024 * 4),
    ],
)
def test_shared_memory_is_what_the_launch_asks_for(name, params, block, shared, device):
    facts = _core.rung_facts(name, "float32", WIDE, params=params, block=block)
    assert facts["dynamic_shared"] == shared
    assert facts["active_blocks"] >= 1


@pytest.mark.parametrize("percent", [1, 90, 100, 110, 200])
def test_waves_are_as_many_as_asked_for(percent, device):
    facts = _core.rung_facts("waves", "float32", WIDE * 64, params={"percent": percent})
    resident = facts["active_blocks"] * _core.gpu_facts()[0]["multiprocessors"]
    assert facts["grid"][0] == max(1, (resident * percent + 50) // 100)
    assert facts["waves"] == facts["grid"][0] / resident


def test_waves_have_no_more_blocks_than_work(device):
    assert _core.rung_facts("waves", "float32", 1000, params={"percent": 200})["grid"] == (4, 1, 1)


@pytest.mark.parametrize(
    ("name", "dtype", "loads", "width"),
    [
        ("naive", "float32", 2, 4),
        ("naive", "float16", 2, 2),
        ("naive", "complex128", 2, 8),
        ("single_block", "int8", 3, 1),
        ("float2", "float16", 2, 8),
        ("float4_unroll2", "float64", 4, 16),
        ("half", "bfloat16", 2, 2),
        ("half2", "float16", 2, 4),
        ("half8", "float16", 8, 4),
        ("half8_pack", "bfloat16", 2, 16),
    ],
)
def test_loads_are_those_of_the_dtype(name, dtype, loads, width, device):
    facts = _core.rung_facts(name, dtype, 100)
    assert (facts["loads_in_flight"], facts["bytes_per_load"]) == (loads, width)


def test_an_addition_to_the_sum_loads_it_too(device):
    loads = [
        _core.rung_facts("grid_stride", "float32", 100, params=p)["loads_in_flight"] for p in ({}, {"accumulate": 0})
    ]
    assert loads == [3, 2]
    assert _core.rung_facts("block_range", "float32", 100, params={"accumulate": 1})["loads_in_flight"] == 3


@pytest.mark.parametrize("name", RUNGS)
def test_no_element_is_no_launch(name, device):
    assert _core.rung_facts(name, RUNGS[name]["dtypes"][0], 0) == ZERO


def test_more_elements_than_32_bits_count(device):
    assert _core.rung_facts("naive", "int8", 2**31 + 5, block=1024)["grid"] == (2**21 + 1, 1, 1)


def test_nothing_is_queued(double, device):
    before = double.calls("cudaLaunchKernel")
    _core.rung_facts("naive", "float32", WIDE)
    _core.rung_facts("tuned", "float32", WIDE)
    assert double.calls("cudaLaunchKernel") == before


BAD = {
    "no such rung": (("nosuch", "float32", 10), {}, ValueError, "unknown rung nosuch"),
    "a host rung": (("threads", "float32", 10), {}, ValueError, "rung threads is a host rung, and only a device or"),
    "no such dtype": (("naive", "float8", 10), {}, TypeError, "float8 is not a supported dtype"),
    "a dtype not taken": (("atomic", "int8", 10), {}, TypeError, "rung atomic does not take int8"),
    "fewer than none": (("naive", "int8", -1), {}, ValueError, "n must be a number of elements .* not -1"),
    "more than memory": (("naive", "complex128", 2**60), {}, ValueError, "n must be a number of elements"),
    "an odd block": (("naive", "int8", 1), {"block": 33}, ValueError, "multiple of 32 up to 1024, not 33"),
    "a fixed block": (("tuned", "int8", 1), {"block": 32}, ValueError, "rung tuned has a block size of its own"),
    "no such parameter": (("naive", "int8", 1), {"params": {"k": 1}}, TypeError, "rung naive has no parameter k"),
    "a wild parameter": (("strided", "int8", 1), {"params": {"stride": 0}}, ValueError, "stride .* 1 to 1024, not 0"),
    "no such device": (("naive", "int8", 1), {"device": 99}, ValueError, "99"),
    "a grid too large": (("naive", "int8", 2**40), {}, RuntimeError, "naive"),
}


@pytest.mark.parametrize(("arguments", "keywords", "error", "message"), BAD.values(), ids=BAD)
def test_what_cannot_be_described_is_an_error(arguments, keywords, error, message, device):
    with pytest.raises(error, match=message):
        _core.rung_facts(*arguments, **keywords)


def test_failures_of_the_runtime_are_raised_and_the_next_call_works(double, device):
    for call in ("cudaFuncGetAttributes", "cudaOccupancyMaxActiveBlocksPerMultiprocessor"):
        double.fail(call, 1, 999)
        with pytest.raises(RuntimeError, match=call):
            _core.rung_facts("naive", "float32", 10)
    assert _core.rung_facts("naive", "float32", 10)["launches"] == 1

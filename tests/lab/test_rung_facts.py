"""rung_facts: what a rung's launch would be, and what its kernel takes of a multiprocessor; nothing is queued."""

import pytest

from vecadd import _core, ladder

RUNGS = {rung["name"]: rung for rung in _core.rungs() if rung["kind"] == "device"}
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


def test_rows_say_their_family_and_their_load():
    assert {rung["family"] for rung in RUNGS.values()} == {"kernels", "precision"}
    assert {rung["family"] for rung in _core.rungs() if rung["kind"] == "matrix"} == {"transpose", "sgemm"}
    assert {rung["family"] for rung in _core.rungs() if rung["kind"] not in ("device", "matrix")} == {""}
    assert all(rung["load"] for rung in RUNGS.values())


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


def test_the_ladder_lists_what_can_be_asked():
    assert set(RUNGS) == set(ladder.names("device"))

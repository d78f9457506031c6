"""vecadd.model.advise: every branch of its tree, what it refuses, and that no recorded run contradicts it."""

from dataclasses import replace
from math import prod
from pathlib import Path

import pytest
from modelled import A100, H200, LIMITS, RUNGS, T4

from vecadd import _core, model
from vecadd.figures import read_run
from vecadd.model import Limits, Loaded
from vecadd.model.theory import load_bytes, with_parameters

pytestmark = pytest.mark.no_native

RECORDED = sorted((Path(__file__).parents[2] / "benchmarks" / "results").glob("*/*.json"))
WORTH_A_KERNEL = 1.1  # times as fast as what is to stop here


def advise(n=2**28, gpu=H200, dtype="float32", alignment=16, limits=LIMITS, **options):
    return model.advise(gpu, dtype, n, alignment, limits=limits, **options)


# The tree, from the root.


def test_the_root_is_that_there_is_something_to_add():
    assert advise(0).bound == "nothing"


def test_a_few_bytes_are_the_launchs():
    advice = advise(1000)
    assert (advice.bound, advice.rungs[0]) == ("launch", "batched")


def test_a_launch_may_be_all_that_is_left_to_save():
    advice = advise(2**20, bytes_per_load=16)
    assert advice.in_flight >= advice.needed
    assert (advice.bound, advice.stop) == ("launch", False)


def test_enough_bytes_in_flight_stop_the_search():
    advice = advise(bytes_per_load=16)
    assert (advice.bound, advice.rungs, advice.stop) == ("memory", (), True)
    assert "stop" in str(advice)
    assert advice.in_flight >= advice.needed


def test_small_blocks_are_bound_by_how_fast_they_start():
    """An H200 starts a block in 0.6 ns: 2^21 blocks of 32 threads take 1.26 ms, and the memory 0.75 for their bytes."""
    advice = advise(bytes_per_load=16, block=32)
    assert (advice.bound, advice.rungs) == ("start", ("tuned",))
    assert "2097152 blocks start one after the other, which takes 1.26 ms" in str(advice)
    assert advise(block=32).rungs == ("float4", "tuned")
    assert advise(bytes_per_load=16, block=32, limits=replace(LIMITS, block=None)).stop


def test_a_loop_is_told_of_blocks_that_end():
    advice = advise(bytes_per_load=16, loads_in_flight=4, grid=132 * 8)
    assert (advice.bound, advice.rungs, advice.stop) == ("latency", ("float4", "tuned"), False)


def test_too_few_blocks_are_told_to_be_more():
    assert advise(grid=1).rungs[0] == "grid_stride"
    assert advise(grid=1).in_flight < advise(grid=132).in_flight < advise().in_flight


def test_a_sum_that_is_read_first_is_told_to_be_written_alone():
    assert advise(bytes_per_load=16, loads_in_flight=3, arrays=4).rungs == ("naive",)


@pytest.mark.parametrize("limits", [None, replace(LIMITS, loaded=None)])
def test_what_no_run_measured_under_load_is_unknown(limits):
    """The latency of an idle memory says nothing of how many bytes a full one needs."""
    for width in (4, 16):
        advice = advise(limits=limits, bytes_per_load=width)
        assert (advice.bound, advice.needed, advice.stop) == ("unknown", None, False)
        assert "is not known" in str(advice)


@pytest.mark.parametrize(
    ("gpu", "dtype", "alignment", "options", "rungs"),
    [
        (H200, "float32", 16, {}, ("float4",)),
        (H200, "float32", 8, {}, ("float2",)),
        (H200, "int8", 8, {"grid": 132 * 8}, ("float2",)),
        (H200, "int8", 8, {"block": 32, "grid": 132 * 32}, ("float2", "float2_unroll2")),
        (H200, "float32", 4, {}, ("tuned", "unroll2")),
        (H200, "float32", 8, {"bytes_per_load": 8, "block": 32, "grid": 132 * 32}, ("tuned", "float2_unroll2")),
        (
            H200,
            "float32",
            16,
            {"bytes_per_load": 16, "block": 32, "registers": 128, "grid": 132 * 16},
            ("float4_unroll2",),
        ),
        (H200, "float32", 16, {"target": "shared memory", "tile": 1023}, ("async_copy",)),
        (H200, "float32", 16, {"target": "shared memory", "tile": 1024}, ("async_copy", "bulk_copy")),
        (H200, "float32", 16, {"target": "shared memory", "tile": 2048}, ("async_copy", "bulk_copy")),
        (H200, "float32", 16, {"target": "shared memory", "tile": 2049}, ("bulk_copy",)),
        (H200, "float32", 8, {"target": "shared memory"}, ("async_copy",)),
        (H200, "float32", 4, {"target": "shared memory"}, ("async_copy",)),
        (H200, "int8", 1, {"target": "shared memory", "grid": 132 * 8}, ("naive",)),
        (A100, "float32", 16, {"target": "shared memory"}, ("async_copy",)),
        (T4, "float32", 16, {"target": "shared memory"}, ("float4", "unroll2")),
    ],
)
def test_each_branch_names_the_rungs_to_try(gpu, dtype, alignment, options, rungs):
    advice = advise(gpu=gpu, dtype=dtype, alignment=alignment, **options)
    assert (advice.bound, advice.rungs) == ("latency", rungs)
    assert advice.in_flight < advice.needed
    assert set(rungs) <= set(RUNGS)
    assert all(step.endswith(".") for step in advice.steps)


def test_low_occupancy_is_named_with_what_bounds_it():
    assert "bounded by registers" in str(advise(registers=128))


def test_a_memory_that_takes_longer_under_load_needs_more_bytes():
    slow = Loaded(tuple((4 * nbytes, rate) for nbytes, rate in LIMITS.loaded.points))
    assert advise(bytes_per_load=16).stop
    assert advise(bytes_per_load=16, limits=replace(LIMITS, loaded=slow)).bound == "latency"


def test_a_device_may_be_given_by_its_number(device):
    assert model.advise(device, "float32", 2**26, 16) == model.advise(_core.gpu_facts()[device], "float32", 2**26, 16)


@pytest.mark.parametrize("number", [-1, 99])
def test_a_device_that_is_not_there_is_a_value_error(device, number):
    with pytest.raises(ValueError, match="there is no device"):
        model.advise(number, "float32", 2**26, 16)


@pytest.mark.parametrize(
    ("arguments", "options", "error"),
    [
        (("float32", -1, 16), {}, ValueError),
        (("float32", 10, 3), {}, ValueError),
        (("float32", 10, 0), {}, ValueError),
        (("float32", 10, 16), {"target": "disk"}, ValueError),
        (("float33", 10, 16), {}, TypeError),
        (("float32", 2**26, 16), {"block": 4096}, ValueError),
        (("float32", 2**26, 16), {"grid": 0}, ValueError),
        (("float32", 2**26, 16), {"arrays": 5}, ValueError),
    ],
)
def test_advice_refuses_what_is_no_addition(arguments, options, error):
    with pytest.raises(error):
        model.advise(H200, *arguments, **options)


# The curve.


def test_the_curve_goes_through_its_points_and_rises():
    loaded = LIMITS.loaded
    for nbytes, rate in loaded.points:
        assert loaded.rate(nbytes) == pytest.approx(rate)
        assert loaded.latency(nbytes, 132) == pytest.approx(132 * nbytes / rate)
    rates = [loaded.rate(nbytes) for nbytes in range(512, 200_000, 512)]
    assert rates == sorted(rates)
    assert loaded.rate(10**9) == loaded.best
    assert loaded.rate(1024) == pytest.approx(loaded.rate(4096) / 4)  # the latency is that of the first point


@pytest.mark.parametrize("share", [0.1, 0.5, 0.8, 0.95, 1.0])
def test_so_many_bytes_as_are_needed_make_that_share_of_the_rate(share):
    loaded = LIMITS.loaded
    assert loaded.rate(loaded.needed(share)) == pytest.approx(share * loaded.best)


def test_a_curve_takes_two_rates_at_least():
    assert Loaded.through([(4096, 1e12)]) is None
    assert Loaded.through([(8192, 1e12), (4096, 1e12)]) is None
    assert Loaded.through([(8192, 2e12), (4096, 1e12)]) == Loaded(((4096, 1e12), (8192, 2e12)))


def test_blocks_that_end_leave_places_empty_the_more_the_more_warps_they_have():
    loaded, places = LIMITS.loaded, 48 << 10
    averages = [loaded.on_average(places, 132, warps, start=230e-9) for warps in (1, 4, 8, 16, 32)]
    assert averages == sorted(averages, reverse=True)
    assert averages[0] < places
    assert loaded.on_average(places, 132, 1, start=0.0) == places


# Recorded runs.


def recorded(path):
    """The GPU, the limits, and the rows of kernels of a recorded run; () where it has none."""
    run = read_run(path)
    meta, rows = run.meta, run.figures
    kernels = [row for row in rows if row.seconds and RUNGS.get(row.name, {}).get("kind") == "device"]
    if not meta["gpu"] or not kernels or "device" not in meta.get("limits", {}):
        return ()
    return meta["gpu"][0], Limits.of(meta.get("limits", {})), kernels


RUNS = {path.stem: run for path in RECORDED if (run := recorded(path))}


def of_row(gpu, limits, row):
    rung = with_parameters(RUNGS[row.name], row.params.get("parameters", {}))
    return model.advise(
        gpu,
        row.dtype,
        row.n,
        16,
        bytes_per_load=load_bytes(rung, _core.DTYPES[row.dtype]),
        loads_in_flight=rung["loads_in_flight"],
        arrays=rung["bytes_per_element"] // 4,
        block=row.params["block"],
        grid=prod(row.params["grid"]),
        registers=row.params["registers"],
        limits=limits,
    )


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_no_rung_is_told_to_stop_that_another_of_its_run_beats(run):
    gpu, limits, rows = run
    assert limits.loaded
    told = [row for row in rows if of_row(gpu, limits, row).stop]
    assert told, "no rung is told to stop: the test tests nothing"
    for row in told:
        best = min(other.seconds for other in rows if (other.dtype, other.n) == (row.dtype, row.n))
        assert row.seconds <= WORTH_A_KERNEL * best, row


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_a_rung_whose_launch_is_said_to_decide_takes_no_twice_the_best(run):
    gpu, limits, rows = run
    for row in rows:
        # advise is not told what part of a sector strided uses, and on how many paths a warp of divergent goes.
        if row.name not in ("strided", "divergent") and of_row(gpu, limits, row).bound == "launch":
            best = min(other.seconds for other in rows if (other.dtype, other.n) == (row.dtype, row.n))
            assert row.seconds < 2 * best, row


def test_an_h200_under_load_answers_later_the_more_it_is_asked():
    """Of the recorded ladder's probe: an idle memory's latency up to 4 KiB in flight, then more and more."""
    _, limits, _ = RUNS["ladder"]
    points = [(nbytes, limits.loaded.latency(nbytes, 132)) for nbytes, _ in limits.loaded.points]
    few = [seconds for nbytes, seconds in points if nbytes <= 4096]
    more = [seconds for nbytes, seconds in points if nbytes >= 4096]
    assert max(few) < 1.1 * min(few)
    assert limits.dram < min(few) < 1.5 * limits.dram
    assert more == sorted(more)
    assert more[-1] > 8 * more[0]


def test_large_blocks_are_told_to_load_more():
    """Recorded on an H200: float2 in blocks of 1024 takes 1.11 times as long as float4, in blocks of 256 1.02 times."""
    gpu, limits, _ = RUNS["blocksize"]
    assert advise(2**26, gpu, limits=limits, bytes_per_load=8, block=256).stop
    advice = advise(2**26, gpu, limits=limits, bytes_per_load=8, block=1024)
    assert (advice.bound, advice.rungs) == ("latency", ("float4",))
    assert "waits for the slowest of its 32 warps" in str(advice)

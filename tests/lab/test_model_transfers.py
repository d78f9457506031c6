"""The expected times of transfers: the sum of their stages where they are serial, the slowest where they overlap."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from modelled import H200, LIMITS, RUNGS, expect

from vecadd import model
from vecadd.bench.probes import link_gbps
from vecadd.bench.sweeps import transfer
from vecadd.figures import read_run
from vecadd.model import Limits

pytestmark = pytest.mark.no_native

TRANSFERS = [name for name, rung in RUNGS.items() if rung["kind"] == "transfer"]
SERIAL = [name for name in TRANSFERS if RUNGS[name]["stages"] == "serial"]
OVERLAPPING = [name for name in TRANSFERS if RUNGS[name]["stages"] == "overlapping"]
RECORDED = Path(__file__).parents[2] / "benchmarks" / "results" / "h200" / "transfer.json"


def test_every_transfer_says_how_its_stages_follow_each_other():
    assert OVERLAPPING == ["streams2", "streams4", "zero_copy", "staged", "tuned_transfer"]
    assert [name for name in TRANSFERS if RUNGS[name]["stages"] == "shared"] == ["hybrid"]
    assert set(TRANSFERS) == {*SERIAL, *OVERLAPPING, "hybrid"}
    assert {rung["stages"] for rung in RUNGS.values() if rung["kind"] != "transfer"} == {""}


def test_a_kernel_is_chosen_by_the_name_of_its_rung():
    for rung in RUNGS.values():
        assert set(rung["choices"]) <= set(rung["params"])
        for name, names in rung["choices"].items():
            least, _, most = rung["params"][name]
            assert (least, most) == (0, len(names) - 1)
    assert set(RUNGS["pageable"]["choices"]["kernel"]) <= {name for name in RUNGS if RUNGS[name]["kind"] == "device"}


# Document 004's own example: 100 ms of input, 10 ms of kernel, 100 ms of output, 210 in series and 100 overlapped; and
# 10, 100 and 10 ms.
N = 10**8
NBYTES = 4 * N


def of_document(up, kernel, down):
    """Limits by which uploads, kernel and download of N elements take so many seconds, both ways undisturbed."""
    rate = 3 * NBYTES / (kernel - 1e-6)
    free = dict.fromkeys(("kernel", "block", "turnaround", "l1", "l2", "page", "dram", "stream"), 1e-12)
    return replace(
        LIMITS,
        **free,
        to_device=2 * NBYTES / up,
        to_host=NBYTES / down,
        both=2 * max(2 * NBYTES / up, NBYTES / down),
        read=rate,
        write=rate,
        copy=rate,
        l2_read=1e18,
        l2_write=1e18,
    )


@pytest.mark.parametrize(
    ("stages", "serial", "overlapping"),
    [((0.100, 0.010, 0.100), 0.210, 0.100), ((0.010, 0.100, 0.010), 0.120, 0.100)],
)
def test_the_documents_example_comes_out(stages, serial, overlapping):
    limits = of_document(*stages)
    assert expect("pinned", N, limits=limits, kernel=2) == pytest.approx(serial, rel=0.001)
    assert expect("streams4", N, limits=limits, kernel=2) == pytest.approx(overlapping, rel=0.001)


@pytest.mark.parametrize("name", SERIAL)
def test_serial_stages_take_their_sum(name):
    found = model.predict(RUNGS[name], None, H200, LIMITS, "float32", N, {})
    assert found.terms["to_device"] == pytest.approx(2 * NBYTES / LIMITS.to_device)
    assert found.terms["to_host"] == pytest.approx(NBYTES / LIMITS.to_host)
    assert found.seconds == pytest.approx(sum(found.terms.values()))
    assert found.dominant == "to_device"


@pytest.mark.parametrize("name", OVERLAPPING)
def test_overlapping_stages_take_the_slowest_of_them(name):
    found = model.predict(RUNGS[name], None, H200, LIMITS, "float32", N, {})
    assert found.seconds == max(found.terms.values()) == found.terms["to_device"]
    assert found.seconds == pytest.approx(NBYTES / LIMITS.to_device + 2 * NBYTES / LIMITS.both)


@given(st.floats(1e9, 1e11), st.floats(1e9, 1e11), st.floats(1, 2.2))
def test_what_overlaps_is_bound_as_the_benchs_limit_is(up, down, ways):
    limits = replace(LIMITS, to_device=up, to_host=down, both=ways * min(up, down))
    bound = 3 * NBYTES / link_gbps(up, limits.both) / 1e9
    assert expect("streams2", N, limits=limits) == pytest.approx(max(bound, NBYTES / down))


def test_a_slow_kernel_is_a_stage_like_the_others():
    alone = expect("single_thread", N, footprint=3 * NBYTES)
    assert expect("pageable", N, kernel=4) == pytest.approx(alone + expect("pageable", N), rel=0.01)
    assert expect("streams4", N, kernel=4) == pytest.approx(alone)
    assert model.predict(RUNGS["pageable"], None, H200, LIMITS, "float32", N, {"kernel": 4}).dominant == "kernel"


def test_what_the_processor_shares_is_refused_in_words():
    with pytest.raises(ValueError, match="rung hybrid: the processor adds a share"):
        expect("hybrid", N)


@pytest.mark.parametrize("limit", ["to_device", "to_host", "both", "read", "kernel"])
def test_a_run_that_did_not_measure_a_rate_is_refused_in_words(limit):
    with pytest.raises(ValueError, match=f"did not measure {limit}"):
        expect("streams2", N, limits=replace(LIMITS, **{limit: None}))


def test_no_recorded_transfer_is_faster_and_full_ones_of_page_locked_memory_are_near():
    run = read_run(RECORDED)
    meta, rows = run.meta, run.figures
    limits, gpu = Limits.of(meta["limits"]), meta["gpu"][0]
    ratios, full, with_allocations = [], [], []
    for row in rows:
        rung = RUNGS.get(transfer.THE_CALL if row.name == "add" else row.name)
        if not rung or not row.seconds or rung["stages"] == "shared":
            continue
        chosen = row.params.get("parameters", {})
        ratios.append(row.seconds / model.expected(rung, None, gpu, limits, row.dtype, row.n, chosen))
        if row.n == 2**28 and row.params["memory"] == "pinned":
            (with_allocations if rung["allocates"] else full).append(ratios[-1])
    assert len(ratios) > 150
    assert len(full) > 5
    assert min(ratios) > 0.98  # what two runs of a link differ by
    assert max(full) < 1.15
    assert max(with_allocations) < 1.25  # streams made in each call, which the model does not know

"""device="hybrid": processor and GPU share host arrays, and the sum does not show which added what."""

import numpy as np
import pytest
from arrays import assert_same, assert_same_values, numpys_sum, pinned, values

import vecadd
from vecadd import _core

pytestmark = pytest.mark.usefixtures("silent")

LONG = 8_400_001  # float32: beyond what is the processor's alone


@pytest.mark.parametrize("kinds", [(p, q, r) for p in "op" for q in "op" for r in "op"], ids="".join)
def test_pinned_and_ordinary_memory_may_be_mixed(device, kinds):
    a, b, out = (
        {"o": np.copy, "p": pinned}[kind](values(np.dtype("float32"), LONG, i)) for i, kind in enumerate(kinds)
    )
    want = numpys_sum(a, b)
    assert vecadd.add(a, b, out, device="hybrid") is out
    assert_same_values(out, want)


def test_in_place(device):
    a, b = pinned(values(np.dtype("int32"), LONG, 1)), pinned(values(np.dtype("int32"), LONG, 2))
    want = a + b
    assert vecadd.add(a, b, b, device="hybrid") is b
    assert_same_values(b, want)


def test_what_has_to_be_broadcast_is(device):
    a, b = np.arange(12.0).reshape(3, 4), np.arange(4)
    assert_same(vecadd.add(a, b, device="hybrid"), a + b)


def test_route_is_hybrid(device):
    a = np.zeros(LONG, np.float32)
    found = _core.explain_route(a, a, device="hybrid")
    assert found["route"] == "hybrid"
    assert found["threads"] >= 1


def test_what_the_processor_adds_before_a_chunk_is_back_stays_there(device):
    a = np.zeros(LONG // 2, np.float32)
    assert _core.explain_route(a, a, device="hybrid")["route"] == "host"


def test_numpys_own_keywords_and_streams_are_refused(device):
    a = np.arange(10.0)
    with pytest.raises(TypeError, match="where="):
        vecadd.add(a, a, device="hybrid", where=True)
    with pytest.raises(TypeError, match="stream"):
        vecadd.add(a, a, device="hybrid", stream=0)


def test_device_arrays_are_refused(device):
    x = vecadd.to_device(np.arange(10.0))
    with pytest.raises(ValueError, match="'hybrid'"):
        vecadd.add(x, x, device="hybrid")
    with pytest.raises(ValueError, match="'hybrid'"):
        vecadd.to_device(np.arange(10.0), device="hybrid")


@pytest.mark.parametrize(("top", "category"), [(3e38, "overflow"), (np.inf, "invalid")])
def test_both_ends_warn_as_numpy_does(device, top, category):
    a, b = pinned(np.ones(LONG, np.float32)), pinned(np.ones(LONG, np.float32))
    for at in (0, LONG - 1):
        a[at], b[at] = top, -top if category == "invalid" else top
        with np.errstate(all="warn"), pytest.warns(RuntimeWarning, match=category):
            vecadd.add(a, b, out=a, device="hybrid")
        a[at] = b[at] = 1


def test_a_full_device_leaves_all_to_the_processor(double, device):
    a = pinned(np.arange(LONG, dtype=np.float32))
    out = vecadd.empty_pinned(LONG, np.float32)
    double.fail("cudaMallocFromPoolAsync", 1, 2, True)
    assert_same_values(vecadd.add(a, a, out, device="hybrid"), a + a)


def test_without_a_gpu_it_says_so(double, child):
    code = """
import numpy as np, vecadd
a = np.zeros(8_400_001, np.float32)
try:
    vecadd.add(a, a, device="hybrid")
except RuntimeError as error:
    print(error)
"""
    assert "no NVIDIA driver" in child(code, VECADD_DOUBLE_DRIVER="0").stdout

"""A thousand random calls, any dtype, shape, strides, out and scalar, are numpy.add's; fuzz_add.py makes more."""

import fuzz_add
import numpy as np
import pytest


@pytest.mark.parametrize("seed", range(4))
def test_random_calls_give_what_numpy_gives(seed):
    routes = fuzz_add.run(seed, range(400))
    assert routes["host, as due"] > 10
    assert routes["host rows"] + routes["host rows, as due"] > 0
    assert routes["numpy"] > 10


def test_so_many_cases_are_made_as_our_own_code_adds():
    routes = fuzz_add.share(3, 1, 2, 15, False)
    assert fuzz_add.ours(routes) == 8
    assert sum(routes[route] for route in routes if route.startswith("host")) == 8
    assert routes["numpy"] > 8


def test_a_wrong_sum_is_found(monkeypatch):
    def wrong(*operands):
        result = np.add(*operands)
        if isinstance(result, np.ndarray) and result.size:
            result[(0,) * result.ndim] = 0
        return result

    monkeypatch.setattr(fuzz_add.vecadd, "add", wrong)
    with pytest.raises(AssertionError, match="case"):
        fuzz_add.run(0, range(20))


def test_an_unexpected_fallback_is_found(monkeypatch):
    monkeypatch.setattr(fuzz_add, "_route", lambda operands: "numpy")
    with pytest.raises(AssertionError, match="went by numpy, not by host"):
        fuzz_add.run(0, range(100))


@pytest.mark.parametrize("seed", range(2))
def test_random_calls_on_the_device_give_what_numpy_gives(seed, device):
    counts = fuzz_add.run_on_device(seed, range(4, 154))
    assert sum(count for route, count in counts.items() if route.startswith("device")) > 50
    assert counts["transfer"] > 15
    assert counts["refused"] > 3


@pytest.mark.slow
def test_random_calls_that_the_processor_and_the_gpu_share_give_what_numpy_gives(device):
    counts = fuzz_add.run_on_device(0, range(3, 3 + 8 * fuzz_add.SHARED, fuzz_add.SHARED))
    assert counts["hybrid"] > 3

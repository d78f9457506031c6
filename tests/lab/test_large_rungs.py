"""The device rungs on more than 2^31 elements: every index is 64 bits wide. Only those that end within two seconds."""

from typing import Any

import numpy as np
import pytest

import vecadd
from vecadd import _core, _machine

N = 2**31 + 5
SMALL = 2**24  # whose time predicts that of N
SECONDS = 2.0
RUNGS = {rung["name"]: rung for rung in _core.rungs() if rung["kind"] == "device" and rung["sum"] != "raced"}


def narrowest(name: str) -> str:
    return next(dtype for dtype in ("int8", "float16", "float32") if dtype in RUNGS[name]["dtypes"])


def numbers(dtype: str, n: int, salt: int) -> np.ndarray[Any, Any]:
    """Small whole numbers that repeat after a prime number of elements, so that no block is another's copy."""
    return np.resize((np.arange(1_000_003) * salt % 61).astype(dtype), n)


def predicted(name: str) -> float:
    """Seconds of N elements, by the second run of SMALL ones."""
    x = vecadd.to_device(numbers(narrowest(name), SMALL, 1))
    out = vecadd.to_device(np.zeros(SMALL, narrowest(name)))
    return min(_core.run_rung(name, x, x, out) for _ in range(2)) * N / SMALL


class Operands:
    """a, b and out on the device, and the sum on the host; made anew where another dtype is asked for."""

    def __init__(self) -> None:
        self.dtype = ""

    def with_dtype(self, dtype: str) -> "Operands":
        if dtype != self.dtype:
            self.__dict__.clear()
            a, b = numbers(dtype, N, 7), numbers(dtype, N, 11)
            self.a, self.b = vecadd.to_device(a), vecadd.to_device(b)
            self.out = vecadd.to_device(a)
            self.sum = np.add(a, b, out=a)
            self.dtype = dtype
        return self


@pytest.fixture(scope="module")
def operands() -> Operands:
    return Operands()


@pytest.mark.slow
@pytest.mark.gpu
@pytest.mark.parametrize("name", sorted(RUNGS, key=narrowest))
def test_a_rung_adds_more_than_2_to_the_31_elements(name: str, runtime: str | None, operands: Operands) -> None:
    if runtime != "gpu":
        pytest.skip("7 GB and 2^31 threads need a GPU")
    rung, dtype = RUNGS[name], narrowest(name)
    gpu, array = _core.gpu_facts()[0], N * np.dtype(dtype).itemsize
    if 10 * gpu["cc_major"] + gpu["cc_minor"] < rung["min_cc"]:
        pytest.skip(f"needs compute capability {rung['min_cc'] / 10}")
    seconds = predicted(name)
    if seconds > SECONDS:
        assert rung["blocks"] == 1, f"{seconds:.1f} s: only rungs of one block are as slow"
        pytest.skip(f"would take {seconds:.0f} s")
    if _machine.memory_available() < 4 * array or gpu["memory"] < 4 * array:
        pytest.skip(f"needs {4 * array / 1e9:.0f} GB of memory, on the host and on the GPU")
    given = operands.with_dtype(dtype)
    (_core.poison if rung["sum"] == "written" else _core.clear)(given.out)
    _core.run_rung(name, given.a, given.b, given.out)
    assert np.array_equal(given.out.numpy(), given.sum)

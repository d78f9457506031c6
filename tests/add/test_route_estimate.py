"""device=None on a machine that was not measured: large page-locked arrays go where such calls took the least time.

The double's clock decides how long a call seems to take: on the host, with one thread, one step of it. Each test is a
child process, because what calls took is known for the life of a process.
"""

import subprocess
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from vecadd import _tuned

HEAD = """
import os
import numpy as np, vecadd
from double import control

MS, SECOND = 10**6, 10**9

def arrays(mib=32, dtype="float32", make=vecadd.empty_pinned):
    made = [make(mib * 2**20 // np.dtype(dtype).itemsize, dtype) for _ in range(3)]
    for x in made:
        x[...] = 1
    return made

def call(add, step):
    # Adds by a clock of such steps; gives whether the GPU took part.
    out[...] = 0
    before = control.calls("cudaLaunchKernel")
    control.clock(step)
    assert add() is out
    control.clock(0)
    assert (out == 2).all()
    return control.calls("cudaLaunchKernel") > before

def explained():
    return vecadd.explain(a, b, out)

def add():
    return vecadd.add(a, b, out)
"""

Estimating = Callable[[str], subprocess.CompletedProcess[str]]


@pytest.fixture
def estimating(double: object, device: int, child: Callable[..., object], tmp_path: Path) -> Estimating:
    """estimating(code): runs code in a process of one thread, on a machine that was not measured."""

    def run(code: str) -> subprocess.CompletedProcess[str]:
        code = HEAD + textwrap.dedent(code)
        return child(code, VECADD_CACHE_DIR=str(tmp_path), VECADD_NUM_THREADS="1")  # type: ignore[return-value]

    return run


def test_calls_find_the_fastest_route_and_explain_says_each_beforehand(estimating: Estimating) -> None:
    estimating("""
        vecadd.use_gpu()
        a, b, out = arrays()
        found = explained()
        assert found.route == "host" and "learn how long it takes" in found.why
        assert list(found.predicted) == ["transfer"] and "PCIe 4 x16" in found.why
        assert "vecadd tune routes" in found.why and "routes: not tuned" in str(found)
        for _ in range(3):
            assert explained().route == "host" and not call(add, 100 * SECOND)
        assert {name: round(taken, 4) for name, taken in explained().predicted.items()} == {
            "host": 100.0, "transfer": 0.0025, "hybrid": 0.0025}

        for _ in range(3):
            found = explained()
            assert found.route == "hybrid" and "tries the route" in found.why
            assert call(add, 10 * MS)
        found = explained()
        assert found.route == "hybrid" and "by what such calls took" in found.why
        assert 0.01 < found.predicted["hybrid"] < 100

        calls = 0
        while explained().route == "hybrid":
            assert call(add, 10 * MS) and calls < 100
            calls += 1
        assert "tries it again" in explained().why
        assert not call(add, MS)  # the host has become fast
        found = explained()
        assert found.route == "host" and "by what such calls took" in found.why
        assert not call(add, MS)
    """)


def test_a_route_that_disappoints_is_left(estimating: Estimating) -> None:
    estimating("""
        vecadd.use_gpu()
        a, b, out = arrays()
        for _ in range(3):
            call(add, SECOND)
        assert explained().route == "hybrid" and call(add, SECOND)  # hundreds of seconds
        for _ in range(10):
            found = explained()
            assert found.route == "host" and "next to nothing" in found.why
            assert not call(add, SECOND)
    """)


def test_a_plan_goes_by_the_same_calls(estimating: Estimating) -> None:
    estimating("""
        import ctypes, ctypes.util
        libm = ctypes.CDLL(ctypes.util.find_library("m"))
        vecadd.use_gpu()
        a, b, out = arrays()
        plan = vecadd.plan(a, b, out)
        for _ in range(3):
            assert plan.route == "host" and not call(plan, 100 * SECOND)
        assert plan.route == explained().route == "hybrid"
        libm.fesetround({"x86_64": 0x800, "aarch64": 0x400000}[os.uname().machine])
        upward = plan.route, "rounding" in explained().why, [call(plan, 100 * SECOND) for _ in range(3)]
        libm.fesetround(0)
        assert upward == ("host", True, [False] * 3)
        assert plan.route == "hybrid" and call(plan, 10 * MS)  # whose time they are no part of
        vecadd.use_gpu(False)
        assert plan.route == "host" and not call(plan, 100 * SECOND)
    """)


def test_a_gpu_that_fails_in_a_trial_costs_no_sum(estimating: Estimating) -> None:
    estimating("""
        vecadd.use_gpu()
        a, b, out = arrays()
        for _ in range(3):
            call(add, 100 * SECOND)
        control.fail("cudaLaunchKernel", 1, 719, False)
        assert explained().route == "hybrid"
        call(add, 10 * MS)
        assert explained().route == "host" and "has failed" in explained().why
        assert not call(add, 100 * SECOND)
    """)


def test_other_arrays_and_processes_without_cuda_stay_on_the_host(estimating: Estimating) -> None:
    estimating("""
        def stays(words):
            for _ in range(4):
                assert explained().route == "host" and words in explained().why, explained().why
                assert not explained().predicted and not call(add, 100 * SECOND)

        a, b, out = arrays(make=np.empty)
        stays("not in play")
        vecadd.use_gpu()
        stays("only page-locked arrays of 32 MiB")
        a, b, out = arrays(31)
        stays("only page-locked arrays of 32 MiB")
        vecadd.use_gpu(False)
        a, b, out = arrays()
        stays("use_gpu(False)")
    """)


def test_what_is_not_tuned_says_what_decides_in_its_place() -> None:
    assert "go by what calls took" in str(_tuned.find("routes (GPU 0)", "routes", None))
    assert "go by what calls took" not in str(_tuned.find("host", "host", None))

"""VECADD_SIMD: a level that this machine has is used, another is an error. tests/c/test_host.c adds at every level."""

import pytest

from vecadd import _core

pytestmark = pytest.mark.no_native

LEVELS = _core.host_facts()["simd_levels"]


@pytest.mark.parametrize("level", LEVELS)
def test_level_is_used_when_it_is_named(level, child):
    code = "from vecadd import _core; print(_core.host_facts()['simd'])"
    assert child(code, VECADD_SIMD=level).stdout.strip() == level


@pytest.mark.parametrize("nothing", [None, ""], ids=["unset", "empty"])
def test_best_level_is_used_when_none_is_named(nothing, child):
    code = "from vecadd import _core; facts = _core.host_facts(); print(facts['simd'], facts['thresholds'])"
    told = child(code, VECADD_SIMD=nothing).stdout
    assert told.split()[0] == LEVELS[0]
    assert told == child(code, VECADD_SIMD=None).stdout


def test_plain_c_is_always_there():
    assert LEVELS[-1] == "c"


OTHER_MACHINES = [level for level in ("neon", "avx512", "avx2") if level not in LEVELS]


@pytest.mark.parametrize("level", ["sse9", "AVX2", "avx2 ", "neon,c", *OTHER_MACHINES])
def test_unknown_level_is_an_error_that_lists_those_that_work(level, child):
    result = child(
        "import numpy as np, vecadd\n"
        "a = np.ones(10)\n"
        "for attempt in range(2):\n"
        "    try:\n"
        "        vecadd.add(a, a)\n"
        "    except ValueError as error:\n"
        "        print(error)\n"
        "assert vecadd.add(a, 1).tolist() == [2.0] * 10\n",
        VECADD_SIMD=level,
    )
    lines = result.stdout.splitlines()
    assert len(lines) == 2
    assert all("VECADD_SIMD" in line and level in line for line in lines)
    assert all(name in line for line in lines for name in LEVELS)


@pytest.mark.parametrize("level", ["sse9", "sse\udcff"], ids=["a name", "bytes that are no text"])
def test_unknown_level_installs_no_loops(level, child):
    result = child(
        "import vecadd\n"
        "try:\n"
        "    vecadd.install()\n"
        "except ValueError as error:\n"
        "    print(type(error).__name__, ascii(str(error)))\n"
        "print(vecadd._core.loop_counts()['installed'])\n",
        VECADD_SIMD=level,
    )
    told, installed = result.stdout.splitlines()
    assert told.startswith("ValueError 'VECADD_SIMD is \"sse")
    assert installed == "False"

"""VECADD_SIMD: every level that this machine has passes the same checks; a level that it has not is an error."""

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import child_environment

from vecadd import _core

pytestmark = pytest.mark.no_native

HERE = Path(__file__).parent
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


# Of each file the tests that a level can change: shapes and orders are the same at every level.
OF_EVERY_LEVEL = {
    "test_add_host.py": "not transfer and not numpy_route and not memory_order",
    "test_warnings.py": "not transfer",
    "test_extremes.py": "on_the_host",
}


@pytest.mark.slow
@pytest.mark.parametrize("level", [level for level in LEVELS if level != _core.host_facts()["simd"]])
@pytest.mark.parametrize("file", OF_EVERY_LEVEL)
def test_level_passes_the_host_tests(file, level):
    """Those of the level that is chosen by itself are the files themselves; the C tests have every level."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-k", OF_EVERY_LEVEL[file]]
    result = subprocess.run(
        [*command, str(HERE / file)],
        env=child_environment(VECADD_SIMD=level),
        capture_output=True,
        text=True,
        timeout=280,
        cwd=HERE.parents[1],
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert " passed" in result.stdout


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


DIGEST = """
import hashlib, numpy as np, vecadd
from arrays import DTYPES, bits, values
digest = hashlib.sha256()
with np.errstate(all='ignore'):
    for dtype in DTYPES:
        for n in (1, 63, 1000, 300_001):
            digest.update(bits(vecadd.add(values(dtype, n, 1), values(dtype, n, 2))))
print(digest.hexdigest())
"""


def test_every_level_gives_the_same_bytes(child):
    assert len({child(DIGEST, VECADD_SIMD=level).stdout for level in LEVELS}) == 1

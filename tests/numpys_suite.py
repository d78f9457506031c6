"""python tests/numpys_suite.py: NumPy's whole test suite and pandas' tests of arithmetic, with vecadd.install.

Each suite is run three times: alone, under `vecadd run`, and with `vecadd.install(least=1)`, where two threads share
each run of elements that vecadd may add. A test whose outcome differs from that of the first run is printed, and so is
how many elements vecadd added; a difference, or no element, is status 1.
"""

import os
import re
import subprocess
import sys
import xml.etree.ElementTree
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

SUITES = {
    "numpy": ("numpy._core", "numpy.lib", "numpy.ma", "numpy.linalg", "numpy.random", "numpy.polynomial"),
    "pandas": ("pandas.tests.arithmetic",),
}
EVERY_RUN = """
import atexit, runpy, sys, vecadd
found = vecadd.install(least=1)
atexit.register(lambda: print(f"vecadd run: {found.elements} elements added in {found.calls} calls", file=sys.stderr))
sys.argv[:] = sys.argv[2:]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""
WAYS = {
    "alone": [],
    "vecadd run": ["-m", "vecadd", "run", "--count"],
    "vecadd.install(least=1)": ["-c", EVERY_RUN],
}
ADDED = re.compile(r"vecadd run: (\d+) elements added in (\d+) calls")


def outcomes(suite: str, way: str) -> tuple[dict[str, str], int]:
    """What became of each test, and the elements that vecadd added."""
    with TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        options = [
            "-q",
            "-m",
            "not slow",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:xdist",
            "-o",
            "addopts=",
            "--rootdir",
            folder,
        ]
        result = subprocess.run(
            [sys.executable, *WAYS[way], "-m", "pytest", *options, f"--junitxml={report}", "--pyargs", *SUITES[suite]],
            env={**os.environ, "VECADD_NUM_THREADS": "2"},
            cwd=folder,
            capture_output=True,
            text=True,
        )
        if not report.exists():
            sys.exit(f"pytest wrote no report:\n{result.stdout}\n{result.stderr}")
        found = {
            f"{case.get('classname')}::{case.get('name')}": next((child.tag for child in case), "passed")
            for case in xml.etree.ElementTree.parse(report).iter("testcase")
        }
    added = ADDED.search(result.stderr)
    print(f"{suite}, {way}: {result.stdout.strip().splitlines()[-1]}", added[0] if added else "", flush=True)
    return found, int(added[1]) if added else 0


def main() -> int:
    runs = [(suite, way) for suite in SUITES for way in WAYS]
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # a suite alone keeps one processor busy
        results = dict(zip(runs, pool.map(lambda run: outcomes(*run), runs), strict=True))
    different = False
    for (suite, way), (found, elements) in results.items():
        alone, _ = results[suite, "alone"]
        for test in sorted(alone.keys() | found.keys()):
            if found.get(test) != alone.get(test):
                print(f"{suite}, {test}: {alone.get(test)} alone, {found.get(test)} by {way}")
                different = True
        if WAYS[way] and not elements and (suite, way) != ("pandas", "vecadd run"):  # pandas' arrays are short
            print(f"{suite}, {way}: vecadd added no element: nothing is shown")
            different = True
    return different


if __name__ == "__main__":
    sys.exit(main())

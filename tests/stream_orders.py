"""python tests/stream_orders.py [--seeds N] [--jobs J] [--json FILE]: stream order on the double, for N seeds.

Each seed is another legal order of the work that nothing orders. The tests that take seeds (those of orders.py) run for
every one from 0 to N - 1. The status is 1 where a test failed, whose output is then shown with its seed.
"""

import argparse
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path

import pytest
import recorded_run

TESTS = Path(__file__).resolve().parent
# Seeds of a pytest: it has to start, and each test makes the next ones slower (0.4 s a seed; 4.4 s in parts of 250).
TOGETHER = 20
PARAMETERS = {"order", "seed"}  # by which tests take seeds


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of the files, the tests that take seeds."""
    items[:] = [item for item in items if hasattr(item, "callspec") and PARAMETERS & item.callspec.params.keys()]


def files() -> list[Path]:
    """Those that ask for seeds."""
    return [path for path in sorted(TESTS.glob("*/test_*.py")) if "from orders import " in path.read_text()]


def run(seeds: range) -> tuple[int, str]:
    """How many tests passed for these seeds; the output where one failed or none ran, else nothing."""
    environment = {
        **os.environ,
        "VECADD_TEST_RUNTIME": "double",
        "VECADD_TEST_ORDERS": f"{seeds.start}:{seeds.stop}",
        "PYTHONPATH": f"{TESTS.parent}{os.pathsep}{TESTS}",
    }
    options = ["-q", "-x", "-p", "stream_orders", "-p", "no:cacheprovider", "-p", "no:xdist"]
    process = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *map(str, files())],
        cwd=TESTS.parent,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    passed = re.search(r"(\d+) passed", process.stdout)
    count = int(passed[1]) if passed else 0
    return count, "" if process.returncode == 0 and count else process.stdout


def parts(seeds: int) -> Iterator[range]:
    """Parts of all seeds."""
    every = range(seeds)
    return (every[k : k + TOGETHER] for k in range(0, seeds, TOGETHER))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10_000)
    parser.add_argument("--jobs", type=int, default=2, help="processes that share the seeds")
    parser.add_argument("--json", type=Path, help="where the counts go")
    arguments = parser.parse_args()
    if arguments.json:
        import_module("vecadd.bench.machine")  # missing, it would fail after an hour
    begin = time.perf_counter()
    with ThreadPoolExecutor(arguments.jobs) as pool:
        outcomes = list(pool.map(run, parts(arguments.seeds)))
    seconds = time.perf_counter() - begin
    tests, failures = sum(count for count, _ in outcomes), [output for _, output in outcomes if output]
    print(*failures, f"{arguments.seeds} seeds, {tests:,} tests passed in {seconds:.0f} s", sep="\n")
    if arguments.json:
        recorded_run.save(
            arguments.json,
            seconds,
            seeds=[0, arguments.seeds - 1],
            files=[str(path.relative_to(TESTS.parent)) for path in files()],
            passed=tests,
            failed=len(failures),
        )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

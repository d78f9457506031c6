"""python -m tests.mutants [NAME ...]: status 0 where every mutant that can be run here was found."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from build_native.incremental import processors
from tests.mutants.mutant import ROOT, Mutant
from tests.mutants.table import MUTANTS
from vecadd import _core

BUILD_TIMEOUT, TEST_TIMEOUT, CHECK_SECONDS = 900, 300, 30
NOTHING_COLLECTED = 5  # pytest's exit status where a file is skipped as a whole


def main() -> int:
    wanted = [mutant for mutant in MUTANTS if not sys.argv[1:] or mutant.name in sys.argv[1:]]
    if not wanted:
        print(f"there is no such mutant: {', '.join(sys.argv[1:])}; there are {', '.join(m.name for m in MUTANTS)}")
        return 2
    at_once = min(processors(), len(wanted))
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(at_once) as pool:
        trees: SimpleQueue[Path] = SimpleQueue()
        for number in range(at_once):
            trees.put(_copy(Path(folder) / str(number)))
        verdicts = list(pool.map(lambda mutant: _told(mutant, trees), wanted))
    return 1 if any(verdict.startswith(("SURVIVED", "does not build")) for verdict in verdicts) else 0


def _copy(tree: Path) -> Path:
    """The tree with what has been built: a mutant then compiles one file."""
    other_builds = {"asan", "tsan", "aarch64", "gpu", "unpacked"}

    def ignored(folder: str, names: list[str]) -> set[str]:
        left_out = {name for name in names if name.startswith(".")} | {"__pycache__"}
        return left_out | other_builds if Path(folder) == ROOT / "build" else left_out

    return Path(shutil.copytree(ROOT, tree, symlinks=True, ignore=ignored))


def _told(mutant: Mutant, trees: "SimpleQueue[Path]") -> str:
    """The verdict, in a tree that no other mutant has meanwhile; printed as soon as it is known."""
    tree, started = trees.get(), time.monotonic()
    try:
        verdict = _verdict(mutant, tree)
    finally:
        trees.put(tree)
    print(f"{mutant.name:<40} {verdict} ({time.monotonic() - started:.0f} s)", flush=True)
    return verdict


def _built_for(mutant: Mutant) -> list[str]:
    """What its test runs: one C program of forty, a module, or nothing where only Python has changed."""
    if not mutant.path.startswith(("csrc/", "cuda/", "tests/")):
        return []
    if not mutant.test.endswith(".py"):
        return ["--only", mutant.test.removeprefix("test_"), "ctests"]
    return ["extension"] if mutant.libraries else ["double"]


def _verdict(mutant: Mutant, tree: Path) -> str:
    if mutant.level and mutant.level not in _core.host_facts()["simd_levels"]:
        return f"not run here: the processor has no {mutant.level}"
    path = tree / mutant.path
    original = path.read_text()
    path.write_text(mutant.applied_to(tree))
    try:
        if target := _built_for(mutant):
            build = _run([sys.executable, "-m", "build_native", *target], tree, BUILD_TIMEOUT)
            if build.returncode:
                print(build.stdout[-2000:])
                return "does not build"
        test = _run(_command(mutant, tree), tree, TEST_TIMEOUT, "" if mutant.libraries else "double")
    except subprocess.TimeoutExpired:
        return f"found: {mutant.test} did not end"
    finally:
        path.write_text(original)
    if test.returncode in (0, NOTHING_COLLECTED) and " passed" not in test.stdout:
        return f"not run here: {mutant.test} is skipped without a GPU or its library"
    if test.returncode == 0:
        return "SURVIVED"
    failed = [line for line in test.stdout.splitlines() if line.startswith("FAILED")]
    blind = [name for name in mutant.libraries if not any(re.search(rf"\b{name}\b", line) for line in failed)]
    if blind:
        print(test.stdout[-2000:])
    with_all = f" with {', '.join(mutant.libraries)}" if mutant.libraries else ""
    return f"SURVIVED with {', '.join(blind)}" if blind else f"found by {mutant.test}{with_all}"


def _command(mutant: Mutant, tree: Path) -> list[str]:
    if not mutant.test.endswith(".py"):
        return [str(tree / "build" / "tests" / mutant.test)]
    only = ["-k", mutant.only] if mutant.only else []
    until = [] if mutant.libraries else ["-x"]
    return [sys.executable, "-m", "pytest", "-q", "-rf", *until, "-p", "no:cacheprovider", mutant.test, *only]


def _run(command: list[str], tree: Path, timeout: int, runtime: str = "") -> "subprocess.CompletedProcess[str]":
    limits = {"VECADD_CHECK_SECONDS": str(CHECK_SECONDS)}  # of one test of a C program, many of which hang
    environment = {**os.environ, **limits, "PYTHONPATH": str(tree), "VECADD_TEST_RUNTIME": runtime}
    return subprocess.run(
        command, cwd=tree, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout
    )


if __name__ == "__main__":
    sys.exit(main())

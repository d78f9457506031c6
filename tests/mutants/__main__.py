"""python -m tests.mutants [NAME ...]: status 0 where every mutant was found out."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.mutants.table import MUTANTS, ROOT, Mutant

BUILD_TIMEOUT, TEST_TIMEOUT = 900, 300  # seconds


def main() -> int:
    wanted = [mutant for mutant in MUTANTS if not sys.argv[1:] or mutant.name in sys.argv[1:]]
    if not wanted:
        print(f"there is no such mutant: {', '.join(sys.argv[1:])}; there are {', '.join(m.name for m in MUTANTS)}")
        return 2
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        _copy(tree)
        verdicts = {mutant.name: _verdict(mutant, tree) for mutant in wanted}
    for name, verdict in verdicts.items():
        print(f"{name:<40} {verdict}")
    return 1 if "SURVIVED" in verdicts.values() or "does not build" in verdicts.values() else 0


def _copy(tree: Path) -> None:
    """What git knows and what is not ignored, with what has been built: a mutant then compiles one file."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    built = [str(path.relative_to(ROOT)) for path in (ROOT / "vecadd").glob("_core*.so")]
    for name in [*filter(None, listed.stdout.decode().split("\0")), *built]:
        if (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name)
    if (ROOT / "build").is_dir():
        shutil.copytree(ROOT / "build", tree / "build", symlinks=True)


def _verdict(mutant: Mutant, tree: Path) -> str:
    path = tree / mutant.path
    original = path.read_text()
    path.write_text(mutant.applied_to(tree))
    try:
        target = ["double"] if mutant.test.endswith(".py") else ["ctests"]
        build = _run([sys.executable, "-m", "build_native", *target], tree, BUILD_TIMEOUT)
        if build.returncode:
            print(build.stdout[-2000:])
            return "does not build"
        test = _run(_command(mutant, tree), tree, TEST_TIMEOUT)
    except subprocess.TimeoutExpired:
        return f"found: {mutant.test} did not end"
    finally:
        path.write_text(original)
    if test.returncode == 0 and " passed" not in test.stdout:
        return f"not held here: {mutant.test} is skipped without a GPU"
    return "SURVIVED" if test.returncode == 0 else f"found by {mutant.test}"


def _command(mutant: Mutant, tree: Path) -> list[str]:
    if not mutant.test.endswith(".py"):
        return [str(tree / "build" / "tests" / mutant.test)]
    only = ["-k", mutant.only] if mutant.only else []
    return [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", mutant.test, *only]


def _run(command: list[str], tree: Path, timeout: int) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "PYTHONPATH": str(tree), "VECADD_TEST_RUNTIME": "double"}
    return subprocess.run(
        command, cwd=tree, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout
    )


if __name__ == "__main__":
    sys.exit(main())

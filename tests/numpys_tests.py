"""python tests/numpys_tests.py [PYTEST OPTIONS]: NumPy's own tests with vecadd.add where they call numpy.add.

Every test of NumPy's whose function calls numpy.add is run twice, with an object in numpy.add's place that passes each
call on: first to numpy.add, then to vecadd.add. Tests that mind the object itself fail both times. A test that fails
only the second time is a difference between the two additions: status 1, and its name.
"""

import importlib
import inspect
import os
import re
import subprocess
import sys
import xml.etree.ElementTree
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest

import vecadd

TO = "VECADD_NUMPYS_TESTS"  # which of the two the calls are passed on to
CALL = re.compile(r"\b(np|numpy|ncu|umath|um)\.add\(")


class Add:
    """numpy.add to a test that asks about it; a call of it is a call of `to`."""

    def __init__(self, to: Any) -> None:
        self._add, self._to, self.calls = np.add, to, 0

    def __call__(self, *operands: Any, **keywords: Any) -> Any:
        self.calls += 1
        return self._to(*operands, **keywords)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._add, name)


def pytest_configure(config: pytest.Config) -> None:
    for path in Path(np._core.__file__).parent.glob("_*_tests*.so"):  # they give numpy.add itself loops of their own
        importlib.import_module(f"numpy._core.{path.name.partition('.')[0]}")
    config.stash[ADD] = np.add = Add({"numpy": np.add, "vecadd": vecadd.add}[os.environ[TO]])  # type: ignore[assignment]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items[:] = [item for item in items if CALL.search(inspect.getsource(item.function))]  # type: ignore[attr-defined]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    terminalreporter.write_line(f"{config.stash[ADD].calls} calls of {os.environ[TO]}.add")


ADD = pytest.StashKey[Any]()


def files() -> list[Path]:
    folder = Path(np.__file__).parent
    return sorted(path for path in folder.rglob("test_*.py") if CALL.search(path.read_text()))


def failed(to: str, options: list[str], report: Path) -> set[str]:
    """The tests that fail, or cannot be run, with calls passed on to that one."""
    here = str(Path(__file__).parent)
    path = os.pathsep.join((here, str(Path(vecadd.__file__).parents[1])))
    command = [sys.executable, "-m", "pytest", "-c", os.devnull, "-p", Path(__file__).stem, "-p", "no:cacheprovider"]
    command += ["-q", "--tb=short", "-n", "0", f"--junitxml={report}", *options, *map(str, files())]
    subprocess.run(command, env={**os.environ, TO: to, "PYTHONPATH": path})
    cases = xml.etree.ElementTree.parse(report).iter("testcase")
    return {
        f"{case.get('classname')}::{case.get('name')}"
        for case in cases
        if case.find("failure") is not None or case.find("error") is not None
    }


def main() -> int:
    with TemporaryDirectory() as folder:
        both = failed("numpy", sys.argv[1:], Path(folder) / "numpy.xml")
        ours = failed("vecadd", sys.argv[1:], Path(folder) / "vecadd.xml")
    print(f"{len(both)} tests mind what replaces numpy.add; with vecadd.add also fail: {len(ours - both)}")
    print(*sorted(ours - both), sep="\n")
    return 1 if ours - both else 0


if __name__ == "__main__":
    sys.exit(main())

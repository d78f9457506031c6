"""Puts the module that is linked with the CUDA-runtime double in the place of vecadd._core.

In PYTHONPATH, this file makes every child process use the double; conftest.py runs it for the process of the tests.
VECADD_DOUBLE_CORE names another build of it. Under ASan, whose allocator does nothing at forks, forks wait here too.
"""

import os
import sys
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from typing import Any

from builds import UNDER_ASAN  # of the folder of the tests, which children find by PYTHONPATH

_BUILT = Path(__file__).resolve().parents[3] / "build" / "double" / "_core.abi3.so"
_CORE = Path(os.environ.get("VECADD_DOUBLE_CORE", _BUILT))


class _DoubleFinder:
    """Finds vecadd._core before the import system's own finders do."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        return spec_from_file_location(name, _CORE) if name == "vecadd._core" else None


sys.meta_path.insert(0, _DoubleFinder())

if UNDER_ASAN:
    from forks import fork_while_others_sleep

    fork_while_others_sleep()

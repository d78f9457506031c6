"""Has something done once another library is imported, without importing it."""

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType


class _Watch:
    """A finder that is asked before all others, finds its module once as Python's own does, and goes."""

    def __init__(self, name: str, then: Callable[[], object]) -> None:
        self._name, self._then = name, then

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != self._name:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return None
        with suppress(ValueError):  # another has taken it out
            sys.meta_path.remove(self)
        execute = spec.loader.exec_module

        def execute_and_then(module: ModuleType) -> None:
            execute(module)
            self._then()

        spec.loader.exec_module = execute_and_then  # type: ignore[method-assign]
        return spec


def after_import(name: str, then: Callable[[], object]) -> None:
    """Calls ``then()`` when the module of this name has been imported: now, if it is there already."""
    if name in sys.modules:
        then()
    else:
        sys.meta_path.insert(0, _Watch(name, then))

"""Packages that only some of vecadd's users need: imported when they are used, or named with what installs them."""

import importlib.util
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module

from vecadd._command import UnaskableError


def need(extra: str, what: str, *names: str) -> None:
    """Raises ImportError where a package is not installed. It says what needs it, and which extra brings it."""
    missing = []
    for name in names:
        try:
            import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or error.name.partition(".")[0] != name.partition(".")[0]:
                raise  # the package is there, and misses one of its own
            missing.append(name)
    if missing:
        raise ImportError(_needs(what, missing, [extra]), name=missing[0])


def need_for(what: str, extras: Mapping[str, str]) -> None:
    """The same for a command, which raises UnaskableError before it begins. ``extras`` has the packages that it needs,
    and which extra brings each; none is imported."""
    missing = [package for package in extras if importlib.util.find_spec(package) is None]
    if missing:
        raise UnaskableError(_needs(what, missing, [extras[package] for package in missing]))


def _needs(what: str, missing: Sequence[str], extras: Iterable[str]) -> str:
    return f"{what} needs {' and '.join(missing)}: pip install 'vecadd[{','.join(dict.fromkeys(extras))}]'"

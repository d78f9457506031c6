"""Renamed public names: the old one works for one more release, with a warning that says the new one."""

import warnings
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Any

__all__ = ["RENAMED", "Renamed", "look_up"]


@dataclass(frozen=True)
class Renamed:
    """A renamed name of the package: its new name and the releases of the change."""

    new: str  # below the package: "add", "lab.model"
    since: str  # the release that renamed it
    goes_in: str  # the release that will no longer know the old name


# By the old name. See CONTRIBUTING.md, "Change a name that people use".
RENAMED: dict[str, Renamed] = {}


def look_up(old: str) -> Any:
    """The object that the old name stands for, with a DeprecationWarning in the code that used the old name.

    For the package's ``__getattr__`` to call directly. Raises KeyError for a name that was not renamed.
    """
    entry = RENAMED[old]
    warnings.warn(
        f"vecadd.{old} is called vecadd.{entry.new} since vecadd {entry.since}; the old name goes in {entry.goes_in}",
        DeprecationWarning,
        stacklevel=3,  # this function, __getattr__, its caller
    )
    return resolve_name(f"vecadd.{entry.new}")

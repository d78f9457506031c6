"""The bench's probes, each made once in a process: on the double all of them take six seconds, and give no limit."""

from collections.abc import Callable
from functools import cache
from typing import Any

from vecadd.bench import probes

ONCE: dict[str, Callable[..., Any]] = {
    name: cache(getattr(probes, name)) for name in dir(probes) if name.startswith("probe_")
}

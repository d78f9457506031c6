"""The bench's probes, each made once in a process: on the double all of them take six seconds, and give no limit."""

from collections.abc import Callable
from functools import cache
from typing import Any

from vecadd.bench import limits

ONCE: dict[str, Callable[..., Any]] = {
    name: cache(getattr(limits, name)) for name in dir(limits) if name.startswith("probe_")
}

"""Work in threads of its own."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any


def run_together(*calls: Callable[[], Any]) -> list[Any]:
    """What the calls give, each in a thread of its own; raises what the first one raises that fails."""
    with ThreadPoolExecutor(len(calls)) as pool:
        return [future.result(60) for future in [pool.submit(call) for call in calls]]

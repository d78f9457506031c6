"""Work of several threads at one time."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

PATIENCE = 60  # seconds for calls of some milliseconds


def run_together(*calls: Callable[[], Any]) -> list[Any]:
    """What the calls give, each in a thread of its own, all started at one time; raises what the first one raises that
    fails."""
    start, found = threading.Barrier(len(calls)), [Future[Any]() for _ in calls]

    def run(call: Callable[[], Any], future: Future[Any]) -> None:
        start.wait()
        try:
            future.set_result(call())
        except BaseException as error:
            future.set_exception(error)

    threads = [threading.Thread(target=run, args=each, daemon=True) for each in zip(calls, found, strict=True)]
    for thread in threads:
        thread.start()
    results = [future.result(PATIENCE) for future in found]
    for thread in threads:
        thread.join()
    return results

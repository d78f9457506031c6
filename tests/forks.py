"""Forks of processes that run tests."""

import os
import threading
import time
import warnings
from contextlib import suppress
from pathlib import Path


def fork() -> int:
    """os.fork() without the warnings of Python, of threads, and of JAX where another test has imported it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.filterwarnings("ignore", r"os\.fork", RuntimeWarning)
        return os.fork()


def fork_while_others_sleep() -> None:
    """From now on, a fork of this process waits until all of its other threads sleep, for a second at most.

    ASan's allocator does nothing at forks: a thread that begins takes its lock, and a child that is forked at that
    moment waits for it forever.
    """
    os.register_at_fork(before=_wait_for_others)


def _wait_for_others() -> None:
    end = time.monotonic() + 1
    while any(state != "S" for state in _states_of_others()) and time.monotonic() < end:
        time.sleep(0.001)


def _states_of_others() -> list[str]:
    own, states = str(threading.get_native_id()), []
    for task in Path("/proc/self/task").iterdir():
        if task.name != own:
            with suppress(OSError):  # it has ended
                states.append((task / "stat").read_text().rpartition(")")[2].split()[0])
    return states

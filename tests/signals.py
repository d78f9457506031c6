"""Which signals the threads of this process take."""

import contextlib
import signal
import time
from pathlib import Path

# Those that a thread's own faults raise, which no other thread takes in its place.
FAULTS = [signal.SIGILL, signal.SIGTRAP, signal.SIGBUS, signal.SIGFPE, signal.SIGSEGV, signal.SIGSYS]
# No thread can block these two, and 32 and 33 belong to the C library.
NEVER_BLOCKED = {signal.SIGKILL, signal.SIGSTOP, 32, 33}
BEGUN = 10  # seconds within which a thread has begun, on a busy machine too


def taken_by_threads(name: str) -> list[list[int]]:
    """The signals that each thread with that name takes, in their order. The C library, and ASan's, block all of a
    thread's signals while it begins: that is waited for."""
    end = time.monotonic() + BEGUN
    found = _taken(name)
    while not all(taken.issuperset(FAULTS) for taken in found) and time.monotonic() < end:
        time.sleep(0.001)
        found = _taken(name)
    return [sorted(taken) for taken in found]


def _taken(name: str) -> list[set[int]]:
    found = []
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):  # it has ended meanwhile
            lines = (task / "status").read_text().splitlines()
            fields = dict(line.split(":", 1) for line in lines if ":" in line)
            blocked = int(fields["SigBlk"], 16)
            if fields["Name"].strip() == name:
                found.append({i for i in range(1, 65) if i not in NEVER_BLOCKED and not blocked >> (i - 1) & 1})
    return found

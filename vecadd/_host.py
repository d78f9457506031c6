"""What the operating system says of this host: processor and memory."""

import os
from collections.abc import Iterator
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")


def cpu_model() -> str | None:
    """The processor's name; None where the system does not give one (most AArch64 kernels)."""
    return next((value for name, value in _pairs("/proc/cpuinfo") if name == "model name"), None)


def memory_total() -> int:
    """Bytes of memory that this process may use: the machine's, or its control group's limit if that is lower."""
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limit = _cgroup_bytes("memory.max")
    return machine if limit is None else min(machine, limit)


def memory_available() -> int:
    """Bytes that can be allocated now without swapping."""
    kilobytes = next((value for name, value in _pairs("/proc/meminfo") if name == "MemAvailable"), None)
    machine = int(kilobytes.split()[0]) * 1024 if kilobytes else memory_total()
    limit, used = _cgroup_bytes("memory.max"), _cgroup_bytes("memory.current")
    return machine if limit is None or used is None else max(0, min(machine, limit - used))


def _pairs(path: str) -> Iterator[tuple[str, str]]:
    try:
        lines = Path(path).read_text(errors="replace").splitlines()
    except OSError:
        return
    for line in lines:
        name, _, value = line.partition(":")
        yield name.strip(), value.strip()


def _cgroup_bytes(name: str) -> int | None:
    """A figure of this process's control group (version 2); None where there is none, or no limit ("max")."""
    group = next((path for number, path in _pairs("/proc/self/cgroup") if number == "0"), None)
    if group is None:
        return None
    group = group.removeprefix(":")
    for folder in (_CGROUP / group.lstrip("/"), _CGROUP):  # inside a container the path may be the host's
        try:
            text = (folder / name).read_text().strip()
        except OSError:
            continue
        return int(text) if text.isdigit() else None
    return None

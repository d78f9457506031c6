"""What the operating system says of this host: processor and memory."""

import os
from collections.abc import Iterator
from pathlib import Path

# As in csrc/base/cgroup.h.
_MEMBERSHIP = "/proc/self/cgroup"
_MOUNT = Path("/sys/fs/cgroup")


def cpu_model() -> str | None:
    """The processor's name; None where the system does not give one (most AArch64 kernels)."""
    return next((value for name, value in _pairs("/proc/cpuinfo") if name == "model name"), None)


def memory_total() -> int:
    """Bytes of memory that this process may use: the machine's, or its control group's limit if that is lower."""
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min([machine, *(limit for limit, _ in _cgroup_limits())])


def memory_available() -> int:
    """Bytes that can be allocated now without swapping."""
    kilobytes = next((value for name, value in _pairs("/proc/meminfo") if name == "MemAvailable"), None)
    machine = int(kilobytes.split()[0]) * 1024 if kilobytes else memory_total()
    return max(0, min([machine, *(limit - used for limit, used in _cgroup_limits())]))


def _pairs(path: str) -> Iterator[tuple[str, str]]:
    try:
        lines = Path(path).read_text(errors="replace").splitlines()
    except OSError:
        return
    for line in lines:
        name, _, value = line.partition(":")
        yield name.strip(), value.strip()


def _cgroup_limits() -> list[tuple[int, int]]:
    """(limit, bytes used) of each of this process's control groups that has a limit of memory, versions 1 and 2. A
    group is held to the limits of all groups above it."""
    found = []
    for _, controllers, path in _memberships():
        if controllers == "":  # version 2's own mount, or its place beside version 1
            tops, names = [_MOUNT, _MOUNT / "unified"], ("memory.max", "memory.current")
        elif "memory" in controllers.split(","):
            tops, names = [_MOUNT / "memory"], ("memory.limit_in_bytes", "memory.usage_in_bytes")
        else:
            continue
        for top in tops:
            # Inside a container the path may be the host's; the mount's top is then the container's own group.
            group = top / path.lstrip("/")
            for folder in (group, *(parent for parent in group.parents if parent.is_relative_to(top))):
                limit, used = (_number(folder / name) for name in names)
                if limit:
                    found.append((limit, used))
    return found


def _memberships() -> list[list[str]]:
    """(number, controllers, path) of each hierarchy that the process is in."""
    try:
        lines = Path(_MEMBERSHIP).read_text(errors="replace").splitlines()
    except OSError:
        return []
    return [parts for line in lines if len(parts := line.split(":", 2)) == 3]


def _number(path: Path) -> int:
    """0 where there is none: no such file, or "max"."""
    try:
        text = path.read_text().strip()
    except OSError:
        return 0
    return int(text) if text.isdigit() else 0

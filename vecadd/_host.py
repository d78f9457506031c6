"""What the operating system says of this host: processor and memory."""

from pathlib import Path

from vecadd import _core


def cpu_model() -> str | None:
    """The processor's name; None where the system does not give one (most AArch64 kernels)."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    named = (line.partition(":") for line in lines)
    return next((value.strip() for name, _, value in named if name.strip() == "model name"), None)


def memory_total() -> int:
    """Bytes of memory that this process may use: the machine's, or its control group's limit if that is lower."""
    usable, _ = _core.host_memory()
    return usable


def memory_available() -> int:
    """Bytes that can be allocated now without swapping."""
    _, available = _core.host_memory()
    return available

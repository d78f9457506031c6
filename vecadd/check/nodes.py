"""NUMA nodes, by sysfs: which processors and how much memory each has, and which is a GPU's own."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

NODES = Path("/sys/devices/system/node")
PCI = Path("/sys/bus/pci/devices")

Result = TypeVar("Result")


@dataclass(frozen=True)
class Node:
    """``memory`` in bytes; None where it cannot be read."""

    number: int
    cpus: frozenset[int]
    memory: int | None


def nodes() -> list[Node]:
    """The machine's nodes by number; none where sysfs has none or cannot be read."""
    try:
        folders = sorted(NODES.glob("node[0-9]*"), key=lambda path: int(path.name[4:]))
    except OSError:
        return []
    return [Node(int(path.name[4:]), frozenset(_cpus(_read(path / "cpulist"))), _memory(path)) for path in folders]


def of_gpu(facts: dict[str, Any]) -> int | None:
    """The node that a GPU of _core.gpu_facts() is plugged into; None where the system does not say."""
    address = "{pci_domain:04x}:{pci_bus:02x}:{pci_device:02x}.0".format(**facts)
    text = _read(PCI / address / "numa_node")
    return int(text) if text.isdigit() else None  # "-1" where the firmware does not say


def on(node: Node, work: Callable[[], Result]) -> Result:
    """The work's result, done by a thread on the node's processors: what it allocates page-locked lies there. Raises
    OSError where this process may use none of them."""

    def there() -> Result:
        os.sched_setaffinity(0, node.cpus & before)
        return work()

    before = os.sched_getaffinity(0)
    with ThreadPoolExecutor(1) as pool:  # the affinity ends with the thread
        return pool.submit(there).result()


def usable(node: Node) -> bool:
    """Whether this process may run on one of its processors."""
    return bool(node.cpus & os.sched_getaffinity(0))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _cpus(text: str) -> Iterator[int]:
    """ "0-3,8" as 0, 1, 2, 3, 8."""
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        if first.isdigit() and (last or first).isdigit():
            yield from range(int(first), int(last or first) + 1)


def _memory(path: Path) -> int | None:
    """Of a line "Node 0 MemTotal:       32768000 kB"."""
    words = next((line.split() for line in _read(path / "meminfo").splitlines() if "MemTotal" in line), [])
    return int(words[3]) << 10 if len(words) > 3 and words[3].isdigit() else None

"""How the machine is put together: its NUMA nodes, and how its GPUs are connected."""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from vecadd import _machine
from vecadd._machine import Gpu
from vecadd.bench import machine

# NUMA nodes, by sysfs: which processors and how much memory each has, and which is a GPU's own.

NODES = Path("/sys/devices/system/node")
PCI = Path("/sys/bus/pci/devices")

Result = TypeVar("Result")


@dataclass(frozen=True)
class Node:
    """``memory`` in bytes; None where it cannot be read."""

    number: int
    cpus: frozenset[int]
    memory: int | None


def numa_nodes() -> list[Node]:
    """The machine's nodes by number; none where sysfs has none or cannot be read."""
    try:
        folders = sorted(NODES.glob("node[0-9]*"), key=lambda path: int(path.name[4:]))
    except OSError:
        return []
    return [Node(int(path.name[4:]), frozenset(_cpus(_read(path / "cpulist"))), _memory(path)) for path in folders]


def node_of_gpu(facts: dict[str, Any]) -> int | None:
    """The node that a GPU of _core.gpu_facts() is plugged into; None where the system does not say."""
    address = "{pci_domain:04x}:{pci_bus:02x}:{pci_device:02x}.0".format(**facts)
    text = _read(PCI / address / "numa_node")
    return int(text) if text.isdigit() else None  # "-1" where the firmware does not say


def run_on_node(node: Node, work: Callable[[], Result]) -> Result:
    """The work's result, done by a thread on the node's processors: page-locked memory that it
    allocates is the node's. Raises OSError where this process may use none of them."""

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


# How GPUs are connected, by nvidia-smi: NVLink and how many links of what rate, or PCIe and what is between them.
#
# Which inactive NVLinks are a fault? A card may have links that nothing is plugged into. Bridges and boards that
# connect cards directly take a third of a card's links each: a bridge of an A100 4 of 12, a board of four H100s 6 of 18
# for each pair, the bridges of an H100 PCIe 12 of 18. So a third or two thirds that are active on all GPUs of a card is
# how the machine was built, and so are no active links. Any other number is a fault: behind a switch all are active,
# and a switch that fails takes 2 of 12, or 4 or 5 of 18.

# nvidia-smi's words for what a PCIe path goes through.
PATHS = {
    "PIX": "one PCIe switch",
    "PXB": "PCIe switches",
    "PHB": "a PCIe host bridge",
    "NODE": "host bridges of one NUMA node",
    "SYS": "the link between NUMA nodes",
}
DIRECT = ("PIX", "PXB")  # paths whose theory is the GPUs' own PCIe link


@dataclass(frozen=True)
class Connection:
    """``rate`` in bytes a second each way in theory; None where no theory says it."""

    name: str
    rate: float | None = None

    @property
    def nvlink(self) -> bool:
        return self.name.startswith("NVLink")


UNKNOWN = Connection("an unknown connection")


@dataclass
class NvLinks:
    """The NVLinks of a GPU, by their numbers. ``card`` is its name, ``rate`` that of one that works, in bytes a second
    each way, ``expected`` how many should be active."""

    card: str
    active: list[int] = field(default_factory=list)
    inactive: list[int] = field(default_factory=list)
    rate: float | None = None
    expected: int = 0

    @property
    def count(self) -> int:
        return len(self.active) + len(self.inactive)


def nvlinks(facts: Sequence[dict[str, Any]]) -> dict[int, NvLinks]:
    """NVLinks of each of our GPUs that nvidia-smi lists; ``facts`` are those of _core.gpu_facts()."""
    found = _known_links(_matrix(_machine.ask_nvidia_smi("topo", "-m")))
    return {ours: found[number] for ours, number in smi_numbers(facts).items() if number in found}


def _known_links(matrix: Mapping[tuple[int, int], str]) -> dict[int, NvLinks]:
    """By nvidia-smi's numbers. How many links should be active follows from the other GPUs of the same card."""
    found = _nvlinks(_machine.ask_nvidia_smi("nvlink", "--status"))
    for number, links in found.items():
        card = {other: its for other, its in found.items() if its.card == links.card}
        most, count = max(len(its.active) for its in card.values()), max(its.count for its in card.values())
        links.expected = most if 3 * most % (count or 1) == 0 else count
        if not links.active and (_are_pairs(card, matrix) or _is_divided(number)):
            links.expected = 0
    return found


def _are_pairs(card: Mapping[int, NvLinks], matrix: Mapping[tuple[int, int], str]) -> bool:
    """Whether NVLink joins the GPUs of a card two by two, as bridges do: one may have no other."""
    return all(
        sum(word.startswith("NV") for (row, _), word in matrix.items() if row == number) == 1
        for number, links in card.items()
        if links.active
    )


def _is_divided(number: int) -> bool:
    """Whether the GPU is in MIG mode, in which an A100's links are off."""
    return any(
        row.get("index") == str(number) and row.get("mig.mode.current") == "Enabled"
        for row in _machine.query_nvidia_smi("gpu", "index", "mig.mode.current")
    )


def connections(gpus: Sequence[Gpu], facts: Sequence[dict[str, Any]]) -> dict[tuple[int, int], Connection]:
    """Paths of every ordered pair of GPUs that nvidia-smi lists; ``facts`` are those of _core.gpu_facts()."""
    numbers = smi_numbers(facts)
    matrix = _matrix(_machine.ask_nvidia_smi("topo", "-m"))
    links = _known_links(matrix)
    found = {}
    for a in gpus:
        for b in gpus:
            word = matrix.get((numbers.get(a.index, -1), numbers.get(b.index, -1)))
            if a is not b and word is not None:
                ends = [links.get(numbers[gpu.index]) for gpu in (a, b)]
                found[a.index, b.index] = _connection(word, ends, a, b)
    return found


def _connection(word: str, ends: Sequence[NvLinks | None], a: Gpu, b: Gpu) -> Connection:
    if nvlink := re.fullmatch(r"NV(\d+)", word):
        count = int(nvlink[1])
        full = round(count * max((end.expected / len(end.active) for end in ends if end and end.active), default=1.0))
        name = f"NVLink, {count} links" if full == count else f"NVLink, {count} of {full} links"
        rate = ends[0].rate if ends[0] else None
        return Connection(name, None if rate is None else full * rate)
    pcie = [machine.link_theory(gpu.link_generation_max, gpu.link_width_max) for gpu in (a, b)]
    rate = min(each for each in pcie if each) if all(pcie) and word in DIRECT else None
    return Connection(f"PCIe through {PATHS.get(word, word)}", rate)


def smi_numbers(facts: Sequence[dict[str, Any]]) -> dict[int, int]:
    """nvidia-smi's number of each of our GPUs: it counts all GPUs, and CUDA those that it is let see."""
    by_address = {
        tuple(int(part, 16) for part in re.split("[:.]", row["pci.bus_id"])[:3]): int(row["index"])
        for row in _machine.query_nvidia_smi("gpu", "index", "pci.bus_id")
        if len(row) == 2
    }
    addresses = {ours: (each["pci_domain"], each["pci_bus"], each["pci_device"]) for ours, each in enumerate(facts)}
    return {ours: by_address[address] for ours, address in addresses.items() if address in by_address}


def _matrix(text: str) -> dict[tuple[int, int], str]:
    """Words by row and column, of the lines that begin with a GPU's name."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    head = next((line.split() for line in plain.splitlines() if line.split()[:1] == ["GPU0"]), [])
    columns = [int(name[3:]) for name in head if re.fullmatch(r"GPU\d+", name)]
    found: dict[tuple[int, int], str] = {}
    for line in plain.splitlines():
        name, *words = line.split() or [""]
        if re.fullmatch(r"GPU\d+", name) and words[:1] != ["GPU1"] and len(words) >= len(columns):
            found |= {(int(name[3:]), column): word for column, word in zip(columns, words, strict=False)}
    return found


def _nvlinks(text: str) -> dict[int, NvLinks]:
    """The links of each GPU, by nvidia-smi's numbers. Of a GPU without an active one it may list none."""
    found: dict[int, NvLinks] = {}
    gpu = NvLinks("")
    for line in text.splitlines():
        if head := re.match(r"GPU (\d+): (.*?)(?: \(UUID.*)?$", line):
            gpu = found[int(head[1])] = NvLinks(head[2])
        elif link := re.search(r"Link (\d+): (?:([\d.]+) GB/s|<inactive>)", line):
            (gpu.active if link[2] else gpu.inactive).append(int(link[1]))
            gpu.rate = max(gpu.rate or 0.0, float(link[2]) * 1e9) if link[2] else gpu.rate
    return found

"""How two GPUs are connected, by nvidia-smi: NVLink and how many links of what rate, or PCIe and what lies between."""

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from vecadd import _nvidia_smi
from vecadd._machine import Gpu
from vecadd.bench import machine

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


def connections(gpus: Sequence[Gpu], facts: Sequence[dict[str, Any]]) -> dict[tuple[int, int], Connection]:
    """Of every ordered pair of GPUs that nvidia-smi tells of; ``facts`` are those of _core.gpu_facts()."""
    numbers = numbers_of(facts)
    matrix = _matrix(_said("topo", "-m"))
    rates = _link_rates(_said("nvlink", "--status"))
    found = {}
    for a in gpus:
        for b in gpus:
            word = matrix.get((numbers.get(a.index, -1), numbers.get(b.index, -1)))
            if a is not b and word is not None:
                found[a.index, b.index] = _connection(word, rates.get(numbers[a.index]), a, b)
    return found


def _connection(word: str, link: float | None, a: Gpu, b: Gpu) -> Connection:
    if nvlink := re.fullmatch(r"NV(\d+)", word):
        count = int(nvlink[1])
        return Connection(f"NVLink, {count} links", None if link is None else count * link)
    pcie = [machine.link_theory(gpu.link_generation_max, gpu.link_width_max) for gpu in (a, b)]
    rate = min(each for each in pcie if each) if all(pcie) and word in DIRECT else None
    return Connection(f"PCIe through {PATHS.get(word, word)}", rate)


def numbers_of(facts: Sequence[dict[str, Any]]) -> dict[int, int]:
    """nvidia-smi's number of each of our GPUs: it counts all GPUs, and CUDA those that it is let see."""
    by_address = {
        tuple(int(part, 16) for part in re.split("[:.]", row["pci.bus_id"])[:3]): int(row["index"])
        for row in _nvidia_smi.query("gpu", "index", "pci.bus_id")
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


def _link_rates(text: str) -> dict[int, float]:
    """Bytes a second of one of each GPU's NVLinks, each way."""
    rates: dict[int, float] = {}
    gpu = -1
    for line in text.splitlines():
        if head := re.match(r"GPU (\d+):", line):
            gpu = int(head[1])
        elif rate := re.search(r"Link \d+: ([\d.]+) GB/s", line):
            rates[gpu] = float(rate[1]) * 1e9
    return rates


def _said(*words: str) -> str:
    """What nvidia-smi prints; nothing where it cannot be asked."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return ""
    try:
        return subprocess.run(
            [tool, *words], capture_output=True, text=True, errors="replace", timeout=_nvidia_smi.TIMEOUT, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return ""

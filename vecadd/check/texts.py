"""What a row's figure means, and what to do where it is not what it should be."""

from dataclasses import dataclass

from vecadd.check.rows import GROUPS, Row, Severity


@dataclass(frozen=True)
class Text:
    """``meaning`` are sentences; ``next`` is empty where nothing is to be done."""

    meaning: str
    next: str = ""


_MEMORY = "Run it again on an idle machine. If it stays, look at ECC errors, clocks and temperatures (nvidia-smi -q)."
_SLOT = "Seat the card anew, look at riser and slot in the BIOS, and at PCIe errors (AER) in the kernel's log."

# By the longest beginning of a row's figure.
_TEXTS = {
    "host add": Text(
        "The rate of an addition that goes through the host's memory, every array counted once.",
        "Look at what else runs, at the processor's clock, and whether every memory channel has its module.",
    ),
    "host add 2^10": Text(
        "The time of an addition of 4 KiB, which is all call and no memory.",
        "Look at the processor's clock and at what else runs.",
    ),
    "link to": Text("The rate of copies between page-locked host memory and the GPU, one way at a time.", _SLOT),
    "link both ways": Text("The sum of both directions' rates while copies go both ways at once.", _SLOT),
    "link generation": Text("The PCIe generation of the GPU's link while it is busy.", _SLOT),
    "link width": Text("The lanes of the GPU's link while it is busy.", _SLOT),
    "device read": Text("The rate at which kernels read the GPU's memory.", _MEMORY),
    "device write": Text("The rate at which kernels write the GPU's memory.", _MEMORY),
    "device add": Text("The rate of vecadd's kernel: two arrays read and one written, each counted once.", _MEMORY),
    "launch": Text(
        "The time of launching work on the GPU: the driver's and the host's as much as the GPU's.",
        "Look at the processor's clock and power governor, and at debuggers and profilers that are attached.",
    ),
    "pair copy": Text(
        "From one GPU's memory into another's by a copy engine.",
        "Look at nvidia-smi nvlink --status and topo -m; at the fabric manager; on PCIe at ACS and IOMMU settings.",
    ),
    "pair read": Text(
        "A kernel reads another GPU's memory into its own.",
        "Look at nvidia-smi nvlink --status and topo -m; at the fabric manager; on PCIe at ACS and IOMMU settings.",
    ),
    "pair write": Text(
        "A kernel writes its GPU's memory into another's.",
        "Look at nvidia-smi nvlink --status and topo -m; at the fabric manager; on PCIe at ACS and IOMMU settings.",
    ),
}

_LOG = "Look for Xid errors and other messages of the driver in the kernel's log."
_AT_ONCE = "Take the machine out of service: a result that is wrong without an error cannot be used."


def of(row: Row, severity: Severity) -> Text:
    """Of a row with that severity."""
    known = max((key for key in _TEXTS if row.figure.startswith(key)), key=len, default=None)
    text = _TEXTS[known] if known else Text(f"Probes of the group {GROUPS[row.kind]!r}.", _LOG)
    if severity == "unknown":
        disturbed = f"{_off(row)} Other work kept the host's processors busy."
        why = f"It could not be measured: {row.error}" if row.error else disturbed
        return Text(f"{text.meaning} {why}", "End other work, and run it again.")
    if row.error is not None:
        wrong = "wrong" in row.error
        return Text(f"{text.meaning} It failed: {row.error}", _AT_ONCE if wrong else text.next)
    if severity == "info":
        return Text(f"{text.meaning} Nothing says what it should be.")
    if severity == "pass":
        return Text(text.meaning)
    return Text(f"{text.meaning} {_off(row)}{_degraded(row)}", text.next)


def _off(row: Row) -> str:
    value, worst, bound = row.value, row.worst, row.bound
    if value is None or worst is None or not bound:
        return ""
    beyond = "above the most" if row.unit == "s" else "below the least"
    if row.passed:
        return (
            f"One measurement was {100 * abs(worst / bound - 1):.0f} % {beyond} that passes, and the median of "
            f"{len(row.values)} passes: it flutters."
        )
    return f"It is {100 * abs(value / bound - 1):.0f} % {beyond} that passes, by the median of {len(row.values)}."


def _degraded(row: Row) -> str:
    """Of a link that is less than it could be."""
    if row.name not in ("generation", "width") or row.value is None or row.expected is None:
        return ""
    mark = "x" if row.name == "width" else "PCIe "
    return f" degraded link: {mark}{row.value:.0f} under load, where {mark}{row.expected.value:.0f} is possible."

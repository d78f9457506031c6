"""What the probes of a run measured, as the model wants it: seconds, and bytes a second."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

# Where each stands in the "limits" of a result file's meta; rates are kept there in GB/s.
_PLACES: Mapping[str, tuple[str, str]] = {
    "read": ("device", "read_gbps"),
    "write": ("device", "write_gbps"),
    "copy": ("device", "copy_gbps"),
    "l2_read": ("device", "l2_read_gbps"),
    "l2_write": ("device", "l2_write_gbps"),
    "kernel": ("launch", "kernel_seconds"),
    "block": ("launch", "block_seconds"),
    "turnaround": ("launch", "turnaround_seconds"),
    "queued": ("launch", "queued_seconds"),
    "node": ("launch", "node_seconds"),
    "issued": ("launch", "issued_seconds"),
    "l1": ("latency", "l1_seconds"),
    "l2": ("latency", "l2_seconds"),
    "page": ("latency", "page_seconds"),
    "dram": ("latency", "dram_seconds"),
    "stream": ("latency", "stream_seconds"),
    "atomic": ("latency", "atomic_seconds"),
    "to_device": ("link", "to_device_gbps"),
    "to_host": ("link", "to_host_gbps"),
    "both": ("link", "both_gbps"),
    "waited_copy": ("link", "copy_seconds"),
    "queued_copy": ("link", "queued_copy_seconds"),
    "made_stream": ("link", "stream_seconds"),
}


@dataclass(frozen=True)
class Limits:
    """What a machine does at best, by probes. What a run did not probe is None, and raises ValueError when the model
    asks for it."""

    read: float | None = None  # bytes a second: the memory, read and nothing else
    write: float | None = None
    copy: float | None = None  # half read, half written
    l2_read: float | None = None
    l2_write: float | None = None
    kernel: float | None = None  # seconds: an empty kernel, by the clock of the device rungs
    block: float | None = None  # for each block that starts
    turnaround: float | None = None  # from the end of a block to the work of the next in its place
    queued: float | None = None  # from kernel to kernel of a queue
    node: float | None = None  # from kernel to kernel of a graph
    issued: float | None = None  # of the host, for a launch
    l1: float | None = None  # of a load that the next waits for
    l2: float | None = None
    page: float | None = None  # found in the L2, in a page that was not used for long
    dram: float | None = None
    stream: float | None = None  # of a round of a block's loads from two arrays side by side, from DRAM
    atomic: float | None = None  # of one atomic addition to an address that a block adds to
    to_device: float | None = None  # bytes a second: of the link, alone
    to_host: float | None = None
    both: float | None = None  # both ways at once, in sum
    waited_copy: float | None = None  # seconds of the host: of a small copy that it waits for
    queued_copy: float | None = None  # of queueing one
    made_stream: float | None = None  # of making and destroying a stream

    @classmethod
    def of(cls, meta_limits: Mapping[str, Mapping[str, Any]]) -> "Limits":
        """From the "limits" of a result file's meta."""
        found = {name: meta_limits.get(part, {}).get(key) for name, (part, key) in _PLACES.items()}
        return cls(**{name: _unit(name) * value for name, value in found.items() if value is not None})

    def need(self, name: str) -> float:
        """That limit; raises ValueError where the run did not measure it."""
        value: float | None = getattr(self, name)
        if value is None:
            part, key = _PLACES[name]
            raise ValueError(f"this run did not measure {name}: its meta has no limits[{part!r}][{key!r}]")
        return value

    @property
    def far(self) -> float:
        """Seconds of a warp's loads from the memory: `stream`, which is of the latest of many sectors; `dram` of one
        sector where a run did not measure that."""
        return self.need("dram") if self.stream is None else self.stream

    def missing(self) -> list[str]:
        """The names of those that were not measured."""
        return [field.name for field in fields(self) if getattr(self, field.name) is None]

    def memory_seconds(self, read: float, written: float) -> float:
        """How long the memory takes for so many bytes read and written together.

        Each at its own rate, and for each written byte the memory's turn from reading to writing and back, which is
        what a copy takes beyond its reads and its writes. On an H200 that is 4 % of an addition: 4.35 TB/s where reads
        and writes alone would allow 4.6.
        """
        alone = read / self.need("read") + written / self.need("write")
        turn = 0.0 if self.copy is None else 2 / self.copy - 1 / self.need("read") - 1 / self.need("write")
        return alone + min(read, written) * max(turn, 0.0)


def _unit(name: str) -> float:
    return 1e9 if _PLACES[name][1].endswith("gbps") else 1.0

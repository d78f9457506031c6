"""Attributes of a GPU, and how many blocks one of its multiprocessors holds."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

WARP = 32
PARTITIONS = 4  # schedulers of a multiprocessor, each with its part of the registers and the warps
REGISTERS_AT_ONCE = 256  # a warp's registers are allocated in steps of so many
SHARED_AT_ONCE = 128  # bytes: a block's shared memory too

# By compute capability: threads, blocks and shared memory of a multiprocessor in KiB, and its float32 cores (CUDA C++
# Programming Guide, "Technical Specifications per Compute Capability" and "Arithmetic Instructions"). What a dict of
# facts may leave out: the model can be asked about a GPU that is not here.
_SPECIFIED: Mapping[int, tuple[int, int, int, int]] = {
    75: (1024, 16, 64, 64),
    80: (2048, 32, 164, 64),
    86: (1536, 16, 100, 128),
    89: (1536, 24, 100, 128),
    90: (2048, 32, 228, 128),
    100: (2048, 32, 228, 128),
    120: (1536, 24, 100, 128),
}
_REGISTERS = 65536  # of a multiprocessor, in all of them


class Occupancy(NamedTuple):
    """``blocks`` that a multiprocessor holds at once, ``occupancy`` 0..1 of its warps, and what ``limit`` keeps it from
    holding more: "threads", "blocks", "registers" or "shared memory".

    >>> vecadd.model.Occupancy(blocks=8, occupancy=1.0, limit="threads").blocks
    8
    """

    blocks: int
    occupancy: float
    limit: str


@dataclass(frozen=True)
class Gpu:
    """What the model needs of a GPU. Memory in bytes, clock in Hz.

    >>> vecadd.model.Gpu.of({"compute_capability": "9.0", "multiprocessors": 132, "l2": 60 << 20}).threads
    2048
    """

    capability: int  # 90 for 9.0
    multiprocessors: int
    threads: int  # of a multiprocessor
    blocks: int
    registers: int
    shared: int
    shared_reserved: int  # that each block takes beside its own
    cores: int  # of a multiprocessor, that add float32
    l2: int
    clock: float | None  # at most; None where the driver hides it
    bandwidth: float | None  # of its memory in theory, bytes a second

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> "Gpu":
        """From a dict of ``_core.gpu_facts()`` or of ``vecadd.info()``. What a dict leaves out comes from CUDA's
        tables. Raises ValueError for a compute capability that the tables lack too.

        >>> vecadd.model.Gpu.of({"compute_capability": "7.5", "multiprocessors": 40, "l2": 4 << 20}).blocks
        16
        """
        if "compute_capability" in facts:
            major, minor = facts["compute_capability"].split(".")
            capability, clock, bandwidth = 10 * int(major) + int(minor), facts.get("clock"), facts.get("bandwidth")
        else:
            capability = 10 * int(facts["cc_major"]) + int(facts["cc_minor"])
            clock = 1e3 * facts.get("clock_khz", 0) or None
            bandwidth = 2e3 * facts["memory_clock_khz"] * facts["memory_bus_bits"] / 8 or None
        known = max((listed for listed in _SPECIFIED if listed <= capability), default=None)
        if known is None:
            raise ValueError(f"compute capability {capability / 10} is below 7.5, the least that vecadd runs on")
        threads, blocks, shared, cores = _SPECIFIED[known]
        return cls(
            capability=capability,
            multiprocessors=facts["multiprocessors"],
            threads=facts.get("threads_per_multiprocessor", threads),
            blocks=facts.get("blocks_per_multiprocessor", blocks),
            registers=facts.get("registers_per_multiprocessor", _REGISTERS),
            shared=facts.get("shared_per_multiprocessor", shared << 10),
            shared_reserved=facts.get("shared_reserved", 1024 if capability >= 80 else 0),
            cores=cores,
            l2=facts["l2"],
            clock=clock,
            bandwidth=bandwidth,
        )

    @property
    def peak(self) -> float:
        """Additions of float32 a second at most: multiprocessors * cores * clock. Raises ValueError where the clock is
        not known."""
        return self.multiprocessors * self.cores * self.cycles(1)

    def cycles(self, seconds: float) -> float:
        """How many clock cycles a multiprocessor makes in that time, at its highest clock.

        >>> h200 = {"compute_capability": "9.0", "multiprocessors": 132, "l2": 60 << 20, "clock": 1.98e9}
        >>> vecadd.model.Gpu.of(h200).cycles(600e-9)
        1188.0
        """
        if not self.clock:
            raise ValueError("the driver does not say this GPU's clock; the model needs it")
        return seconds * self.clock


def occupancy(gpu: Gpu | Mapping[str, Any], block: int, registers: int = 16, shared: int = 0) -> Occupancy:
    """How many blocks of that many threads a multiprocessor holds at once, and what keeps it from more.

    ``registers`` a thread, ``shared`` bytes a block. The rules are those of CUDA's occupancy calculator: registers are
    allocated to warps by the 256 in each of four partitions, shared memory to blocks by the 128 bytes.

    >>> h200 = {"compute_capability": "9.0", "multiprocessors": 132, "l2": 60 << 20}
    >>> vecadd.model.occupancy(h200, block=256, registers=64)
    Occupancy(blocks=4, occupancy=0.5, limit='registers')
    """
    gpu = gpu if isinstance(gpu, Gpu) else Gpu.of(gpu)
    if not 1 <= block <= 1024:
        raise ValueError(f"block must be 1 to 1024 threads, not {block!r}")
    if not 1 <= registers <= 255:
        raise ValueError(f"registers must be 1 to 255 a thread, not {registers!r}")
    warps = -(-block // WARP)
    of_a_warp = _rounded_up(registers * WARP, REGISTERS_AT_ONCE)
    room = gpu.registers // PARTITIONS // of_a_warp * PARTITIONS  # warps
    taken = _rounded_up(shared, SHARED_AT_ONCE) + gpu.shared_reserved
    bounds = {
        "threads": gpu.threads // (warps * WARP),
        "blocks": gpu.blocks,
        "registers": room // warps,
        "shared memory": gpu.shared // taken if shared else gpu.blocks,
    }
    limit = min(bounds, key=lambda name: bounds[name])
    return Occupancy(bounds[limit], bounds[limit] * warps * WARP / gpu.threads, limit)


def _rounded_up(value: int, step: int) -> int:
    return -(-value // step) * step

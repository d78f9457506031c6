"""The few formulas of the ladder, and the attributes of a GPU that they take.

None depends on the name of a rung or of a GPU.

"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from vecadd import _core


@dataclass(frozen=True)
class Prediction:
    """``seconds`` in all, and the ``terms`` that they were made from, in seconds; terms that overlap do not add up.
    ``dominant`` is the term that decides.

    >>> vecadd.model.Prediction(2e-3, {"memory": 2e-3, "launch": 3e-6}, dominant="memory").terms["launch"]
    3e-06
    """

    seconds: float
    terms: Mapping[str, float]
    dominant: str


def longest(seconds: float, terms: Mapping[str, float]) -> Prediction:
    """A prediction that its longest term decides."""
    return Prediction(seconds, terms, max(terms, key=lambda name: terms[name]))


def itemsize(dtype: str) -> int:
    """Bytes of an element; KeyError for a dtype that vecadd does not add."""
    return _core.DTYPES[dtype]


# Attributes of a GPU, and how many blocks fit on one of its multiprocessors.

WARP = 32
PARTITIONS = 4  # schedulers of a multiprocessor, each with its part of the registers and the warps
REGISTERS_AT_ONCE = 256  # a warp's registers are allocated in steps of that many
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
    """``blocks`` that fit on a multiprocessor at once, ``occupancy`` 0..1 of its warps, and what ``limit`` keeps more
    from fitting: "threads", "blocks", "registers" or "shared memory".

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
    """How many blocks of that many threads fit on a multiprocessor at once, and what keeps it from more.

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
    of_a_warp = rounded_up(registers * WARP, REGISTERS_AT_ONCE)
    room = gpu.registers // PARTITIONS // of_a_warp * PARTITIONS  # warps
    taken = rounded_up(shared, SHARED_AT_ONCE) + gpu.shared_reserved
    bounds = {
        "threads": gpu.threads // (warps * WARP),
        "blocks": gpu.blocks,
        "registers": room // warps,
        "shared memory": gpu.shared // taken if shared else gpu.blocks,
    }
    limit = min(bounds, key=lambda name: bounds[name])
    return Occupancy(bounds[limit], bounds[limit] * warps * WARP / gpu.threads, limit)


def rounded_up(value: int, step: int) -> int:
    """The least multiple of the step from the value on."""
    return -(-value // step) * step


# Formulas

ARRAYS = 3  # a, b and c

CACHES = 4  # the sets together are this many times as large as the cache, so that it does not help
MOST_SETS = 64  # small sets stay in the cache whatever their number; more would only cost time to fill


def with_defaults(rung: Mapping[str, Any], chosen: Mapping[str, int]) -> dict[str, int]:
    """All parameters of a rung of ``_core.rungs()``: those chosen, and the usual ones of the others."""
    return {name: bounds[1] for name, bounds in rung["params"].items()} | dict(chosen)


def with_parameters(rung: Mapping[str, Any], chosen: Mapping[str, int]) -> Mapping[str, Any]:
    """The row of a rung of ``_core.rungs()`` as it is with these parameters. A rung that is told to add to the sum's
    contents loads those too; one that is told to write the sum does not. Without its bulk copies a rung loads an
    element at a time.

    >>> rung = next(rung for rung in vecadd._core.rungs() if rung["name"] == "grid_stride")
    >>> written = vecadd.model.theory.with_parameters(rung, {"accumulate": 0})
    >>> written["sum"], written["bytes_per_element"], written["loads_in_flight"]
    ('written', 12, 2)
    """
    if chosen.get("bulk") == 0:
        return {**rung, "load": "LDG.E", "bytes_per_load": 4}
    bounds = rung.get("params", {}).get("accumulate")
    accumulates = chosen.get("accumulate", bounds[1]) if bounds else None
    if accumulates is None or accumulates == (rung["sum"] == "added"):
        return rung
    more = 1 if accumulates else -1
    return {
        **rung,
        "sum": "added" if accumulates else "written",
        "bytes_per_element": rung["bytes_per_element"] + 4 * more,
        "loads_in_flight": rung["loads_in_flight"] + more,
    }


def has_defaults(rung: Mapping[str, Any], chosen: Mapping[str, int]) -> bool:
    """Whether these are a rung's usual parameters, which are those of the documents."""
    return with_defaults(rung, chosen) == with_defaults(rung, {})


def rotating_sets(set_bytes: int, cache: int, memory: int) -> int:
    """How many sets of operands of ``set_bytes`` the bench goes round: enough to exceed the cache if MOST_SETS and
    ``memory`` allow it."""
    wanted = math.ceil(CACHES * cache / set_bytes)
    return max(1, min(wanted, MOST_SETS, memory // set_bytes))


def bytes_moved(n: int, itemsize: int, arrays: int = ARRAYS) -> int:
    """Bytes that an addition of n elements has to move: each array once. ``arrays`` is 4 where c is read too.

    >>> vecadd.model.bytes_moved(1_000_000, 4)
    12000000
    """
    _at_least("n", n, 0)
    _at_least("itemsize", itemsize, 1)
    _at_least("arrays", arrays, 1)
    return arrays * n * itemsize


def arithmetic_intensity(itemsize: int, arrays: int = ARRAYS) -> float:
    """Additions a byte moved: 1/12 for float32 (founding documents 000 and 001), 1/6 for float16 (001).

    >>> vecadd.model.arithmetic_intensity(4) == 1 / 12
    True
    """
    return 1 / bytes_moved(1, itemsize, arrays)


def roofline(intensity: float, bandwidth: float, peak: float) -> float:
    """Operations a second that a kernel can reach at best: min(intensity * bandwidth, peak) (Williams, Waterman and
    Patterson, "Roofline", 2009). ``intensity`` in operations a byte, ``bandwidth`` in bytes and ``peak`` in operations
    a second.

    >>> vecadd.model.roofline(1 / 12, bandwidth=4.8e12, peak=33e12)
    400000000000.0
    """
    for name, value in (("intensity", intensity), ("bandwidth", bandwidth), ("peak", peak)):
        _positive(name, value)
    return min(intensity * bandwidth, peak)


def balance(bandwidth: float, peak: float) -> float:
    """Operations a byte from which on the arithmetic and no longer the memory is the bound: the roofline's ridge.

    >>> vecadd.model.balance(bandwidth=4.8e12, peak=33.6e12)
    7.0
    """
    _positive("bandwidth", bandwidth)
    _positive("peak", peak)
    return peak / bandwidth


def bytes_needed(bandwidth: float, latency: float) -> float:
    """Bytes that have to be in flight for a bandwidth at a latency: Little's law, bandwidth * latency (Little 1961).

    >>> vecadd.model.bytes_needed(bandwidth=4.8e12, latency=600e-9) / 132        # on each multiprocessor of an H200
    21818.18...
    """
    _positive("bandwidth", bandwidth)
    _positive("latency", latency)
    return bandwidth * latency


def load_bytes(rung: Mapping[str, Any], itemsize: int) -> int:
    """Bytes of one load of a device rung: those of its row, or of one element where it loads single elements and where
    an element is larger. Rows of the precision rungs count 16-bit elements, the others' rows float32."""
    load: int = rung["bytes_per_load"]
    if rung.get("family") == "precision":
        return load
    return itemsize if load == 4 else max(load, itemsize)


def bytes_in_flight(
    rung: Mapping[str, Any], gpu: Mapping[str, Any], n: int, itemsize: int, params: Mapping[str, int], block: int = 0
) -> int:
    """Bytes that a multiprocessor is waiting for at one time: a thread's loads before the first use, times the threads
    that fit on it at once: 2 * 4 * 256 * 8 = 16 KiB for `naive` on float32. No more than its share of the inputs.

    ``rung`` is a row of ``_core.rungs()``, ``gpu`` a dict of ``_core.gpu_facts()`` or of a result file's
    ``meta["gpu"]``, ``params`` all parameters of the rung, ``block`` its threads a block, 0 for its own. Raises
    ValueError for blocks that no kernel has.

    >>> naive = {"block": 256, "blocks": 0, "bytes_per_load": 4, "loads_in_flight": 2, "bytes_per_element": 12}
    >>> h200 = {"compute_capability": "9.0", "multiprocessors": 132, "l2": 60 << 20}
    >>> vecadd.model.bytes_in_flight(naive, h200, n=2**26, itemsize=4, params={})
    16384
    """
    device, rung = Gpu.of(gpu), with_parameters(rung, params)
    block = block or rung["block"] or 1024  # tuned, which chooses its block itself, fills the multiprocessor
    multiprocessors, blocks = 1, rung["blocks"]
    if not blocks:
        multiprocessors, resident = device.multiprocessors, occupancy(device, block).blocks
        blocks = min(params.get("blocks_per_sm", resident), resident)
    inputs = (rung["bytes_per_element"] // 4 - 1) * n * itemsize
    widest = load_bytes(rung, itemsize)
    loads = params.get("stages", 0) * 2 or rung["loads_in_flight"]  # a stage of async_copy is a load of each input
    of_a_thread = loads * min(widest, params.get("bytes", widest))
    return int(min(blocks * block * of_a_thread, -(-inputs // multiprocessors)))


def waves(blocks: int, active_blocks: int, multiprocessors: int) -> float:
    """How often the GPU is filled with blocks: blocks / (active blocks of a multiprocessor * multiprocessors). Whole
    numbers are best: a last wave that is nearly empty takes as long as a full one (founding document 004).

    >>> vecadd.model.waves(blocks=1320, active_blocks=8, multiprocessors=132)
    1.25
    """
    _at_least("blocks", blocks, 0)
    _at_least("active_blocks", active_blocks, 1)
    _at_least("multiprocessors", multiprocessors, 1)
    return blocks / (active_blocks * multiprocessors)


def overlap(to_device: float, kernel: float, to_host: float, streams: int) -> float:
    """Seconds of host → GPU → host where each of ``streams`` streams has an equal part of the three stages.

    One stream: their sum. More: the longest stage never stops, and the parts of the others before its first and after
    its last part are not hidden; with many parts the longest remains, max(100, 10, 100) = 100 in founding document
    004. Uploads of a and b share one direction: ``to_device`` is for both.

    >>> vecadd.model.overlap(to_device=0.5, kernel=0.25, to_host=0.5, streams=1)
    1.25
    >>> vecadd.model.overlap(to_device=0.5, kernel=0.25, to_host=0.5, streams=3)
    0.75
    """
    stages = (to_device, kernel, to_host)
    for name, value in zip(("to_device", "kernel", "to_host"), stages, strict=True):
        if not value >= 0:
            raise ValueError(f"{name} must be seconds, at least 0, not {value!r}")
    _at_least("streams", streams, 1)
    longest = max(stages)
    return longest + (sum(stages) - longest) / streams


def _at_least(name: str, value: int, least: int) -> None:
    if not value >= least:
        raise ValueError(f"{name} must be at least {least}, not {value!r}")


def _positive(name: str, value: float) -> None:
    if not value > 0:
        raise ValueError(f"{name} must be greater than 0, not {value!r}")


# The shapes that a matrix rung is measured with, by the elements of its result.

# Columns of a product's one factor and rows of the other; document 004 does not say how many it had.
INNER = 4096


def near_square(n: int) -> tuple[int, int]:
    """Rows and columns of a matrix of n elements, as near to each other as whole numbers allow, no more rows than
    columns."""
    rows = next(rows for rows in range(math.isqrt(n), 0, -1) if n % rows == 0)
    return rows, n // rows


def extents(family: str, n: int) -> tuple[int, ...]:
    """What the bench gives a matrix rung for n elements of its result: (rows, columns), of "sgemm" (rows, columns,
    inner)."""
    return (*near_square(n), INNER) if family == "sgemm" else near_square(n)

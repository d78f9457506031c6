"""How each device rung accesses memory, in numbers from its kernel's source; nothing here was measured.

A rung that is not listed takes one piece of ``bytes_per_load`` a thread, in neighbouring pieces, as `naive` and
`float4` do; that is how most of them are described.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from vecadd.model.gpu import WARP
from vecadd.model.theory import load_bytes

LINE = 128  # bytes of a cache line: what one lookup of the L1 finds (CUDA C++ Programming Guide, "Global Memory")
SECTOR = 32  # bytes: the least that a request moves between a multiprocessor and the L2
GRANULE = 64  # bytes: the least that moves between memory and an L2 slice, two sectors: an H200's time over strides
# doubles from 8 to 32 float32, where each sector is alone in its pair, and grows no further
WIDTH, HEIGHT = 1024, 256  # elements of a plane of block_shape's volume
DIVISION = 30  # instructions of a 64-bit division, which no GPU has, each waiting for the one before


@dataclass(frozen=True)
class Access:
    """What a thread does in one round of its loop, or in its life where it has none.

    ``elements`` that it adds; ``steps``, the loads of a round that wait for each other, the first of which fetches what
    the others find in the L1; ``lookups`` of the L1, in cycles of a multiprocessor, for all of a warp's steps.
    ``sweeps`` over all elements, each of which uses 1/sweeps of every line. ``*_waste``: bytes that move for each that
    is wanted, between memory and L2, and between L2 and multiprocessor. ``threads`` of the grid, 0: as many as there is
    work for, once; ``blocks`` of the grid, 0: as many as the threads make, more where some are idle; ``turns`` of a
    warp, in each of which it loads and stores before the next; ``instructions`` beyond an addition's that wait for each
    other; ``banks``, the cycles that a warp's accesses to shared memory take between its load and its store.
    """

    elements: float = 1
    steps: int = 1
    lookups: float = 3
    sweeps: int = 1
    dram_waste: float = 1
    read_waste: float = 1
    write_waste: float = 1
    threads: int = 0
    blocks: int = 0
    turns: int = 1
    launches: int = 1
    instructions: int = 0
    banks: int = 0


@dataclass(frozen=True)
class Launch:
    """What decides the access: the rung's row and parameters, the call, and the GPU's size."""

    rung: Mapping[str, Any]
    params: Mapping[str, int]
    n: int
    itemsize: int
    block: int
    multiprocessors: int
    resident: int  # threads that fit on the GPU at once

    @property
    def piece(self) -> int:
        """Bytes of one load."""
        return load_bytes(self.rung, self.itemsize)

    @property
    def pieces(self) -> int:
        """How many pieces of each input a thread loads before it adds, unless the rung has an access of its own."""
        return self.rung["loads_in_flight"] // 2 if self.rung.get("family") == "precision" else 1


def access(launch: Launch) -> Access:
    """The memory access of a launch."""
    usual = _pieces(launch)
    special = _SPECIAL.get(launch.rung["name"])
    return special(launch, usual) if special else usual


def _pieces(launch: Launch) -> Access:
    """A piece of each array a thread: as many lookups as the warp's bytes have lines, and sectors where they are
    stored."""
    warp = WARP * launch.piece
    reads = launch.rung["bytes_per_element"] // 4 - 1
    return Access(
        elements=launch.pieces * launch.piece / launch.itemsize,
        lookups=launch.pieces * (reads * max(1, warp / LINE) + max(1, warp / SECTOR)),
    )


def _unrolled(launch: Launch, usual: Access) -> Access:
    """A loop on as many threads as fit, with several pieces of each input at once."""
    pieces = launch.rung["loads_in_flight"] // 2
    return replace(
        usual,
        elements=usual.elements * pieces,
        lookups=usual.lookups * pieces,
        threads=min(launch.resident, _rounded_up(launch.n, launch.block)),
    )


def _async_copy(launch: Launch, usual: Access) -> Access:
    """A loop on as many threads as fit; while one stage of the ring is added, the others are in flight."""
    return replace(usual, threads=min(launch.resident, _rounded_up(launch.n, launch.block)))


def _blocks_per_sm(launch: Launch, usual: Access) -> Access:
    return replace(usual, threads=launch.params["blocks_per_sm"] * launch.multiprocessors * launch.block)


def _block_range(launch: Launch, usual: Access) -> Access:
    return replace(_blocks_per_sm(launch, usual), instructions=DIVISION)


def _waves(launch: Launch, usual: Access) -> Access:
    threads = launch.params["percent"] * launch.resident // 100 // launch.block * launch.block
    return replace(usual, threads=min(max(threads, launch.block), _rounded_up(launch.n, launch.block)))


def _coarsened(count: int) -> Callable[[Launch, Access], Access]:
    def of(launch: Launch, usual: Access) -> Access:
        """``count`` scalar accesses whose addresses lie ``count`` components apart in a warp. Each store is a request
        of its own for every sector that it fills in part."""
        lines = max(1, WARP * launch.itemsize * count / LINE)
        sectors = max(1, WARP * launch.itemsize * count / SECTOR)
        return replace(usual, elements=count, steps=count, lookups=count * (2 * lines + sectors), write_waste=count)

    return of


def _strided(launch: Launch, usual: Access) -> Access:
    """A sweep for each element of the stride: the used part of a sector or a pair shrinks with it, down to one
    element."""
    stride = min(launch.params["stride"], launch.n)
    apart = stride * launch.itemsize
    lines = min(WARP, max(1, WARP * apart / LINE))
    sectors = min(WARP, max(1, WARP * apart / SECTOR))
    waste = min(apart, GRANULE) / launch.itemsize
    return replace(
        usual,
        lookups=2 * lines + sectors,
        sweeps=stride,
        dram_waste=waste,
        read_waste=waste,
        write_waste=waste,
        instructions=DIVISION,
    )


def _divergent(launch: Launch, usual: Access) -> Access:
    """Each path is a step with 1/paths of the warp; its store is a request for each sector that it touches."""
    paths = launch.params["paths"]
    of_a_path = WARP / paths
    lines = max(1, min(of_a_path, WARP * launch.itemsize / LINE))
    sectors = max(1, min(of_a_path, WARP * launch.itemsize / SECTOR))
    moved = sectors * (SECTOR if of_a_path > 1 else GRANULE)
    return replace(
        usual,
        steps=paths,
        turns=paths,
        lookups=paths * (2 * lines + sectors),
        write_waste=max(1, moved / (of_a_path * launch.itemsize)),
    )


def _block_shape(launch: Launch, usual: Access) -> Access:
    """A warp's row is ``x`` elements; rows lie far apart, so that no more than a row of a pair of sectors is used."""
    row = min(launch.params["x"], WARP) * launch.itemsize
    waste = max(1, GRANULE / row)
    x, y = launch.params["x"], launch.params["y"]
    rows = -(-launch.n // WIDTH)
    across, down, deep = min(launch.n, WIDTH), min(rows, HEIGHT), -(-rows // HEIGHT)
    z = max(1, launch.block // (x * y))
    return replace(
        usual,
        blocks=-(-across // x) * -(-down // y) * -(-deep // z),
        lookups=WARP / min(x, WARP) * (2 * max(1, row / LINE) + max(1, row / SECTOR)),
        read_waste=waste,
        write_waste=waste,
    )


def _divided(launch: Launch, usual: Access) -> Access:
    return replace(usual, instructions=DIVISION)


def _offset(launch: Launch, usual: Access) -> Access:
    """One sector more for each of a warp's requests where the offset is no multiple of one."""
    if launch.params["offset"] * launch.itemsize % SECTOR == 0:
        return usual
    sectors = max(1, WARP * launch.itemsize / SECTOR)
    return replace(usual, lookups=usual.lookups + 3, read_waste=1 + 1 / sectors, write_waste=1 + 1 / sectors)


def _written_across(launch: Launch, usual: Access) -> Access:
    """Squares of 16 by 16: a warp loads two half rows, and stores 8 bytes of each of 16 sectors."""
    return replace(usual, lookups=2 + WARP // 2, write_waste=SECTOR / (2 * launch.itemsize))


def _turned(turns: int) -> Callable[[Launch, Access], Access]:
    """Through shared memory: a store that finds each bank once, and a load that finds ``turns`` elements in one."""
    return lambda launch, usual: replace(usual, banks=1 + turns)


def _chunked(launch: Launch, usual: Access) -> Access:
    return replace(usual, launches=-(-launch.n // launch.params["chunk"]))


_SPECIAL: Mapping[str, Callable[[Launch, Access], Access]] = {
    "grid_stride": _blocks_per_sm,
    "block_range": _block_range,
    "waves": _waves,
    "coarsen2": _coarsened(2),
    "coarsen4": _coarsened(4),
    "unroll2": _unrolled,
    "unroll4": _unrolled,
    "float2_unroll2": _unrolled,
    "float4_unroll2": _unrolled,
    "async_copy": _async_copy,
    "strided": _strided,
    "divergent": _divergent,
    "block_shape": _block_shape,
    "index_divmod": _divided,
    "offset": _offset,
    "chunked": _chunked,
    "transpose_naive": _written_across,
    "transpose_shared": _turned(WARP),
    "transpose_padded": _turned(1),
}


def _rounded_up(value: int, step: int) -> int:
    return -(-value // step) * step

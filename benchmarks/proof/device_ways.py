"""How the GPU adds: arrays in device memory in each layout that has a kernel of its own, lists, host arrays that go
through it, and the laboratory's rungs."""

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import Any

import numpy as np

import vecadd
from benchmarks.proof.cases import Block
from benchmarks.proof.exact import Array
from benchmarks.proof.flags import Flagged
from benchmarks.proof.ways import Way, explained
from vecadd import _core

RUNGS = ("device", "latency", "transfer")  # the kinds that add by a GPU


class View:
    """A view of a DeviceArray with strides that it has no method for. Its interface has no name for ml_dtypes."""

    def __init__(self, memory: vecadd.DeviceArray, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
        self.memory = memory
        interface = memory.__cuda_array_interface__
        self.__cuda_array_interface__ = {**interface, "shape": shape, "strides": strides}


class Room:
    """What every block of a case needs: its right operands, and memory for sums, on the device and page-locked."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self.pages: dict[str, Array] = {}

    @cached_property
    def y(self) -> vecadd.DeviceArray:
        return vecadd.to_device(self.block.y)

    @cached_property
    def row(self) -> vecadd.DeviceArray:
        return vecadd.to_device(self.block.row)

    @cached_property
    def out(self) -> vecadd.DeviceArray:
        return vecadd.to_device(self.block.out)

    def page_locked(self, name: str) -> Array:
        """Page-locked memory for the block's array of that name."""
        array: Array = getattr(self.block, name)
        if name not in self.pages:
            self.pages[name] = vecadd.empty_pinned(array.shape, array.dtype)
            self.pages[name][:] = array
        return self.pages[name]


class Placed:
    """A block's left operands in device memory, in several layouts."""

    def __init__(self, room: Room) -> None:
        self.room, self.block, self.lefts = room, room.block, room.block.lefts
        self.y, self.row, self.out = room.y, room.row, room.out

    @cached_property
    def x(self) -> vecadd.DeviceArray:
        return vecadd.to_device(self.block.x)

    @cached_property
    def column(self) -> vecadd.DeviceArray:
        return vecadd.to_device(self.block.column)

    @cached_property
    def moved(self) -> vecadd.DeviceArray:
        """x, flat, one element after an aligned address."""
        flat = self.block.x.reshape(-1)
        return vecadd.to_device(np.concatenate([flat[:1], flat]))[1:]

    @cached_property
    def turned(self) -> View:
        """x, its columns side by side in memory."""
        rows, columns = self.block.x.shape
        turned = vecadd.to_device(np.repeat(self.block.column.T, columns, axis=0))
        return View(turned, (rows, columns), (self.block.x.itemsize, rows * self.block.x.itemsize))

    @cached_property
    def apart(self) -> vecadd.DeviceArray:
        """x, each element followed by a zero."""
        rows, columns = self.block.x.shape
        apart = np.zeros((rows, 2 * columns), self.block.x.dtype)
        apart[:, ::2] = self.block.x
        return vecadd.to_device(apart)[:, ::2]

    @cached_property
    def pinned(self) -> tuple[Array, Array, Array]:
        """x, y and room for the sums, in page-locked memory."""
        x, y, out = map(self.room.page_locked, ("x", "y", "out"))
        x[:] = self.block.x
        return x, y, out

    def sums(self) -> Array:
        """`out`'s contents. Then poisons `out`, so that no way's sums pass for the next one's."""
        sums = self.out.numpy(self.room.page_locked("out"))
        _core.poison(self.out)
        return sums


Add = Callable[[Placed], Array]
Facts = Callable[[Placed], Mapping[str, Any] | None]
Operands = Callable[[Placed], tuple[Any, Any, Any]]

LAYOUTS: dict[str, Operands] = {
    "contiguous": lambda at: (at.x, at.y, at.out),
    "misaligned": lambda at: (at.moved, at.y.reshape(-1), at.out.reshape(-1)),
    "column and row": lambda at: (at.column, at.row, at.out),
    "matrix and row": lambda at: (at.x, at.row, at.out),
    "every second element": lambda at: (at.apart, at.y, at.out),
    "transposed": lambda at: (at.turned, at.y, at.out),
}

# Where a kernel converts, the layouts that it tells apart; and it converts by the same code on every way through a GPU.
CONVERTING = ("contiguous", "column and row")


def ways() -> list[Way]:
    """Those of arrays on the device, those of host arrays, and the rungs."""
    latest: list[Placed] = []

    def placed(block: Block) -> Placed:
        """The block on the device, copied once for all ways."""
        if not latest or latest[0].block is not block:
            latest[:] = [Placed(Room(block))]
        elif latest[0].lefts != block.lefts:
            latest[:] = [Placed(latest[0].room)]
        return latest[0]

    def way(name: str, add: Add, facts: Facts, flagged: Flagged | None = None, reports: bool = False) -> Way:
        return Way(name, lambda block: add(placed(block)), lambda block: facts(placed(block)), reports, flagged)

    found = [way(name, partial(_add, name), partial(_explained, name)) for name in LAYOUTS]
    found.append(way("number and row", _add_numbers, lambda at: explained(at.block.x[0, 0], at.row)))
    found.append(way("lists", _add_lists, lambda at: _LISTS if at.block.case.plain else None))
    for device in ("cuda", "hybrid"):
        flagged = Flagged(partial(vecadd.add, device=device), lanes=0, few=4096)
        found.append(way(f"{device}, ordinary", *_through(device, _ordinary), flagged, True))
        found.append(way(f"{device}, pinned", *_through(device, _pinned), None, True))
    for rung in _core.rungs():
        if rung["kind"] in RUNGS:
            found.append(way(f"rung {rung['name']}", partial(_run, rung), partial(_takes, rung)))
    return found


_LISTS = {"route": "device", "kernel": "batch"}  # explain knows of no lists


def _add(layout: str, at: Placed) -> Array:
    vecadd.add(*LAYOUTS[layout](at))
    return at.sums()


def _explained(layout: str, at: Placed) -> Mapping[str, Any] | None:
    if not (at.block.case.plain or layout in CONVERTING) or (layout == "transposed" and at.block.case.a.kind == "V"):
        return None
    return explained(*LAYOUTS[layout](at))


def _add_numbers(at: Placed) -> Array:
    for number, out in zip(at.block.column[:, 0], at.out, strict=True):
        vecadd.add(number, at.row, out)
    return at.sums()


def _add_lists(at: Placed) -> Array:
    vecadd.add_many(list(at.x), list(at.y), out=list(at.out))
    return at.sums()


def _ordinary(at: Placed) -> tuple[Array, Array, Array]:
    return at.block.x, at.block.y, at.block.out


def _pinned(at: Placed) -> tuple[Array, Array, Array]:
    return at.pinned


def _through(device: str, operands: Operands) -> tuple[Add, Facts]:
    """Host arrays, added through the GPU."""

    def add(at: Placed) -> Array:
        x, y, out = operands(at)
        _core.poison(out)
        vecadd.add(x, y, out, device=device)
        total: Array = out
        return total

    def facts(at: Placed) -> Mapping[str, Any] | None:
        converting = device == "cuda" and operands is _ordinary
        return explained(*operands(at), device=device) if at.block.case.plain or converting else None

    return add, facts


def _run(rung: Mapping[str, Any], at: Placed) -> Array:
    """Runs a rung of the laboratory. A rung that would add to out's contents is told to overwrite them."""
    params = {"accumulate": 0} if "accumulate" in rung["params"] else {}
    if rung["kind"] != "transfer":
        _core.run_rung(rung["name"], at.x, at.y, at.out, params=params)
        return at.sums()
    x, y, out = _ordinary(at) if rung["memory"] == "pageable" else at.pinned
    _core.poison(out)
    _core.run_rung(rung["name"], x, y, out, params=params)
    return out


def capability() -> int:
    """The compute capability, as 90 for 9.0, of the GPU that has the least."""
    return min(10 * int(gpu["cc_major"]) + int(gpu["cc_minor"]) for gpu in _core.gpu_facts())


def _takes(rung: Mapping[str, Any], at: Placed) -> Mapping[str, Any] | None:
    """The facts of a rung, by its row; None where it has not this dtype, or no code for this GPU."""
    takes = at.block.case.plain and at.block.case.a.name in rung["dtypes"] and rung["min_cc"] <= capability()
    return {"route": f"{rung['kind']} rung", "kernel": rung["name"]} if takes else None

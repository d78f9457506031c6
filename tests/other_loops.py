"""Other libraries' loops: numpy.add's table of loops, as PyUFuncObject has it, and a loop in Python."""

import ctypes
from typing import Any

import numpy as np

LOOP = ctypes.CFUNCTYPE(
    None,
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.POINTER(ctypes.c_ssize_t),
    ctypes.POINTER(ctypes.c_ssize_t),
    ctypes.c_void_p,
)
FUNCTIONS = object.__basicsize__ + 4 * ctypes.sizeof(ctypes.c_int)


def place_of_loop(types: str) -> ctypes.c_void_p:
    table = ctypes.c_void_p.from_address(id(np.add) + FUNCTIONS).value
    assert table
    return ctypes.c_void_p.from_address(table + np.add.types.index(types) * ctypes.sizeof(ctypes.c_void_p))


class OtherLoop:
    """A loop of float64 that counts its calls and passes them on to what it replaced."""

    def __init__(self) -> None:
        self.lengths: list[int] = []
        self.place = place_of_loop("dd->d")
        self.before = self.place.value
        below = LOOP(self.before)

        def loop(arguments: Any, dimensions: Any, steps: Any, data: Any) -> None:
            self.lengths.append(dimensions[0])
            below(arguments, dimensions, steps, data)

        self.loop = LOOP(loop)
        self.address = ctypes.cast(self.loop, ctypes.c_void_p).value
        self.place.value = self.address

    def take_out(self) -> None:
        if self.place.value == self.address:
            self.place.value = self.before

"""Views of device memory that another library made, and which kernel adds them."""

import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np
from foreign import ForeignArray, View
from hypothesis import strategies as st

from vecadd import _core


def kernel(*operands):
    """Which kernel adds them."""
    plan = _core.explain_route(*operands)
    assert plan["route"] == "device"
    return plan["kernel"]


def form(*operands):
    """Which form of the strided kernel."""
    return _core.explain_route(*operands)["layout"]


@dataclass
class Memory:
    """Bytes on the host and the same ones on the device."""

    host: np.ndarray[Any, Any]
    device: ForeignArray

    def on_device(self, view):
        return View(self.device, self.host, view)


def memory_of(driver, host):
    """Freed with its last view: thousands of examples of a property run on one driver, and the double opens all of a
    device's memory to each kernel."""
    device = ForeignArray(driver, host)
    weakref.finalize(device, _free, driver, device.base)
    return Memory(host, device)


def _free(driver, pointer):
    if pointer in driver._memory:  # close() has not freed it
        driver.synchronize(driver.device_of(pointer))
        driver.free(pointer)


def shapes():
    return st.lists(st.sampled_from([1, 2, 3, 4, 5, 8, 0, 67]), max_size=4).filter(lambda s: np.prod(s) <= 1500)


def numbered(shape, dtype="f4"):
    return np.arange(1, 1 + int(np.prod(shape)), dtype=dtype).reshape(shape)

"""Numba: its sums are Numba arrays in a DeviceArray's memory."""

import sys
from typing import Any

from vecadd.interop.library import Library


class Numba(Library):
    """Device arrays of Numba's CUDA target, whose sums are DeviceArrays that Numba adopts."""

    adopts = True

    def stream_of(self, array: Any) -> Any:
        return getattr(array, "stream", None)

    def adopt(self, array: Any) -> Any:
        cuda = sys.modules["numba.cuda"]
        # In the context of the array's device, which the new array takes over. sync=False: by default numba would wait
        # here for the stream that the array names.
        with cuda.gpus[int(array.device.removeprefix("cuda:"))]:
            return cuda.as_cuda_array(array, sync=False)

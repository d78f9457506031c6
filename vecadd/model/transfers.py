"""The expected time of a transfer, by the overlap model of founding document 004.

Three stages: both uploads, the kernel, the download. One after the other they take their sum. In chunks that overlap
they take as long as the slowest of them: total = max(T_h2d, T_compute, T_d2h). The document's example: 100 ms up, 10 ms
of kernel and 100 ms down are 210 ms in series and 100 ms overlapped. Which of the two a rung is, its row says
(``stages``).

uploads     two arrays over the link's rate to the device; a and b share that direction
kernel      what `kernels` expects of the rung's kernel, which finds in the L2 what the copies have just brought there
download    one array over the rate to the host
overlapping while one array comes down, another goes up, each at half of what the link carries both ways at once: on an
            H200's PCIe 5 x16 51 GB/s of 55 alone

The rates are of page-locked memory, and nothing else is counted: no call, allocation, or second copy of ordinary
memory. A rung's time beyond this is their cost.
"""

from collections.abc import Mapping
from typing import Any

from vecadd import _core
from vecadd.model import kernels
from vecadd.model.gpu import Gpu
from vecadd.model.limits import Limits
from vecadd.model.prediction import Prediction, longest
from vecadd.model.theory import ARRAYS, with_defaults

_ROWS = {row["name"]: row for row in _core.rungs()}


def predict(
    rung: Mapping[str, Any], gpu: Gpu, limits: Limits, itemsize: int, n: int, params: Mapping[str, int]
) -> Prediction:
    """The prediction of a transfer rung; see `vecadd.model.predict`. ``params`` are all of its parameters."""
    if rung["stages"] == "shared":
        raise ValueError(
            f"rung {rung['name']}: the processor adds a share of the elements, which crosses no link; document 004 has "
            "no formula for it"
        )
    nbytes = n * itemsize
    upload, download = nbytes / limits.need("to_device"), nbytes / limits.need("to_host")
    kernel = _kernel(rung, gpu, limits, itemsize, n, params)
    if rung["stages"] == "serial":
        terms = {"to_device": 2 * upload, "kernel": kernel, "to_host": download}
        return longest(sum(terms.values()), terms)
    beside = 2 * nbytes / limits.need("both")  # one array each way
    terms = {
        "to_device": upload + max(upload, beside),
        "kernel": kernel,
        "to_host": max(download, beside),
    }
    return longest(max(terms.values()), terms)


def _kernel(
    rung: Mapping[str, Any], gpu: Gpu, limits: Limits, itemsize: int, n: int, params: Mapping[str, int]
) -> float:
    names = rung["choices"].get("kernel")
    row = _ROWS[names[params["kernel"]] if names else "tuned"]
    return kernels.predict(
        row, None, gpu, limits, itemsize, n, with_defaults(row, {}), 0, ARRAYS * n * itemsize
    ).seconds

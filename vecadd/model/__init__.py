"""What an addition should take, and why: the arithmetic of the ladder, without a GPU.

    >>> vecadd.model.arithmetic_intensity(4)                    # 1/12: an addition for 12 bytes
    0.0833...
    >>> vecadd.model.bytes_needed(4.8e12, 600e-9) / 132         # Little's law: bytes in flight on each SM of an H200
    21818.18...
    >>> h200 = {"compute_capability": "9.0", "multiprocessors": 132, "l2": 60 << 20, "bandwidth": 4.8e12}
    >>> loaded = {"bytes_in_flight": [4096, 16384, 32768, 131072], "gbps": [1300, 3890, 4480, 4640]}
    >>> limits = vecadd.model.Limits.of({"loaded": loaded})     # or a result file's meta["limits"]
    >>> vecadd.model.advise(h200, "float32", 2**26, 16, limits=limits).rungs   # what to try next
    ('float4',)

``gpu`` is a dict of ``vecadd._core.gpu_facts()`` or of a result file's ``meta["gpu"]``; a rung is a row of
``vecadd._core.rungs()``. Sizes are in bytes, times in seconds, rates in bytes a second, n in elements.

    theory      attributes of a GPU and its occupancy; bytes, roofline, Little's law, waves, overlap
    limits      what a run's probes measured, and the memory's rate by bytes in flight
    advice      the decision tree of document 003 in words (docs/ledger.md says which text that is)
    kernels     how each rung accesses memory, as numbers, and the expected time of a kernel
    predict     the expected time of a rung of any kind
"""

from vecadd.model.advice import Advice, advise
from vecadd.model.limits import Curve, Limits, Loaded
from vecadd.model.predict import predict, product_operations
from vecadd.model.theory import (
    Gpu,
    Occupancy,
    Prediction,
    arithmetic_intensity,
    balance,
    bytes_in_flight,
    bytes_moved,
    bytes_needed,
    occupancy,
    overlap,
    roofline,
    waves,
)

__all__ = [
    "Advice",
    "Curve",
    "Gpu",
    "Limits",
    "Loaded",
    "Occupancy",
    "Prediction",
    "advise",
    "arithmetic_intensity",
    "balance",
    "bytes_in_flight",
    "bytes_moved",
    "bytes_needed",
    "occupancy",
    "overlap",
    "predict",
    "product_operations",
    "roofline",
    "waves",
]


def __dir__() -> list[str]:
    return __all__

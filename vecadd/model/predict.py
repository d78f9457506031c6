"""The expected time of a rung from attributes of the GPU, the rung's row, and what the run's probes measured.

No constant here was fitted to a rung; which terms there are, and that a load waits for half of a queue or for 2/3, was
decided with recordings at hand. Where each term comes from is said in the file of its kind: `kernels` for the device
rungs, `launches` for the latency rungs, `hosts` for the host rungs, `transfers` for the transfer rungs, `matrices` for
the matrix rungs.
"""

from collections.abc import Mapping
from typing import Any

from vecadd.model import hosts, kernels, launches, matrices, transfers
from vecadd.model.gpu import WARP, Gpu
from vecadd.model.limits import Limits
from vecadd.model.matrix_shapes import extents
from vecadd.model.prediction import Prediction, itemsize
from vecadd.model.theory import rotating_sets, with_defaults, with_parameters


def expected(
    rung: Mapping[str, Any],
    facts: Mapping[str, Any] | None,
    gpu: Mapping[str, Any],
    limits: Limits,
    dtype: str,
    n: int,
    params: Mapping[str, int],
    *,
    block: int = 0,
    footprint: int | None = None,
) -> float:
    """Seconds that a run of the rung is expected to take, on the clock of its kind; see `predict`.

    >>> rung = next(rung for rung in vecadd._core.rungs() if rung["name"] == "naive")
    >>> h200 = {"compute_capability": "9.0", "multiprocessors": 132, "l2": 60 << 20, "clock": 2e9, "memory": 140 << 30}
    >>> limits = vecadd.model.Limits(
    ...     read=4.5e12, write=4.7e12, l2_read=7.5e12, l2_write=4.7e12, kernel=3e-6, block=6e-10, turnaround=1.4e-7,
    ...     l1=2e-8, l2=2.7e-7, page=5e-7, dram=6e-7,
    ... )
    >>> round(1e6 * vecadd.model.expected(rung, None, h200, limits, "float32", 2**26, {}))       # microseconds
    287
    """
    return predict(rung, facts, gpu, limits, dtype, n, params, block=block, footprint=footprint).seconds


def predict(
    rung: Mapping[str, Any],
    facts: Mapping[str, Any] | None,
    gpu: Mapping[str, Any],
    limits: Limits,
    dtype: str,
    n: int,
    params: Mapping[str, int],
    *,
    block: int = 0,
    footprint: int | None = None,
) -> Prediction:
    """The expected time of a rung and its terms.

    ``rung`` is a row of ``_core.rungs()``, ``facts`` what ``_core.rung_facts`` says of the launch, or None: then its
    occupancy is reckoned from the block. ``params`` are those of the rung's parameters that are not as usual, ``block``
    its threads a block, 0 for its own, ``footprint`` the bytes that the runs go round; None: as many as the bench
    would. What fits in the L2 is found there. ``n`` is the elements of one addition, of latency rungs too; of a matrix
    rung those of its result, which has the shape that the bench gives it.

    Raises ValueError for dtypes that the rung does not take, n < 1, limits that were not measured, and a rung in which
    the processor adds a share, which no model predicts.

    >>> rung = next(rung for rung in vecadd._core.rungs() if rung["name"] == "naive")
    >>> h200 = {"compute_capability": "9.0", "multiprocessors": 132, "l2": 60 << 20, "clock": 2e9, "memory": 140 << 30}
    >>> limits = vecadd.model.Limits(
    ...     read=4.5e12, write=4.7e12, l2_read=7.5e12, l2_write=4.7e12, kernel=3e-6, block=6e-10, turnaround=1.4e-7,
    ...     l1=2e-8, l2=2.7e-7, page=5e-7, dram=6e-7,
    ... )
    >>> vecadd.model.predict(rung, None, h200, limits, "float32", 2**26, {}).dominant
    'latency'
    """
    if n < 1:
        raise ValueError(f"n must be at least 1, not {n!r}")
    if dtype not in rung["dtypes"]:
        raise ValueError(f"rung {rung['name']} does not take {dtype}; it takes {', '.join(rung['dtypes'])}")
    chosen, rung = with_defaults(rung, params), with_parameters(rung, params)
    if rung["kind"] == "host":
        return hosts.predict(rung, limits, itemsize(dtype), n, chosen)
    device = Gpu.of(gpu)
    if rung["kind"] == "latency":
        return launches.predict(rung, device, limits, itemsize(dtype), n, chosen)
    if rung["kind"] == "transfer":
        return transfers.predict(rung, device, limits, itemsize(dtype), n, chosen)
    if rung["kind"] == "matrix":
        return matrices.predict(rung, device, limits, extents(rung["family"], n))
    if footprint is None:
        of_a_set = 3 * n * itemsize(dtype)
        footprint = of_a_set * rotating_sets(of_a_set, device.l2, gpu["memory"] // 2)
    if block == 0 and facts:
        block = facts["block"][0] * facts["block"][1] * facts["block"][2]
    if chosen.get("warps"):  # tuned's own way to choose a block
        block = WARP * chosen["warps"]
    return kernels.predict(rung, facts, device, limits, itemsize(dtype), n, chosen, block, footprint)

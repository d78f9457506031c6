"""Rows as the bench writes them, made up: to draw what no machine has recorded yet. Nobody measured these figures."""

from typing import Any

import bench_rows

from vecadd.figures import Figure

LIMIT = 4500.0
LINK = 79.0
LAUNCH = 4e-6

META: dict[str, Any] = {
    "machine": "made-up",
    "gpu": [
        {
            "name": "Made-up GPU",
            "l2": 60 << 20,
            "multiprocessors": 132,
            "compute_capability": "9.0",
            "clock": 1.98e9,
        }
    ],
    "driver": "580.1",
    "cpu": {"model": "Made-up CPU", "threads": 16, "l3": 300 << 20},
    "commit": "0123456789ab",
    "date": "2026-01-02T03:04:05+00:00",
    "limits": {"device": {"gbps": LIMIT}, "link": {"gbps": LINK}},
}


def row(sweep: str, rung: str, n: int, seconds: float | None, **keywords: Any) -> Figure:
    """A row that took so long; None for one that failed."""
    return bench_rows.row(sweep, rung, n, seconds, LINK if sweep == "transfer" else LIMIT, **keywords)


def at(gbps: float, n: int, itemsize: int = 4) -> float:
    """Seconds of an add at that rate, behind a launch."""
    return LAUNCH + 3 * n * itemsize / gbps / 1e9


SIZES = tuple(2**power for power in range(10, 29, 2))


def size() -> list[Figure]:
    rates = {"naive": 3400, "float4": 4300, "tuned": 4400}
    return [row("size", rung, n, at(gbps, n)) for n in SIZES for rung, gbps in rates.items()]


def ladder() -> list[Figure]:
    rows = []
    for n in (2**12, 2**20, 2**26):
        rows += [row("ladder", "naive", n, at(3400, n)), row("ladder", "float2", n, at(4200, n))]
        rows += [
            row("ladder", "grid_stride", n, at(900 * blocks, n), parameters={"blocks_per_sm": blocks})
            for blocks in (1, 2, 4)
        ]
        rows += [row("ladder", "float4", n, None), row("ladder", "tuned", n, at(4400, n))]
    rows.append(row("ladder", "race", 2**12, 1e-4, caught="element 0 is 3, not 768"))
    return rows


def inflight() -> list[Figure]:
    points = {512: 410, 2048: 410, 8192: 450, 16384: 560, 32768: 960, 131072: 3700}
    rows = [
        row("inflight", "probe", nbytes * 132 // 12, 1e-9 * nanoseconds, bytes_in_flight=nbytes)
        for nbytes, nanoseconds in points.items()
    ]
    for rung, kib, gbps in (("naive", 16, 3400), ("float2", 32, 4250), ("restrict", 16, 3380), ("tuned", 64, 4400)):
        rows.append(row("inflight", rung, 2**26, at(gbps, 2**26), bytes_in_flight=kib << 10))
    return rows


def blocksize() -> list[Figure]:
    n = 2**26
    rows = []
    for rung, gbps, worst in (("naive", 3450, 700), ("coarsen2", 3400, 900), ("float4", 4350, 1700)):
        for block in (32, 64, 128, 256, 384, 512, 768, 1024):
            share = min(1.0, block / 128) * (0.97 if block == 1024 else 1)
            occupancy = min(1.0, block * 32 / 2048)
            rows.append(
                row(
                    "blocksize",
                    rung,
                    n,
                    at(worst + (gbps - worst) * share, n),
                    block=block,
                    occupancy=0.75 if block == 768 and rung == "naive" else occupancy,
                    registers=16,
                )
            )
    for percent in (90, 100, 110, 200):
        rows.append(
            row(
                "blocksize",
                "waves",
                n,
                at({90: 3700, 100: 4050, 110: 3200, 200: 4000}[percent], n),
                parameters={"percent": percent},
                block=256,
                occupancy=1.0,
                waves=percent / 100,
            )
        )
    return rows


def precision() -> list[Figure]:
    rows = []
    gpu = {"half": 2600, "half2": 3500, "half2_hadd2": 3500, "half8": 4100, "half8_pack": 4300, "tuned": 4350}
    for dtype in ("float32", "float16", "bfloat16"):
        itemsize = 4 if dtype == "float32" else 2
        rungs = {"naive": 3450, "float4": 4300} if itemsize == 4 else gpu
        for n in SIZES:
            rows.append(row("precision", "numpy", n, 1e-6 + n * (4e-10 if itemsize == 4 else 5e-9), dtype=dtype))
            for rung, gbps in rungs.items():
                seconds = at(gbps, n, itemsize)
                rows.append(
                    row("precision", rung, n, seconds, dtype=dtype, occupancy=1.0, launch_share=LAUNCH / seconds)
                )
    return rows


def latency() -> list[Figure]:
    costs = {"launch_loop": 3.9, "graph": 1.5, "pdl": 3.3, "pdl_trigger": 3.0, "graph_pdl_trigger": 0.9}
    costs |= {"batched": 0.02}
    rows = []
    for chain in (0, 1):
        for power in range(8, 29, 2):
            n, adds = 10 * 2**power, 1000
            for rung, cost in costs.items():
                if rung == "batched" and chain:
                    continue
                each = max(cost * 1e-6, 0.3e-6 * (rung != "batched") + 3 * 4 * n / 4.3e12)
                rows.append(
                    row(
                        "latency",
                        rung,
                        n,
                        each * adds,
                        times=adds,
                        parameters={"adds": adds, "chain": chain},
                        seconds_per_add=each,
                    )
                )
    return rows


def lanes(streams: int, chunks: int, up: float, add: float, down: float) -> list[list[Any]]:
    """The events of so many chunks on so many streams, where each engine does one thing at a time."""
    events: list[list[Any]] = []
    free_up = free_down = 0.0
    ready = [0.0] * streams
    for chunk in range(chunks):
        stream = chunk % streams
        begin = max(free_up, ready[stream])
        free_up = begin + up
        added = free_up + add
        from_there = max(added, free_down)
        free_down = ready[stream] = from_there + down
        events.append(["to_device", stream, chunk, begin, free_up])
        events.append(["kernel", stream, chunk, free_up, added])
        events.append(["to_host", stream, chunk, from_there, free_down])
    return events


def transfer() -> list[Figure]:
    rungs: dict[str, tuple[float, str, list[list[Any]] | None]] = {
        "pageable": (9.2, "pageable", lanes(1, 1, 0.270, 0.001, 0.080)),
        "pinned": (52.0, "pinned", [["allocate", -1, 0, 0.0, 0.003], *lanes(1, 1, 0.040, 0.001, 0.020)]),
        "pinned_reused": (51.0, "pinned", lanes(1, 1, 0.040, 0.001, 0.020)),
        "stream1_pinned": (51.0, "pinned", lanes(1, 1, 0.040, 0.001, 0.020)),
        "streams2": (69.0, "pinned", lanes(2, 16, 0.0027, 0.0001, 0.0014)),
        "streams4": (65.0, "pinned", lanes(4, 4, 0.0105, 0.0003, 0.0052)),
        "streams4_pageable": (9.0, "pageable", None),
        "copy_blocking": (8.0, "pageable", None),
        "copy_async": (8.1, "pageable", None),
        "copy_stream": (8.1, "pageable", None),
        "malloc_each_call": (47.0, "pinned", None),
        "pool": (51.0, "pinned", None),
        "zero_copy": (70.0, "pinned", None),
        "staged": (60.0, "pageable", None),
        "hybrid": (150.0, "pinned", None),
        "tuned_transfer": (77.0, "pinned", None),
    }
    rows = []
    for n in SIZES:
        for rung, (gbps, memory, events) in rungs.items():
            params: dict[str, Any] = {"memory": memory, "model_seconds": 0.93 * 12 * n / gbps / 1e9}
            if rung in ("pinned", "streams4"):
                params["parameters"] = {"allocates": 1}
            if n == max(SIZES) and events:
                params["timeline"] = events
            rows.append(row("transfer", rung, n, 1e-4 + 12 * n / gbps / 1e9, **params))
    return rows + stages() + [row("transfer", "cold_start", 2**20, 1.4)]


def stages() -> list[Figure]:
    """What document 004's stages are, and a cold start beside them: rows of the sweep that are no round trips."""
    parts = {
        "single_thread": (0.021, 0.9, 0.008),
        "single_block": (0.021, 0.03, 0.008),
        "grid_stride": (0.021, 6e-5, 0.008),
        "pinned": (0.0025, 6e-5, 0.0012),
        "streams4": (0.0026, 6e-5, 0.0013),
    }
    return [
        row(
            "transfer",
            stage if stage in ("pinned", "streams4") else "pageable",
            2**24,
            max(sum(seconds), 0.004) if stage != "streams4" else 0.0031,
            memory="pinned" if stage in ("pinned", "streams4") else "pageable",
            stage=stage,
            stages=dict(zip(("to_device", "kernel", "to_host"), seconds, strict=True)),
        )
        for stage, seconds in parts.items()
    ]


def transpose() -> list[Figure]:
    rates = {"transpose_copy": 3000, "transpose_naive": 1300, "transpose_shared": 1900, "transpose_padded": 2800}
    return [
        row("transpose", rung, n, at(gbps, n), shape=shape, occupancy=1.0, model_seconds=at(3500, n))
        for n, shape in ((2**19, [512, 1024]), (2**26, [8192, 8192]))
        for rung, gbps in rates.items()
    ]


def sgemm() -> list[Figure]:
    kernels = {"sgemm_naive": (1.0, 6, 8), "sgemm_shared": (1.0, 8, 8), "sgemm_tiled": (0.25, 30, 60)}
    kernels |= {"sgemm_tuned": (0.5, 22, 33)}
    rows = []
    for n, shape in ((2**20, [1024, 1024, 4096]), (2**27, [8192, 16384, 4096])):
        operations = 2 * n * 4096
        limit = 12 * n / operations * 66.9e3  # GB/s of the rows' three arrays at 66.9e12 operations a second
        for rung, (occupancy, rate, expected) in kernels.items():
            seconds, model = operations / rate / 1e12, operations / expected / 1e12
            made = {"shape": shape, "occupancy": occupancy, "registers": 60, "shared": 8192, "grid": [64, 1, 1]}
            rows.append(bench_rows.row("sgemm", rung, n, seconds, limit, **made, model_seconds=model))
        rows.append(bench_rows.row("sgemm", "cublas", n, operations / 50e12, limit, shape=shape, clock="host clock"))
    return rows


SWEEPS = {
    "size": size,
    "ladder": ladder,
    "inflight": inflight,
    "blocksize": blocksize,
    "precision": precision,
    "transfer": transfer,
    "latency": latency,
    "transpose": transpose,
    "sgemm": sgemm,
}

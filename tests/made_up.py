"""Figures and runs as the bench writes them, made up, for tests of tables, pictures and files."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from vecadd.figures import Figure, Run

META: dict[str, Any] = {
    "machine": "made-up",
    "gpu": [
        {
            "name": "Made-up GPU", "multiprocessors": 132, "bandwidth": 4.8e12, "link_generation_max": 5,
            "link_width_max": 16, "l2": 60 << 20, "compute_capability": "9.0", "clock": 1.98e9,
        }
    ],
    "driver": "580.1",
    "cpu": {"model": "Made-up CPU", "threads": 16, "l3": 300 << 20},
    "versions": {"vecadd": "0.1.0"},
    "commit": "0123456789ab",
    "date": "2026-01-02T03:04:05+00:00",
    "method": "median of rounds",
    "clocks": {"size": "by events", "transfer": "by the host"},
    "limits": {
        "device": {"read_gbps": 4480.0, "write_gbps": 4650.0, "gbps": 4535.0},
        "link": {"to_device_gbps": 55.0, "to_host_gbps": 54.0, "both_gbps": 100.0, "gbps": 78.5},
        "launch": {"kernel_seconds": 2.1e-6, "block_seconds": 0.6e-9, "queued_seconds": 1.9e-6},
        "latency": {"l2_seconds": 260e-9, "dram_seconds": 600e-9},
        "loaded": {"bytes_in_flight": [4096, 16384, 65536], "gbps": [1330.0, 3830.0, 4480.0]},
    },
    "contamination": {
        "load_average": 1.5,
        "cpus": 16,
        "gpu_processes": 0,
        "throttled": {"power cap": 0.0, "heat": 0.0},
        "ecc_errors": 0,
        "link_width": [{"generation": 5, "width": 8, "generation_max": 5, "width_max": 16}],
    },
    "failures": ["latency: RuntimeError: the GPU fell off the bus"],
    "skipped": ["single_thread of ladder float32 2^26: one addition would take about 4.0 s"],
    "interrupted": False,
}  # fmt: skip

# What the tables tell of a rung, so that no text of theirs follows from a rung's own.
RUNGS: dict[str, dict[str, Any]] = {
    name: {"name": name, "after": after, "changes": f"what {name} changes"}
    for name, after in {
        "naive": None, "restrict": "naive", "float4": "float2", "grid_stride": "single_block", "atomic": "race",
        "race": "single_block", "pageable": None, "pinned": "pageable", "streams2": "pinned", "streams4": "streams2",
        "launch_loop": None, "graph": "launch_loop", "batched": "launch_loop", "waves": "grid_stride", "half": "naive",
    }.items()
}  # fmt: skip

KERNEL = {"bytes_in_flight": 16384, "registers": 16, "occupancy": 1.0, "load": "LDG.E", "block": 256}


def plain_figure(gbps: float | None = None, fraction: float | None = -1.0, **changes: Any) -> Figure:
    """A checked figure of the host; `changes` are its other fields. ``gbps`` sets how long it took, ``fraction`` its
    limit; None for no limit."""
    plain: dict[str, Any] = {
        "sweep": "host",
        "name": "threads",
        "dtype": "float32",
        "n": 1 << 20,
        "value": 1e-3,
        "spread": (0.9e-3, 1.2e-3),
        "bytes": 12 << 20,
        "limit": 20.0,
        "checked": True,
    }
    made = Figure(**{**plain, **changes})
    if gbps is not None:
        made = replace(made, value=made.bytes / gbps / 1e9)
    if fraction != -1.0:
        made = replace(made, limit=made.gbps / fraction if made.gbps and fraction else None)
    return made


def figure(
    sweep: str, rung: str, n: int, seconds: float | None, limit: float | None = 4535.0, **keywords: Any
) -> Figure:
    """A figure of that many seconds; None for a failure."""
    dtype, times = keywords.pop("dtype", "float32"), keywords.pop("times", 1)
    return Figure(
        sweep=sweep,
        name=rung,
        dtype=dtype,
        n=n,
        params=keywords,
        value=seconds,
        spread=(0.98 * seconds, 1.05 * seconds) if seconds else None,
        bytes=3 * n * times * (4 if dtype == "float32" else 2),
        limit=limit,
        checked=seconds is not None and "caught" not in keywords,
        error=None if seconds else "wrong result: element 3 is 1.0, the sum is 2.0",
    )


def _stages(kernel: float, to_host: float, to_device: float) -> dict[str, float]:
    return {"kernel": kernel, "to_host": to_host, "to_device": to_device}


N = 2**26
INDEPENDENT, CHAIN = ({"adds": 1000, "chain": chain} for chain in (0, 1))
GRAPH = {"capture": 2.1e-3, "instantiate": 1.4e-3, "destroy": 0.3e-3}

FIGURES: dict[str, list[Figure]] = {
    "host": [figure("host", "numpy", 2**20, 1.1e-3, 90.0), figure("host", "threads", 2**20, 0.2e-3, 90.0)],
    "size": [
        figure("size", "naive", 2**10, 3.2e-6),
        figure("size", "add", 2**10, 7e-6, clock="host clock"),
        figure("size", "naive", N, 233e-6),
        figure("size", "tuned", N, 170e-6),
    ],
    "ladder": [
        figure("ladder", "naive", N, 232.8e-6, **KERNEL),
        figure("ladder", "restrict", N, 234.7e-6, **{**KERNEL, "load": "LDG.E.CONSTANT"}),
        figure("ladder", "float4", N, 184.9e-6, **{**KERNEL, "bytes_in_flight": 65536, "load": "LDG.E.128"}),
        figure("ladder", "grid_stride", N, 988e-6, parameters={"blocks_per_sm": 4}, **KERNEL),
        figure("ladder", "grid_stride", N, None, parameters={"blocks_per_sm": 8}, **KERNEL),
        figure("ladder", "race", N, 300e-6, caught="element 0 is 0.2, the sum is 62.7", **KERNEL),
        figure("ladder", "atomic", N, 600e-6, **KERNEL),
    ],
    "inflight": [
        figure("inflight", "naive", N, 233e-6, **KERNEL),
        figure("inflight", "float4", N, None, **{**KERNEL, "bytes_in_flight": 65536}),
        figure("inflight", "tuned", N, 170e-6, **{**KERNEL, "bytes_in_flight": 65536}),
        *(
            replace(
                figure("inflight", "probe", nbytes * 132 // 12, seconds, None, bytes_in_flight=nbytes), checked=False
            )
            for nbytes, seconds in {4096: 400e-9, 16384: 560e-9, 65536: 1.9e-6}.items()
        ),
    ],
    "blocksize": [
        *(
            figure("blocksize", rung, N, seconds, block=block, occupancy=1.0 if block > 32 else 0.5)
            for rung, times in {
                "naive": {32: 400e-6, 256: 233e-6, 1024: 240e-6}, "float4": {32: 250e-6, 256: 185e-6, 1024: None}
            }.items()
            for block, seconds in times.items()
        ),
        *(
            figure("blocksize", "waves", N, seconds, parameters={"percent": percent}, waves=percent / 100, block=256,
                occupancy=1.0, registers=20, grid=[1056 * percent // 100, 1, 1])
            for percent, seconds in {90: 262e-6, 100: 250e-6, 110: 300e-6}.items()
        ),
    ],
    "precision": [
        item
        for n, cpu, naive, half, half2, pack in (
            (2**10, 1.3e-6, 3.2e-6, 3.2e-6, 3.2e-6, 3.2e-6), (2**20, 220e-6, 7.6e-6, 6.2e-6, 5.6e-6, 5.4e-6)
        )
        for item in (
            figure("precision", "numpy", n, cpu, 90.0),
            figure("precision", "naive", n, naive, launch_share=2.1e-6 / naive, registers=16, occupancy=1.0),
            figure("precision", "float4", n, naive, launch_share=2.1e-6 / naive, registers=18, occupancy=1.0),
            *(
                figure("precision", rung, n, seconds, dtype="float16", launch_share=2.1e-6 / seconds, registers=16,
                    occupancy=1.0)
                for rung, seconds in {"half": half, "half2": half2, "half8_pack": pack}.items()
            ),
        )
    ],
    "transfer": [
        figure("transfer", "pageable", N, 140e-3, 78.5, memory="pageable", model_seconds=9.8e-3, link_fraction=0.06),
        figure("transfer", "pageable", N, 141e-3, 78.5, memory="pageable", kernel="float4", parameters={"kernel": 2},
            model_seconds=9.8e-3, link_fraction=0.06),
        figure("transfer", "pinned", N, 18e-3, 78.5, memory="pinned", model_seconds=9.8e-3, link_fraction=0.47),
        figure("transfer", "streams2", N, None, 78.5, memory="pinned", model_seconds=9.8e-3),
        figure("transfer", "pageable", 2**24, 1.1, 78.5, memory="pageable", kernel="single_thread",
            stage="single_thread", parameters={"kernel": 4}, stages=_stages(1.0, 20e-3, 10e-3)),
        figure("transfer", "streams4", 2**24, 4e-3, 78.5, memory="pinned", kernel="naive", stage="streams4",
            stages=_stages(0.1e-3, 1.2e-3, 2.5e-3)),
        figure("transfer", "cold_start", 10**6, 1.2, None, gpu={"context": 0.3, "process": 1.2, "checked": True},
            cpu={"add": 1e-3, "process": 0.2, "checked": True}),
    ],
    "latency": [
        figure("latency", "launch_loop", 2560, 3.9e-3, times=1000, parameters=INDEPENDENT, seconds_per_add=3.9e-6),
        figure("latency", "graph", 2560, 1.1e-3, times=1000, parameters=INDEPENDENT, seconds_per_add=1.1e-6,
            ratio=1.1 / 3.9, break_even=2, **GRAPH),
        figure("latency", "batched", 2560, 19e-6, times=1000, parameters=INDEPENDENT, seconds_per_add=19e-9,
            ratio=19e-6 / 3.9e-3),
        figure("latency", "launch_loop", 2560, 4e-3, None, times=1000, parameters=CHAIN, seconds_per_add=4e-6),
        figure("latency", "graph", 2560, 5e-3, None, times=1000, parameters=CHAIN, seconds_per_add=5e-6, ratio=1.25,
            break_even=None, **GRAPH),
    ],
}  # fmt: skip


def run(figures: list[Figure], *, recorded: bool = True, **meta: Any) -> Run:
    """A run with these figures; ``recorded`` says that it was read from a file."""
    return Run({**META, **meta}, figures, Path("run.json") if recorded else None)


# Figures at several sizes, for pictures and notebooks

SIZES = tuple(2**power for power in range(10, 29, 2))


def seconds_at(gbps: float, n: int) -> float:
    """Seconds of an addition of float32 at that rate, after a launch."""
    return 4e-6 + 12 * n / gbps / 1e9


def size() -> list[Figure]:
    rates = {"naive": 3400, "float4": 4300, "tuned": 4400}
    return [figure("size", rung, n, seconds_at(gbps, n)) for n in SIZES for rung, gbps in rates.items()]


def ladder() -> list[Figure]:
    """Of one rung that failed, one with variants, and one that races at the smallest size."""
    figures = []
    for n in (2**12, 2**20, 2**26):
        rates = {"naive": 3400, "float2": 4200}
        figures += [figure("ladder", rung, n, seconds_at(gbps, n)) for rung, gbps in rates.items()]
        figures += [
            figure("ladder", "grid_stride", n, seconds_at(900 * blocks, n), parameters={"blocks_per_sm": blocks})
            for blocks in (1, 2, 4)
        ]
        figures += [figure("ladder", "float4", n, None), figure("ladder", "tuned", n, seconds_at(4400, n))]
    return [*figures, figure("ladder", "race", 2**12, 1e-4, caught="element 0 is 3, not 768")]


def latency() -> list[Figure]:
    costs = {"launch_loop": 3.9e-6, "graph": 1.5e-6, "pdl": 3.3e-6, "batched": 0.02e-6}
    found = []
    for parameters in (INDEPENDENT, CHAIN):
        for n in (10 * 2**power for power in range(8, 29, 2)):
            for rung, cost in costs.items():
                each = max(cost, 0.3e-6 * (rung != "batched") + 12 * n / 4.3e12)
                more = {"times": 1000, "parameters": parameters, "seconds_per_add": each}
                if rung != "batched" or not parameters["chain"]:
                    found.append(figure("latency", rung, n, 1000 * each, **more))
    return found


def lanes(streams: int, chunks: int, up: float, add: float, down: float) -> list[list[Any]]:
    """The events of ``chunks`` chunks on ``streams`` streams, where each engine does one thing at a time."""
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
    """Round trips at all sizes, with a timeline at the largest; document 004's stages; a cold start."""
    rungs: dict[str, tuple[float, str, list[list[Any]] | None]] = {
        "pageable": (9.2, "pageable", lanes(1, 1, 0.270, 0.001, 0.080)),
        "pinned": (52.0, "pinned", [["allocate", -1, 0, 0.0, 0.003], *lanes(1, 1, 0.040, 0.001, 0.020)]),
        "streams2": (69.0, "pinned", lanes(2, 16, 0.0027, 0.0001, 0.0014)),
        "streams4": (65.0, "pinned", lanes(4, 4, 0.0105, 0.0003, 0.0052)),
        "copy_async": (8.1, "pageable", None),
        "staged": (60.0, "pageable", None),
        "hybrid": (150.0, "pinned", None),
        "tuned_transfer": (77.0, "pinned", None),
        "pool": (51.0, "pinned", None),
    }
    found = []
    for n in SIZES:
        for rung, (gbps, memory, events) in rungs.items():
            params: dict[str, Any] = {"memory": memory, "model_seconds": 0.93 * 12 * n / gbps / 1e9}
            params |= {"parameters": {"allocates": 1}} if rung in ("pinned", "streams4") else {}
            params |= {"timeline": events} if n == max(SIZES) and events else {}
            found.append(figure("transfer", rung, n, 1e-4 + 12 * n / gbps / 1e9, 79.0, **params))
    return [*found, *document_stages(), figure("transfer", "cold_start", 2**20, 1.4)]


def document_stages() -> list[Figure]:
    stages = {
        "single_thread": ("pageable", "pageable", _stages(0.9, 0.008, 0.021)),
        "pinned": ("pinned", "pinned", _stages(6e-5, 0.0012, 0.0025)),
        "streams4": ("streams4", "pinned", _stages(6e-5, 0.0013, 0.0026)),
    }
    return [
        figure("transfer", rung, 2**24, sum(times.values()), 79.0, memory=memory, stage=stage, stages=times)
        for stage, (rung, memory, times) in stages.items()
    ]


def transpose() -> list[Figure]:
    rates = {"transpose_copy": 3000, "transpose_naive": 1300, "transpose_shared": 1900, "transpose_padded": 2800}
    return [
        figure("transpose", rung, n, seconds_at(gbps, n), shape=shape, occupancy=1.0)
        for n, shape in ((2**19, [512, 1024]), (2**26, [8192, 8192]))
        for rung, gbps in rates.items()
    ]


def sgemm() -> list[Figure]:
    kernels = {"sgemm_naive": (1.0, 6), "sgemm_shared": (1.0, 8), "sgemm_tiled": (0.25, 30)}
    kernels |= {"sgemm_tuned": (0.5, 22)}
    found = []
    for n, shape in ((2**20, [1024, 1024, 4096]), (2**27, [8192, 16384, 4096])):
        operations = 2 * n * 4096
        limit = 12 * n / operations * 66.9e3  # GB/s of the three arrays at 66.9e12 operations a second
        for rung, (occupancy, rate) in kernels.items():
            seconds = operations / rate / 1e12
            made = {"shape": shape, "occupancy": occupancy, "registers": 60, "shared": 8192, "grid": [64, 1, 1]}
            found.append(figure("sgemm", rung, n, seconds, limit, **made))
        found.append(figure("sgemm", "cublas", n, operations / 50e12, limit, shape=shape, clock="host clock"))
    return found


# By the sweep: the figures of its pictures.
PICTURED: dict[str, list[Figure]] = {
    **{sweep: FIGURES[sweep] for sweep in ("host", "inflight", "blocksize", "precision")},
    "size": size(),
    "ladder": ladder(),
    "latency": latency(),
    "transfer": transfer(),
    "transpose": transpose(),
    "sgemm": sgemm(),
}

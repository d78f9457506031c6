"""Fixed rows of every sweep, as the bench writes them, for tests of its output formats. Nobody measured these."""

from dataclasses import replace
from typing import Any

from vecadd.figures import Figure

META: dict[str, Any] = {
    "machine": "made-up",
    "gpu": [
        {
            "name": "Made-up GPU", "multiprocessors": 132, "bandwidth": 4.8e12, "link_generation_max": 5,
            "link_width_max": 16, "l2": 60 << 20, "compute_capability": "9.0",
        }
    ],
    "driver": "580.1",
    "cpu": {"model": "Made-up CPU", "threads": 16},
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


def plain_row(gbps: float | None = None, fraction: float | None = -1.0, **changes: Any) -> Figure:
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


def row(sweep: str, rung: str, n: int, seconds: float | None, limit: float | None = 4535.0, **keywords: Any) -> Figure:
    """A row that took so long; None for one that failed."""
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

ROWS: dict[str, list[Figure]] = {
    "host": [row("host", "numpy", 2**20, 1.1e-3, 90.0), row("host", "threads", 2**20, 0.2e-3, 90.0)],
    "size": [
        row("size", "naive", 2**10, 3.2e-6),
        row("size", "add", 2**10, 7e-6, clock="host clock"),
        row("size", "naive", N, 233e-6),
        row("size", "tuned", N, 170e-6),
    ],
    "ladder": [
        row("ladder", "naive", N, 232.8e-6, **KERNEL),
        row("ladder", "restrict", N, 234.7e-6, **{**KERNEL, "load": "LDG.E.CONSTANT"}),
        row("ladder", "float4", N, 184.9e-6, **{**KERNEL, "bytes_in_flight": 65536, "load": "LDG.E.128"}),
        row("ladder", "grid_stride", N, 988e-6, parameters={"blocks_per_sm": 4}, **KERNEL),
        row("ladder", "grid_stride", N, None, parameters={"blocks_per_sm": 8}, **KERNEL),
        row("ladder", "race", N, 300e-6, caught="element 0 is 0.2, the sum is 62.7", **KERNEL),
        row("ladder", "atomic", N, 600e-6, **KERNEL),
    ],
    "inflight": [
        row("inflight", "naive", N, 233e-6, **KERNEL),
        row("inflight", "float4", N, None, **{**KERNEL, "bytes_in_flight": 65536}),
        row("inflight", "tuned", N, 170e-6, **{**KERNEL, "bytes_in_flight": 65536}),
        *(
            replace(row("inflight", "probe", nbytes * 132 // 12, seconds, None, bytes_in_flight=nbytes), checked=False)
            for nbytes, seconds in {4096: 400e-9, 16384: 560e-9, 65536: 1.9e-6}.items()
        ),
    ],
    "blocksize": [
        *(
            row("blocksize", rung, N, seconds, block=block, occupancy=1.0 if block > 32 else 0.5)
            for rung, times in {
                "naive": {32: 400e-6, 256: 233e-6, 1024: 240e-6}, "float4": {32: 250e-6, 256: 185e-6, 1024: None}
            }.items()
            for block, seconds in times.items()
        ),
        *(
            row("blocksize", "waves", N, seconds, parameters={"percent": percent}, waves=percent / 100, block=256,
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
            row("precision", "numpy", n, cpu, 90.0),
            row("precision", "naive", n, naive, launch_share=2.1e-6 / naive, registers=16, occupancy=1.0),
            row("precision", "float4", n, naive, launch_share=2.1e-6 / naive, registers=18, occupancy=1.0),
            *(
                row("precision", rung, n, seconds, dtype="float16", launch_share=2.1e-6 / seconds, registers=16,
                    occupancy=1.0)
                for rung, seconds in {"half": half, "half2": half2, "half8_pack": pack}.items()
            ),
        )
    ],
    "transfer": [
        row("transfer", "pageable", N, 140e-3, 78.5, memory="pageable", model_seconds=9.8e-3, link_fraction=0.06),
        row("transfer", "pageable", N, 141e-3, 78.5, memory="pageable", kernel="float4", parameters={"kernel": 2},
            model_seconds=9.8e-3, link_fraction=0.06),
        row("transfer", "pinned", N, 18e-3, 78.5, memory="pinned", model_seconds=9.8e-3, link_fraction=0.47),
        row("transfer", "streams2", N, None, 78.5, memory="pinned", model_seconds=9.8e-3),
        row("transfer", "pageable", 2**24, 1.1, 78.5, memory="pageable", kernel="single_thread", stage="single_thread",
            parameters={"kernel": 4}, stages=_stages(1.0, 20e-3, 10e-3)),
        row("transfer", "streams4", 2**24, 4e-3, 78.5, memory="pinned", kernel="naive", stage="streams4",
            stages=_stages(0.1e-3, 1.2e-3, 2.5e-3)),
        row("transfer", "cold_start", 10**6, 1.2, None, gpu={"context": 0.3, "process": 1.2, "checked": True},
            cpu={"add": 1e-3, "process": 0.2, "checked": True}),
    ],
    "latency": [
        row("latency", "launch_loop", 2560, 3.9e-3, times=1000, parameters=INDEPENDENT, seconds_per_add=3.9e-6),
        row("latency", "graph", 2560, 1.1e-3, times=1000, parameters=INDEPENDENT, seconds_per_add=1.1e-6,
            ratio=1.1 / 3.9, break_even=2, **GRAPH),
        row("latency", "batched", 2560, 19e-6, times=1000, parameters=INDEPENDENT, seconds_per_add=19e-9,
            ratio=19e-6 / 3.9e-3),
        row("latency", "launch_loop", 2560, 4e-3, None, times=1000, parameters=CHAIN, seconds_per_add=4e-6),
        row("latency", "graph", 2560, 5e-3, None, times=1000, parameters=CHAIN, seconds_per_add=5e-6, ratio=1.25,
            break_even=None, **GRAPH),
    ],
}  # fmt: skip


def slowed(made: Figure, factor: float) -> Figure:
    """The row of a run in which all takes so many times as long."""
    return replace(
        made,
        value=made.value and factor * made.value,
        spread=made.spread and (factor * made.spread[0], factor * made.spread[1]),
    )

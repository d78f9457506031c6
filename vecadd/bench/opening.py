"""What a reader of a run's figures needs to know besides them: the machine, its limits, and failures."""

from collections.abc import Iterable, Mapping
from typing import Any

from vecadd.bench import machine
from vecadd.figures import Figure
from vecadd.model import Limits, Loaded
from vecadd.model.loaded import ENOUGH
from vecadd.model.theory import ARRAYS
from vecadd.tables import show_rate, show_seconds, show_size


def lines(meta: Mapping[str, Any], rows: Iterable[Figure]) -> list[str]:
    """The machine, the limits of its memory, link and launches by this run's probes, and its conditions."""
    rows = list(rows)
    limits = meta.get("limits", {})
    gpu = meta["gpu"][0] if meta["gpu"] else None
    found = [f"machine: {_machine(meta, gpu)}"]
    if gpu:
        found += [
            line
            for line in (
                _device(limits.get("device"), gpu),
                _link(limits.get("link"), gpu),
                _launch(limits.get("launch")),
                _latency(limits.get("latency")),
                _loaded(Limits.of(limits).loaded, gpu),
            )
            if line
        ]
    host = _host(rows)
    found += [host] if host else []
    return [*found, f"conditions: {machine.describe(meta['contamination'], gpu=bool(gpu))}"]


def findings(meta: Mapping[str, Any], rows: Iterable[Figure]) -> list[str]:
    """The rows that failed, that exceed their limit and that were left out, a line each."""
    rows = list(rows)
    return [
        *(f"{row.title} failed: {row.error}" for row in rows if row.error),
        *(
            f"{row.title} is impossible: {row.fraction:.3f} of the limit; the method is wrong, not the rung fast"
            for row in rows
            if row.is_impossible
        ),
        *(f"failed: {line}" for line in meta.get("failures", ())),
        *(f"skipped: {line}" for line in meta.get("skipped", ())),
        *(["interrupted: the tables hold what was measured until then"] if meta.get("interrupted") else []),
    ]


def _machine(meta: Mapping[str, Any], gpu: Mapping[str, Any] | None) -> str:
    cpu = meta["cpu"]
    parts = [f"{cpu['model'] or 'processor unknown'}, {cpu['threads']} threads"]
    if gpu:
        parts.insert(0, f"{gpu['name']}, driver {meta['driver'] or 'unknown'}")
    return "; ".join(parts)


def _device(limit: Mapping[str, float] | None, gpu: Mapping[str, Any]) -> str:
    if not limit:
        return ""
    theory = gpu.get("bandwidth")
    share = f"; its clock and bus give {theory / 1e9:.0f}" if theory else ""
    return (
        f"device memory: {limit['gbps']:.0f} GB/s for an addition (reads {limit['read_gbps']:.0f}, writes "
        f"{limit['write_gbps']:.0f}{share})"
    )


def _link(limit: Mapping[str, float] | None, gpu: Mapping[str, Any]) -> str:
    if not limit:
        return ""
    theory = machine.link_theory(gpu.get("link_generation_max"), gpu.get("link_width_max"))
    share = f"; its generation and width give {theory / 1e9:.1f} each way" if theory else ""
    return (
        f"link: {show_rate(limit['gbps'])} GB/s for two arrays up and one down (up "
        f"{show_rate(limit['to_device_gbps'])}, down {show_rate(limit['to_host_gbps'])}, both at once "
        f"{show_rate(limit['both_gbps'])}{share})"
    )


def _launch(limit: Mapping[str, float] | None) -> str:
    if not limit:
        return ""
    return (
        f"launch: {show_seconds(limit['kernel_seconds'])} for an empty kernel, {show_seconds(limit['block_seconds'])} "
        f"for each of its blocks, {show_seconds(limit['queued_seconds'])} from one queued launch to the next"
    )


def _latency(limit: Mapping[str, float] | None) -> str:
    if not limit:
        return ""
    return (
        f"latency: {show_seconds(limit['l2_seconds'])} to the L2, {show_seconds(limit['dram_seconds'])} to the memory, "
        "of a load with nothing else in flight"
    )


def _loaded(loaded: Loaded | None, gpu: Mapping[str, Any]) -> str:
    """How many bytes in flight an addition takes, which loads two arrays and stores a third."""
    if not loaded:
        return ""
    alone = loaded.needed()
    needed = alone * (ARRAYS - 1) / ARRAYS / 1024
    return (
        f"under load: an addition takes {needed:.0f} KiB in flight on each multiprocessor for {100 * ENOUGH:.0f} % "
        f"of {show_rate(loaded.best / 1e9)} GB/s, and waits "
        f"{show_seconds(loaded.latency(alone, gpu['multiprocessors']))} for them"
    )


def _host(rows: Iterable[Figure]) -> str:
    of_host = [row for row in rows if row.sweep == "host" and row.limit]
    if not of_host:
        return ""
    largest = max(of_host, key=lambda row: row.n)
    return f"host memory: {show_rate(largest.limit or 0)} GB/s for an addition of {show_size(largest.n)} elements"

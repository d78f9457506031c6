"""Findings: what the check says of a machine, one a figure and one a condition, with what it means and what to do."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf
from statistics import median
from typing import Any

from vecadd._machine import Gpu, Info
from vecadd.bench import machine
from vecadd.check import topology
from vecadd.check.measure import (
    GROUPS,
    LINK_UNITS,
    PAIR_WAYS,
    UNMEASURED,
    Measured,
    find_bound,
    find_drift,
    find_worst,
    make_measured,
    misses,
    show_name,
    show_title,
)
from vecadd.check.topology import UNKNOWN, Node, NvLinks
from vecadd.figures import Figure, less_is_better
from vecadd.tables import show_figure, show_rate

BUSY = 0.5  # of the host's processors, by the load average: above it other work disturbs the figures
FULL = 1.0  # above it tasks wait for a processor, and those rows that the processors time say little of the machine
TIMED_BY_HOST = ("host", "launch")
DRIFT = 0.05  # from the first round to the last: a greater drift is reported
HARMLESS = ("power cap",)  # throttling that a healthy GPU at full power may show


def find_all(
    info: Info,
    conditions: Mapping[str, Any],
    measured: Measured,
    *,
    require_gpu: bool = False,
    rounds: int = 1,
    more: Iterable[Figure] = (),
) -> list[Figure]:
    """Every measured figure, judged, and every condition, in the order of the table. ``conditions`` are those of
    `machine.conditions_since`; ``rounds`` counts whole ones: with more than one a figure may have drifted; ``more`` are
    figures that other parts of the check have made."""
    figures = measured.figures.values()
    full = _load_per_processor(conditions) > FULL
    return [
        *(judge(figure, info, measured, disturbed=full and figure.sweep in TIMED_BY_HOST) for figure in figures),
        *(_find_drift(figures) if rounds > 1 else ()),
        *_find_unknown_links(info, measured),
        *more,
        _judge_load(conditions),
        _count_gpus(info, require_gpu),
        *(_judge_conditions(conditions) if info.gpus else ()),
    ]


def make_figure(
    id: str, measurement: str, severity: str, value: float | None, unit: str, meaning: str, next: str = "", **more: Any
) -> Figure:
    """A figure of something else than a round. One that passes needs no next step."""
    known: dict[str, Any] = {"measurement": measurement, "severity": severity, "value": value, "unit": unit}
    return Figure("check", id, meaning=meaning, next="" if severity == "pass" else next, **known, **more)


def make_unknown(id: str, measurement: str, unit: str, meaning: str, next: str = "") -> Figure:
    """A figure that could not be found out."""
    return make_figure(id, measurement, "unknown", None, unit, meaning, next or LET_ASK)


LET_ASK = "Run it where nvidia-smi and /sys can be read, as in a container with the driver's tools, or as root."


def judge(figure: Figure, info: Info, measured: Measured, *, disturbed: bool = False) -> Figure:
    """The measured figure with its severity, what it means and what to do."""
    severity = find_severity(figure, disturbed)
    meaning, next = explain_figure(figure, severity)
    normal = compare_with_data_sheet(figure, info.gpus, measured)
    return replace(figure, severity=severity, meaning=meaning, next=next, more={"normal": normal} if normal else {})


def find_severity(figure: Figure, disturbed: bool = False) -> str:
    """A figure that only some rounds missed is a warning; one that other work has disturbed cannot fail."""
    if figure.error is not None:
        return "unknown" if any(name in figure.error for name in UNMEASURED) else "critical"
    if figure.expected is None:
        return "info"
    if misses(figure, figure.value):
        return "unknown" if disturbed else "critical"
    return "warning" if misses(figure, find_worst(figure)) else "pass"


def _find_drift(figures: Iterable[Figure]) -> Iterator[Figure]:
    for figure in figures:
        drift, rising = find_drift(figure), less_is_better(figure.unit)
        if drift is None or (drift if rising else -drift) <= DRIFT:
            continue
        yield make_figure(
            f"drift/{figure.where}/{show_name(figure)}",
            f"drift of {figure.measurement}",
            "warning",
            drift,
            "1",
            f"drift: {show_title(figure)} was {100 * abs(drift):.0f} % slower in the last round.",
            "Look at clocks, temperatures and other work, and measure for longer (--soak MINUTES).",
            expected=(-inf, DRIFT) if rising else (-DRIFT, inf),
            source="the first round of the same run",
        )


def _find_unknown_links(info: Info, measured: Measured) -> Iterator[Figure]:
    """Generations and widths that neither nvidia-smi nor sysfs tells. Those that are known are measured figures."""
    for gpu in range(len(info.gpus)):
        for what in LINK_UNITS:
            figure = make_measured("link", what, gpu)
            if figure.name not in measured.figures:
                meaning = f"neither nvidia-smi nor sysfs says the link's {what}."
                yield make_unknown(figure.name, figure.measurement, figure.unit, meaning)


def _load_per_processor(conditions: Mapping[str, Any]) -> float:
    """Tasks a processor, before the run."""
    return float(conditions["load_average"] / conditions["cpus"])


def _judge_load(conditions: Mapping[str, Any]) -> Figure:
    load, cpus = conditions["load_average"], conditions["cpus"]
    busy = _load_per_processor(conditions) > BUSY
    return make_figure(
        "conditions/host/load",
        "load average before the run",
        "warning" if busy else "pass",
        load,
        "tasks",
        f"host load: {load} on {cpus} CPUs before the run."
        + (" Other work may have made figures worse than the machine is." if busy else ""),
        "Run it again when the machine is idle.",
        expected=(-inf, BUSY * cpus),
        source="half of the processors",
    )


def _count_gpus(info: Info, require_gpu: bool) -> Figure:
    severity: str = "pass" if info.gpus else "info"
    if not info.gpus and info.gpu_status in ("driver too old", "unusable", "unknown"):
        severity = "warning"
    if not info.gpus and require_gpu:
        severity = "critical"
    asked = ", which --require-gpu asks for" if require_gpu else ""
    advice = "vecadd info and nvidia-smi say more; the kernel's log has Xid errors."
    return make_figure(
        "machine/gpus/count",
        "GPUs that work",
        severity,
        len(info.gpus),
        "GPUs",
        f"{len(info.gpus)} GPUs work." if info.gpus else f"no GPU{asked}: {info.gpu_reason}",
        "" if severity == "info" else advice,
        expected=(1, inf) if require_gpu else None,
        source="--require-gpu" if require_gpu else "",
    )


def _judge_conditions(conditions: Mapping[str, Any]) -> Iterator[Figure]:
    """Of all GPUs together, as nvidia-smi counts them."""
    errors, processes = conditions["ecc_errors"], conditions["gpu_processes"]
    for reason, seconds in conditions["throttled"].items():
        yield _judge_count(
            f"throttling by {reason}",
            seconds,
            "s",
            "info" if reason in HARMLESS else "critical",
            f"throttling: {reason} for {seconds or 0:.3g} s of the run.",
            "Look at cooling, airflow and power supply before the figures are believed.",
        )
    yield _judge_count(
        "ECC errors",
        errors,
        "errors",
        "critical",
        f"ECC errors: {errors or 0:.0f} uncorrected since the driver was loaded.",
        "Take the machine out of service, and run the maker's field diagnostic: its memory may need replacement.",
    )
    yield _judge_count(
        "other processes",
        processes,
        "processes",
        "warning",
        f"other processes on the GPU: {processes}. Figures may be worse than the machine is.",
        "End them, and run it again.",
    )


def _judge_count(name: str, value: float | None, unit: str, severity: str, meaning: str, next: str) -> Figure:
    """Of what a healthy machine has none: ``severity`` and ``meaning`` are for one that has some."""
    id = f"conditions/gpus/{name}"
    if value is None:
        return make_unknown(id, name, unit, f"{name}: nvidia-smi does not say.")
    return make_figure(
        id,
        name,
        severity if value else "pass",
        value,
        unit,
        meaning if value else f"{name}: none.",
        next,
        expected=(-inf, 0.0),
        source="a machine that is healthy and idle has none",
    )


# What a measured figure means, and what to do where it is not what it should be.

_MEMORY = "Run it again on an idle machine. If it stays, look at ECC errors, clocks and temperatures (nvidia-smi -q)."
_SLOT = "Seat the card anew, look at riser and slot in the BIOS, and at PCIe errors (AER) in the kernel's log."

_FABRIC = "Look at nvidia-smi nvlink --status and topo -m; at the fabric manager; on PCIe at ACS and IOMMU settings."

# The meaning and the next step, by the longest beginning of a measurement.
_TEXTS: Mapping[str, tuple[str, str]] = {
    "host add": (
        "The rate of an addition that goes through the host's memory, every array counted once.",
        "Look at what else runs, at the processor's clock, and whether every memory channel has its module.",
    ),
    "host add 2^10": (
        "The time of an addition of 4 KiB, which is all call and no memory.",
        "Look at the processor's clock and at what else runs.",
    ),
    "link to": ("The rate of copies between page-locked host memory and the GPU, one way at a time.", _SLOT),
    "link both ways": ("The sum of both directions' rates while copies go both ways at once.", _SLOT),
    "link generation": ("The PCIe generation of the GPU's link while it is busy.", _SLOT),
    "link width": ("The lanes of the GPU's link while it is busy.", _SLOT),
    "device read": ("The rate at which kernels read the GPU's memory.", _MEMORY),
    "device write": ("The rate at which kernels write the GPU's memory.", _MEMORY),
    "device add": ("The rate of vecadd's kernel: two arrays read and one written, each counted once.", _MEMORY),
    "launch": (
        "The time of launching work on the GPU: the driver's and the host's as much as the GPU's.",
        "Look at the processor's clock and power governor, and at debuggers and profilers that are attached.",
    ),
    "pair copy": ("From one GPU's memory into another's by a copy engine.", _FABRIC),
    "pair read": ("A kernel reads another GPU's memory into its own.", _FABRIC),
    "pair write": ("A kernel writes its GPU's memory into another's.", _FABRIC),
}

_LOG = "Look for Xid errors and other messages of the driver in the kernel's log."
_AT_ONCE = "Take the machine out of service: a result that is wrong without an error cannot be used."


def explain_figure(figure: Figure, severity: str) -> tuple[str, str]:
    """What a measured figure of that severity means, and what to do: "" where nothing is to be done."""
    known = max((key for key in _TEXTS if figure.measurement.startswith(key)), key=len, default="")
    meaning, next = _TEXTS.get(known, (f"Probes of the group {GROUPS[figure.sweep]!r}.", _LOG))
    if severity == "unknown":
        disturbed = f"{_describe_miss(figure)} Other work kept the host's processors busy."
        why = f"It could not be measured: {figure.error}" if figure.error else disturbed
        return f"{meaning} {why}", "End other work, and run it again."
    if figure.error is not None:
        return f"{meaning} It failed: {figure.error}", _AT_ONCE if "wrong" in figure.error else next
    if severity in ("info", "pass"):
        return meaning if severity == "pass" else f"{meaning} Nothing says what it should be.", ""
    return f"{meaning} {_describe_miss(figure)}{_describe_degraded_link(figure)}", next


def _describe_miss(figure: Figure) -> str:
    worst, bound, rounds = find_worst(figure), find_bound(figure), len(figure.rounds)
    if figure.value is None or worst is None or not bound:
        return ""
    beyond = "above the most" if less_is_better(figure.unit) else "below the least"
    if misses(figure, figure.value):
        return f"It is {100 * abs(figure.value / bound - 1):.0f} % {beyond} that passes, by the median of {rounds}."
    return (
        f"One measurement was {100 * abs(worst / bound - 1):.0f} % {beyond} that passes, and the median of {rounds} "
        "passes: it flutters."
    )


def _describe_degraded_link(figure: Figure) -> str:
    """Of a link that is less than it could be."""
    if figure.unit not in LINK_UNITS.values() or figure.value is None or figure.reference is None:
        return ""
    found, possible = (show_figure(value, figure.unit) for value in (figure.value, figure.reference))
    return f" degraded link: {found} under load, where {possible} is possible."


# Is this number normal? What a data sheet, a copy, a STREAM add and our row show of the same memory or link, and why
# they differ.
#
# Figures that the same run has measured are shown as they are; of others it says how they are counted.

NORMAL = ("data sheet", "copy", "STREAM add", "ours", "why")
UNTOLD = "not told by the driver"


def compare_with_data_sheet(figure: Figure, gpus: Sequence[Gpu], measured: Measured) -> Mapping[str, str]:
    """By NORMAL's names. None of what is no rate."""
    if figure.unit != "GB/s" or figure.params["what"] == "figures":
        return {}
    index = figure.params["gpu"]
    gpu, limits = gpus[index] if index < len(gpus) else None, measured.limits.get(index, {})
    if figure.sweep == "host":
        shown = _normal_of_host(figure)
    elif figure.sweep == "device":
        shown = _normal_of_device(figure, gpu, limits.get("device", {}), measured)
    elif figure.sweep == "link":
        shown = _normal_of_link(gpu, limits.get("link", {}))
    else:
        shown = _normal_of_pair(figure, measured)
    return {name: {"ours": _rate(figure.value), **shown}[name] for name in NORMAL}


def _normal_of_host(figure: Figure) -> dict[str, str]:
    copied, ordinary = (None if figure.value is None else share * figure.value for share in (0.5, 0.75))
    return {
        "data sheet": "memory channels × transfers a second × 8 bytes; only root may read the modules (dmidecode)",
        "copy": f"a memcpy that counts its bytes once: about {_rate(copied)}",
        "STREAM add": f"with ordinary stores about {_rate(ordinary)}, with streaming stores what ours shows",
        "why": "A data sheet counts every transfer the modules could make; about four fifths can be had. A store to "
        "memory that is not in the cache first reads it: STREAM counts three arrays where four are moved, so it shows "
        "three quarters. Streaming stores, which ours may use, do not read first. One thread alone reaches a fraction.",
    }


def _normal_of_device(
    figure: Figure, gpu: Gpu | None, limits: Mapping[str, float], measured: Measured
) -> dict[str, str]:
    adds = re.compile(rf"device memory/{figure.where}/add ")
    add = max((each.value for id, each in measured.figures.items() if each.value and adds.match(id)), default=None)
    copy = limits.get("copy_gbps")
    return {
        "data sheet": _rate(gpu.bandwidth / 1e9 if gpu and gpu.bandwidth else None, UNTOLD),
        "copy": f"{_rate(copy)} with bytes read and bytes written, {_rate(copy and copy / 2)} where a tool counts once",
        "STREAM add": _rate(add),
        "why": "A data sheet has clock times bus width: no refresh, no turn between reading and writing, no ECC. "
        "Reading alone comes closest; a copy and an addition turn the bus around, so they show less. Sizes that fit "
        "in the L2 show more than the memory has; small ones show the launch.",
    }


def _normal_of_link(gpu: Gpu | None, link: Mapping[str, float]) -> dict[str, str]:
    rate = machine.link_theory(gpu.link_generation_max, gpu.link_width_max) if gpu else None
    return {
        "data sheet": f"{_rate(rate and rate / 1e9, UNTOLD)} each way",
        "copy": f"{_rate(link.get('to_device_gbps'))} up and {_rate(link.get('to_host_gbps'))} down from page-locked "
        "memory; from ordinary memory often a third of it, since the driver copies it once more",
        "STREAM add": f"at most {_rate(link.get('gbps'))}: two arrays go up and one comes down, and all three count",
        "why": "A data sheet counts every byte on the wire, sometimes of both directions together. Packet headers and "
        "flow control take 10 to 15 %. Both ways at once share the host's memory, so the sum is less than twice one.",
    }


def _normal_of_pair(figure: Figure, measured: Measured) -> dict[str, str]:
    ways = {way: measured.figures.get(f"pair/{figure.where}/{way}") for way in PAIR_WAYS}
    shown, read = {name: _rate(way.value if way else None) for name, way in ways.items()}, ways["read"]
    return {
        "data sheet": figure.source or UNTOLD,
        "copy": shown["copy"],
        "STREAM add": f"about {_rate(read.value * 1.5 if read and read.value else None)} where both inputs are read "
        "across: two of its three arrays cross the link",
        "ours": f"copy engine {shown['copy']}, read by a kernel {shown['read']}, written by one {shown['write']}",
        "why": "A data sheet often has both directions together; half of it is one way. Kernels move packets of 128 "
        "bytes, copy engines of 256, so that headers take a fifth of a kernel's rate and less of a copy's. Without "
        "peer access a copy goes through the host's memory.",
    }


def _rate(gbps: float | None, unknown: str = "not measured") -> str:
    return unknown if gbps is None else show_figure(gbps, "GB/s")


# Findings of how the machine is put together: NUMA nodes and their GPUs, NVLinks, and how GPUs are connected.

UNEVEN = 0.9  # of the median node's memory: a node with less lacks a module
NEARER = 0.95  # of the best node's rate: one that has less is not the nearest


def find_topology(info: Info, facts: list[dict[str, Any]], measured: Measured) -> list[Figure]:
    """``facts`` are those of _core.gpu_facts(), or none."""
    nodes = topology.numa_nodes()
    return [
        *_judge_nodes(nodes),
        *(_judge_nodes_of_gpus(nodes, info, facts, measured) if len(nodes) > 1 else ()),
        *_judge_nvlinks(facts),
        *_judge_peer_access(measured),
    ]


def _judge_nodes(nodes: Sequence[Node]) -> Iterator[Figure]:
    if not nodes:
        yield make_unknown(
            "numa/host/nodes", "NUMA nodes", "nodes", f"{topology.NODES} has no nodes, or cannot be read."
        )
    sizes = [node.memory for node in nodes if node.memory and node.cpus]  # other memory is a GPU's, or CXL's
    for node in nodes if len(nodes) > 1 else ():
        name, what = f"numa/node {node.number}/memory", "memory of a NUMA node"
        if node.memory is None:
            yield make_unknown(name, what, "bytes", f"the memory of node {node.number} cannot be read.")
            continue
        least = UNEVEN * median(sizes) if sizes else 0.0
        low = bool(node.cpus) and node.memory < least
        yield make_figure(
            name,
            what,
            "warning" if low else "pass",
            node.memory,
            "bytes",
            f"Node {node.number} has {node.memory / 2**30:.4g} GiB and {len(node.cpus)} processors."
            + (" It has less memory than others, so fewer channels may carry it." if low else ""),
            "Look for a missing or disabled memory module (dmidecode, the BIOS).",
            expected=(least, inf) if node.cpus else None,
            source="nine tenths of the median of all nodes with processors",
        )


def _judge_nodes_of_gpus(
    nodes: Sequence[Node], info: Info, facts: list[dict[str, Any]], measured: Measured
) -> Iterator[Figure]:
    for gpu in info.gpus:
        own = topology.node_of_gpu(facts[gpu.index]) if gpu.index < len(facts) else None
        name, what = f"numa/gpu {gpu.index}/node", "NUMA node of a GPU"
        if own is None:
            yield make_unknown(
                name, what, "node", f"the firmware or sysfs does not say to which node GPU {gpu.index} belongs."
            )
            continue
        rates = _rates_by_node(measured, gpu.index)
        best = max(rates, key=lambda node: rates[node], default=own)
        far = own in rates and rates[own] < NEARER * rates[best]
        reached = any(node.number == own and (topology.usable(node) or not node.cpus) for node in nodes)
        meaning = f"GPU {gpu.index} is plugged into node {own}."
        if far:
            meaning += (
                f" Copies from node {best} were faster: {show_rate(rates[best])} against {show_rate(rates[own])} GB/s."
            )
        if not reached:
            meaning += " This process may run on none of that node's processors: every copy crosses the nodes' link."
        yield make_figure(
            name,
            what,
            "warning" if far or not reached else "pass",
            own,
            "node",
            meaning,
            "Run the work on processors of the GPU's node (numactl, --cpu-bind), and look at the slot in the board's "
            "manual.",
            source="sysfs, and the rates of copies from each node",
        )


def _rates_by_node(measured: Measured, gpu: int) -> dict[int, float]:
    """Copies to the GPU by the node that they come from."""
    copies = re.compile(rf"link/gpu {gpu}/to the device from node (\d+)")
    found = {copies.fullmatch(id): figure.value for id, figure in measured.figures.items()}
    return {int(match[1]): value for match, value in found.items() if match and value}


def _judge_nvlinks(facts: list[dict[str, Any]]) -> Iterator[Figure]:
    for gpu, its in sorted(topology.nvlinks(facts).items()) if facts else ():
        active, missing = len(its.active), its.expected - len(its.active)
        if not its.count and not missing:
            continue  # a card without NVLink
        advice = (
            "Look at nvidia-smi nvlink --status and --errorcounters, at the fabric manager, and for Xid 74 in the "
            "kernel's log; seat bridges anew. Reset the GPU, and have it serviced if they stay inactive."
        )
        yield make_figure(
            f"nvlink/gpu {gpu}/active links",
            "active NVLinks",
            "critical" if missing > 0 else "info" if its.inactive else "pass",
            active,
            "links",
            _describe_nvlinks(gpu, its, missing),
            advice if missing > 0 else "",
            expected=(its.expected, inf),
            source="the links of the card, and those that its peers in this machine have",
        )


def _describe_nvlinks(gpu: int, its: NvLinks, missing: int) -> str:
    active = len(its.active)
    if missing > 0:
        numbers = f"links {', '.join(map(str, its.inactive))}" if its.inactive else "all links"
        return f"{active} NVLinks of GPU {gpu} are active, where {its.expected} should be. Inactive: {numbers}."
    if active and its.inactive:
        return (
            f"{active} of {its.count} NVLinks of GPU {gpu} are active, and no other {its.card} here has more: bridges "
            "and boards that connect GPUs directly use a third or two thirds."
        )
    return f"{active} of {its.count} NVLinks of GPU {gpu} are active" + ("." if active else ": none is connected.")


def _judge_peer_access(measured: Measured) -> Iterator[Figure]:
    for (source, target), peer in sorted(measured.peers.items()):
        connection = measured.connections.get((source, target), UNKNOWN)
        name = connection.name
        if connection is UNKNOWN and peer["atomics"]:
            name = "NVLink, by its atomic operations"
        lacking = name.startswith("NVLink") and not peer["access"]
        access = "have" if peer["access"] else "do not have"
        yield make_figure(
            f"pair/gpu {source} to gpu {target}/peer access",
            "peer access",
            "critical" if lacking else "pass" if peer["access"] else "info",
            float(peer["access"]),
            "1",
            f"The two are connected by {name}, and {access} access to each other's memory"
            + ("." if peer["access"] else ": a copy goes through the host's memory."),
            "Look at the fabric manager and at nvidia-smi nvlink --status." if lacking else "",
            expected=(1.0, inf) if name.startswith("NVLink") else None,
            source="nvidia-smi topo" if connection is not UNKNOWN else "the driver",
        )

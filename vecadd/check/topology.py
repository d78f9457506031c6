"""Findings of how the machine is put together: NUMA nodes and their GPUs, NVLinks, and how GPUs are connected."""

from collections.abc import Iterator
from statistics import median
from typing import Any

from vecadd._machine import Info
from vecadd.check import links, nodes
from vecadd.check.findings import Finding, unknown
from vecadd.check.links import UNKNOWN, NvLinks
from vecadd.check.measure import Measured
from vecadd.check.rows import Severity
from vecadd.tables import show_rate

UNEVEN = 0.9  # of the median node's memory: a node with less lacks a module
NEARER = 0.95  # of the best node's rate: one that has less is not the nearest


def of(info: Info, facts: list[dict[str, Any]], measured: Measured) -> list[Finding]:
    """``facts`` are those of _core.gpu_facts(), or none."""
    return [*_of_memory(), *_of_gpus(info, facts, measured), *_of_links(facts), *_of_pairs(measured)]


def _of_memory() -> Iterator[Finding]:
    found = nodes.nodes()
    if not found:
        yield unknown("numa/host/nodes", "NUMA nodes", "nodes", f"{nodes.NODES} has no nodes, or cannot be read.")
    sizes = [node.memory for node in found if node.memory and node.cpus]  # other memory is a GPU's, or CXL's
    for node in found if len(found) > 1 else ():
        name, what = f"numa/node {node.number}/memory", "memory of a NUMA node"
        if node.memory is None:
            yield unknown(name, what, "bytes", f"the memory of node {node.number} cannot be read.")
            continue
        least = UNEVEN * median(sizes) if sizes else 0.0
        low = bool(node.cpus) and node.memory < least
        yield Finding(
            id=name,
            measurement=what,
            where=f"node {node.number}",
            severity="warning" if low else "pass",
            value=node.memory,
            unit="bytes",
            expected=(least, None) if node.cpus else None,
            source="nine tenths of the median of all nodes with processors",
            meaning=f"Node {node.number} has {node.memory / 2**30:.4g} GiB and {len(node.cpus)} processors."
            + (" It has less memory than others, so fewer channels may carry it." if low else ""),
            next="Look for a missing or disabled memory module (dmidecode, the BIOS)." if low else "",
        )


def _of_gpus(info: Info, facts: list[dict[str, Any]], measured: Measured) -> Iterator[Finding]:
    several = len(nodes.nodes()) > 1
    for gpu in info.gpus if several else ():
        own = nodes.of_gpu(facts[gpu.index]) if gpu.index < len(facts) else None
        name, what = f"numa/gpu {gpu.index}/node", "NUMA node of a GPU"
        if own is None:
            yield unknown(
                name, what, "node", f"the firmware or sysfs does not say to which node GPU {gpu.index} belongs."
            )
            continue
        rates = _rates(measured, gpu.index)
        best = max(rates, key=lambda node: rates[node], default=own)
        far = own in rates and rates[own] < NEARER * rates[best]
        reached = any(node.number == own and (nodes.usable(node) or not node.cpus) for node in nodes.nodes())
        meaning = f"GPU {gpu.index} is plugged into node {own}."
        if far:
            meaning += (
                f" Copies from node {best} were faster: {show_rate(rates[best])} against {show_rate(rates[own])} GB/s."
            )
        if not reached:
            meaning += " This process may run on none of that node's processors: every copy crosses the nodes' link."
        severity: Severity = "warning" if far or not reached else "pass"
        yield Finding(
            id=name,
            measurement=what,
            where=f"gpu {gpu.index}",
            severity=severity,
            value=own,
            unit="node",
            source="sysfs, and the rates of copies from each node",
            meaning=meaning,
            next=""
            if severity == "pass"
            else "Run the work on processors of the GPU's node (numactl, --cpu-bind), and "
            "look at the slot in the board's manual.",
        )


def _rates(measured: Measured, gpu: int) -> dict[int, float]:
    """Copies to the GPU by the node that they come from."""
    return {
        int(row.name.rpartition(" ")[2]): row.value
        for row in measured.rows.values()
        if row.kind == "link" and row.gpu == gpu and row.name.startswith("to the device from node ") and row.value
    }


def _of_links(facts: list[dict[str, Any]]) -> Iterator[Finding]:
    for gpu, its in sorted(links.nvlinks(facts).items()) if facts else ():
        active, missing = len(its.active), its.expected - len(its.active)
        if not its.count and not missing:
            continue  # a card without NVLink
        yield Finding(
            id=f"nvlink/gpu {gpu}/active links",
            measurement="active NVLinks",
            where=f"gpu {gpu}",
            severity="critical" if missing > 0 else "info" if its.inactive else "pass",
            value=active,
            unit="links",
            expected=(its.expected, None),
            source="the links of the card, and those that its peers in this machine have",
            meaning=_of_inactive(gpu, its, missing),
            next="Look at nvidia-smi nvlink --status and --errorcounters, at the fabric manager, and for Xid 74 in the "
            "kernel's log; seat bridges anew. Reset the GPU, and have it serviced if they stay inactive."
            if missing > 0
            else "",
        )


def _of_inactive(gpu: int, its: NvLinks, missing: int) -> str:
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


def _of_pairs(measured: Measured) -> Iterator[Finding]:
    for (source, target), peer in sorted(measured.peers.items()):
        connection = measured.connections.get((source, target), UNKNOWN)
        name = connection.name
        if connection is UNKNOWN and peer["atomics"]:
            name = "NVLink, by its atomic operations"
        lacking = name.startswith("NVLink") and not peer["access"]
        access = "have" if peer["access"] else "do not have"
        yield Finding(
            id=f"pair/gpu {source} to gpu {target}/peer access",
            measurement="peer access",
            where=f"gpu {source} to gpu {target}",
            severity="critical" if lacking else "pass" if peer["access"] else "info",
            value=float(peer["access"]),
            unit="1",
            expected=(1.0, None) if name.startswith("NVLink") else None,
            source="nvidia-smi topo" if connection is not UNKNOWN else "the driver",
            meaning=f"The two are connected by {name}, and {access} access to each other's memory"
            + ("." if peer["access"] else ": a copy goes through the host's memory."),
            next="Look at the fabric manager and at nvidia-smi nvlink --status." if lacking else "",
        )

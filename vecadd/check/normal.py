"""Is this number normal? What a data sheet, a copy, a STREAM add and our row show of the same memory or link, and why
they differ.

Figures that the same run has measured stand as they are. Others are told by how they are counted.
"""

from collections.abc import Mapping

from vecadd._machine import Gpu
from vecadd.bench import machine
from vecadd.check.measure import Measured
from vecadd.check.rows import Row
from vecadd.tables import show_figure

NAMES = ("data sheet", "copy", "STREAM add", "ours", "why")
UNTOLD = "not told by the driver"


def of(row: Row, gpu: Gpu | None, measured: Measured) -> Mapping[str, str] | None:
    """By NAMES. None for rows that are no rates."""
    if row.unit != "GB/s" or row.name == "figures":
        return None
    if row.kind == "host":
        shown = _of_host(row, measured)
    elif row.kind == "device":
        shown = _of_device(row, gpu, measured)
    elif row.kind == "link":
        shown = _of_link(gpu, measured)
    else:
        shown = _of_pair(row, measured)
    return {name: {"ours": _rate(row.value), **shown}[name] for name in NAMES}


def _of_host(row: Row, measured: Measured) -> dict[str, str]:
    ordinary = None if row.value is None else 0.75 * row.value
    return {
        "data sheet": "memory channels × transfers a second × 8 bytes; only root may read the modules (dmidecode)",
        "copy": f"a memcpy that counts its bytes once: about {_rate(None if row.value is None else row.value / 2)}",
        "STREAM add": f"with ordinary stores about {_rate(ordinary)}, with streaming stores what ours shows",
        "why": "A data sheet counts every transfer the modules could make; about four fifths can be had. A store to "
        "memory that is not in the cache first reads it: STREAM counts three arrays where four are moved, so it shows "
        "three quarters. Streaming stores, which ours may use, do not read first. One thread alone reaches a fraction.",
    }


def _of_device(row: Row, gpu: Gpu | None, measured: Measured) -> dict[str, str]:
    limits = measured.limits.get(row.gpu, {}).get("device", {})
    adds = [other for other in measured.rows.values() if other.kind == "device" and other.gpu == row.gpu]
    add = max((other.value for other in adds if other.name.startswith("add ") and other.value), default=None)
    copy = limits.get("copy_gbps")
    return {
        "data sheet": _rate(gpu.bandwidth / 1e9 if gpu and gpu.bandwidth else None, UNTOLD),
        "copy": f"{_rate(copy)} with bytes read and bytes written, {_rate(copy and copy / 2)} where a tool counts once",
        "STREAM add": _rate(add),
        "why": "A data sheet has clock times bus width: no refresh, no turn between reading and writing, no ECC. "
        "Reading alone comes closest; a copy and an addition turn the bus around, so they show less. Sizes that fit "
        "in the L2 show more than the memory has; small ones show the launch.",
    }


def _of_link(gpu: Gpu | None, measured: Measured) -> dict[str, str]:
    rate = machine.link_theory(gpu.link_generation_max, gpu.link_width_max) if gpu else None
    link = measured.limits.get(gpu.index if gpu else 0, {}).get("link", {})
    return {
        "data sheet": f"{_rate(rate and rate / 1e9, UNTOLD)} each way",
        "copy": f"{_rate(link.get('to_device_gbps'))} up and {_rate(link.get('to_host_gbps'))} down from page-locked "
        "memory; from ordinary memory often a third of it, since the driver copies it once more",
        "STREAM add": f"at most {_rate(link.get('gbps'))}: two arrays go up and one comes down, and all three count",
        "why": "A data sheet counts every byte on the wire, sometimes of both directions together. Packet headers and "
        "flow control take 10 to 15 %. Both ways at once share the host's memory, so the sum is less than twice one.",
    }


def _of_pair(row: Row, measured: Measured) -> dict[str, str]:
    ways = {
        name: measured.rows.get(Row("pair", f"{name}{row.name[row.name.find(' to GPU') :]}", "GB/s", gpu=row.gpu).title)
        for name in ("copy", "read", "write")
    }
    shown, read = {name: _rate(way.value if way else None) for name, way in ways.items()}, ways["read"]
    return {
        "data sheet": row.expected.source if row.expected else UNTOLD,
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

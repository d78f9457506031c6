"""The command ``vecadd profile``: its options, what it prints, its exit status."""

import argparse
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from vecadd import _core
from vecadd._command import STDOUT, epilog, target, unknown
from vecadd._machine import Info
from vecadd.bench import machine, options, probes
from vecadd.figures import Figure, write_run
from vecadd.info import info
from vecadd.profile import events, ncu, tables
from vecadd.profile.child import ProfiledRung
from vecadd.profile.ncu import ProfilerError, ProfilerUnavailableError
from vecadd.tables import Screen

ELEMENTS = 1 << 27  # document 000's size: 1.5 GiB of float32, past the L2 of every GPU
ELEMENTS_OF_A_BLOCK = 1 << 20  # for rungs of a single block: one thread takes 47 ms a pass, and there are forty
KINDS = ("device", "latency", "transfer")  # of rungs that use the GPU

METHOD = (
    "one launch a rung, replayed by Nsight Compute for each group of counters, with the caches flushed before each "
    "pass and the clocks left alone, after two runs of warm-up; the sum compared bit for bit afterwards; of a rung "
    "that queues several kernels, the first"
)
METHOD_OF_EVENTS = (
    "kernels by CUDA events around each launch, the median of nine after two runs of warm-up, the caches left as they "
    "are; registers, occupancy and waves by the CUDA runtime; the sum compared bit for bit afterwards"
)
METHOD_OF_TRANSFERS = (
    "one run a rung after two of warm-up, by CUDA events around each copy and kernel and the host's clock around each "
    "allocation; shares are of the seconds of all of them added up, which overlap where the rung lets them; the sum "
    "compared bit for bit afterwards"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What `vecadd profile` takes."""
    names = ", ".join(_names()) if _core.LAB_BUILD else "a rung of the laboratory, which this build is without"
    parser.add_argument("rungs", nargs="+", type=_rung, metavar="RUNG", help=names)
    parser.add_argument(
        "--dtype",
        type=options.parse_dtype,
        metavar="DTYPE",
        help="default: float32, or the first dtype that the rung takes",
    )
    parser.add_argument(
        "--n", type=_size, metavar="N", help="elements: 2^20, 1e6, 1000 (default: 2^27; 2^20 for rungs of one block)"
    )
    parser.add_argument(
        "--block", type=options.parse_block, default=0, metavar="N", help="threads a block (default: the rung's own)"
    )
    parser.add_argument(
        "--param",
        type=_param,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        dest="params",
        help="set a parameter of the rungs that have it; repeat the option for several",
    )
    parser.add_argument(
        "--json", type=target, metavar="FILE", help="write the profiler's whole output to this file; - is stdout"
    )
    parser.epilog = epilog(
        {
            "vecadd profile naive float4": "two kernels side by side",
            "vecadd profile async_copy --param stages=3 --n 2^24": "a rung with a parameter of its own",
            "vecadd profile pinned streams2 --json profile.json": "two transfers, and a file of all figures",
        },
        {1: "no GPU, the profiler refused, or a rung could not be profiled"},
    )


def run(arguments: argparse.Namespace) -> int:
    """Profiles, prints, writes; returns the exit status: 0, or 1 where a rung could not be profiled.

    Raises RuntimeError where there is no GPU or the profiler refuses to work, ValueError for a dtype or a parameter
    that a rung does not take.
    """
    specs = _specs(arguments)
    conditions = machine.conditions_now()
    found = info()
    if not found.gpus:
        raise RuntimeError(f"there is no GPU to profile: {found.gpu_reason}")
    failures: list[str] = []
    launches: dict[ProfiledRung, ncu.Launch] = {}
    moved: dict[ProfiledRung, events.Transfer] = {}
    for spec in specs:
        try:
            if spec.facts["kind"] == "transfer":
                moved[spec] = events.profile_transfer(spec)
            else:
                launches[spec] = _launch(spec, found.gpus[0].bandwidth)
        except ProfilerUnavailableError:
            raise
        except ProfilerError as error:
            failures.append(f"{spec.rung} failed: {error}")
    link = _link(found) if moved else None
    if arguments.json is not None:
        meta = machine.meta(
            found,
            machine.conditions_since(conditions),
            method="; ".join(_methods(launches, moved)),
            **({"link": asdict(link)} if link else {}),
            failures=failures,
        )
        rows = [_row(spec, launch.found.get("duration"), launch.as_dict()) for spec, launch in launches.items()]
        rows += [_row(spec, transfer.seconds, transfer.as_dict()) for spec, transfer in moved.items()]
        write_run(arguments.json, meta, rows)
    _show(Screen(sys.stderr if arguments.json == STDOUT else None), launches, moved, link, failures)
    return 1 if failures else 0


def _launch(spec: ProfiledRung, theory: float | None) -> ncu.Launch:
    """By Nsight Compute; where it is missing or refuses to work, a device rung by its own events."""
    try:
        return ncu.profile_launch(spec)
    except ProfilerUnavailableError as error:
        if spec.facts["kind"] != "device":
            raise
        return events.profile_kernel(spec, theory, str(error))


def _row(spec: ProfiledRung, seconds: float | None, found: dict[str, Any]) -> Figure:
    chosen = {"block": spec.block} if spec.block else {}
    return Figure(
        sweep="profile",
        name=spec.rung,
        dtype=spec.dtype,
        n=spec.n,
        params=chosen | {"parameters": dict(spec.params)} | found,
        value=seconds,
        bytes=events.bytes_moved(spec),
        checked=True,
    )


def _methods(launches: Mapping[ProfiledRung, ncu.Launch], moved: Mapping[ProfiledRung, events.Transfer]) -> list[str]:
    found = {METHOD if launch.why is None else METHOD_OF_EVENTS: None for launch in launches.values()}
    return [*found, *([METHOD_OF_TRANSFERS] if moved else [])]


def _show(
    screen: Screen,
    launches: Mapping[ProfiledRung, ncu.Launch],
    moved: Mapping[ProfiledRung, events.Transfer],
    link: events.Link | None,
    failures: Iterable[str],
) -> None:
    shown, lines = [], []
    if launches:
        shown += tables.kernel_tables(launches)
        lines += tables.kernel_notes(launches)
    if link:
        shown += tables.transfer_tables(moved, link)
        lines += tables.transfer_notes(link)
    screen.show(shown)
    screen.say(*lines, *(f"method: {method}" for method in _methods(launches, moved)), *failures)


def _link(found: Info) -> events.Link:
    """The link's rates, probed after the rungs ran: probing makes this process another on the GPU."""
    rates = probes.probe_link(0)
    gpu = found.gpus[0]
    theory = machine.link_theory(gpu.link_generation_max, gpu.link_width_max)
    return events.Link(
        rates["to_device_gbps"],
        rates["to_host_gbps"],
        theory / 1e9 if theory else None,
        f"PCIe {gpu.link_generation_max} x{gpu.link_width_max}",
    )


def _specs(arguments: argparse.Namespace) -> list[ProfiledRung]:
    """What to profile; raises ValueError for a dtype or a parameter that a rung does not have."""
    specs = []
    unused = {name for name, _ in arguments.params}
    for name in arguments.rungs:
        rung = next(rung for rung in _core.rungs() if rung["name"] == name)
        dtypes = rung["dtypes"]
        dtype = arguments.dtype or ("float32" if "float32" in dtypes else dtypes[0])
        if dtype not in dtypes:
            raise ValueError(f"rung {name} takes {', '.join(dtypes)}, not {dtype}")
        chosen = {key: value for key, value in arguments.params if key in rung["params"]}
        if chosen.get("chain"):
            raise ValueError("chain=1 launches the kernel of chain=0: profile that, whose sum can be checked")
        unused -= set(chosen)
        n = arguments.n or (ELEMENTS_OF_A_BLOCK if rung["blocks"] else ELEMENTS)
        specs.append(ProfiledRung(name, dtype, n, arguments.block if rung["block"] > 1 else 0, tuple(chosen.items())))
    if unused:
        raise ValueError(f"none of {', '.join(arguments.rungs)} has the parameter {', '.join(sorted(unused))}")
    return specs


def _names() -> list[str]:
    return [rung["name"] for rung in _core.rungs() if rung["kind"] in KINDS]


def _rung(text: str) -> str:
    if text not in _names():
        raise argparse.ArgumentTypeError(unknown("rung that uses a GPU", text, _names()))
    return text


def _size(text: str) -> int:
    sizes = options.parse_sizes(text)
    if len(sizes) != 1:
        raise argparse.ArgumentTypeError(f"{text!r} is more than one size")
    return sizes[0]


def _param(text: str) -> tuple[str, int]:
    name, _, value = text.partition("=")
    if not name or not re.fullmatch(r"-?\d+", value):
        raise argparse.ArgumentTypeError(f"{text!r} is not a parameter; write name=3")
    return name, int(value)

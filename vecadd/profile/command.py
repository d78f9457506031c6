"""The command ``vecadd profile``: its options, what it prints, its exit status."""

import argparse
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict

from vecadd import _core
from vecadd._command import STDOUT, epilog, target
from vecadd._machine import Info
from vecadd._names import unknown
from vecadd.bench import axes, limits, machine, results
from vecadd.bench.terminal import Screen
from vecadd.info import info
from vecadd.profile import ncu, tables, transfers
from vecadd.profile.spec import Spec
from vecadd.profile.tools import ProfilerError, RefusedError

ELEMENTS = 1 << 27  # document 000's size: 1.5 GiB of float32, past the L2 of every GPU
ELEMENTS_OF_A_BLOCK = 1 << 20  # for rungs of a single block: one thread takes 47 ms a pass, and there are forty
KINDS = ("device", "latency", "transfer")  # of rungs that use the GPU

METHOD = (
    "one launch a rung, replayed by Nsight Compute for each group of counters, with the caches flushed before each "
    "pass and the clocks left alone, after two runs of warm-up; the sum compared bit for bit afterwards; of a rung "
    "that queues several kernels, the first"
)
METHOD_OF_TRANSFERS = (
    "one run a rung after two of warm-up; shares are of the seconds of all copies and kernels added up, which overlap "
    "where the rung lets them; the sum compared bit for bit afterwards"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What `vecadd profile` takes."""
    parser.add_argument("rungs", nargs="+", type=_rung, metavar="RUNG", help=f"{', '.join(_names())}")
    parser.add_argument(
        "--dtype", type=_dtype, metavar="DTYPE", help="default: float32, or what the rung takes in its place"
    )
    parser.add_argument(
        "--n", type=_size, metavar="N", help="elements: 2^20, 1e6, 1000 (default: 2^27; 2^20 for rungs of one block)"
    )
    parser.add_argument(
        "--block", type=axes.block, default=0, metavar="N", help="threads a block (default: the rung's own)"
    )
    parser.add_argument(
        "--param",
        type=_param,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        dest="params",
        help="of those of the rungs that have it; more than once for several",
    )
    parser.add_argument(
        "--json", type=target, metavar="FILE", help="write all that the profiler said there; - is stdout"
    )
    parser.epilog = epilog(
        {
            "vecadd profile naive float4": "two kernels side by side",
            "vecadd profile async_copy --param stages=3 --n 2^24": "a rung with a parameter of its own",
            "vecadd profile pinned streams2 --json profile.json": "two transfers, and a file of all figures",
        },
        {1: "no GPU, no profiler, or a rung could not be profiled"},
    )


def run(arguments: argparse.Namespace) -> int:
    """Profiles, prints, writes; returns the exit status: 0, or 1 where a rung could not be profiled.

    Raises RuntimeError where there is no GPU or no profiler, ValueError for a dtype or a parameter that a rung does not
    take.
    """
    specs = _specs(arguments)
    conditions = machine.conditions_now()
    found = info()
    if not found.gpus:
        raise RuntimeError(f"there is no GPU to profile: {found.gpu_reason}")
    failures: list[str] = []
    launches: dict[Spec, ncu.Launch] = {}
    moved: dict[Spec, transfers.Transfer] = {}
    for spec in specs:
        try:
            if spec.facts["kind"] == "transfer":
                moved[spec] = transfers.profile(spec)
            else:
                launches[spec] = ncu.profile(spec)
        except RefusedError:
            raise
        except ProfilerError as error:
            failures.append(f"{spec.rung} failed: {error}")
    link = _link(found) if moved else None
    if arguments.json is not None:
        meta = machine.meta(
            found,
            machine.conditions_since(conditions),
            method={"kernels": METHOD, "transfers": METHOD_OF_TRANSFERS},
            limits={"link": asdict(link)} if link else {},
            failures=failures,
        )
        profiles = [spec.as_dict() | launch.as_dict() for spec, launch in launches.items()]
        profiles += [spec.as_dict() | transfer.as_dict() for spec, transfer in moved.items()]
        results.save(arguments.json, {"meta": meta, "profiles": profiles})
    _show(Screen(sys.stderr if arguments.json == STDOUT else None), launches, moved, link, failures)
    return 1 if failures else 0


def _show(
    screen: Screen,
    launches: Mapping[Spec, ncu.Launch],
    moved: Mapping[Spec, transfers.Transfer],
    link: transfers.Link | None,
    failures: Iterable[str],
) -> None:
    shown, lines = [], []
    if launches:
        shown += tables.tables(launches)
        lines += [*tables.notes(launches), f"method: {METHOD}"]
    if link:
        shown += tables.transfer_tables(moved, link)
        lines += [*tables.transfer_notes(moved, link), f"method: {METHOD_OF_TRANSFERS}"]
    screen.show(shown)
    screen.say(*lines, *failures)


def _link(found: Info) -> transfers.Link:
    """The link's rates, probed after the rungs ran: probing makes this process another on the GPU."""
    rates = limits.probe_link(0)
    gpu = found.gpus[0]
    theory = machine.link_theory(gpu.link_generation_max, gpu.link_width_max)
    return transfers.Link(
        rates["to_device_gbps"],
        rates["to_host_gbps"],
        theory / 1e9 if theory else None,
        f"PCIe {gpu.link_generation_max} x{gpu.link_width_max}",
    )


def _specs(arguments: argparse.Namespace) -> list[Spec]:
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
        specs.append(Spec(name, dtype, n, arguments.block if rung["block"] > 1 else 0, tuple(chosen.items())))
    if unused:
        raise ValueError(f"none of {', '.join(arguments.rungs)} has the parameter {', '.join(sorted(unused))}")
    return specs


def _names() -> list[str]:
    return [rung["name"] for rung in _core.rungs() if rung["kind"] in KINDS]


def _rung(text: str) -> str:
    if text not in _names():
        raise argparse.ArgumentTypeError(unknown("rung that uses a GPU", text, _names()))
    return text


def _dtype(text: str) -> str:
    (name,) = axes.dtypes(text)[:1]
    return name


def _size(text: str) -> int:
    sizes = axes.sizes(text)
    if len(sizes) != 1:
        raise argparse.ArgumentTypeError(f"{text!r} is more than one size")
    return sizes[0]


def _param(text: str) -> tuple[str, int]:
    name, _, value = text.partition("=")
    if not name or not value.lstrip("-").isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a parameter; write name=3")
    return name, int(value)

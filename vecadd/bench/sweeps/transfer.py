"""NumPy arrays, added by the GPU: up, added, and down again; then document 004's stages, and a cold start."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from vecadd import _core
from vecadd.bench import cold, contestants, probes, recorded, steps
from vecadd.bench.contestants import Contestant
from vecadd.bench.operands import HOST, PINNED, Buffers, MemoryKind
from vecadd.bench.options import Options, find_dtype
from vecadd.bench.run import DEFAULT_DTYPES, DEFAULT_SIZES, ON_DEVICE, ON_THE_WAY, Machine, Sweep
from vecadd.bench.timing import Cell
from vecadd.figures import Figure
from vecadd.model import Limits, expected

BRIEF_SIZES = (2**16, 2**20, 2**24)
STAGES_SIZE = 2**24  # of document 004's stages: one thread takes 1 s for 2^24 elements on an H200, and 6 s for its 1e8

SETS = 1  # no cache helps a link, and page-locking costs 0.35 s a GiB
MORE_PROBES = 3  # of the link, ahead of the cells

# By the `memory` of a rung's row.
MEMORIES: Mapping[str, tuple[MemoryKind, ...]] = {"pageable": (HOST,), "pinned": (PINNED,), "either": (PINNED, HOST)}
THE_CALL = "tuned_transfer"  # the rung that add(device="cuda") is

# Variants at the largest size of a run, besides the usual parameters: do the kernel and the allocation matter?
VARIANTS: Mapping[str, tuple[Mapping[str, int], ...]] = {
    "pageable": ({}, {"kernel": 1}, {"kernel": 2}, {"allocates": 0}),
    "streams2": ({}, {"allocates": 0}),
}


class LinkLimit(probes.Limit):
    """The link's best rates so far in this run: probed ahead of the cells, and behind each cell's rounds in other
    memory than the cell's. One probe may be too low: on an H100 it found 75 GB/s for both directions at once, on
    another day 101, and rungs came to 1.12 of the limit that follows from the 75."""

    def __init__(self, machine: Machine) -> None:
        self._device = machine.device
        self._best = machine.limits("link")  # which raises what its probe raises
        for _ in range(MORE_PROBES):
            self._probe_again()

    def close(self) -> None:
        """Probes once more."""
        self._probe_again()

    def _probe_again(self) -> None:
        """A probe that fails leaves the rates as they were."""
        best = self._best
        with suppress(MemoryError, RuntimeError):
            again = probes.probe_link(self._device)
            best.update({name: max(rate, again[name]) for name, rate in best.items()})
            best["gbps"] = probes.link_gbps(1e9 * best["to_device_gbps"], 1e9 * best["both_gbps"])

    @property
    def gbps(self) -> float:
        """GB/s of two arrays up while one comes down."""
        return float(self._best["gbps"])


def cells(options: Options, machine: Machine) -> Iterator[Cell]:
    """The round trips at each dtype and size, and at one size document 004's stages."""
    sizes = options.choose_sizes(DEFAULT_SIZES, BRIEF_SIZES)
    theory, limit = machine.link_theory, LinkLimit(machine)

    def add_derived(figures: list[Figure]) -> list[Figure]:
        return _add_model(figures, machine.gpu, machine.probed, theory)

    for name in options.dtypes or DEFAULT_DTYPES:
        dtype = find_dtype(name)
        for n in sizes:
            every = _round_trips(options, dtype, last=n == max(sizes))
            yield Cell(dtype, n, every, limit, SETS, add_derived=add_derived)
    dtype = find_dtype((options.dtypes or DEFAULT_DTYPES)[0])
    n = min(STAGES_SIZE, max(sizes))
    yield Cell(dtype, n, _document_stages(dtype), limit, SETS, add_derived=add_derived)


def _round_trips(options: Options, dtype: np.dtype[Any], *, last: bool) -> list[Contestant]:
    """Every transfer rung on each kind of memory that it takes; ``last``: this is the largest size of the run."""
    found = []
    for rung in _rungs(dtype):
        if rung["by_name"] and not options.names(rung["name"]):
            continue
        variants = VARIANTS.get(rung["name"], ({},)) if last and not options.brief else ({},)
        found += [
            _contestant(rung, memory, chosen, look=("timeline", "stages") if last else ())
            for memory in MEMORIES[rung["memory"]]
            for chosen in variants
        ]
    return [*found, *(contestants.transfer_add(memory, memory=_memory_name(memory)) for memory in (PINNED, HOST))]


def _document_stages(dtype: np.dtype[Any]) -> list[Contestant]:
    """Document 004's stages, one contestant each, in its order."""
    rungs = {rung["name"]: rung for rung in _rungs(dtype)}
    return [
        _contestant(
            rungs[name],
            MEMORIES[rungs[name]["memory"]][0],
            {"kernel": rungs[name]["choices"]["kernel"].index(kernel)},
            look=("stages",),
            stage=kernel if name == "pageable" else name,
        )
        for name, kernel in recorded.STAGES
        if name in rungs
    ]


def _rungs(dtype: np.dtype[Any]) -> list[dict[str, Any]]:
    return [rung for rung in _core.rungs() if rung["kind"] == "transfer" and str(dtype) in rung["dtypes"]]


def _contestant(
    rung: Mapping[str, Any], memory: MemoryKind, chosen: Mapping[str, int], look: Sequence[str], **params: Any
) -> Contestant:
    if "kernel" in rung["params"]:
        params["kernel"] = rung["choices"]["kernel"][chosen.get("kernel", rung["params"]["kernel"][1])]
    return contestants.rung(
        rung["name"],
        memory,
        chosen,
        limited=rung["stages"] != "shared",
        extra_params=_find_steps(rung["name"], chosen, look) if look else None,
        memory=_memory_name(memory),
        **params,
    )


def _memory_name(memory: MemoryKind) -> str:
    """ "pinned" or "pageable", as figures call it."""
    return "pinned" if memory is PINNED else "pageable"


def _find_steps(name: str, chosen: Mapping[str, int], look: Sequence[str]) -> Callable[[Buffers], dict[str, Any]]:
    """When each copy and kernel of one run began and ended, and the seconds in which each kind was at work."""

    def find(used: Buffers) -> dict[str, Any]:
        found = steps.steps(_core.timeline(name, used.a, used.b, used.out, params=dict(chosen)))
        known = {"timeline": [list(step) for step in found], "stages": steps.stages(found)}
        return {key: known[key] for key in look}

    return find


def _add_model(
    figures: list[Figure], gpu: Mapping[str, Any], limits: Mapping[str, Mapping[str, Any]], theory: float | None
) -> list[Figure]:
    """Adds the time that `vecadd.model` expects by these limits, where they suffice, and the share of the link's
    theoretical rate that the two uploads reached; neither where the processor adds a share. ``theory`` is in bytes a
    second, None where it is unknown."""
    rungs, found = {rung["name"]: rung for rung in _core.rungs()}, []
    for figure in figures:
        rung, more = rungs.get(figure.name, rungs[THE_CALL]), dict[str, float]()
        if rung["stages"] != "shared":
            parameters = figure.params.get("parameters", {})
            with suppress(ValueError):
                more["model_seconds"] = expected(rung, None, gpu, Limits.of(limits), figure.dtype, figure.n, parameters)
            if theory and figure.seconds:
                more["link_fraction"] = 2 * figure.bytes / 3 / theory / figure.seconds
        found.append(figure.with_params(**more))
    return found


def measure_cold_start(options: Options, machine: Machine) -> list[Figure]:
    """The figure that is not measured in rounds."""
    if not options.names(cold.ROW) and (options.rungs is not None or options.sizes is not None):
        return []
    found = cold.measure(device=machine.device)
    params, checked = {"gpu": found["gpu"], "cpu": found["cpu"]}, found["gpu"]["checked"]
    error = None if checked else "wrong result"
    seconds = found["gpu"]["own"]
    return [Figure("transfer", cold.ROW, "float32", found["n"], params, value=seconds, checked=checked, error=error)]


def round_trips_of(figures: Iterable[Figure]) -> list[Figure]:
    """The round trips among a run's figures: not the stages of a document, nor a cold start."""
    return [figure for figure in figures if "memory" in figure.params and "stage" not in figure.params]


SWEEP = Sweep(
    "transfer",
    cells,
    "rungs timed in C, around the whole way there and back; add around the Python call; timelines and stages "
    "of one more run, by events; cold_start once, around a process",
    probes=(*ON_DEVICE, *ON_THE_WAY),
    extra=measure_cold_start,
    tables="vecadd.bench.tables.transfer",
    plot="vecadd.bench.plots.transfer",
    by_dtype=True,
    pictured=round_trips_of,
)

"""Transfers as a sweep: which variants of a rung are run on which memory, the model beside them, and what is measured
once outside of the rounds: the steps of a run, a cold start."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from vecadd import _core
from vecadd.bench import cold, contestants, recorded, steps
from vecadd.bench.axes import Axes
from vecadd.bench.buffers import HOST, PINNED, Buffers, Place
from vecadd.bench.contestants import Contestant
from vecadd.figures import Figure
from vecadd.model import Limits, expected

BRIEF_SIZES = (2**16, 2**20, 2**24)
STAGES_SIZE = 2**24  # of document 004's stages: one thread takes 1 s for 2^24 elements on an H200, and 6 s for its 1e8

SETS = 1  # no cache helps a link, and page-locking costs 0.35 s a GiB

# By the `memory` of a rung's row.
PLACES: Mapping[str, tuple[Place, ...]] = {"pageable": (HOST,), "pinned": (PINNED,), "either": (PINNED, HOST)}
THE_CALL = "tuned_transfer"  # the rung that add(device="cuda") is

# Variants at the largest size of a run, besides the usual parameters: do the kernel and the allocation matter?
VARIANTS: Mapping[str, tuple[Mapping[str, int], ...]] = {
    "pageable": ({}, {"kernel": 1}, {"kernel": 2}, {"allocates": 0}),
    "streams2": ({}, {"allocates": 0}),
}

Inspect = Callable[[Buffers], Mapping[str, Any]]


def round_trips(axes: Axes, dtype: np.dtype[Any], *, last: bool) -> list[Contestant]:
    """Every transfer rung on each kind of memory that it takes; ``last``: this is the largest size of the run."""
    found = []
    for rung in _rungs(dtype):
        if rung["by_name"] and not axes.names(rung["name"]):
            continue
        variants = VARIANTS.get(rung["name"], ({},)) if last and not axes.brief else ({},)
        found += [
            _contestant(rung, place, chosen, look=("timeline", "stages") if last else ())
            for place in PLACES[rung["memory"]]
            for chosen in variants
        ]
    return [*found, *(contestants.transfer_add(place, memory=memory(place)) for place in (PINNED, HOST))]


def stages(dtype: np.dtype[Any]) -> list[Contestant]:
    """Document 004's stages, one contestant each, in its order."""
    rungs = {rung["name"]: rung for rung in _rungs(dtype)}
    return [
        _contestant(
            rungs[name],
            PLACES[rungs[name]["memory"]][0],
            {"kernel": rungs[name]["choices"]["kernel"].index(kernel)},
            look=("stages",),
            stage=kernel if name == "pageable" else name,
        )
        for name, kernel in recorded.STAGES
        if name in rungs
    ]


def derive(
    figures: list[Figure], gpu: Mapping[str, Any], limits: Mapping[str, Mapping[str, Any]], theory: float | None
) -> list[Figure]:
    """Adds to the figures the time that `vecadd.model` expects by these limits, where they suffice, and the share of
    the link's theoretical rate that the two uploads reached; neither where the processor adds a share. ``theory`` is in
    bytes a second, None where it is unknown."""
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


def extra_rows(axes: Axes, device: int) -> list[Figure]:
    """The row that is not measured in rounds: a cold start."""
    if not axes.names(cold.ROW) and (axes.rungs is not None or axes.sizes is not None):
        return []
    found = cold.measure(device=device)
    n, checked = found["n"], found["gpu"]["checked"]
    return [
        Figure(
            sweep="transfer",
            name=cold.ROW,
            dtype="float32",
            n=n,
            params={"gpu": found["gpu"], "cpu": found["cpu"]},
            value=found["gpu"]["own"],
            checked=checked,
            error=None if checked else "wrong result",
        )
    ]


def round_trips_of(rows: Iterable[Figure]) -> list[Figure]:
    """The round trips among a run's rows: not the stages of a document, nor a cold start."""
    return [row for row in rows if "memory" in row.params and "stage" not in row.params]


def memory(place: Place) -> str:
    """ "pinned" or "pageable", as rows call it."""
    return "pinned" if place is PINNED else "pageable"


def _rungs(dtype: np.dtype[Any]) -> list[dict[str, Any]]:
    return [rung for rung in _core.rungs() if rung["kind"] == "transfer" and str(dtype) in rung["dtypes"]]


def _contestant(
    rung: Mapping[str, Any], place: Place, chosen: Mapping[str, int], look: tuple[str, ...], **params: Any
) -> Contestant:
    if "kernel" in rung["params"]:
        params["kernel"] = rung["choices"]["kernel"][chosen.get("kernel", rung["params"]["kernel"][1])]
    return contestants.rung(
        rung["name"],
        place,
        chosen,
        limited=rung["stages"] != "shared",
        inspect=_steps(rung["name"], chosen, look) if look else None,
        memory=memory(place),
        **params,
    )


def _steps(name: str, chosen: Mapping[str, int], look: tuple[str, ...]) -> Inspect:
    """When each copy and kernel of one run began and ended, and the seconds in which each kind was at work."""

    def inspect(used: Buffers) -> dict[str, Any]:
        found = steps.steps(_core.timeline(name, used.a, used.b, used.out, params=dict(chosen)))
        known = {"timeline": [list(step) for step in found], "stages": steps.stages(found)}
        return {key: known[key] for key in look}

    return inspect

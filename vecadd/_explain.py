"""What an addition would do and why, in words."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from vecadd import _core

_ROUTES = {
    "host": "the processor adds",
    "transfer": "the GPU adds, over the link and back",
    "hybrid": "the processor adds from the front, the GPU from the back",
    "device": "the GPU adds where the operands lie",
    "numpy": "numpy.add adds",
}

_REASONS = {
    "asked": "device= asks for it",
    "no CUDA": "CUDA is not in play: this process has used no GPU through vecadd; vecadd.use_gpu() would make one a "
    "candidate",
    "forbidden": "vecadd.use_gpu(False) keeps it on the host",
    "untuned": "nobody has measured this machine, so the host is the safe choice: run `vecadd tune routes`",
    "rounding": "this thread's rounding or flushing of subnormals is not the GPU's",
}


@dataclass(frozen=True)
class Explanation:
    """What `vecadd.explain` found. ``str()`` of it is for a terminal.

    ``route`` is "host", "transfer" (by way of the GPU), "hybrid" (processor and GPU), "device" (the operands are there)
    or "numpy". ``predicted`` are seconds by route from the calibration of this machine, of every route that was
    measured for such operands; empty where there is none. ``details`` are the route's own: threads, stores, stream.
    """

    route: str
    why: str
    predicted: Mapping[str, float] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        lines = [f"{self.route}: {_ROUTES[self.route]}", f"  why: {self.why}"]
        lines += [f"  {name} would take {_seconds(taken)}" for name, taken in self.predicted.items()]
        if self.details:
            lines.append("  " + ", ".join(f"{name} {value}" for name, value in self.details.items()))
        return "\n".join(lines)


def explain(a: Any, b: Any, /, out: Any = None, *, device: str | None = None, stream: Any = None) -> Explanation:
    """What ``vecadd.add(a, b, out, device=device, stream=stream)`` would do now, and why; it adds nothing.

    The answer may change in a process's life: once it uses a GPU, and by `vecadd.use_gpu`. A call without ``out`` makes
    its sum in ordinary memory, so that ask with the ``out`` that will be used.

    Raises what the addition would raise before it starts to work.
    """
    found = _core.explain_route(a, b, out, device=device, stream=stream)
    route = found.pop("route")
    if route == "numpy":
        return Explanation(route, f"left to numpy.add: {found['why']}")
    if route == "device":
        return Explanation(route, "the operands are in its memory: nothing has to move", {}, found)
    if "staged" in found:
        return Explanation(route, f"device= asks for it; the operands are made fit first: {found['staged']}")
    reason, predicted = found.pop("reason", None), found.pop("predicted", {})
    memory, failure = found.pop("memory", "ordinary"), found.pop("failure", "")
    if reason is None:
        return Explanation(route, "the host adds row by row what is not one run of memory of one dtype", {}, found)
    if reason == "failed":
        why = f"the GPU has failed under an earlier addition, and vecadd.use_gpu() would try it again: {failure}"
    elif reason == "tuned":
        why = _measured(route, memory, predicted)
    else:
        why = _REASONS[reason]
    return Explanation(route, why, predicted, found)


def _measured(route: str, memory: str, predicted: Mapping[str, float]) -> str:
    name = "page-locked" if memory == "pinned" else "ordinary"
    others = [other for other in predicted if other != route]
    if not others:
        return f"the operands are in {name} memory"
    second = min(others, key=predicted.__getitem__)
    ratio = predicted[second] / predicted[route]
    if ratio < 1:
        return f"the operands are in {name} memory, and {second} is not ahead by enough to be sure of ({ratio:.2f} x)"
    return f"the operands are in {name} memory, where {second} takes {ratio:.2f} x as long by what was measured here"


def _seconds(taken: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if taken >= size:
            return f"{taken / size:.3g} {unit}"
    return f"{taken / 1e-6:.3g} us"

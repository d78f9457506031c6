"""What an addition would do and why, in words."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np

from vecadd import _core
from vecadd._called_by_core import check_numpy_call, own_rules
from vecadd.tables import Pair, ShownAsPairs, show_bytes, show_seconds

_ROUTES = {
    "host": "the processor adds",
    "transfer": "the GPU adds, over the link and back",
    "hybrid": "the processor adds from the front, the GPU from the back",
    "device": "the GPU adds in its own memory",
    "numpy": "numpy.add adds",
    "library": "the operands' library adds",
}

_REASONS = {
    "asked": "device= asks for it",
    "forbidden": "vecadd.use_gpu(False) keeps it on the host",
    "rounding": "this thread's rounding or flushing of subnormals is not the GPU's",
}

_UNFIT = {
    "pinned": "these have less than 32 MiB",
    "ordinary": "at least one of the three is in ordinary memory (vecadd.empty_pinned makes page-locked arrays)",
}


@dataclass(frozen=True)
class Explanation(ShownAsPairs):
    """What `vecadd.explain` found. ``str()`` of it is for a terminal; a notebook shows a table.

    ``route`` is "host", "transfer" (by way of the GPU), "hybrid" (processor and GPU), "device" (the operands are
    there), "numpy" or "library" (PyTorch's or JAX's own addition). ``predicted`` are seconds by route, where they
    decide: by the number of threads and the GPU's link. ``details`` are the route's own: stream, or threads and stores.
    ``operands`` says what a, b and out are. ``tuned`` says of the route "device" whether `vecadd tune device` has found
    the GPU's launch configs, when, and in which file.

    >>> vecadd.Explanation("numpy", "left to numpy.add: few elements").route
    'numpy'
    """

    route: str
    why: str
    predicted: Mapping[str, float] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)
    operands: Mapping[str, str] = field(default_factory=dict)
    tuned: str | None = None

    def _rows(self) -> list[Pair]:
        rows: list[Pair] = [(self.route, [_ROUTES[self.route]]), ("why", [self.why])]
        rows += [(name, [text]) for name, text in self.operands.items()]
        for name, value in self.details.items():
            shown = f"cuda:{value}" if name == "device" and value is not None else str(value)
            rows.append((name, ["cuda, the thread's current GPU" if name == "device" and value is None else shown]))
        if self.predicted:
            rows.append(("predicted", [f"{name} {show_seconds(taken)}" for name, taken in self.predicted.items()]))
        if self.tuned:
            rows.append(("tuned", [self.tuned]))
        return rows

    __repr__ = ShownAsPairs.__str__


def explain(a: Any, b: Any, /, *out: Any, **keywords: Any) -> Explanation:  # *out: add takes a tuple as out= alone
    """What ``vecadd.add(a, b, out, device=device, stream=stream)`` would do now, and why; it adds no array.

    The answer may change in a process's life: once it uses a GPU, and by `vecadd.use_gpu`. A call without ``out`` makes
    its sum in ordinary memory, so ask with the ``out`` that will be used. For ``device="cuda"`` and "hybrid" the driver
    is asked whether the GPU is there, as the addition would.

    Raises what the addition would raise before it starts to work. Of arrays of objects the first pair is added, because
    only the objects know.

    >>> a = np.ones(1000)
    >>> vecadd.explain(a, a).route
    'host'
    """
    found = _core.explain_route(a, b, *out, **keywords)
    device, given = keywords.pop("device", None), keywords.pop("out", None)
    keywords.pop("stream", None)
    total = out[0] if out else given[0] if isinstance(given, tuple) else given
    route = found.pop("route")
    if route == "numpy":
        check_numpy_call(a, b, total, **keywords)
    reason, predicted = found.pop("reason", None), found.pop("predicted", {})
    memory, failure = found.pop("memory", "ordinary"), found.pop("failure", "")
    differs, left = found.pop("differs", None), found.pop("why", None)
    if route in ("numpy", "library"):
        why = _left(differs, left, a=a, b=b, out=total)
    elif route == "device":
        why = "the operands are in its memory: nothing has to move"
    elif reason is None:
        why = f"{differs}: the processor adds row by row, and converts where dtypes differ"
    elif reason == "failed":
        why = f"the GPU has failed under an earlier addition, and vecadd.use_gpu() would try it again: {failure}"
    elif reason == "no CUDA":
        why = _no_cuda()
    elif reason == "small or ordinary":
        why = f"only page-locked arrays of 32 MiB or more leave the processor by themselves: {_UNFIT[memory]}"
    elif reason == "predicted":
        why = _predicted(route)
    else:
        why = _asked(route, device) or _REASONS[reason]
        why += f"; {differs}, so the operands are first made one run of memory of the sum's dtype" if differs else ""
    operands = {name: _described(x) for name, x in (("a", a), ("b", b), ("out", total))}
    known = _core.device_launch_configs(found["device"]) if route == "device" else None
    tuned = tuned_words(known["key"], used=known["source"] == "tuned") if known else None
    return Explanation(route, why, predicted, found, operands, tuned)


explain.__signature__ = signature(_core.add)  # type: ignore[attr-defined]  # for help()


def tuned_words(key: str, *, used: bool | None = None) -> str:
    """Whether `vecadd tune device` has found launch configs for the GPU of that key, when, and in which file.
    ``used``: whether this process goes by them; None where it does not know, and then a file counts that is whole."""
    path = _core.tuned_path("recipes", key)
    if path is None or _core.tuned_rows("recipes", key) is None:
        return "tuned" if used else "not tuned; `vecadd tune device` measures this GPU"
    written = f"{datetime.fromtimestamp(Path(path).stat().st_mtime):%Y-%m-%d %H:%M}"
    if used is False:
        return f"not tuned; {path} of {written} is read by processes that start from now on"
    return f"tuned {written}, {path}"


def _left(differs: str | None, left: str | None, **operands: Any) -> str:
    """Why the addition is left to NumPy or to the operands' library, and what to pass to have vecadd add."""
    words = [text for text in (differs, left) if text]
    for name, x in operands.items():
        if own_rules(x) or (isinstance(x, np.ndarray) and type(x) is not np.ndarray):
            plain = f"{name}.to_numpy()" if hasattr(x, "to_numpy") else f"numpy.asarray({name})"
            words = [f"{name} is a {_kind(x)}, which may add by its own rules; for vecadd's own addition pass {plain}"]
    return ", and ".join(words)


def _asked(route: str, device: str | int | None) -> str | None:
    """What device= comes to where that is not plain; else None."""
    if route == "hybrid":
        return f"{_REASONS['asked']}; page-locked arrays (vecadd.empty_pinned) are shared, all others the processor's"
    if route != "host" or device in (None, "cpu"):
        return None
    small = "the arrays have less than 32 MiB each, or " if device == "hybrid" else ""
    return f"device={device!r} leaves it to the processor: {small}{_REASONS['rounding']}"


def _no_cuda() -> str:
    if not _core.CUDA_BUILD:
        return "this build of vecadd has no GPU code"
    if not _core.cuda_versions()[0]:
        return "CUDA is not in play: there is no NVIDIA driver here"
    return (
        "CUDA is not in play: this process has used no GPU through vecadd; where vecadd.info() shows one, "
        "vecadd.use_gpu() makes it a candidate"
    )


def _described(x: Any) -> str:
    """An operand in a few words."""
    if x is None:
        return "a new array"
    if isinstance(x, bool | int | float | complex | np.generic):
        try:
            text = repr(x)
        except ValueError:  # an int of more digits than Python writes
            return f"an int of {x.bit_length():,} bits" if isinstance(x, int) else f"a {_kind(x)}"
        return f"the number {text if len(text) <= 40 else text[:37] + '...'}"
    shape, dtype, nbytes = (_read(x, name) for name in ("shape", "dtype", "nbytes"))
    if shape is None or dtype is None:
        return f"a {_kind(x)}"
    size = f", {show_bytes(nbytes)}" if isinstance(nbytes, int) else ""
    return f"{_kind(x)}, {dtype}, shape {tuple(shape)}{size}{_layout(x)}"


def _read(x: Any, name: str) -> Any:
    """An attribute of x; None without one, and where reading it raises, as of PyTorch's sparse tensors."""
    try:
        return getattr(x, name, None)
    except RuntimeError:
        return None


def _layout(x: Any) -> str:
    if not isinstance(x, np.ndarray) or x.flags.c_contiguous:
        return ""
    return ", in Fortran order" if x.flags.f_contiguous else f", strides {x.strides} bytes"


def _kind(x: Any) -> str:
    kind = type(x)
    return kind.__name__ if kind.__module__ in ("builtins", "numpy") else f"{kind.__module__}.{kind.__name__}"


def _predicted(route: str) -> str:
    if route == "hybrid":
        return "the operands are page-locked and large: predicted to be faster than the processor alone"
    return "predicted: the GPU's link is too slow to help the processor by 3 % or more"

"""Host arrays of other libraries than NumPy: vecadd adds them in place, and the sum is an array of their library.

Operands that have to be broadcast or cast go to the library's own addition, whose promotion rules apply. Into ``out``
they are broadcast as NumPy does it: torch.add would give an ``out`` of another shape new memory, of the sum's shape.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vecadd import _core
from vecadd.interop.library import Library

_NUMBERS = (int, float, complex, np.generic)
_UNREADABLE = (
    AttributeError,
    BufferError,
    RuntimeError,
    TypeError,
    ValueError,
)  # raised for memory that NumPy cannot read


def add(library: Library, a: Any, b: Any, out: Any, device: str | None) -> Any:
    """add(a, b, out, device=device) for arrays of this library, one of a and b perhaps a number."""
    views = _views(library, a, b, out)
    if isinstance(views, str):
        return library.add(*_broadcast(library, a, b, out), out)
    try:
        total = _core.add(*views, device=device)
    except (MemoryError, TypeError, ValueError):  # raised before the work
        raise
    except BaseException:  # raised after the work: a warning that is an error, a floating-point error
        _written(library, out)
        raise
    _written(library, out)
    return library.from_host(total, a) if out is None else out


def check(library: Library, a: Any, b: Any, out: Any) -> None:
    """Raises what `add` into ``out`` raises before it adds; writes nothing.

    The library itself judges the dtypes, on tensors without elements. It judges when it adds what it alone can add, and
    an ``out`` that overlaps itself.
    """
    if isinstance(_views(library, a, b, out), str) and _shapes(library, a, b, out):
        operands = _broadcast(library, a, b, out)
        few = [x if _is_number(x) else x.new_empty((0,) * bool(x.ndim)) for x in operands]
        library.add(few[0], few[1], out.new_empty(0))


def _broadcast(library: Library, a: Any, b: Any, out: Any) -> tuple[Any, Any]:
    """The operands, those of the most dimensions in out's shape; numbers and tensors without dimension take a dtype by
    rules of their own. Raises ValueError where NumPy does."""
    shapes = None if out is None else _shapes(library, a, b, out)
    if not shapes:
        return a, b
    *given, wanted = shapes
    shape, most = np.broadcast_shapes(*given), max(map(len, given))
    if shape == wanted:
        return a, b
    if not _goes_into(shape, wanted):
        raise ValueError(
            f"out has shape {wanted}, into which a sum of shape {shape} is not broadcast: pass one of {shape}"
        )
    wide = [x if _is_number(x) or len(own) < most else x.expand(wanted) for x, own in zip((a, b), given, strict=True)]
    return wide[0], wide[1]


def _shapes(library: Library, a: Any, b: Any, out: Any) -> list[tuple[int, ...]] | None:
    """None where the library alone can add these, or a tensor has no memory to read."""
    operands = (a, b, out)
    if library.must_add([x for x in operands if not _is_number(x)], out):
        return None
    try:
        views = [x if _is_number(x) else _core.host_view(library.on_host(x, writing=x is out)) for x in operands]
    except _UNREADABLE:
        return None
    return [np.shape(view) for view in views]


def _goes_into(shape: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    try:
        return np.broadcast_shapes(shape, wanted) == wanted
    except ValueError:
        return False


def _is_number(x: Any) -> bool:
    return isinstance(x, _NUMBERS)


def _written(library: Library, out: Any) -> None:
    if out is not None and library.count_writes is not None:
        library.count_writes((out,))


def explain(library: Library, a: Any, b: Any, out: Any, device: str | None) -> dict[str, Any]:
    """What `add` would do, as _core.explain_route says it."""
    views = _views(library, a, b, out)
    if isinstance(views, str):
        return {"route": "library", "why": views}
    return _core.explain_route(*views, device=device)


def _views(library: Library, a: Any, b: Any, out: Any) -> list[NDArray[Any]] | str:
    """NumPy arrays in the memory of all operands; a few words on why not where the library has to add."""
    if _is_number(a) or _is_number(b):
        return "an operand is a number, which takes a dtype by the library's rules"
    tensors = (a, b) if out is None else (a, b, out)
    if why := library.must_add(tensors, out):
        return why
    operands = [library.on_host(x, writing=x is out) for x in tensors]
    try:
        views = [_core.host_view(x) for x in operands]
    except _UNREADABLE:
        return "an operand's memory cannot be read as a NumPy array's"  # a sparse tensor, a dtype of its own
    first = views[0]
    if any(view.dtype != first.dtype for view in views):
        return "the dtypes differ, and the library's rules give the sum's"
    if any(view.shape != first.shape for view in views):
        return "the shapes differ"
    return views if first.ndim else "the operands have no dimension"

"""Host arrays of other libraries than NumPy: vecadd adds them in place, and the sum is an array of their library.

Operands that have to be broadcast or cast go to the library's own addition, whose promotion rules hold.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vecadd import _core
from vecadd.interop.library import Library

_NUMBERS = (int, float, complex, np.generic)


def add(library: Library, a: Any, b: Any, out: Any, device: str | None) -> Any:
    """add(a, b, out, device=device) for arrays of this library, one of a and b perhaps a number."""
    views = _views(library, a, b, out)
    if isinstance(views, str):
        return library.add(a, b, out)
    try:
        total = _core.add(*views, device=device)
    except (MemoryError, TypeError, ValueError):  # raised before the work
        raise
    except BaseException:  # raised after the work: a warning that is an error, a floating-point error
        _written(library, out)
        raise
    _written(library, out)
    return library.from_host(total, a) if out is None else out


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
    if isinstance(a, _NUMBERS) or isinstance(b, _NUMBERS):
        return "an operand is a number, which takes a dtype by the library's rules"
    tensors = (a, b) if out is None else (a, b, out)
    if why := library.must_add(tensors, out):
        return why
    operands = [library.on_host(x, writing=x is out) for x in tensors]
    try:
        views = [_core.host_view(x) for x in operands]
    except (AttributeError, BufferError, RuntimeError, TypeError, ValueError):
        return "an operand's memory cannot be read as a NumPy array's"  # a sparse tensor, a dtype of its own
    first = views[0]
    if any(view.dtype != first.dtype for view in views):
        return "the dtypes differ, and the library's rules give the sum's"
    if any(view.shape != first.shape for view in views):
        return "the shapes differ"
    return views if first.ndim else "the operands have no dimension"

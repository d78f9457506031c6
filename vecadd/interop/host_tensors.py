"""Host arrays of other libraries than NumPy: vecadd adds them in place, and the sum is an array of their library.

Operands that have to be broadcast or cast go to the library's own addition, whose promotion rules hold.
"""

from typing import Any

from numpy.typing import NDArray

from vecadd import _core
from vecadd.interop.library import Library


def add(library: Library, a: Any, b: Any, out: Any, device: str | None) -> Any:
    """add(a, b, out, device=device) for arrays of this library, one of a and b perhaps a number."""
    views = _views(library, a, b, out)
    if views is None:
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
    if views is None:
        return {"route": "library", "why": "the dtypes or shapes differ, or its memory cannot be read as NumPy's"}
    return _core.explain_route(*views, device=device)


def _views(library: Library, a: Any, b: Any, out: Any) -> list[NDArray[Any]] | None:
    """NumPy arrays in the memory of all operands; None where they differ in dtype or shape or have no such memory."""
    numbers = any(isinstance(x, int | float | complex) for x in (a, b))
    tensors = [x for x in (a, b, out) if x is not None and not isinstance(x, int | float | complex)]
    operands = [library.on_host(x, writing=x is out) for x in tensors]
    if numbers:
        return None
    try:
        views = [_core.host_view(x) for x in operands]
    except (AttributeError, BufferError, RuntimeError, TypeError, ValueError):
        return None  # a sparse tensor or a dtype of its own: the library's addition decides
    first = views[0]
    alike = all(view.dtype == first.dtype and view.shape == first.shape for view in views)
    return views if alike and first.ndim else None

"""Arrays of other libraries, a file a library: a current stream, new arrays of their kind.

The C extension calls ``library_of`` and the methods of what it gives. No library is imported here: a caller with an
array of a library has imported it.
"""

import sys
from collections.abc import Iterable
from typing import Any
from weakref import WeakKeyDictionary

from vecadd.interop.cupy import CuPy
from vecadd.interop.jax import JAX
from vecadd.interop.library import Library, is_foreign
from vecadd.interop.numba import Numba
from vecadd.interop.torch import Torch

__all__ = ["JAX", "LIBRARIES", "CuPy", "Library", "Numba", "Torch", "library_of", "stream_owner"]

LIBRARIES = {"cupy": CuPy(), "jax": JAX(), "jaxlib": JAX(), "numba": Numba(), "torch": Torch()}

_known: WeakKeyDictionary[type, Library | None] = WeakKeyDictionary()


def library_of(kind: type) -> Library | None:
    """The library whose array type this is, or is derived from; None for any other type."""
    try:
        return _known[kind]
    except KeyError:
        modules = (str(base.__module__).partition(".")[0] for base in kind.__mro__)
        return _known.setdefault(kind, next((LIBRARIES[module] for module in modules if module in LIBRARIES), None))


def stream_owner(handle: int, device: int, given: Any, arrays: Iterable[Any]) -> Any:
    """What keeps a stream for use after the call that names it: an object with which it goes, True where nothing
    destroys it, None where nothing is known. ``given`` is the caller's stream object or None, ``arrays`` are the
    operands."""
    if given is not None and not is_foreign(given, handle):
        return given
    for name in ("torch", "cupy", "jax"):
        owner = LIBRARIES[name].stream_owner(handle, device) if name in sys.modules else None
        if owner is not None:
            return owner
    for array in arrays:
        library = library_of(type(array))
        stream = library and library.stream_of(array)
        if stream and _handle(stream) == handle and not is_foreign(stream, handle):
            return stream
    return None


def _handle(stream: Any) -> int:
    """Of a stream of Numba's: a ctypes pointer, or an object that int() takes."""
    return int(getattr(stream.handle, "value", stream.handle) or 0)

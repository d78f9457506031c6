"""Arrays of other libraries, a file a library: a current stream, new arrays of their kind.

The C extension calls ``library_of`` and the methods of what it gives. No library is imported here: a caller with an
array of a library has imported it.
"""

from weakref import WeakKeyDictionary

from vecadd.interop.cupy import CuPy
from vecadd.interop.jax import JAX
from vecadd.interop.library import Library
from vecadd.interop.numba import Numba
from vecadd.interop.torch import Torch

__all__ = ["JAX", "LIBRARIES", "CuPy", "Library", "Numba", "Torch", "library_of"]

LIBRARIES = {"cupy": CuPy(), "jax": JAX(), "jaxlib": JAX(), "numba": Numba(), "torch": Torch()}

_known: WeakKeyDictionary[type, Library | None] = WeakKeyDictionary()


def library_of(kind: type) -> Library | None:
    """The library whose array type this is, or is derived from; None where it is none of these."""
    try:
        return _known[kind]
    except KeyError:
        modules = (str(base.__module__).partition(".")[0] for base in kind.__mro__)
        return _known.setdefault(kind, next((LIBRARIES[module] for module in modules if module in LIBRARIES), None))

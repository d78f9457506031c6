"""What is to be judged, as the child process is told it: a file and a function in it, or a pickled function."""

import ast
import base64
import pickle
import sys
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

ARRAYS = ("vecadd", "torch", "cupy")
SUFFIXES = (".py", ".cu")

_IMPORTS = {"torch": "torch", "triton": "torch", "cupy": "cupy"}  # whose arrays code takes that imports this


def described(contestant: Any, function: str, arrays: str | None) -> dict[str, Any]:
    """The contestant for the child: name, path or pickle, and which arrays it takes: where ``arrays`` is None, those of
    the library that it imports. Raises FileNotFoundError, ValueError for another kind of file, for unknown arrays and
    for a function that cannot be sent to another process, TypeError for what is neither a file nor callable."""
    if arrays not in (None, *ARRAYS):
        raise ValueError(f"arrays must be {', '.join(map(repr, ARRAYS))} or None, not {arrays!r}")
    if isinstance(contestant, str | Path):
        path = Path(contestant)
        if not path.is_file():
            raise FileNotFoundError(2, "No such file", str(path))
        if path.suffix not in SUFFIXES:
            raise ValueError(f"{path} is neither a .py nor a .cu file")
        took = _arrays_of(_imported(path)) if path.suffix == ".py" else "vecadd"
        if path.suffix == ".cu" and arrays not in (None, "vecadd"):
            raise ValueError(f"a .cu file takes pointers, not {arrays}'s arrays")
        return {
            "name": path.name,
            "path": str(path.resolve()),
            "function": function,
            "pickled": "",
            "folders": sys.path,
            "arrays": arrays or took,
        }
    if not callable(contestant):
        raise TypeError(f"what is judged is a function of (a, b, out) or the path of a file, not {contestant!r}")
    return {
        "name": getattr(contestant, "__name__", type(contestant).__name__),
        "path": "",
        "function": function,
        "pickled": base64.b64encode(_pickled(contestant)).decode(),
        "folders": sys.path,
        "arrays": arrays or _arrays_of(_modules(contestant)),
    }


def _pickled(function: Callable[..., Any]) -> bytes:
    """By its module and name where another process can import it, else whole, by cloudpickle."""
    if getattr(function, "__module__", None) != "__main__":
        try:
            return pickle.dumps(function)
        except (pickle.PicklingError, AttributeError, TypeError):
            pass
    refusal = f"{function!r} cannot be sent to another process"
    try:
        whole: bytes = import_module("cloudpickle").dumps(function)
    except ImportError:
        remedy = "give the path of the file that it is in, or pip install cloudpickle"
        raise ValueError(f"{refusal}: {remedy}") from None
    except Exception as error:  # whatever its objects raise
        raise ValueError(f"{refusal}: {error}") from error
    return whole


def _arrays_of(modules: Iterable[str]) -> str:
    names = {module.partition(".")[0] for module in modules}
    return next((arrays for name, arrays in _IMPORTS.items() if name in names), "vecadd")


def _imported(path: Path) -> list[str]:
    """The modules that a Python file imports; none where it is no Python, which the child will find."""
    try:
        nodes = list(ast.walk(ast.parse(path.read_bytes(), str(path))))
    except (SyntaxError, ValueError):
        return []
    found = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    return found + [node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module]


def _modules(function: Any) -> list[str]:
    """The modules that a function's globals are, or come from."""
    values = getattr(function, "__globals__", {}).values()
    found = (getattr(value, "__module__", None) or getattr(value, "__name__", None) for value in values)
    return [name for name in found if isinstance(name, str)]

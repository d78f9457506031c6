"""The contestant's code, read in the child: a Python file, a .cu file, or a pickled function."""

import base64
import importlib
import importlib.util
import pickle
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from vecadd.judge import compile as compiler
from vecadd.judge.compile import CompileError

__all__ = ["CompileError", "ImpossibleError", "contestant", "conversion", "told"]

DEFINE = "define it, or name another by --function"


class ImpossibleError(Exception):
    """The contestant cannot be judged here: something is missing that is not its fault."""


def conversion(arrays: str) -> Callable[[Any], Any] | None:
    """What makes such an array of a DeviceArray; None where the contestant gets those. Raises ImpossibleError where the
    library is missing."""
    if arrays == "vecadd":
        return None
    try:
        library = importlib.import_module(arrays)
    except ImportError as error:
        raise ImpossibleError(f"it takes {arrays}'s arrays, and {arrays} is not installed here") from error
    convert: Callable[[Any], Any] = library.from_dlpack
    return convert


def contestant(spec: Mapping[str, Any], gpu: Mapping[str, Any]) -> Callable[..., Any]:
    """The function that is judged. Raises ImpossibleError where it is not there or no compiler is, CompileError, and
    what its code raises."""
    if spec["pickled"]:
        return _unpickled(spec)
    path = Path(spec["path"])
    if path.suffix == ".cu":
        try:
            return compiler.function_of(path, spec["function"], spec["dtype"], f"{gpu['cc_major']}{gpu['cc_minor']}")
        except compiler.NoFunctionError as error:
            raise ImpossibleError(f"{path} has {error}: {DEFINE}") from error
        except compiler.NoCompilerError as error:
            raise ImpossibleError(str(error)) from error
    module = importlib.util.spec_from_file_location("contestant", path)
    if module is None or module.loader is None:
        raise ImpossibleError(f"{path} is no Python file")
    made = importlib.util.module_from_spec(module)
    sys.modules["contestant"] = made
    sys.path.insert(0, str(path.parent))  # its neighbours can be imported, as when it is run
    module.loader.exec_module(made)
    found = getattr(made, spec["function"], None)
    if not callable(found):
        raise ImpossibleError(f"{path} has no function {spec['function']}: {DEFINE}")
    function: Callable[..., Any] = found
    return function


def told(error: BaseException) -> str:
    """An exception of foreign code: the line that raised it, its type and its words."""
    where = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(where[-1].filename).name}, line {where[-1].lineno})" if where else ""
    return f"{type(error).__name__}: {error}{place}"


def _unpickled(spec: Mapping[str, Any]) -> Callable[..., Any]:
    sys.path[:] = spec["folders"]
    function: Callable[..., Any] = pickle.loads(base64.b64decode(spec["pickled"]))
    return function

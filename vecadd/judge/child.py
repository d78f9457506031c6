"""Run as ``python -m vecadd.judge.child``: the process that a contestant runs in.

It answers the parent's questions, a line each: which call to make is decided there, and what came of it is judged
there. The calls are prepared, timed and compared in C. What this process uses beside that is bound to local names
before the contestant's code is read, so that nothing which that code replaces in a module is used here.

The foreign code shares this process. What it cannot replace it can still read and write by way of ctypes or gc: this
keeps mistakes and tricks of a kernel from being rewarded, and is no sandbox.
"""

import base64
import importlib
import importlib.util
import os
import pickle
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, MethodDescriptorType
from typing import Any

import numpy as np

from vecadd import _core
from vecadd.bench import probes
from vecadd.bench.operands import HOST, Pattern
from vecadd.bench.options import find_dtype
from vecadd.judge.compile import DEFINE, CompileError, ImpossibleError, function_of

# Which functions of the clocks and checkers the contestant's code has replaced. No judgement uses them; code that
# replaces them means to deceive.

MODULES = ("time", "numpy", "vecadd", "vecadd._core", "vecadd.ladder", "vecadd.judge.child")
OF_ARRAYS = {"torch": ("torch", "torch.cuda"), "cupy": ("cupy", "cupy.cuda"), "vecadd": ()}

WATCHED_TYPES = (FunctionType, BuiltinFunctionType, MethodDescriptorType, type, np.ufunc)


def watch_functions(arrays: str) -> Callable[[], list[str]]:
    """Notes the functions and classes of these modules; what it gives then names those that are others by now."""
    noted = [
        (module, name, value)
        for module in map(importlib.import_module, (*MODULES, *OF_ARRAYS.get(arrays, ())))
        for name, value in vars(module).items()
        if isinstance(value, WATCHED_TYPES)
    ]

    def replaced() -> list[str]:
        return [f"{module.__name__}.{name}" for module, name, value in noted if vars(module).get(name) is not value]

    return replaced


# The contestant's code, read in the child: a Python file, a .cu file, or a pickled function.


def find_conversion(arrays: str) -> Callable[[Any], Any] | None:
    """The function that makes the library's array from a DeviceArray; None if the contestant takes DeviceArrays. Raises
    ImpossibleError if the library is missing."""
    if arrays == "vecadd":
        return None
    try:
        library = importlib.import_module(arrays)
    except ImportError as error:
        raise ImpossibleError(f"it takes {arrays}'s arrays, and {arrays} is not installed here") from error
    convert: Callable[[Any], Any] = library.from_dlpack
    return convert


def load_contestant(spec: Mapping[str, Any], gpu: Mapping[str, Any]) -> Callable[..., Any]:
    """The function that is judged. Raises ImpossibleError where it is not there or no compiler is, CompileError, and
    what its code raises."""
    if spec["pickled"]:
        return _unpickled(spec)
    path = Path(spec["path"])
    if path.suffix == ".cu":
        return function_of(path, spec["function"], f"{gpu['cc_major']}{gpu['cc_minor']}")
    module = importlib.util.spec_from_file_location("contestant", path)
    if module is None or module.loader is None:
        raise ImpossibleError(f"{path} is not a Python file")
    made = importlib.util.module_from_spec(module)
    sys.modules["contestant"] = made
    sys.path.insert(0, str(path.parent))  # its neighbours can be imported, as when it is run
    module.loader.exec_module(made)
    found = getattr(made, spec["function"], None)
    if not callable(found):
        raise ImpossibleError(f"{path} has no function {spec['function']}: {DEFINE}")
    function: Callable[..., Any] = found
    return function


def describe_exception(error: BaseException) -> str:
    """An exception of foreign code: the line that raised it, its type and its words."""
    where = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(where[-1].filename).name}, line {where[-1].lineno})" if where else ""
    return f"{type(error).__name__}: {error}{place}"


def _unpickled(spec: Mapping[str, Any]) -> Callable[..., Any]:
    sys.path[:] = spec["folders"]
    function: Callable[..., Any] = pickle.loads(base64.b64decode(spec["pickled"]))
    return function


VERSIONS = 3  # of the operands: those given, those that were in a and b before, and those of the call before
PERIOD = 131_071  # elements: a prime number, so that no block or vector meets the same values twice
FLUSH_TIMES = 4  # memory of that many times the L2's size goes through it before a timed call

Answer = dict[str, Any]


def operands(dtype: str, seed: int) -> Any:
    """A DeviceArray with a, b and their sum by NumPy for each version: one period of the values of all calls."""
    base = np.empty((VERSIONS, 3, PERIOD), find_dtype(dtype))
    for version, arrays in enumerate(base):
        (made,) = Pattern(base.dtype, seed + version).buffers(HOST, PERIOD, 1)
        arrays[0], arrays[1] = made.a, made.b
        np.add(arrays[0], arrays[1], out=arrays[2])
    return _core.to_device(base)


def probe_limits(device: int) -> Answer:
    """What the memory and the launches of this GPU can do, as in the meta of a result file."""
    gpu = _core.gpu_facts()[device]
    l2, memory = gpu["l2"], gpu["memory"]
    return {
        "limits": {
            "device": probes.probe_device(device, l2, memory),
            "launch": probes.probe_launch(device),
            "loaded": probes.probe_loaded(device, l2, memory),
        }
    }


def answers(spec: Answer) -> Iterator[Callable[[Answer], Answer]]:
    """First what answers a question before the contestant's code is read; once that has been, what answers all
    others."""
    judge_call, repeat, to_device, lost = _core.judge_call, _core.repeat, _core.to_device, _core.DeviceLostError
    gpus = _core.gpu_facts()
    base = operands(spec["dtype"], spec["seed"])
    first = _core.to_device(np.zeros((1, 1, 1), base.dtype))
    flush = to_device(np.zeros(FLUSH_TIMES * gpus[0]["l2"], np.uint8))
    convert = find_conversion(spec["arrays"])
    replaced = watch_functions(spec["arrays"])
    # What is set aside already is not the contestant's doing.
    own = repeat(first, 3 * PERIOD)
    aside = judge_call("naive", own, (0, PERIOD, 2 * PERIOD), base, bare=True)["persisting"]
    del own
    stages: dict[str, tuple[Any, Any]] = {}
    contestant: Any = None
    text, name_of, base_exception = str, type, BaseException

    def begin(asked: Answer) -> Answer:
        nonlocal contestant
        contestant = load_contestant(spec, gpus[0])
        return {"gpu": gpus[0], "persisting": aside}

    yield begin

    def answer(asked: Answer) -> Answer:
        what = asked["ask"]
        if what == "stage":
            stages.pop(asked["stage"], None)
            stages[asked["stage"]] = repeat(first, asked["memory"]), repeat(base, asked["n"])
            return {}
        if what == "drop":
            stages.clear()
            return {}
        if what == "replaced":
            return {"replaced": replaced()}
        memory, versions = stages[asked["stage"]]
        rung = asked["rung"]
        try:
            return judge_call(
                contestant if rung is None else rung,
                memory,
                asked["start"],
                versions,
                convert=convert,
                flush=flush if asked["flush"] else None,
                **asked["how"],
            )
        except lost as error:
            return {"lost": text(error)}
        except base_exception as error:
            return {"raised": name_of(error).__name__ + ": " + text(error)}

    yield answer


def serve() -> None:
    """Answers each line on stdin with one on stdout, Python literals both. Prints of the contestant go to stderr."""
    commands, out = os.fdopen(os.dup(0), "rb"), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    # Built in, and so not to be replaced: the functions that read a question and write an answer.
    read, write, evaluate, show, encode = commands.readline, os.write, eval, repr, str.encode

    def tell(answer: Answer) -> None:
        write(out, encode(show(answer)) + b"\n")

    spec = evaluate(read())
    try:
        if spec["ask"] == "probes":
            tell(probe_limits(0))
            return
        made = answers(spec)
        begin = next(made)
    except Exception as error:  # before any foreign code: the machine cannot judge
        tell({"impossible": f"{error}"})
        return
    try:
        tell(begin(spec))
    except ImpossibleError as error:
        tell({"impossible": f"{error}"})
        return
    except CompileError as error:
        tell({"uncompiled": f"{error}"})
        return
    except BaseException as error:
        tell({"raised": describe_exception(error)})
        return
    answer = next(made)
    while line := read():
        tell(answer(evaluate(line)))


if __name__ == "__main__":
    serve()
    sys.stdout.flush()
    os._exit(0)  # a thread of the contestant's must not keep this process

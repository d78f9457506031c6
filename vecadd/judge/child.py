"""Run as ``python -m vecadd.judge.child``: the process that a contestant runs in.

It answers the parent's questions, a line each: which call to make is decided there, and what came of it is judged
there. The calls are prepared, timed and compared in C. What this process uses beside that is bound to local names
before the contestant's code is read, so that nothing which that code replaces in a module is used here.

The foreign code shares this process. What it cannot replace it can still read and write by way of ctypes or gc: this
keeps mistakes and tricks of a kernel from being rewarded, and is no sandbox.
"""

import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from vecadd import _core
from vecadd.bench import probes
from vecadd.bench.operands import HOST, Pattern
from vecadd.bench.options import find_dtype
from vecadd.judge import load, watched

VERSIONS = 3  # of the operands: those given, those that a and b held before, and those of the call before
PERIOD = 131_071  # elements: a prime number, so that no block or vector meets the same values twice
FLUSH_TIMES = 4  # memory of so many times the L2's size goes through it before a timed call

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
    convert = load.conversion(spec["arrays"])
    replaced = watched.watch(spec["arrays"])
    # What is set aside already is not the contestant's doing.
    own = repeat(first, 3 * PERIOD)
    aside = judge_call("naive", own, (0, PERIOD, 2 * PERIOD), base, bare=True)["persisting"]
    del own
    stages: dict[str, tuple[Any, Any]] = {}
    contestant: Any = None
    text, name_of, base_exception = str, type, BaseException

    def begin(asked: Answer) -> Answer:
        nonlocal contestant
        contestant = load.contestant(spec, gpus[0])
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
    except load.ImpossibleError as error:
        tell({"impossible": f"{error}"})
        return
    except load.CompileError as error:
        tell({"uncompiled": f"{error}"})
        return
    except BaseException as error:
        tell({"raised": load.told(error)})
        return
    answer = next(made)
    while line := read():
        tell(answer(evaluate(line)))


if __name__ == "__main__":
    serve()
    sys.stdout.flush()
    os._exit(0)  # a thread of the contestant's must not keep this process

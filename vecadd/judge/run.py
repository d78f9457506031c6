"""One judgement from beginning to end: contestant, checks, probes, times, verdict."""

import ast
import base64
import pickle
import secrets
import sys
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from vecadd import _core, model
from vecadd.bench.options import find_dtype
from vecadd.judge import verdict
from vecadd.judge.process import Child, EndedError, is_child
from vecadd.judge.session import LINE, RejectedError, Session, check_foresight
from vecadd.judge.verdict import Size, Verdict
from vecadd.model.theory import load_bytes
from vecadd.tables import show_seconds

# What is to be judged, as the child process is told it: a file and a function in it, or a pickled function.

ARRAYS = ("vecadd", "torch", "cupy")
SUFFIXES = (".py", ".cu")

_IMPORTS = {"torch": "torch", "triton": "torch", "cupy": "cupy"}  # whose arrays code takes that imports this


def describe_contestant(contestant: Any, function: str, arrays: str | None) -> dict[str, Any]:
    """The contestant for the child: name, path or pickle, and which arrays it takes: where ``arrays`` is None, those of
    the library that it imports. Raises FileNotFoundError, ValueError for another kind of file, for unknown arrays and
    for a function that cannot be sent to another process, TypeError for what is neither a file nor callable."""
    if arrays not in (None, *ARRAYS):
        raise ValueError(f"arrays must be {', '.join(map(repr, ARRAYS))} or None, not {arrays!r}")
    given = {"function": function, "folders": sys.path}
    if isinstance(contestant, str | Path):
        path = Path(contestant)
        if not path.is_file():
            raise FileNotFoundError(2, "No such file", str(path))
        if path.suffix not in SUFFIXES:
            raise ValueError(f"{path} is neither a .py nor a .cu file")
        took = _arrays_of_modules(_imported_modules(path)) if path.suffix == ".py" else "vecadd"
        if path.suffix == ".cu" and arrays not in (None, "vecadd"):
            raise ValueError(f"a .cu file takes pointers, not {arrays}'s arrays")
        return {**given, "name": path.name, "path": str(path.resolve()), "pickled": "", "arrays": arrays or took}
    if not callable(contestant):
        raise TypeError(f"what is judged is a function of (a, b, out) or the path of a file, not {contestant!r}")
    return {
        **given,
        "name": getattr(contestant, "__name__", type(contestant).__name__),
        "path": "",
        "pickled": base64.b64encode(_pickle_function(contestant)).decode(),
        "arrays": arrays or _arrays_of_modules(_modules_of_globals(contestant)),
    }


def _pickle_function(function: Callable[..., Any]) -> bytes:
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


def _arrays_of_modules(modules: Iterable[str]) -> str:
    names = {module.partition(".")[0] for module in modules}
    return next((arrays for name, arrays in _IMPORTS.items() if name in names), "vecadd")


def _imported_modules(path: Path) -> list[str]:
    """The modules that a Python file imports; none where it is no Python, which the child will find."""
    try:
        nodes = list(ast.walk(ast.parse(path.read_bytes(), str(path))))
    except (SyntaxError, ValueError):
        return []
    found = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    return found + [node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module]


def _modules_of_globals(function: Any) -> list[str]:
    """The modules that a function's globals are, or come from."""
    values = getattr(function, "__globals__", {}).values()
    found = (getattr(value, "__module__", None) or getattr(value, "__name__", None) for value in values)
    return [name for name in found if isinstance(name, str)]


# One judgement from beginning to end: checks, probes, times, verdict.

SIZES = (2**16, 2**20, 2**24, 2**28)
ARRAYS_A_SIZE = 12  # in the GPU's memory: three versions of the operands and their sum, and the call's own
MOST_MEMORY = 0.8  # of the GPU's
FASTER = 1.05  # times the probed rate of the memory: what is faster has not been done
EMPTY = 0.9  # of the time of a kernel that does nothing: what is shorter had no kernel in it
TINY = 1 << 10  # elements, below which that is not asked
TIMEOUT = 120.0  # seconds: nvcc and the compilers of Triton and Numba are slow

Tell = Callable[[str], object]


def judge(
    f: Any,
    dtype: str = "float32",
    sizes: Sequence[int] | None = None,
    *,
    function: str = "add",
    arrays: str | None = None,
    alignment: int | None = None,
    rounds: int = verdict.ROUNDS,
    timeout: float = TIMEOUT,
    tell: Tell = lambda what: None,
) -> Verdict:
    """Judges an addition: a function of (a, b, out), or the path of a .py or .cu file with the function of that name.

    It runs in a process of its own, on the first GPU. There a, b and out are one-dimensional, contiguous arrays of n
    elements of ``dtype``: DeviceArrays, or arrays of ``"torch"`` or ``"cupy"`` where ``arrays`` or, for None, what the
    code imports says so. The function writes a + b into out by work on the current stream, which the legacy default
    stream is; it need not wait for it. A .cu file has one ``extern "C"`` function, a kernel of (a, b, out, size_t n) or
    a function of these and a stream (docs/judge.md).

    ``sizes`` are numbers of elements (None: 2^16 to 2^28, as far as they fit): it is checked and timed at sizes near
    them, drawn at random. ``alignment`` is how many bytes its operands are aligned to at least when it is checked;
    None: an element's. ``rounds`` of timed calls are made at each size; ``timeout`` is how many seconds each call, and
    compiling the code, may take. ``tell`` is called with what is done.

    Raises FileNotFoundError, TypeError and ValueError for what cannot be judged, RuntimeError where a GPU, a compiler
    or a library is missing. All that the contestant does wrong, a crash too, is the verdict's. The process runs foreign
    code with your rights: it is no sandbox.

    >>> vecadd.ladder.judge(np.subtract, sizes=[5000]).kind    # NumPy subtracts no arrays in a GPU's memory
    'raises'
    """
    if is_child():
        raise RuntimeError("a contestant cannot judge: put the call under if __name__ == '__main__'")
    _core.rungs()  # which says so in a build without the laboratory
    itemsize = _find_itemsize(dtype)
    alignment = itemsize if alignment is None else alignment
    if alignment < itemsize or alignment > LINE or alignment & (alignment - 1):
        raise ValueError(f"alignment must be a power of two from {itemsize}, an element's, to {LINE}, not {alignment}")
    if rounds < 1:
        raise ValueError(f"rounds must be at least 1, not {rounds}")
    spec = {
        "ask": "begin",
        **describe_contestant(f, function, arrays),
        "dtype": dtype,
        "seed": secrets.randbelow(2**32),
    }
    checked: list[str] = []
    gpu: dict[str, Any] = {"name": "a GPU"}
    try:
        with Child() as child:
            tell(f"reading {spec['name']}")
            begun = _refuse_impossible(child.ask(timeout, **spec))
            if "uncompiled" in begun:
                raise RejectedError("does not compile", begun["uncompiled"])
            if "raised" in begun:
                raise RejectedError("raises", f"{begun['raised']} (while its code was read)")
            gpu = begun["gpu"]
            chosen = _choose_sizes(sizes, itemsize, gpu["memory"])
            session = Session(child, gpu, itemsize, timeout, begun["persisting"])
            tell("checking")
            checked += session.check(chosen, alignment)
            if max(chosen) * 3 * itemsize >= 2 * gpu["l2"]:
                tell("checking whether it looks ahead")
                checked.append(check_foresight(session))
            limits = _probe_limits(timeout, tell)
            found = [_time_size(session, n, gpu, dtype, limits, rounds, tell) for n in chosen]
            session.check_functions()
    except (RejectedError, EndedError) as error:
        return verdict.make_verdict(
            spec, dtype, gpu["name"], kind=error.kind, words=error.words, checked=tuple(checked)
        )
    return verdict.make_verdict(spec, dtype, gpu["name"], checked=tuple(checked), sizes=tuple(found))


def _time_size(
    session: Session, n: int, gpu: dict[str, Any], dtype: str, probed: dict[str, Any], rounds: int, tell: Tell
) -> Size:
    tell(f"timing {n} elements")
    candidates = verdict.find_candidates(dtype, 10 * gpu["cc_major"] + gpu["cc_minor"])
    timed = verdict.time_size(session, n, candidates, rounds)
    rung = next(rung for rung in candidates if rung["name"] == timed.rung)
    rate = 1e9 * probed["device"]["gbps"]
    memory = (timed.bytes - gpu["l2"]) / rate / FASTER
    _refuse_impossible_time(timed, memory, EMPTY * probed["launch"]["kernel_seconds"])
    limit = timed.bytes / rate if timed.bytes > gpu["l2"] else None
    return replace(timed, limit=limit, advice=_advise(gpu, dtype, timed, rung, model.Limits.of(probed)))


def _refuse_impossible_time(timed: Size, memory: float, kernel: float) -> None:
    """Raises RejectedError for a time that the memory, or a launch, does not allow."""
    seconds = timed.seconds[1]
    took = f"{show_seconds(seconds)} at {timed.n} elements"
    if seconds < memory:
        words = f"{took}, where the memory takes {show_seconds(memory)} at least, whatever the L2 contains"
    elif seconds < kernel and timed.n >= TINY:
        words = f"{took}, where a kernel that does nothing takes {show_seconds(kernel)} at least"
    else:
        return
    raise RejectedError("returned early", words)


def _advise(
    gpu: dict[str, Any], dtype: str, timed: Size, rung: dict[str, Any], limits: model.Limits
) -> tuple[str, ...]:
    """How long it takes beside the nearest rung, and what helps a kernel like that rung; nothing where the driver hides
    what that takes."""
    try:
        advice = model.advise(
            gpu,
            dtype,
            timed.n,
            LINE,
            bytes_per_load=load_bytes(rung, find_dtype(dtype).itemsize),
            loads_in_flight=rung["loads_in_flight"],
            block=rung["block"] or 256,
            limits=limits,
        )
    except ValueError:
        return ()
    took = f"It takes {show_seconds(timed.seconds[1])}, {timed.over_rung[1]:.3g} times as long as {timed.rung}."
    about = f"{timed.rung} is the nearest rung, and what follows is about a kernel like it."
    rungs = (f"The next rungs to look at: {', '.join(advice.rungs)}.",) if advice.rungs else ()
    return (took, about, *advice.steps[1:], *rungs)


def _probe_limits(timeout: float, tell: Tell) -> dict[str, Any]:
    """The limits of this GPU, from a process without foreign code."""
    tell("probing the GPU")
    with Child() as child:
        limits: dict[str, Any] = _refuse_impossible(child.ask(timeout, ask="probes"))["limits"]
    return limits


def _refuse_impossible(answer: dict[str, Any]) -> dict[str, Any]:
    if "impossible" in answer:
        raise RuntimeError(answer["impossible"])
    return answer


def _choose_sizes(sizes: Sequence[int] | None, itemsize: int, memory: int) -> list[int]:
    most = int(MOST_MEMORY * memory) // (ARRAYS_A_SIZE * itemsize)
    if sizes is None:
        return [n for n in SIZES if n <= most]
    for n in sizes:
        if not 1 <= n <= most:
            raise ValueError(
                f"sizes must be 1 to {most} elements, which is what {ARRAYS_A_SIZE} arrays on this GPU allow, not {n}"
            )
    if not sizes:
        raise ValueError("sizes must name at least one number of elements")
    return list(sizes)


def _find_itemsize(dtype: str) -> int:
    if dtype not in _core.DTYPES:
        raise ValueError(f"dtype must be one of {', '.join(_core.DTYPES)}, not {dtype!r}")
    try:
        find_dtype(dtype)
    except ArgumentTypeError as error:
        raise RuntimeError(str(error)) from None
    return _core.DTYPES[dtype]

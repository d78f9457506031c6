"""Calls of vecadd.add that something is odd about: most are errors, all are answered alike by add, explain and plan."""

from collections.abc import Callable
from typing import Any

import numpy as np

import vecadd

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


class Refuses:
    """What NumPy's functions may not be called with."""

    __array_ufunc__ = None


class Scalar(np.float32):
    pass


class ScalarWithRules(np.float32):
    def __array_ufunc__(self, *_: Any, **__: Any) -> str:
        return "its own sum"


class ScalarThatRefuses(np.float32):
    __array_ufunc__ = None


def floats(n: int = 5) -> Any:
    return np.arange(n, dtype=np.float64)


def read_only(n: int = 5) -> Any:
    x = np.zeros(n)
    x.flags.writeable = False
    return x


def call(*positional: Any, **keywords: Any) -> Arguments:
    return positional, keywords


CALLS: dict[str, Callable[[], Arguments]] = {
    "shapes that differ": lambda: call(floats(3), floats(4)),
    "large shapes that differ": lambda: call(np.ones((300, 1000)), np.ones((300, 999))),
    "an out of another shape": lambda: call(floats(), floats(), np.zeros(4)),
    "an out that is smaller than the broadcast": lambda: call(np.ones((3, 1)), floats(4), np.zeros(4)),
    "an out that is larger": lambda: call(floats(), floats(), np.zeros((2, 5))),
    "a read-only out": lambda: call(floats(), floats(), read_only()),
    "a read-only out of another shape": lambda: call(floats(3), floats(4), read_only()),
    "an out of an unsafe dtype": lambda: call(floats(), floats(), np.zeros(5, np.int64)),
    "a large out of an unsafe dtype": lambda: call(np.ones(2**18), np.ones(2**18), np.zeros(2**18, np.int32)),
    "complex into float": lambda: call(np.ones(5, complex), floats(), np.zeros(5)),
    "an out that is a list": lambda: call(floats(), floats(), [0.0] * 5),
    "an out in a tuple by keyword": lambda: call(floats(), floats(), out=(np.zeros(5),)),
    "an out in a tuple by position": lambda: call(floats(), floats(), (np.zeros(5),)),
    "two outs by keyword": lambda: call(floats(), floats(), out=(np.zeros(5), np.zeros(5))),
    "two outs by position": lambda: call(floats(), floats(), (np.zeros(5), np.zeros(5))),
    "no out in a tuple": lambda: call(floats(), floats(), out=(None,)),
    "an empty tuple as out": lambda: call(floats(), floats(), out=()),
    "a tuple in a tuple as out": lambda: call(floats(), floats(), out=((np.zeros(5),),)),
    "a list as out by keyword": lambda: call(floats(), floats(), out=[np.zeros(5)]),
    "lists and two outs": lambda: call([1.0], [2.0], out=(np.zeros(1), np.zeros(1))),
    "two outs and an unknown keyword": lambda: call(floats(), floats(), out=(None, None), bogus=1),
    "int8 and an int beyond it": lambda: call(np.ones(5, np.int8), 300),
    "a large int8 and an int beyond it": lambda: call(np.ones(2**19, np.int8), 300),
    "uint8 and a negative int": lambda: call(np.ones(5, np.uint8), -1),
    "int64 and an int beyond 64 bits": lambda: call(np.ones(5, np.int64), 2**80),
    "a NumPy scalar and an int beyond it": lambda: call(np.int8(1), 300),
    "an int beyond every float": lambda: call(2**2000, 0.5),
    "float32 and a float beyond it": lambda: call(np.ones(5, np.float32), 1.0),
    "two dtypes": lambda: call(np.ones(5, np.float32), floats(), np.zeros(5)),
    "None": lambda: call(floats(), None),
    "a string": lambda: call(floats(), "x"),
    "a dict": lambda: call(floats(), {}),
    "objects that do not add": lambda: call(np.array([object()]), floats()),
    "objects that add": lambda: call(np.array([1, 2], object), floats(2)),
    "a ragged list": lambda: call(floats(), [1, [2, 3]]),
    "a list of another length": lambda: call(floats(), [1.0, 2.0, 3.0]),
    "dates": lambda: call(np.zeros(2, "M8[D]"), np.zeros(2, "M8[D]")),
    "records": lambda: call(np.zeros(2, "V4"), floats(2)),
    "masked arrays that differ": lambda: call(np.ma.ones(3), np.ma.ones(4)),
    "an operand that refuses NumPy's functions": lambda: call(floats(), Refuses()),
    "a scalar of a derived class": lambda: call(floats(2**18), Scalar(1)),
    "a scalar with rules of its own": lambda: call(floats(), ScalarWithRules(1)),
    "a scalar with rules of its own beside many": lambda: call(floats(2**18), ScalarWithRules(1), np.zeros(2**18)),
    "a scalar that refuses NumPy's functions": lambda: call(ScalarThatRefuses(1), floats()),
    "one that refuses them beside many": lambda: call(ScalarThatRefuses(1), floats(2**18), np.zeros(2**18)),
    "where= of floats": lambda: call(floats(), floats(), np.zeros(5), where=np.ones(5)),
    "where= of another shape": lambda: call(floats(), floats(), np.zeros(5), where=np.ones(4, bool)),
    "where= that is left": lambda: call(floats(), floats(), np.zeros(5), where=[True] * 5),
    "dtype= that needs an unsafe cast": lambda: call(floats(), floats(), dtype=np.int32),
    "casting= that forbids the out": lambda: call(floats(), floats(), np.zeros(5, np.float32), casting="safe"),
    "order= of another letter": lambda: call(floats(), floats(), order="Q"),
    "an unknown keyword": lambda: call(floats(), floats(), bogus=1),
    "stream= on the host": lambda: call(floats(), floats(), stream=0),
    "an unknown device": lambda: call(floats(), floats(), device="nonsense"),
    "a device that is a bool": lambda: call(floats(), floats(), device=True),
    "a device that is a float": lambda: call(floats(), floats(), device=0.0),
    "a negative device": lambda: call(floats(), floats(), device=-1),
    "a device beyond every int": lambda: call(floats(), floats(), device=2**80),
    "a device that is not there": lambda: call(floats(), floats(), device=99),
    "a device that is not there, by name": lambda: call(floats(), floats(), device="cuda:99"),
    "a device that is not there, without elements": lambda: call(floats(0), floats(0), device="cuda:99"),
    "the GPU": lambda: call(floats(), floats(), device="cuda"),
    "the GPU by its number": lambda: call(floats(), floats(), np.zeros(5), device=np.int64(0)),
    "the GPU and an out in a tuple": lambda: call(floats(), floats(), out=(np.zeros(5),), device="cuda"),
    "the GPU and two outs": lambda: call(floats(), floats(), out=(np.zeros(5), np.zeros(5)), device="cuda"),
    "the GPU and a tuple by position": lambda: call(floats(), floats(), (np.zeros(5),), device="cuda"),
    "the GPU without elements": lambda: call(floats(0), floats(0), device="cuda"),
    "the GPU and shapes that differ": lambda: call(floats(3), floats(4), device="cuda"),
    "the GPU and two dtypes": lambda: call(np.ones(5, np.float32), floats(), device="cuda"),
    "the GPU and numbers": lambda: call(2**80, 0.5, device="cuda"),
    "the GPU and an int beyond int8": lambda: call(np.ones(5, np.int8), 300, device="cuda"),
    "the GPU and objects": lambda: call(np.array([1], object), floats(1), device="cuda"),
    "the GPU and a masked array": lambda: call(np.ma.ones(5), floats(), device="cuda"),
    "the GPU and a scalar of a derived class": lambda: call(floats(), Scalar(1), device="cuda"),
    "the GPU and a scalar with rules of its own": lambda: call(floats(), ScalarWithRules(1), device="cuda"),
    "the GPU and a scalar that refuses": lambda: call(ScalarThatRefuses(1), floats(2**18), device="cuda"),
    "the GPU and an out of an unsafe dtype": lambda: call(floats(), floats(), np.zeros(5, np.int64), device="cuda"),
    "the GPU and a read-only out": lambda: call(floats(), [1.0] * 5, read_only(), device="cuda"),
    "the GPU and where=": lambda: call(floats(), floats(), device="cuda", where=True),
    "both": lambda: call(floats(), floats(), device="hybrid"),
    "both, 32 MiB": lambda: call(np.zeros(2**22), np.zeros(2**22), device="hybrid"),
    "both, 32 MiB that are broadcast": lambda: call(np.zeros((2, 2**21)), np.zeros(2**21), device="hybrid"),
}


def on_gpu(x: Any = None) -> Any:
    return vecadd.to_device(floats() if x is None else x)


DEVICE_CALLS: dict[str, Callable[[], Arguments]] = {
    "shapes that differ": lambda: call(on_gpu(floats(3)), on_gpu(floats(4))),
    "an out of another shape": lambda: call(on_gpu(), on_gpu(), on_gpu(floats(4))),
    "an out that is larger": lambda: call(on_gpu(), on_gpu(), on_gpu(np.zeros((2, 5)))),
    "an out of an unsafe dtype": lambda: call(on_gpu(), on_gpu(), on_gpu(np.zeros(5, np.int64))),
    "an out that overlaps itself": lambda: call(on_gpu(), on_gpu(), Overlapping(on_gpu())),
    "an out on the host": lambda: call(on_gpu(), on_gpu(), floats()),
    "an out on the GPU alone": lambda: call(floats(), floats(), on_gpu()),
    "an out that is a list": lambda: call(on_gpu(), on_gpu(), [0.0] * 5),
    "an out in a tuple by position": lambda: call(on_gpu(), on_gpu(), (on_gpu(),)),
    "an out in a tuple by keyword": lambda: call(on_gpu(), on_gpu(), out=(on_gpu(),)),
    "two outs by keyword": lambda: call(on_gpu(), on_gpu(), out=(on_gpu(), on_gpu())),
    "no out in a tuple": lambda: call(on_gpu(), on_gpu(), out=(None,)),
    "a host array": lambda: call(on_gpu(), floats()),
    "a list": lambda: call([1.0] * 5, on_gpu()),
    "None": lambda: call(on_gpu(), None),
    "a string": lambda: call(on_gpu(), "x"),
    "an object": lambda: call(on_gpu(), object()),
    "int8 and an int beyond it": lambda: call(on_gpu(np.ones(5, np.int8)), 300),
    "an int beyond every float": lambda: call(on_gpu(), 2**2000),
    "a number of a dtype of its own": lambda: call(on_gpu(), np.longdouble(1)),
    "a scalar with rules of its own": lambda: call(on_gpu(), ScalarWithRules(1)),
    "a scalar that refuses NumPy's functions": lambda: call(ScalarThatRefuses(1), on_gpu()),
    "an operand that refuses them": lambda: call(on_gpu(), Refuses()),
    "where=": lambda: call(on_gpu(), on_gpu(), where=True),
    "an unknown keyword": lambda: call(on_gpu(), on_gpu(), bogus=1),
    "the host": lambda: call(on_gpu(), on_gpu(), device="cpu"),
    "both": lambda: call(on_gpu(), on_gpu(), device="hybrid"),
    "another device": lambda: call(on_gpu(), on_gpu(), device=99),
    "an unknown device": lambda: call(on_gpu(), on_gpu(), device="nonsense"),
    "a stream that is a string": lambda: call(on_gpu(), on_gpu(), stream="x"),
    "a stream that is no handle": lambda: call(on_gpu(), on_gpu(), stream=77),
    "two dtypes": lambda: call(on_gpu(), on_gpu(np.ones(5, np.int8))),
    "a broadcast": lambda: call(on_gpu(), on_gpu(np.ones((3, 1)))),
    "no elements": lambda: call(on_gpu(floats(0)), on_gpu(floats(0))),
}


class Overlapping:
    """An array whose elements are all the first one of another."""

    def __init__(self, x: Any) -> None:
        self.x, self.__cuda_array_interface__ = x, {**x.__cuda_array_interface__, "strides": (0,)}


def outcome(function: Callable[..., Any], arguments: Arguments) -> tuple[str, str] | None:
    """The type and the words of what the call raises; None where it raises nothing."""
    positional, keywords = arguments
    try:
        function(*positional, **keywords)
    except Exception as error:
        return type(error).__name__, str(error)
    return None


def differences(name: str, calls: dict[str, Callable[[], Arguments]] = CALLS) -> list[str]:
    """How explain, and plan where it takes such a call, answer otherwise than add."""
    want = outcome(vecadd.add, calls[name]())
    positional, keywords = calls[name]()
    found = {"explain": outcome(vecadd.explain, (positional, keywords))}
    if len(positional) == 3 and not keywords:
        found["plan"] = outcome(vecadd.plan, (positional, keywords))
    return [f"{name}: add gives {want}, {who} {got}" for who, got in found.items() if got != want]


def all_differences() -> list[str]:
    return [line for name in CALLS for line in differences(name)]

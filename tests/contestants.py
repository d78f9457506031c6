"""Additions to be judged, as files of their own: right ones, wrong ones and tricks, by what each is found to do.

They run on the CUDA-runtime double, where the memory and the streams of another library are those of double.h.
"""

HEAD = """
import ctypes, os, threading, time
import numpy as np
import vecadd
from vecadd import _core

double = ctypes.CDLL(_core.__file__)
double.double_stream_create.restype = ctypes.c_void_p
side = double.double_stream_create(0, 1)


class Alone:
    '''The array's memory without its stream, and with ``more`` further elements.'''

    def __init__(self, x, more=0):
        self.x = x
        self.__cuda_array_interface__ = {**x.__cuda_array_interface__, "stream": None, "shape": (x.size + more,)}


def add_alone(a, b, out, stream=None, more=0):
    vecadd.add(Alone(a, more), Alone(b, more), out=Alone(out, more), stream=stream)


def put(x, out):
    vecadd.add(x, np.float32(0), out=out)

"""

RIGHT = {
    "vecadd": "def add(a, b, out): vecadd.add(a, b, out=out)",
    "twice": "def add(a, b, out):\n    vecadd.add(a, a, out=out)\n    vecadd.add(a, b, out=out)",
    "by a temporary": "def add(a, b, out): put(a + b, out)",
    "waits": "def add(a, b, out):\n    vecadd.add(a, b, out=out)\n    out.numpy()",
    "on a stream that it joins": "def add(a, b, out): vecadd.add(a, b, out=out, stream=side)",
    "with a dataclass, which looks its module up": (
        "from dataclasses import dataclass\n@dataclass\nclass Launch:\n    block: 'int' = 256\n"
        "def add(a, b, out): vecadd.add(a, b, out=out)"
    ),
}

# By name: the kind of the finding, words that it has, and the code.
TRICKS = {
    "one element": (
        "wrong sum",
        "1 element of out, the first ",
        "def add(a, b, out):\n    vecadd.add(a, b, out=out)\n    vecadd.add(a[-1:], a[-1:], out=out[-1:])",
    ),
    "nothing": (
        "nothing written",
        "all elements of out",
        "def add(a, b, out): pass",
    ),
    "a stream that does not wait for the operands": (
        "read too early",
        "",
        "def add(a, b, out):\n"
        "    add_alone(a, b, out, side)\n"
        "    double.double_stream_synchronize(ctypes.c_void_p(side))",
    ),
    "a side stream that is never joined": (
        "side stream",
        "",
        "def add(a, b, out):\n    vecadd.add(a, b, out=a.copy(), stream=side)\n    add_alone(a, b, out, side)",
    ),
    "a side stream that waits for the operands and is never joined": (
        "side stream",
        "",
        "def add(a, b, out):\n    a.__dlpack__(stream=side)\n    add_alone(a, b, out, side)",
    ),
    "another thread, later": (
        "returned early",
        "",
        "def add(a, b, out): threading.Timer(0.1, vecadd.add, (a, b, out)).start()",
    ),
    "the sum of the call before": (
        "kept result",
        "",
        "kept = {}\n"
        "def add(a, b, out):\n"
        "    if a.size not in kept:\n"
        "        kept[a.size] = a + b\n"
        "    put(kept[a.size], out)",
    ),
    "the sum that a few elements tell": (
        "wrong sum",
        "",
        "kept = {}\n"
        "def add(a, b, out):\n"
        "    key = a.size, bytes(a[:3].numpy())\n"
        "    if key not in kept:\n"
        "        kept[key] = a + b\n"
        "    put(kept[key], out)",
    ),
    "one element too many": (
        "writes outside",
        "1 element after out, the first one 0 elements into it",
        "def add(a, b, out): add_alone(a, b, out, more=1)",
    ),
    "an operand that is used up": (
        "changes operands",
        "all elements of a",
        "def add(a, b, out):\n    vecadd.add(a, b, out=a)\n    put(a, out)",
    ),
    "only the sizes that are asked for": (
        "knows the sizes",
        "right at 6000, 9000",
        "def add(a, b, out):\n    if a.size < 5000 or a.size in (6000, 9000): vecadd.add(a, b, out=out)",
    ),
    "only whole blocks": (
        "wrong sum",
        "right at 6000, 9000 and at ",
        "def add(a, b, out):\n    n = a.size // 8 * 8\n    if n: vecadd.add(a[:n], b[:n], out=out[:n])",
    ),
    "a part of the L2": (
        "L2 set aside",
        "65536 bytes of the L2",
        "def add(a, b, out):\n    double.double_persisting(0, ctypes.c_size_t(1 << 16))\n    vecadd.add(a, b, out=out)",
    ),
    "another clock": (
        "replaces functions",
        "time.perf_counter",
        "time.perf_counter = lambda: 0.0\ndef add(a, b, out): vecadd.add(a, b, out=out)",
    ),
    "another clock, from within a call": (
        "replaces functions",
        "",
        "def add(a, b, out):\n    time.perf_counter = lambda: 0.0\n    vecadd.add(a, b, out=out)",
    ),
    "other checkers": (
        "nothing written",
        "",
        "import sys, vecadd.ladder\n"
        "no = (0,) * 5\n"
        "right = dict(seconds=1e-9, host=0.0, regions=[no] * 7, at_rest=no, later=no, persisting=0, unordered=False)\n"
        "for module in ('vecadd._core', '__main__'):\n"
        "    sys.modules[module].judge_call = lambda *arguments, **keywords: right\n"
        "_core.poison = _core.repeat = vecadd.ladder.time = lambda *arguments, **keywords: None\n"
        "np.array_equal = np.add = lambda *arguments, **keywords: True\n"
        "def add(a, b, out): pass",
    ),
    "an exception at once": (
        "raises",
        "OSError: no such thing (contestant.py, line ",
        "raise OSError('no such thing')",
    ),
    "an end of the interpreter": (
        "raises",
        "",
        "def add(a, b, out): raise SystemExit",
    ),
    "no Python": (
        "raises",
        "",
        "def add(a, b, out: pass",
    ),
    "an abort": (
        "crash",
        "SIGABRT",
        "def add(a, b, out): os.abort()",
    ),
    "an end of the process": (
        "crash",
        "exit status 0",
        "def add(a, b, out): os._exit(0)",
    ),
    "a fault of the GPU": (
        "GPU fault",
        "",
        "def add(a, b, out):\n    double.double_fail(b'cudaLaunchKernel', 1, 700, 1)\n    vecadd.add(a, b, out=out)",
    ),
    "no end": (
        "hang",
        "no answer came within ",
        "def add(a, b, out):\n    while True: pass",
    ),
}

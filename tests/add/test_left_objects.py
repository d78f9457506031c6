"""No call leaks a Python object, whether it adds, describes or refuses.

Each is made some hundred times, so that one object a call shows. The calls of a long run, with what malloc and the
device give out, are in test_flat_memory.py.
"""

import gc
import sys
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest
import test_bad_input as bad
from arrays import DTYPES
from foreign import Driver

import vecadd
from vecadd import _core

pytestmark = pytest.mark.no_native
if not sys.getallocatedblocks():
    pytest.skip("with PYTHONMALLOC=malloc Python does not count its blocks", allow_module_level=True)

CALLS = 200
# Without float64: each call of numpy.ones leaves a reference to it (2.4.6).
SHARED = (
    None,
    True,
    False,
    NotImplemented,
    (),
    "",
    vecadd.DeviceArray,
    vecadd.Plan,
    *(dtype for dtype in DTYPES if dtype != np.float64),
)
world = bad.world


def assert_nothing_is_left(call: Callable[[], object]) -> None:
    """Something else may take blocks once, such as a cache that grows: a leak takes them each time."""

    def work() -> None:
        for _ in range(CALLS):
            call()

    def blocks() -> int:
        """Blocks of memory, and references to objects that are never freed: to leak one of these takes no block."""
        gc.collect()
        return sys.getallocatedblocks() + sum(map(sys.getrefcount, SHARED))

    work()
    grown = []
    for _ in range(3):
        before = blocks()
        work()
        grown.append(blocks() - before)
        if grown[-1] < CALLS // 2:
            return
    pytest.fail(f"{CALLS} calls leave {grown} blocks of memory")


def refused(call: Callable[[], object]) -> Callable[[], None]:
    def run() -> None:
        try:
            call()
        except Exception:
            return
        raise AssertionError("it is not refused")

    return run


def test_an_object_that_is_left_is_seen() -> None:
    left: list[object] = []
    for each in (object, lambda: np.dtype("float32")):
        with pytest.raises(pytest.fail.Exception, match="200 calls leave"):
            assert_nothing_is_left(lambda each=each: left.append(each()))  # type: ignore[misc]


@pytest.mark.parametrize("name", bad.BAD_HOST_CALLS)
def test_a_bad_host_call_leaves_nothing(name: str) -> None:
    w = SimpleNamespace(
        host=np.arange(bad.N, dtype="f4"), host_out=np.zeros(bad.N, "f4"), read_only=np.zeros(bad.N, "f4")
    )
    w.read_only.flags.writeable = False
    assert_nothing_is_left(refused(lambda: bad.BAD_HOST_CALLS[name][0](w)))


@pytest.mark.parametrize("name", [name for name in bad.BAD_DEVICE_CALLS if "DLPack" not in name])
def test_a_bad_device_call_leaves_nothing(name: str, world: bad.World) -> None:
    """Those of DLPack are lent capsules that the tests keep."""
    assert_nothing_is_left(refused(lambda: bad.BAD_DEVICE_CALLS[name][0](world)))


A = np.arange(600, dtype=np.float32)
B = np.arange(600.0)
WIDE, ROW, SHORT = np.ones((300, 1100), np.float32), np.ones(1100), np.ones((300, 1100), np.int16)

ON_HOST = {
    "out in a tuple": lambda: vecadd.add(A, A, out=(np.empty_like(A),)),
    "a number that the dtype does not take": refused(lambda: vecadd.add(SHORT, 2**40)),
    "a complex number": lambda: vecadd.add(WIDE, 1j),
    "NumPy's number": lambda: vecadd.add(WIDE, np.float32(1)),
    "NumPy's number of another dtype": lambda: vecadd.add(np.float64(1), WIDE),
    "a number that vecadd does not add": lambda: (
        vecadd.add(WIDE, np.longdouble(1)),
        vecadd.add(np.longdouble(1), WIDE),
    ),
    "two dtypes": lambda: vecadd.add(WIDE, ROW),
    "an object": lambda: vecadd.add(np.array([None, 1])[1:], 1),
    "explain": lambda: vecadd.explain(A, A),
    "explain rows": lambda: _core.explain_route(WIDE, ROW),
    "explain what is left to NumPy": lambda: _core.explain_route(A[::2], B[::2]),
    "a plan": lambda: vecadd.plan(A, A, np.empty_like(A))(),
    "a plan that NumPy adds": lambda: vecadd.plan(A[::2], A[::2], np.empty(300, "f4"))(),
    "a plan in words": lambda: repr(vecadd.plan(A, A, np.empty_like(A))),
    "a plan of lists": lambda: vecadd.plan([A, A], [A, B], [np.empty_like(A), np.empty_like(B)])(),
    "a plan of lists in words": lambda: repr(vecadd.plan([A], [A], [np.empty_like(A)])),
    "a plan without out": refused(lambda: vecadd.plan(A, A, None)),
    "a plan with a device": refused(lambda: vecadd.plan(A, A, np.empty_like(A), device="cpu")),
    "a plan with arguments": refused(lambda: vecadd.plan(A, A, np.empty_like(A))(1)),
    "a plan of arrays of two shapes": refused(lambda: vecadd.plan(A, A[1:], np.empty_like(A))),
    "a plan of lists with a gap": refused(lambda: vecadd.plan([A], [A], [None])),
    "lists": lambda: vecadd.add_many((x for x in (A, A)), [A, 1], [np.empty_like(A), None]),
    "lists of two lengths": refused(lambda: vecadd.add_many([A], [A, A])),
    "a list of nothing": refused(lambda: vecadd.add_many([A], None)),
    "a list with None": refused(lambda: vecadd.add_many([A, None], [A, A])),
    "a list of two shapes": refused(lambda: vecadd.add_many([A], [A[1:]], [np.empty_like(A)])),
    "a list with an unknown keyword": refused(lambda: vecadd.add_many([A], [A], colour=1)),
    "outs that overlap": refused(lambda: vecadd.add_many([A, A], [A, A], [B[:300].view("f4")] * 2)),
    "memory of another library": lambda: _core.host_view(A),
    "threads": lambda: vecadd.set_num_threads(vecadd.get_num_threads()),
    "no number of threads": refused(lambda: vecadd.set_num_threads(0)),
    "what was tuned": lambda: (_core.tuned_path("recipes", "a"), _core.tuned_rows("recipes", "a")),
    "the host": lambda: (_core.host_facts(), _core.host_memory()),
    "memory": lambda: (vecadd.memory_stats(), vecadd.release()),
    "the routes": lambda: vecadd.use_gpu(False),
}


@pytest.mark.parametrize("name", ON_HOST)
def test_a_call_on_the_host_leaves_nothing(name: str) -> None:
    assert_nothing_is_left(ON_HOST[name])


class Number:
    """Of a type with rules of its own."""

    def __array_ufunc__(self, *arguments: object, **keywords: object) -> str:
        return "added"


ON_DEVICE = {
    "attributes": lambda w: [
        getattr(w.x, name) for name in ["shape", "strides", "dtype", "ndim", "size", "itemsize", "nbytes", "device"]
    ],
    "in words": lambda w: repr(w.x),
    "an interface": lambda w: w.x.__cuda_array_interface__,
    "an interface of a view": lambda w: w.x[::2].__cuda_array_interface__,
    "a capsule": lambda w: (w.x.__dlpack__(), w.x.__dlpack__(stream=-1), w.x.__dlpack__(stream=2, max_version=(1, 0))),
    "a copy in a capsule": lambda w: w.x.__dlpack__(copy=True, max_version=(1, 0)),
    "a capsule on the host": lambda w: w.x.__dlpack__(dl_device=(1, 0), max_version=(1, 0)),
    "no capsule of another device": lambda w: refused(lambda: w.x.__dlpack__(dl_device=(2, 9)))(),
    "no capsule on the host without a copy": lambda w: refused(lambda: w.x.__dlpack__(dl_device=(1, 0), copy=False))(),
    "copies": lambda w: (w.x.copy(), w.x[::-2].copy(), vecadd.to_device(w.x)),
    "views": lambda w: (w.x[None, 3:, ...], w.x[5], w.x.reshape(20, -1)[:, 1], w.x[::2].reshape(3, 100)),
    "iteration": lambda w: list(w.x[:3]),
    "no view": lambda w: (refused(lambda: w.x[601])(), refused(lambda: w.x[0, 0])(), refused(lambda: w.x["a"])()),
    "no shape": lambda w: (refused(lambda: w.x.reshape(7, -1))(), refused(lambda: w.x.reshape("a"))()),
    "no assignment": lambda w: (refused(lambda: w.x.__setitem__(0, 1))(), refused(lambda: w.x.__setitem__(0, w.x))()),
    "in place": lambda w: (w.x.__iadd__(w.x), w.x[::2].__iadd__(1)),
    "to the host": lambda w: (w.x.numpy(), w.x[::2].numpy(), w.x.numpy(np.empty(1200, "f4")[::2], stream=2)),
    "not to the host": lambda w: (refused(lambda: w.x.numpy(A[1:]))(), refused(lambda: w.x.numpy(B))()),
    "pickles": lambda w: w.x.__reduce__(),
    "NumPy's add": lambda w: np.add(w.x, w.x, out=w.y),
    "NumPy's other functions": lambda w: (
        refused(lambda: np.subtract(w.x, 1))(),
        refused(lambda: np.add.outer(w.x, 1))(),
    ),
    "another's rules": lambda w: np.add(w.x, Number()),
    "a number": lambda w: (
        vecadd.add(w.x, 2),
        vecadd.add(2.5, w.x),
        vecadd.add(w.x, np.float64(1)),
        vecadd.add(w.x, 1j),
    ),
    "two dtypes": lambda w: vecadd.add(w.x, w.integers),
    "a row and a column": lambda w: vecadd.add(w.x[None, :20], w.x[:20, None]),
    "memory of another library": lambda w: vecadd.add(w.array, w.array, w.array),
    "a stream object": lambda w: vecadd.add(w.x, w.x, w.y, stream=bad.Stream((0, 2))),
    "a stream by its handle": lambda w: vecadd.add(w.x, w.x, w.y, stream=int(str(w.stream))),
    "explain": lambda w: vecadd.explain(w.x, w.integers),
    "a plan": lambda w: vecadd.plan(w.x, w.x, w.y)(),
    "a plan in words": lambda w: repr(vecadd.plan(w.x, w.x, w.y)),
    "a plan of lists": lambda w: vecadd.plan([w.x, w.x], [w.x, w.integers], [w.y, w.doubles])(),
    "lists": lambda w: vecadd.add_many([w.x, w.x], [w.x, w.integers], [w.y, None]),
    "through the GPU": lambda w: vecadd.add(A, B, device="cuda"),
    "pinned memory": lambda w: vecadd.empty_pinned((3, 4), "f4"),
    "no pinned memory": lambda w: (
        refused(lambda: vecadd.empty_pinned(-1, "f4"))(),
        refused(lambda: vecadd.empty_pinned(3, "S1"))(),
    ),
    "the GPUs": lambda w: (_core.gpu_facts(), _core.device_launch_configs(0)),
}


@pytest.mark.parametrize("name", ON_DEVICE)
def test_a_call_on_the_device_leaves_nothing(name: str, driver: Driver, foreign: Callable[..., object]) -> None:
    w = SimpleNamespace(x=vecadd.to_device(A), y=vecadd.to_device(A), array=foreign(A), stream=driver.stream())
    w.integers, w.doubles = vecadd.to_device(A.astype("i4")), vecadd.to_device(B)
    assert_nothing_is_left(lambda: ON_DEVICE[name](w))
    vars(w).clear()

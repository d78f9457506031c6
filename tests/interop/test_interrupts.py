"""Python code runs while operands are read and while additions are recorded: their attributes, methods and libraries'.
An interrupt there goes through, as does every exception that does not say that an operand cannot be read in this way.
"""

import gc
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import test_exchange_table as table
import test_host_tensors
from foreign import DLPackArray
from test_cupy_attributes import cupy
from test_exchange_table import tensor, torch

import vecadd
from vecadd import interop
from vecadd.why import recording

__all__ = ["cupy", "tensor", "torch"]  # fixtures
A = np.arange(20_000, dtype=np.float32)  # a receipt records sums of more than 64 KiB


class Timeout(Exception):
    """What a signal's handler may raise."""


# What callbacks of ctypes and of weak references, finalizers and the end of a generator raise, Python prints.
PRINTED = {"tensor_from_object", "current_stream", "_delete", "remove", "__del__", "<genexpr>"}


def swallowed(call, exception):
    """Calls it again and again, and raises the exception where it calls its first Python function, then its second one,
    and so on. Returns how many there are, and those from which the exception did not come through."""
    number, lost = 0, []
    while True:
        number += 1
        begun, name = 0, None

        def profile(frame, event, argument, number=number):
            nonlocal begun, name
            if event == "call" and frame.f_code.co_name not in PRINTED:
                begun += 1
                if begun == number:
                    name = frame.f_code.co_qualname
                    raise exception

        gc.disable()  # its callbacks are functions too, whose exceptions Python prints
        sys.setprofile(profile)
        try:
            call()
        except exception:
            continue
        finally:
            sys.setprofile(None)
            gc.enable()
        if name is None:
            return number - 1, lost
        lost.append(name)


def goes_through(call):
    for exception in (KeyboardInterrupt, SystemExit, MemoryError, Timeout):
        count, lost = swallowed(call, exception)
        assert count > 1  # the first is `call` itself
        assert lost == [], exception


CALLS = {
    "add": lambda x, y, out: vecadd.add(x, y, out),
    "add to a new sum": lambda x, y, out: vecadd.add(x, y),
    "add a number": lambda x, y, out: vecadd.add(x, 2, out),
    "add in place": lambda x, y, out: vecadd.add(out, y, out),
    "add_many": lambda x, y, out: vecadd.add_many([x, out], [y, y], [None, out]),
    "plan": lambda x, y, out: vecadd.plan(x, y, out),
    "plan of a list": lambda x, y, out: vecadd.plan([x], [y], [out]),
    "explain": lambda x, y, out: vecadd.explain(x, y, out),
    "repr": lambda x, y, out: repr(vecadd.plan(x, y, out)),
}
every_call = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)


@pytest.fixture(params=[False, True], ids=["", "recorded"])
def maybe_recorded(request):
    if request.param:
        recording.start()
    yield
    if request.param:
        recording.stop()


@every_call
def test_while_a_tensor_is_read(call, maybe_recorded, tensor, torch, foreign):
    class Tensor(table.Tensor):
        dtype = "float32"
        nbytes = property(lambda self: A.nbytes)
        requires_grad = property(lambda self: False)

    Tensor.__name__, Tensor.__module__ = "Tensor", "torch"

    def made(*arguments, **keywords):
        return Tensor(foreign(A), A)

    torch._C._dynamo = SimpleNamespace(guards=SimpleNamespace(_empty_strided_cuda=made))
    torch._C._cuda_getCurrentRawStream = {0: 0}.get  # no Python function: a callback of ctypes' calls it
    torch.empty_like, torch.contiguous_format = made, None
    x, y, out = made(), made(), made()
    goes_through(lambda: call(x, y, out))
    goes_through(lambda: call(x, y, out))  # of a type that has been met


@every_call
def test_while_an_array_of_cupy_is_read(call, maybe_recorded, cupy):
    x, y, out = cupy(A), cupy(A), cupy(A)
    goes_through(lambda: call(x, y, out))


@every_call
def test_while_dlpack_gives_an_array_of_the_device(call, maybe_recorded, foreign):
    class Array(DLPackArray):
        nbytes = property(lambda self: A.nbytes)
        shape = property(lambda self: A.shape)

    x, y, out = (Array(foreign(A)) for _ in range(3))
    goes_through(lambda: call(x, y, out))


@every_call
def test_while_a_tensor_on_the_host_is_read(call, maybe_recorded, monkeypatch):
    class Tensor(test_host_tensors.Tensor):
        nbytes = property(lambda self: A.nbytes)

    Tensor.__module__ = "tensors.core"
    monkeypatch.setitem(interop.LIBRARIES, "tensors", test_host_tensors.Tensors())
    x, y, out = Tensor(A), Tensor(A), Tensor(A.copy())
    goes_through(lambda: call(x, y, out))


def test_while_a_number_and_a_list_are_asked_for_their_kind(device):
    class Asked(type):
        def __getattr__(cls, name):
            raise AttributeError

    class Number(int, metaclass=Asked):
        pass

    class Lists:
        def __init__(self, *items):
            self.items = items

        def __iter__(self):
            return iter(self.items)

        @property
        def keys(self):
            raise AttributeError

    x, number = vecadd.to_device(A), Number(3)
    goes_through(lambda: vecadd.add(x, number))
    goes_through(lambda: vecadd.add_many(Lists(x), Lists(x)))

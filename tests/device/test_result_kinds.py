"""The kind of a sum: an array of the first device operand's library, whichever side a number is on.

Stand-ins for the libraries' arrays take their places, read by their interface or by DLPack as the real ones are.
"""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from arrays import assert_same_values
from foreign import DLPackArray

import vecadd

A = np.arange(12, dtype=np.float32)


class Wrapped:
    """A library's array: around memory of the driver's, or around a DeviceArray that the library adopted."""

    def __init__(self, memory):
        self.memory = memory

    @property
    def dtype(self):
        return np.dtype(self.memory.dtype)

    @property
    def shape(self):
        return self.memory.shape

    def numpy(self):
        return self.memory.numpy()


class ByInterface(Wrapped):
    @property
    def __cuda_array_interface__(self):
        return self.memory.__cuda_array_interface__


class CuPyArray(ByInterface):
    __module__ = "cupy"

    @property
    def device(self):
        return _Entered(id=0)

    def transpose(self, axes):
        raise AssertionError("no test here has another order than C")


class TorchTensor(ByInterface):
    __module__ = "torch"
    is_cuda, requires_grad, device = True, False, "cuda:0"

    def data_ptr(self):
        return self.__cuda_array_interface__["data"][0]

    def is_conj(self):
        return False

    is_neg = is_conj


class NumbaArray(ByInterface):
    __module__ = "numba.cuda.cudadrv"


class JAXArray(Wrapped):
    __module__ = "jaxlib"

    def devices(self):
        return {0}

    def __dlpack_device__(self):
        return self.given().__dlpack_device__()

    def __dlpack__(self, **keywords):
        return self.given().__dlpack__(**keywords)

    def given(self):
        adopted = isinstance(self.memory, vecadd.DeviceArray)
        return self.memory if adopted else DLPackArray(self.memory)


class _Entered(SimpleNamespace):
    def __enter__(self):
        return self

    def __exit__(self, *exception):
        return None


class _ModuleWithDtypes:
    """A module whose other names are those of dtypes, as torch's are."""

    def __init__(self, **names):
        vars(self).update(names)

    def __getattr__(self, name):
        if name in np.sctypeDict:
            return np.dtype(name)
        raise AttributeError(name)


def numpys_result(a, b):
    operands = [x if np.isscalar(x) else np.empty(1, x.dtype) for x in (a, b)]
    return np.add(*operands).dtype


@pytest.fixture
def kinds(foreign, monkeypatch):
    """kinds[name](x): the NumPy array x as an array of that library; the type of kinds[name] sums is types[name]."""

    def empty(kind):
        return lambda shape, dtype: kind(foreign(np.zeros(shape, dtype)))

    cupy_empty, torch_empty = empty(CuPyArray), empty(TorchTensor)
    cupy = SimpleNamespace(
        # The stand-in is of a derived type: what is learnt of a type is learnt once in a process.
        ndarray=type("ndarray", (), {}),
        empty=cupy_empty,
        cuda=SimpleNamespace(get_current_stream=lambda device=0: SimpleNamespace(ptr=0)),
    )
    torch = _ModuleWithDtypes(
        empty=lambda shape, dtype, device: torch_empty(shape, dtype),
        empty_like=lambda x, memory_format: torch_empty(x.shape, x.dtype),
        contiguous_format=None,
        result_type=lambda a, b: f"torch.{numpys_result(a, b)}",
        is_grad_enabled=lambda: True,
        _C=SimpleNamespace(_cuda_getCurrentRawStream=lambda device: 0),
    )
    jax = SimpleNamespace(
        core=SimpleNamespace(Tracer=type("Tracer", (), {})),
        Array=JAXArray,
        numpy=SimpleNamespace(result_type=numpys_result),
        dlpack=SimpleNamespace(from_dlpack=JAXArray),
    )
    cuda = SimpleNamespace(gpus=[_Entered()], as_cuda_array=lambda array, sync: NumbaArray(array))
    for name, module in {"cupy": cupy, "torch": torch, "jax": jax, "numba.cuda": cuda}.items():
        monkeypatch.setitem(sys.modules, name, module)
    return {
        "CuPy": lambda x: CuPyArray(foreign(x)),
        "torch": lambda x: TorchTensor(foreign(x)),
        "JAX": lambda x: JAXArray(foreign(x)),
        "Numba": lambda x: NumbaArray(foreign(x)),
        "interface": foreign,
        "DeviceArray": vecadd.to_device,
    }


TYPES = {
    "CuPy": CuPyArray,
    "torch": TorchTensor,
    "JAX": JAXArray,
    "Numba": NumbaArray,
    "interface": vecadd.DeviceArray,  # nothing but an interface makes no arrays
    "DeviceArray": vecadd.DeviceArray,
}
KINDS = list(TYPES)
NUMBERS = [2, 2.5, 2 + 1j, True, np.float64(2.5), np.int8(3), np.complex64(1j), np.bool_(True)]


def ids(number):
    return f"{type(number).__name__} {number}"


@pytest.fixture(autouse=True)
def settled(driver):
    """Operands that are lent are kept until the device is done with them."""
    yield
    driver.synchronize(0)
    vecadd.release()


@pytest.mark.parametrize("number", NUMBERS, ids=ids)
@pytest.mark.parametrize("kind", KINDS)
def test_a_number_on_either_side_leaves_the_kind_to_the_array(kinds, kind, number):
    x = kinds[kind](A)
    for pair, want in [((x, number), np.add(A, number)), ((number, x), np.add(number, A))]:
        for got in (vecadd.add(*pair), *vecadd.add_many([pair[0]], [pair[1]])):
            assert type(got) is TYPES[kind]
            assert_same_values(got.numpy(), want)


@pytest.mark.parametrize("number", NUMBERS, ids=ids)
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "JAX"])  # whose arrays do not change
def test_out_is_what_is_given_back_whichever_side_the_number_is_on(kinds, kind, number):
    x = kinds[kind](A)
    for pair, want in [((x, number), np.add(A, number)), ((number, x), np.add(number, A))]:
        out = kinds[kind](np.zeros_like(want))
        calls = [
            lambda pair, out: vecadd.add(*pair, out),
            lambda pair, out: vecadd.add_many([pair[0]], [pair[1]], [out])[0],
            lambda pair, out: vecadd.plan(*pair, out)(),
            lambda pair, out: vecadd.plan([pair[0]], [pair[1]], [out])()[0],
        ]
        for call in calls:
            vecadd.add(kinds[kind](np.zeros_like(want)), np.zeros((), want.dtype)[()], out)
            assert call(pair, out) is out
            assert_same_values(out.numpy(), want)


@pytest.mark.parametrize("first", KINDS)
@pytest.mark.parametrize("second", KINDS)
def test_the_first_array_gives_the_kind(kinds, first, second):
    x, y = kinds[first](A), kinds[second](A + 1)
    for got in (vecadd.add(x, y), *vecadd.add_many([x], [y])):
        assert type(got) is TYPES[first]
        assert_same_values(got.numpy(), A + A + 1)


def test_the_sums_of_a_list_are_each_of_their_own_pairs_kind(kinds):
    xs = [kinds[kind](A + i) for i, kind in enumerate(KINDS)]
    given = [kinds["Numba"](A) if kind == "DeviceArray" else None for kind in KINDS]
    got = vecadd.add_many([*xs, 1], [*xs, xs[3]], [*given, None])
    assert [type(x) for x in got] == [*(TYPES[kind] for kind in KINDS[:-1]), NumbaArray, NumbaArray]
    for i, x in enumerate(got[:-1]):
        assert_same_values(x.numpy(), (A + i) * 2)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("host", [np.array(2.0), A], ids=["no dimension", "vector"])
def test_an_array_on_the_host_is_refused_on_either_side(kinds, kind, host):
    x = kinds[kind](A)
    for pair in ((x, host), (host, x)):
        for call in (vecadd.add, lambda a, b: vecadd.add_many([a], [b])):
            with pytest.raises(TypeError, match="to_device"):
                call(*pair)


def test_a_library_that_does_not_adopt_a_sum_of_a_list_says_why(kinds, monkeypatch):
    def fail(array, sync):
        raise RuntimeError("no context")

    monkeypatch.setattr(sys.modules["numba.cuda"], "as_cuda_array", fail)
    x = kinds["Numba"](A)
    with pytest.raises(RuntimeError, match="pair 1: no context"):
        vecadd.add_many([kinds["interface"](A), x], [x, x])

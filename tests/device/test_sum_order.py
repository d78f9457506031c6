"""The order of a new sum on the device: its axes have the operands' order in memory, by the rule of their library.

What all operands then run through alike is one run of memory, and goes to the quickest kernel.
"""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from arrays import assert_same_values, tame_values
from foreign import ForeignArray, View
from hypothesis import given, settings
from hypothesis import strategies as st

import vecadd
from vecadd import _core, interop


def kernel(a, b):
    return _core.explain_route(a, b)["kernel"]


def steps(x):
    """The strides that say something: of axes of more than one element."""
    return [stride for extent, stride in zip(x.shape, x.strides, strict=True) if extent > 1]


ORDERS = {
    "C": lambda x: x,
    "Fortran": lambda x: x.T,
    "axes permuted": lambda x: x.transpose(1, 2, 0),
    "an axis of one element": lambda x: x[:1].T,
    "channels last": lambda x: x[None].transpose(0, 3, 1, 2),
}


@pytest.mark.parametrize("order", ORDERS)
def test_operands_of_one_order_give_a_sum_of_that_order_in_one_run(driver, order):
    hosts = [tame_values(np.dtype("f4"), 4 * 5 * 6, seed).reshape(4, 5, 6) for seed in (1, 2)]
    x, y = (ORDERS[order](host) for host in hosts)
    a, b = (View(ForeignArray(driver, host), host, view) for host, view in zip(hosts, (x, y), strict=True))
    assert kernel(a, b) == "contiguous"
    got, want = vecadd.add(a, b), np.add(x, y)
    assert (got.shape, steps(got)) == (want.shape, steps(want))
    assert_same_values(got.numpy(), want)


@st.composite
def operands(draw, shape):
    """An array of axes in any order, with gaps, backwards or broadcast; what of it NumPy and the device see."""
    own = [1 if draw(st.integers(0, 4)) == 0 else extent for extent in shape[draw(st.sampled_from([0, 0, 0, 1])) :]]
    axes = draw(st.permutations(range(len(own))))
    host = tame_values(
        np.dtype(draw(st.sampled_from(["f4", "f8"]))), int(np.prod(own)) * 2 ** len(own), draw(st.integers(0, 9))
    )
    host = host.reshape([2 * own[axis] for axis in axes])
    cuts = [draw(st.sampled_from([slice(n, None), slice(None, n), slice(None, None, 2), slice(None, None, -2)]))
            for n in (own[axis] for axis in axes)]  # fmt: skip
    return host, host[(..., *cuts)].transpose([axes.index(axis) for axis in range(len(own))])


@settings(max_examples=150)
@given(data=st.data(), shape=st.lists(st.sampled_from([1, 2, 3, 4]), min_size=1, max_size=4))
def test_any_operands_give_a_sum_of_numpys_order(driver, data, shape):
    (left, x), (right, y) = (data.draw(operands(shape)) for _ in "ab")
    got = vecadd.add(View(ForeignArray(driver, left), left, x), View(ForeignArray(driver, right), right, y))
    want = np.add(x, y)
    assert (got.shape, steps(got)) == (want.shape, steps(want))
    assert_same_values(got.numpy(), want)


def test_axes_of_equal_strides_stay_in_c_order_beside_an_operand_in_fortran_order(driver):
    host = tame_values(np.dtype("f4"), 16, 1)
    windows = np.lib.stride_tricks.as_strided(host, (4, 4), (4, 4))
    x, y = View(ForeignArray(driver, host), host, windows), View(ForeignArray(driver, host), host, host.reshape(4, 4).T)
    for got, want in ((vecadd.add(x, y), windows + y.numpy()), (vecadd.add(y, x), y.numpy() + windows)):
        assert (got.shape, got.strides) == (want.shape, want.strides) == ((4, 4), (16, 4))
        assert_same_values(got.numpy(), want)


@pytest.mark.parametrize("number", [2, 2.5, np.float32(1)])
def test_a_number_leaves_the_order_to_the_array(device, number):
    x = vecadd.to_device(tame_values(np.dtype("f4"), 12, 1).reshape(3, 4))
    padded = vecadd.to_device(np.zeros((3, 8), "f4"))
    assert (x + number).strides == (16, 4)
    assert (padded[:, ::2] + number).strides == (16, 4)


class Fortran:
    """An array of a made-up library in Fortran order, and its library's `empty`."""

    def __init__(self, driver, host):
        self.memory = ForeignArray(driver, host)
        self.view = View(self.memory, host, host.T)
        self.__cuda_array_interface__ = self.view.__cuda_array_interface__
        self.shape, self.dtype = host.T.shape, host.dtype

    def transpose(self, axes):
        """The strides of axes of one element, which say nothing, are made up."""
        turned = self.host.transpose(axes)
        strides = [4096 if extent == 1 else step for extent, step in zip(turned.shape, turned.strides, strict=True)]
        turned = np.lib.stride_tricks.as_strided(turned, strides=strides)
        self.view = View(self.memory, self.host, turned)
        self.__cuda_array_interface__ = self.view.__cuda_array_interface__
        return self


@pytest.mark.parametrize(("shape", "empties"), [((2, 3, 4), (2, 3, 4)), ((2, 1, 12), (1, 2, 12))], ids=str)
def test_the_library_makes_a_sum_whose_largest_stride_comes_first_and_turns_it(driver, monkeypatch, shape, empties):
    def empty(shape, dtype):
        asked.append(shape)
        host = np.zeros(shape, dtype)
        made = Fortran(driver, host)
        made.host = host
        return made

    class Device:
        id = 0
        __enter__ = __exit__ = lambda *_: None

    asked: list = []
    Fortran.__module__ = "cupy"
    Fortran.device = Device()
    cuda = SimpleNamespace(get_current_stream=lambda device: SimpleNamespace(ptr=0))
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(empty=empty, ndarray=object, cuda=cuda))
    host = tame_values(np.dtype("f4"), 24, 1).reshape(shape)
    a, b = Fortran(driver, host), Fortran(driver, host)
    assert kernel(a, b) == "contiguous"
    total = vecadd.add(a, b)
    assert asked == [empties]
    assert total.view.shape == shape[::-1]
    assert_same_values(total.view.numpy(), host.T + host.T)


class InCOrder(interop.Library):
    """The library "ordered", whose sums are always in C order."""

    sums_in_c_order = True

    def export(self, array, writing):
        return array

    def must_add(self, operands, out):
        return None

    def current_stream(self, device):
        return 0

    def result_dtype(self, a, b):
        return None

    def empty_like(self, *arguments):
        return None


@pytest.mark.parametrize("rule", ["C order", "NumPy's"])
def test_a_library_may_have_all_its_sums_in_c_order(driver, monkeypatch, rule):
    class Ordered(View):
        __module__ = "ordered"

    if rule == "C order":
        monkeypatch.setitem(interop.LIBRARIES, "ordered", InCOrder())
    host = tame_values(np.dtype("f4"), 12, 1).reshape(3, 4)
    x, y = (Ordered(ForeignArray(driver, host), host, host.T) for _ in "xy")
    got = vecadd.add(x, y)
    assert got.strides == ((12, 4) if rule == "C order" else (4, 16))
    assert_same_values(got.numpy(), host.T + host.T)


# With the arrays of the libraries themselves


@pytest.mark.gpu
@settings(max_examples=150)
@given(data=st.data(), shape=st.lists(st.sampled_from([1, 2, 3, 4]), min_size=1, max_size=4))
def test_tensors_give_a_sum_of_torchs_order(on_gpu, data, shape):
    torch = on_gpu("torch")

    made = []
    for _ in "ab":
        own = [1 if data.draw(st.integers(0, 4)) == 0 else extent for extent in shape]
        axes = data.draw(st.permutations(range(len(own))))
        full = torch.randn([own[axis] * data.draw(st.sampled_from([1, 1, 2])) for axis in axes], device="cuda")
        cut = full[tuple(slice(None, own[axis]) for axis in axes)]
        made.append(cut.permute([axes.index(axis) for axis in range(len(own))]))
    got, want = vecadd.add(*made), torch.add(*made)
    assert torch.equal(got, want)
    assert steps(SimpleNamespace(shape=got.shape, strides=got.stride())) == steps(
        SimpleNamespace(shape=want.shape, strides=want.stride())
    )


@pytest.mark.gpu
def test_tensors_of_one_order_go_to_the_tuned_kernel(on_gpu):
    torch = on_gpu("torch")
    a, b = (torch.randn(64, 32, device="cuda") for _ in "ab")
    assert kernel(a.T, b.T) == "contiguous"
    assert vecadd.add(a.T, b.T).stride() == (1, 32)
    images = [torch.randn(2, 3, 8, 8, device="cuda").to(memory_format=torch.channels_last) for _ in "ab"]
    assert kernel(*images) == "contiguous"
    assert vecadd.add(*images).is_contiguous(memory_format=torch.channels_last)
    assert vecadd.add(a.T, b.reshape(32, 64)).stride() == (1, 32)  # the first operand decides


@pytest.mark.gpu
def test_cupys_arrays_give_a_sum_of_numpys_order(on_gpu):
    cupy = on_gpu("cupy")
    x = tame_values(np.dtype("f4"), 4 * 5 * 6, 1).reshape(4, 5, 6)
    for order in ORDERS.values():
        a = order(cupy.asarray(x))
        assert kernel(a, a) == "contiguous"
        got, want = vecadd.add(a, a), np.add(order(x), order(x))
        assert type(got) is cupy.ndarray
        assert steps(got) == steps(want)
        assert_same_values(got.get(), want)
        stream = cupy.cuda.Stream(non_blocking=True)
        assert steps(vecadd.add(a, a, stream=stream)) == steps(want)
        stream.synchronize()

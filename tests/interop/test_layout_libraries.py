"""Views of CuPy's arrays and PyTorch's tensors, which need a GPU: their own libraries' sums, dtypes and graphs."""

from itertools import product

import numpy as np
import pytest
from arrays import NUMPY_DTYPES, assert_same_values, values
from device_layouts import form, shapes
from hypothesis import given, settings
from hypothesis import strategies as st

import vecadd

pytestmark = pytest.mark.usefixtures("values_alone")


@pytest.mark.gpu
@settings(max_examples=200)
@given(data=st.data(), shape=shapes())
def test_views_of_cupy_give_numpys_sum(on_gpu, data, shape):
    cupy = on_gpu("cupy")
    hosts, arrays = [], []
    for seed in (1, 2):
        dtype = data.draw(st.sampled_from(NUMPY_DTYPES))
        x = values(dtype, int(np.prod(shape)), seed).reshape(shape)
        axes = data.draw(st.permutations(range(x.ndim)))
        cut = tuple(slice(None, None, data.draw(st.sampled_from([1, 1, 2, -1]))) for _ in shape)
        undo = np.argsort(axes) if len(axes) else ()
        hosts.append(x[cut].transpose(axes).transpose(undo))
        arrays.append(cupy.asarray(x)[cut].transpose(axes).transpose([int(axis) for axis in undo]))
    try:
        want = np.asarray(np.add(*hosts))
    except ValueError:
        with pytest.raises(ValueError, match="broadcast"):
            vecadd.add(*arrays)
        return
    got = vecadd.add(*arrays)
    assert type(got) is cupy.ndarray
    assert_same_values(got.get(), want)


def same_as_torchs(torch, x, y):
    if torch.result_type(x, y) == torch.complex32:  # of a float16 tensor and a complex number
        with pytest.raises(TypeError, match="the sum has dtype complex32; vecadd takes"):
            vecadd.add(x, y)
        return
    got, want = vecadd.add(x, y), torch.add(x, y)
    assert got.dtype == want.dtype
    assert torch.equal(got, want)


@pytest.mark.gpu
def test_tensors_promote_by_torchs_rules(on_gpu):
    torch = on_gpu("torch")
    names = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64",
             "complex64", "complex128"]  # fmt: skip
    made = [torch.arange(6, device="cuda").to(getattr(torch, name)) for name in names]
    for a, b in product(made, made):
        for x, y in ((a, b), (a, b[0]), (a[0], b), (a.view(2, 3), b.view(2, 3).flip(0)), (a.view(3, 2).T, b[:3])):
            same_as_torchs(torch, x, y)


@pytest.mark.gpu
@pytest.mark.parametrize("number", [True, 3, 2.5, 1 - 2j])
def test_numbers_promote_tensors_by_torchs_rules(on_gpu, number):
    torch = on_gpu("torch")
    for name in ("bool", "uint8", "int64", "float16", "bfloat16", "float32", "complex64"):
        same_as_torchs(torch, torch.arange(6, device="cuda").to(getattr(torch, name)), number)


@pytest.mark.gpu
def test_strided_sum_may_be_captured_into_a_graph(on_gpu):
    torch = on_gpu("torch")
    a, row, out = (
        torch.arange(12.0, device="cuda").view(3, 4),
        torch.ones(4, device="cuda"),
        torch.zeros(3, 4, device="cuda"),
    )
    vecadd.add(a, row, out)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        vecadd.add(a, row, out)
        vecadd.add(out.T, 2.0, out.T)
    out.zero_()
    graph.replay()
    assert torch.equal(out, a + row + 2)


@pytest.mark.slow
@pytest.mark.gpu
def test_strided_sums_of_more_than_2_to_the_32_elements(on_gpu):
    torch = on_gpu("torch")
    n = 2**32 + 4099
    if torch.cuda.mem_get_info()[0] < 5 * n:
        pytest.skip("needs 20 GB of device memory")
    a = torch.arange(251, device="cuda", dtype=torch.uint8).repeat(n // 251 + 1)[:n]
    out = vecadd.add(a, 1)
    assert torch.equal(out, a + 1)
    assert torch.equal(vecadd.add(a.flip(0), a[:1], out), a.flip(0) + a[0])
    wide = vecadd.add(a.view(1, -1).expand(2, n)[:, ::3], a[:2].view(2, 1))
    assert torch.equal(wide[1], a[::3] + a[1])


@pytest.mark.slow
@pytest.mark.gpu
def test_every_second_of_2_to_the_33_bytes_and_a_transposed_array_of_2_to_the_32(on_gpu):
    torch = on_gpu("torch")
    n = 2**33 + 6
    if torch.cuda.mem_get_info()[0] < 4 * n:
        pytest.skip("needs 34 GB of device memory")
    a = torch.arange(251, device="cuda", dtype=torch.uint8).repeat(n // 251 + 1)[:n]
    every_second = vecadd.add(a[::2], a[1::2])
    assert torch.equal(every_second, a[::2] + a[1::2])
    del every_second
    edge = 2**16 + 8
    square = a[: edge * edge].view(edge, edge)
    out = torch.empty_like(square)
    assert form(square.T, square, out) == "tiles"
    vecadd.add(square.T, square, out)
    assert torch.equal(out, square.T + square)

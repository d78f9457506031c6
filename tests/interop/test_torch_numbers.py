"""A number beside a tensor of PyTorch's is converted as PyTorch's GPU kernels convert it: 16-bit floats are added to
it in float32 and rounded once, where NumPy and JAX round the number first; an int wraps round an integer dtype.

On a GPU with PyTorch itself; on the double a stand-in has its place, and NumPy says what float32 gives."""

import ctypes
import warnings

import numpy as np
import pytest
import test_exchange_table as table
from arrays import BFLOAT16
from test_exchange_table import tensor, torch

import vecadd
from vecadd import _core

__all__ = ["tensor", "torch"]  # fixtures

FLOAT16 = np.dtype("float16")
EVERY = np.arange(65536, dtype=np.uint16)
NUMBERS = [
    0.5, 1 / 3, -0.1, 1e-5, 65519.99, -65520.0, 3.1e38, 3.4028236e38, -1e39, 1e300, 1e-45, 6e-8, 2.0**-14, float("nan"),
    float("-inf"), 3, 2049, -(2**24) - 1, 2**53 + 1, 2**60 + 2**36 + 1, 2**63 - 1, 2**64 - 1, True, np.float64(0.1),
    np.float32(0.1), np.float16(0.1), np.int64(2**60 + 2**36 + 1), np.uint8(255), np.True_,
]  # fmt: skip
each_number = pytest.mark.parametrize("number", NUMBERS, ids=repr)
each_dtype = pytest.mark.parametrize("dtype", [FLOAT16, BFLOAT16], ids=str)


CODES = {"f": table.FLOAT, "V": 4, "i": 0, "u": 1}


def tensor_of(foreign, x, **fields):
    return table.Tensor(foreign(x), x, code=CODES[x.dtype.kind], **fields)


def float32_of(number):
    """Rounded once, of ints too."""
    if isinstance(number, int) and not isinstance(number, bool):
        return np.asarray(number, "u8" if number >= 2**63 else "i8").astype(np.float32)
    return np.asarray(number).astype(np.float32)


def sum_of(x, number):
    return (x.astype(np.float32) + float32_of(number)).astype(x.dtype)


def same(got, want):
    """Bit for bit, but for NaNs."""
    number = ~np.isnan(want)
    return (
        got.dtype == want.dtype and (np.isnan(got) == ~number).all() and got[number].tobytes() == want[number].tobytes()
    )


@each_dtype
@each_number
def test_every_16_bit_float_is_added_in_float32(torch, foreign, silent, dtype, number):
    x, out = EVERY.view(dtype), np.zeros(65536, dtype)
    torch.result_type = lambda a, b: f"torch.{dtype}"
    for operands in ((tensor_of(foreign, x), number), (number, tensor_of(foreign, x))):
        total = tensor_of(foreign, out)
        assert vecadd.add(*operands, total) is total
        assert same(total.memory.numpy(), sum_of(x, number))
        total = vecadd.to_device(out)
        assert same(vecadd.add(*operands, total).numpy(), sum_of(x, number))
        vecadd.plan(*operands, total)()
        assert same(total.numpy(), sum_of(x, number))
        many = [tensor_of(foreign, out)]
        vecadd.add_many([operands[0]], [operands[1]], many)
        assert same(many[0].memory.numpy(), sum_of(x, number))


@each_dtype
@pytest.mark.parametrize("number", [0.5, 1 / 3, 2**24 + 1])
@pytest.mark.parametrize("start", [0, 1, 7])
@pytest.mark.parametrize("n", [1, 2, 17, 1001])
def test_of_any_length_and_alignment(torch, tensor, foreign, silent, dtype, number, start, n):
    whole = (np.arange(1010) * 37 + 15_000).astype(np.uint16).view(dtype)
    x, out = whole[start : start + n], vecadd.to_device(np.zeros(1010, dtype))
    torch.result_type = lambda a, b: f"torch.{dtype}"
    memory = foreign(whole)
    part = table.Tensor(memory, x, code=CODES[x.dtype.kind], data=memory.pointer + 2 * start)
    for total in (out[:n], out[3 : n + 3]):
        assert same(vecadd.add(part, number, total).numpy(), sum_of(x, number))
    assert not out[n + 3 :].numpy().any()


@each_dtype
@pytest.mark.parametrize(("number", "form"), [(1 / 3, "general"), (0.5, "same_dtype")])
def test_of_any_layout(torch, tensor, foreign, silent, dtype, number, form):
    x, columns = every_other_column(foreign, dtype)
    out = vecadd.to_device(np.zeros((256, 128), dtype))
    torch.result_type = lambda a, b: f"torch.{dtype}"
    assert _core.explain_route(columns, number, out)["layout"] == form
    assert same(vecadd.add(columns, number, out).numpy(), sum_of(x, number))


def every_other_column(foreign, dtype):
    """A matrix, and the tensor of its columns 0, 2, 4, ..."""
    whole = EVERY.view(dtype).reshape(256, 256)
    strides = (ctypes.c_int64 * 2)(256, 2)
    return whole[:, ::2], table.Tensor(foreign(whole), whole[:, ::2], code=CODES[dtype.kind], strides=strides)


@each_dtype
def test_a_number_that_fits_16_bits_takes_the_faster_kernel(torch, tensor, foreign, dtype):
    """It is added alike in both."""
    torch.result_type = lambda a, b: f"torch.{dtype}"
    columns = every_other_column(foreign, dtype)[1]
    values = EVERY.view(dtype).astype(np.float32)
    values = values[np.isfinite(values)]
    values = np.array([*values[::41], values.max(), values[values > 0].min()])
    for numbers, form in ((values, "same_dtype"), (np.nextafter(values, np.float32(7)), "general")):
        for number in numbers[numbers != 7].tolist():
            assert _core.explain_route(columns, number)["layout"] == form, number


@pytest.mark.parametrize("number", [300, -1, 2**40 + 5, 2**63 + 7, True, np.int64(300)])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int64", "uint64"])
def test_an_int_wraps_round_an_integer_dtype(torch, foreign, dtype, number):
    x, out = np.arange(100).astype(dtype), vecadd.to_device(np.zeros(100, dtype))
    torch.result_type = lambda a, b: f"torch.{dtype}"
    wrapped = np.asarray(int(number) & 2**64 - 1, np.uint64).astype(dtype)
    assert same(vecadd.add(tensor_of(foreign, x), number, out).numpy(), x + wrapped)


@pytest.mark.parametrize("number", [2**60 + 2**36 + 1, 2**64 - 1, 1 / 3, np.complex64(2)])
def test_a_number_is_rounded_to_float32_once(torch, foreign, number):
    x, out = np.array([2.0**52, -(2.0**60), 0], np.float32), vecadd.to_device(np.zeros(3, np.float32))
    torch.result_type = lambda a, b: "torch.float32"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch takes a complex number's real part, and NumPy warns of it
        assert same(vecadd.add(tensor_of(foreign, x), number, out).numpy(), x + float32_of(number))


def test_jaxs_rule_and_numpys_round_the_number_first(foreign, silent):
    x = EVERY.view(FLOAT16)
    for number in NUMBERS[:22]:
        if not isinstance(number, int) or abs(number) < 2**63:
            want = np.add(x, np.asarray(number).astype(FLOAT16))
            assert same(vecadd.add(vecadd.to_device(x), number).numpy(), want)


@each_dtype
@each_number
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_as_pytorch_adds_it(place, dtype, number):
    torch = pytest.importorskip("torch")
    x = torch.from_numpy(EVERY.view(np.int16)).to(place).view(getattr(torch, str(dtype)))
    operands = ((x, number), (number, x))
    if isinstance(number, np.generic):
        operands = operands[:1]  # NumPy's numbers are asked first, and know no tensors
    for call in operands:
        want = torch.add(*call)
        for got in (vecadd.add(*call), vecadd.add(*call, torch.empty_like(x)), *vecadd.add_many(*zip(call))):
            assert got.dtype == want.dtype
            assert (torch.isnan(got) == torch.isnan(want)).all()
            assert torch.equal(got.nan_to_num(7.0).view(torch.int16), want.nan_to_num(7.0).view(torch.int16))


@pytest.mark.parametrize("number", [300, -1, 2**40 + 5, True, 0.1, 2**60 + 2**36 + 1])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "int64", "float32", "float64", "complex64"])
@pytest.mark.parametrize("default", ["float32", "bfloat16"])
def test_of_other_dtypes_as_pytorch_adds_it(place, dtype, number, default):
    torch = pytest.importorskip("torch")
    x = torch.arange(-50, 50, device=place).to(getattr(torch, dtype))
    before = torch.get_default_dtype()
    torch.set_default_dtype(getattr(torch, default))
    try:
        got, want = vecadd.add(x, number), torch.add(x, number)
    finally:
        torch.set_default_dtype(before)
    assert got.dtype == want.dtype
    assert torch.equal(got, want)

"""numpy.add of DeviceArrays is vecadd.add; NumPy's other functions are refused by name."""

import operator

import numpy as np
import pytest
from arrays import assert_same_values

import vecadd

A, B = np.arange(12, dtype=np.float32).reshape(3, 4), np.full(4, 0.5)


@pytest.mark.parametrize(
    ("call", "want"),
    [
        (lambda x: np.add(x, x), A + A),
        (lambda x: np.add(x, vecadd.to_device(B)), A + B),
        (lambda x: np.add(x[:, ::2], 1), A[:, ::2] + 1),
        (lambda x: np.add(2.5, x), 2.5 + A),
        (lambda x: np.float64(1) + x, np.float64(1) + A),
        (lambda x: np.add(x, np.float32(3), out=None), A + np.float32(3)),
    ],
    ids=["two", "broadcast, two dtypes", "a view and a number", "a number first", "NumPy's number", "no out"],
)
def test_the_sum_is_vecadds_and_a_device_array(device, call, want):
    x = vecadd.to_device(A)
    got = call(x)
    assert type(got) is vecadd.DeviceArray
    assert_same_values(got.numpy(), want)


@pytest.mark.parametrize(
    "call",
    [lambda x, z: np.add(x, x, z), lambda x, z: np.add(x, x, out=z), lambda x, z: np.add(x, x, out=(z,))],
    ids=["positional", "out=", "a tuple"],
)
def test_out_is_written_and_given_back(device, call):
    x = vecadd.to_device(A)
    z = vecadd.to_device(np.zeros_like(A))
    assert call(x, z) is z
    assert_same_values(z.numpy(), A + A)
    assert call(x, x) is x
    assert_same_values(x.numpy(), A + A)


def test_other_libraries_arrays_are_added_too(device, foreign):
    x = vecadd.to_device(A)
    assert_same_values(np.add(foreign(A), x).numpy(), A + A)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda x: np.add(x, A), "b is in host memory.*to_device"),
        (lambda x: np.add(A, x), "a is in host memory.*to_device"),
        (lambda x: A + x, "a is in host memory.*to_device"),
        (lambda x: x + A, "to_device"),
        (lambda x: x.__iadd__(A), "to_device"),
        (lambda x: A.__iadd__(x), "to_device"),
        (lambda x: vecadd.add(A, x), "a is in host memory.*to_device"),
        (lambda x: np.add(x, x, out=np.zeros_like(A)), "out is not.*to_device"),
        (lambda x: np.add(A, A, out=x), "to_device"),
        (lambda x: np.add(x, x, where=A > 1), "where="),
        (lambda x: np.add(x, x, dtype="f8"), "dtype="),
        (lambda x: np.multiply(x, 2), r"numpy\.multiply takes no vecadd\.DeviceArray.*numpy\(\)"),
        (lambda x: np.sqrt(x), r"numpy\.sqrt takes no"),
        (lambda x: A * x, r"numpy\.multiply takes no"),
        (lambda x: np.equal(A, x), r"numpy\.equal takes no"),
        (lambda x: np.add.outer(x, x), r"numpy\.add\.outer takes no"),
    ],
)
def test_what_is_not_added_is_refused_by_name(device, call, match):
    x = vecadd.to_device(A)
    with pytest.raises(TypeError, match=match):
        call(x)
    assert_same_values(x.numpy(), A)


@pytest.mark.parametrize(("call", "method"), [(np.sum, "reduce"), (np.add.accumulate, "accumulate")])
def test_sums_over_an_axis_are_refused_by_name(device, call, method):
    """Of an array without memory: NumPy 2.4 keeps a reference to what refuses these methods."""
    with pytest.raises(TypeError, match=rf"numpy\.add\.{method} takes no"):
        call(vecadd.to_device(A[:0]))


class Own:
    """A type with rules of its own for NumPy's functions."""

    def __array_ufunc__(self, ufunc, method, *operands, **keywords):
        return f"its own {ufunc.__name__}"


@pytest.mark.parametrize("function", [np.add, np.multiply])
def test_types_with_rules_of_their_own_keep_them(device, function):
    x = vecadd.to_device(A)
    assert function(x, Own()) == function(Own(), x) == f"its own {function.__name__}"
    with pytest.raises(TypeError):
        function(x, object())


@pytest.mark.parametrize("arguments", [(), (np.add,), (np.add, None, 1)])
def test_the_protocol_is_checked(device, arguments):
    x = vecadd.to_device(A)
    with pytest.raises(TypeError):
        operator.methodcaller("__array_ufunc__", *arguments)(x)

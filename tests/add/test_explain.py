"""vecadd.explain and vecadd.plan answer as vecadd.add does: the same errors before any work, and the true reasons."""

import numpy as np
import pytest
from awkward_calls import CALLS, DEVICE_CALLS, differences

import vecadd
from vecadd import _core

FEW = "numpy.add is as fast for so few elements"


@pytest.mark.filterwarnings("ignore:'where' used without 'out'")
@pytest.mark.parametrize("name", CALLS)
def test_what_add_raises_is_raised_before_any_work(name, device):
    assert differences(name) == []


@pytest.mark.parametrize("name", DEVICE_CALLS)
def test_what_add_raises_of_arrays_on_a_gpu_is_raised_before_any_work(name, device):
    assert differences(name, DEVICE_CALLS) == []


def test_it_is_raised_without_a_driver_too(double, child):
    code = "import awkward_calls as calls\nfor line in calls.all_differences(): print(line)"
    assert child(code, VECADD_DOUBLE_DRIVER="0").stdout == ""


def test_nothing_is_added():
    class Counted:
        sums = 0

        def __add__(self, other):
            Counted.sums += 1
            return self

    large, out = np.ones((1000, 1000), np.float32), np.zeros((1000, 1000))
    vecadd.explain(large, large.T, out, where=True)
    vecadd.plan(large, 1.0, out)
    assert not out.any()
    vecadd.explain(np.array([Counted()] * 100), 1)
    assert Counted.sums == 1
    for a, b in ((np.arange(3.0), 2**80), (np.array([1, 2, 3], object), 5)):
        before = a.tolist()
        vecadd.explain(a, b, a)
        assert a.tolist() == before


def test_one_object_says_what_objects_raise():
    assert "first pair" in (vecadd.explain.__doc__ or "")


class Series:
    """An array with rules of its own, and pandas' way out of them."""

    shape, dtype, nbytes = (5,), np.dtype(float), 40

    def __array_ufunc__(self, *arguments, **keywords):
        return "its own sum"

    def to_numpy(self):
        return np.ones(5)


A = np.ones(5)
STRIDED = np.ones(10)[::2]
ROWS = np.ones((512, 513))
REASONS = {
    "dtypes": ((np.ones(5, np.float32), A), f"the dtypes differ, and {FEW}"),
    "many elements of two dtypes": ((np.ones(2**18, np.float32), np.ones(2**18)), "the dtypes differ: the processor"),
    "shapes": ((np.ones((3, 5)), A), f"the shapes differ, and {FEW}"),
    "layout": ((STRIDED, A), f"the operands are not all contiguous in one memory order, and {FEW}"),
    "many elements of another layout": ((ROWS[:, 1:], ROWS[:, 1:]), "not all contiguous in one memory order: the proc"),
    "two orders": ((np.ones((3, 4)), np.ones((3, 4), order="F")), "not all contiguous in one memory order"),
    "a number": ((A, 1.0), f"an operand is a number, and {FEW}"),
    "a list": ((A, [1.0] * 5), "an operand is a list or a tuple"),
    "a subclass": ((np.ma.ones(5), A), "a is a numpy.ma.MaskedArray, which may add by its own rules"),
    "to_numpy": (
        (A, Series()),
        "b is a test_explain.Series, which may add by its own rules; for vecadd's own",
    ),
    "its advice": ((A, Series()), "pass b.to_numpy()"),
    "longdouble": ((np.ones(5, "g"), np.ones(5, "g")), "unsupported dtype"),
    "byte order": ((np.ones(5, ">f4"),) * 2, "unsupported dtype"),
    "objects": ((np.ones(5, object),) * 2, "unsupported dtype"),
    "0-d": ((np.ones(()),) * 2, "the operands have no dimension"),
    "a larger out": ((A, A, np.ones((2, 5))), f"the shapes differ, and {FEW}"),
    "an out of another dtype": ((A, A, np.ones(5, "f4")), f"the dtypes differ, and {FEW}"),
    "misaligned": ((np.ones(41, "u1")[1:].view("f4"), np.ones(10, "f4")), "an operand's elements are misaligned"),
}


@pytest.mark.parametrize("name", REASONS)
def test_each_reason_names_the_true_cause(name, monkeypatch):
    monkeypatch.setattr(Series, "__module__", "test_explain")
    operands, why = REASONS[name]
    found = vecadd.explain(*operands)
    assert found.route == ("host" if name.startswith("many elements") else "numpy")
    assert why in found.why


def test_an_out_that_overlaps_in_part_is_a_reason():
    memory = np.ones(9)
    assert "out overlaps an input in part" in vecadd.explain(memory[:5], A, memory[1:6]).why


def test_an_out_in_a_tuple_is_its_array():
    assert vecadd.explain(A, A, out=(np.zeros(5),)).route == "host"


@pytest.mark.filterwarnings("ignore:'where' used without 'out'")
@pytest.mark.parametrize("keywords", [{"where": True}, {"casting": "no"}, {"dtype": "f8"}, {"order": "F"}], ids=str)
def test_a_keyword_of_numpys_is_a_reason(keywords):
    assert vecadd.explain(A, A, **keywords).why == "it has a keyword of numpy.add's own"


def test_no_advice_is_given_that_would_raise(double, child):
    code = "import numpy as np, vecadd\nprint(vecadd.explain(np.ones(5), np.ones(5)).why)"
    assert child(code, VECADD_DOUBLE_DRIVER="0").stdout == "CUDA is not in play: there is no NVIDIA driver here\n"
    assert "where vecadd.info() shows one, vecadd.use_gpu() makes it a candidate" in child(code).stdout


def test_arrays_that_are_made_fit_for_the_gpu_say_so(device):
    found = vecadd.explain(np.ones((3, 5)), A, device="cuda")
    assert found.route == "transfer"
    assert found.why == (
        "device= asks for it; the shapes differ, so the operands are first made one run of memory of the sum's dtype"
    )


def test_hybrid_says_what_it_leaves_to_the_processor(device):
    assert "less than 32 MiB" in vecadd.explain(A, A, device="hybrid").why
    large = np.zeros(2**22)
    assert "page-locked arrays (vecadd.empty_pinned) are shared" in vecadd.explain(large, large, device="hybrid").why


def test_the_text_is_a_line_for_each_fact():
    lines = str(vecadd.explain(A, np.ones(5), np.zeros(5))).splitlines()
    assert lines[0].split(None, 1) == ["host", "the processor adds"]
    assert [line.split()[0] for line in lines] == ["host", "why", "a", "b", "out", "simd", "threads", "stores"]
    assert "ndarray, float64, shape (5,), 40 B" in lines[2]
    assert repr(vecadd.explain(A, A)) == str(vecadd.explain(A, A))


def test_the_gpu_is_told(device):
    assert ["device", "cuda, the thread's current GPU"] in facts(vecadd.explain(A, A, device="cuda"))
    assert ["device", "cuda:0"] in facts(vecadd.explain(A, A, device=0))


def facts(found):
    return [line.split(None, 1) for line in str(found).splitlines()]


def test_operands_are_described():
    described = vecadd.explain(STRIDED, 10**60).operands
    assert described["a"] == "ndarray, float64, shape (5,), 40 B, strides (16,) bytes"
    assert described["b"] == f"the number {str(10**60)[:37]}..."
    assert described["out"] == "a new array"
    assert vecadd.explain(np.array([1], object), 1 << 20_000).operands["b"] == "an int of 20,001 bits"
    assert vecadd.explain(A, [1.0] * 5).operands["b"] == "a list"
    assert ", in Fortran order" in vecadd.explain(np.ones((2, 3), order="F"), np.ones((2, 3))).operands["a"]


def test_html_is_a_table_and_escaped():
    class Tag(np.ndarray):
        pass

    Tag.__module__, Tag.__name__ = "lib", "<b>"
    html = vecadd.explain(A.view(Tag), A)._repr_html_()
    assert html.startswith("<table>")
    assert "lib.&lt;b&gt;" in html
    assert "<b>" not in html


@pytest.mark.parametrize(
    ("x", "y", "why"),
    [
        (A, np.ones(5, np.float32), "the dtypes differ"),
        (A, np.ones((2, 5)), "the shapes differ"),
        (np.ones(()), np.ones(()), "the operands have no dimension"),
        (A, None, "an operand is a number"),
    ],
    ids=["dtypes", "shapes", "0-d", "a number"],
)
def test_arrays_of_another_library_that_it_adds_itself(x, y, why, monkeypatch):
    import test_tensors

    monkeypatch.setitem(vecadd.interop.LIBRARIES, "tensors", test_tensors.Tensors())
    found = vecadd.explain(test_tensors.Tensor(x), 1.0 if y is None else test_tensors.Tensor(y))
    assert found.route == "library"
    assert found.why.startswith(why)
    assert "the operands' library adds" in str(found)


def test_an_out_that_overlaps_itself_is_numpys_on_the_host():
    a, b = np.arange(6.0), np.ones(6)
    out, want = np.zeros(3), np.zeros(3)
    shape = {"shape": (3, 2), "strides": (8, 0)}
    assert vecadd.add(a.reshape(3, 2), b.reshape(3, 2), np.lib.stride_tricks.as_strided(out, **shape)).shape == (3, 2)
    np.add(a.reshape(3, 2), b.reshape(3, 2), np.lib.stride_tricks.as_strided(want, **shape))
    np.testing.assert_array_equal(out, want)


def test_an_out_of_another_dtype_is_named_as_the_reason():
    wide = np.ones((300, 1100), np.float32)
    found = _core.explain_route(wide[:, :1000], wide[:, 100:], np.empty((300, 1000)))
    assert (found["route"], found["why"]) == ("numpy", "out is of another dtype than the sum")


@pytest.mark.parametrize("swapped", [False, True])
def test_fewer_elements_are_numpys_where_either_operand_is_converted(swapped):
    wide, narrow = np.ones((64, 1100)), np.ones((64, 1100), np.float32)
    assert _core.explain_route(wide[:, 1:], wide[:, 1:])["route"] == "host"
    found = _core.explain_route(*((narrow, wide) if swapped else (wide, narrow)))
    assert (found["route"], found["why"]) == ("numpy", FEW)


def test_it_says_that_the_gpu_adds_its_own(device):
    x = vecadd.to_device(A)
    assert vecadd.explain(x, x).route == "device"
    assert "not tuned" in str(vecadd.explain(x, x))

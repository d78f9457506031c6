"""Which calls take which route: a call that falls back to numpy.add without need is a regression."""

import numpy as np
import pytest
from arrays import DTYPES, lane, offset_empty

import vecadd
from vecadd import _core

LARGE = 2**25


def route(*arguments, **keywords):
    return _core.explain_route(*arguments, **keywords)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("n", [0, 1, 1000, LARGE])
def test_contiguous_arrays_of_one_dtype_are_added_by_us(n, dtype):
    a, out = np.empty(n, dtype), np.empty(n, dtype)
    for found in (route(a, a), route(a, a, out), route(a, a, a), route(a, a, out=(out,)), route(a, a, device="cpu")):
        assert found["route"] == "host"
        assert found["threads"] >= 1
        assert found["stores"] in ("ordinary", "streaming")
        assert found["simd"] == _core.host_facts()["simd"]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_any_alignment_that_the_elements_have_is_ours(dtype):
    offset = dtype.alignment
    a, out = offset_empty(dtype, 100, offset), offset_empty(dtype, 100, 3 * offset)
    assert route(a, a, out)["route"] == "host"


@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 4), (1, 5), (1, 1)], ids=str)
def test_arrays_of_one_memory_order_are_ours(shape):
    c, f = np.empty(shape), np.empty(shape, order="F")
    assert route(c, c, c)["route"] == "host"
    assert route(f, f, f)["route"] == "host"


def test_read_only_operands_are_ours():
    a = np.empty(100)
    a.flags.writeable = False
    assert route(a, a)["route"] == "host"


def test_operands_that_overlap_each_other_are_ours():
    memory = np.empty(200)
    assert route(memory[:100], memory[50:150], np.empty(100))["route"] == "host"


@pytest.mark.parametrize("dtype", [np.dtype("q"), np.dtype("l"), np.dtype("=i8"), np.dtype("<i8")], ids=str)
def test_all_names_of_a_dtype_are_ours(dtype):
    assert route(np.empty(10, dtype), np.empty(10, dtype))["route"] == "host"


NUMPY = {
    "two dtypes": lambda: (np.empty(5, "f4"), np.empty(5, "f8")),
    "broadcasting": lambda: (np.empty((3, 5)), np.empty(5)),
    "scalar": lambda: (np.empty(5), 1.0),
    "0-d": lambda: (np.empty(()), np.empty(())),
    "list": lambda: (np.empty(5), [1, 2, 3, 4, 5]),
    "strides": lambda: (np.empty(10)[::2], np.empty(5)),
    "two memory orders": lambda: (np.empty((3, 4)), np.empty((3, 4), order="F")),
    "misaligned": lambda: (np.empty(41, "u1")[1:].view("f4"), np.empty(10, "f4")),
    "byte order": lambda: (np.empty(5, ">f4"), np.empty(5, ">f4")),
    "longdouble": lambda: (np.empty(5, "g"), np.empty(5, "g")),
    "objects": lambda: (np.empty(5, object), np.empty(5, object)),
    "subclass": lambda: (np.ma.empty(5), np.empty(5)),
    "out that overlaps in part": lambda: (lambda memory: (memory[:5], memory[:5], memory[1:6]))(np.empty(9)),
    "out of another dtype": lambda: (np.empty(5, "f4"), np.empty(5, "f4"), np.empty(5, "f8")),
    "larger out": lambda: (np.empty(5), np.empty(5), np.empty((2, 5))),
}


@pytest.mark.parametrize("name", NUMPY)
def test_everything_else_is_numpys_and_says_why(name):
    found = route(*NUMPY[name]())
    assert found["route"] == "numpy"
    assert isinstance(found["why"], str)
    assert found["why"]


@pytest.mark.parametrize("keywords", [{"where": True}, {"casting": "no"}, {"dtype": "f8"}, {"order": "F"}], ids=str)
def test_numpys_keywords_are_numpys(keywords):
    found = route(np.empty(5), np.empty(5), **keywords)
    assert found["route"] == "numpy"
    assert found["why"]


def test_small_sums_are_made_by_one_thread_with_ordinary_stores():
    a = np.empty(100, np.float32)
    found = route(a, a, a)
    assert (found["threads"], found["stores"]) == (1, "ordinary")


@pytest.mark.skipif(_core.host_facts()["threads"] < 2, reason="this process has one processor")
def test_large_sums_are_made_by_several_threads():
    a = np.empty(LARGE, np.float32)
    assert route(a, a, np.empty(LARGE, np.float32))["threads"] > 1


def test_asking_adds_nothing():
    a, out = np.ones(10), np.zeros(10)
    route(a, a, out)
    assert (out == 0).all()


def test_asking_refuses_what_adding_refuses():
    a = np.ones(10)
    with pytest.raises(ValueError, match="device"):
        route(a, a, device="nonsense")
    with pytest.raises(TypeError, match="stream"):
        route(a, a, stream=0)
    with pytest.raises(TypeError, match="argument"):
        route(a)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("n", [0, 1, 1000])
def test_device_arrays_are_added_on_the_device(device, n, dtype):
    a = vecadd.to_device(np.zeros(n, dtype))
    assert route(a, a)["route"] == "device"
    assert route(a, a, a, stream=0)["route"] == "device"


def test_foreign_arrays_are_added_on_the_device_at_any_alignment_of_their_lane(foreign):
    a = foreign(np.zeros(10, np.complex64), offset=lane(np.dtype("complex64")).itemsize)
    assert route(a, a)["route"] == "device"


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_host_arrays_go_through_the_gpu_when_asked_to(device, dtype):
    a = np.zeros(1000, dtype)
    assert route(a, a, device="cuda")["route"] == "transfer"
    assert route(a, a, a, device="cuda:0")["route"] == "transfer"


def test_host_arrays_stay_on_the_host_in_a_process_that_uses_cuda(device):
    vecadd.to_device(np.zeros(10))
    a = np.zeros(LARGE, np.float32)
    assert route(a, a)["route"] == "host"


def test_host_sums_make_no_cuda_call(child):
    child(
        "import numpy as np, vecadd\n"
        "a = np.zeros(2**20)\n"
        "vecadd.add(a, a, a); vecadd._core.explain_route(a, a); vecadd.add(a, 1)\n"
        "vecadd.add([1], [2]); vecadd.add(a, a, device='cpu')\n"
        "maps = open('/proc/self/maps').read()\n"
        "assert 'libcuda' not in maps and '/dev/nvidia' not in maps\n"
    )

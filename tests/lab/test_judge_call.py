"""_core.judge_call: a call is prepared, compared and timed in C, and every wrong byte is counted where it is."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from arrays import DTYPES

import vecadd
from vecadd import _core
from vecadd.bench.options import find_dtype

N = 300
GUARD = 40
START = (GUARD, 2 * GUARD + N, 3 * GUARD + 2 * N)
SIZE = 4 * GUARD + 3 * N
VERSIONS = 3
FAILING = (
    "cudaEventRecord",
    "cudaMemcpyAsync",
    "cudaLaunchKernel",
    "cudaEventElapsedTime",
    "cudaHostAlloc",
    "cudaStreamCreateWithFlags",
    "cudaStreamQuery",
    "cudaOccupancyMaxActiveBlocksPerMultiprocessor",
)
FOUND = ("in front of a", "a", "between a and b", "b", "between b and out", "out", "after out")


def operands(dtype: str = "float32") -> np.ndarray[Any, Any]:
    """a, b and their sum for each version, of small numbers that no sum rounds."""
    made = np.zeros((VERSIONS, 3, N), find_dtype(dtype))
    for version in range(VERSIONS):
        made[version, 0] = (np.arange(N) % 5 + version).astype(made.dtype)
        made[version, 1] = (np.arange(N) % 3 + 1).astype(made.dtype)
        made[version, 2] = np.add(made[version, 0], made[version, 1])
    return made


@pytest.fixture
def call(device: int) -> Callable[..., dict[str, Any]]:
    """call(f, dtype="float32", **how): one judged call of f, or of the rung of that name."""

    def judged(f: Any, dtype: str = "float32", **how: Any) -> dict[str, Any]:
        memory = _core.to_device(np.zeros(SIZE, find_dtype(dtype)))
        return _core.judge_call(f, memory, START, _core.to_device(operands(dtype)), **how)

    return judged


def wrong(found: dict[str, Any]) -> dict[str, tuple[int, int]]:
    """Of each region with wrong elements: how many, and the first."""
    return {name: counts[:2] for name, counts in zip(FOUND, found["regions"], strict=True) if counts[0]}


def right(a: Any, b: Any, out: Any) -> None:
    vecadd.add(a, b, out=out)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_nothing_is_wrong_with_a_right_sum_of_any_dtype(dtype: Any, call: Callable[..., dict[str, Any]]) -> None:
    found = call(right, str(dtype), before=1, last=2, donor=1, pokes=(0, 7, N - 1), delay=1000)
    assert wrong(found) == {}
    assert found["seconds"] >= 0
    assert found["host"] > 0


@pytest.mark.parametrize("rung", ["naive", "tuned", "float4"])
def test_a_rung_is_called_by_its_name(rung: str, call: Callable[..., dict[str, Any]]) -> None:
    assert wrong(call(rung)) == {}


PLACES = (0, START[0], START[0] + N, START[1], START[1] + N, START[2], START[2] + N)  # where each region begins


@pytest.mark.parametrize(
    ("region", "index", "version"),
    [(region, index, 0) for region in (0, 2, 4, 6) for index in (0, GUARD - 1)]
    + [(1, 3, 0), (3, 3, 0), (5, 0, 0), (5, 7, 1), (5, N - 1, 2)],
)
def test_one_wrong_element_is_found_where_it_is(region: int, index: int, version: int, device: int) -> None:
    """In an operand, in out, and at each end of what is around them."""
    memory, at = _core.to_device(np.zeros(SIZE, np.float32)), PLACES[region] + index

    def one_wrong(a: Any, b: Any, out: Any) -> None:
        right(a, b, out)
        _core.clear(memory[at : at + 1])

    found = _core.judge_call(one_wrong, memory, START, _core.to_device(operands()), now=version)
    assert wrong(found) == {FOUND[region]: (1, index)}


def test_out_is_poisoned_before_each_call(call: Callable[..., dict[str, Any]]) -> None:
    found = call(lambda a, b, out: None)
    assert found["regions"][5] == (N, 0, N, 0, 0)
    assert found["at_rest"] == found["later"] == (N, 0, N, 0, 0)


def test_operands_are_other_ones_until_the_gpu_comes_to_the_call(call: Callable[..., dict[str, Any]]) -> None:
    """A call that looks at them at once, past the order of the stream, finds those of `before`."""
    seen = []

    def looks(a: Any, b: Any, out: Any) -> None:
        seen.append(a.numpy())
        right(a, b, out)

    assert wrong(call(looks, now=2, before=1)) == {}
    assert seen[0].tolist() == operands()[2, 0].tolist()


def test_sums_of_other_operands_are_told_apart(device: int) -> None:
    versions = operands()
    sums = {version: _core.to_device(versions[version, 2]) for version in (1, 2)}
    zeros = _core.to_device(np.zeros(N, np.float32))
    for version, counted in ((1, (N, 0, 0, N, 0)), (2, (N, 0, 0, 0, N))):
        memory = _core.to_device(np.zeros(SIZE, np.float32))
        found = _core.judge_call(
            lambda a, b, out, version=version: vecadd.add(sums[version], zeros, out=out),
            memory, START, _core.to_device(versions), now=0, before=1, last=2,
        )  # fmt: skip
        assert found["regions"][5] == counted


def test_poked_elements_are_the_donors(call: Callable[..., dict[str, Any]]) -> None:
    seen = []

    def looks(a: Any, b: Any, out: Any) -> None:
        right(a, b, out)
        seen.append(a.numpy())

    assert wrong(call(looks, now=0, donor=2, pokes=(5, 6))) == {}
    expected = operands()[0, 0]
    expected[5:7] = operands()[2, 0][5:7]
    assert seen[0].tolist() == expected.tolist()


def test_bare_calls_prepare_and_compare_nothing(device: int) -> None:
    memory, versions = _core.to_device(np.zeros(SIZE, np.float32)), _core.to_device(operands())
    _core.judge_call(right, memory, START, versions)
    found = _core.judge_call(lambda a, b, out: _core.clear(out), memory, START, versions, bare=True)
    assert wrong(found) == {}
    assert memory[START[0] : START[0] + N].numpy().tolist() == operands()[0, 0].tolist()
    assert memory[START[2] : START[2] + N].numpy().tolist() == [0.0] * N


def test_the_arrays_are_what_convert_makes_of_them(call: Callable[..., dict[str, Any]]) -> None:
    found = call(lambda a, b, out: right(a[0], b[0], out[0]), convert=lambda x: [x])
    assert wrong(found) == {}


def test_an_exception_of_the_contestant_is_raised(call: Callable[..., dict[str, Any]]) -> None:
    def raising(a: Any, b: Any, out: Any) -> None:
        raise LookupError("of its own")

    with pytest.raises(LookupError, match="of its own"):
        call(raising)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"now": 3}, "now is 3 of 3 versions"),
        ({"before": -2}, "before is -2 of 3 versions"),
        ({"now": -1}, "now must be a version"),
        ({"pokes": (0,)}, "pokes need a donor"),
        ({"pokes": (N,), "donor": 1}, "not the index"),
        ({"pokes": (0,) * 17, "donor": 1}, "more than 16"),
    ],
)
def test_numbers_that_fit_nothing_are_refused(
    how: dict[str, Any], words: str, call: Callable[..., dict[str, Any]]
) -> None:
    with pytest.raises(ValueError, match=words):
        call(right, **how)


@pytest.mark.parametrize("start", [(0, N - 1, 2 * N), (-1, N, 2 * N), (0, N, SIZE - N + 1)])
def test_arrays_that_overlap_or_do_not_fit_are_refused(start: tuple[int, int, int], device: int) -> None:
    memory, versions = _core.to_device(np.zeros(SIZE, np.float32)), _core.to_device(operands())
    with pytest.raises(ValueError, match="memory"):
        _core.judge_call(right, memory, start, versions)


def test_other_arrays_are_refused(device: int) -> None:
    memory, versions = _core.to_device(np.zeros(SIZE, np.float32)), operands()
    for given in ((np.zeros(SIZE), _core.to_device(versions)), (memory, versions), (memory, memory)):
        with pytest.raises(TypeError, match="must be a contiguous DeviceArray"):
            _core.judge_call(right, given[0], START, given[1])
    with pytest.raises(ValueError, match="in memory's dtype"):
        _core.judge_call(right, memory, START, _core.to_device(versions.astype(np.int8)))
    with pytest.raises(TypeError, match="not a device rung"):
        _core.judge_call("pageable", memory, START, _core.to_device(versions))


@pytest.mark.parametrize("n", [1, 4, 5, 6, 40])
def test_repeat_repeats_each_row(n: int, device: int) -> None:
    rows = np.arange(30, dtype=np.int16).reshape(2, 3, 5)
    found = _core.repeat(_core.to_device(rows), n).numpy()
    assert found.tolist() == np.resize(rows.repeat(1), (2, 3, 5))[:, :, np.arange(n) % 5].tolist()


def on_a_side_stream(side: Any) -> Callable[..., None]:
    """An addition on a stream that waits for that of the operands, and that nothing waits for."""

    class Alone:
        """The array's memory without its stream."""

        def __init__(self, x: Any) -> None:
            self.x = x
            self.__cuda_array_interface__ = x.__cuda_array_interface__ | {"stream": None}

    def add(a: Any, b: Any, out: Any) -> None:
        a.__dlpack__(stream=side)
        vecadd.add(Alone(a), Alone(b), out=Alone(out), stream=side)

    return add


@pytest.mark.parametrize("n", [1, 300, 5000])
def test_a_call_on_a_side_stream_is_seen_by_a_blockade_whatever_runs_first(n: int, double: Any, device: int) -> None:
    memory = _core.to_device(np.zeros(3 * n, np.float32))
    versions = _core.to_device(np.ones((1, 3, n), np.float32) + np.array([0, 0, 1], np.float32).reshape(3, 1))
    side = double.stream_create(0, 1)
    add = on_a_side_stream(side)
    for seed in range(50):
        double.reset(seed)
        found = _core.judge_call(add, memory, (0, n, 2 * n), versions, blockade=1)
        assert found["unordered"] or found["regions"][5][0]
    double.stream_destroy(side)


def waits(a: Any, b: Any, out: Any) -> None:
    right(a, b, out)
    out.numpy()


@pytest.mark.parametrize("by", ["a kernel", "a kernel that it waits for", "copies"])
def test_a_call_in_the_order_of_its_stream_is_right_in_a_blockade(
    by: str, double: Any, call: Callable[..., dict[str, Any]]
) -> None:
    def by_copies(a: Any, b: Any, out: Any) -> None:
        double.device_write(out.__cuda_array_interface__["data"][0], (a.numpy() + b.numpy()).tobytes())

    contestants = {"a kernel": right, "a kernel that it waits for": waits, "copies": by_copies}
    for seed in range(20):
        double.reset(seed)
        found = call(contestants[by], before=1, delay=1000, blockade=1000)
        assert wrong(found) == {}
        assert not found["unordered"]


def test_a_call_that_raises_ends_the_blockade(double: Any, call: Callable[..., dict[str, Any]]) -> None:
    def raising(a: Any, b: Any, out: Any) -> None:
        raise LookupError("of its own")

    call(right)
    before = double.live()
    with pytest.raises(LookupError, match="of its own"):
        call(raising, blockade=1000)
    assert double.live() == before
    assert wrong(call(right)) == {}


@pytest.mark.parametrize("function", FAILING)
def test_a_call_that_fails_leaks_nothing(function: str, double: Any, device: int) -> None:
    memory, versions = _core.to_device(np.zeros(SIZE, np.float32)), _core.to_device(operands())
    _core.judge_call(right, memory, START, versions)
    before = double.live()
    double.fail(function, 2 if function in ("cudaEventRecord", "cudaMemcpyAsync", "cudaLaunchKernel") else 1, 2)
    with pytest.raises((MemoryError, RuntimeError)):
        _core.judge_call(right, memory, START, versions, blockade=1000)
    assert double.live() == before
    assert wrong(_core.judge_call(right, memory, START, versions)) == {}

"""The ladder from Python: every device rung adds, by name, with its parameters, and refuses what it does not take."""

from typing import Any

import numpy as np
import pytest
import sanitized_rungs

import vecadd
from vecadd import _core, ladder

RUNGS: dict[str, dict[str, Any]] = {rung["name"]: rung for rung in _core.rungs() if rung["kind"] == "device"}
WRITTEN = [name for name, rung in RUNGS.items() if rung["sum"] == "written"]
ADDED = [name for name, rung in RUNGS.items() if rung["sum"] == "added"]
BLOCKED = [name for name, rung in RUNGS.items() if rung["block"] > 1]
NUMPY_DTYPES = ("float32", "float64", "float16", "int32", "int8")
CASES = [
    (name, dtype) for name, rung in RUNGS.items() if rung["sum"] != "raced" for dtype in rung["dtypes"]
    if dtype in NUMPY_DTYPES
]  # fmt: skip


def operands(dtype: str, n: int = 1027) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Small whole numbers: every dtype represents them and their sums."""
    numbers = np.arange(n)
    return (numbers % 13).astype(dtype), (numbers % 7).astype(dtype)


def usual_dtype(name: str) -> str:
    return "float32" if "float32" in RUNGS[name]["dtypes"] else "float16"


def additions(name: str) -> int:
    return RUNGS[name]["block"] if RUNGS[name]["sum"] in ("added by each thread", "raced") else 1


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_a_rung_adds(name: str, dtype: str, device: int) -> None:
    x, y = operands(dtype)
    result = ladder.run(name, vecadd.to_device(x), vecadd.to_device(y))
    np.testing.assert_array_equal(result.numpy(), (x + y) * np.dtype(dtype).type(additions(name)))


@pytest.mark.parametrize("name", WRITTEN)
def test_no_element_is_added_twice(name: str, device: int) -> None:
    x, y = operands(usual_dtype(name), 70_001)
    a = vecadd.to_device(x)
    ladder.run(name, a, vecadd.to_device(y), a)
    np.testing.assert_array_equal(a.numpy(), x + y)


@pytest.mark.parametrize("name", ADDED)
def test_an_accumulating_rung_adds_to_outs_contents(name: str, device: int) -> None:
    x, y = operands(usual_dtype(name))
    out = vecadd.to_device(np.full_like(x, 100))
    ladder.run(name, vecadd.to_device(x), vecadd.to_device(y), out)
    np.testing.assert_array_equal(out.numpy(), 100 + x + y)


@pytest.mark.parametrize("name", [name for name in RUNGS if "accumulate" in RUNGS[name]["params"]])
@pytest.mark.parametrize("accumulate", [0, 1])
def test_accumulate_says_whether_out_is_added_to(name: str, accumulate: int, device: int) -> None:
    x, y = operands("float32")
    out = vecadd.to_device(np.full_like(x, 100))
    ladder.run(name, vecadd.to_device(x), vecadd.to_device(y), out, accumulate=accumulate)
    np.testing.assert_array_equal(out.numpy(), 100 * accumulate + x + y)
    fresh = ladder.run(name, vecadd.to_device(x), vecadd.to_device(y), accumulate=accumulate)
    np.testing.assert_array_equal(fresh.numpy(), x + y)


def test_atomic_additions_are_all_counted(device: int) -> None:
    x, y = np.full(1000, 1, np.float32), np.full(1000, 2, np.float32)
    result = ladder.run("atomic", vecadd.to_device(x), vecadd.to_device(y), block=256)
    np.testing.assert_array_equal(result.numpy(), np.full(1000, 768, np.float32))


def test_a_race_loses_additions(device: int, runtime: str) -> None:
    if runtime != "gpu":
        pytest.skip("the double runs one thread at a time: nothing is lost there")
    x, y = np.full(1000, 1, np.float32), np.full(1000, 2, np.float32)
    result = ladder.run("race", vecadd.to_device(x), vecadd.to_device(y), block=256)
    assert (result.numpy() < 768).all()


@pytest.mark.parametrize("name", [name for name in RUNGS if RUNGS[name]["sum"] != "raced"])
@pytest.mark.parametrize("n", [0, 1, 3])
def test_a_rung_adds_next_to_nothing(name: str, n: int, device: int) -> None:
    x, y = operands(usual_dtype(name), n)
    result = ladder.run(name, vecadd.to_device(x), vecadd.to_device(y))
    np.testing.assert_array_equal(result.numpy(), (x + y) * additions(name))


@pytest.mark.parametrize("name", [name for name in BLOCKED if RUNGS[name]["sum"] != "raced"])
@pytest.mark.parametrize("block", [32, 1024])
def test_a_block_size_changes_no_sum(name: str, block: int, device: int) -> None:
    x, y = operands(usual_dtype(name))
    times = block if RUNGS[name]["sum"] == "added by each thread" else 1
    result = ladder.run(name, vecadd.to_device(x), vecadd.to_device(y), block=block)
    np.testing.assert_array_equal(result.numpy(), (x + y) * times)


@pytest.mark.parametrize("name", ["single_thread", "tuned"])
def test_a_rung_with_a_block_size_of_its_own_takes_no_other(name: str, device: int) -> None:
    x = vecadd.to_device(np.ones(10, np.float32))
    with pytest.raises(ValueError, match=f"rung {name} has a block size of its own"):
        ladder.run(name, x, x, block=128)


@pytest.mark.parametrize(("name", "param"), [(name, param) for name, rung in RUNGS.items() for param in rung["params"]])
def test_a_parameter_is_taken_within_its_bounds(name: str, param: str, device: int) -> None:
    least, usual, most = RUNGS[name]["params"][param]
    x, y = operands("float32")
    a, b = vecadd.to_device(x), vecadd.to_device(y)
    np.testing.assert_array_equal(ladder.run(name, a, b, **{param: usual}).numpy(), x + y)
    for outside in (least - 1, most + 1):
        with pytest.raises(ValueError, match=f"rung {name}: {param} .* must be {least} to {most}, not {outside}"):
            ladder.run(name, a, b, **{param: outside})


def test_a_parameter_that_a_rung_does_not_have_is_an_error(device: int) -> None:
    x = vecadd.to_device(np.ones(10, np.float32))
    with pytest.raises(TypeError, match="rung naive has no parameter stride"):
        ladder.run("naive", x, x, stride=2)
    with pytest.raises(TypeError, match="integer"):
        ladder.run("strided", x, x, stride=2.0)  # type: ignore[arg-type]


def test_a_rung_refuses_dtypes_that_it_has_no_kernel_for(device: int) -> None:
    x = vecadd.to_device(np.ones(10, np.int8))
    with pytest.raises(TypeError, match="rung atomic does not take int8"):
        ladder.run("atomic", x, x)


def test_the_rungs_for_the_sanitizer_are_all_and_right(device: int) -> None:
    assert sanitized_rungs.main() == 0
    ran = {rung["name"] for rung, *_ in sanitized_rungs.cases()}
    assert ran == {*ladder.names("device"), *ladder.names("latency"), *ladder.names("matrix")} - {"race"}

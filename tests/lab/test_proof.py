"""benchmarks.proof: its exact sums are those of rational arithmetic, and a wrong sum or flag of vecadd's is found."""

import json
import re
import subprocess
import sys
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache, partial
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import vecadd
from benchmarks.proof import __main__ as proof
from benchmarks.proof import cases, device_ways, exact, flags, host_ways, places, ways
from vecadd import _core
from vecadd.bench.machine import ROOT
from vecadd.figures import read_fields

pytestmark = pytest.mark.no_native

Dtype = np.dtype[Any]
Array = NDArray[Any]

FLOAT16, BFLOAT16, FLOAT8 = map(np.dtype, ("float16", ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn))
LEVEL, LEVELS = _core.host_facts()["simd"], _core.host_facts()["simd_levels"]


# The exact sums


@cache
def numbers(dtype: Dtype) -> tuple[list[float], list[int]]:
    """All finite numbers from 0 on, in order, and their bits; the next power of two represents what is beyond."""
    patterns = np.arange(1 << (8 * dtype.itemsize - 1)).astype(f"u{dtype.itemsize}")
    with np.errstate(invalid="ignore"):  # signalling NaNs
        values = patterns.view(dtype).astype(np.float64)
    finite = values[np.isfinite(values)].tolist()
    beyond = 480.0 if dtype == FLOAT8 else 2.0 ** round(np.log2(finite[-1]))
    return [*finite, beyond], patterns[: len(finite) + 1].tolist()


def rounded(x: Fraction, dtype: Dtype) -> int:
    """The bits of the number nearest to |x|: of two, the one with even bits."""
    values, patterns = numbers(dtype)
    above = min(bisect_left(values, abs(x)), len(values) - 1)
    below = max(above - 1, 0)
    low, high = abs(abs(x) - Fraction(values[below])), abs(Fraction(values[above]) - abs(x))
    return patterns[below] if low < high or (low == high and patterns[below] % 2 == 0) else patterns[above]


def rational_sum(a: int, b: int, dtype: Dtype) -> int | None:
    """The sum's bits; None for a NaN."""
    x, y = (float(np.array([bits], f"u{dtype.itemsize}").view(dtype)[0]) for bits in (a, b))
    sign = 1 << (8 * dtype.itemsize - 1)
    if not (np.isfinite(x) and np.isfinite(y)):
        total = x + y
        return None if np.isnan(total) else a if np.isinf(x) else b
    exactly = Fraction(x) + Fraction(y)
    if exactly == 0:
        return a & b & sign
    bits = rounded(exactly, dtype) | (sign if exactly < 0 else 0)
    return None if dtype == FLOAT8 and bits & 0x7F == 0x7F else bits


def lefts_of(dtype: Dtype) -> list[int]:
    """Zeros, subnormals, the least and the greatest normal ones, 1, half its last place, infinities, NaNs."""
    one = int(np.ones(1, dtype).view(f"u{dtype.itemsize}")[0])
    fraction = {FLOAT16: 10, BFLOAT16: 7, FLOAT8: 3}[dtype]
    greatest = numbers(dtype)[1][-2]
    place = 1 << fraction
    found = {0, 1, place - 1, place, one - (fraction + 1) * place, one, one + 1, greatest - 1, greatest, greatest + 1}
    found |= {greatest - (fraction + 1) * place, greatest - (fraction + 1) * place - 1, greatest + 2}
    return sorted(found | {bits | 1 << (8 * dtype.itemsize - 1) for bits in found})


def due(dtype: Dtype, left: int, columns: int) -> tuple[Array, Array]:
    sums, raised = np.empty((1, columns), dtype), np.empty((1, columns), np.uint8)
    exact.sums((dtype, dtype, dtype, dtype), left, sums, raised)
    return sums.view(f"u{dtype.itemsize}")[0], raised[0]


@pytest.mark.parametrize("dtype", [FLOAT16, BFLOAT16, FLOAT8], ids=str)
def test_exact_sums_are_those_of_rational_numbers_rounded_once(dtype: Dtype) -> None:
    lefts = lefts_of(dtype)
    random = np.random.default_rng(7)
    columns = 1 << 8 * dtype.itemsize
    for left in lefts:
        sums, _ = due(dtype, left, columns)
        for right in (*lefts, *random.integers(0, columns, 20).tolist()):
            want = rational_sum(left, right, dtype)
            got = int(sums[right])
            assert got == want or (want is None and np.isnan(sums[right : right + 1].view(dtype)[0])), (left, right)


@pytest.mark.parametrize(
    ("dtype", "a", "b", "flag"),
    [
        (FLOAT16, 0x7BFF, 0x4C00, exact.OVERFLOW),  # half a last place of the greatest
        (FLOAT16, 0x7BFF, 0x4BFF, 0),
        (FLOAT16, 0x7C00, 0xFC00, exact.INVALID),
        (FLOAT16, 0x7C00, 0x7BFF, 0),
        (FLOAT16, 0x3C00, 0x7D00, exact.INVALID),  # a signalling NaN
        (FLOAT16, 0x3C00, 0x7E00, 0),
        (BFLOAT16, 0x7F7F, 0x7B00, 0),  # an infinity by the rounding of a finite float32
        (BFLOAT16, 0x7F7F, 0x7F7F, exact.OVERFLOW),
        (BFLOAT16, 0x7F80, 0xFF80, exact.INVALID),
        (FLOAT8, 0x7E, 0x7E, 0),  # a NaN in place of an infinity
    ],
)
def test_flags_are_those_that_numpy_reports(dtype: Dtype, a: int, b: int, flag: int) -> None:
    assert due(dtype, a, 1 << 8 * dtype.itemsize)[1][b] == flag
    operands = np.array([[a], [b]], f"u{dtype.itemsize}").view(dtype)
    with flags.heard() as heard:
        np.add(*operands)
    assert set(heard) == ({flags.SAID[flag]} if flag else set())


def test_exact_sums_know_nothing_of_vecadd() -> None:
    text = "".join(Path(exact.__file__).with_suffix(ending).read_text() for ending in (".h", ".c"))
    assert re.findall(r'#include "(.*)"', text) == ["benchmarks/proof/exact.h"]
    assert not re.search(r"\b(float|double)\b(?!8|16|32)", re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL))


# The host


def small(dtype: Any, lefts: int = 1) -> cases.Case:
    dtype = np.dtype(dtype)
    if dtype.itemsize == 1:
        return cases.Case(dtype, dtype, dtype, range(1 << 8))
    return cases.Case(dtype, dtype, dtype, range(0x3C00, 0x3C00 + lefts), least=1)


@pytest.mark.parametrize("dtype", cases.SHORT, ids=str)
def test_the_host_adds_every_value_at_this_level(dtype: Dtype) -> None:
    """All pairs of 8 bits; of 16 bits one left operand and every right one."""
    rows = list(ways.prove(small(dtype), host_ways.ways(), 60))
    assert {row["way"] for row in rows} >= {"contiguous", "contiguous, 2 MiB", "contiguous, 32 KiB"}
    assert all(ways.is_right(row) for row in rows), rows
    assert {row["pairs"] for row in rows} == {1 << 16}
    assert {row["simd"] for row in rows} == {LEVEL}


def test_a_proof_is_made_in_parts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Rows of another commit do not stay."""
    file = tmp_path / "proof.json"
    for dtypes in (["int8", "uint8"], ["bool", "uint8"]):
        monkeypatch.setattr(places, "cases", lambda lefts, dtypes=dtypes: map(small, dtypes))
        assert proof.main(["--places", "host", "--levels", LEVEL, "--json", str(file)]) == 0
    found = read_fields(file)
    ways_each = len(found["rows"]) // 3
    assert [row["a"] for row in found["rows"]] == [name for name in ("int8", "bool", "uint8") for _ in range(ways_each)]
    assert proof._others(file, {**found["meta"], "commit": "0" * 12}, []) == []


def test_the_command_proves_other_levels_in_processes_of_their_own(tmp_path: Path) -> None:
    """As it is called: a spawned process cannot import its main module."""
    file = tmp_path / "proof.json"
    command = [sys.executable, "-m", "benchmarks.proof", "--places", "host", "--dtypes", "bool", "--lefts", "1"]
    subprocess.run([*command, "--json", str(file)], cwd=ROOT, check=True, capture_output=True)
    assert {row["simd"] for row in read_fields(file)["rows"]} == set(LEVELS)


@pytest.mark.slow
def test_a_run_proves_every_level_of_the_host(tmp_path: Path) -> None:
    assert proof.main(["--places", "host", "--lefts", "2", "--json", str(tmp_path)]) == 0
    (file,) = tmp_path.iterdir()
    found = read_fields(file)
    assert re.fullmatch(r"proof-.+\.json", file.name)
    assert found["meta"].keys() >= {"machine", "commit", "date", "seconds", "command"}
    assert {row["simd"] for row in found["rows"]} == set(LEVELS)
    assert {row["a"] for row in found["rows"]} == {dtype.name for dtype in cases.SHORT}
    assert {(row["a"], row["b"], row["out"]) for row in found["rows"]} >= {("int16", "uint16", "int32")}


def one_wrong(add: Callable[..., Any], *operands: Any, **keywords: Any) -> Any:
    """add, but that 0x3c00 + 0x1234 has its last bit wrong."""
    out = add(*operands, **keywords)
    bits = out.view("u2")
    bits[(operands[0].view("u2") == 0x3C00) & (operands[1].view("u2") == 0x1234)] ^= 1
    return out


def test_one_wrong_sum_is_found_and_told_with_its_bits(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    right = int(due(FLOAT16, 0x3C00, 1 << 16)[0][0x1234])
    monkeypatch.setattr(vecadd, "add", partial(one_wrong, vecadd.add))
    monkeypatch.setattr(places, "cases", lambda lefts: [small(FLOAT16)])
    file = tmp_path / "proof.json"
    assert proof.main(["--places", "host", "--levels", LEVEL, "--json", str(file)]) == 1
    first = {"a": "0x3c00", "b": "0x1234", "sum": f"{right ^ 1:#06x}", "due": f"{right:#06x}"}
    rows = read_fields(file)["rows"]
    assert all(row["wrong"] == 1 and row["first"] == first for row in rows)
    told = [line for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
    assert [json.loads(line)["first"] for line in told] == [first] * len(rows)


@pytest.mark.parametrize(
    ("deaf", "calls", "first"),
    [("over", 2, "0x5400 + 0x7bfe in a call of 64"), ("invalid", -(-1022 // 32), "0x5400 + 0x7c01 in a call of 32")],
)
def test_a_flag_that_is_not_reported_is_found(deaf: Any, calls: int, first: str) -> None:
    """64 overflows beside the two greatest numbers, each in a call of its own; there are 1022 signalling NaNs."""

    def add(*operands: Any) -> Any:
        with np.errstate(**{deaf: "ignore"}):
            return vecadd.add(*operands)

    case = replace(small(FLOAT16), lefts=range(0x5400, 0x5401))
    (row,) = ways.prove(case, [replace(host_ways.ways()[0], flagged=flags.Flagged(add))], 60)
    assert row["wrong"] == 0
    assert row["flags"]["wrong"] == calls
    assert row["flags"]["first"] == f"{first}: nothing"
    assert not ways.is_right(row)


def test_a_flag_without_its_sum_is_found() -> None:
    def add(a: Array, b: Array, out: Array) -> Any:
        np.add(np.float16(6e4), np.float16(6e4))
        return vecadd.add(a, b, out)

    (row,) = ways.prove(small(FLOAT16), [replace(host_ways.ways()[0], flagged=flags.Flagged(add))], 60)
    assert row["flags"]["wrong"] > 0
    assert not ways.is_right(row)


def test_a_way_that_would_take_too_long_says_so_and_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cases, "BLOCK", 1 << 16)
    (row, *_) = ways.prove(small(np.int16, lefts=4), host_ways.ways(), 0)
    assert (row["pairs"], row["left_out"][:15]) == (2 << 16, "all would take ")
    assert ways.is_right(row)


def test_a_way_that_fails_is_a_failure() -> None:
    def broken(block: cases.Block) -> Array:
        raise RuntimeError("no such kernel")

    (row,) = ways.prove(small(np.int16), [replace(host_ways.ways()[0], add=broken)], 60)
    assert row["error"] == "RuntimeError: no such kernel"
    assert not ways.is_right(row)


# The device


def test_the_gpu_adds_in_every_layout_and_by_every_rung(device: int) -> None:
    rows = list(ways.prove(small(FLOAT16, lefts=2), device_ways.ways(), 60))
    assert [row for row in rows if not ways.is_right(row)] == []
    rungs = {
        f"rung {rung['name']}"
        for rung in _core.rungs()
        if rung["kind"] in device_ways.RUNGS
        and "float16" in rung["dtypes"]
        and rung["min_cc"] <= device_ways.capability()
    }
    assert {row["way"] for row in rows} >= {*device_ways.LAYOUTS, "number and row", "lists", *rungs}
    assert {row["layout"] for row in rows if "layout" in row} >= {"run", "same_dtype", "number", "turned"}
    assert {row["route"] for row in rows} >= {"device", "transfer", "device rung", "transfer rung", "latency rung"}
    assert next(row for row in rows if row["route"] == "transfer")["flags"]["silent"] > 60_000


@pytest.mark.parametrize(
    ("a", "b", "out", "layout"),
    [
        ("int8", "float16", "float16", "general"),
        ("int16", "uint16", "int32", "mixed"),
        (BFLOAT16, "bool", BFLOAT16, "general"),
    ],
)
def test_the_gpu_converts(device: int, a: Any, b: str, out: Any, layout: str) -> None:
    case = cases.Case(np.dtype(a), np.dtype(b), np.dtype(out), range(0xC0, 0xC1), least=1)
    rows = list(ways.prove(case, device_ways.ways(), 60))
    assert [row for row in rows if not ways.is_right(row)] == []
    assert {row["layout"] for row in rows if "layout" in row} >= {layout}
    assert {row["route"] for row in rows} >= {"device", "transfer"}

"""rungs()["load"]: each kernel loads by the instruction that its row names. Read from the machine code for sm_90."""

import re

import pytest

from vecadd import _core, code, ladder
from vecadd.bench.contestants import load_instruction

pytestmark = pytest.mark.no_native

RUNGS = {rung["name"]: rung for rung in _core.rungs() if rung["kind"] == "device"}
LOAD = re.compile(r"\b(?:LDG|LDGSTS|UBLKCP|UTMALDG)\b[.\w]*")


@pytest.fixture(autouse=True)
def built_for_sm_90() -> None:
    if code.find_disassembler() is None:
        pytest.skip(code.MISSING)
    if "sm_90" not in code.find_cubins():
        pytest.skip("the extension has no machine code for sm_90")


def loads_of(name: str) -> list[str]:
    """The load instructions of the rung's kernel, for float32 or, of a precision rung, float16."""
    return LOAD.findall(ladder.sass(name, arch="sm_90"))


def width(load: str) -> int:
    """Bits of a load from global memory into registers or shared memory; bulk copies are any size."""
    if load.startswith("U"):
        return 1 << 20
    return next((bits for bits in (128, 64, 16, 8) if re.search(rf"\.[US]?{bits}\b", load)), 32)


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNGS)
def test_a_kernel_loads_by_the_instruction_of_its_row(name: str) -> None:
    load, found = RUNGS[name]["load"], loads_of(name)
    assert found.count(load) >= RUNGS[name]["loads_in_flight"]
    widest = {each for each in found if width(each) >= width(load)}
    assert widest == {load}, "besides it a kernel has narrower loads alone: those of its tail"


@pytest.mark.parametrize("bytes_", [16, 8, 4])
@pytest.mark.parametrize("through_l1", [0, 1])
def test_an_asynchronous_copy_is_named_by_its_width_and_way(bytes_: int, through_l1: int) -> None:
    """Copies of less than 16 bytes have no way past the L1."""
    way = f"async_copy_addI13f32_componentLj{bytes_}ELb{int(through_l1 or bytes_ < 16)}ELj2E"
    (kernel,) = [name for name in code.find_cubins()["sm_90"] if way in name]
    loads = LOAD.findall(code.disassemble([kernel], "sm_90")[kernel])
    named = load_instruction(RUNGS["async_copy"], {"bytes": bytes_, "through_l1": through_l1})
    assert {load for load in loads if load.startswith("LDGSTS")} == {named}


@pytest.mark.parametrize("name", RUNGS)
def test_a_load_is_as_wide_as_the_row_says(name: str) -> None:
    load = RUNGS[name]["load"]
    if load.startswith("U"):
        assert RUNGS[name]["bytes_per_load"] == 16, "a thread's share of a bulk copy"
    else:
        assert width(load) == 8 * RUNGS[name]["bytes_per_load"]

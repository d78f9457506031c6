"""rungs()["load"]: each kernel loads by the instruction that its row names. Read from the machine code for sm_90."""

import os
import re
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

from vecadd import _core
from vecadd.bench import ladder

pytestmark = pytest.mark.no_native

ROOT = Path(__file__).resolve().parents[2]
OBJECTS = ROOT / "build" / "release" / "obj" / "cuda"
RUNGS = {rung["name"]: rung for rung in _core.rungs() if rung["kind"] == "device"}
ELSEWHERE = {"tuned": "add"}  # rungs whose kernel is not in their own file
# The kernel of a rung's usual parameters, by a part of its mangled name, where its file has several for a dtype.
USUAL = {"async_copy": "Lj16ELb0ELj2E", "tuned": "Lb0EL9add_loads0ELb0E"}
LOAD = re.compile(r"\b(?:LDG|LDGSTS|UBLKCP|UTMALDG)\b[.\w]*")


def tool() -> str | None:
    """cuobjdump, which calls nvdisasm by way of PATH: a toolkit's, or those of NVIDIA's packages."""
    packages = Path(sysconfig.get_path("purelib"), "nvidia", "cu13", "bin")
    folders = os.pathsep.join((os.environ.get("PATH", ""), "/usr/local/cuda/bin", str(packages)))
    return shutil.which("cuobjdump", path=folders)


def cuobjdump(path: Path, *options: str) -> str:
    """What it says of the machine code for sm_90."""
    found = tool()
    if found is None:
        pytest.skip("needs cuobjdump and nvdisasm (pip install nvidia-cuda-cuobjdump nvidia-cuda-nvdisasm)")
    environment = {**os.environ, "PATH": os.pathsep.join((str(Path(found).parent), os.environ.get("PATH", "")))}
    command = [found, "--gpu-architecture", "sm_90", *options, str(path)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    if run.returncode or "sm_90" not in run.stdout:
        pytest.skip(f"no machine code for sm_90 in {path.relative_to(ROOT)}: {run.stderr.strip()[-200:]}")
    return run.stdout


def loads_of(name: str, usual: str | None = None) -> list[str]:
    """The load instructions of the rung's kernel, for float32 or, of a precision rung, float16; ``usual`` is a part of
    the kernel's name."""
    usual = USUAL.get(name, "") if usual is None else usual
    stem = ELSEWHERE.get(name, f"lab/*/[0-9][0-9]_{name}")
    paths = list(OBJECTS.glob(f"{stem}.cu.o"))
    if not paths:
        pytest.skip(f"no {stem}.cu.o in {OBJECTS}: the extension was built elsewhere")
    component = "f32_component" if "float32" in RUNGS[name]["dtypes"] else "f16_component"
    functions = re.findall(r"^(?:STT_)?FUNC\b.*\s(\S+)$", cuobjdump(paths[0], "--dump-elf-symbols"), re.MULTILINE)
    kernels = [function for function in functions if component in function and usual in function]
    assert kernels, f"{paths[0]} has no kernel for {component}"
    code = cuobjdump(paths[0], "--dump-sass", "--function", ",".join(kernels))  # of all kernels it takes twice as long
    assert code.count("Function : ") == len(kernels)
    return LOAD.findall(code)


def width(load: str) -> int:
    """Bits of a load from global memory into registers or shared memory; bulk copies are any size."""
    if load.startswith("U"):
        return 1 << 20
    return next((bits for bits in (128, 64, 16, 8) if re.search(rf"\.[US]?{bits}\b", load)), 32)


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
    way = f"Lj{bytes_}ELb{int(through_l1 or bytes_ < 16)}ELj2E"
    named = ladder.load(RUNGS["async_copy"], {"bytes": bytes_, "through_l1": through_l1})
    assert set(loads_of("async_copy", way)) >= {named}
    assert {load for load in loads_of("async_copy", way) if load.startswith("LDGSTS")} == {named}


@pytest.mark.parametrize("name", RUNGS)
def test_a_load_is_as_wide_as_the_row_says(name: str) -> None:
    load = RUNGS[name]["load"]
    if load.startswith("U"):
        assert RUNGS[name]["bytes_per_load"] == 16, "a thread's share of a bulk copy"
    else:
        assert width(load) == 8 * RUNGS[name]["bytes_per_load"]

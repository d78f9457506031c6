"""NVIDIA's disassembler on this package's own extension: where it is, which kernels there are, what they look like."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import vecadd

PACKAGES = "nvidia-cuda-cuobjdump nvidia-cuda-nvdisasm"
MISSING = (
    "cuobjdump and nvdisasm are neither in CUDA_HOME, PATH and /usr/local/cuda nor among this Python's packages: "
    f"pip install {PACKAGES}"
)
TIMEOUT = 1200.0  # seconds; all rungs' kernels take 10 on an idle processor

_CUBIN = re.compile(r"\.(sm_\w+)\.cubin")
_SYMBOL = re.compile(r"^(?:STT_)?FUNC\b.*\s(\S+)$", re.MULTILINE)
_LISTING = re.compile(r"^\s*Function : (\S+)\n(.*?)(?=^\s*Function : |\Z)", re.MULTILINE | re.DOTALL)
_INSTRUCTION = re.compile(r"^\s*(/\*[0-9a-f]{4,}\*/)\s+(.*?)\s*;", re.MULTILINE)


def find() -> Path | None:
    """cuobjdump, from CUDA_HOME, CUDA_PATH, PATH, /usr/local/cuda or this Python's packages; nvdisasm, which it calls,
    comes from the same places."""
    found = shutil.which("cuobjdump", path=_folders())
    return Path(found) if found and shutil.which("nvdisasm", path=_folders()) else None


@cache
def symbols() -> Mapping[str, tuple[str, ...]]:
    """The compiler's names of the kernels that the extension has machine code of, by architecture.

    Raises FileNotFoundError where there is no disassembler."""
    architectures = sorted(set(_CUBIN.findall(_run("--list-elf"))))
    return {each: tuple(_SYMBOL.findall(_run(*_of(each), "--dump-elf-symbols"))) for each in architectures}


def listings(names: Iterable[str], architecture: str) -> dict[str, str]:
    """The machine code of the kernels of these names, an instruction a line behind its address, without the NOPs that
    fill its last cache line.

    Raises FileNotFoundError where there is no disassembler."""
    said = _run(*_of(architecture), "--dump-sass", "--function", ",".join(names))
    return {name: _instructions(code) for name, code in _LISTING.findall(said)}


def _instructions(code: str) -> str:
    found = _INSTRUCTION.findall(code)
    while found[-1][1] == "NOP":
        found.pop()
    return "".join(f"{address}  {text} ;\n" for address, text in found)


def _of(architecture: str) -> tuple[str, str]:
    return "--gpu-architecture", architecture


@cache
def _run(*options: str) -> str:
    tool = find()
    if tool is None:
        raise FileNotFoundError(MISSING)
    environment = {**os.environ, "PATH": _folders()}
    command = [str(tool), *options, str(_extension())]
    said = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=TIMEOUT)
    if said.returncode:
        raise RuntimeError(f"{tool} failed: {said.stderr.strip()[-500:]}")
    return said.stdout


def _extension() -> Path:
    """The extension beside this file: the tests' double of the CUDA runtime, which may be in its place, has no machine
    code."""
    return next(Path(vecadd.__file__).parent.glob("_core.*so"))


def _folders() -> str:
    homes = (os.environ.get(name) for name in ("CUDA_HOME", "CUDA_PATH"))
    bins = (str(Path(home, "bin")) for home in homes if home)
    packages = (str(Path(entry, "nvidia", "cu13", "bin")) for entry in sys.path)
    return os.pathsep.join((*bins, os.environ.get("PATH", ""), "/usr/local/cuda/bin", *packages))

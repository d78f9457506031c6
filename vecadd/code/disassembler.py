"""NVIDIA's disassembler on this package's own extension: where it is, which kernels there are, what they look like.

cuobjdump takes the cubins, compiled kernels for one architecture each, out of the extension, and nvdisasm reads one.
(cuobjdump would call nvdisasm itself, for all cubins in place of the few that are asked for.)
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import vecadd

PACKAGES = "nvidia-cuda-cuobjdump nvidia-cuda-nvdisasm"
MISSING = (
    "cuobjdump and nvdisasm are neither in CUDA_HOME, PATH and /usr/local/cuda nor among this Python's packages: "
    f"pip install {PACKAGES}"
)
TIMEOUT = 300.0  # seconds; a cubin takes half a second

_ARCHITECTURE = re.compile(r"\.(sm_\w+)\.cubin$")
_SECTION = re.compile(rb"\.text\.(\w+)\0")
_LISTING = re.compile(r"^//-+ \.text\.(\w+) -+\n(.*?)(?=^//-|\Z)", re.MULTILINE | re.DOTALL)
_LINE = re.compile(r"^([.$\w]+):|^\s+/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;", re.MULTILINE)
_LABEL = re.compile(r"`\(([.$\w]+)\)")


def find() -> tuple[str, str] | None:
    """cuobjdump and nvdisasm, from CUDA_HOME, CUDA_PATH, PATH, /usr/local/cuda or this Python's packages; None where
    one is missing."""
    homes = (os.environ.get(name) for name in ("CUDA_HOME", "CUDA_PATH"))
    bins = (str(Path(home, "bin")) for home in homes if home)
    packages = (str(Path(entry, "nvidia", "cu13", "bin")) for entry in sys.path)
    folders = os.pathsep.join((*bins, os.environ.get("PATH", ""), "/usr/local/cuda/bin", *packages))
    cuobjdump, nvdisasm = (shutil.which(name, path=folders) for name in ("cuobjdump", "nvdisasm"))
    return (cuobjdump, nvdisasm) if cuobjdump and nvdisasm else None


@cache
def kernels() -> Mapping[str, Mapping[str, bytes]]:
    """The cubin of each kernel of the extension, by architecture and the compiler's name of the kernel.

    Raises FileNotFoundError where there is no disassembler."""
    cuobjdump, _ = _tools()
    found: dict[str, dict[str, bytes]] = {}
    with TemporaryDirectory(prefix="vecadd-cubins-") as folder:
        _run(cuobjdump, "--extract-elf", "all", str(_extension()), folder=folder)
        for path in sorted(Path(folder).iterdir()):
            cubin = path.read_bytes()
            of_it = {name.decode(): cubin for name in _SECTION.findall(cubin)}
            found.setdefault(_ARCHITECTURE.findall(path.name)[0], {}).update(of_it)
    return found


def listings(names: Iterable[str], architecture: str) -> dict[str, str]:
    """The machine code of the kernels of these names, an instruction a line behind its address, without the NOPs that
    fill its last cache line.

    Raises FileNotFoundError where there is no disassembler."""
    _, nvdisasm = _tools()
    wanted = set(names)
    cubins = {kernels()[architecture][name] for name in wanted}
    with TemporaryDirectory(prefix="vecadd-cubins-") as folder, ThreadPoolExecutor(os.cpu_count()) as pool:

        def disassembled(number: int, cubin: bytes) -> str:
            path = Path(folder, f"{number}.cubin")
            path.write_bytes(cubin)
            return _run(nvdisasm, "--print-code", "--no-dataflow", str(path), folder=folder)

        said = "".join(pool.map(disassembled, count(), cubins))
    return {name: _instructions(code) for name, code in _LISTING.findall(said) if name in wanted}


def _instructions(code: str) -> str:
    """nvdisasm's instructions, with the addresses of those that branches lead to in place of labels."""
    lines: list[tuple[str, str]] = []
    labels: dict[str, str] = {}
    at: list[str] = []
    for label, address, text in _LINE.findall(code):
        if label:
            at.append(label)
            continue
        labels |= dict.fromkeys(at, f"0x{int(address, 16):x}")
        at = []
        lines.append((address, text))
    while lines[-1][1] == "NOP":
        lines.pop()
    return "".join(f"/*{address}*/  {_LABEL.sub(lambda found: labels[found[1]], text)} ;\n" for address, text in lines)


def _run(*command: str, folder: str) -> str:
    said = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT)
    if said.returncode:
        raise RuntimeError(f"{command[0]} failed: {said.stderr.strip()[-500:]}")
    return said.stdout


def _tools() -> tuple[str, str]:
    found = find()
    if found is None:
        raise FileNotFoundError(MISSING)
    return found


def _extension() -> Path:
    """The extension beside this file: the tests' double of the CUDA runtime, which may be in its place, has no machine
    code."""
    return next(Path(vecadd.__file__).resolve().parent.glob("_core.*so"))

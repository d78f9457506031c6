"""Where the CUDA toolkit is; which packages to install where none works."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

USUAL_PLACE = Path("/usr/local/cuda")
# Newer ones read what an older nvcc made.
DISASSEMBLER = ("nvidia-cuda-cuobjdump>=13.2", "nvidia-cuda-nvdisasm>=13.2")


@dataclass(frozen=True)
class Toolkit:
    """A CUDA compiler that works: where it is, and what is compiled and linked with it."""

    nvcc: Path
    version: tuple[int, int]
    include: Path
    cudart_static: Path


class ToolkitError(Exception):
    """No nvcc that works; says where it was looked for and what to do."""


def wanted(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether this build has CUDA in it: yes, unless VECADD_CUDA=0."""
    return _switched_on(environ, "VECADD_CUDA", "builds with CUDA (the default), 0 for the host alone")


def laboratory_wanted(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether this build has the laboratory in it: yes, unless VECADD_LAB=0."""
    return _switched_on(environ, "VECADD_LAB", "builds the laboratory too (the default), 0 what adds alone")


def _switched_on(environ: Mapping[str, str], variable: str, meaning: str) -> bool:
    setting = environ.get(variable, "1")
    if setting not in ("0", "1"):
        raise ToolkitError(f"{variable}={setting!r}: 1 {meaning}")
    return setting == "1"


def minimum_version() -> tuple[int, int]:
    """The oldest toolkit that compiles here. The headers of 13.0 and 13.1 declare rsqrt() as glibc 2.42 does not."""
    libc = re.match(r"glibc (\d+)\.(\d+)", os.confstr("CS_GNU_LIBC_VERSION") or "")
    return (13, 2) if libc and (int(libc[1]), int(libc[2])) >= (2, 42) else (13, 0)


def requirement() -> str:
    """The compiler's requirement: the metapackage, since nvidia-cuda-nvcc alone pulls an assembler that does not
    match."""
    major, minor = minimum_version()
    return f"cuda-toolkit[nvcc,cccl]=={major}.{minor}.*"


def missing_requirements(environ: Mapping[str, str] = os.environ) -> list[str]:
    """What has to be installed before a build: nothing where an nvcc works or none is wanted."""
    if not wanted(environ):
        return []
    try:
        find(environ)
    except ToolkitError:
        return [requirement()]
    return []


def find(environ: Mapping[str, str] = os.environ) -> Toolkit:
    """The first toolkit that works, or ToolkitError."""
    rejected = []
    for where, nvcc in _candidates(environ):
        try:
            return _examine(nvcc)
        except ToolkitError as error:
            rejected.append(f"  {where}: {error}")
    major, minor = minimum_version()
    raise ToolkitError(
        f"vecadd needs nvcc {major}.{minor} or later, and none was found that works.\n"
        + "".join(line + "\n" for line in rejected)
        + "Looked at CUDACXX, CUDA_HOME, CUDA_PATH, PATH, /usr/local/cuda and this Python's packages.\n"
        "Any of these helps:\n"
        f"  pip install '{requirement()}'    brings nvcc as packages\n"
        "  CUDA_HOME=/path/to/cuda    where a toolkit is elsewhere\n"
        "  VECADD_CUDA=0              builds for the host alone, without any GPU support"
    )


def _candidates(environ: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    if compiler := environ.get("CUDACXX"):
        yield "CUDACXX", Path(shutil.which(compiler, path=environ.get("PATH")) or compiler)
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if root := environ.get(variable):
            yield variable, Path(root, "bin", "nvcc")
    for directory in environ.get("PATH", "").split(os.pathsep):
        if (nvcc := Path(directory, "nvcc")).is_file():
            yield "PATH", nvcc
    if (nvcc := USUAL_PLACE / "bin" / "nvcc").is_file():
        yield str(USUAL_PLACE), nvcc
    for directory in sys.path:
        if (nvcc := Path(directory, "nvidia", "cu13", "bin", "nvcc")).is_file():
            yield "Python packages", nvcc


def _examine(nvcc: Path) -> Toolkit:
    """The toolkit of `nvcc` by its own output: one on PATH may be a shim without a toolkit, or a link from
    elsewhere."""
    release = re.search(r"release (\d+)\.(\d+)", _output(nvcc, "--version"))
    if not release:
        raise ToolkitError(f"{nvcc} --version does not give a version")
    version = int(release[1]), int(release[2])
    if version < minimum_version():
        raise ToolkitError(f"{nvcc} is version {version[0]}.{version[1]}")
    top = re.search(r"^#\$ TOP=(.*)$", _output(nvcc, "--dryrun", "-x", "cu", "-E", os.devnull), re.MULTILINE)
    if not top:
        raise ToolkitError(f"{nvcc} --dryrun does not give the toolkit's folder")
    root = Path(os.path.normpath(top[1].strip()))
    return Toolkit(nvcc, version, _under(root, "include", "cuda_runtime_api.h").parent, _cudart_static(root))


def _cudart_static(root: Path) -> Path:
    for folder in ("lib64", "lib"):
        if (library := root / folder / "libcudart_static.a").is_file():
            return library
    return _under(root, "lib", "libcudart_static.a")


def _under(root: Path, folder: str, name: str) -> Path:
    """root/folder/name, or the same in targets/<this machine>."""
    for path in (root / folder / name, *sorted(root.glob(f"targets/*-linux/{folder}/{name}"))):
        if path.is_file():
            return path
    raise ToolkitError(f"{root} has no {folder}/{name}")


def _output(nvcc: Path, *arguments: str) -> str:
    try:
        run = subprocess.run([nvcc, *arguments], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolkitError(f"{nvcc} does not run: {error}") from error
    if run.returncode:
        raise ToolkitError(f"{nvcc} {arguments[0]} fails: {run.stderr.strip()[:200]}")
    return run.stdout + run.stderr

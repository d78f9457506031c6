"""Which sources there are, and the flags that each is compiled with."""

import os
import re
import sysconfig
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from build_native import toolkit
from build_native.incremental import ROOT, BuildError

CORE = ("csrc/*/*.c", "csrc/lab/*/*.c", "cuda/lab/*.c")
MODULE = ("csrc/py/*.c", "csrc/py/*/*.c")
KERNELS = ("cuda/*.cu", "cuda/lab/*.cu")
DOUBLE = ("tests/double/*.cpp",)
TESTS = ("tests/c/**/test_*.c",)
HOST_TESTS = ("tests/c/**/test_host*.c",)
GPU_TESTS = ("tests/c/kernels/test_device_rungs.c",)  # tests of kernels that the double cannot run
EXACT = ("benchmarks/proof/*.c",)
CONFORMANCE = ("tests/double/conformance/*.c", "tests/double/conformance/*.cpp", "tests/double/conformance/*.cu")

# In a build without CUDA this file takes the place of what calls CUDA; csrc/py/module.c answers for the laboratory's.
WITHOUT_CUDA = "csrc/transfer/without_cuda.c"
CALLS_CUDA = (
    *("csrc/gpu/", "csrc/transfer/", "cuda/", "csrc/lab/ladder/", "csrc/lab/limits/"),
    *("csrc/py/lab/call_costs.c", "csrc/py/lab/device_rungs.c", "csrc/py/lab/judge.c", "csrc/py/lab/probes.c"),
)

# For "..." alone: as -I, csrc would offer our folders in place of the system's.
INCLUDES = ("-iquotecsrc", "-iquote.")
COMMON = (
    *("-O3", "-ffp-contract=off", "-fPIC", "-fvisibility=hidden", "-pthread", "-D_GNU_SOURCE", "-Wall", "-Wextra"),
    "-Werror=switch",  # a switch over dtypes or components without a default must have all cases
    *INCLUDES,
)
C_FLAGS = ("-std=c17", "-fno-math-errno", *COMMON)
# -Wno-psabi: without it g++ notes an ABI change of its version 4.6 for every kernel that takes a tensor map.
CXX_FLAGS = ("-std=c++17", "-Wno-psabi", *COMMON)
TEST_INCLUDES = ("-iquotetests/double", "-iquotetests/c")
# g++ 12 leaves out the rounding of two doubles to float, and back, where it makes vectors of them (-O2, -O3).
DOUBLE_FLAGS = ("-DVECADD_DOUBLE=1", "-fno-tree-slp-vectorize", *TEST_INCLUDES)

# By the end of a C file's name: the processor that it is for, and its flags.
SIMD = {
    "_avx2": ("x86_64", ("-mavx2", "-mf16c")),
    "_avx512": ("x86_64", ("-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mavx2", "-mf16c")),
    "_neon": ("aarch64", ()),
}

# Machine code for these architectures, PTX for those: from PTX a driver compiles a kernel for any other GPU at its
# first use, and caches the result. 7.5 is the oldest GPU that we support. The laboratory's kernels have machine code
# for 9.0 alone, where their figures are recorded, and PTX for 7.5, or for the first GPU that has their instructions. A
# wheel has 2.2 MB, and may have 3. PTX for 7.5, 8.0 and 9.0 took 120 KB more of it for the laboratory's kernels,
# machine code for four more architectures 25 KB for batch.cu and 350 KB for strided.cu.
OTHER_CODE = ("90", "75")
CODE_OF = {
    "cuda/add.cu": ("75,80,90,100,120", "120"),  # 8.6 and 8.9 run 8.0's
    "cuda/lab/latency.cu": ("90", "75,90"),  # programmatic launches begin with 9.0
    "cuda/lab/probes.cu": ("90", "75,90"),
    "cuda/lab/async_copy.cu": ("90", "80"),
    "cuda/lab/bulk_copy.cu": ("90", "90"),
}
NVCC_FLAGS = (
    *("-std=c++17", "-O3", "-t2", f"-Xcompiler={','.join(INCLUDES)}"),
    "-compress-mode=size",  # an object of 0.35 MB where nvcc's default makes 5.6
    # Without exceptions, RTTI and guarded statics the host half of a .cu file needs no libstdc++.
    "-Xcompiler=-fPIC,-fvisibility=hidden,-fno-exceptions,-fno-rtti,-fno-threadsafe-statics,-Werror=switch",
)

# -z now: no symbol is looked up in the middle of a measurement, and a missing one is seen at import.
# The double decides which allocations find memory, what the clock says and what comes of reads and writes:
# tests/double/{allocations,clock,files}.cpp.
WRAPPED = ("malloc", "calloc", "realloc", "aligned_alloc", "clock_gettime", "pread", "pwrite")
DOUBLE_LINK = tuple(f"-Wl,--wrap={name}" for name in WRAPPED)
MODULE_LINK = ("-shared", "-Wl,-z,now", "-Wl,--as-needed", "-Wl,--exclude-libs,ALL")
LIBC = ("-lm", "-ldl", "-lpthread", "-lrt")  # all but -lm for the static CUDA runtime; one library since glibc 2.34


@dataclass(frozen=True)
class Variant:
    """A way to compile everything. Each has its own folder, so that switching between variants recompiles nothing."""

    name: str
    compile_flags: tuple[str, ...] = ()
    link_flags: tuple[str, ...] = ()
    kernels: bool = True  # False: kernels are the release's objects, and tests/c/kernels is left out
    machine: str = ""  # another processor: cross-compiled without CUDA, run by an emulator

    @property
    def emulator(self) -> tuple[str, ...]:
        return (f"qemu-{self.machine}",) if self.machine else ()


SANITIZED = ("-O1", "-g1", "-fno-omit-frame-pointer")
ADDRESS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
THREAD = ("-fsanitize=thread",)
VARIANTS = {
    variant.name: variant
    for variant in (
        Variant("release", link_flags=("-Wl,-s",)),
        Variant("asan", compile_flags=(*SANITIZED, *ADDRESS), link_flags=ADDRESS),
        # The double runs a kernel on one thread at a time: no race is to be found there, and ThreadSanitizer took
        # 500 s for what takes 1 without it.
        Variant("tsan", compile_flags=(*SANITIZED, *THREAD), link_flags=THREAD, kernels=False),
        Variant("aarch64", link_flags=("-static",), machine="aarch64"),
    )
}


def sources(patterns: Iterable[str]) -> list[Path]:
    found = [path.relative_to(ROOT) for pattern in patterns for path in sorted(ROOT.glob(pattern))]
    return found if toolkit.laboratory_wanted() else [source for source in found if not _is_laboratory(source)]


def _is_laboratory(source: Path) -> bool:
    """Whether it belongs to the laboratory: it lies there, or is a test that includes what does, or a header beside it
    does."""
    if source.parts[0] != "tests":
        return "lab" in source.parts
    included = re.findall(r'^#include "(.+)"', (ROOT / source).read_text(encoding="utf-8"), re.MULTILINE)
    beside = [source.parent / name for name in included if (ROOT / source.parent / name).is_file()]
    return any("lab" in name.split("/") for name in included) or any(map(_is_laboratory, beside))


def core_sources(*, cuda: bool, machine: str) -> list[Path]:
    """CORE without csrc/py, and without the files of the other kind of build and of other processors."""
    found = [source for source in sources(CORE) if source.parts[1] != "py" and _simd(source)[0] in (machine, "any")]
    return [source for source in found if _is_built(source, cuda=cuda)]


def module_sources(*, cuda: bool) -> list[Path]:
    return [source for source in sources(MODULE) if _is_built(source, cuda=cuda)]


def _is_built(source: Path, *, cuda: bool) -> bool:
    if str(source) == WITHOUT_CUDA:
        return not cuda
    return cuda or not str(source).startswith(CALLS_CUDA)


def simd_flags(source: Path) -> tuple[str, ...]:
    return _simd(source)[1]


def _simd(source: Path) -> tuple[str, tuple[str, ...]]:
    return next((row for ending, row in SIMD.items() if source.stem.endswith(ending)), ("any", ()))


def gencode_flags(source: Path) -> list[str]:
    """The architectures of `source`. VECADD_CUDA_ARCHS replaces them for every kernel: machine code for each, and PTX
    for the last."""
    machine, ptx = CODE_OF.get(str(source), OTHER_CODE)
    if (chosen := os.environ.get("VECADD_CUDA_ARCHS")) is not None:
        machine, ptx = chosen, chosen.rpartition(",")[2]
    architectures = machine.split(",")
    if not all(re.fullmatch(r"\d+[af]?", architecture) for architecture in architectures):
        raise BuildError(f"VECADD_CUDA_ARCHS={machine!r}: compute capabilities like 90 or 80,90")
    codes = [(architecture, f"sm_{architecture}") for architecture in architectures]
    codes += [(architecture, f"compute_{architecture}") for architecture in ptx.split(",")]
    return [f"-gencode=arch=compute_{architecture},code={code}" for architecture, code in codes]


def free_threaded() -> bool:
    """Whether this interpreter runs without a GIL: it cannot load abi3 modules and gets a build of its own."""
    return bool(sysconfig.get_config_var("Py_GIL_DISABLED"))


def module_suffix() -> str:
    return str(sysconfig.get_config_var("EXT_SUFFIX")) if free_threaded() else ".abi3.so"


def python_flags() -> tuple[str, ...]:
    """The flags of sources that include Python.h and NumPy's headers."""
    try:
        import numpy
    except ImportError as error:
        raise BuildError("vecadd needs NumPy 2.0 or later to build: pip install 'numpy>=2.0'") from error
    paths = sysconfig.get_paths()
    if not Path(paths["include"], "Python.h").is_file():
        raise BuildError(
            f"vecadd needs Python's headers, and {paths['include']} has no Python.h: install them, on Debian and "
            "Ubuntu by `apt install python3-dev`"
        )
    limited = () if free_threaded() else ("-DPy_LIMITED_API=0x030B0000",)
    laboratory = f"-DVECADD_LAB={int(toolkit.laboratory_wanted())}"
    numpy_api = ("-DNPY_TARGET_VERSION=NPY_2_0_API_VERSION", "-DNPY_NO_DEPRECATED_API=NPY_2_0_API_VERSION")
    folders = dict.fromkeys((paths["include"], paths["platinclude"], numpy.get_include()))
    return (laboratory, *limited, *numpy_api, *(flag for folder in folders for flag in ("-isystem", folder)))

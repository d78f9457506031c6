"""A .cu file as a function of a, b and out: by nvcc where one is found, else by NVRTC.

The file has one ``extern "C"`` function, called add unless another name is given, in one of two forms:

    extern "C" __global__ void add(const T *a, const T *b, T *out, size_t n)
    extern "C" void add(const T *a, const T *b, T *out, size_t n, cudaStream_t stream)

A kernel is launched with one thread an element, in blocks of BLOCK. A function launches what it likes, on that stream.
NVRTC compiles no code of the host, and so only the first form.
"""

import ctypes
import re
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from vecadd._machine import find_cuda_tool, nvidia_packages

BLOCK = 256
TIMEOUT = 120.0  # seconds of nvcc

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)

# `function` launches the kernel whatever the types of its parameters are.
_LAUNCHER = """#include "{path}"
extern "C" int {function}_launched(const void *a, const void *b, void *out, size_t n, cudaStream_t stream)
{{
    void *arguments[] = {{&a, &b, &out, &n}};
    const unsigned blocks = (unsigned)((n + {block} - 1) / {block});
    return (int)cudaLaunchKernel((const void *){function}, dim3(blocks), dim3({block}), arguments, 0, stream);
}}
"""


DEFINE = "define it, or name another by --function"


class ImpossibleError(Exception):
    """The contestant cannot be judged here: something is missing that is not its fault."""


class CompileError(Exception):
    """The compiler refused the file; its words."""


def is_kernel(source: str, function: str) -> bool | None:
    """Whether the file's function of that name is a kernel; None where there is no such function.

    >>> is_kernel('extern "C" __global__ void add(const float *a) {}', "add")
    True
    >>> is_kernel('__global__ void k() {}  extern "C" void add(const float *a) { k<<<1, 1>>>(); }', "add")
    False
    """
    plain = _COMMENT.sub(" ", source)
    found = re.search(rf'extern\s*"C"\s+([^;{{}}()]*(?:\([^()]*\)[^;{{}}()]*)?)\b{re.escape(function)}\s*\(', plain)
    return "__global__" in found[1] if found else None


def function_of(path: Path, function: str, capability: str) -> Callable[[Any, Any, Any], None]:
    """The file's function, to be called with three DeviceArrays. Raises ImpossibleError where it is not there or
    nothing is there to compile it, CompileError for what does not compile."""
    source = path.read_text(encoding="utf-8")
    kernel = is_kernel(source, function)
    if kernel is None:
        raise ImpossibleError(f'{path} has no extern "C" function {function}: {DEFINE}')
    architecture = f"sm_{capability}"
    nvcc = find_cuda_tool("nvcc")
    if nvcc is not None:
        return _by_nvcc(nvcc, path.resolve(), function, kernel=kernel, architecture=architecture)
    if not kernel:
        raise ImpossibleError(f"{path} has code of the host, and no nvcc is found: install CUDA's, or set CUDA_HOME")
    return _by_nvrtc(source, path, function, architecture)


def shared_library(
    nvcc: str, path: Path, function: str, folder: Path, *, kernel: bool, architecture: str
) -> tuple[Path, str]:
    """The compiled file, in that folder, and the name of the function in it that takes pointers, n and a stream."""
    source, library = path, folder / "contestant.so"
    if kernel:
        source = folder / "contestant.cu"
        source.write_text(
            _LAUNCHER.format(path=path, function=function, block=BLOCK), encoding="utf-8", errors="surrogateescape"
        )
    command = [nvcc, "-shared", "-O3", "-std=c++17", "-Xcompiler=-fPIC", f"-arch={architecture}"]
    command += ["-o", str(library), str(source)]
    said = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=TIMEOUT)
    if said.returncode:
        raise CompileError(_first_error(said.stdout + said.stderr))
    return library, f"{function}_launched" if kernel else function


def _by_nvcc(
    nvcc: str, path: Path, function: str, *, kernel: bool, architecture: str
) -> Callable[[Any, Any, Any], None]:
    with tempfile.TemporaryDirectory(prefix="vecadd-judge-") as folder:
        library, name = shared_library(nvcc, path, function, Path(folder), kernel=kernel, architecture=architecture)
        launch = getattr(ctypes.CDLL(str(library)), name)  # the loaded file needs its name no more
    launch.restype = ctypes.c_int if kernel else None
    launch.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_size_t, ctypes.c_void_p]

    def add(a: Any, b: Any, out: Any) -> None:
        status = launch(_pointer(a), _pointer(b), _pointer(out), out.size, None)
        if status:
            raise RuntimeError(f"the launch failed with CUDA error {status}")

    return add


def cubin(source: str, path: Path, architecture: str) -> bytes:
    """The machine code that NVRTC makes; raises ImpossibleError without one."""
    nvrtc = _nvrtc()
    program = ctypes.c_void_p()
    _call(nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), path.name.encode(), 0, None, None))
    given = (f"--gpu-architecture={architecture}", "--std=c++17", f"--include-path={path.resolve().parent}")
    options = (ctypes.c_char_p * len(given))(*(option.encode() for option in given))
    failed = nvrtc.nvrtcCompileProgram(program, len(given), options)
    size = ctypes.c_size_t()
    if failed:
        _call(nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size)))
        log = ctypes.create_string_buffer(size.value)
        _call(nvrtc.nvrtcGetProgramLog(program, log))
        raise CompileError(_first_error(log.value.decode(errors="replace")))
    _call(nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size)))
    code = ctypes.create_string_buffer(size.value)
    _call(nvrtc.nvrtcGetCUBIN(program, code))
    _call(nvrtc.nvrtcDestroyProgram(ctypes.byref(program)))
    return code.raw


def _by_nvrtc(source: str, path: Path, function: str, architecture: str) -> Callable[[Any, Any, Any], None]:
    code = cubin(source, path, architecture)
    driver = ctypes.CDLL("libcuda.so.1")
    module, kernel = ctypes.c_void_p(), ctypes.c_void_p()
    _call(driver.cuModuleLoadData(ctypes.byref(module), code))
    _call(driver.cuModuleGetFunction(ctypes.byref(kernel), module, function.encode()))

    def add(a: Any, b: Any, out: Any) -> None:
        pointers = [ctypes.c_void_p(_pointer(array)) for array in (a, b, out)]
        count = ctypes.c_size_t(out.size)
        values = (ctypes.c_void_p * 4)(*(ctypes.addressof(value) for value in (*pointers, count)))
        blocks = -(-out.size // BLOCK)
        _call(driver.cuLaunchKernel(kernel, blocks, 1, 1, BLOCK, 1, 1, 0, None, values, None))

    return add


def _pointer(array: Any) -> int:
    address: int = array.__cuda_array_interface__["data"][0]
    return address


def _call(status: int) -> None:
    if status:
        raise RuntimeError(f"CUDA gave status {status}")


def _nvrtc() -> ctypes.CDLL:
    found = [str(path) for folder in nvidia_packages() for path in folder.glob("*/lib/libnvrtc.so.*")]
    found += [str(path) for path in Path("/usr/local").glob("cuda*/lib*/libnvrtc.so")]
    for name in (*found, "libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise ImpossibleError(
        "neither nvcc nor NVRTC is found to compile it: install CUDA's toolkit, or pip install nvidia-cuda-nvrtc"
    )


def _first_error(said: str) -> str:
    """The compiler's first line with an error, else its last line."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return next((line for line in lines if "error" in line), lines[-1] if lines else "the compiler said nothing")

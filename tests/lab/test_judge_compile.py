""".cu files: which form a file has, what the compilers say, and that both forms become a function."""

import ctypes
from pathlib import Path

import pytest

from vecadd._machine import find_cuda_tool
from vecadd.judge import compile as compiler
from vecadd.judge.compile import CompileError, ImpossibleError

pytestmark = pytest.mark.no_native

KERNEL = """
extern "C" __global__ void add(const float *a, const float *b, float *out, size_t n)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = a[i] + b[i];
}
"""
LAUNCHER = """
__global__ void kernel(const float *a, const float *b, float *out, size_t n) { out[0] = a[0]; }
// extern "C" __global__ void add(
extern "C" void add(const float *a, const float *b, float *out, size_t n, cudaStream_t stream)
{
    kernel<<<1, 1, 0, stream>>>(a, b, out, n);
}
"""


@pytest.mark.parametrize(
    ("source", "is_kernel"),
    [
        (KERNEL, True),
        (LAUNCHER, False),
        ('extern "C" __global__ __launch_bounds__(256) void add(float *a) {}', True),
        ('extern "C" void __global__ add(float *a) {}', True),
        ('/* extern "C" void add( */ extern "C"\n__global__ void\nadd (float *a) {}', True),
        ("__global__ void add(float *a) {}", None),
        ('extern "C" void other(float *a) {}', None),
    ],
)
def test_a_kernel_is_told_from_a_function_that_launches_one(source: str, is_kernel: bool | None) -> None:
    assert compiler.is_kernel(source, "add") is is_kernel


@pytest.fixture
def nvcc() -> str:
    found = find_cuda_tool("nvcc")
    if found is None:
        pytest.skip("needs nvcc")
    return found


def test_what_does_not_compile_is_told_in_the_compilers_words(nvcc: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.cu"
    path.write_text('extern "C" void add(const float *a) { nothing(a); }')
    with pytest.raises(CompileError, match=r"mine\.cu\(1\): error"):
        compiler.shared_library(nvcc, path, "add", tmp_path, kernel=False, architecture="sm_90")


def test_nvrtc_compiles_a_kernel_and_tells_what_does_not_compile(tmp_path: Path) -> None:
    try:
        code = compiler.cubin(KERNEL, tmp_path / "mine.cu", "sm_90")
    except ImpossibleError as error:
        pytest.skip(str(error))
    assert code.startswith(b"\x7fELF")
    with pytest.raises(CompileError, match="error"):
        compiler.cubin(KERNEL.replace("size_t", "nothing"), tmp_path / "mine.cu", "sm_90")


def test_without_nvcc_a_function_of_the_host_cannot_be_judged(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(compiler, "find_cuda_tool", lambda name: None)
    path = tmp_path / "mine.cu"
    path.write_text(LAUNCHER)
    with pytest.raises(ImpossibleError, match="no nvcc is found"):
        compiler.function_of(path, "add", "90")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["kernel.cu", "launcher.cu"])
def test_the_documents_examples_compile(name: str, nvcc: str, tmp_path: Path) -> None:
    path = Path(__file__).parents[2] / "docs" / "judge" / name
    kernel = compiler.is_kernel(path.read_text(), "add")
    library, found = compiler.shared_library(nvcc, path, "add", tmp_path, kernel=bool(kernel), architecture="sm_90")
    assert found == ("add_launched" if kernel else "add")
    assert ctypes.CDLL(str(library))[found]

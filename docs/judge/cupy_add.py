"""An addition by a kernel of CuPy's, to be judged: vecadd judge docs/judge/cupy_add.py"""

import cupy

BLOCK = 256

kernel = cupy.RawKernel(
    """
    extern "C" __global__ void add(const float *a, const float *b, float *out, size_t n)
    {
        size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
        if (i < n)
            out[i] = a[i] + b[i];
    }
    """,
    "add",
)


def add(a: cupy.ndarray, b: cupy.ndarray, out: cupy.ndarray) -> None:
    kernel((-(-out.size // BLOCK),), (BLOCK,), (a, b, out, cupy.uint64(out.size)))

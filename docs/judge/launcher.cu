// A function that launches what it likes, to be judged: vecadd judge docs/judge/launcher.cu
// 16-byte loads where all three arrays allow them, an element a thread where not.
#include <cuda_runtime.h>
#include <stdint.h>

__global__ static void
add_vectors(const float4 *a, const float4 *b, float4 *out, size_t vectors)
{
    const size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < vectors)
        out[i] = make_float4(a[i].x + b[i].x, a[i].y + b[i].y, a[i].z + b[i].z, a[i].w + b[i].w);
}

__global__ static void
add_elements(const float *a, const float *b, float *out, size_t n)
{
    const size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = a[i] + b[i];
}

extern "C" void
add(const float *a, const float *b, float *out, size_t n, cudaStream_t stream)
{
    const bool aligned = ((uintptr_t)a | (uintptr_t)b | (uintptr_t)out) % sizeof(float4) == 0;
    const size_t vectors = aligned ? n / 4 : 0, rest = n - 4 * vectors;
    if (vectors)
        add_vectors<<<(unsigned)((vectors + 255) / 256), 256, 0, stream>>>((const float4 *)a, (const float4 *)b,
                                                                           (float4 *)out, vectors);
    if (rest)
        add_elements<<<(unsigned)((rest + 255) / 256), 256, 0, stream>>>(a + 4 * vectors, b + 4 * vectors,
                                                                         out + 4 * vectors, rest);
}

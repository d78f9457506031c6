// A kernel to be judged: vecadd judge docs/judge/kernel.cu
// It is launched with one thread an element, in blocks of 256.
extern "C" __global__ void
add(const float *a, const float *b, float *out, size_t n)
{
    const size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = a[i] + b[i];
}

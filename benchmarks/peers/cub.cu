// CUB's DeviceTransform as a C function: the fastest device addition that NVIDIA ships.
#include <cub/device/device_transform.cuh>
#include <cuda/std/functional>
#include <cuda/std/tuple>

extern "C" int
cub_add_float32(const float *a, const float *b, float *c, long long n, cudaStream_t stream)
{
    return cub::DeviceTransform::Transform(cuda::std::make_tuple(a, b), c, n, cuda::std::plus<float>{}, stream);
}

// CUB's DeviceTransform as a C function: the fastest device addition that NVIDIA ships. CUB_TYPE is the elements' type;
// device_peers.py compiles one library for each.
#include <cub/device/device_transform.cuh>
#include <cuda/std/complex>
#include <cuda/std/functional>
#include <cuda/std/tuple>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" int
cub_version(void)
{
    return CCCL_VERSION;
}

extern "C" int
cub_add(const CUB_TYPE *a, const CUB_TYPE *b, CUB_TYPE *c, long long n, cudaStream_t stream)
{
    return cub::DeviceTransform::Transform(cuda::std::make_tuple(a, b), c, n, cuda::std::plus<CUB_TYPE>{}, stream);
}

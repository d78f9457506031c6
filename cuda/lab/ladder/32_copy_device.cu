// copy_device: document 002's function with the memory that its pointers are said to be in: the device's.
//
//   after    naive
//   changes  three new arrays in device memory, a and b copied into two of them, added there as in naive, the sum
//            copied from the third, and all three freed
//   expects  nine arrays are moved in place of three: three times naive's time. And cudaMalloc and cudaFree map and
//            unmap memory, which takes the host hundreds of microseconds, whatever the size up to some MiB.
//   from     founding document 002, 3.7 ms on an A100 where its naive takes 0.24: no link carries its operands in that
//            time, so that its copies cannot have crossed one
//   try      vecadd bench documents --rungs naive,copy_device
#include "cuda/lab/ladder/rung.cuh"

extern "C" const struct rung rung_naive;

enum { BLOCK = 256 };

static cudaError_t
copy_and_add(const struct rung_call *call, void *const own[3], size_t bytes)
{
    const auto stream = static_cast<cudaStream_t>(call->stream);
    struct rung_call add = *call;
    add.a = own[0];
    add.b = own[1];
    add.c = own[2];
    cudaError_t error = cudaMemcpyAsync(own[0], call->a, bytes, cudaMemcpyDefault, stream);
    if (error == cudaSuccess)
        error = cudaMemcpyAsync(own[1], call->b, bytes, cudaMemcpyDefault, stream);
    if (error == cudaSuccess)
        error = static_cast<cudaError_t>(rung_naive.launch(&add));
    if (error == cudaSuccess)
        error = cudaMemcpyAsync(call->c, own[2], bytes, cudaMemcpyDefault, stream);
    return error;
}

/* cudaFree waits until the copies are done; the stream may be one that it does not wait for, so this waits first. */
static int
copy_device_launch(const struct rung_call *call)
{
    if (call->n == 0 || call->describe)
        return rung_naive.launch(call);
    const size_t bytes = call->n * component_size[call->component];
    void *own[3] = {};
    cudaError_t error = cudaSuccess;
    for (int i = 0; i < 3 && error == cudaSuccess; i++)
        error = cudaMalloc(&own[i], bytes);
    if (error == cudaSuccess) {
        error = copy_and_add(call, own, bytes);
        const cudaError_t waited = cudaStreamSynchronize(static_cast<cudaStream_t>(call->stream));
        error = error == cudaSuccess ? waited : error;
    }
    for (int i = 0; i < 3; i++)
        if (own[i]) {
            const cudaError_t freed = cudaFree(own[i]);
            error = error == cudaSuccess ? freed : error;
        }
    return error;
}

extern "C" const struct rung rung_copy_device = {
    .name = "copy_device",
    .kind = RUNG_DEVICE,
    .after = "naive",
    .changes = "device arrays copied into three new ones, added there, copied back, freed",
    .tested = "double",
    .components = ALL_COMPONENTS,
    .family = FAMILY_KERNELS,
    .load = "LDG.E",
    .headline = false,
    .sum = SUM_WRITTEN,
    .bytes_per_element = 12,
    .bytes_per_load = 4,
    .loads_in_flight = 2,
    .block = BLOCK,
    .blocks = 0,
    .min_cc = 0,
    .alignment = 0,
    .params = {},
    .by_name = true,
    .launch = copy_device_launch,
    .run = nullptr,
};

/* What the ladder is compared with: the kernel of vecadd.add, and an addition of copies. */
#include "cuda/kernels.h"
#include "cuda/lab/rung.cuh"
#include "gpu/launch_configs.h"

// tuned: the kernel that vecadd.add launches.
//
//   after    float4
//   changes  any alignment; block, loads and the lines that the L2 gives back come from the table in
//            csrc/gpu/launch_configs.c or from parameters: `loads` 1 plain, 2 evict_last; `demoted` sixtieths of the L2
//            at the end of each input; `warps` a block
//   expects  never slower than another rung; from 256 MiB on 1.5 % over float4 by evict_last, on an H200
//   from     our own measurements
//   try      vecadd bench ladder --rungs float4,tuned

enum { LOADS_BY_TABLE, PLAIN, EVICT_LAST };

static int
tuned_launch(const struct rung_call *call)
{
    if (call->block != 0)
        return cudaErrorInvalidConfiguration; /* chosen by `warps` */
    struct add_call add = {};
    add.component = call->component;
    add.a = call->a;
    add.b = call->b;
    add.c = call->c;
    add.n = call->n;
    add.stream = static_cast<cudaStream_t>(call->stream);
    add.describe = call->describe;
    auto error = static_cast<cudaError_t>(launch_config_choose_on_current_device(&add));
    if (error != cudaSuccess)
        return error;

    const int loads = call->params[0], warps = call->params[1], demoted = call->params[2];
    if (warps != 0)
        add.block = 32 * warps;
    if (loads != LOADS_BY_TABLE) {
        unsigned l2 = 0;
        error = device_attribute(cudaDevAttrL2CacheSize, &l2);
        if (error != cudaSuccess)
            return error;
        add.loads = loads == PLAIN ? LOADS_PLAIN : LOADS_EVICT_LAST;
        add.demoted = l2 / 60 * demoted;
    }
    return add_launch(&add);
}

extern "C" const struct rung rung_tuned = {
    .name = "tuned",
    .after = "float4",
    .changes = "any alignment, block and cache policy by bytes",
    .headline = true,
    .bytes_per_load = 16,
    .block = 0,
    .params = {{"loads", "0 by the table, 1 plain, 2 evict_last", 0, 0, 2},
               {"warps", "warps a block, 0 by the table", 0, 0, 32},
               {"demoted", "sixtieths of the L2 that each input loses evict_last in; loads 0: by the table", 0, 0, 60}},
    .launch = tuned_launch,
};

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

extern "C" const struct rung rung_naive;

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
    .after = "naive",
    .changes = "device arrays copied into three new ones, added there, copied back, freed",
    .by_name = true,
    .launch = copy_device_launch,
};

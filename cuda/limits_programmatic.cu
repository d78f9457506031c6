/* Kernels that do nothing but let the next one begin early, or not: what is left of their time is how programmatic
 * launches follow each other. */
#include "probe_launches.h"
#include "programmatic_launch.cuh"
#include "ptx.cuh"

template <bool Triggers>
__global__ static void
empty_in_turn()
{
    wait_for_prerequisites();
    if (Triggers)
        trigger_dependents();
}

cudaError_t
limits_programmatic_launch(unsigned blocks, unsigned threads, int triggers, cudaStream_t stream)
{
    return launch_programmatic(triggers ? empty_in_turn<true> : empty_in_turn<false>,
                               static_cast<uint64_t>(blocks) * threads, threads, stream);
}

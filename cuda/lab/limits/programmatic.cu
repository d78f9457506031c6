/* Idle kernels that let the next kernel begin early, or do not: their time is that from one programmatic launch to the
 * next. */
#include "cuda/lab/limits/probe_launches.h"
#include "cuda/programmatic_launch.cuh"
#include "cuda/ptx.cuh"

template <bool Triggers>
__global__ static void
idle_in_turn(int64_t cycles)
{
    wait_for_prerequisites();
    if (Triggers)
        trigger_dependents();
    if (cycles) {
        const int64_t begin = cycle_counter();
        while (cycle_counter() - begin < cycles)
            ;
    }
}

cudaError_t
limits_programmatic_launch(unsigned blocks, unsigned threads, int triggers, unsigned cycles, cudaStream_t stream)
{
    return launch_programmatic(triggers ? idle_in_turn<true> : idle_in_turn<false>,
                               static_cast<uint64_t>(blocks) * threads, threads, stream, static_cast<int64_t>(cycles));
}

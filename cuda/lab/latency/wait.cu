// wait: naive, which first waits for the kernels ahead of it in the stream.
//
//   changes  one instruction, griddepcontrol.wait, ahead of the bounds check. Without the launch attribute there is
//            nothing to wait for and it falls through, so that one kernel serves both rungs and only the launch
//            attribute differs.
//   expects  with the attribute an addition of 10 KB takes 2.9 us in place of 3.6 on an H200: the next one's blocks are
//            placed and its arguments there when the one before ends
//   from     founding document 003
//   try      vecadd bench latency --rungs launch_loop,pdl
#include "cuda/lab/latency/programmatic.cuh"

template <typename Component>
__global__ static void
add_after_wait(const typename Component::element *a, const typename Component::element *b,
               typename Component::element *c, uint64_t n)
{
    wait_for_prerequisites();
    const uint64_t i = thread_number();
    if (i < n)
        c[i] = add_elements<Component>(a[i], b[i]);
}

static const auto kernel_for = [](auto component) { return add_after_wait<decltype(component)>; };

static int
launch_serial(const struct rung_call *call)
{
    return launch_threads<LATENCY_COMPONENTS>(
        call, SMALL_BLOCK, [call](auto) { return call->n; }, kernel_for);
}

static int
launch_waiting(const struct rung_call *call)
{
    return launch_programmatic_add(call, kernel_for);
}

static int
load_waiting(const struct rung_call *call)
{
    return load_add(call, kernel_for);
}

extern "C" const struct small_add serial_add = {launch_serial, load_waiting, "cudaLaunchKernel"};
extern "C" const struct small_add waiting_add = {launch_waiting, load_waiting, "cudaLaunchKernelExC"};

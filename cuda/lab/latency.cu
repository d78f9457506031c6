/* The kernels of the latency rungs: small additions, launched one by one or together. */
#include "cuda/lab/latency.h"
#include "cuda/lab/ptx.cuh"
#include "cuda/lab/rung.cuh"
#include "cuda/launch.cuh"

/* Programmatic dependent launch: a kernel that may begin before the kernel ahead of it in its stream has ended. Its
 * threads' first act is wait_for_prerequisites (cuda/ptx.cuh), before they load, store or leave. */
/* One component a thread. */
template <typename KernelFor>
inline int
launch_programmatic_add(const struct rung_call *call, KernelFor kernel_for)
{
    return with_component_of<LATENCY_COMPONENTS>(call, [&](auto component) -> int {
        using element = typename decltype(component)::element;
        const launch_target target(static_cast<cudaStream_t>(call->stream), nullptr, true);
        return launch(kernel_for(component), call->n, BLOCK, target, static_cast<const element *>(call->a),
                      static_cast<const element *>(call->b), static_cast<element *>(call->c), call->n);
    });
}

template <typename KernelFor>
inline int
load_add(const struct rung_call *call, KernelFor kernel_for)
{
    return with_component_of<LATENCY_COMPONENTS>(call,
                                                 [&](auto component) -> int { return load(kernel_for(component)); });
}

// wait: naive, which first waits for the kernels ahead of it in the stream.
//
//   changes  one instruction, griddepcontrol.wait, ahead of the bounds check. Without the launch attribute there is
//            nothing to wait for and it falls through, so that one kernel serves both rungs and only the launch
//            attribute differs.
//   expects  with the attribute an addition of 10 KB takes 2.9 us in place of 3.6 on an H200: the next one's blocks are
//            placed and its arguments there when the one before ends
//   from     founding document 003
//   try      vecadd bench latency --rungs launch_loop,pdl

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

static const auto waiting_kernel = [](auto component) { return add_after_wait<decltype(component)>; };

static int
launch_serial(const struct rung_call *call)
{
    return launch_each<LATENCY_COMPONENTS>(call, waiting_kernel);
}

static int
launch_waiting(const struct rung_call *call)
{
    return launch_programmatic_add(call, waiting_kernel);
}

static int
load_waiting(const struct rung_call *call)
{
    return load_add(call, waiting_kernel);
}

extern "C" const struct small_add serial_add = {launch_serial, load_waiting, "cudaLaunchKernel"};
extern "C" const struct small_add waiting_add = {launch_waiting, load_waiting, "cudaLaunchKernelExC"};

// trigger: wait, which then lets the next kernel begin early.
//
//   after    wait
//   changes  griddepcontrol.launch_dependents after the wait: a block lets the next kernel begin as soon as one of its
//            threads is there, instead of at its end. Not before the wait: the next kernel could then begin while
//            the one ahead still runs, and would fill multiprocessors with threads that wait.
//   expects  the next kernel's launch overlaps this one's loads and stores: 0.66 ms in place of 1.11 for a chain of
//            1000 additions of 10 KB in a graph on an H200, with programmatic launches
//   from     founding document 003
//   try      vecadd bench latency --rungs pdl,pdl_trigger

template <typename Component>
__global__ static void
add_after_trigger(const typename Component::element *a, const typename Component::element *b,
                  typename Component::element *c, uint64_t n)
{
    wait_for_prerequisites();
    trigger_dependents();
    const uint64_t i = thread_number();
    if (i < n)
        c[i] = add_elements<Component>(a[i], b[i]);
}

static const auto triggering_kernel = [](auto component) { return add_after_trigger<decltype(component)>; };

static int
launch_triggering(const struct rung_call *call)
{
    return launch_programmatic_add(call, triggering_kernel);
}

static int
load_triggering(const struct rung_call *call)
{
    return load_add(call, triggering_kernel);
}

extern "C" const struct small_add triggering_add = {launch_triggering, load_triggering, "cudaLaunchKernelExC"};

// batched: many independent additions in one launch, over a table of them in device memory.
//
//   changes  no addition has a launch of its own. Each has `parts` blocks, as many as the longest addition needs at
//            four components a thread.
//   expects  77 us for 1000 additions of 10 KB that take 3560 us by a launch each on an H200. 20 of them are the
//            table's, which is copied from ordinary memory; the kernel's parameters would have room for 32 KB of it.
//   from     ours
//   try      vecadd bench latency --rungs launch_loop,batched

enum { COMPONENTS_A_THREAD = 4 };

template <typename Component>
__global__ static void
batched_add(const struct segment *segments, unsigned parts)
{
    using element = typename Component::element;
    const struct segment segment = segments[blockIdx.x / parts];
    const element *const a = static_cast<const element *>(segment.a), *const b =
                                                                          static_cast<const element *>(segment.b);
    element *const c = static_cast<element *>(segment.c);
    const uint64_t first = static_cast<uint64_t>(blockIdx.x % parts) * blockDim.x + threadIdx.x;
    for (uint64_t i = first; i < segment.n; i += static_cast<uint64_t>(parts) * blockDim.x)
        c[i] = add_elements<Component>(a[i], b[i]);
}

int
batched_launch(const struct rung_call *call, const struct segment *segments, unsigned count, uint64_t longest)
{
    const uint64_t parts = ceil_div(longest, BLOCK * COMPONENTS_A_THREAD), blocks = count * parts;
    if (blocks == 0)
        return cudaSuccess;
    if (blocks > INT32_MAX)
        return cudaErrorInvalidConfiguration;
    return with_component_of<LATENCY_COMPONENTS>(call, [&](auto component) -> int {
        return launch_grid(batched_add<decltype(component)>, dim3(static_cast<unsigned>(blocks)), dim3(BLOCK), 0,
                           static_cast<cudaStream_t>(call->stream), segments, static_cast<unsigned>(parts));
    });
}

static int
load_batched(const struct rung_call *call)
{
    return with_component_of<LATENCY_COMPONENTS>(
        call, [&](auto component) -> int { return load(batched_add<decltype(component)>); });
}

extern "C" const struct small_add batched_adds = {nullptr, load_batched, "cudaLaunchKernel"};

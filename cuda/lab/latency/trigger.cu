// trigger: wait, which then lets the kernel behind it begin early.
//
//   after    wait
//   changes  griddepcontrol.launch_dependents behind the wait: a block lets the next kernel begin as soon as one of its
//            threads is there, in place of at its end. Not ahead of the wait: the next kernel could then begin while
//            the one ahead still runs, and would fill multiprocessors with threads that wait.
//   expects  the next kernel's launch overlaps this one's loads and stores: 0.66 ms in place of 1.11 for a chain of
//            1000 additions of 10 KB in a graph on an H200, with programmatic launches
//   from     founding document 003
//   try      vecadd bench latency --rungs pdl,pdl_trigger
#include "cuda/lab/latency/programmatic.cuh"

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

static const auto kernel_for = [](auto component) { return add_after_trigger<decltype(component)>; };

static int
launch_triggering(const struct rung_call *call)
{
    return launch_programmatic_add(call, kernel_for);
}

static int
load_triggering(const struct rung_call *call)
{
    return load_add(call, kernel_for);
}

extern "C" const struct small_add triggering_add = {launch_triggering, load_triggering, "cudaLaunchKernelExC"};

// index_divmod: the array as rows of a matrix, row and column by division.
//
//   after    index_dim3
//   changes  row = thread / width, column = thread % width, with a width that the compiler does not know
//   expects  some 30 instructions more a thread, in the shadow of the memory: a loss where there are few bytes an
//            element (int8)
//   from     founding document 004, in words
//   try      vecadd bench ladder --rungs index_dim3,index_divmod --dtypes float32,int8
#include "cuda/lab/ladder/rung.cuh"

enum { BLOCK = 256, WIDTH = 8192 };

template <typename Component>
__global__ static void
index_divmod_add(const typename Component::element *a, const typename Component::element *b,
                 typename Component::element *c, uint64_t n, uint64_t width, uint64_t pitch)
{
    const uint64_t thread = thread_number(), row = thread / width, column = thread % width;
    const uint64_t i = row * pitch + column;
    if (i < n)
        c[i] = add_elements<Component>(a[i], b[i]);
}

/* The pitch is a separate argument, or the compiler would simplify row * width + column to the thread's number. */
static int
index_divmod_launch(const struct rung_call *call)
{
    const uint64_t width = static_cast<uint64_t>(call->params[0]);
    return launch_threads<WIDTH_COMPONENTS>(
        call, BLOCK, [call](auto) { return call->n; },
        [](auto component) { return index_divmod_add<decltype(component)>; }, width, width);
}

extern "C" const struct rung rung_index_divmod = {
    .name = "index_divmod",
    .kind = RUNG_DEVICE,
    .after = "index_dim3",
    .changes = "row and column by / and %",
    .tested = "double",
    .components = WIDTH_COMPONENTS,
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
    .params = {{"width", "elements of a row", 32, WIDTH, 1 << 20}},
    .launch = index_divmod_launch,
    .run = nullptr,
};

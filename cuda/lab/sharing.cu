/* How the elements are shared among threads: from one thread to one a thread, and by grids that stride. */
#include "cuda/lab/rung.cuh"

// single_thread: one thread walks the whole array. The CPU's program on a GPU.
//
//   after    -
//   changes  nothing yet: <<<1, 1>>>
//   expects  latency, and nothing else: one addition in flight. Of 8 neighbouring float32 elements one waits for the
//            memory (some 340 ns) and seven for the L1 (some 20 ns): 60 ns an element, where the memory of an
//            H200 would allow 2.5 ps. The document saw 50.
//   from     founding document 004
//   try      vecadd bench ladder --rungs single_thread,single_block --sizes 2^16

template <typename Component, bool Accumulate>
__global__ static void
single_thread_add(const typename Component::element *a, const typename Component::element *b,
                  typename Component::element *c, uint64_t n)
{
    for (uint64_t i = 0; i < n; ++i)
        add_at<Component, Accumulate>(a, b, c, i);
}

static int
single_thread_launch(const struct rung_call *call)
{
    return launch_blocks<WIDTH_COMPONENTS>(call, dim3(1), dim3(1), [call](auto component) {
        return call->params[0] ? single_thread_add<decltype(component), true>
                               : single_thread_add<decltype(component), false>;
    });
}

extern "C" const struct rung rung_single_thread = {
    .name = "single_thread",
    .changes = "one thread walks all elements",
    .components = WIDTH_COMPONENTS,
    .block = 1,
    .blocks = 1,
    .params = {ACCUMULATE_PARAM(0)},
    .launch = single_thread_launch,
};

// single_block_chunked: one block, each thread with a contiguous run of its own, as work is shared among CPU threads.
//
//   after    single_thread
//   changes  256 threads, each with ceil(n / 256) neighbouring elements
//   expects  neighbouring threads read addresses that are far apart: a warp's load takes 32 sectors of 32 bytes for 128
//            bytes that are used at once, where 4 would do. The L1 saves what it can keep until the next element wants
//            it.
//   from     founding document 004, in words
//   try      vecadd bench ladder --rungs single_block_chunked,single_block --sizes 2^20

template <typename Component, bool Accumulate>
__global__ static void
single_block_chunked_add(const typename Component::element *a, const typename Component::element *b,
                         typename Component::element *c, uint64_t n)
{
    const uint64_t run = (n + blockDim.x - 1) / blockDim.x, begin = threadIdx.x * run;
    for (uint64_t i = begin; i < begin + run && i < n; ++i)
        add_at<Component, Accumulate>(a, b, c, i);
}

static int
single_block_chunked_launch(const struct rung_call *call)
{
    return launch_blocks<WIDTH_COMPONENTS>(call, dim3(1), dim3(block_of(call)), [call](auto component) {
        return call->params[0] ? single_block_chunked_add<decltype(component), true>
                               : single_block_chunked_add<decltype(component), false>;
    });
}

extern "C" const struct rung rung_single_block_chunked = {
    .name = "single_block_chunked",
    .after = "single_thread",
    .changes = "one block, a contiguous run for each thread",
    .components = WIDTH_COMPONENTS,
    .blocks = 1,
    .params = {ACCUMULATE_PARAM(0)},
    .launch = single_block_chunked_launch,
};

// single_block: one block whose threads stride through the array side by side.
//
//   after    single_block_chunked
//   changes  thread t takes elements t, t + 256, ...: a warp's load is one burst. It accumulates, as its document
//            does: c is read too, and 16 bytes an element move. With accumulate 0 it differs from the rung before by
//            coalescing alone.
//   expects  one multiprocessor's share of the bandwidth at most, and less by Little's law: 256 threads * 3 loads * 4
//            bytes = 3 KiB in flight, every 340 ns: 9 GB/s
//   from     founding document 004
//   try      vecadd bench ladder --rungs single_block,grid_stride --sizes 2^20

template <typename Component, bool Accumulate>
__global__ static void
single_block_add(const typename Component::element *a, const typename Component::element *b,
                 typename Component::element *c, uint64_t n)
{
    for (uint64_t i = threadIdx.x; i < n; i += blockDim.x)
        add_at<Component, Accumulate>(a, b, c, i);
}

static int
single_block_launch(const struct rung_call *call)
{
    return launch_blocks<WIDTH_COMPONENTS>(call, dim3(1), dim3(block_of(call)), [call](auto component) {
        return call->params[0] ? single_block_add<decltype(component), true>
                               : single_block_add<decltype(component), false>;
    });
}

extern "C" const struct rung rung_single_block = {
    .name = "single_block",
    .after = "single_block_chunked",
    .changes = "threads side by side: coalesced; accumulates: 16 bytes an element",
    .components = WIDTH_COMPONENTS,
    .sum = SUM_ADDED,
    .bytes_per_element = 16,
    .loads_in_flight = 3,
    .blocks = 1,
    .params = {ACCUMULATE_PARAM(1)},
    .launch = single_block_launch,
};

/* As many blocks as the first parameter says on every multiprocessor. */
template <typename KernelFor>
static int
launch_some_blocks(const struct rung_call *call, KernelFor kernel_for)
{
    unsigned count;
    const cudaError_t error = multiprocessors(&count);
    if (error != cudaSuccess)
        return error;
    return launch_blocks<LADDER_COMPONENTS>(call, dim3(count * call->params[0]), dim3(block_of(call)), kernel_for);
}

// grid_stride: a few blocks on every multiprocessor, all striding through the array together.
//
//   after    single_block
//   changes  as many blocks as 4 (blocks_per_sm) times the multiprocessors, and a stride of the whole grid.
//            Accumulates too; with accumulate 0 it writes, as naive does.
//   expects  in flight on each multiprocessor: 4 blocks * 256 threads * 3 loads * 4 bytes = 12 KiB, and
//            4 KiB of stores. An H200 needs 28 KiB for 95 % of its rate; 8 blocks have 32 with their stores. On the
//            document's 288 GB/s card 4 were enough.
//   from     founding document 004
//   try      vecadd bench ladder --rungs grid_stride,naive

template <typename Component, bool Accumulate>
__global__ static void
grid_stride_add(const typename Component::element *a, const typename Component::element *b,
                typename Component::element *c, uint64_t n)
{
    const uint64_t stride = static_cast<uint64_t>(gridDim.x) * blockDim.x;
    for (uint64_t i = thread_number(); i < n; i += stride)
        add_at<Component, Accumulate>(a, b, c, i);
}

static int
grid_stride_launch(const struct rung_call *call)
{
    return launch_some_blocks(call, [call](auto component) {
        return call->params[1] ? grid_stride_add<decltype(component), true>
                               : grid_stride_add<decltype(component), false>;
    });
}

extern "C" const struct rung rung_grid_stride = {
    .name = "grid_stride",
    .after = "single_block",
    .changes = "some blocks on every multiprocessor; accumulates: 16 bytes an element",
    .components = LADDER_COMPONENTS,
    .sum = SUM_ADDED,
    .bytes_per_element = 16,
    .loads_in_flight = 3,
    .params = {{"blocks_per_sm", "blocks a multiprocessor", 1, 4, 64}, ACCUMULATE_PARAM(1)},
    .launch = grid_stride_launch,
};

// block_range: each block owns a contiguous range, its threads stride inside of it.
//
//   after    grid_stride
//   changes  the range in place of the grid's stride; c is written and not read
//   expects  no difference by bursts, which both keep whole, or by channels, which are interleaved every few hundred
//            bytes. But c is no longer read: 4 blocks * 256 threads * 2 loads * 4 bytes are 8 KiB in flight on each
//            multiprocessor for grid_stride's 12, and by Little's law the rate falls with them, to three quarters.
//   from     founding document 004, in words
//   try      vecadd bench ladder --rungs grid_stride,block_range

template <typename Component, bool Accumulate>
__global__ static void
block_range_add(const typename Component::element *a, const typename Component::element *b,
                typename Component::element *c, uint64_t n)
{
    const uint64_t range = (n + gridDim.x - 1) / gridDim.x, begin = blockIdx.x * range;
    const uint64_t end = begin + range < n ? begin + range : n;
    for (uint64_t i = begin + threadIdx.x; i < end; i += blockDim.x)
        add_at<Component, Accumulate>(a, b, c, i);
}

static int
block_range_launch(const struct rung_call *call)
{
    return launch_some_blocks(call, [call](auto component) {
        return call->params[1] ? block_range_add<decltype(component), true>
                               : block_range_add<decltype(component), false>;
    });
}

extern "C" const struct rung rung_block_range = {
    .name = "block_range",
    .after = "grid_stride",
    .changes = "a contiguous range for each block",
    .components = LADDER_COMPONENTS,
    .params = {{"blocks_per_sm", "blocks a multiprocessor", 1, 4, 64}, ACCUMULATE_PARAM(0)},
    .launch = block_range_launch,
};

// naive: one component a thread, and a bounds check. The first kernel that most people write.
//
//   after    block_range
//   changes  as many threads as components: neighbouring threads read neighbouring addresses, so every burst is used
//            whole
//   expects  the memory's speed where there are components enough, less a quarter at 2^28 float32 on an H200 (925 us
//            against 736 for 16-byte vectors): a thread has only two 4-byte loads in flight. Half the speed for
//            float16.
//   from     founding documents 000, 001, 002, 003, 004
//   try      vecadd bench ladder --rungs naive,float4

template <typename Component>
__global__ static void
naive_add(const typename Component::element *a, const typename Component::element *b, typename Component::element *c,
          uint64_t n)
{
    const uint64_t i = thread_number();
    if (i < n)
        c[i] = add_elements<Component>(a[i], b[i]);
}

static int
naive_launch(const struct rung_call *call)
{
    return launch_each<ALL_COMPONENTS>(call, [](auto component) { return naive_add<decltype(component)>; });
}

extern "C" const struct rung rung_naive = {
    .name = "naive",
    .after = "block_range",
    .changes = "one element a thread, with a bounds check",
    .headline = true,
    .launch = naive_launch,
};

// restrict: a promise to the compiler that the arrays do not overlap.
//
//   after    naive
//   changes  const __restrict__: the loads become LDG.E.CONSTANT, through the read-only path
//   expects  nothing: each element is read once, and one load of each input is all that a thread has to order. The
//            document measured 4.02 ms with and without.
//   from     founding document 000
//   try      vecadd bench ladder --rungs naive,restrict

template <typename Component>
__global__ static void
restrict_add(const typename Component::element *__restrict__ a, const typename Component::element *__restrict__ b,
             typename Component::element *__restrict__ c, uint64_t n)
{
    const uint64_t i = thread_number();
    if (i < n)
        c[i] = add_elements<Component>(a[i], b[i]);
}

static int
restrict_launch(const struct rung_call *call)
{
    return launch_each<LADDER_COMPONENTS>(call, [](auto component) { return restrict_add<decltype(component)>; });
}

extern "C" const struct rung rung_restrict = {
    .name = "restrict",
    .after = "naive",
    .changes = "const __restrict__: loads through the read-only path",
    .components = LADDER_COMPONENTS,
    .load = "LDG.E.CONSTANT",
    .launch = restrict_launch,
};

// waves: a grid-stride loop on a chosen share of the blocks that fit on the GPU at once.
//
//   after    grid_stride
//   changes  the grid is `percent` of a full wave, by the occupancy calculator in place of a number of blocks per
//            multiprocessor; every block has the same share of the work. c is written and not read.
//   expects  90: a tenth of the multiprocessors' places is empty, and a tenth fewer bytes are in flight. 100: all
//            places are filled. 110: the last tenth of the blocks begins when the first ones are done and has the GPU
//            for itself: two turns for 1.1 of work, up to 2 / 1.1 = 1.8 times the time, less what a block alone on its
//            multiprocessor gains. 200: two full waves, as fast as one.
//   from     founding document 004, in words
//   try      vecadd bench blocksize --rungs waves

enum { FULL = 100 };

template <typename Component>
__global__ static void
waves_add(const typename Component::element *a, const typename Component::element *b, typename Component::element *c,
          uint64_t n)
{
    const uint64_t stride = static_cast<uint64_t>(gridDim.x) * blockDim.x;
    for (uint64_t i = thread_number(); i < n; i += stride)
        c[i] = add_elements<Component>(a[i], b[i]);
}

/* `percent` of the blocks that fit on the current device at once, at most as many as there is work for, at least one.
 */
static cudaError_t
share_of_a_wave(const void *kernel, uint64_t n, unsigned block, unsigned percent, unsigned *blocks)
{
    unsigned count;
    int resident = 0;
    cudaError_t error = multiprocessors(&count);
    if (error == cudaSuccess)
        error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, static_cast<int>(block), 0);
    if (error != cudaSuccess)
        return error;
    const uint64_t share = (static_cast<uint64_t>(count) * resident * percent + FULL / 2) / FULL;
    const uint64_t most = ceil_div(n, block);
    *blocks = static_cast<unsigned>(share == 0 ? 1 : share < most ? share : most);
    return cudaSuccess;
}

static int
waves_launch(const struct rung_call *call)
{
    const unsigned block = block_of(call), percent = call->params[0];
    if (call->n == 0)
        return cudaSuccess;
    unsigned blocks = 0;
    const int error = with_component_of<LADDER_COMPONENTS>(call, [&](auto component) -> int {
        const void *kernel = reinterpret_cast<const void *>(waves_add<decltype(component)>);
        return share_of_a_wave(kernel, call->n, block, percent, &blocks);
    });
    if (error != cudaSuccess)
        return error;
    return launch_blocks<LADDER_COMPONENTS>(call, dim3(blocks), dim3(block),
                                            [](auto component) { return waves_add<decltype(component)>; });
}

extern "C" const struct rung rung_waves = {
    .name = "waves",
    .after = "grid_stride",
    .changes = "as many blocks as `percent` of those that run at once",
    .components = LADDER_COMPONENTS,
    .params = {{"percent", "blocks, of those that run at once", 1, FULL, 1000}},
    .launch = waves_launch,
};

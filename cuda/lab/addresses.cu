/* Which addresses the threads of a warp take, and by which ways they find them. */
#include "cuda/lab/rung.cuh"

// strided: neighbouring threads take components that are `stride` apart.
//
//   after    naive
//   changes  the grid sweeps the array `stride` times, each sweep taking every stride-th component: all components are
//            added once
//   expects  each component that is used moves a whole sector of 32 bytes to the multiprocessor, and a pair of sectors
//            from memory to the L2: the time grows with the stride up to 16 for float32 (64 for int8), where nothing
//            stays in the L2 from sweep to sweep. An H200 takes 0.95 ms at stride 4, 1.9 at 8 and 4.03 at 32 for 2^26.
//   from     founding document 004, in words
//   try      vecadd bench ladder --rungs naive,strided

template <typename Component>
__global__ static void
strided_add(const typename Component::element *a, const typename Component::element *b, typename Component::element *c,
            uint64_t n, uint64_t stride)
{
    const uint64_t sweep = (n + stride - 1) / stride, thread = thread_number();
    const uint64_t i = thread % sweep * stride + thread / sweep;
    if (thread < sweep * stride && i < n)
        c[i] = add_elements<Component>(a[i], b[i]);
}

static int
strided_launch(const struct rung_call *call)
{
    const uint64_t stride = static_cast<uint64_t>(call->params[0]);
    return launch_threads<WIDTH_COMPONENTS>(
        call, [=](auto) { return ceil_div(call->n, stride) * stride; },
        [](auto component) { return strided_add<decltype(component)>; }, stride);
}

extern "C" const struct rung rung_strided = {
    .name = "strided",
    .after = "naive",
    .changes = "elements `stride` apart in a warp: bursts used in part",
    .components = WIDTH_COMPONENTS,
    .params = {{"stride", "elements between neighbouring threads", 1, 8, 1024}},
    .launch = strided_launch,
};

// offset: each warp begins `offset` components past a 128-byte boundary.
//
//   after    naive
//   changes  thread t takes component t + offset, and the last threads the first components: all components are added
//            once
//   expects  a warp's 128 bytes are in 5 sectors in place of 4 where the offset is no multiple of 32 bytes. The fifth
//            is also the next warp's, and comes from the L1 or the L2: the memory moves no more than before.
//   from     founding document 004, in words
//   try      vecadd bench ladder --rungs naive,offset

template <typename Component>
__global__ static void
offset_add(const typename Component::element *a, const typename Component::element *b, typename Component::element *c,
           uint64_t n, uint64_t offset)
{
    const uint64_t thread = thread_number();
    if (thread >= n)
        return;
    const uint64_t i = thread < n - offset ? thread + offset : thread - (n - offset);
    c[i] = add_elements<Component>(a[i], b[i]);
}

static int
offset_launch(const struct rung_call *call)
{
    const uint64_t offset = call->n ? static_cast<uint64_t>(call->params[0]) % call->n : 0;
    return launch_each<WIDTH_COMPONENTS>(
        call, [](auto component) { return offset_add<decltype(component)>; }, offset);
}

extern "C" const struct rung rung_offset = {
    .name = "offset",
    .after = "naive",
    .changes = "warps begin `offset` elements past a burst",
    .components = WIDTH_COMPONENTS,
    .params = {{"offset", "elements past a 128-byte boundary", 0, 1, 1024}},
    .launch = offset_launch,
};

// divergent: the threads of a warp take `paths` ways through the same code.
//
//   after    naive
//   changes  lane l of a warp takes part in turn l % paths of a loop, so that the turns of a warp run one after the
//            other
//   expects  each turn waits for its own loads, and 1 / paths of a warp's threads have theirs in flight: by Little's
//            law the time grows with the number of paths, up to 32-fold, as soon as the other warps cannot fill the
//            gap
//   from     founding document 004, in words
//   try      vecadd bench ladder --rungs naive,divergent

template <typename Component>
__global__ static void
divergent_add(const typename Component::element *a, const typename Component::element *b,
              typename Component::element *c, uint64_t n, unsigned paths)
{
    const uint64_t i = thread_number();
    const unsigned mine = threadIdx.x % WARP % paths;
    for (unsigned path = 0; path < paths; ++path)
        if (path == mine && i < n)
            c[i] = add_elements<Component>(a[i], b[i]);
}

static int
divergent_launch(const struct rung_call *call)
{
    return launch_each<WIDTH_COMPONENTS>(
        call, [](auto component) { return divergent_add<decltype(component)>; },
        static_cast<unsigned>(call->params[0]));
}

extern "C" const struct rung rung_divergent = {
    .name = "divergent",
    .after = "naive",
    .changes = "`paths` ways through a warp, one after the other",
    .components = WIDTH_COMPONENTS,
    .params = {{"paths", "ways that the threads of a warp take", 1, WARP, WARP}},
    .launch = divergent_launch,
};

// index_dim3: the array as rows of a matrix, indexed by two-dimensional blocks.
//
//   after    naive
//   changes  blocks of 32 columns; blockIdx and threadIdx give row and column, and i = row * width + column
//   expects  little: one multiplication more for 12 bytes of memory, and a warp still reads one burst. An H200
//            takes 7 % longer than for naive.
//   from     founding document 004, in words
//   try      vecadd bench ladder --rungs naive,index_dim3,index_divmod

template <typename Component>
__global__ static void
index_dim3_add(const typename Component::element *a, const typename Component::element *b,
               typename Component::element *c, uint64_t n, uint64_t width)
{
    const uint64_t column = thread_number(), row = static_cast<uint64_t>(blockIdx.y) * blockDim.y + threadIdx.y;
    const uint64_t i = row * width + column;
    if (column < width && i < n)
        c[i] = add_elements<Component>(a[i], b[i]);
}

static int
index_dim3_launch(const struct rung_call *call)
{
    const uint64_t width = static_cast<uint64_t>(call->params[0]);
    const unsigned height = block_of(call) / WARP;
    const uint64_t columns = call->n < width ? call->n : width, rows = ceil_div(ceil_div(call->n, width), height);
    if (rows > UINT16_MAX) /* of blocks in y */
        return cudaErrorInvalidConfiguration;
    const dim3 grid(static_cast<unsigned>(ceil_div(columns, WARP)), static_cast<unsigned>(rows));
    return launch_blocks<WIDTH_COMPONENTS>(
        call, grid, dim3(WARP, height), [](auto component) { return index_dim3_add<decltype(component)>; }, width);
}

extern "C" const struct rung rung_index_dim3 = {
    .name = "index_dim3",
    .after = "naive",
    .changes = "row and column from two-dimensional blocks",
    .components = WIDTH_COMPONENTS,
    .params = {{"width", "elements of a row", 32, 8192, 1 << 20}},
    .launch = index_dim3_launch,
};

// index_divmod: the array as rows of a matrix, row and column by division.
//
//   after    index_dim3
//   changes  row = thread / width, column = thread % width, with a width that the compiler does not know
//   expects  some 30 instructions more a thread, in the shadow of the memory: a loss where there are few bytes an
//            element (int8)
//   from     founding document 004, in words
//   try      vecadd bench ladder --rungs index_dim3,index_divmod --dtypes float32,int8

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
    return launch_each<WIDTH_COMPONENTS>(
        call, [](auto component) { return index_divmod_add<decltype(component)>; }, width, width);
}

extern "C" const struct rung rung_index_divmod = {
    .name = "index_divmod",
    .after = "index_dim3",
    .changes = "row and column by / and %",
    .components = WIDTH_COMPONENTS,
    .params = {{"width", "elements of a row", 32, 8192, 1 << 20}},
    .launch = index_divmod_launch,
};

// block_shape: the array as a box, walked by three-dimensional blocks.
//
//   after    index_dim3
//   changes  blocks of x * y threads and as many layers as the block size leaves, on rows of 1024 components and planes
//            of 256 rows
//   expects  with x = 16 a warp reads two half bursts, 64 bytes each: two sectors of each are whole, so that the memory
//            moves no more; from x = 32 on one burst. With x below 8 float32 sectors are used in part. The document's
//            shapes, (16, 16, 16), (32, 16, 16) and (64, 8, 8), have 4096 and 8192 threads: no GPU launches more than
//            1024.
//   from     founding document 004, in words
//   try      vecadd bench ladder --rungs naive,block_shape

constexpr uint64_t WIDTH = 1024, HEIGHT = 256;

template <typename Component>
__global__ static void
block_shape_add(const typename Component::element *a, const typename Component::element *b,
                typename Component::element *c, uint64_t n)
{
    const uint64_t x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    const uint64_t z = blockIdx.z * blockDim.z + threadIdx.z, i = (z * HEIGHT + y) * WIDTH + x;
    if (x < WIDTH && y < HEIGHT && i < n)
        c[i] = add_elements<Component>(a[i], b[i]);
}

static int
block_shape_launch(const struct rung_call *call)
{
    const unsigned threads = block_of(call), x = call->params[0], y = call->params[1], z = threads / (x * y);
    const uint64_t rows = ceil_div(call->n, WIDTH), planes = ceil_div(rows, HEIGHT);
    if (x * y * z != threads || ceil_div(planes, z) > UINT16_MAX)
        return cudaErrorInvalidConfiguration;
    const uint64_t width = call->n < WIDTH ? call->n : WIDTH, height = rows < HEIGHT ? rows : HEIGHT;
    const dim3 grid(ceil_div(width, x), ceil_div(height, y), ceil_div(planes, z));
    return launch_blocks<WIDTH_COMPONENTS>(call, grid, dim3(x, y, z),
                                           [](auto component) { return block_shape_add<decltype(component)>; });
}

extern "C" const struct rung rung_block_shape = {
    .name = "block_shape",
    .after = "index_dim3",
    .changes = "three-dimensional blocks of x * y * z threads",
    .components = WIDTH_COMPONENTS,
    .params = {{"x", "threads along a row", 1, 16, 1024}, {"y", "threads across rows", 1, 2, 1024}},
    .launch = block_shape_launch,
};

/* The map from thread numbers to the operands' offsets, for any layout. Threads are numbered in the sum's memory order;
 * each takes runs of one element, or of a few neighbours along the innermost axis. */
#ifndef VECADD_CUDA_INDEX_MAP_CUH
#define VECADD_CUDA_INDEX_MAP_CUH

#include <stdint.h>

#include "base/layout.h"
#include "cuda/launch.cuh"

#if VECADD_DOUBLE
#define UNROLLED
#define ROLLED
#else
#define UNROLLED _Pragma("unroll")   /* otherwise the runs' arrays would be in local memory */
#define ROLLED   _Pragma("unroll 1") /* unrolling by four would add 60 KB of GPU code to the wheel */
#endif

static constexpr unsigned BLOCK = 256;
enum { FEW_AXES = 16 };

struct axis {
    uint32_t extent;
    uint32_t magic, shift; /* n / extent == (n * magic / 2^32 + n) >> shift for every n below 2^31 */
    int64_t stride[LAYOUT_OPERANDS];
};

/* One operand. */
struct side {
    enum dtype dtype;
    unsigned itemsize;
    bool whole;   /* its runs are aligned to their length or to 16 bytes */
    bool spread;  /* broadcast along the innermost axis: a run repeats one element */
    bool dense;   /* contiguous in the sum's order, the first element aligned to 16 bytes */
    bool rounded; /* values are rounded to the sum's dtype, which is narrower than the type of the computation */
};

/* A kernel parameter. A launch copies it: 2.7 KB for as many axes as an array can have take 1 us of the GPU's time, so
 * that the faster forms take additions of FEW_AXES at most, as torch's kernels do. */
template <int Axes> struct index_map_for {
    uint32_t runs;          /* in the whole grid; a run is up to Count elements of the innermost axis */
    uint32_t last;          /* elements of the last run of each innermost row */
    uint32_t runs_a_thread; /* at most as many as its kernel has room for */
    int dimensions;         /* 1 or more */
    enum dtype sum;
    enum component component;
    unsigned wrap; /* integers: 64 minus the sum's bits */
    bool is_signed;
    side sides[LAYOUT_OPERANDS];
    alignas(MAX_ITEMSIZE) unsigned char scalar[LAYOUT_SUM][MAX_ITEMSIZE]; /* repeated to fill the 16 bytes */
    struct axis axes[Axes];
};
using index_map = index_map_for<FEW_AXES>;
using long_index_map = index_map_for<LAYOUT_DIMENSIONS>;

struct run {
    int64_t at[LAYOUT_OPERANDS];
    unsigned count;
};

__device__ inline uint32_t
divided(uint32_t number, const struct axis &axis)
{
    const uint32_t high = static_cast<uint32_t>(static_cast<uint64_t>(number) * axis.magic >> 32);
    return (high + number) >> axis.shift;
}

/* Calls step(axis, index) with the index of a thread or element along each axis, the innermost first. */
template <typename Map, typename Step>
__device__ inline void
each_index(const Map &map, uint32_t number, Step step)
{
    ROLLED
    for (int i = 0; i < map.dimensions; ++i) {
        uint32_t index = number;
        if (i + 1 < map.dimensions) {
            number = divided(number, map.axes[i]);
            index -= number * map.axes[i].extent;
        }
        step(i, index);
    }
}

template <unsigned Count, typename Map>
__device__ inline run
find_run(const Map &map, uint32_t number)
{
    run run = {{0, 0, 0}, Count};
    const auto step = [&](int i, uint32_t index) {
        const struct axis &axis = map.axes[i];
        if (Count > 1 && i == 0 && index + 1 == axis.extent)
            run.count = map.last;
        for (int k = 0; k < LAYOUT_OPERANDS; ++k)
            run.at[k] += static_cast<int64_t>(index) * axis.stride[k];
    };
    /* Most layouts have one axis or two. a[:, 1:] + b[:, 1:] of 2^25 float32 takes an H200 95 us so, and 116 by the
     * loop; complex64 + float32 of 2^18 takes an H100 1 % less. */
    if (map.dimensions == 1) {
        step(0, number);
        return run;
    }
    if (map.dimensions == 2) {
        const uint32_t row = divided(number, map.axes[0]);
        step(0, number - row * map.axes[0].extent);
        step(1, row);
        return run;
    }
    each_index(map, number, step);
    return run;
}

/* Where an input's elements begin: the kernel's argument, or, where that is NULL, the number in the map. */
template <typename Map>
__device__ inline const char *
input_of(const Map &map, int input, const char *given)
{
    return given ? given : reinterpret_cast<const char *>(map.scalar[input]);
}

/* The offset of an operand's element for a thread or element number. */
__device__ inline int64_t
offset_of(const index_map &map, int operand, uint32_t number)
{
    int64_t offset = 0;
    each_index(map, number,
               [&](int i, uint32_t index) { offset += static_cast<int64_t>(index) * map.axes[i].stride[operand]; });
    return offset;
}

inline bool
is_aligned(const struct layout *layout, int operand, const char *at, unsigned count, size_t itemsize)
{
    const size_t bytes = count * itemsize, expected = bytes < 16 ? bytes : 16;
    uint64_t all = reinterpret_cast<uintptr_t>(at);
    for (int i = 0; i < layout->ndim; ++i)
        all |= static_cast<uint64_t>(layout->stride[operand][i]) * (i == 0 && count > 1 ? count : 1);
    return all % expected == 0;
}

inline bool
is_spread(const struct layout *layout, int operand)
{
    return layout->ndim == 0 || layout->stride[operand][0] == 0;
}

/* Whether an input is a number that floats of 16 bits are added to in float32. */
inline bool
is_wide_number(const struct strided *add, int input)
{
    const enum component component = dtype_table[add->sum].component;
    return add->is_scalar[input] && add->dtype[input] == DTYPE_FLOAT32 &&
           (component == COMPONENT_F16 || component == COMPONENT_BF16);
}

/* The least innermost extent for runs that do not divide it: runs cut short go element by element, so they must be few.
 */
enum { LONG_AXIS = 64 };

/* Whether a form with `count` neighbours per thread takes the operands. `aligned`: inputs must be aligned too. */
inline bool
takes_runs(const struct strided *add, const struct layout *layout, const char *const at[], unsigned count, bool aligned)
{
    if (layout->ndim == 0 || (layout->extent[0] % count != 0 && layout->extent[0] < LONG_AXIS))
        return false;
    for (int k = 0; k < LAYOUT_OPERANDS; ++k) {
        const size_t itemsize = dtype_table[add->dtype[k]].itemsize;
        if (k != LAYOUT_SUM && is_spread(layout, k))
            continue;
        if (layout->stride[k][0] != static_cast<ssize_t>(itemsize))
            return false;
        if ((aligned || k == LAYOUT_SUM) && !is_aligned(layout, k, at[k], count, itemsize))
            return false;
    }
    return true;
}

/* floor(n / extent) by a product and a shift (Granlund and Montgomery, 1994): exact for n below 2^31. */
inline void
set_extent(struct axis *axis, uint32_t extent)
{
    axis->extent = extent;
    axis->shift = 0;
    while ((uint64_t(1) << axis->shift) < extent)
        ++axis->shift;
    const uint64_t over = (uint64_t(1) << axis->shift) - extent;
    axis->magic = static_cast<uint32_t>((over << 32) / extent + 1);
}

/* Makes the index map for runs of `count` elements along axis 0, and of `rows` elements along axis 1. */
template <typename Map = index_map>
inline Map
index_map_of(const struct strided *add, const struct layout *layout, const char *const at[], unsigned count,
             unsigned rows = 1)
{
    Map map;
    const struct dtype_row *sum = &dtype_table[add->sum];
    const unsigned sum_bits = 8 * static_cast<unsigned>(sum->itemsize);
    const bool is_short =
        sum->value == VALUE_COMPLEX ? sum->component == COMPONENT_F32 : component_is_short_float(sum->component);
    map.sum = add->sum;
    map.component = sum->component;
    map.wrap = sum_bits < 64 ? 64 - sum_bits : 0;
    map.is_signed = sum->value == VALUE_SIGNED;
    for (int k = 0; k < LAYOUT_OPERANDS; ++k) {
        side &side = map.sides[k];
        side.dtype = add->dtype[k];
        side.itemsize = static_cast<unsigned>(dtype_table[side.dtype].itemsize);
        side.spread = k != LAYOUT_SUM && is_spread(layout, k);
        side.whole = is_aligned(layout, k, at[k], side.spread ? 1 : count, side.itemsize);
        side.dense = reinterpret_cast<uintptr_t>(at[k]) % 16 == 0 && layout_is_dense(layout, k, side.itemsize);
        side.rounded = is_short && (k == LAYOUT_SUM || (side.dtype != add->sum && !is_wide_number(add, k)));
    }
    for (int k = 0; k < LAYOUT_SUM; ++k)
        for (unsigned i = 0; i < MAX_ITEMSIZE; ++i)
            map.scalar[k][i] = add->scalar[k][i % map.sides[k].itemsize];

    map.dimensions = layout->ndim;
    uint64_t runs = 1;
    for (int i = 0; i < layout->ndim; ++i) {
        const uint64_t extent = static_cast<uint64_t>(layout->extent[i]), step = i == 0 ? count : i == 1 ? rows : 1;
        set_extent(&map.axes[i], static_cast<uint32_t>((extent + step - 1) / step));
        for (int k = 0; k < LAYOUT_OPERANDS; ++k)
            map.axes[i].stride[k] = layout->stride[k][i] * static_cast<int64_t>(step);
        runs *= map.axes[i].extent;
    }
    map.runs = static_cast<uint32_t>(runs);
    const uint64_t extent = layout->ndim ? static_cast<uint64_t>(layout->extent[0]) : 1;
    map.runs_a_thread = 1;
    map.last = extent % count ? static_cast<uint32_t>(extent % count) : count;
    return map;
}

/* Launches a kernel whose threads take `a_thread` runs of the map each. */
template <typename Map>
inline cudaError_t
launch_mapped(void (*kernel)(const char *, const char *, char *, Map), const Map &map, unsigned a_thread,
              const struct strided *add, const char *const at[], cudaStream_t stream)
{
    return launch(kernel, (uint64_t(map.runs) + a_thread - 1) / a_thread, BLOCK, stream,
                  add->is_scalar[0] ? nullptr : at[0], add->is_scalar[1] ? nullptr : at[1],
                  const_cast<char *>(at[LAYOUT_SUM]), map);
}

/* Launches a kernel whose threads take runs of `count` neighbours, each at most `most` of them. */
template <typename Map>
inline cudaError_t
launch_form(void (*kernel)(const char *, const char *, char *, Map), unsigned count, unsigned most,
            const struct strided *add, const struct layout *layout, const char *const at[], cudaStream_t stream)
{
    /* A thread has one run while all of them are on the GPU at once: a + column of 2^16 float32 takes 4.2 us of an H200
     * so, and 4.8 with two runs a thread. More runs keep more bytes in flight: a[:, 1:] + b[:, 1:] of 2^20 takes 8.4 us
     * with one, 7.5 with four. */
    enum { AT_ONCE = 1 << 18 };

    Map map = index_map_of<Map>(add, layout, at, count);
    map.runs_a_thread = map.runs <= AT_ONCE ? 1 : most;
    return launch_mapped(kernel, map, map.runs_a_thread, add, at, stream);
}

/* A form of the strided addition that is faster than the general kernel of strided.cu; each decides which operands it
 * takes. */
struct strided_form {
    const char *name;

    /* Whether it takes these operands, of FEW_AXES (cuda/index_map.cuh) at most; at[] are their first elements. */
    bool (*takes)(const struct strided *add, const struct layout *layout, const char *const at[]);

    /* Queues the addition, 2^31 - 1 elements at most. */
    cudaError_t (*launch)(const struct strided *add, const struct layout *layout, const char *const at[],
                          cudaStream_t stream);

    /* Loads its kernels into the current device's context. */
    cudaError_t (*load)(void);
};

extern const struct strided_form strided_tiles;  /* one dtype; an input along another axis than the sum; in vectors */
extern const struct strided_form strided_turned; /* one dtype or two; the same, element by element */
extern const struct strided_form strided_same_dtype; /* one dtype */
extern const struct strided_form strided_mixed;      /* two dtypes, in runs along the innermost axis */

#endif

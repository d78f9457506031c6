/* strided: any layout, any dtypes, for what `tuned` (add.cu) does not take.
 *
 * Threads go through the sum in its own order. One form gives each of them a few elements at a block's distance, so
 * that a warp's loads of one element each lie side by side whatever the alignment; the other one a run of neighbours
 * along the innermost axis, in vectors, where every operand has that axis contiguous or is broadcast along it. What
 * dtypes the operands have is asked in each thread: all of a grid go the same way. */
#include "elements.cuh"
#include "kernels.h"
#include "lanes.cuh"
#include "strided_forms.cuh"
#include "walk.cuh"

/* Bytes of a run: one element of any dtype, or vectors of at most two times 16. */
template <unsigned Count> static constexpr unsigned RUN_BYTES = Count == 1 ? unsigned(MOST_ITEMSIZE) : MOST_RUN_BYTES;

template <unsigned Count>
__device__ static packed<RUN_BYTES<Count>>
load_run(const char *from, const side &side, unsigned count)
{
    if (side.spread)
        return load_packed<RUN_BYTES<Count>>(from, side.itemsize, side.whole);
    return load_packed<RUN_BYTES<Count>>(from, side.itemsize * count, side.whole && count == Count);
}

template <typename Value>
static constexpr unsigned input_kinds = std::is_integral_v<Value>  ? INTEGERS
                                        : is_complex<Value>::value ? INTEGERS | FLOATS | COMPLEXES
                                                                   : INTEGERS | FLOATS;
template <typename Value>
static constexpr unsigned output_kinds = std::is_integral_v<Value> ? INTEGERS | FLOATS | COMPLEXES : FLOATS | COMPLEXES;

template <typename Value, unsigned Count>
__device__ static void
unpack(const walk &walk, const side &side, const packed<RUN_BYTES<Count>> &elements, Value (&values)[Count])
{
    with_dtype<input_kinds<Value>>(side.dtype, [&](auto element) {
        for (unsigned i = 0; i < Count; ++i)
            values[i] = value_of<Value>(walk.sum, element_of<decltype(element)>(elements, i));
    });
    if constexpr (std::is_same_v<Value, float>)
        if (side.rounded)
            for (unsigned i = 0; i < Count; ++i)
                values[i] = nearest_of(walk.sum, values[i]);
    if (Count > 1 && side.spread)
        for (unsigned i = 1; i < Count; ++i)
            values[i] = values[0];
}

template <typename Value>
__device__ static Value
add_values(const walk &walk, Value x, Value y)
{
    if constexpr (is_complex<Value>::value) {
        const Value sum = {x.re + y.re, x.im + y.im};
        if (!walk.sides[LAYOUT_SUM].rounded)
            return sum;
        return {static_cast<float>(sum.re), static_cast<float>(sum.im)};
    } else if constexpr (std::is_integral_v<Value>) {
        if (walk.sum == DTYPE_BOOL)
            return x | y;
        const uint64_t left = (x + y) << walk.wrap;
        return walk.is_signed ? static_cast<uint64_t>(static_cast<int64_t>(left) >> walk.wrap) : left >> walk.wrap;
    } else if constexpr (std::is_same_v<Value, float>)
        return walk.sides[LAYOUT_SUM].rounded ? nearest_of(walk.sum, x + y) : x + y;
    else
        return x + y;
}

template <typename Value, unsigned Count>
__device__ static packed<RUN_BYTES<Count>>
pack(const walk &walk, const Value (&values)[Count])
{
    packed<RUN_BYTES<Count>> elements = {};
    with_dtype<output_kinds<Value>>(walk.sides[LAYOUT_SUM].dtype, [&](auto element) {
        using type = decltype(element);
        for (unsigned i = 0; i < Count; ++i)
            if constexpr (Count * sizeof(type) <= sizeof elements)
                put_element(elements, i, converted<type>(walk.sum, values[i]));
    });
    return elements;
}

template <typename Value, unsigned Count, unsigned Runs>
__global__ static void
strided(const char *a, const char *b, char *c, const __grid_constant__ walk walk)
{
    const uint32_t first = blockIdx.x * blockDim.x * Runs + threadIdx.x;
    if (!a)
        a = reinterpret_cast<const char *>(walk.scalar[0]);
    if (!b)
        b = reinterpret_cast<const char *>(walk.scalar[1]);
    run run[Runs];
    packed<RUN_BYTES<Count>> x[Runs], y[Runs];
    UNROLLED
    for (unsigned r = 0; r < Runs; ++r) {
        if (first + r * blockDim.x >= walk.runs)
            break;
        run[r] = find_run<Count>(walk, first + r * blockDim.x);
        x[r] = load_run<Count>(a + run[r].at[0], walk.sides[0], run[r].count);
        y[r] = load_run<Count>(b + run[r].at[1], walk.sides[1], run[r].count);
    }
    UNROLLED
    for (unsigned r = 0; r < Runs; ++r) {
        if (first + r * blockDim.x >= walk.runs)
            break;
        Value left[Count] = {}, right[Count] = {};
        unpack(walk, walk.sides[0], x[r], left);
        unpack(walk, walk.sides[1], y[r], right);
        for (unsigned i = 0; i < Count; ++i)
            left[i] = add_values(walk, left[i], right[i]);
        const side &side = walk.sides[LAYOUT_SUM];
        store_packed(c + run[r].at[LAYOUT_SUM], pack(walk, left), side.itemsize * run[r].count,
                     side.whole && run[r].count == Count);
    }
}

/* visit(Value()) with the kind of value that sums of this dtype are added as. */
template <typename Visit>
static auto
with_value(enum dtype sum, Visit visit)
{
    switch (sum) {
    case DTYPE_FLOAT16:
    case DTYPE_BFLOAT16:
    case DTYPE_FLOAT32:
        return visit(float());
    case DTYPE_FLOAT64:
        return visit(double());
    case DTYPE_COMPLEX64:
    case DTYPE_COMPLEX128:
        return visit(complex_of<double>());
    default:
        return visit(uint64_t());
    }
}

/* Elements of a run in vectors, and runs of a thread in either form. A complex number has 16 bytes by itself. */
template <typename Value> static constexpr unsigned RUN = is_complex<Value>::value ? 1 : 4;
enum { RUNS_OF_ONE = 2, RUNS_OF_MORE = 1 };

/* The quicker forms; the first that takes the operands adds them. */
static const struct strided_form *const FORMS[] = {&strided_tiles, &strided_alike, &strided_mixed};

static const struct strided_form *
form_of(const struct strided *add, const struct layout *layout, const char *const at[])
{
    for (const struct strided_form *form : FORMS)
        if (form->takes(add, layout, at))
            return form;
    return nullptr;
}

static cudaError_t
launch_piece(const struct strided *add, const struct layout *layout, const char *const at[], cudaStream_t stream)
{
    if (const struct strided_form *form = form_of(add, layout, at))
        return form->launch(add, layout, at, stream);
    return with_value(add->sum, [=](auto value) {
        using type = decltype(value);
        if constexpr (RUN < type >> 1)
            if (takes_runs(add, layout, at, RUN<type>, true))
                return launch_form(strided<type, RUN<type>, RUNS_OF_MORE>, RUN<type>, RUNS_OF_MORE, add, layout, at,
                                   stream);
        return launch_form(strided<type, 1, RUNS_OF_ONE>, 1, RUNS_OF_ONE, add, layout, at, stream);
    });
}

/* A launch has: thread numbers are divided as 32 bits. */
static constexpr uint64_t MOST_ELEMENTS = INT32_MAX;

/* Halves what is too large along its outermost axis, at a multiple of 4096 where there is one. */
static cudaError_t
launch_pieces(const struct strided *add, const struct layout *layout, const char *const at[], cudaStream_t stream)
{
    if (layout_size(layout) <= MOST_ELEMENTS)
        return launch_piece(add, layout, at, stream);
    struct layout half = *layout;
    const int outer = layout->ndim - 1;
    const ssize_t extent = layout->extent[outer], grain = extent > 8192 ? 4096 : 1;
    const ssize_t first = (extent / 2 + grain - 1) / grain * grain;
    half.extent[outer] = first;
    const cudaError_t error = launch_pieces(add, &half, at, stream);
    if (error != cudaSuccess)
        return error;
    const char *rest[LAYOUT_OPERANDS];
    for (int k = 0; k < LAYOUT_OPERANDS; ++k)
        rest[k] = at[k] + first * layout->stride[k][outer];
    half.extent[outer] = extent - first;
    return launch_pieces(add, &half, rest, stream);
}

/* Where the walk begins in each operand; NULL for a scalar. */
struct beginning {
    const char *at[LAYOUT_OPERANDS];

    beginning(const struct strided *add, const void *a, const void *b, const void *c)
        : at{static_cast<const char *>(a), static_cast<const char *>(b), static_cast<const char *>(c)}
    {
        for (int k = 0; k < LAYOUT_OPERANDS; ++k)
            at[k] = k < LAYOUT_SUM && add->is_scalar[k] ? nullptr : at[k] + add->layout.offset[k];
    }
};

cudaError_t
strided_launch(const struct strided *add, const void *a, const void *b, void *c, cudaStream_t stream)
{
    return launch_pieces(add, &add->layout, beginning(add, a, b, c).at, stream);
}

const char *
strided_form_name(const struct strided *add, const void *a, const void *b, const void *c)
{
    const struct strided_form *form = form_of(add, &add->layout, beginning(add, a, b, c).at);
    return form ? form->name : "general";
}

cudaError_t
strided_load(void)
{
    static constexpr enum dtype sums[] = {DTYPE_INT64, DTYPE_FLOAT32, DTYPE_FLOAT64, DTYPE_COMPLEX128};
    cudaError_t error = cudaSuccess;
    for (const struct strided_form *form : FORMS)
        if (error == cudaSuccess)
            error = form->load();
    for (enum dtype sum : sums)
        if (error == cudaSuccess)
            error = with_value(sum, [](auto value) {
                using type = decltype(value);
                cudaError_t found = load(strided<type, 1, RUNS_OF_ONE>);
                if constexpr (RUN < type >> 1)
                    if (found == cudaSuccess)
                        found = load(strided<type, RUN<type>, RUNS_OF_MORE>);
                return found;
            });
    return error;
}

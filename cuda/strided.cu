/* strided: additions of any layout and any dtypes, which the kernel `tuned` (add.cu) does not take.
 *
 * Threads are numbered in the sum's memory order. The kernel here is the general one: each thread adds two elements
 * that are a block apart, so that a warp's loads are adjacent for any alignment, and switches on the operands' dtypes,
 * without divergence in the grid. Common additions take one of the faster forms. */
#include "cuda/components.cuh"
#include "cuda/elements.cuh"
#include "cuda/facts.h"
#include "cuda/index_map.cuh"
#include "cuda/kernels.h"
#include "cuda/shifted.cuh"

/* --- A number and an array. */

/* Additions of a number to a contiguous array of its dtype, at any alignment: a + 2.0. Numbers beside floats of 16 bits
 * may be float32: PyTorch's rule.
 *
 * A kernel a component with few parameters: 65 us for 2^25 float32 on an H200, where one that knows any layout takes
 * 67; 11.9 and 13.4 us for 2^22. Vectors are aligned on the sum, as add.cu's. */

template <typename Component>
static constexpr bool is_16_bit_float = Component::number == COMPONENT_F16 || Component::number == COMPONENT_BF16;

/* A number that is added in float32, whatever the elements' precision. */
struct wide_number {
    float value;
};

template <typename Component>
__device__ static typename Component::element
add_one(typename Component::element x, const vector_of<Component> &number, unsigned at, bool first)
{
    const auto other = reinterpret_cast<const typename Component::element *>(&number)[at];
    return first ? add_elements<Component>(other, x) : add_elements<Component>(x, other);
}

template <typename Component>
__device__ static typename Component::element
add_one(typename Component::element x, const wide_number &number, unsigned, bool)
{
    return Component::nearest(Component::to_float(x) + number.value);
}

template <typename Component>
__device__ static vector_of<Component>
add_all(const vector_of<Component> &x, const vector_of<Component> &number, bool first)
{
    return first ? add_vectors<Component>(number, x) : add_vectors<Component>(x, number);
}

template <typename Component>
__device__ static vector_of<Component>
add_all(const vector_of<Component> &x, const wide_number &number, bool first)
{
    vector_of<Component> sum;
    UNROLLED
    for (unsigned i = 0; i < sizeof sum.units / sizeof sum.units[0]; ++i) {
        const auto unit = x.units[i];
        sum.units[i] = add_one<Component>(static_cast<uint16_t>(unit), number, 0, first) |
                       static_cast<uint32_t>(add_one<Component>(static_cast<uint16_t>(unit >> 16), number, 0, first))
                           << 16;
    }
    return sum;
}

template <typename Component, typename Number, bool Shifted>
__global__ static void
add_number(const typename Component::element *x, typename Component::element *c, const __grid_constant__ Number number,
           small_split split, bool first)
{
    using vector = vector_of<Component>;
    const uint32_t thread = blockIdx.x * BLOCK + threadIdx.x;
    if (thread < split.vectors) {
        vector own;
        if constexpr (Shifted)
            own = align<Component>(load_straddle<LOADS_PLAIN>(x, thread));
        else
            own = reinterpret_cast<const vector *>(x)[thread];
        reinterpret_cast<vector *>(c)[thread] = add_all<Component>(own, number, first);
    } else if (thread - split.vectors < split.edges) {
        const int64_t i = edge_at<Component>(split, thread - split.vectors);
        c[i] = add_one<Component>(x[i], number, i & (vector::size - 1), first);
    }
}

static bool
takes_number(const struct strided *add, const struct layout *layout, const char *const at[])
{
    if (add->is_scalar[0] == add->is_scalar[1])
        return false;
    const struct dtype_row *row = &dtype_table[add->sum];
    for (int k = 0; k < LAYOUT_OPERANDS; ++k)
        if ((add->dtype[k] != add->sum && !(k < LAYOUT_SUM && is_wide_number(add, k))) ||
            ((k == LAYOUT_SUM || !add->is_scalar[k]) &&
             (phase_of(at[k]) % component_size[row->component] != 0 || !layout_is_dense(layout, k, row->itemsize))))
            return false;
    return true;
}

template <typename Component>
static cudaError_t
launch_number_of(const struct strided *add, const struct layout *layout, const char *const at[], cudaStream_t stream)
{
    using element = typename Component::element;
    const int array = add->is_scalar[0];
    const char *const x = at[array];
    char *const c = const_cast<char *>(at[LAYOUT_SUM]);
    const struct dtype_row *row = &dtype_table[add->sum];
    const uint64_t n = layout_size(layout) * row->components;
    constexpr unsigned SIZE = sizeof(element), COUNT = vector_of<Component>::size;
    const bool shifted = phase_of(x) != phase_of(c);
    const small_split split = small(split_components<Component>(c, n, shifted));
    const auto launch_with = [&](auto plain, auto aligning, const auto &number) {
        return launch(shifted ? aligning : plain, uint64_t(split.vectors) + split.edges, BLOCK, stream,
                      reinterpret_cast<const element *>(x) + split.head, reinterpret_cast<element *>(c) + split.head,
                      number, split, array == 1);
    };
    if constexpr (is_16_bit_float<Component>)
        if (is_wide_number(add, 1 - array)) {
            wide_number number;
            __builtin_memcpy(&number.value, add->scalar[1 - array], sizeof number.value);
            return launch_with(add_number<Component, wide_number, false>, add_number<Component, wide_number, true>,
                               number);
        }
    /* The number as it is at the first vector, which may begin with a complex number's imaginary part. */
    vector_of<Component> number;
    for (unsigned i = 0; i < COUNT; ++i)
        __builtin_memcpy(reinterpret_cast<char *>(&number) + i * SIZE,
                         add->scalar[1 - array] + (i + split.head) % row->components * SIZE, SIZE);
    using numbers = vector_of<Component>;
    return launch_with(add_number<Component, numbers, false>, add_number<Component, numbers, true>, number);
}

static cudaError_t
launch_number(const struct strided *add, const struct layout *layout, const char *const at[], cudaStream_t stream)
{
    return with_component(dtype_table[add->sum].component, [=](auto component) {
        return launch_number_of<decltype(component)>(add, layout, at, stream);
    });
}

static cudaError_t
load_number(void)
{
    return load_components([](auto component) {
        using type = decltype(component);
        const cudaError_t error =
            load(add_number<type, vector_of<type>, false>, add_number<type, vector_of<type>, true>);
        if constexpr (is_16_bit_float<type>)
            if (error == cudaSuccess)
                return load(add_number<type, wide_number, false>, add_number<type, wide_number, true>);
        return error;
    });
}

static const struct strided_form strided_number = {"number", takes_number, launch_number, load_number};

/* --- The general kernel. */

template <typename Value>
static constexpr unsigned input_kinds = std::is_integral_v<Value>  ? INTEGERS
                                        : is_complex<Value>::value ? INTEGERS | FLOATS | COMPLEXES
                                                                   : INTEGERS | FLOATS;
template <typename Value>
static constexpr unsigned output_kinds = std::is_integral_v<Value> ? INTEGERS | FLOATS | COMPLEXES : FLOATS | COMPLEXES;

template <typename Value>
__device__ static Value
unpack(const long_index_map &map, const side &side, const packed &bytes)
{
    Value value = {};
    with_dtype<input_kinds<Value>>(side.dtype, [&](auto element) {
        value = value_of<Value>(map.component, element_of<decltype(element)>(bytes, 0));
    });
    if constexpr (std::is_same_v<Value, float>)
        if (side.rounded)
            value = nearest_of(map.component, value);
    return value;
}

template <typename Value>
__device__ static Value
add_values(const long_index_map &map, Value x, Value y)
{
    if constexpr (is_complex<Value>::value) {
        const Value sum = {x.re + y.re, x.im + y.im};
        if (!map.sides[LAYOUT_SUM].rounded)
            return sum;
        return {static_cast<float>(sum.re), static_cast<float>(sum.im)};
    } else if constexpr (std::is_integral_v<Value>) {
        if (map.component == COMPONENT_BOOL)
            return x | y;
        const uint64_t left = (x + y) << map.wrap;
        return map.is_signed ? static_cast<uint64_t>(static_cast<int64_t>(left) >> map.wrap) : left >> map.wrap;
    } else if constexpr (std::is_same_v<Value, float>) {
        /* A NaN has a's sign if a is a NaN, else sign 0, as in e4m3fn_component. */
        if (map.component == COMPONENT_E4M3FN && (x != x || y != y))
            return x != x ? x : bits_as<float>(0x7fc00000u);
        return map.sides[LAYOUT_SUM].rounded ? nearest_of(map.component, x + y) : x + y;
    } else
        return x + y;
}

template <typename Value>
__device__ static packed
pack(const long_index_map &map, Value value)
{
    packed bytes = {};
    with_dtype<output_kinds<Value>>(map.sides[LAYOUT_SUM].dtype, [&](auto element) {
        put_element(bytes, 0, converted<decltype(element)>(map.is_signed, value));
    });
    return bytes;
}

template <typename Value, unsigned Runs>
__global__ static void
strided(const char *a, const char *b, char *c, const __grid_constant__ long_index_map map)
{
    const uint32_t first = blockIdx.x * blockDim.x * map.runs_a_thread + threadIdx.x;
    a = input_of(map, 0, a);
    b = input_of(map, 1, b);
    int64_t at[Runs];
    packed x[Runs], y[Runs];
    UNROLLED
    for (unsigned r = 0; r < Runs; ++r) {
        if (r >= map.runs_a_thread || first + r * blockDim.x >= map.runs)
            break;
        const run run = find_run<1>(map, first + r * blockDim.x);
        x[r] = load_packed(a + run.at[0], map.sides[0].itemsize, map.sides[0].whole);
        y[r] = load_packed(b + run.at[1], map.sides[1].itemsize, map.sides[1].whole);
        at[r] = run.at[LAYOUT_SUM];
    }
    UNROLLED
    for (unsigned r = 0; r < Runs; ++r) {
        if (r >= map.runs_a_thread || first + r * blockDim.x >= map.runs)
            break;
        const Value left = unpack<Value>(map, map.sides[0], x[r]), right = unpack<Value>(map, map.sides[1], y[r]);
        const side &side = map.sides[LAYOUT_SUM];
        store_packed(c + at[r], pack(map, add_values(map, left, right)), side.itemsize, side.whole);
    }
}

/* Calls visit(Value()) with the type in which sums of this dtype are computed. */
template <typename Visit>
static auto
with_value(enum dtype sum, Visit visit)
{
    switch (dtype_table[sum].value) {
    case VALUE_BOOL:
    case VALUE_SIGNED:
    case VALUE_UNSIGNED:
        return visit(uint64_t());
    case VALUE_FLOAT:
        return dtype_table[sum].component == COMPONENT_F64 ? visit(double()) : visit(float());
    case VALUE_COMPLEX:
        return visit(complex_of<double>());
    }
    __builtin_unreachable();
}

enum { RUNS = 2 }; /* of each thread */

/* The faster forms; the first one that takes the operands adds them. */
static const struct strided_form *const FORMS[] = {&strided_number, &strided_tiles, &strided_turned,
                                                   &strided_same_dtype, &strided_mixed};

static const struct strided_form *
form_of(const struct strided *add, const struct layout *layout, const char *const at[])
{
    for (const struct strided_form *form : FORMS)
        if (layout->ndim <= FEW_AXES && form->takes(add, layout, at))
            return form;
    return nullptr;
}

static cudaError_t
launch_piece(const struct strided *add, const struct layout *layout, const char *const at[], cudaStream_t stream)
{
    if (const struct strided_form *form = form_of(add, layout, at))
        return form->launch(add, layout, at, stream);
    return with_value(add->sum, [=](auto value) {
        return launch_form(strided<decltype(value), RUNS>, 1, RUNS, add, layout, at, stream);
    });
}

/* Of one launch: index computations divide 32-bit thread numbers. */
static constexpr uint64_t MAX_ELEMENTS = INT32_MAX;

/* A part of a layout, cut along its outermost axis. */
static struct layout
part_of(const struct layout *layout, ssize_t extent)
{
    struct layout part = *layout;
    part.extent[layout->ndim - 1] = extent;
    if (extent == 1)
        --part.ndim; /* a layout has no axis of one element; further cuts take the next axis */
    return part;
}

/* Launches the addition, halved along its outermost axis until each piece is small enough; cuts long axes at multiples
 * of 4096. */
static cudaError_t
launch_pieces(const struct strided *add, const struct layout *layout, const char *const at[], uint64_t most,
              cudaStream_t stream)
{
    if (layout_size(layout) <= most)
        return launch_piece(add, layout, at, stream);
    const int outer = layout->ndim - 1;
    const ssize_t extent = layout->extent[outer], grain = extent > 8192 ? 4096 : 1;
    const ssize_t first = (extent / 2 + grain - 1) / grain * grain;
    const struct layout front = part_of(layout, first), back = part_of(layout, extent - first);
    const cudaError_t error = launch_pieces(add, &front, at, most, stream);
    if (error != cudaSuccess)
        return error;
    const char *rest[LAYOUT_OPERANDS];
    for (int k = 0; k < LAYOUT_OPERANDS; ++k)
        rest[k] = at[k] + first * layout->stride[k][outer];
    return launch_pieces(add, &back, rest, most, stream);
}

/* The first element that the kernel visits in each operand; NULL for a scalar. */
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
    return strided_launch_pieces(add, a, b, c, MAX_ELEMENTS, stream);
}

cudaError_t
strided_launch_pieces(const struct strided *add, const void *a, const void *b, void *c, size_t most,
                      cudaStream_t stream)
{
    return launch_pieces(add, &add->layout, beginning(add, a, b, c).at, most, stream);
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
    cudaError_t error = cudaSuccess;
    for (const struct strided_form *form : FORMS)
        if (error == cudaSuccess)
            error = form->load();
    for (int sum = 0; sum < DTYPE_COUNT; ++sum)
        if (error == cudaSuccess)
            error = with_value(static_cast<enum dtype>(sum),
                               [](auto value) { return load(strided<decltype(value), RUNS>); });
    return error;
}

/* Additions of a number to a contiguous array of its dtype, at any alignment: a + 2.0. Numbers beside floats of 16 bits
 * may be float32: PyTorch's rule.
 *
 * A kernel a component with few parameters: 65 us for 2^25 float32 on an H200, where one that knows any layout takes
 * 67; 11.9 and 13.4 us for 2^22. Vectors lie on the sum's alignment, as add.cu's. */
#include "cuda/components.cuh"
#include "cuda/index_map.cuh"
#include "cuda/shifted.cuh"
#include "cuda/strided_forms.cuh"

template <typename Component>
static constexpr bool is_16_bit_float = Component::number == COMPONENT_F16 || Component::number == COMPONENT_BF16;

/* The first `vectors` threads take a vector each, the next `edges` threads a component each: those before the first
 * vector, `head` of them, and those after the last. */
struct number_split {
    uint32_t head, vectors, edges;
};

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
           number_split split, bool first)
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
        const uint32_t edge = thread - split.vectors;
        int64_t i = static_cast<int64_t>(edge) - split.head;
        if (edge >= split.head)
            i += static_cast<int64_t>(split.vectors) * vector::size;
        c[i] = add_one<Component>(x[i], number, i & (vector::size - 1), first);
    }
}

static bool
takes(const struct strided *add, const struct layout *layout, const char *const at[])
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
launch_number(const struct strided *add, const struct layout *layout, const char *const at[], cudaStream_t stream)
{
    using element = typename Component::element;
    const int array = add->is_scalar[0];
    const char *const x = at[array];
    char *const c = const_cast<char *>(at[LAYOUT_SUM]);
    const struct dtype_row *row = &dtype_table[add->sum];
    const uint64_t n = layout_size(layout) * row->components;
    constexpr unsigned SIZE = sizeof(element), COUNT = vector_of<Component>::size;
    const bool shifted = phase_of(x) != phase_of(c);
    /* A shifted vector's loads reach up to one vector beyond it on both sides. */
    const unsigned margin = shifted ? COUNT : 0;

    number_split split;
    split.head = (16 - phase_of(c)) % 16 / SIZE + margin;
    split.vectors = n < split.head + margin ? 0 : static_cast<uint32_t>((n - split.head - margin) / COUNT);
    split.edges = static_cast<uint32_t>(n - uint64_t(split.vectors) * COUNT);
    if (split.vectors == 0)
        split.head = 0;
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
    /* The number as it stands at the first vector, which may begin with a complex number's imaginary part. */
    vector_of<Component> number;
    for (unsigned i = 0; i < COUNT; ++i)
        __builtin_memcpy(reinterpret_cast<char *>(&number) + i * SIZE,
                         add->scalar[1 - array] + (i + split.head) % row->components * SIZE, SIZE);
    using numbers = vector_of<Component>;
    return launch_with(add_number<Component, numbers, false>, add_number<Component, numbers, true>, number);
}

static cudaError_t
launch_any(const struct strided *add, const struct layout *layout, const char *const at[], cudaStream_t stream)
{
    return with_component(dtype_table[add->sum].component,
                          [=](auto component) { return launch_number<decltype(component)>(add, layout, at, stream); });
}

static cudaError_t
load_all(void)
{
    cudaError_t error = cudaSuccess;
    for (int component = 0; component < COMPONENT_COUNT && error == cudaSuccess; ++component)
        error = with_component(static_cast<enum component>(component), [](auto each) {
            using type = decltype(each);
            cudaError_t found = load(add_number<type, vector_of<type>, false>);
            if (found == cudaSuccess)
                found = load(add_number<type, vector_of<type>, true>);
            if constexpr (is_16_bit_float<type>) {
                if (found == cudaSuccess)
                    found = load(add_number<type, wide_number, false>);
                if (found == cudaSuccess)
                    found = load(add_number<type, wide_number, true>);
            }
            return found;
        });
    return error;
}

const struct strided_form strided_number = {"number", takes, launch_any, load_all};

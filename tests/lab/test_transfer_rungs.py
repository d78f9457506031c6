"""The transfer rungs: host arrays through the GPU and back, by each way, kernel and allocation, at awkward sizes."""

import numpy as np
import pytest
from arrays import DTYPES, assert_same_values, numpys_sum, pinned, values
from conftest import ON_DOUBLE

from vecadd import _core, ladder

RUNGS = {rung["name"]: rung for rung in _core.rungs() if rung["kind"] == "transfer"}
PINNED_ALONE = [name for name, rung in RUNGS.items() if rung["memory"] == "pinned"]
KERNELS = RUNGS["pageable"]["choices"]["kernel"]
CLEARED = [KERNELS.index(name) for name in ("single_block", "grid_stride")]  # these add to the contents of the sum
FLOAT32 = np.dtype("float32")

# The usual call, each kernel, and each way to allocate or cut; of zero_copy no kernel that would add to out.
CALLS = [
    pytest.param(name, params, id=f"{name} {params}")
    for name, rung in RUNGS.items()
    for params in (
        {},
        *(
            {"kernel": k}
            for k in range(1, 7)
            if "kernel" in rung["params"] and not (name == "zero_copy" and k in CLEARED)
        ),
        *({"allocates": k} for k in (0, 1) if "allocates" in rung["params"]),
        *({"chunk": k} for k in (1024, 1025) if "chunk" in rung["params"]),
        *({"threads": k} for k in (1, 2, 5) if "threads" in rung["params"]),
    )
]


def ordinary(x):
    return x.copy()


def memory_of(name):
    return pinned if name in PINNED_ALONE else ordinary


def numbers(seed, n, dtype=FLOAT32):
    return np.random.default_rng(seed).integers(-60, 60, n).astype(dtype)


def test_each_row_says_which_memory_the_rung_is_about():
    assert set(PINNED_ALONE) == {
        *("pinned", "pinned_reused", "stream1_pinned", "streams2", "chunks_reused", "streams4"),
        *("malloc_each_call", "pool", "zero_copy"),
    }
    assert {RUNGS[name]["memory"] for name in ("hybrid", "tuned_transfer")} == {"either"}
    assert {rung["memory"] for rung in RUNGS.values()} == {"pageable", "pinned", "either"}
    assert {rung["memory"] for rung in _core.rungs() if rung["kind"] != "transfer"} == {""}


@pytest.mark.parametrize("name", RUNGS)
def test_each_row_says_what_it_changes_against_which_rung(name):
    rung = RUNGS[name]
    assert rung["changes"]
    assert rung["sum"] == "written"
    assert rung["after"] in RUNGS or (name, rung["after"]) == ("pageable", None)


@pytest.mark.parametrize(("name", "params"), CALLS)
@pytest.mark.parametrize("n", [255, 10_001])
def test_every_kernel_allocation_and_chunk_gives_the_sum(device, n, name, params):
    memory = memory_of(name)
    a, b = memory(numbers(1, n)), memory(numbers(2, n))
    out = memory(np.full(n, np.nan, FLOAT32))
    assert ladder.run(name, a, b, out, **params) is out
    assert_same_values(out, a + b)


# To a transfer, dtypes of one size are the same bytes: each rung has one of every size, each dtype several rungs.
BY_SIZE = [[dtype for dtype in DTYPES if dtype.itemsize == size] for size in (1, 2, 4, 8, 16)]
OF_EVERY_SIZE = [(name, same[i % len(same)]) for i, name in enumerate(RUNGS) for same in BY_SIZE]


@pytest.mark.parametrize(
    ("name", "dtype", "n"),
    [(*call, 1003) for call in OF_EVERY_SIZE] + [(name, FLOAT32, n) for name in RUNGS for n in (0, 1)],
    ids=str,
)
def test_every_dtype_gives_numpys_sum(device, name, dtype, n):
    memory = memory_of(name)
    a, b = memory(values(dtype, n, 1)), memory(values(dtype, n, 2))
    out = memory(np.zeros(n, dtype))
    with np.errstate(all="ignore"):
        want = numpys_sum(a, b)
    ladder.run(name, a, b, out)
    assert_same_values(out, want)


@pytest.mark.parametrize("kernel", range(7))
@pytest.mark.parametrize("dtype", ["int8", "float16", "float64"])
@pytest.mark.parametrize("name", ["pageable", "streams4"])
def test_every_kernel_takes_these_dtypes(device, name, dtype, kernel):
    memory = memory_of(name)
    a, b = memory(numbers(1, 4099, dtype)), memory(numbers(2, 4099, dtype))
    out = memory(np.zeros(4099, dtype))
    ladder.run(name, a, b, out, kernel=kernel)
    assert_same_values(out, a + b)


# Whole chunks: of streams2 as asked, of staged 128 KiB, of hybrid 4 MiB; quarters of streams4 begin at multiples of 256
# bytes.
WHOLE = {
    "streams2": ({"chunk": 1024}, 3 * 4096),
    "streams4": ({}, 4 * 1024),
    "staged": ({"threads": 1}, 256 << 10),
    "hybrid": ({"threads": 1}, 4 << 20),
}


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("more", [-1, 0, 1])
def test_sizes_around_chunks_are_added_whole(device, more, name):
    params, nbytes = WHOLE[name]
    n = nbytes // 4 + more
    a, b, out = pinned(numbers(1, n)), pinned(numbers(2, n)), pinned(np.full(n, np.nan, FLOAT32))
    ladder.run(name, a, b, out, **params)
    assert_same_values(out, a + b)


@pytest.mark.parametrize("order", range(10 if ON_DOUBLE else 1))
@pytest.mark.parametrize("name", ["streams2", "streams4", "copy_async", "pool", "hybrid"])
def test_any_order_that_the_streams_allow_gives_the_sum(order, name, request, device):
    if ON_DOUBLE:
        request.getfixturevalue("double").reset(order)
    n = 30_000
    a, b, out = pinned(numbers(1, n)), pinned(numbers(2, n)), pinned(np.full(n, np.nan, FLOAT32))
    params = {"chunk": 4096} if name == "streams2" else {"threads": 1} if name == "hybrid" else {}
    ladder.run(name, a, b, out, **params)
    assert_same_values(out, a + b)


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("name", RUNGS)
def test_out_may_be_an_input(device, name, which):
    memory = memory_of(name)
    operands = [memory(numbers(1, 20_001)), memory(numbers(2, 20_001))]
    want = operands[0] + operands[1]
    ladder.run(name, *operands, operands[which])
    assert_same_values(operands[which], want)


@pytest.mark.parametrize("name", RUNGS)
def test_nothing_is_left_allocated(double, device, name):
    memory = memory_of(name)
    a, out = memory(numbers(1, 40_000)), memory(np.zeros(40_000, FLOAT32))
    ladder.run(name, a, a, out)  # makes what the process keeps
    before = double.live()
    for allocates in (0, 1):
        params = {"allocates": allocates} if "allocates" in RUNGS[name]["params"] else {}
        ladder.run(name, a, a, out, **params)
    assert double.live() == before


ALLOCATIONS = {
    "pageable": ("cudaMalloc", {"allocates": 1}, 3),
    "pageable kept": ("cudaMalloc", {"allocates": 0}, 0),
    "streams2": ("cudaMalloc", {"allocates": 1}, 6),
    "streams4": ("cudaStreamCreate", {"allocates": 0}, 4),
    "malloc_each_call": ("cudaMalloc", {}, 3),
    "pool": ("cudaMalloc", {}, 0),
    "pinned_reused": ("cudaMalloc", {}, 0),
    "managed": ("cudaMallocManaged", {}, 3),
    "zero_copy": ("cudaMallocFromPoolAsync", {}, 0),
}


@pytest.mark.parametrize(("call", "params", "times"), ALLOCATIONS.values(), ids=ALLOCATIONS)
def test_a_run_allocates_what_its_row_says(double, device, request, call, params, times):
    name = request.node.callspec.id.partition(" ")[0]
    memory = memory_of(name)
    a, out = memory(numbers(1, 5000)), memory(np.zeros(5000, FLOAT32))
    ladder.run(name, a, a, out, **params)
    double.reset(0)
    ladder.run(name, a, a, out, **params)
    assert double.calls(call) == times


@pytest.mark.parametrize("operand", [0, 1, 2])
@pytest.mark.parametrize("name", PINNED_ALONE)
def test_ordinary_memory_is_refused_where_it_would_be_another_rung(device, name, operand):
    arrays = [pinned(numbers(seed, 100)) for seed in range(3)]
    arrays[operand] = ordinary(arrays[operand])
    before = arrays[2].copy()
    said = ("a", "b", "out")[operand]
    with pytest.raises(ValueError, match=f"rung {name} takes page-locked memory and {said} is not: use empty_pinned"):
        ladder.run(name, *arrays)
    assert_same_values(arrays[2], before)


REFUSED = {
    "a kernel that does not take the dtype": (
        ("pageable", "int64", {"kernel": 4}),
        "the kernel single_thread does not take elements of this dtype",
    ),
    "a kernel that would add to out": (("zero_copy", "float32", {"kernel": 6}), "adds to the contents of out"),
    "no such kernel": (("pageable", "float32", {"kernel": 8}), r"kernel \(0 naive, .*\) must be 0 to 7, not 8"),
    "a chunk of nothing": (("streams2", "float32", {"chunk": 0}), "chunk .* must be 1024 to "),
    "a block": (("pageable", "float32", {"block": 64}), "block is for device rungs"),
}


@pytest.mark.parametrize(("call", "message"), REFUSED.values(), ids=REFUSED)
def test_what_a_rung_does_not_take_is_refused(device, call, message):
    name, dtype, keywords = call
    a, out = pinned(numbers(1, 100, dtype)), pinned(np.full(100, 7, dtype))
    with pytest.raises(ValueError, match=message):
        ladder.run(name, a, a, out, **keywords)
    assert (out == 7).all()


def test_zero_copy_refuses_memory_that_its_kernel_cannot_use(device):
    memory = pinned(numbers(1, 1001))
    with pytest.raises(
        ValueError, match="the kernel float4 takes memory aligned to 16 bytes; naive and tuned take any"
    ):
        ladder.run("zero_copy", memory[1:], memory[1:], memory[1:], kernel=2)
    want = 2 * memory[1:]
    assert_same_values(ladder.run("zero_copy", memory[1:], memory[1:], memory[1:], kernel=3), want)


def test_managed_refuses_large_arrays(device):
    a = np.zeros((64 << 20) + 1, np.uint8)
    with pytest.raises(ValueError, match="rung managed takes arrays of at most 64 MiB, not 67108865 bytes"):
        ladder.run("managed", a, a, a)


def test_a_parameter_that_a_rung_has_not_is_refused(device):
    a = numbers(1, 10)
    with pytest.raises(TypeError, match="rung tuned_transfer has no parameter kernel"):
        ladder.run("tuned_transfer", a, a, kernel=1)


@pytest.mark.parametrize(
    ("timed", "launches", "why"),
    [
        (0, 3, "a kernel a chunk"),
        (1, 3, "a kernel a chunk"),
        (2, 6, "other memory is read before each"),
        (3, 18, "and after it, after an empty kernel, and an empty kernel alone"),
    ],
)
def test_other_memory_is_read_only_where_its_row_says(double, device, timed, launches, why):
    a, out = pinned(numbers(1, 10_001)), pinned(np.zeros(10_001, FLOAT32))
    assert ladder.time("chunks_reused", a, a, out, timed=timed, chunk=4096) > 0
    double.reset(0)
    ladder.run("chunks_reused", a, a, out, timed=timed, chunk=4096)
    assert_same_values(out, a + a)
    assert double.calls("cudaLaunchKernel") == launches, why

"""The C extension. `vecadd` re-exports what is public; the rest serves vecadd.ladder, vecadd.bench and vecadd.info."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import Context
from typing import Any, ClassVar, Final, Literal, NoReturn, SupportsIndex, final

import numpy as np
from numpy.typing import DTypeLike, NDArray

CUDA_BUILD: Final[bool]
LAB_BUILD: Final[bool]  # without it the functions of vecadd.ladder and vecadd.bench raise RuntimeError
CUDA_RUNTIME_VERSION: Final[int]
TUNED_VERSION: Final[int]  # of the format of the files that vecadd tune writes
DTYPES: Final[Mapping[str, int]]  # bytes of an element, by the names of the dtypes that add has code of its own for

class DeviceLostError(RuntimeError): ...

@final
class DeviceArray:
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def strides(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def ndim(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def itemsize(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def device(self) -> str: ...
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...
    def numpy(self, out: NDArray[Any] | None = None, stream: Any = None) -> NDArray[Any]: ...
    def copy(self) -> DeviceArray: ...
    def reshape(self, *shape: SupportsIndex | Sequence[SupportsIndex]) -> DeviceArray: ...
    def __getitem__(self, key: Any, /) -> DeviceArray: ...
    def __setitem__(self, key: Any, value: DeviceArray, /) -> None: ...
    def __iter__(self) -> Iterator[DeviceArray]: ...
    __dlpack_c_exchange_api__: ClassVar[Any]  # a capsule of DLPack's struct DLPackExchangeAPI
    def __array_ufunc__(self, ufunc: np.ufunc, method: str, /, *operands: Any, **keywords: Any) -> Any: ...
    def __array__(self, *arguments: Any, **keywords: Any) -> NoReturn: ...
    def __copy__(self) -> DeviceArray: ...
    def __deepcopy__(self, memo: Any, /) -> DeviceArray: ...
    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __len__(self) -> int: ...
    def __add__(self, other: Any, /) -> Any: ...
    def __radd__(self, other: Any, /) -> Any: ...
    def __iadd__(self, other: Any, /) -> DeviceArray: ...

@final
class Plan:
    @property
    def route(self) -> str: ...
    def __call__(self) -> Any: ...

def add(
    a: Any,
    b: Any,
    /,
    out: Any = None,
    *,
    device: str | int | None = None,
    stream: Any = None,
    **numpy_keywords: Any,
) -> Any: ...

# A planned addition of three arrays, or a planned add_many of three lists or tuples of arrays.
def plan(a: Any, b: Any, /, out: Any, *, stream: Any = None) -> Plan: ...
def add_many(
    xs: Iterable[Any], ys: Iterable[Any], /, out: Iterable[Any] | None = None, *, stream: Any = None
) -> list[Any]: ...

# Adds the arrays in two open files into a third, each (a, b, sum): their descriptors, the bytes before the arrays,
# dtypes, shapes, orders and names; the sum has elements. Works in as many threads as there are contexts, without the
# GIL where vecadd has a loop for the dtypes and rows; numpy.add is called in the contexts.
#
# tell(elements done), if it is not None, is called in this thread for every stretch, and the handlers of signals every
# tenth of a second: what these raise ends the work, and is raised when no thread works any more. Raises OSError.
def add_files(
    descriptors: tuple[int, ...],
    offsets: tuple[int, ...],
    dtypes: tuple[np.dtype[Any], ...],
    shapes: tuple[tuple[int, ...], ...],
    fortran_orders: tuple[bool, ...],
    names: tuple[str, ...],
    window: int,
    contexts: list[Context],
    adds: bool,
    tell: Callable[[int], object] | None,
    /,
) -> None: ...

# The most threads that an addition on the host uses; setting gives the number so far.
def get_num_threads() -> int: ...
def set_num_threads(n: SupportsIndex, /) -> int: ...
def to_device(x: Any, device: str | int | None = None) -> DeviceArray: ...
def empty_pinned(shape: int | Sequence[int], dtype: DTypeLike = ...) -> NDArray[Any]: ...

# What would be done, without doing it: {"route": "host" | "transfer" | "hybrid" | "device" | "numpy" | "library", ...};
# host routes add "threads", "stores" ("ordinary" | "streaming"), "simd"; "numpy" and "library" add "why". Host operands
# that are not contiguous arrays of one dtype and shape give "differs", a few words; those that are, or are made so for
# the GPU, "reason" ("asked" | "no CUDA" | "forbidden" | "failed" | "small or ordinary" | "rounding" | "predicted"),
# "memory" ("pinned" | "ordinary", only where CUDA may be used), "predicted": seconds by route, empty for any other
# reason than "predicted". After a failure "failure": its message.
def explain_route(
    a: Any, b: Any, /, out: Any = None, *, device: str | int | None = None, stream: Any = None, **numpy_keywords: Any
) -> dict[str, Any]: ...

# Whether additions of host arrays that name no device may go through the GPU; True starts CUDA.
def use_gpu(wanted: object = True, /) -> None: ...

# The host's {"simd", "simd_levels", "threads", "l1", "l2", "l3", "thresholds"}; caches and the sizes of
# thresholds in bytes. "simd" is None where VECADD_SIMD names no level that works.
def host_facts() -> dict[str, Any]: ...

# (usable, available): bytes of memory that this process may use, and that can be allocated now without swapping.
def host_memory(membership: str = "/proc/self/cgroup", mount: str = "/sys/fs/cgroup", /) -> tuple[int, int]: ...

# (driver, runtime) as CUDA counts them; driver 0 where there is none.
def cuda_versions() -> tuple[int, int]: ...

# One dict a GPU, the fields of struct device_facts; raises what every device call raises where there is none.
def gpu_facts() -> list[dict[str, Any]]: ...

# The launch configs of additions on a device: {"key": of its tuned file, "l2": bytes, "source": "shipped" | "inherited"
# (from another compute capability) | "tuned", "rows", "shipped": the build's own rows}. A row is (bytes of a, b and c
# from which it applies, threads a block, loads: 0 plain, 1 evict_last, sixtieths of the L2 demoted at each input's
# end).
def device_launch_configs(device: int, /) -> dict[str, Any]: ...

# {"device_bytes", "device_blocks", "pinned_bytes", "pinned_blocks"} of DeviceArrays and empty_pinned arrays now.
def memory_counts() -> dict[str, int]: ...

# {"used_bytes", "used_blocks", "kept_bytes", "kept_blocks", "bound"} of the pool for large sums on the host: in
# callers' hands, waiting for the next sum, and the bound of what is kept.
def output_pool_counts() -> dict[str, int]: ...

# {"bytes", "blocks"} of page-locked memory that is kept for the next transfer of host arrays through a GPU.
def transfer_counts() -> dict[str, int]: ...

# Puts our loops into numpy.add, where they are not yet. Returns the files of the libraries whose loops are below, by
# dtype. least is None for this machine's thresholds, or the bytes of a sum from which all threads add, whether they
# gain or not. Raises RuntimeError where another library has put a loop above ours, and ValueError for VECADD_SIMD.
def install_loops(least: int | None, /) -> dict[str, str]: ...

# Puts the loops below ours back into numpy.add; does nothing where ours are not in it. Raises RuntimeError where
# another library has put a loop above ours, which would be left with a loop that calls ours.
def uninstall_loops() -> None: ...

# Whether our loops are in numpy.add ("installed"), and the calls and elements that they have added themselves.
def loop_counts() -> dict[str, int]: ...

# Makes NumPy take the memory of new arrays from that handler, in this context (NEP 49): from ours for True, from
# NumPy's own for None. Returns the handler so far, for a later call.
def use_array_memory(handler: Any, /) -> Any: ...

# The parts of `vecadd run --why`; their docstrings say what each takes and gives.
def receipt_start(ours: tuple[str, ...], libraries: tuple[str, ...], /) -> None: ...
def receipt_stop() -> dict[str, Any]: ...

# Gives kept memory back to the system, but for memory that an addition in another thread uses. Returns bytes of host
# memory.
def release() -> int: ...

# The file that vecadd tune writes for a kind ("recipes") and a key, and its rows;
# csrc/base/tuned_file.h describes its form. The path is None where the environment names no folder, the rows where
# there is no valid file.
def tuned_path(kind: str, key: str, /) -> str | None: ...
def tuned_rows(kind: str, key: str, /) -> list[tuple[str, tuple[int, ...]]] | None: ...

# One dict a rung, in the ladder's order, the fields of struct rung: name, kind ("host" | "device" | "transfer" |
# "latency" | "matrix"), family ("kernels" | "precision" for device rungs, "transpose" | "sgemm" for matrix rungs, else
# ""), after (a rung or None), changes, dtypes, load (the load instruction of the float32 kernel, a precision rung's
# float16 kernel, on sm_90; "" where there is none), headline, sum ("written" | "added" | "added by each thread" |
# "raced"; of matrix rungs "copy" | "transpose" | "product"), bytes_per_element, bytes_per_load, loads_in_flight, block,
# blocks, min_cc, alignment (bytes; 0: the component's own), params {name: (least, usual, most)}, choices (by parameter,
# the names of its values where they have names), stages (of a transfer "serial", "overlapping", or "shared" with the
# processor), memory (of a transfer "pageable", "pinned" or "either"), allocates (a transfer's timed part always has an
# allocation), by_name (a sweep of the ladder runs it only where it is named), tile (of a product of matrices: rows and
# columns of the result that a block makes; else 0).
def rungs() -> list[dict[str, Any]]: ...

# Runs a rung into out and returns seconds: device and matrix rungs by CUDA events around the launch (waits for it), the
# others by the host's monotonic clock. Operands are of one dtype and size, contiguous, in the place that the rung's
# kind asks for; of a matrix rung float32 matrices, b None where it takes one. block is a device rung's threads a block,
# 0 for its own; params are whole numbers by name. Raises ValueError for a name that is not in the ladder, a size,
# shape, alignment, block or parameter that the rung does not take, a GPU below the compute capability that it needs, a
# read-only out, and one that overlaps an input; TypeError for arrays, dtypes and names of parameters that it does not
# take.
def run_rung(name: str, a: Any, b: Any, out: Any, /, *, block: int = 0, params: dict[str, int] = ...) -> float: ...

# How a device rung would be launched for n elements of that dtype, at aligned addresses, or a matrix rung for a matrix
# of n = (rows, columns), or (rows, columns, inner) of a product, and what its kernel takes; it queues nothing:
# {"registers": a thread's, "local": bytes a thread, "static_shared", "dynamic_shared": bytes a block, "grid" and
# "block": (x, y, z), "launches": kernels that a run queues (0 for no element, and all else is 0), "active_blocks": an
# SM's, from the runtime's occupancy calculator, "occupancy": 0..1 of an SM's warps, theoretical, "waves": blocks /
# (active_blocks * SMs), "loads_in_flight", "bytes_per_load": a thread's}. A rung that queues several kernels gives the
# facts of the first. Raises what run_rung raises, and ValueError for n < 0 and rungs of other kinds.
def rung_facts(
    name: str,
    dtype: str,
    n: int | tuple[int, ...],
    /,
    *,
    block: int = 0,
    params: dict[str, int] = ...,
    device: int = 0,
) -> dict[str, Any]: ...

# Runs a latency rung once and returns the seconds of its stages by the host's clock: {"issue": until all is queued,
# "total": until all is done, which is what run_rung returns}; of graph rungs also "capture", "instantiate" (its upload
# to the device included), "destroy", and "launch", the same as "total".
def latency_stages(name: str, a: Any, b: Any, out: Any, /, *, params: dict[str, int] = ...) -> dict[str, float]: ...

# Runs a transfer rung once: (what, stream, chunk, begin, end) of each step in the order in which they were queued,
# seconds from the first begin. what: "to_device" | "kernel" | "to_host" by CUDA events, stream counted from 0;
# "allocate" | "free" where the rung allocates inside its timed part, by the host's clock, stream -1 (managed's copies
# too: the host does them). All transfer rungs have a timeline; hybrid's has only the GPU's steps.
def timeline(
    name: str, a: NDArray[Any], b: NDArray[Any], out: NDArray[Any], /, *, params: dict[str, int] = ...
) -> list[tuple[str, int, int, float, float]]: ...

# Calls contestant(a, b, out) once, or launches the device rung of that name, and compares and times it in C. a, b and
# out are views of memory that begin at the elements start = (a, b, out), or what convert makes of them. versions,
# (count, 3, n), has a, b and their sum for each version: now is the one that is given, before what a and b have until
# the GPU comes to the call, last that of the call before (-1: none), donor the one whose elements at the indices pokes
# replace now's. An addition's traffic goes through flush right before the call; delay is how many cycles the GPU waits
# for the host. For blockade cycles, from before the call on, the GPU is too full for any kernel to run. bare:
# prepares and compares nothing.
#
# {"seconds" between CUDA events, "host": seconds until the function returned, "regions": in front of a, a, after it,
# b, after it, out, after it, each (wrong, first, unwritten, before, last), elements of at most 8 bytes, counted right
# after the call, "at_rest" and "later": those of out again where it was wrong, "persisting": bytes of the L2 that are
# set aside, "unordered": whether a copy of out after the call was over while no kernel could run and was not the sum:
# no kernel of the call is ordered before it}. Raises what the contestant raises, ValueError and TypeError for other
# arguments.
def judge_call(
    contestant: Any,
    memory: DeviceArray,
    start: tuple[int, int, int],
    versions: DeviceArray,
    /,
    *,
    convert: Any = None,
    now: int = 0,
    before: int = -1,
    last: int = -1,
    donor: int = -1,
    pokes: tuple[int, ...] = (),
    flush: DeviceArray | None = None,
    delay: int = 0,
    blockade: int = 0,
    bare: bool = False,
) -> dict[str, Any]: ...

# A DeviceArray of shape (i, j, n) whose rows repeat those of base, of shape (i, j, period).
def repeat(base: DeviceArray, n: int, /) -> DeviceArray: ...

# A NumPy array in the host memory that the object's __dlpack__ exports. Raises what __dlpack__ raises, BufferError for
# memory elsewhere, TypeError for a dtype that add does not take, and ValueError for a tensor whose elements are outside
# the address space.
def host_view(x: Any, /) -> NDArray[Any]: ...

# Overwrites an array's bytes, host or device: so that a check cannot be passed by an earlier result.
def poison(x: Any, /) -> None: ...

# Sets an array's bytes to 0: for rungs that add to their output.
def clear(x: Any, /) -> None: ...

# A probe of the best rate at which words can be added over three contiguous arrays of one dtype and size, on up to
# that many threads (0: all that an addition may use). A round overwrites out, and gives the best seconds of a pass over
# threads, partitions and kinds of store.
def host_limit(a: NDArray[Any], b: NDArray[Any], out: NDArray[Any], threads: int = 0, /) -> object: ...
def host_limit_round(probe: object, /) -> float: ...

# What a device can do at best, by kernels that share nothing with add's. nbytes and rounds are for "rates", "link" and
# "loaded". Raises ValueError for other names and numbers, and what every device call raises.
#
# "rates": bytes a second, best of the rounds: "read", "write" and "copy" (which reads half of its bytes) of the memory
#     over nbytes, "l2_read" and "l2_write" over a quarter of the L2.
# "link": bytes a second of copies of nbytes from and to page-locked memory: "to_device", "to_host", and "both" at once
#     in sum.
# "latency": seconds of a load in a chain of dependent loads: in "l1", "l2" and "dram"; "page", in the L2, each in a
#     page of its own; "stream", of a round of a block that reads two arrays side by side from DRAM, a word a thread;
#     and "atomic", of an atomic addition to an address that a whole block adds to.
# "loaded": DRAM under load over nbytes, lists: "bytes" of loads in flight on each multiprocessor, "seconds" until they
#     have all arrived, and "rate", bytes a second of all multiprocessors; the last entries are 0 where a multiprocessor
#     has too few threads for them.
# "launches": seconds: "kernel", an empty kernel by the clock of the device rungs; "block", each block that an empty
#     grid starts; "turnaround", from block to block on a multiprocessor with room for one; "queued" and "node", each
#     further kernel of a queue, of a graph; "issued", what the host takes to queue one; "waited", until one on
#     an idle stream is done; lists "bytes" and "fresh_node", each further node of a graph whose kernels move that many
#     bytes that are in no cache; "table", until a table of one job is written, copied and worked through, and "job",
#     for each further one. From compute capability 9.0 on also of programmatic launches: "waiting", each further one of
#     a queue, "triggering", where each lets the next begin early, "triggering_node", in a graph, "triggering_block",
#     each block of such a grid, "programmatic_issued", what the host takes to queue one, and "released", in that graph,
#     from the end of a kernel to the work of the next.
def probe(
    name: Literal["rates", "link", "latency", "loaded", "launches"], device: int, nbytes: int = 0, rounds: int = 0, /
) -> dict[str, Any]: ...

# Bytes of a device's memory that the driver has left, and all of it.
def device_memory(device: int, /) -> tuple[int, int]: ...

# nbytes of one device's memory into another's: "access", whether each may use the other's memory, "atomics", whether
# the link has atomic operations of its own, the driver's "rank" of the link, and "ways": "copy", by a copy engine, and
# with access "read", by a kernel of the target, and "write", by one of the source. Each has its "rate" in bytes a
# second, best of the rounds, and of one pass how many 64-bit words were "wrong", and up to 64 of these "words" as
# (index, expected, found).
def peer_limits(source: int, target: int, nbytes: int, rounds: int, /) -> dict[str, Any]: ...

# Fills an array of whole 64-bit words by a pattern, and looks for what was written: "address" writes each word's
# address over 8, "inverse" its complement, "walking one" and "walking zero" one bit that the seed and the address
# choose, "random" a hash of both. Seconds, on a device the kernel's; of the check also the number of wrong words, the
# array's address, and up to 64 of them in order, as (index, expected, found).
def pattern_write(x: NDArray[Any] | DeviceArray, pattern: str, seed: int, /) -> float: ...
def pattern_check(
    x: NDArray[Any] | DeviceArray, pattern: str, seed: int, /
) -> tuple[float, int, int, list[tuple[int, int, int]]]: ...

# How many threads an addition may use; seconds until they have all woken, and until one has.
def wake_limits() -> dict[Literal["threads", "wake", "wake_one"], float]: ...

# Host seconds of one launch of add's kernel from C; "programmatic" needs compute capability 9.0; the stream is empty
# before and drained after.
def raw_launches(
    a: Any, b: Any, out: Any, /, *, calls: int, way: Literal["plain", "programmatic", "graph"] = "plain"
) -> float: ...

# Seconds of each stage of a call of add; each stage is repeated `calls` times alone: {"parse", "describe", "plan",
# "allocate", "launch"}.
def call_stages(a: Any, b: Any, out: Any, /, *, calls: int) -> dict[str, float]: ...

"""NumPy arrays on the host: into `out=`, a new sum that is dropped or kept, and after a pause; arrays beyond the caches
also beside the machine's own limit, probed among the rounds.

torch's OpenMP workers spin on for milliseconds after its call and occupy the processors that the next contestant needs:
on 16 cores ours then took 3 to 9 times as long. So torch's turn ends when they sleep, and so does JAX's; calls in a row
are timed after some untimed ones.

Each library is called as its documents advise for one call after another: what it compiles, looks up or converts is
prepared once, and no call copies an operand or a sum.
"""

import ctypes
import mmap
import os
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

import vecadd
from benchmarks.peers import libraries
from benchmarks.peers.clocks import ENOUGH, WARM, Fastest, Timer, mean_in_a_row, then_resting
from benchmarks.peers.libraries import Entry
from build_native.incremental import processors
from vecadd.bench import probes
from vecadd.bench.contestants import Contestant
from vecadd.bench.operands import HOST, Buffers
from vecadd.bench.options import Options
from vecadd.bench.run import Machine, Sweep
from vecadd.bench.timing import Cell
from vecadd.figures import Figure

SIZES = (*(2**power for power in range(4, 25, 2)), 2**27)
DTYPES = (
    *("float32", "float64", "float16", "bfloat16", "complex64", "complex128"),
    *("int8", "int16", "int32", "int64"),
)
# All sizes of all dtypes would last for minutes: NumPy takes 13 ns a float16, 2 a bfloat16.
OTHER_SIZES = (2**4, 2**10, 2**16, 2**18, 2**20)
LARGEST = {"float16": 2**16, "bfloat16": 2**18}
STREAMED = 2**24  # elements from which on an addition is compared with the best streaming one

IDLE = 1e-3  # seconds: longer than any thread spins
IDLES = 5  # pauses in a sample of additions that are shorter than that
KEPT_BYTES = 32 << 20  # of sums that are alive at once
MOST_KEPT = 256

Call = Callable[[], Any]  # one addition; what it returns is the sum where that is in a new array
Way = Callable[..., Call]  # (a, b, out) or (a, b), NumPy's → the call that is timed


@dataclass(frozen=True)
class Peer:
    """A library: its ways to add into an existing array and into a new one, by the settings' names in tables; the
    fastest counts in each cell.

    ``read`` gives NumPy's array of a new sum; ``apart`` says that its sums into an existing array have to be read too.
    ``free`` returns memory that it has kept to the system. ``spins``: its workers occupy their processors for longer
    than a sample lasts.
    """

    name: str
    into: Mapping[str, Way] = field(default_factory=dict)
    new: Mapping[str, Way] = field(default_factory=dict)
    dtypes: tuple[str, ...] = DTYPES
    read: Callable[[Any], Any] = lambda x: x
    apart: bool = False
    free: Callable[[], object] = lambda: None
    spins: bool = False

    def contestant(self, form: str) -> Contestant | None:
        """The contestant of a form's cell; None where the library has no such form."""
        clock, into = FORMS[form]
        timers = {name: clock(self, way) for name, way in (self.into if into else self.new).items()}
        if not timers:
            return None
        fastest = Fastest(timers)
        timer = then_resting(fastest) if self.spins else fastest
        return Contestant(f"{self.name} {form}", HOST, timer, extra_params=fastest.facts)


def cells(options: Options, machine: Machine) -> Iterator[Cell]:
    """A cell for each form, so that every library is compared with ours in the same form."""
    peers = list(libraries.meeting("peer-host", ENTRIES, machine.missing))
    for dtype, n in _grid(options, machine):
        here = [peer for peer in peers if str(dtype) in peer.dtypes]
        for form in FORMS:
            meeting = [contestant for peer in here if (contestant := peer.contestant(form))]
            if form == LIMITED and n >= STREAMED:
                limit = probes.HostLimit()
                yield Cell(
                    *(dtype, n, meeting, limit),
                    sets=1,
                    reference=f"vecadd {form}",
                    add_derived=partial(_shares, limit),
                )
            else:
                yield Cell(dtype, n, meeting, sets=1, reference=f"vecadd {form}")


def _shares(limit: probes.HostLimit, figures: list[Figure]) -> list[Figure]:
    """Adds to each figure the limit's median over its own; its ``fraction`` is of the limit's best."""
    return [
        figure.with_params(limit_share=limit.typical / figure.seconds) if figure.seconds and limit.typical else figure
        for figure in figures
    ]


def _grid(options: Options, machine: Machine) -> Iterator[tuple[np.dtype[Any], int]]:
    for dtype in machine.find_dtypes(options.dtypes or DTYPES, "peer-host"):
        name = str(dtype)
        own = SIZES if name == "float32" else [n for n in OTHER_SIZES if n <= LARGEST.get(name, n)]
        for n in options.sizes or own:
            yield dtype, n


def vecadd_host() -> Peer:
    return Peer("vecadd", {"": lambda a, b, out: partial(vecadd.add, a, b, out=out)}, {"": _of(vecadd.add)})


def numpy() -> Peer:
    return Peer("numpy", {"": lambda a, b, out: partial(np.add, a, b, out=out)}, {"": _of(np.add)})


def torch() -> Peer:
    """torch on the CPU, on as many threads as it takes by itself."""
    library = libraries.module("torch")

    def into(a: Any, b: Any, out: Any) -> Call:
        a, b, out = map(library.from_numpy, (a, b, out))
        return partial(library.add, a, b, out=out)

    dtypes = tuple(name for name in DTYPES if name != "bfloat16")  # torch.from_numpy does not know ml_dtypes
    return Peer("torch", {"": into}, dtypes=dtypes, spins=True)


def numexpr() -> Peer:
    """On one thread or on all processors; `re_evaluate` is `evaluate` without looking the expression up again. Only the
    dtypes that it adds without converting them."""
    library = libraries.module("numexpr")
    most = min(library.MAX_THREADS, processors())

    def on(threads: int, a: Any, b: Any, **out: Any) -> Call:
        if library.get_num_threads() != threads:
            library.set_num_threads(threads)
        operands = {"a": a, "b": b}
        library.evaluate("a + b", local_dict=operands, global_dict={}, **out)
        return partial(library.re_evaluate, local_dict=operands, global_dict={})

    into: dict[str, Way] = {_threads(n): lambda a, b, out, n=n: on(n, a, b, out=out) for n in (1, most)}
    new: dict[str, Way] = {_threads(n): partial(on, n) for n in (1, most)}
    return Peer("numexpr", into, new, ("float32", "float64", "complex128", "int32", "int64"))


def numkong() -> Peer:
    """On one thread, or on a pool, as its documents have it: it has no threads of its own and releases the GIL. Of
    tensors on NumPy's memory, which it looks up sooner than arrays. Its integers saturate, which is another
    operation."""
    library = libraries.module("numkong")
    pool = ThreadPoolExecutor(processors())

    def on(threads: int, *arrays: Any) -> Call:
        step = -(-len(arrays[0]) // threads)
        parts = [
            [tensor(x[at : at + step]) for x in arrays]  # a, b, out
            for at in range(0, len(arrays[0]), step)
        ]
        if threads == 1:
            ((a, b, *out),) = parts
            return partial(library.add, a, b, out=out[0]) if out else partial(library.add, a, b)

        def add() -> None:
            for done in [pool.submit(library.add, a, b, out=out) for a, b, out in parts]:
                done.result()

        return add

    def tensor(x: Any) -> Any:
        return library.from_pointer(x.ctypes.data, (len(x),), str(x.dtype), owner=x)

    into: dict[str, Way] = {_threads(n): partial(on, n) for n in (1, processors())}
    dtypes = ("float32", "float64", "float16", "bfloat16", "complex64", "complex128")
    return Peer("numkong", into, {"": partial(on, 1)}, dtypes, read=np.asarray)


def _threads(count: int) -> str:
    return f"{count} thread{'s' * (count > 1)}"


def jax() -> Peer:
    """JAX on the CPU, which waits for each sum. Into an existing array: into the one that had the sum before, which a
    call is given for that (a donated argument)."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # of the GPU's memory, where there is one
    library = libraries.module("jax")
    library.config.update("jax_enable_x64", True)
    cpu = library.devices("cpu")[0]
    add = library.jit(lambda a, b: a + b)
    add_into = library.jit(lambda a, b, out: a + b, donate_argnums=2, keep_unused=True)
    put = _copied_once(lambda x: library.device_put(x, cpu))

    def into(a: Any, b: Any, out: Any) -> Call:
        a, b = put(a, b)
        total = library.device_put(np.zeros_like(out), cpu, may_alias=False)

        def call() -> Any:
            nonlocal total
            total = add_into(a, b, total)
            return total.block_until_ready()

        return call

    def new(a: Any, b: Any) -> Call:
        a, b = put(a, b)
        return lambda: add(a, b).block_until_ready()

    return Peer("jax", {"": into}, {"": new}, read=np.asarray, apart=True, spins=True)


def arrow() -> Peer:
    """Arrow's arrays of the same memory. It adds into new arrays alone."""
    library, compute = libraries.module("pyarrow"), libraries.module("pyarrow.compute")

    def new(a: Any, b: Any) -> Call:
        return partial(compute.add, library.array(a), library.array(b))

    return Peer(
        "arrow",
        new={"": new},
        dtypes=("float32", "float64", "int8", "int16", "int32", "int64"),
        read=lambda x: x.to_numpy(),
        free=library.default_memory_pool().release_unused,
    )


ENTRIES: tuple[Entry[Peer], ...] = (
    Entry("vecadd", "", "vecadd", vecadd_host),
    Entry("numpy", "", "numpy", numpy),
    Entry("torch", "torch", "torch", torch),
    Entry("numexpr", "numexpr", "numexpr", numexpr),
    Entry("numkong", "numkong", "numkong", numkong),
    Entry("jax", "jax", "jax", jax),
    Entry("arrow", "pyarrow", "pyarrow", arrow),
)


def _of(add: Callable[[Any, Any], Any]) -> Way:
    """The way of a function that takes NumPy's arrays and returns a new sum."""
    return lambda a, b: partial(add, a, b)


def _copied_once(copy: Callable[[Any], Any]) -> Callable[[Any, Any], Sequence[Any]]:
    """Copies of two operands, made when they are met: all samples of a cell have the same ones. The next ones' take
    their place."""
    met: Sequence[weakref.ref[Any]] = ()
    copies: Sequence[Any] = ()

    def copied(a: Any, b: Any) -> Sequence[Any]:
        nonlocal met, copies
        if not met or any(known() is not x for known, x in zip(met, (a, b), strict=True)):
            copies = ()
            met, copies = [weakref.ref(x) for x in (a, b)], [copy(x) for x in (a, b)]
        return copies

    return copied


def _into(peer: Peer, way: Way) -> Timer:
    def timer(sets: Sequence[Buffers]) -> float:
        out, call = sets[0].out, way(*sets[0][:3])
        seconds = mean_in_a_row(call)
        if peer.apart:
            _copy_out(peer, call(), out)
        return seconds

    return timer


def _dropped(peer: Peer, way: Way) -> Timer:
    """Times new sums, each dropped before the next one is made."""

    def timer(sets: Sequence[Buffers]) -> float:
        a, b, out, _ = sets[0]
        call = way(a, b)
        seconds = mean_in_a_row(call)
        _copy_out(peer, call(), out)
        return seconds

    return timer


def _kept(peer: Peer, way: Way) -> Timer:
    """Times new sums that all stay alive until the clock has stopped, on memory fresh from the system: neither our pool
    nor NumPy's heap still has that of the last round."""

    def timer(sets: Sequence[Buffers]) -> float:
        a, b, out, _ = sets[0]
        call = way(a, b)
        peer.free()
        _give_back()
        count: int = max(1, min(MOST_KEPT, KEPT_BYTES // a.nbytes))
        _have_backed(2 * count * a.nbytes)
        begin = perf_counter()
        sums = [call() for _ in range(count)]
        seconds: float = perf_counter() - begin
        _copy_out(peer, sums[-1], out)
        return seconds / count

    return timer


def _copy_out(peer: Peer, total: Any, out: Any) -> None:
    """Copies a sum into out for the check: the bits, since NumKong's arrays have no name for bfloat16 that NumPy
    knows."""
    out[...] = peer.read(total).view(out.dtype)


def _give_back() -> None:
    """Returns the memory that our pool and the C library have kept to the system."""
    vecadd.release()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc's
    if trim:
        trim(ctypes.c_size_t(0))


def _have_backed(nbytes: int) -> None:
    """Makes the system back that many bytes of the free memory: writes to them and returns them to the system, which
    hands them out next. The host of a virtual machine takes back what has been free for some seconds, and the
    contestant that asks for such memory pays for it: 36 ms for 16 MiB, which otherwise take 0.7.

    The memory is mapped here, because malloc's heap would keep up to 32 MiB for NumPy's next sums. The mapping is
    private, because shared memory is not huge pages: the system splits huge pages that are free into small ones, but
    does not join small ones."""
    memory = mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError):  # a kernel without huge pages
        memory.madvise(mmap.MADV_HUGEPAGE)
    np.frombuffer(memory, np.uint8).fill(1)
    memory.close()


def _after_a_pause(peer: Peer, way: Way) -> Timer:
    def timer(sets: Sequence[Buffers]) -> float:
        out, call = sets[0].out, way(*sets[0][:3])
        samples: list[float] = []
        while len(samples) < IDLES and sum(samples) < IDLE:
            time.sleep(IDLE)
            begin = perf_counter()
            call()
            samples.append(perf_counter() - begin)
        if peer.apart:
            _copy_out(peer, call(), out)
        return float(np.median(samples))

    return timer


# Each form's clock, and whether it adds into an existing array.
FORMS: Mapping[str, tuple[Callable[[Peer, Way], Timer], bool]] = {
    "out=": (_into, True),
    "a + b": (_dropped, False),
    "a + b, kept": (_kept, False),
    "out= after 1 ms": (_after_a_pause, True),
}
LIMITED = "out="

STAGE = Sweep(
    "peer-host",
    cells,
    f"timed by the host: calls that follow each other on the same operands for {ENOUGH * 1e6:g} us, after "
    f"{WARM * 1e6:g} us of calls that warm up; sums that are kept, on memory just given back to the system, until there"
    " are 32 MB of them; single calls after a pause of 1 ms, in which torch's workers go on spinning; after the turns "
    "of torch and JAX a rest until they sleep; of several settings of a library the fastest in that cell",
    needs_gpu=False,
)

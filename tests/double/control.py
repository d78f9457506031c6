"""The tests' interface to the CUDA-runtime double: double.h in Python, on the module that is loaded as vecadd._core."""

import ctypes
import functools
import os
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

_POINTER, _SIZE, _INT = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
_FILE_CALL = ctypes.CFUNCTYPE(_INT, ctypes.c_char_p, ctypes.c_longlong, _SIZE)
NOTHING = -(2**31)  # said of a file's call: it moves no byte
_watchers: list[Any] = []  # a thread may be in one that was taken out

# Name: (result, *arguments), as double.h declares them.
_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "double_reset": (None, ctypes.c_uint),
    "double_allocations": (ctypes.c_long,),
    "double_fail_allocation": (None, _INT),
    "double_clock": (None, ctypes.c_longlong),
    "double_on_file_call": (None, _POINTER),
    "double_fail": (None, ctypes.c_char_p, _INT, _INT, _INT),
    "double_report_earlier": (None, _INT),
    "double_capacity": (None, _SIZE),
    "double_peer_access": (None, _INT),
    "double_memory_pools": (None, _INT),
    "double_flip_copies": (None, _INT),
    "double_take_errors": (_INT,),
    "double_fill_queues": (None, _INT),
    "double_waiting": (_INT,),
    "double_calls": (ctypes.c_long, ctypes.c_char_p),
    "double_faults": (ctypes.c_long,),
    "double_live": (None, *[ctypes.POINTER(_SIZE)] * 6),
    "double_l2": (None, _POINTER, _SIZE, *[ctypes.POINTER(_SIZE)] * 2),
    "double_devices": (None, _INT),
    "double_driver": (None, _INT),
    "double_current_device": (_INT, _INT),
    "double_contexts": (_INT, _INT),
    "double_current_context": (_POINTER,),
    "double_context_create": (_POINTER, _INT),
    "double_context_destroy": (None, _POINTER),
    "double_device_malloc": (_POINTER, _INT, _SIZE),
    "double_device_free": (None, _POINTER),
    "double_device_write": (_INT, _POINTER, ctypes.c_char_p, _SIZE),
    "double_device_read": (_INT, ctypes.c_char_p, _POINTER, _SIZE),
    "double_stream_create": (_POINTER, _INT, _INT),
    "double_stream_destroy": (_INT, _POINTER),
    "double_stream_synchronize": (_INT, _POINTER),
    "double_copy_async": (_INT, _POINTER, _POINTER, _SIZE, _POINTER),
    "double_synchronize": (None, _INT),
    "double_capture_begin": (_INT, _POINTER),
    "double_capture_end": (_POINTER, _POINTER),
    "double_graph_launch": (_INT, _POINTER, _POINTER),
    "double_graph_destroy": (_INT, _POINTER),
    "double_take_capture_mode": (_INT,),
}


@functools.cache
def _library() -> ctypes.CDLL:
    path = sys.modules["vecadd._core"].__file__
    assert path is not None
    library = ctypes.CDLL(path)
    for name, (result, *arguments) in _FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


class Live(NamedTuple):
    """What was made by CUDA calls and not yet given back."""

    device_blocks: int
    device_bytes: int
    pinned_blocks: int
    streams: int
    events: int
    graphs: int  # those that are instantiated too, and captures that were not ended


def reset(seed: int = 0) -> None:
    """Forgets failures, faults and counts, gives the machine its first shape, and orders work by `seed` from now on."""
    os.environ.pop("VECADD_DOUBLE_DEVICES", None)
    os.environ.pop("VECADD_DOUBLE_DRIVER", None)
    _library().double_reset(seed)


def fail(call: str, nth: int = 1, status: int = 2, forever: bool = False) -> None:
    """Makes the nth call of this CUDA function from now on return `status`, and all after it too with `forever`."""
    _library().double_fail(call.encode(), nth, status, forever)


def report_earlier(status: int = 999) -> None:
    """Makes every call from now on that waits or gives something back do so and return `status` all the same, as CUDA's
    do that report what earlier work has come to."""
    _library().double_report_earlier(status)


def capacity(nbytes: int) -> None:
    """How many bytes each device has for allocations, those that there are included."""
    _library().double_capacity(nbytes)


def peer_access(possible: bool) -> None:
    """Whether any device could use another one's memory."""
    _library().double_peer_access(possible)


def memory_pools(supported: bool) -> None:
    """Whether devices have stream-ordered memory, which some virtual GPUs lack."""
    _library().double_memory_pools(supported)


def flip_copies(count: int) -> None:
    """The next ``count`` copies from device to device arrive with bit 2 of their middle byte wrong, and succeed."""
    _library().double_flip_copies(count)


def take_errors() -> int:
    """In how many threads cudaGetLastError would find an error that was left there; none has one afterwards."""
    return int(_library().double_take_errors())


def fail_allocation(nth: int = 1) -> None:
    """Makes the nth allocation in C from now on find no memory."""
    _library().double_fail_allocation(nth)


def allocations() -> int:
    """How many allocations in C there were since the reset, or since fail_allocation."""
    return int(_library().double_allocations())


def clock(nanoseconds: int) -> None:
    """Makes the clock that C reads go on by so much each time that it is read; 0: the real clock."""
    _library().double_clock(nanoseconds)


def on_file_call(watcher: Callable[[str, int, int], int]) -> None:
    """Has ``watcher(call, offset, bytes)`` called before each pread and pwrite in C, in the thread
    that makes it. It returns 0, an errno for the call to fail with, or the negative of the most bytes that it moves;
    NOTHING: it moves none."""
    called = _FILE_CALL(lambda call, offset, nbytes: watcher(call.decode(), offset, nbytes))
    _watchers.append(called)
    _library().double_on_file_call(ctypes.cast(called, _POINTER))


def fill_queues(full: bool = True) -> None:
    """Makes every call wait that would while a stream's queue is full, or lets all of them go on."""
    _library().double_fill_queues(full)


def waiting() -> int:
    """How many calls wait for room in a queue."""
    return int(_library().double_waiting())


def calls(call: str) -> int:
    """How often this CUDA function was called since the reset."""
    return int(_library().double_calls(call.encode()))


def faults() -> int:
    """How many faults the double has seen since the reset; each is described on stderr."""
    return int(_library().double_faults())


def live() -> Live:
    counts = [_SIZE() for _ in Live._fields]
    _library().double_live(*counts)
    return Live(*(count.value for count in counts))


def l2(pointer: int, nbytes: int) -> tuple[int, int]:
    """How many 128-byte lines of the range kernels loaded with evict_last since the reset: (not demoted, demoted)."""
    evict_last, demoted = _SIZE(), _SIZE()
    _library().double_l2(pointer, nbytes, evict_last, demoted)
    return evict_last.value, demoted.value


def devices(count: int) -> None:
    """How many GPUs there are, for this process and the children it starts; 0 is a driver that sees none."""
    os.environ["VECADD_DOUBLE_DEVICES"] = str(count)
    _library().double_devices(count)


def current_device(device: int = -1) -> int:
    """This thread's current device until now; from now on it is `device`, where that is not -1."""
    return int(_library().double_current_device(device))


def contexts(device: int) -> int:
    """How many contexts a device has."""
    return int(_library().double_contexts(device))


def current_context() -> int:
    """The handle of this thread's current context; 0 for none."""
    return _library().double_current_context() or 0


def context_create(device: int = 0) -> int:
    """The handle of another library's context on a device, current from now on."""
    return int(_library().double_context_create(device))


def context_destroy(context: int) -> None:
    """Ends it with all that was made in it; what was current before it is again."""
    _library().double_context_destroy(context)


def driver(version: int) -> None:
    """The driver's version as CUDA counts it, for this process and the children it starts; 0 is no driver."""
    os.environ["VECADD_DOUBLE_DRIVER"] = str(version)
    _library().double_driver(version)


def device_malloc(device: int, nbytes: int) -> int:
    """The address of another library's memory on a device; at its end begins memory that may not be touched."""
    pointer = _library().double_device_malloc(device, nbytes)
    assert pointer is not None
    return int(pointer)


def device_free(pointer: int) -> None:
    """Frees it after everything that is queued on its device."""
    _library().double_device_free(pointer)


def device_write(pointer: int, content: bytes) -> None:
    """Writes to device memory after everything that is queued on its device."""
    assert _library().double_device_write(pointer, content, len(content)) == 0, f"{pointer:#x} is no device memory"


def device_read(pointer: int, nbytes: int) -> bytes:
    """Reads device memory after everything that is queued on its device."""
    host = ctypes.create_string_buffer(nbytes)
    assert _library().double_device_read(host, pointer, nbytes) == 0, f"{pointer:#x} is no device memory"
    return host.raw


def stream_create(device: int = 0, nonblocking: bool = True) -> int:
    """The handle of another library's stream."""
    return int(_library().double_stream_create(device, nonblocking))


def stream_destroy(stream: int) -> None:
    assert _library().double_stream_destroy(stream) == 0, f"{stream:#x} is no stream"


def stream_synchronize(stream: int) -> None:
    """Waits for this stream alone. 0 is the legacy default stream of the current device."""
    status = _library().double_stream_synchronize(stream)
    assert status == 0, f"the stream's work ended with CUDA error {status}"


def copy_async(target: int, source: int, nbytes: int, stream: int) -> None:
    """Queues a copy on a stream; a source on the host is read at once."""
    status = _library().double_copy_async(target, source, nbytes, stream)
    assert status == 0, f"the copy was refused with CUDA error {status}"


def synchronize(device: int = 0) -> None:
    """Waits for everything that is queued on a device."""
    _library().double_synchronize(device)


def capture_begin(stream: int) -> None:
    """Begins a capture of another library's, in the mode in which any thread's wait or allocation ends it."""
    status = _library().double_capture_begin(stream)
    assert status == 0, f"the capture did not begin: CUDA error {status}"


def capture_end(stream: int) -> int:
    """The graph, ready to be launched; fails where the capture was ended by what it met."""
    graph = _library().double_capture_end(stream)
    assert graph, "the capture has failed"
    return int(graph)


def graph_launch(graph: int, stream: int) -> None:
    status = _library().double_graph_launch(graph, stream)
    assert status == 0, f"the graph was refused with CUDA error {status}"


def graph_destroy(graph: int) -> None:
    assert _library().double_graph_destroy(graph) == 0


def take_capture_mode() -> int:
    """This thread's capture mode, which is CUDA's first one, 0, afterwards: another's captures end by its waits."""
    return int(_library().double_take_capture_mode())

"""Another library's device memory, streams and arrays: on a GPU by the driver's own interface, else on the double. Both
sides give the same few calls, so that a test says once what a producer and a consumer do."""

import contextlib
import ctypes
import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray


class Driver(ABC):
    """Memory, copies and streams made without vecadd. Everything goes back in close()."""

    def __init__(self) -> None:
        self._memory: dict[int, int] = {}
        self._streams: dict[int, int] = {}
        self._graphs: list[int] = []

    def allocate(self, nbytes: int, device: int = 0) -> int:
        """The address of `nbytes` of a device's memory."""
        pointer = self._allocate(nbytes, device)
        self._memory[pointer] = device
        return pointer

    def free(self, pointer: int) -> None:
        self._free(pointer, self._memory.pop(pointer))

    def stream(self, device: int = 0, *, blocking: bool = False) -> int:
        """The handle of a new stream. A blocking one waits for the legacy default stream, and is waited for by it."""
        handle = self._stream(device, blocking)
        self._streams[handle] = device
        return handle

    def close(self) -> None:
        for device in {*self._streams.values(), *self._memory.values()}:
            self.synchronize(device)
        for graph in self._graphs:
            self._destroy_graph(graph)
        for handle, device in self._streams.items():
            self._destroy(handle, device)
        for pointer in [*self._memory]:
            self.free(pointer)
        self._streams.clear()
        self._graphs.clear()

    @contextlib.contextmanager
    def capture(self, stream: int, *, whole_process: bool = False) -> Iterator[list[int]]:
        """Captures what is queued on the stream within a with block, into the graph that is in the list after it. On a
        GPU other threads can end it only with ``whole_process``: those of JAX do, when they drop arrays."""
        captured: list[int] = []
        self._begin_capture(stream, whole_process)
        try:
            yield captured
        finally:
            captured.append(self._end_capture(stream))
        self._graphs += captured

    def write(self, pointer: int, x: NDArray[Any]) -> None:
        """Copies x to the device after everything that is queued there, and waits."""
        self.synchronize(self.device_of(pointer))
        self._write(pointer, np.ascontiguousarray(x))
        self.synchronize(self.device_of(pointer))  # a copy from ordinary memory may return before it has arrived

    def read(self, pointer: int, nbytes: int) -> bytes:
        """Copies from the device after everything that is queued there."""
        self.synchronize(self.device_of(pointer))
        return self._read(pointer, nbytes)

    def device_of(self, pointer: int) -> int:
        """The device of the allocation that begins at or closest below this address."""
        return self._memory[max(start for start in self._memory if start <= pointer)]

    @abstractmethod
    def current_device(self) -> int:
        """The calling thread's current device."""

    @abstractmethod
    def current_context(self) -> int:
        """The calling thread's current context; 0 for none."""

    @abstractmethod
    def has_context(self, device: int) -> bool:
        """Whether anybody in this process has made a device's context, hundreds of megabytes."""

    @contextlib.contextmanager
    def another_context(self, device: int = 0) -> Iterator[int]:
        """A context of the driver's beside the device's primary one, current within a with block, which it ends with;
        so does what was allocated in it, and its streams."""
        memory, streams = dict(self._memory), dict(self._streams)
        context = self._create_context(device)
        try:
            yield context
        finally:
            self._memory, self._streams = memory, streams
            self._destroy_context(context, device)

    @abstractmethod
    def _create_context(self, device: int) -> int: ...

    @abstractmethod
    def _destroy_context(self, context: int, device: int) -> None: ...

    @abstractmethod
    def on(self, device: int) -> contextlib.AbstractContextManager[None]:
        """Another current device for the calling thread, within a with block."""

    def copy_late(self, stream: int, target: int, source: int, nbytes: int) -> None:
        """Queues a device-to-device copy on a stream, so that it happens noticeably after this call returns."""
        device = self.device_of(target)
        self.delay(stream, device)
        self.copy(stream, target, source, nbytes, device)

    @abstractmethod
    def delay(self, stream: int, device: int = 0) -> None:
        """Queues work on a stream that takes noticeable time: on a GPU 6 ms or more."""

    @abstractmethod
    def copy(self, stream: int, target: int, source: int, nbytes: int, device: int = 0) -> None:
        """Queues a device-to-device copy on a stream, of anybody's memory on that device."""

    @abstractmethod
    def take_capture_mode(self) -> int:
        """The calling thread's capture mode; afterwards it is 0, as at first."""

    @abstractmethod
    def launch(self, graph: int, stream: int) -> None:
        """Queues what was captured."""

    @abstractmethod
    def synchronize(self, device: int) -> None:
        """Waits for everything queued on a device."""

    @abstractmethod
    def _allocate(self, nbytes: int, device: int) -> int: ...

    @abstractmethod
    def _free(self, pointer: int, device: int) -> None: ...

    @abstractmethod
    def _write(self, pointer: int, x: NDArray[Any]) -> None: ...

    @abstractmethod
    def _read(self, pointer: int, nbytes: int) -> bytes: ...

    @abstractmethod
    def _stream(self, device: int, blocking: bool) -> int: ...

    @abstractmethod
    def _destroy(self, stream: int, device: int) -> None: ...

    @abstractmethod
    def _begin_capture(self, stream: int, whole_process: bool) -> None: ...

    @abstractmethod
    def _end_capture(self, stream: int) -> int: ...

    @abstractmethod
    def _destroy_graph(self, graph: int) -> None: ...


class GpuDriver(Driver):
    """libcuda.so.1, in each device's primary context: the one that the CUDA runtime uses."""

    DELAY_BYTES = 1 << 28  # one memset of this takes 0.06 ms or more on any GPU that there is
    DELAY_MEMSETS = 100
    _kept: ClassVar[dict[tuple[int, bool], list[int]]] = {}  # streams without work, by device and kind

    def __init__(self) -> None:
        super().__init__()
        self._cuda = ctypes.CDLL("libcuda.so.1")
        self._contexts: dict[int, ctypes.c_void_p] = {}
        self._blocking: set[int] = set()
        self._idle = self._outer = self._kept
        self._scratch: dict[int, int] = {}
        self._call("cuInit", 0)

    def _call(self, name: str, *arguments: Any) -> None:
        status = getattr(self._cuda, name)(*arguments)
        assert status == 0, f"{name} gave {status}"

    def current_device(self) -> int:
        device = ctypes.c_int()
        self._call("cuCtxGetDevice", ctypes.byref(device))
        return device.value

    def current_context(self) -> int:
        context = ctypes.c_void_p()
        self._call("cuCtxGetCurrent", ctypes.byref(context))
        return context.value or 0

    def has_context(self, device: int) -> bool:
        flags, active = ctypes.c_uint(), ctypes.c_int()
        self._call("cuDevicePrimaryCtxGetState", device, ctypes.byref(flags), ctypes.byref(active))
        return bool(active.value)

    def _create_context(self, device: int) -> int:
        context = ctypes.c_void_p()
        self._call("cuCtxCreate_v2", ctypes.byref(context), 0, device)
        self._contexts[device] = context  # for memory and streams, until it ends
        self._outer, self._idle = self._idle, {}
        assert context.value is not None
        return context.value

    def _destroy_context(self, context: int, device: int) -> None:
        del self._contexts[device]
        self._idle = self._outer
        self._call("cuCtxDestroy_v2", ctypes.c_void_p(context))

    def on(self, device: int) -> "_Current":
        return _Current(self, self.context(device))

    def context(self, device: int) -> ctypes.c_void_p:
        if device not in self._contexts:
            context, handle = ctypes.c_void_p(), ctypes.c_int()
            self._call("cuDeviceGet", ctypes.byref(handle), device)
            self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), handle)
            self._contexts[device] = context
        return self._contexts[device]

    def make_current(self, device: int) -> None:
        self._call("cuCtxSetCurrent", self.context(device))

    def _allocate(self, nbytes: int, device: int) -> int:
        pointer = ctypes.c_uint64()
        with self.on(device):
            self._call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(max(nbytes, 1)))
        return pointer.value

    def _free(self, pointer: int, device: int) -> None:
        with self.on(device):
            self._call("cuMemFree_v2", ctypes.c_uint64(pointer))

    def _write(self, pointer: int, x: NDArray[Any]) -> None:
        with self.on(self.device_of(pointer)):
            data = ctypes.c_void_p(x.ctypes.data)
            self._call("cuMemcpyHtoD_v2", ctypes.c_uint64(pointer), data, ctypes.c_size_t(x.nbytes))

    def _read(self, pointer: int, nbytes: int) -> bytes:
        host = ctypes.create_string_buffer(max(nbytes, 1))
        with self.on(self.device_of(pointer)):
            self._call("cuMemcpyDtoH_v2", host, ctypes.c_uint64(pointer), ctypes.c_size_t(nbytes))
        return host.raw[:nbytes]

    def _stream(self, device: int, blocking: bool) -> int:
        idle = self._idle.setdefault((device, blocking), [])
        handle = ctypes.c_void_p(idle.pop() if idle else None)
        if not handle:
            with self.on(device):
                self._call("cuStreamCreate", ctypes.byref(handle), int(not blocking))
        assert handle.value is not None
        if blocking:
            self._blocking.add(handle.value)
        return handle.value

    def _destroy(self, stream: int, device: int) -> None:
        """Kept for the next test: what a failed one has is freed on it later, and a dead one would crash."""
        self._idle[device, stream in self._blocking].append(stream)

    def delay(self, stream: int, device: int = 0) -> None:
        if device not in self._scratch:
            self._scratch[device] = self.allocate(self.DELAY_BYTES, device)
        with self.on(device):
            scratch, bytes_ = ctypes.c_uint64(self._scratch[device]), ctypes.c_size_t(self.DELAY_BYTES)
            for _ in range(self.DELAY_MEMSETS):
                self._call("cuMemsetD8Async", scratch, ctypes.c_ubyte(0), bytes_, ctypes.c_void_p(stream))

    def copy(self, stream: int, target: int, source: int, nbytes: int, device: int = 0) -> None:
        with self.on(device):
            pointers = ctypes.c_uint64(target), ctypes.c_uint64(source)
            self._call("cuMemcpyDtoDAsync_v2", *pointers, ctypes.c_size_t(nbytes), ctypes.c_void_p(stream))

    def launch(self, graph: int, stream: int) -> None:
        with self.on(0):
            self._call("cuGraphLaunch", ctypes.c_void_p(graph), ctypes.c_void_p(stream))

    def take_capture_mode(self) -> int:
        mode = ctypes.c_int(0)
        self._call("cuThreadExchangeStreamCaptureMode", ctypes.byref(mode))
        return mode.value

    def _begin_capture(self, stream: int, whole_process: bool) -> None:
        with self.on(0):  # 0: global, 1: thread-local
            self._call("cuStreamBeginCapture_v2", ctypes.c_void_p(stream), 0 if whole_process else 1)

    def _end_capture(self, stream: int) -> int:
        captured, ready = ctypes.c_void_p(), ctypes.c_void_p()
        with self.on(0):
            self._call("cuStreamEndCapture", ctypes.c_void_p(stream), ctypes.byref(captured))
            self._call("cuGraphInstantiateWithFlags", ctypes.byref(ready), captured, ctypes.c_ulonglong(0))
            self._call("cuGraphDestroy", captured)
        assert ready.value is not None
        return ready.value

    def _destroy_graph(self, graph: int) -> None:
        with self.on(0):
            self._call("cuGraphExecDestroy", ctypes.c_void_p(graph))

    def synchronize(self, device: int) -> None:
        with self.on(device):
            self._call("cuCtxSynchronize")


class _Current:
    """A context that is current inside a with block; what was current before is again after it. In a thread without a
    context that is device 0's, as the CUDA runtime has it: it would go on with the block's device otherwise."""

    def __init__(self, driver: GpuDriver, context: ctypes.c_void_p) -> None:
        self._driver, self._context, self._before = driver, context, ctypes.c_void_p()

    def __enter__(self) -> None:
        self._driver._call("cuCtxGetCurrent", ctypes.byref(self._before))
        self._before = self._before if self._before else self._driver.context(0)
        self._driver._call("cuCtxSetCurrent", self._context)

    def __exit__(self, *exception: object) -> None:
        self._driver._call("cuCtxSetCurrent", self._before)


class DoubleDriver(Driver):
    """The double's control interface. Queued work runs when something forces it, in any legal order: always late."""

    def __init__(self) -> None:
        super().__init__()
        self._control: Any = importlib.import_module("double.control")

    def current_device(self) -> int:
        return int(self._control.current_device())

    def current_context(self) -> int:
        return int(self._control.current_context())

    def has_context(self, device: int) -> bool:
        return bool(self._control.contexts(device))

    def _create_context(self, device: int) -> int:
        return int(self._control.context_create(device))

    def _destroy_context(self, context: int, device: int) -> None:
        self._control.context_destroy(context)

    @contextlib.contextmanager
    def on(self, device: int) -> Iterator[None]:
        before = self._control.current_device(device)
        try:
            yield
        finally:
            self._control.current_device(before)

    def _allocate(self, nbytes: int, device: int) -> int:
        return int(self._control.device_malloc(device, max(nbytes, 1)))

    def _free(self, pointer: int, device: int) -> None:
        self._control.device_free(pointer)

    def _write(self, pointer: int, x: NDArray[Any]) -> None:
        self._control.device_write(pointer, x.tobytes())

    def _read(self, pointer: int, nbytes: int) -> bytes:
        return bytes(self._control.device_read(pointer, nbytes))

    def _stream(self, device: int, blocking: bool) -> int:
        return int(self._control.stream_create(device, not blocking))

    def _destroy(self, stream: int, device: int) -> None:
        self._control.stream_destroy(stream)

    def delay(self, stream: int, device: int = 0) -> None:
        """Everything is late."""

    def copy(self, stream: int, target: int, source: int, nbytes: int, device: int = 0) -> None:
        self._control.copy_async(target, source, nbytes, stream)

    def take_capture_mode(self) -> int:
        return int(self._control.take_capture_mode())

    def launch(self, graph: int, stream: int) -> None:
        self._control.graph_launch(graph, stream)

    def _begin_capture(self, stream: int, whole_process: bool) -> None:
        self._control.capture_begin(stream)

    def _end_capture(self, stream: int) -> int:
        return int(self._control.capture_end(stream))

    def _destroy_graph(self, graph: int) -> None:
        self._control.graph_destroy(graph)

    def synchronize(self, device: int) -> None:
        self._control.synchronize(device)


def open_driver(on_double: bool) -> Driver:
    return DoubleDriver() if on_double else GpuDriver()


class ForeignStream:
    """A stream as an object of the __cuda_stream__ protocol, which keeps it."""

    def __init__(self, handle: int) -> None:
        self.handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle


class ForeignArray:
    """A library's device array as vecadd sees it: an object with a __cuda_array_interface__ (version 3) and no more."""

    def __init__(
        self, driver: Driver, x: NDArray[Any], offset: int = 0, tail: int = 0, device: int = 0, **interface: Any
    ) -> None:
        self.driver = driver
        self.dtype, self.shape, self.nbytes = x.dtype, x.shape, x.nbytes
        self.offset, self.allocated = offset, offset + x.nbytes + tail
        self.base = driver.allocate(self.allocated, device)
        self.pointer = self.base + offset
        driver.write(self.base, np.full(self.allocated, 0xAB, np.uint8))
        driver.write(self.pointer, x)
        self.__cuda_array_interface__: Any = {
            "shape": x.shape,
            "typestr": x.dtype.str,
            "data": (self.pointer if x.size else 0, False),
            "version": 3,
            "strides": None,
            "stream": None,
            **interface,
        }

    def numpy(self) -> NDArray[Any]:
        """The contents on the device once everything queued there is done."""
        content = self.driver.read(self.pointer, self.nbytes)
        return np.frombuffer(bytearray(content), self.dtype).reshape(self.shape)

    def memory(self) -> bytes:
        """The whole allocation."""
        return self.driver.read(self.base, self.allocated)

    def beside(self) -> bytes:
        """The bytes of the allocation before and after the array: 0xAB until something is written there."""
        whole = self.memory()
        return whole[: self.offset] + whole[self.offset + self.nbytes :]

    def window(self, start: int, n: int) -> "Window":
        """n elements of this array's memory from element `start` on, as another array."""
        return Window(self, start, n)


def produced_late(driver: Driver, x: np.ndarray[Any, Any], stream: int) -> ForeignArray:
    """x as another library gives it away: not there yet, but queued on its stream, which its interface names."""
    source, target = ForeignArray(driver, x), ForeignArray(driver, np.zeros_like(x), stream=stream)
    driver.copy_late(stream, target.pointer, source.pointer, x.nbytes)
    return target


class View:
    """A view of a ForeignArray's memory: `like` is the NumPy view that does the same to `x`, its source.

    Strides of any sign, repeated elements, other dtypes and any alignment are the view's own.
    """

    def __init__(self, parent: ForeignArray, x: NDArray[Any], like: NDArray[Any]) -> None:
        self.parent, self.dtype, self.shape = parent, like.dtype, like.shape
        self._start, self._strides = like.ctypes.data - x.ctypes.data, like.strides
        self.__cuda_array_interface__ = {
            **parent.__cuda_array_interface__,
            "shape": like.shape,
            "typestr": like.dtype.str,
            "data": (parent.pointer + self._start, False),
            "strides": like.strides,
        }

    def numpy(self) -> NDArray[Any]:
        memory = bytearray(self.parent.driver.read(self.parent.pointer, self.parent.nbytes))
        return np.ndarray(self.shape, self.dtype, memory, self._start, self._strides)


class Window:
    """A part of a ForeignArray, in its memory."""

    def __init__(self, parent: ForeignArray, start: int, n: int) -> None:
        self.parent, self.start, self.n = parent, start, n
        pointer = parent.pointer + start * parent.dtype.itemsize
        self.__cuda_array_interface__ = {**parent.__cuda_array_interface__, "shape": (n,), "data": (pointer, False)}

    def numpy(self) -> NDArray[Any]:
        return self.parent.numpy()[self.start : self.start + self.n]


class DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


_DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Unversioned(ctypes.Structure):
    _fields_ = (("tensor", DLTensor), ("context", ctypes.c_void_p), ("deleter", _DELETER))


class _Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", _DELETER),
        ("flags", ctypes.c_uint64),
        ("tensor", DLTensor),
    )


MANAGED = ctypes.POINTER(_Versioned)
pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_rename = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_SetName", ctypes.pythonapi))
_USED = b"used_dltensor_versioned"  # kept here: a capsule keeps the pointer


def consume(capsule: Any) -> Any:
    """The tensor of a versioned capsule, whose deleter the caller has to call from now on."""
    managed = ctypes.cast(pointer_of(capsule, b"dltensor_versioned"), MANAGED)
    _rename(capsule, _USED)
    return managed


def take_deleter(capsule: Any) -> Callable[[], None]:
    """Consumes a versioned capsule. Gives what calls the deleter of its tensor, with the GIL."""
    managed = consume(capsule)
    deleter = ctypes.cast(managed.contents.deleter, ctypes.c_void_p).value
    return partial(ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(deleter), ctypes.addressof(managed.contents))


class Borrowed:
    """What another library makes of an array by DLPack, for a stream of its own. It gives the memory back when it
    goes."""

    def __init__(self, x: Any, stream: int | None) -> None:
        self.managed = consume(x.__dlpack__(stream=stream, max_version=(1, 0)))
        self.pointer = int(self.managed.contents.tensor.data)

    def __del__(self) -> None:
        self.managed.contents.deleter(ctypes.addressof(self.managed.contents))


class Lent:
    """What has another array's memory, and DLPack alone."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, **keywords: Any) -> Any:
        return self.array.__dlpack__(**keywords)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


_CODES = {"b": 6, "i": 0, "u": 1, "f": 2, "c": 5, "V": 4, "float8_e4m3fn": 10}
_NEW_CAPSULE = ctypes.pythonapi.PyCapsule_New
_NEW_CAPSULE.restype = ctypes.py_object
_NEW_CAPSULE.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
DLPACK_CUDA = 2
_LENT: list[Any] = []  # for good: a tensor lives until its deleter has run, even if its producer is gone


class DLPackArray:
    """A ForeignArray that is given away by DLPack and by nothing else.

    `versions` are the forms that its library knows, the newest of which that the consumer knows too is given; without
    version 1 its __dlpack__ is of the old days and takes `stream` alone. Keywords replace fields of the tensor;
    `shapeless` has a null pointer in the shape's place, `kept` one in the deleter's, `says` is what __dlpack_device__
    gives.
    """

    def __init__(self, array: ForeignArray, versions: tuple[int, ...] = (0, 1), **fields: Any) -> None:
        self.array, self.versions, self.fields = array, versions, fields
        self.asked: list[dict[str, Any]] = []  # the keywords of each __dlpack__
        self.given = self.deleted = 0  # tensors given away, and deleters called

    def __dlpack_device__(self) -> Any:
        return self.fields.get("says", self.fields.get("device", (DLPACK_CUDA, 0)))

    def __dlpack__(self, **keywords: Any) -> Any:
        if 1 not in self.versions and keywords.keys() != {"stream"}:
            raise TypeError("__dlpack__() got an unexpected keyword argument")
        self.asked.append(keywords)
        self.produce(keywords["stream"])
        return self._capsule(versioned=1 in self.versions and keywords.get("max_version") is not None)

    def produce(self, stream: int | None) -> None:
        """What the producer queues so that the consumer's stream has the elements: nothing, they are there."""

    def _capsule(self, versioned: bool) -> Any:
        fields, dtype = self.fields, self.array.dtype
        shape = fields.get("shape", self.array.shape)
        strides = fields.get("strides")
        tensor = DLTensor(
            fields.get("data", self.array.pointer),
            *fields.get("device", (DLPACK_CUDA, 0)),
            fields.get("ndim", len(shape)),
            *fields.get("dtype", (_CODES.get(dtype.name, _CODES[dtype.kind]), 8 * dtype.itemsize, 1)),
            None if fields.get("shapeless") else (ctypes.c_int64 * len(shape))(*shape),
            None if strides is None else (ctypes.c_int64 * len(strides))(*strides),
            fields.get("byte_offset", 0),
        )
        deleter = _DELETER() if fields.get("kept") else _DELETER(self._delete)
        flags, major = fields.get("flags", 0), fields.get("major", 1)
        managed = (
            _Versioned(major, 0, None, deleter, flags, tensor) if versioned else _Unversioned(tensor, None, deleter)
        )
        _LENT.append((managed, deleter, tensor))
        self.given += 1
        name = fields.get("name", b"dltensor_versioned" if versioned else b"dltensor")
        return _NEW_CAPSULE(ctypes.addressof(managed), name, None)

    def _delete(self, managed: int) -> None:
        self.deleted += 1

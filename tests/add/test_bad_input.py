"""Every kind of bad call: a clear exception, nothing written, nothing leaked, and the next call works."""

import gc
import sys

import numpy as np
import pytest
from arrays import assert_same_values
from conftest import ON_DOUBLE, memory_grown
from foreign import DLPackArray

import vecadd
from vecadd import _core

N = 100


class Interface:
    """An object with any __cuda_array_interface__."""

    def __init__(self, interface):
        self.__cuda_array_interface__ = interface


class RaisingInterface:
    @property
    def __cuda_array_interface__(self):
        raise LookupError("asked")


class RaisingStream:
    def __cuda_stream__(self):
        raise LookupError("asked")


class Stream:
    """A stream object whose protocol says this."""

    def __init__(self, says):
        self.__cuda_stream__ = says


class RaisingTruth:
    def __bool__(self):
        raise LookupError("asked for its truth")


class RaisingIndex:
    def __index__(self):
        raise LookupError("asked for its index")


class RaisingHandle:
    """A stream object like Numba's, whose handle says nothing."""

    class handle:
        @property
        def value(self):
            raise LookupError("asked")

        def __int__(self):
            return 1

    handle = handle()


class World:
    """What a bad call may need, and what it must not change."""

    def __init__(self, foreign):
        self.foreign = foreign
        self.host = np.arange(N, dtype=np.float32)
        self.host_out = np.full(N, -1, np.float32)
        self.read_only = np.full(N, -1, np.float32)
        self.read_only.flags.writeable = False
        self.device = vecadd.to_device(self.host)
        self.out = vecadd.to_device(self.host_out)
        self.array = foreign(self.host, tail=4)
        self.foreign_out = foreign(self.host_out)

    def cai(self, **changes):
        """The good foreign array, with entries of its interface changed; None removes nothing, ... does."""
        merged = {**self.array.__cuda_array_interface__, **changes}
        return Interface({key: value for key, value in merged.items() if value is not ...})

    def content(self):
        return [
            self.host_out.tobytes(),
            self.read_only.tobytes(),
            self.out.numpy().tobytes(),
            self.foreign_out.memory(),
        ]


def dev(shape, dtype="float32"):
    return vecadd.to_device(np.zeros(shape, dtype))


# name: (the call, exception, what its message says)
BAD_HOST_CALLS = {
    "no common shape": (lambda w: vecadd.add(w.host, w.host[:-1], w.host_out), ValueError, "broadcast"),
    "out too small": (lambda w: vecadd.add(np.ones(N + 1), np.ones(N + 1), w.host_out), ValueError, "broadcast"),
    "out of another shape": (lambda w: vecadd.add(w.host, w.host, w.host_out.reshape(10, 10)), ValueError, "broadcast"),
    "out of a narrower dtype": (lambda w: vecadd.add(w.host, np.ones(N), w.host_out, casting="no"), TypeError, "cast"),
    "out read-only": (lambda w: vecadd.add(w.host, w.host, w.read_only), ValueError, "read-only"),
    "out is a list": (lambda w: vecadd.add(w.host, w.host, [0.0] * N), TypeError, "ArrayType"),
    "out by position and by name": (lambda w: vecadd.add(w.host, w.host, w.host_out, out=w.host_out), TypeError, "out"),
    "no arguments": (lambda w: vecadd.add(), TypeError, "argument"),
    "one argument": (lambda w: vecadd.add(w.host), TypeError, "argument"),
    "four arguments": (lambda w: vecadd.add(w.host, w.host, w.host_out, None), TypeError, "argument"),
    "unknown keyword": (lambda w: vecadd.add(w.host, w.host, w.host_out, colour=1), TypeError, "colour"),
    "unknown casting": (lambda w: vecadd.add(w.host, w.host, w.host_out, casting="maybe"), ValueError, "casting"),
    "unknown device": (lambda w: vecadd.add(w.host, w.host, w.host_out, device="gpu"), ValueError, "'gpu'"),
    "device with a sign": (lambda w: vecadd.add(w.host, w.host, w.host_out, device="cuda:-1"), ValueError, "cuda:-1"),
    "device without a number": (lambda w: vecadd.add(w.host, w.host, w.host_out, device="cuda:"), ValueError, "cuda:"),
    "device with a word": (lambda w: vecadd.add(w.host, w.host, w.host_out, device="cuda:x"), ValueError, "cuda:x"),
    "device with a null": (lambda w: vecadd.add(w.host, w.host, w.host_out, device="cuda\0"), ValueError, "x00"),
    "device with a fraction": (lambda w: vecadd.add(w.host, w.host, w.host_out, device="cuda:1.5"), ValueError, "1.5"),
    "empty device": (lambda w: vecadd.add(w.host, w.host, w.host_out, device=""), ValueError, "device"),
    "device is bytes": (lambda w: vecadd.add(w.host, w.host, w.host_out, device=b"cpu"), TypeError, "device"),
    "stream with host arrays": (lambda w: vecadd.add(w.host, w.host, w.host_out, stream=0), TypeError, "stream"),
    "a wish for the GPU that raises": (lambda w: vecadd.use_gpu(RaisingTruth()), LookupError, "asked for its truth"),
}

BAD_DEVICE_CALLS = {
    # Which device
    "ordinal not there": (lambda w: vecadd.add(w.host, w.host, w.host_out, device="cuda:99"), ValueError, r"sees \d+"),
    "huge ordinal": (lambda w: vecadd.add(w.host, w.host, w.host_out, device="cuda:99999999999"), ValueError, "cuda"),
    "to_device of an ordinal not there": (lambda w: vecadd.to_device(w.host, 99), ValueError, r"sees \d+"),
    "to_device of a negative ordinal": (lambda w: vecadd.to_device(w.host, -1), ValueError, "-1"),
    "to_device of a huge ordinal": (lambda w: vecadd.to_device(w.host, 2**80), ValueError, "counted from 0"),
    "to_device to the cpu": (lambda w: vecadd.to_device(w.host, "cpu"), ValueError, "cpu"),
    "to_device to a word": (lambda w: vecadd.to_device(w.host, "gpu"), ValueError, "gpu"),
    "to_device to a float": (lambda w: vecadd.to_device(w.host, 0.0), TypeError, "device"),
    "device operands on the cpu": (lambda w: vecadd.add(w.device, w.device, w.out, device="cpu"), ValueError, "cpu"),
    "device operands on both": (
        lambda w: vecadd.add(w.device, w.device, w.out, device="hybrid"), ValueError, "'hybrid', but"),
    # Keywords that only numpy.add has
    "where through the GPU": (
        lambda w: vecadd.add(w.host, w.host, w.host_out, device="cuda", where=True), TypeError, "where"),
    "casting through the GPU": (
        lambda w: vecadd.add(w.host, w.host, w.host_out, device="cuda", casting="no"), TypeError, "casting"),
    "where on the device": (lambda w: vecadd.add(w.device, w.device, w.out, where=True), TypeError, "where"),
    "unknown keyword on the device": (lambda w: vecadd.add(w.device, w.device, w.out, colour=1), TypeError, "colour"),
    # Host arrays that the GPU does not take
    "no common shape through the GPU": (
        lambda w: vecadd.add(w.host, w.host[:-1], w.host_out, device="cuda"), ValueError, "broadcast|shape"),
    "read-only out through the GPU": (
        lambda w: vecadd.add(w.host, w.host, w.read_only, device="cuda"), ValueError, "read-only"),
    "small out through the GPU": (
        lambda w: vecadd.add(np.ones(N + 1, "f4"), np.ones(N + 1, "f4"), w.host_out, device="cuda"),
        ValueError, "broadcast|shape"),
    "objects through the GPU": (
        lambda w: vecadd.add(w.host, object(), w.host_out, device="cuda"), TypeError, "dtype object"),
    # Host and device mixed
    "host with device": (lambda w: vecadd.add(w.host, w.device, w.out), TypeError, "to_device"),
    "device with host": (lambda w: vecadd.add(w.device, w.host, w.out), TypeError, "to_device"),
    "host with foreign": (lambda w: vecadd.add(w.host, w.array, w.foreign_out), TypeError, "to_device"),
    "device with a list": (lambda w: vecadd.add(w.device, [1.0] * N, w.out), TypeError, "to_device"),
    "device with a word": (lambda w: vecadd.add(w.device, "1", w.out), TypeError, "to_device"),
    "device with a scalar of another kind": (
        lambda w: vecadd.add(w.device, np.longdouble(1), w.out), TypeError, "b has dtype"),
    "numbers, device out": (lambda w: vecadd.add(1.0, 2.0, w.out), TypeError, "to_device"),
    "device with None": (lambda w: vecadd.add(w.device, None, w.out), TypeError, "to_device"),
    "device operands, host out": (lambda w: vecadd.add(w.device, w.device, w.host_out), TypeError, "to_device|out"),
    "host operands, device out": (lambda w: vecadd.add(w.host, w.host, w.out), TypeError, "to_device"),
    "host operands through the GPU, device out": (
        lambda w: vecadd.add(w.host, w.host, w.out, device="cuda"), TypeError, "to_device"),
    # Dtypes and shapes on the device
    "out of a dtype of another kind": (lambda w: vecadd.add(w.device, w.device, dev(N, "i4")), TypeError, "same_kind"),
    "out that the sum's sign does not fit": (
        lambda w: vecadd.add(dev(N, "i4"), dev(N, "i4"), dev(N, "u4")), TypeError, "same_kind"),
    "Python int beyond the dtype": (lambda w: vecadd.add(dev(N, "i1"), 128), OverflowError, "128 out of bounds"),
    "negative Python int with unsigned": (lambda w: vecadd.add(-1, dev(N, "u8")), OverflowError, "-1 out of bounds"),
    "Python int beyond float64": (lambda w: vecadd.add(w.device, 10**400, w.out), OverflowError, "too large"),
    "out with stride 0": (lambda w: vecadd.add(w.device, w.device, w.cai(strides=(0,))), ValueError, "overlaps itself"),
    "out with interleaved axes": (
        lambda w: vecadd.add(w.cai(shape=(3, 2)), 1, w.cai(shape=(3, 2), strides=(8, 12))),
        ValueError, "overlaps itself"),
    "sum larger than any memory": (
        lambda w: vecadd.add(w.cai(shape=(2**40, 1), strides=(0, 0)), w.cai(shape=(1, 2**40), strides=(0, 0))),
        ValueError, "larger than any memory"),
    "no common shape on the device": (lambda w: vecadd.add(w.device, dev(N - 1), w.out), ValueError, "shape"),
    "same size, other shape": (lambda w: vecadd.add(w.device, dev((10, 10)), w.out), ValueError, "shape"),
    "small out on the device": (lambda w: vecadd.add(dev(N + 1), dev(N + 1), w.out), ValueError, "shape"),
    "out that would have to be repeated": (
        lambda w: vecadd.add(w.device, w.device, dev(1)),
        ValueError, r"output operand with shape \(1,\) doesn't match the broadcast shape \(100,\)"),
    "out in a tuple of two": (lambda w: vecadd.add(w.device, w.device, out=(w.out, None)), ValueError, "one entry"),
    "stream's handle raises": (
        lambda w: vecadd.add(w.device, w.device, w.out, stream=RaisingHandle()), LookupError, "asked"),
    "version of DLPack that raises": (
        lambda w: w.device.__dlpack__(max_version=(RaisingIndex(), 0)), LookupError, "asked for its index"),
    "version of DLPack is no number": (
        lambda w: w.device.__dlpack__(max_version=("1", 0)), TypeError, "max_version"),
    "consumer's stream raises": (
        lambda w: w.device.__dlpack__(stream=RaisingIndex()), LookupError, "asked for its index"),
    "consumer's device raises": (
        lambda w: w.device.__dlpack__(dl_device=(RaisingIndex(), 0)), LookupError, "asked for its index"),
    "DLPack's device type raises": (
        lambda w: vecadd.add(w.device, DLPackArray(w.array, says=(RaisingIndex(), RaisingIndex())), w.out),
        LookupError, "asked for its index"),
    "DLPack's ordinal raises": (
        lambda w: vecadd.add(w.device, DLPackArray(w.array, says=(2, RaisingIndex())), w.out),
        LookupError, "asked for its index"),
    "DLPack's device type beyond 32 bits": (
        lambda w: vecadd.add(w.device, DLPackArray(w.array, says=(2**32 + 2, 0)), w.out), ValueError, "4294967298"),
    "DLPack's ordinal beyond 32 bits": (
        lambda w: vecadd.add(w.device, DLPackArray(w.array, says=(2, 2**32)), w.out), ValueError, "4294967296"),
    "DLPack's ordinal beyond any int": (
        lambda w: vecadd.add(w.device, DLPackArray(w.array, says=(2, 2**80)), w.out), ValueError, "device"),
    "index that raises": (lambda w: w.device[RaisingIndex()], LookupError, "asked for its index"),
    "slice that raises": (lambda w: w.device[: RaisingIndex()], LookupError, "asked for its index"),
    "reshape that raises": (lambda w: w.device.reshape(RaisingIndex()), LookupError, "asked for its index"),
    "extent that raises": (
        lambda w: vecadd.add(w.device, w.cai(shape=(RaisingIndex(),)), w.out), LookupError, "asked for its index"),
    "stride that raises": (
        lambda w: vecadd.add(w.device, w.cai(strides=(RaisingIndex(),)), w.out), LookupError, "asked for its index"),
    "stream whose index raises": (
        lambda w: vecadd.add(w.device, w.device, w.out, stream=RaisingIndex()), LookupError, "asked for its index"),
    "shape of pinned memory that raises": (
        lambda w: vecadd.empty_pinned((3, RaisingIndex())), LookupError, "asked for its index"),
    "to_device of objects": (lambda w: vecadd.to_device(np.array([None])), TypeError, "object"),
    "to_device of strings": (lambda w: vecadd.to_device(np.array(["a"])), TypeError, "U1"),
    "to_device of longdouble": (lambda w: vecadd.to_device(np.zeros(3, "g")), TypeError, "float128|longdouble|float96"),
    "to_device of nothing": (lambda w: vecadd.to_device(), TypeError, "argument"),
    # Streams
    "stream is a word": (lambda w: vecadd.add(w.device, w.device, w.out, stream="0"), TypeError, "stream"),
    "stream is a fraction": (lambda w: vecadd.add(w.device, w.device, w.out, stream=1.0), TypeError, "stream"),
    "stream is a bool": (lambda w: vecadd.add(w.device, w.device, w.out, stream=True), TypeError, "stream"),
    "stream is negative": (lambda w: vecadd.add(w.device, w.device, w.out, stream=-1), ValueError, "stream"),
    "stream is small": (lambda w: vecadd.add(w.device, w.device, w.out, stream=3), ValueError, "not a stream handle"),
    "stream is in the first page": (
        lambda w: vecadd.add(w.device, w.device, w.out, stream=4095), ValueError, "not a stream handle"),
    "stream is huge": (lambda w: vecadd.add(w.device, w.device, w.out, stream=2**64), ValueError, "stream"),
    "stream object that raises": (
        lambda w: vecadd.add(w.device, w.device, w.out, stream=RaisingStream()), LookupError, "asked"),
    "stream of a newer protocol": (
        lambda w: vecadd.add(w.device, w.device, w.out, stream=Stream((1, 0))), ValueError, "newer than 0"),
    "stream whose protocol is a handle": (
        lambda w: vecadd.add(w.device, w.device, w.out, stream=Stream(0)), TypeError, "version, handle"),
    "stream whose protocol gives three": (
        lambda w: vecadd.add(w.device, w.device, w.out, stream=Stream((0, 0, 0))), TypeError, "version, handle"),
    "stream whose protocol gives a word": (
        lambda w: vecadd.add(w.device, w.device, w.out, stream=Stream((0, "1"))), TypeError, "handle"),
    # __cuda_array_interface__
    "interface raises": (lambda w: vecadd.add(w.device, RaisingInterface(), w.out), LookupError, "asked"),
    "interface is None": (lambda w: vecadd.add(w.device, Interface(None), w.out), TypeError, "dict"),
    "interface is a list": (lambda w: vecadd.add(w.device, Interface([]), w.out), TypeError, "dict"),
    "interface is empty": (
        lambda w: vecadd.add(w.device, Interface({}), w.out), ValueError, "__cuda_array_interface__"),
    "no shape": (lambda w: vecadd.add(w.device, w.cai(shape=...), w.out), ValueError, "shape"),
    "a typestr that says no byte order": (
        lambda w: vecadd.add(w.device, w.cai(typestr="|f4"), w.out), TypeError, "has dtype"),
    "no typestr": (lambda w: vecadd.add(w.device, w.cai(typestr=...), w.out), ValueError, "typestr"),
    "no data": (lambda w: vecadd.add(w.device, w.cai(data=...), w.out), ValueError, "data"),
    "no version": (lambda w: vecadd.add(w.device, w.cai(version=...), w.out), ValueError, "version"),
    "version of the future": (lambda w: vecadd.add(w.device, w.cai(version=4), w.out), ValueError, "version"),
    "negative version": (lambda w: vecadd.add(w.device, w.cai(version=-1), w.out), ValueError, "version"),
    "version is a word": (lambda w: vecadd.add(w.device, w.cai(version="3"), w.out), TypeError, "version"),
    "shape is a list": (lambda w: vecadd.add(w.device, w.cai(shape=[N]), w.out), TypeError, "shape"),
    "shape is a number": (lambda w: vecadd.add(w.device, w.cai(shape=N), w.out), TypeError, "shape"),
    "extent is a float": (lambda w: vecadd.add(w.device, w.cai(shape=(float(N),)), w.out), TypeError, "shape"),
    "negative extent": (lambda w: vecadd.add(w.device, w.cai(shape=(-N,)), w.out), ValueError, "shape|negative"),
    "two negative extents": (lambda w: vecadd.add(w.device, w.cai(shape=(-10, -10)), w.out), ValueError, "shape|negat"),
    "huge extent": (
        lambda w: vecadd.add(w.cai(shape=(2**62,)), w.cai(shape=(2**62,))), ValueError, "larger than any memory"),
    "extent beyond 64 bits": (
        lambda w: vecadd.add(w.device, w.cai(shape=(2**70,)), w.out), ValueError, "no memory has"),
    "product of extents beyond 64 bits": (
        lambda w: vecadd.add(*[w.cai(shape=(2**40, 2**40))] * 2), ValueError, "larger than any memory"),
    "product of extents wraps around to 0": (
        lambda w: vecadd.add(*[w.cai(shape=(2**32, 2**32))] * 2), ValueError, "larger than any memory"),
    "no element, and other extents beyond any memory": (
        lambda w: vecadd.add(*[w.cai(shape=(0, 2**62), data=(0, False))] * 2), ValueError, "larger than any memory"),
    "sum of no element, and other extents beyond any memory": (
        lambda w: vecadd.add(dev((0, 2**40, 1)), dev((0, 1, 2**40))), ValueError, "larger than any memory"),
    "sum of no element, of larger elements than the operands": (
        lambda w: vecadd.add(dev((0, 2**62), "int8"), dev((), "float32")), ValueError, "larger than any memory"),
    "65 dimensions": (lambda w: vecadd.add(w.device, w.cai(shape=(1,) * 65), w.out), ValueError, "65 dim"),
    "extent beyond the allocation": (
        lambda w: vecadd.add(w.cai(shape=(2**30,)), w.cai(shape=(2**30,))), ValueError, "allocation"),
    "data is a number": (lambda w: vecadd.add(w.device, w.cai(data=1234), w.out), TypeError, "data"),
    "data is a triple": (lambda w: vecadd.add(w.device, w.cai(data=(1, 2, 3)), w.out), TypeError, "data"),
    "pointer is a float": (lambda w: vecadd.add(w.device, w.cai(data=(1.5, False)), w.out), TypeError, "data|pointer"),
    "pointer is None": (lambda w: vecadd.add(w.device, w.cai(data=(None, False)), w.out), TypeError, "data|pointer"),
    "pointer is null": (lambda w: vecadd.add(w.device, w.cai(data=(0, False)), w.out), ValueError, "null"),
    "negative pointer": (lambda w: vecadd.add(w.device, w.cai(data=(-1, False)), w.out), ValueError, "not a pointer"),
    "pointer is huge": (lambda w: vecadd.add(w.device, w.cai(data=(2**64, False)), w.out), ValueError, "not a pointer"),
    "pointer at the end of the world": (
        lambda w: vecadd.add(w.device, w.cai(data=(2**64 - 64, False)), w.out), ValueError, "address space"),
    "pointer to host memory": (
        lambda w: vecadd.add(w.device, w.cai(data=(w.host.ctypes.data, False)), w.out), ValueError, "not memory that"),
    "pointer to nowhere": (lambda w: vecadd.add(w.device, w.cai(data=(4096, False)), w.out), ValueError, "not memory"),
    "read-only out on the device": (
        lambda w: vecadd.add(w.device, w.device, w.cai(data=(w.foreign_out.pointer, True))), ValueError, "read-only"),
    "typestr is bytes": (lambda w: vecadd.add(w.device, w.cai(typestr=b"<f4"), w.out), TypeError, "typestr"),
    "typestr is empty": (lambda w: vecadd.add(w.device, w.cai(typestr=""), w.out), TypeError, "dtype"),
    "typestr unknown": (lambda w: vecadd.add(w.device, w.cai(typestr="<q9"), w.out), TypeError, "q9"),
    "typestr with a null": (lambda w: vecadd.add(w.device, w.cai(typestr="<f4\0"), w.out), TypeError, "dtype <f4\0;"),
    "typestr of half a character": (
        lambda w: vecadd.add(w.device, w.cai(typestr="<f\ud800"), w.out), TypeError, "dtype <f\ud800;"),
    "typestr of strings": (lambda w: vecadd.add(w.device, w.cai(typestr="<U1"), w.out), TypeError, "U1"),
    "typestr of another width": (lambda w: vecadd.add(w.device, w.cai(typestr="<f16"), w.out), TypeError, "f16|128"),
    "typestr of an unknown library's V2": (lambda w: vecadd.add(*[w.cai(typestr="<V2")] * 2), TypeError, "V2"),
    "typestr of dates": (lambda w: vecadd.add(w.device, w.cai(typestr="<M8[D]"), w.out), TypeError, "M8|datetime"),
    "other byte order": (lambda w: vecadd.add(w.device, w.cai(typestr=">f4"), w.out), TypeError, ">f4|byte order"),
    "descr of a structure": (
        lambda w: vecadd.add(w.device, w.cai(descr=[("x", "<f2"), ("y", "<f2")]), w.out), TypeError, "structures"),
    "descr of a named field": (lambda w: vecadd.add(w.device, w.cai(descr=[("x", "<f4")]), w.out), TypeError, "descr"),
    "descr of another type": (lambda w: vecadd.add(w.device, w.cai(descr=[("", "<i4")]), w.out), TypeError, "'<i4'"),
    "descr is empty": (lambda w: vecadd.add(w.device, w.cai(descr=[]), w.out), TypeError, "descr"),
    "descr of fields that are none": (lambda w: vecadd.add(w.device, w.cai(descr=[3]), w.out), TypeError, "descr"),
    "descr is a word": (lambda w: vecadd.add(w.device, w.cai(descr="<f4"), w.out), TypeError, "list of fields"),
    "version is a fraction": (lambda w: vecadd.add(w.device, w.cai(version=3.0), w.out), TypeError, "version"),
    "version beyond 64 bits": (lambda w: vecadd.add(w.device, w.cai(version=2**70), w.out), ValueError, "version"),
    "shape is None": (lambda w: vecadd.add(w.device, w.cai(shape=None), w.out), TypeError, "shape"),
    "data is empty": (lambda w: vecadd.add(w.device, w.cai(data=()), w.out), TypeError, "data"),
    "data is a list": (lambda w: vecadd.add(w.device, w.cai(data=[w.array.pointer, False]), w.out), TypeError, "data"),
    "read-only flag is a number": (
        lambda w: vecadd.add(w.device, w.cai(data=(w.array.pointer, 0)), w.out), TypeError, "data"),
    "too few strides": (lambda w: vecadd.add(w.device, w.cai(strides=()), w.out), ValueError, "0 strides for 1 dim"),
    "masked": (lambda w: vecadd.add(w.device, w.cai(mask=w.array), w.out), NotImplementedError, "mask"),
    "strides that lead before the allocation": (
        lambda w: vecadd.add(w.device, w.cai(strides=(-(2**36),)), w.out), ValueError, "not memory that"),
    "strides that lead past the allocation": (
        lambda w: vecadd.add(w.device, w.cai(strides=(8,)), w.out), ValueError, "do not fit"),
    "strides that lead out of the address space": (
        lambda w: vecadd.add(w.device, w.cai(strides=(2**62,)), w.out), ValueError, "outside the address space"),
    "strides that lead below the address space": (
        lambda w: vecadd.add(w.device, w.cai(strides=(-(2**56),)), w.out), ValueError, "outside the address space"),
    "strides beyond 64 bits": (
        lambda w: vecadd.add(w.device, w.cai(strides=(2**64,)), w.out), ValueError, "no memory has"),
    "too many strides": (lambda w: vecadd.add(w.device, w.cai(strides=(4, 4)), w.out), ValueError, "strides"),
    "strides is a list": (lambda w: vecadd.add(w.device, w.cai(strides=[4]), w.out), TypeError, "strides"),
    "strides of words": (lambda w: vecadd.add(w.device, w.cai(strides=("4",)), w.out), TypeError, "strides"),
    "stream 0 in the interface": (lambda w: vecadd.add(w.device, w.cai(stream=0), w.out), ValueError, "stream"),
    "negative stream in the interface": (lambda w: vecadd.add(w.device, w.cai(stream=-1), w.out), ValueError, "stream"),
    "no pointer for a stream in the interface": (
        lambda w: vecadd.add(w.device, w.cai(stream=3), w.out), ValueError, "not a stream handle"),
    "word for a stream in the interface": (
        lambda w: vecadd.add(w.device, w.cai(stream="1"), w.out), TypeError, "stream"),
    "bool for a stream in the interface": (
        lambda w: vecadd.add(w.device, w.cai(stream=True), w.out), TypeError, "stream"),
    "fraction for a stream in the interface": (
        lambda w: vecadd.add(w.device, w.cai(stream=1.0), w.out), TypeError, "stream"),
    "stream beyond 64 bits in the interface": (
        lambda w: vecadd.add(w.device, w.cai(stream=2**64), w.out), ValueError, "stream"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_HOST_CALLS)
def test_bad_host_call_is_refused_and_changes_nothing(name):
    class HostWorld:
        host, host_out, read_only = np.arange(N, dtype=np.float32), np.full(N, -1, np.float32), np.full(N, -1, "f4")

    w = HostWorld()
    w.read_only.flags.writeable = False
    call, exception, message = BAD_HOST_CALLS[name]
    references = sys.getrefcount(w.host), sys.getrefcount(w.host_out)
    with pytest.raises(exception, match=message):
        call(w)
    assert (w.host_out == -1).all()
    assert (w.read_only == -1).all()
    assert (sys.getrefcount(w.host), sys.getrefcount(w.host_out)) == references
    assert_same_values(vecadd.add(w.host, w.host, w.host_out), w.host * 2)


@pytest.fixture
def world(foreign):
    """Emptied at the end, because pytest keeps it until after the device's check of what is left."""
    made = World(foreign)
    yield made
    vars(made).clear()


@pytest.mark.parametrize("name", BAD_DEVICE_CALLS)
def test_bad_device_call_is_refused_and_changes_nothing(name, world, request):
    """On the double, again and again: small buffers that the first call makes are kept for the next."""
    call, exception, message = BAD_DEVICE_CALLS[name]
    before, counts = world.content(), _core.memory_counts()
    objects = world.host, world.host_out, world.device, world.out, world.array, world.foreign_out
    references = [sys.getrefcount(x) for x in objects]
    with pytest.raises(exception, match=message):
        call(world)
    assert [sys.getrefcount(x) for x in objects] == references
    assert world.content() == before
    assert memory_grown(counts) == {}
    assert_same_values(vecadd.add(world.device, world.array, world.out).numpy(), world.host * 2)
    if ON_DOUBLE:
        double = request.getfixturevalue("double")
        gc.collect()
        live = double.live()
        for _ in range(3):
            with pytest.raises(exception):
                call(world)
        gc.collect()
        assert double.live() == live


def test_memory_freed_by_its_library_is_refused(foreign, driver):
    a = foreign(np.arange(N))
    vecadd.add(a, a)
    driver.free(a.pointer)
    with pytest.raises(ValueError, match="not memory"):
        vecadd.add(a, a)


def test_operands_on_two_devices_are_refused(second_device):
    a = np.arange(N)
    with pytest.raises(ValueError, match="device"):
        vecadd.add(vecadd.to_device(a), vecadd.to_device(a, second_device))


def test_out_on_another_device_is_refused(second_device):
    a = vecadd.to_device(np.arange(N))
    with pytest.raises(ValueError, match="device"):
        vecadd.add(a, a, vecadd.to_device(np.arange(N), second_device))


def test_device_that_is_not_the_operands_is_refused(second_device):
    a = vecadd.to_device(np.arange(N))
    with pytest.raises(ValueError, match="device"):
        vecadd.add(a, a, device=f"cuda:{second_device}")


@pytest.mark.parametrize(
    "call",
    [lambda: vecadd.add([1], [2], device="cuda"), lambda: vecadd.to_device([1]), lambda: vecadd.empty_pinned(3, "f4")],
    ids=["add", "to_device", "empty_pinned"],
)
def test_without_a_gpu_the_error_says_why(runtime, call):
    if runtime is not None:
        pytest.skip("there is a GPU, or the double (test_failures_first_use.py)")
    with pytest.raises(RuntimeError, match=r"driver|GPU|CUDA"):
        call()
    assert vecadd.add([1], [2]).tolist() == [3]

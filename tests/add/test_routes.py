"""Which calls take which route: a call that falls back to numpy.add without need is a regression, and device=None takes
the GPU only where CUDA is in use, and never at a caller's cost."""

import textwrap

import numpy as np
import pytest
from arrays import DTYPES, lane, offset_empty

import vecadd
from vecadd import _core

LARGE = 2**25


def route(*arguments, **keywords):
    return _core.explain_route(*arguments, **keywords)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("n", [0, 1, 1000, LARGE])
def test_contiguous_arrays_of_one_dtype_are_added_by_us(n, dtype):
    a, out = np.empty(n, dtype), np.empty(n, dtype)
    for found in (route(a, a), route(a, a, out), route(a, a, a), route(a, a, out=(out,)), route(a, a, device="cpu")):
        assert found["route"] == "host"
        assert found["threads"] >= 1
        assert found["stores"] in ("ordinary", "streaming")
        assert found["simd"] == _core.host_facts()["simd"]


def read_only(x):
    x.flags.writeable = False
    return x


OURS = {
    "misaligned for a vector": lambda: (offset_empty(np.dtype("f4"), 100, 4), offset_empty(np.dtype("f4"), 100, 12)),
    "C order": lambda: (np.empty((2, 3, 4)),) * 3,
    "Fortran order": lambda: (np.empty((2, 3, 4), order="F"),) * 3,
    "one element": lambda: (np.empty((1, 1)), np.empty((1, 1), order="F")),
    "read-only": lambda: (read_only(np.empty(100)),) * 2,
    "operands that overlap each other": lambda: (lambda x: (x[:100], x[50:150], np.empty(100)))(np.empty(200)),
    "long long": lambda: (np.empty(10, "q"),) * 2,
}


@pytest.mark.parametrize("name", OURS)
def test_arrays_that_are_one_run_of_memory_are_ours(name):
    assert route(*OURS[name]())["route"] == "host"


def test_foreign_arrays_are_added_on_the_device_at_any_alignment_of_their_lane(foreign):
    a = foreign(np.zeros(10, np.complex64), offset=lane(np.dtype("complex64")).itemsize)
    assert route(a, a)["route"] == "device"


def test_in_a_process_that_uses_cuda_large_page_locked_arrays_leave_the_host_and_others_stay(device, child):
    child("""
import numpy as np, vecadd
a = np.ones(2**23, np.float32)
vecadd.to_device(a[:3])
x, y, out = (vecadd.empty_pinned(2**23, np.float32) for _ in range(3))
x[...], y[...] = 1, 2
assert vecadd.explain(a, a).route == vecadd.explain(a, a, a).route == vecadd.explain(x, y).route == "host"
assert vecadd.explain(x, y, out).route == "hybrid"
assert (vecadd.add(x, y, out) == 3).all()
""")


def test_host_sums_make_no_cuda_call(child):
    child(
        "import numpy as np, vecadd\n"
        "a = np.zeros(2**20)\n"
        "vecadd.add(a, a, a); vecadd._core.explain_route(a, a); vecadd.add(a, 1)\n"
        "vecadd.add([1], [2]); vecadd.add(a, a, device='cpu')\n"
        "maps = open('/proc/self/maps').read()\n"
        "assert 'libcuda' not in maps and '/dev/nvidia' not in maps\n"
    )


# Each test of an open route is a process of its own, because a process that has used CUDA goes on using it. One thread
# adds there, and by the double's clock so slowly that the GPU always gets its share.
OPEN = """
import ctypes, ctypes.util, os, struct
import numpy as np, vecadd
from double import control

libm = ctypes.CDLL(ctypes.util.find_library("m"))
upward = {"x86_64": 0x800, "aarch64": 0x400000}[os.uname().machine]

def arrays(mib=32, dtype="float32", make=vecadd.empty_pinned):
    made = [make(int(mib * 2**20) // np.dtype(dtype).itemsize, dtype) for _ in range(3)]
    for x in made:
        x[...] = 1
    return made

def route(*arguments, **keywords):
    return vecadd.explain(*arguments, **keywords).route

def why(*arguments):
    found = vecadd.explain(*arguments)
    assert found.route == "host" and not found.predicted, found
    return found.why

def launches(add):
    # How many kernels the GPU runs for a call of add.
    before = control.calls("cudaLaunchKernel")
    control.clock(10**7)
    add()
    control.clock(0)
    return control.calls("cudaLaunchKernel") - before
"""


@pytest.fixture
def opened(double, device, child):
    """opened(code): runs code in a process of one thread."""
    return lambda code: child(OPEN + textwrap.dedent(code), VECADD_NUM_THREADS="1")


def test_large_page_locked_arrays_are_shared_with_the_gpu(opened):
    opened("""
        vecadd.use_gpu()
        for dtype in ("float32", "float16", "int8", "complex128"):
            a, b, out = arrays(32, dtype)
            found = vecadd.explain(a, b, out)
            assert found.route == "hybrid" and "faster than the processor alone" in found.why
            assert launches(lambda: vecadd.add(a, b, out)) > 0 and (out == 2).all()
            assert route(a[:-1], b[:-1], out[:-1]) == "host"
            assert "less than 32 MiB" in why(a[:-1], b[:-1], out[:-1])
            assert launches(lambda: vecadd.add(a[:-1], b[:-1], out[:-1])) == 0
        host, transfer = 3 * 2**25 / 12e9, 2 * 2**25 / (31.5e9 * 55 / 63)  # of PCIe 4: the double's link says nothing
        want = {"host": host, "transfer": transfer, "hybrid": 1 / (1 / host + 1 / transfer)}
        assert found.predicted.keys() == want.keys()
        assert all(abs(found.predicted[name] / seconds - 1) < 1e-9 for name, seconds in want.items())
        assert "predicted" in str(found) and "host 8.39 ms" in str(found)
    """)


def test_a_sum_that_is_still_to_be_made_and_mixed_operands_count_as_ordinary(opened):
    opened("""
        vecadd.use_gpu()
        a, b, out = arrays()
        plain = np.ones_like(a, subok=False)
        for call in ((a, b), (a, b, plain), (a, plain, out), (plain, b, out)):
            assert "ordinary memory" in why(*call)
            assert launches(lambda: vecadd.add(*call)) == 0
        assert route(a, b, out) == "hybrid"
    """)


def test_without_cuda_in_use_the_host_adds(opened):
    opened("""
        a, b, out = arrays(make=np.empty)
        assert "not in play" in why(a, b, out)
        vecadd.add(a, b, out)
        assert control.calls("cudaGetDeviceCount") == 0
        a, b, out = arrays()
        assert route(a, b, out) == "hybrid"
    """)


def test_the_first_gpu_in_use_takes_part(opened):
    opened("""
        vecadd.to_device(np.ones(3), "cuda:1")
        vecadd.to_device(np.ones(3), "cuda:0")
        a, b, out = arrays()
        switches = control.calls("cuCtxSetCurrent")
        assert launches(lambda: vecadd.add(a, b, out)) > 0
        assert control.calls("cuCtxSetCurrent") > switches  # from the current one, cuda:0
    """)


def test_use_gpu_allows_and_forbids(opened):
    opened("""
        vecadd.use_gpu(False)
        a, b, out = arrays()
        assert "use_gpu(False)" in why(a, b, out)
        vecadd.use_gpu(True)
        assert route(a, b, out) == "hybrid"
        plan = vecadd.plan(a, b, out)
        assert plan.route == "hybrid" and launches(plan) > 0
        vecadd.use_gpu(False)
        assert route(a, b, out) == "host" and launches(plan) == 0
        assert route(a, b, out, device="cuda") == "transfer"
        vecadd.use_gpu(True)
        assert launches(plan) > 0
    """)


def test_what_is_asked_for_is_done(opened):
    opened("""
        vecadd.use_gpu()
        a, b, out = arrays()
        for device, want in {"cpu": "host", "cuda": "transfer", "hybrid": "hybrid"}.items():
            found = vecadd.explain(a, b, out, device=device)
            assert found.route == want and "device= asks" in found.why and not found.predicted
        assert vecadd._core.explain_route(a, b, out, where=True)["route"] in ("numpy", "host")
        assert route(a[::2], b[::2], out[::2]) == "numpy"
    """)


def test_a_forked_child_adds_on_the_host(opened):
    opened("""
        vecadd.use_gpu()
        a, b, out = arrays()
        assert route(a, b, out) == "hybrid"
        pid = os.fork()
        if pid == 0:
            right = "not in play" in why(a, b, out) and (vecadd.add(a, b, out) == 2).all()
            os._exit(0 if right else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert route(a, b, out) == "hybrid"
    """)


def test_an_unusual_rounding_stays_on_the_host(opened):
    opened("""
        vecadd.use_gpu()
        a, b, out = arrays()
        libm.fesetround(upward)
        words = why(a, b, out)
        libm.fesetround(0)
        assert "rounding" in words and route(a, b, out) == "hybrid"
    """)


def test_a_plan_rounds_and_flushes_as_its_caller_does_at_each_call(opened):
    opened("""
        place, flush = {"x86_64": (28, 0x8040), "aarch64": (0, 1 << 24)}[os.uname().machine]

        def flushing(environment):
            changed = ctypes.create_string_buffer(environment.raw, 64)
            control_word, = struct.unpack_from("I", changed, place)
            struct.pack_into("I", changed, place, control_word | flush)
            return changed

        vecadd.use_gpu()
        a, b, out = arrays()
        tiny, _, zero = arrays()
        b[...], tiny[...] = 2.0 ** -25, 2.0 ** -140
        sums, zeros = vecadd.plan(a, b, out), vecadd.plan(tiny, tiny, zero)
        assert sums.route == zeros.route == "hybrid"
        usual = ctypes.create_string_buffer(64)
        libm.fegetenv(usual)
        for _ in range(2):
            assert launches(sums) > 0 and (out == 1).all()
            libm.fesetround(upward)
            try:
                sums()
            finally:
                libm.fesetround(0)
            assert (out == np.nextafter(np.float32(1), np.float32(2))).all()
            assert (zeros() == 2.0 ** -139).all()
            libm.fesetenv(flushing(usual))
            try:
                found = zeros().tobytes()
            finally:
                libm.fesetenv(usual)
            assert found == bytes(len(found))
    """)


def test_a_sum_through_the_gpu_leaves_another_threads_capture_alone(opened):
    """The caller of add does not know that it goes through the GPU, and the thread that captures has not called it."""
    opened("""
        from concurrent.futures import ThreadPoolExecutor
        import foreign
        driver = foreign.open_driver(True)
        vecadd.use_gpu()
        a, b, out = arrays()
        stream = driver.stream()
        with driver.capture(stream), ThreadPoolExecutor(1) as pool:  # the first use: buffers are made
            for _ in range(2):
                assert pool.submit(launches, lambda: vecadd.add(a, b, out)).result() > 0
                assert route(a, b, out) == "hybrid" and (out == 2).all()
        driver.close()
    """)


def test_use_gpu_says_why_there_is_none(double, child):
    code = """
import vecadd
try:
    vecadd.use_gpu()
except RuntimeError as error:
    print(error)
vecadd.use_gpu(False)
"""
    assert "no NVIDIA driver" in child(code, VECADD_DOUBLE_DRIVER="0").stdout
    with pytest.raises(TypeError, match="at most 1"):
        vecadd.use_gpu(True, True)


# --- a GPU that fails under an addition that vecadd sent there by itself: the host adds in its place


def test_what_fails_on_the_gpu_is_added_by_the_host(opened):
    opened("""
        vecadd.use_gpu()
        a, b, out = arrays()
        add = lambda: vecadd.add(a, b, out)
        for nth in (1, 2, 3):
            control.fail("cudaLaunchKernel", nth, 719, False)  # the device is lost
            out[...] = 0
            assert route(a, b, out) == "hybrid" and launches(add) > 0 and (out == 2).all()
            assert "no device call" in why(a, b, out)
            assert launches(add) == 0 and (out == 2).all()
            control.reset(0)
            vecadd.use_gpu()
        assert route(a, b, out) == "hybrid" and launches(add) > 0
    """)


def test_no_room_or_a_capture_in_the_way_is_no_reason_to_leave_the_gpu(opened):
    opened("""
        vecadd.use_gpu()
        a, b, out = arrays()
        for call in ("cudaMallocFromPoolAsync", "cudaMemcpyAsync"):
            for status in (2, 900, 901, 906):
                out[...] = 0
                control.fail(call, 1, status)
                launches(lambda: vecadd.add(a, b, out))
                assert (out == 2).all() and route(a, b, out) == "hybrid"
    """)


def test_a_gpu_that_the_program_has_forbidden_is_no_failure(opened):
    """The program has to take its own word back first: use_gpu() then forgets the failure too."""
    opened("""
        vecadd.use_gpu()
        a, b, out = arrays()
        control.fail("cudaLaunchKernel", 1, 719, False)
        launches(lambda: vecadd.add(a, b, out))
        assert "no device call" in why(a, b, out)
        vecadd.use_gpu(False)
        assert "use_gpu(False)" in why(a, b, out)
        control.reset(0)
        vecadd.use_gpu()
        assert route(a, b, out) == "hybrid"
    """)


@pytest.mark.parametrize("into", "ab")
def test_what_fails_in_place_says_that_the_output_is_undefined(opened, into):
    opened(f"""
        vecadd.use_gpu()
        a, b, out = arrays()
        control.fail("cudaLaunchKernel", 2, 999, False)
        try:
            launches(lambda: vecadd.add(a, b, {into}))
        except RuntimeError as error:
            assert "output is undefined" in str(error)
        else:
            raise AssertionError("no error")
        control.clock(0)
        control.reset(0)
        {into}[...] = 1
        assert (vecadd.add(a, b, out) == 2).all()
    """)


def test_a_gpu_without_room_leaves_a_sum_in_place_to_the_host(opened):
    """Nothing is written by then."""
    opened("""
        vecadd.use_gpu()
        a, b, out = arrays()
        for into in (a, b):
            assert route(a, b, into) == "hybrid"
            control.fail("cudaMallocFromPoolAsync", 1, 2, True)
            launches(lambda: vecadd.add(a, b, into))
            assert (into == 2).all()
            control.reset(0)
            into[...] = 1
    """)

"""device=None: host, transfer or hybrid by what was measured, only where CUDA is in play, and never at a caller's cost.

The calibrations here are made up, so that every route is the fastest somewhere. A process reads its own once, when it
first uses a GPU: each test is a child process.
"""

import subprocess
import textwrap
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import vecadd
from vecadd import _core, _explain
from vecadd.tune import routes, store

KIB = 1024

# Bytes of an operand, and seconds. In ordinary memory the GPU is ahead from about 256 KiB on; pinned, hybrid is from 64
# KiB and the GPU from 1 MiB. 16-bit floats stay on the host but for pinned ones of 1 MiB.
SIZES = (16 * KIB, 64 * KIB, 256 * KIB, 1024 * KIB)
ROWS = [
    ("bytes", SIZES),
    ("zero_copy", (0,)),
    ("ordinary_wide_host", (1.0, 2.0, 4.0, 8.0)),
    ("ordinary_wide_transfer", (3.0, 3.0, 3.0, 3.0)),
    ("ordinary_half_host", (1.0, 1.0, 1.0, 1.0)),
    ("ordinary_half_transfer", (3.0, 3.0, 3.0, 3.0)),
    ("pinned_wide_host", (1.0, 3.0, 3.0, 8.0)),
    ("pinned_wide_transfer", (3.0, 3.0, 3.0, 1.0)),
    ("pinned_wide_hybrid", (3.0, 1.0, 1.0, 3.0)),
    ("pinned_half_host", (1.0, 1.0, 1.0, 4.0)),
    ("pinned_half_transfer", (3.0, 3.0, 3.0, 2.0)),
    ("pinned_half_hybrid", (3.0, 3.0, 3.0, 3.0)),
]

HEAD = """
import os
import numpy as np, vecadd
from vecadd import _core, _explain

def arrays(kib, dtype="float32", memory="ordinary"):
    n = kib * 1024 // np.dtype(dtype).itemsize
    make = vecadd.empty_pinned if memory == "pinned" else np.empty
    made = [make(n, dtype) for _ in range(3)]
    for x in made:
        x[...] = 1
    return made

def route(*arguments, **keywords):
    return vecadd.explain(*arguments, **keywords).route
"""

Choosing = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def choosing(double: object, device: int, child: Choosing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Choosing:
    """choosing(code, rows=ROWS): runs code in a process of its own on a machine with that calibration."""

    def run(code: str, rows: object = ROWS) -> subprocess.CompletedProcess[str]:
        monkeypatch.setenv("VECADD_CACHE_DIR", str(tmp_path))
        key = _core.routes_key()
        assert key is not None
        store.write("routes", key, rows)  # type: ignore[arg-type]
        return child(HEAD + textwrap.dedent(code), VECADD_CACHE_DIR=str(tmp_path))

    return run


def test_the_fastest_that_was_measured_is_taken(choosing: Choosing) -> None:
    choosing("""
        vecadd.use_gpu()
        for memory, dtype, routes in [
            ("ordinary", "float32", {4: "host", 16: "host", 64: "host", 256: "transfer", 3000: "transfer"}),
            ("ordinary", "float16", {64: "host", 1024: "host"}),
            ("pinned", "float32", {16: "host", 64: "hybrid", 256: "hybrid", 1024: "transfer"}),
            ("pinned", "complex128", {16: "host", 64: "hybrid", 256: "hybrid", 1024: "transfer"}),
            ("pinned", "int8", {16: "host", 64: "hybrid", 256: "hybrid", 1024: "transfer"}),
            ("pinned", "float16", {256: "host", 1024: "transfer"}),
        ]:
            for kib, want in routes.items():
                a, b, out = arrays(kib, dtype, memory)
                assert route(a, b, out) == want, (memory, dtype, kib, route(a, b, out))
                assert (vecadd.add(a, b, out) == np.add(a, b)).all()
    """)  # fmt: skip


def test_a_sum_that_is_still_to_be_made_and_mixed_operands_count_as_ordinary(choosing: Choosing) -> None:
    choosing("""
        vecadd.use_gpu()
        a, b, out = arrays(64, memory="pinned")
        assert route(a, b, out) == "hybrid"
        assert route(a, b) == "host"
        assert route(a, b, np.empty_like(a)) == "host"
        assert route(a, b.copy(), out) == route(a.copy(), b, out) == "host"
        assert (vecadd.add(a, b) == 2).all()
    """)


def test_without_cuda_in_play_the_host_adds(choosing: Choosing) -> None:
    choosing("""
        a, b, out = arrays(1024)
        assert route(a, b, out) == "host"
        assert "not in play" in vecadd.explain(a, b, out).why
        vecadd.add(a, b, out)
        vecadd.to_device(a)
        assert route(a, b, out) == "transfer"
    """)


def test_use_gpu_allows_and_forbids(choosing: Choosing) -> None:
    choosing("""
        a, b, out = arrays(1024)
        vecadd.use_gpu(False)
        vecadd.to_device(a)
        assert route(a, b, out) == "host"
        assert "use_gpu(False)" in vecadd.explain(a, b, out).why
        vecadd.use_gpu(True)
        assert route(a, b, out) == "transfer"
        vecadd.use_gpu(False)
        assert route(a, b, out) == "host"
        assert route(a, b, out, device="cuda") == "transfer"
    """)


def test_what_is_asked_for_is_done(choosing: Choosing) -> None:
    choosing("""
        vecadd.use_gpu()
        a, b, out = arrays(1024)
        assert route(a, b, out, device="cpu") == "host"
        assert route(a, b, out, device="cuda") == "transfer"
        assert "device=" in vecadd.explain(a, b, out, device="cpu").why
        assert vecadd._core.explain_route(a, b, out, where=True)["route"] in ("numpy", "host")
        assert route(a[::2], b[::2], out[::2]) in ("numpy", "host")
    """)


def test_a_forked_child_adds_on_the_host(choosing: Choosing) -> None:
    choosing("""
        vecadd.use_gpu()
        a, b, out = arrays(1024)
        assert route(a, b, out) == "transfer"
        pid = os.fork()
        if pid == 0:
            right = route(a, b, out) == "host" and (vecadd.add(a, b, out) == 2).all()
            os._exit(0 if right else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert route(a, b, out) == "transfer"
    """)


def test_an_unusual_rounding_stays_on_the_host(choosing: Choosing) -> None:
    choosing("""
        import ctypes, ctypes.util
        libm = ctypes.CDLL(ctypes.util.find_library("m"))
        vecadd.use_gpu()
        a, b, out = arrays(1024)
        upward = {"x86_64": 0x800, "aarch64": 0x400000}[os.uname().machine]
        libm.fesetround(upward)
        found = vecadd.explain(a, b, out)
        libm.fesetround(0)
        assert found.route == "host" and "rounding" in found.why
        assert route(a, b, out) == "transfer"
    """)


# One call of a Plan whose route is the GPU's, in a floating-point environment of the calling thread.
PLANNED = """
import ctypes, ctypes.util, struct
libm = ctypes.CDLL(ctypes.util.find_library("m"))
place, flush = {"x86_64": (28, 0x8040), "aarch64": (0, 1 << 24)}[os.uname().machine]
upward = {"x86_64": 0x800, "aarch64": 0x400000}[os.uname().machine]

def flushing(environment):
    changed = ctypes.create_string_buffer(environment.raw, 64)
    control, = struct.unpack_from("I", changed, place)
    struct.pack_into("I", changed, place, control | flush)
    return changed

vecadd.use_gpu()
a, b, out = arrays(1024)
b[...] = 2.0 ** -25
tiny = np.full_like(a, 2.0 ** -140)
sums, zeros = vecadd.plan(a, b, out), vecadd.plan(tiny, tiny, np.ones_like(out))
assert sums.route == zeros.route == "transfer"
usual = ctypes.create_string_buffer(64)
libm.fegetenv(usual)
"""


def test_a_plan_rounds_and_flushes_as_its_caller_does_at_each_call(choosing: Choosing) -> None:
    choosing(
        PLANNED
        + textwrap.dedent("""
        for _ in range(2):
            assert (sums() == 1).all()
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
    )


def test_a_plan_of_the_gpus_route_stays_on_the_host_where_add_does(choosing: Choosing) -> None:
    choosing("""
        from double import control
        vecadd.use_gpu()
        a, b, out = arrays(1024)
        plan = vecadd.plan(a, b, out)
        def launches():
            out[...] = 0
            before = control.calls("cudaLaunchKernel")
            assert (plan() == 2).all()
            return control.calls("cudaLaunchKernel") - before
        assert plan.route == "transfer" and launches() > 0
        vecadd.use_gpu(False)
        assert route(a, b, out) == "host" and launches() == 0
        vecadd.use_gpu(True)
        assert launches() > 0
    """)


def test_what_fails_on_the_gpu_is_added_by_the_host(choosing: Choosing) -> None:
    choosing("""
        from double import control
        vecadd.use_gpu()
        a, b, out = arrays(1024)
        vecadd.add(a, b, out)
        control.fail("cudaMallocFromPoolAsync", 1, 2, True)  # no memory: this once
        out[...] = 0
        assert (vecadd.add(a, b, out) == 2).all()
        control.reset(0)
        assert route(a, b, out) == "transfer"
        control.fail("cudaLaunchKernel", 1, 719, False)  # the device is lost
        out[...] = 0
        assert (vecadd.add(a, b, out) == 2).all()
        assert route(a, b, out) == "host"
        assert "no device call" in vecadd.explain(a, b, out).why
        assert (vecadd.add(a, b, out) == 2).all()
        control.reset(0)
        vecadd.use_gpu()
        assert route(a, b, out) == "transfer"
    """)


def test_a_capture_in_the_way_is_no_reason_to_leave_the_gpu(choosing: Choosing) -> None:
    choosing("""
        from double import control
        vecadd.use_gpu()
        a, b, out = arrays(3000)
        for status in (900, 901, 906):
            control.fail("cudaMallocFromPoolAsync", 1, status)
            assert (vecadd.add(a, b, out) == 2).all()
            assert route(a, b, out) == "transfer"
    """)


def test_a_sum_through_the_gpu_leaves_another_threads_capture_alone(choosing: Choosing) -> None:
    """The caller of add does not know that it goes through the GPU, and the thread that captures has not called it."""
    choosing("""
        from concurrent.futures import ThreadPoolExecutor
        import foreign
        driver = foreign.open_driver(True)
        vecadd.use_gpu()
        stream, kinds = driver.stream(), [arrays(3000), arrays(1024, memory="pinned"), arrays(256, memory="pinned")]
        with driver.capture(stream), ThreadPoolExecutor(1) as pool:  # the first use of each: buffers are made
            for (a, b, out), want in zip(kinds, ["transfer", "transfer", "hybrid"]):
                assert route(a, b, out) == want
                assert (pool.submit(vecadd.add, a, b, out).result() == 2).all()
                assert route(a, b, out) == want
        driver.close()
    """)


@pytest.mark.parametrize("into", "ab")
def test_what_fails_in_place_says_that_the_output_is_undefined(choosing: Choosing, into: str) -> None:
    choosing(f"""
        from double import control
        vecadd.use_gpu()
        a, b, out = arrays(1024)
        control.fail("cudaLaunchKernel", 2, 999, False)
        try:
            vecadd.add(a, b, {into})
        except RuntimeError as error:
            assert "output is undefined" in str(error)
        else:
            raise AssertionError("no error")
        control.reset(0)
        {into}[...] = 1
        assert (vecadd.add(a, b, out) == 2).all()
    """)


def test_predictions_are_of_every_measured_route(choosing: Choosing) -> None:
    choosing("""
        vecadd.use_gpu()
        a, b, out = arrays(256, memory="pinned")
        found = vecadd.explain(a, b, out)
        assert {name: round(seconds, 6) for name, seconds in found.predicted.items()} == {
            "host": 3.0, "transfer": 3.0, "hybrid": 1.0}
        assert "3.00 x" in found.why and "page-locked" in found.why
        assert str(found).startswith("hybrid ") and "host 3 s" in str(found) and "routes: tuned 20" in str(found)
        a, b, out = arrays(128)
        assert 2.8 < vecadd.explain(a, b, out).predicted["host"] < 2.9
    """)


def test_zero_copy_goes_as_far_as_it_was_measured_to_be_ahead(choosing: Choosing) -> None:
    code = """
        from double import control
        a, b, out = arrays(4, memory="pinned")
        control.reset(0)
        vecadd.add(a, b, out, device="cuda")
        assert (out == 2).all()
        print(control.calls("cudaMemcpyAsync"))
    """
    assert int(choosing(code).stdout) > 0
    assert int(choosing(code, [("zero_copy", (4096,)) if row[0] == "zero_copy" else row for row in ROWS]).stdout) == 0


BAD_ROWS = {
    "no sizes": ROWS[1:],
    "sizes that do not grow": [("bytes", (16, 16, 64, 65)), *ROWS[1:]],
    "one size": [("bytes", (16,))],
    "more times": [("bytes", SIZES[:3]), *ROWS[1:]],
    "fewer times": [*ROWS[:-1], ("pinned_half_hybrid", (3.0, 3.0, 3.0))],
    "no time": [*ROWS[:2], ("ordinary_wide_host", (1.0, 0.0, 4.0, 8.0)), *ROWS[3:]],
    "no host": [row for row in ROWS if row[0] != "pinned_half_host"],
    "a route that is none": [*ROWS, ("pinned_wide_magic", (1.0, 1.0, 1.0, 1.0))],
}


@pytest.mark.parametrize("name", BAD_ROWS)
def test_a_calibration_that_makes_no_sense_is_none(name: str, choosing: Choosing) -> None:
    choosing(
        """
        vecadd.use_gpu()
        a, b, out = arrays(1024)
        found = vecadd.explain(a, b, out)
        assert found.route == "host" and "vecadd tune routes" in found.why and not found.predicted
        """,
        BAD_ROWS[name],
    )


def test_a_calibration_is_kept_under_the_gpu_its_driver_and_the_hosts_threads(device: int) -> None:
    gpu, threads = _core.device_launch_configs(device)["key"], _core.host_facts()["threads"]
    assert gpu.startswith("GPU-")
    assert _core.routes_key() == f"{gpu}, {threads} threads"


def test_a_corrupt_file_is_none(double: object, device: int, child: Choosing, tmp_path: Path) -> None:
    code = HEAD + textwrap.dedent("""
        from vecadd.tune import routes, store
        path = store.write("routes", _core.routes_key(), ROWS)
        path.write_bytes(path.read_bytes()[:-3])
        vecadd.use_gpu()
        a, b, out = arrays(1024)
        assert "vecadd tune routes" in vecadd.explain(a, b, out).why
        assert (vecadd.add(a, b, out) == 2).all()
    """).replace("ROWS", repr(ROWS))
    child(code, VECADD_CACHE_DIR=str(tmp_path))


def test_the_search_finds_what_the_choice_reads(
    double: object, device: int, child: Choosing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "SIZES", (4096, 16384))
    monkeypatch.setattr(routes, "ZERO_COPY_SIZES", (4096, 16384))
    monkeypatch.setattr(routes, "TURNS", 2)
    monkeypatch.setattr(routes, "SECONDS_A_SIZE", 0.0)
    monkeypatch.setenv("VECADD_CACHE_DIR", str(tmp_path))
    told: list[str] = []
    (found,) = routes.search(told.append)
    assert found.rows is not None
    assert {name for name, _ in found.rows} == {name for name, _ in ROWS}
    assert told
    assert len(found.words) == 1 + len(routes.ROUTES) * len(routes.DTYPES)
    store.write("routes", found.key, found.rows)
    code = HEAD + "vecadd.use_gpu()\nassert set(vecadd.explain(*arrays(16)).predicted) == {'host', 'transfer'}"
    child(code, VECADD_CACHE_DIR=str(tmp_path))


@pytest.mark.parametrize(
    ("ratios", "most"),
    [
        ((0.5, 0.9, 1.0, 1.02, 1.03, 1.1), 128),
        ((0.5, 0.5, 1.03, 0.5, 0.5, 0.5), 32),  # what is ahead again beyond a gap does not count
        ((1.03, 0.5, 0.5, 0.5, 0.5, 0.5), 0),
        ((0.5, 0.5, 0.5, 0.5, 0.5, 0.5), 512),
    ],
)
def test_zero_copys_bound_is_the_last_size_before_it_falls_behind(
    monkeypatch: pytest.MonkeyPatch, ratios: tuple[float, ...], most: int
) -> None:
    sizes = (16, 32, 64, 128, 256, 512)
    ratio = dict(zip(sizes, ratios, strict=True))

    def turns(calls: dict[str, int], again: bool) -> dict[str, float]:
        return {"copies": 1.0, "zero-copy": ratio[calls["copies"]]}

    monkeypatch.setattr(routes, "ZERO_COPY_SIZES", sizes)
    monkeypatch.setattr(routes, "_arrays", lambda memory, dtype, size: (np.empty(size // 4, dtype),) * 3)
    monkeypatch.setattr(routes, "_rung", lambda parts, way: parts[0].nbytes)
    monkeypatch.setattr(routes, "_turns", turns)
    assert routes._zero_copy_most(lambda text: None) == most


@pytest.mark.parametrize("again", [True, False])
def test_a_routes_seconds_are_the_median_of_its_turns(monkeypatch: pytest.MonkeyPatch, again: bool) -> None:
    """Two calls warm each up; where a turn calls twice, the second call is timed."""
    clock, seconds = [0.0], {"host": [9.0, 9.0], "transfer": [8.0, 8.0]}
    for taken, turns in ((seconds["host"], (1, 100, 2, 3, 2)), (seconds["transfer"], (4, 1, 5, 50, 6))):
        for turn in turns:
            taken += [70.0, turn] if again else [turn]

    def call(name: str) -> Callable[[], None]:
        taken = iter(seconds[name])

        def run() -> None:
            clock[0] += next(taken)

        return run

    monkeypatch.setattr(routes, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(routes, "SECONDS_A_SIZE", 0.0)
    assert routes._turns({name: call(name) for name in seconds}, again) == {"host": 2.0, "transfer": 5.0}


def test_the_search_says_from_where_on_each_route_is_the_fastest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "SIZES", (1 * KIB, 2 * KIB, 4 * KIB, 8 * KIB))
    seconds = {"host": [1.0, 3.0, 2.0, 9.0], "transfer": [2.0, 2.0, 3.0, 8.0]}
    assert list(routes._wins(seconds)) == [
        "host from 1 KiB", "transfer from 2 KiB", "host from 4 KiB", "transfer from 8 KiB"
    ]  # fmt: skip


def test_a_route_that_falls_behind_in_between_is_left_there(choosing: Choosing) -> None:
    """Measured ahead from the least size on, which is 16 KiB, and behind at 256 KiB."""
    gap = {
        "ordinary_wide_host": (3.0, 3.0, 1.0, 3.0),
        "ordinary_wide_transfer": (1.0, 1.0, 3.0, 1.0),
    }
    code = """
        vecadd.use_gpu()
        for kib, want in {15: "host", 16: "transfer", 64: "transfer", 256: "host", 1024: "transfer"}.items():
            a, b, out = arrays(kib)
            assert route(a, b, out) == want, (kib, route(a, b, out))
    """
    choosing(code, [(name, gap.get(name, seconds)) for name, seconds in ROWS])


def test_a_choice_is_compared_with_the_next_best_route() -> None:
    predicted = {"host": 4e-3, "transfer": 1e-3, "hybrid": 2e-3}
    assert "hybrid takes 2.00 x as long" in _explain._measured("transfer", "pinned", predicted)
    assert "transfer is not ahead by enough to be sure of (0.25 x)" in _explain._measured("host", "ordinary", predicted)


def test_explain_refuses_what_add_refuses() -> None:
    a = np.ones(10)
    with pytest.raises(ValueError, match="device"):
        vecadd.explain(a, a, device="nonsense")
    with pytest.raises(TypeError, match="stream"):
        vecadd.explain(a, a, stream=0)


def test_explain_says_who_else_adds(device: int) -> None:
    a = np.ones(10)
    assert vecadd.explain(a, [1] * 10).route in ("numpy", "host")
    assert vecadd.explain(a, np.array(1, object)).route == "numpy"
    x = vecadd.to_device(a)
    assert vecadd.explain(x, x).route == "device"
    assert str(vecadd.explain(x, x))


def test_use_gpu_says_why_there_is_none(double: object, child: Choosing) -> None:
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
        vecadd.use_gpu(True, True)  # type: ignore[call-arg]

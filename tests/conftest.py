"""What many test files need: the runtime under test, devices, foreign device memory, child processes, leak checks.

VECADD_TEST_RUNTIME=double puts build/double/_core.abi3.so, linked with our own CUDA runtime, in the place of the real
extension. Without it the real extension is tested: on the GPU where there is one, else what needs a device is skipped.
"""

import gc
import importlib
import os
import resource
import runpy
import signal
import subprocess
import sys
import tempfile
import time
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import hypothesis
import numpy as np
import pytest

TESTS = Path(__file__).resolve().parent
collect_ignore_glob = [] if find_spec("zarr") and find_spec("distributed") else ["stores/*"]
ON_DOUBLE = os.environ.get("VECADD_TEST_RUNTIME") == "double"

# What was tuned on this machine changes how its GPU adds. The name is made up: there is no such folder.
os.environ["VECADD_CACHE_DIR"] = str(Path(tempfile.gettempdir()) / f"vecadd-tests-{os.getpid()}" / "none")

# Tests send SIGINT, which a shell that starts this program in the background has told it, and its children, to ignore.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Tests end programs by signals. Where the system keeps cores, none may land among the sources.
resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))

# For child processes: OpenBLAS's threads, which no test needs, spin while NumPy is imported, 80 of 180 ms of its time.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

if ON_DOUBLE:
    runpy.run_path(str(TESTS / "double" / "preload" / "sitecustomize.py"))

import foreign as foreign_memory  # noqa: E402  what is loaded above must come first

import vecadd  # noqa: E402
from vecadd import _core  # noqa: E402

if not _core.LAB_BUILD:  # the tests of what adds; those that need the laboratory here and there are marked
    collect_ignore_glob += ["lab/*", "project/*"]

# Devices and drivers are shared by a test's examples on purpose.
ALLOWED = [hypothesis.HealthCheck.function_scoped_fixture, hypothesis.HealthCheck.too_slow]
hypothesis.settings.register_profile(
    "default", deadline=None, max_examples=60, derandomize=True, database=None, suppress_health_check=ALLOWED
)
# Under the sanitizers, which slow an example down tenfold: they look for what any example of a path shows.
hypothesis.settings.register_profile("brief", hypothesis.settings.get_profile("default"), max_examples=10)
hypothesis.settings.register_profile("thorough", deadline=None, max_examples=2000, suppress_health_check=ALLOWED)
hypothesis.settings.load_profile(os.environ.get("VECADD_HYPOTHESIS", "default"))


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "laboratory: needs what a build by VECADD_LAB=0 is without")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without the laboratory the tests that are marked so are skipped.

    VECADD_TEST_PARAMETERS: of each test function at most that many parameter sets, the same ones in every run. For the
    sanitizers, which look for what most sets of a path show; 0 or nothing: all of them."""
    for item in items:
        if not _core.LAB_BUILD and item.get_closest_marker("laboratory"):
            item.add_marker(pytest.mark.skip("needs the laboratory"))
    most = int(os.environ.get("VECADD_TEST_PARAMETERS") or 0)
    if not most:
        return
    kept: Counter[str] = Counter()
    left_out = set()
    for item in sorted(items, key=lambda item: zlib.crc32(item.nodeid.encode())):
        function = item.nodeid.partition("[")[0]
        kept[function] += 1
        if kept[function] > most:
            left_out.add(item)
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = [item for item in items if item not in left_out]


def pytest_collection_finish() -> None:
    """What is loaded by now stays: a collection in a test then looks at that test's objects, a hundredth of all."""
    gc.freeze()


def pytest_runtest_logfinish() -> None:
    """In a long run of orders what a test leaves stays too: otherwise each test makes the collections of the next ones
    slower, and a seed takes 1.4 times as long."""
    if "VECADD_TEST_ORDERS" in os.environ:
        gc.collect()
        gc.freeze()


def child_environment(**changes: str | None) -> dict[str, str]:
    """This process's environment for a child that imports the same vecadd; None removes a variable. A child that runs
    pytest does it with pytest's own plugins and options, not with this process's options, nor as one of its workers."""
    path = [str(Path(vecadd.__file__).parents[1]), str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])]
    if ON_DOUBLE:
        path.insert(0, str(TESTS / "double" / "preload"))
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    merged: dict[str, str | None] = {
        **inherited, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": os.pathsep.join(path), **changes
    }  # fmt: skip
    return {name: value for name, value in merged.items() if value is not None}


def run_child(code: str, *, check: bool = True, **changes: str | None) -> subprocess.CompletedProcess[str]:
    """Runs Python code in a process of its own, warnings as errors; `changes` are made to its environment."""
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env=child_environment(**changes),
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert not check or result.returncode == 0, f"exit status {result.returncode}\n{result.stdout}\n{result.stderr}"
    return result


@pytest.fixture(scope="session")
def child() -> Callable[..., subprocess.CompletedProcess[str]]:
    """child(code, check=True, **environment): runs code in a process that has the same vecadd, and gives its output."""
    return run_child


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Path]:
    """script(name, body): an executable shell script of that name, first on PATH."""

    def write(name: str, body: str) -> Path:
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
        return path

    return write


@pytest.fixture(scope="session")
def runtime() -> str | None:
    """ "double", "gpu", or None where there is neither. A child looks, so that this process stays without CUDA."""
    if ON_DOUBLE:
        return "double"
    found = run_child("from vecadd import _core; _core.gpu_facts()", check=False).returncode == 0
    return "gpu" if found else None


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def place(request: pytest.FixtureRequest, runtime: str | None) -> str:
    """Where the PyTorch tensors of a test are."""
    if request.param == "cuda" and (runtime != "gpu" or not pytest.importorskip("torch").cuda.is_available()):
        pytest.skip("needs a GPU and a PyTorch that can use it")
    return str(request.param)


@pytest.fixture
def on_gpu(runtime: str | None) -> Callable[[str], Any]:
    """on_gpu("torch"): that library, for a test of its arrays on a GPU; skips where there is no GPU or no library."""

    def library(name: str) -> Any:
        if runtime != "gpu":
            pytest.skip("needs a GPU")
        return pytest.importorskip(name)

    return library


@pytest.fixture
def double(runtime: str | None) -> Iterator[ModuleType]:
    """The control of the CUDA-runtime double, reset before and after; skips on the real runtime."""
    if runtime != "double":
        pytest.skip("needs the CUDA-runtime double (make test)")
    control = importlib.import_module("double.control")
    control.reset(0)
    yield control
    control.reset(0)


@pytest.fixture(autouse=True)
def no_error_is_left() -> Iterator[None]:
    """On the double: no test leaves a CUDA error in any thread, where the next library would take it for its own. Begun
    before the test's own fixtures, it looks when they have ended."""
    yield
    if ON_DOUBLE:
        assert importlib.import_module("double.control").take_errors() == 0


@pytest.fixture
def silent() -> Iterator[None]:
    """For tests of values: NumPy keeps quiet. Those of warnings are in test_warnings.py."""
    with np.errstate(all="ignore"):
        yield


@pytest.fixture
def values_alone(silent: None) -> Iterator[None]:
    """No warning of NumPy's casts either: device operands raise none of their own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def memory_grown(before: dict[str, int]) -> dict[str, int]:
    """What vecadd has allocated for callers since ``before``. Garbage is collected only where there is some, because
    that takes as long as a test. JAX drops what it was lent in a thread of its own, which has two seconds for it."""
    end = time.monotonic() + (2 if "jax" in sys.modules else 0)
    if _core.memory_counts() != before:
        gc.collect()
    while True:
        grown = {name: now - before[name] for name, now in _core.memory_counts().items() if now > before[name]}
        if not grown or time.monotonic() > end:
            return grown
        time.sleep(0.01)


@pytest.fixture
def device(runtime: str | None, request: pytest.FixtureRequest) -> Iterator[int]:
    """The ordinal of a device to test on, 0; skips where there is none. What the test allocated must be gone after it,
    and the double must have seen nothing that a GPU does not forgive."""
    if runtime is None:
        pytest.skip("needs a GPU or the CUDA-runtime double")
    faults = request.getfixturevalue("double").faults if runtime == "double" else lambda: 0
    before = _core.memory_counts()
    yield 0
    assert memory_grown(before) == {}
    assert faults() == 0


@pytest.fixture
def second_device(device: int) -> int:
    """The ordinal of another device, 1; skips where there is only one."""
    if len(_core.gpu_facts()) < 2:
        pytest.skip("needs two GPUs")
    return 1


@pytest.fixture
def driver(device: int, runtime: str | None) -> Iterator[foreign_memory.Driver]:
    """Another library's way to the device: memory, copies and streams that vecadd did not make. No test leaves its
    thread in another capture mode than CUDA's first one, in which a thread's waits end another's capture."""
    if runtime is None:  # where a test has a parameter named device
        pytest.skip("needs a GPU or the CUDA-runtime double")
    library = foreign_memory.open_driver(runtime == "double")
    library.take_capture_mode()  # an earlier test may have lost the device
    yield library
    mode = library.take_capture_mode()
    library.close()
    assert mode == 0


@pytest.fixture
def foreign(driver: foreign_memory.Driver) -> Callable[..., foreign_memory.ForeignArray]:
    """foreign(x, offset=0, tail=0, device=0, **interface): the NumPy array x in another library's device memory, with
    that many bytes of its allocation before and after it; keywords replace entries of its __cuda_array_interface__."""
    return partial(foreign_memory.ForeignArray, driver)


@pytest.fixture(scope="session")
def of_several_gpus(runtime: str | None) -> foreign_memory.GpuDriver | None:
    """The driver of a machine with several GPUs, else None."""
    return foreign_memory.GpuDriver() if runtime == "gpu" and len(_core.gpu_facts()) > 1 else None


@pytest.fixture(autouse=True)
def first_device_is_current(of_several_gpus: foreign_memory.GpuDriver | None) -> None:
    """JAX leaves the last device current when it starts, in whichever test that is."""
    if of_several_gpus:
        of_several_gpus.make_current(0)

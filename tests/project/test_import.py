"""import vecadd: cheap, quiet, and the same with a GPU, without one and without a driver."""

import os
import subprocess
import sys

from conftest import child_environment

import vecadd

IMPORTED = "import sys, numpy; before = set(sys.modules); import vecadd; print(*sorted(set(sys.modules) - before))"


def run_on_the_real_runtime(code):
    """Runs code with the extension that is installed, whatever this test run has in its place."""
    environment = child_environment(VECADD_TEST_RUNTIME=None)
    path = [entry for entry in environment["PYTHONPATH"].split(os.pathsep) if "preload" not in entry]
    environment["PYTHONPATH"] = os.pathsep.join(path)
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code], env=environment, capture_output=True, text=True, timeout=120
    )


def test_import_brings_in_nothing_but_vecadd_and_numpy(child):
    """Of vecadd's own modules too: commands, benchmarks and other libraries' adapters wait until they are used."""
    new = child(IMPORTED).stdout.split()
    assert [name for name in new if name.split(".")[0] != "vecadd"] == []
    assert len(new) <= 4, new


def test_import_says_nothing(child):
    result = child("import vecadd")
    assert (result.stdout, result.stderr) == ("", "")


def test_import_makes_no_cuda_call(double, child):
    child(
        "import vecadd\n"
        "from double import control\n"
        "from cuda_failures import CUDA_CALLS\n"
        "assert len(CUDA_CALLS) > 10\n"
        "assert [call for call in CUDA_CALLS if control.calls(call)] == []\n"
    )


def test_real_extension_imports_and_adds_without_a_look_at_the_driver():
    result = run_on_the_real_runtime(
        "import vecadd, numpy as np\n"
        "a = np.arange(2**20)\n"
        "assert (vecadd.add(a, a) == 2 * a).all()\n"
        "maps = open('/proc/self/maps').read()\n"
        "assert 'libcuda' not in maps and '/dev/nvidia' not in maps\n"
        "print(vecadd._core.__file__)\n"
    )
    assert result.returncode == 0, result.stderr
    assert "double" not in result.stdout


def test_real_extension_says_why_there_is_no_gpu_or_uses_it():
    result = run_on_the_real_runtime(
        "import vecadd, numpy as np\n"
        "try:\n"
        "    right = (vecadd.to_device(np.arange(10)).numpy() == np.arange(10)).all()\n"
        "except RuntimeError as error:\n"
        "    right = any(word in str(error) for word in ('driver', 'GPU', 'CUDA'))\n"
        "assert right\n"
    )
    assert result.returncode == 0, result.stderr


def test_public_names_are_there_and_documented():
    for name in ("add", "to_device", "empty_pinned", "info", "DeviceArray", "DeviceLostError"):
        assert name in vecadd.__all__
        assert getattr(vecadd, name).__doc__

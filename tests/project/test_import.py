"""import vecadd: cheap, quiet, and the same with a GPU, without one and without a driver."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
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
    assert len(new) <= 5, new


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


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'vecadd' has no attribute 'sum_of'"):
        _ = vecadd.sum_of


# pip's finder of editable packages would find the compiled part of this tree.
ALONE = "import sys; sys.meta_path = [x for x in sys.meta_path if 'editable' not in getattr(x, '__module__', '')]"


def failed_import(folder):
    """The last line of the traceback of `import vecadd`, which finds the package in this folder first."""
    result = subprocess.run(
        [sys.executable, "-c", f"{ALONE}; import vecadd"],
        cwd=folder,
        env=child_environment(PYTHONPATH=str(folder), VECADD_TEST_RUNTIME=None),
        capture_output=True,
        text=True,
        timeout=120,
    )
    return result.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("tree", "says"),
    [
        (True, ["source tree and was never built", "run Python from another folder", "pip install -e {folder}"]),
        (False, ["this installation is not whole", "pip install --force-reinstall --no-deps vecadd"]),
    ],
    ids=["in the source tree", "elsewhere"],
)
def test_import_without_the_compiled_part_says_what_to_do(tree, says, tmp_path):
    """In a checkout the folder vecadd comes before the one that `pip install .` made."""
    sources = shutil.ignore_patterns("*.so", "__pycache__")
    shutil.copytree(Path(vecadd.__file__).parent, tmp_path / "vecadd", ignore=sources)
    if tree:
        (tmp_path / "csrc").mkdir()
    last = failed_import(tmp_path)
    assert last.startswith(f"ImportError: vecadd's compiled part, vecadd._core, is not in {tmp_path}/vecadd")
    assert [text for text in says if text.format(folder=tmp_path) not in last] == []


def test_a_module_that_the_compiled_part_misses_keeps_its_own_message(tmp_path):
    package = tmp_path / "vecadd"
    package.mkdir()
    shutil.copy(vecadd.__file__, package)
    (package / "_core.py").write_text("import no_such_module")
    assert failed_import(tmp_path) == "ModuleNotFoundError: No module named 'no_such_module'"


@pytest.mark.parametrize("module", [vecadd, vecadd.ladder, vecadd.model], ids=lambda module: module.__name__)
def test_dir_lists_public_names_alone(module):
    assert sorted(name for name in dir(module) if name != "__version__") == sorted(module.__all__)
    assert [name for name in dir(module) if not hasattr(module, name)] == []

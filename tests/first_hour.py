"""What a stranger does in the first hour with an installed vecadd, in the environment whose Python runs this.

    python tests/first_hour.py [EXTRA]

Without an extra it needs NumPy and vecadd alone, and a folder to write in: the current one. `.ci/extras` runs it in
fresh environments, of a wheel and of a source distribution; test_first_hour.py in one without anything but NumPy. Each
step is one that the documents print, and says its name; the first that fails ends it with exit status 1.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

import vecadd

TREE = Path(__file__).resolve().parents[1]  # for the documents alone: the package is the installed one
COMMANDS = ("info", "add", "bench", "profile", "check", "notebooks", "tune")
NOTEBOOKS = Path("my notebooks")


def run(command: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    """Runs a command as it is printed, `vecadd` by the Python that runs this, and looks at its exit status."""
    words = shlex.split(command, comments=True)
    if words[0] == "vecadd":
        words[:1] = [sys.executable, "-m", "vecadd"]
    result = subprocess.run(words, capture_output=True, text=True, timeout=600)
    assert result.returncode == status, f"{command}: {result.returncode}\n{result.stdout}\n{result.stderr}"
    return result


def the_package_is_installed_and_not_the_source_tree() -> None:
    assert not Path(vecadd.__file__).is_relative_to(TREE), vecadd.__file__
    assert vecadd.__version__ == run("vecadd --version").stdout.split()[1] != "unknown"


def readmes_first_block_adds() -> None:
    block = re.findall(r"^```python\n(.*?)^```$", (TREE / "README.md").read_text(), re.MULTILINE | re.DOTALL)[0]
    names: dict[str, np.ndarray] = {}
    exec(block, names)
    np.testing.assert_array_equal(names["c"], names["a"] + names["b"])


def every_command_explains_itself() -> None:
    listed = run("vecadd --help").stdout
    assert [command for command in COMMANDS if command not in listed] == []
    for command in COMMANDS:
        assert run(f"vecadd {command} --help").stdout.startswith(f"usage: vecadd {command}")


def info_says_what_is_missing() -> None:
    assert "SIMD" in run("vecadd info").stdout
    found = json.loads(run("vecadd info --json").stdout)
    assert found["gpus"] or found["gpu_reason"]


def a_gpu_adds_or_the_error_says_why_not() -> None:
    try:
        found = str(vecadd.to_device(np.arange(10)).numpy())
    except RuntimeError as error:
        found = str(error)
    assert found == "[0 1 2 3 4 5 6 7 8 9]" or any(word in found for word in ("driver", "GPU", "CUDA")), found


def files_are_added() -> None:
    np.save("A.npy", np.ones((1000, 10)))
    np.save("B.npy", np.arange(10))
    assert re.fullmatch(
        r"vecadd add: .* GB/s \(.*synced to the disk\)\n", run("vecadd add A.npy B.npy -o C.npy").stderr
    )
    vecadd.add_files("A.npy", "B.npy", "D.npy")
    for name in ("C.npy", "D.npy"):
        np.testing.assert_array_equal(np.load(name), np.ones((1000, 10)) + np.arange(10))


def notebooks_are_unpacked_and_a_changed_one_is_kept() -> None:
    shutil.rmtree(NOTEBOOKS, ignore_errors=True)
    command = f"vecadd notebooks '{NOTEBOOKS}'"
    assert run(command).stdout.splitlines()[-1].strip() == f"jupyter lab '{NOTEBOOKS}'"
    (NOTEBOOKS / "solutions.ipynb").write_text("mine")
    assert "--force" in run(command, status=1).stderr
    run(f"{command} --force")


def what_is_recorded_is_in_the_package() -> None:
    from vecadd import laboratory

    os.environ["VECADD_RECORDED"] = "1"
    assert laboratory.measure("ladder").fastest("float4") is not None


def every_notebook_runs_from_top_to_bottom() -> None:
    run(f"vecadd notebooks '{NOTEBOOKS}' --force")
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    for notebook in sorted(NOTEBOOKS.glob("*.ipynb")):
        subprocess.run(["jupyter", "execute", str(notebook), "--timeout=300"], env=environment, check=True)
    subprocess.run(["jupyter", "lab", "--version"], env=environment, check=True)


def zarr_arrays_are_added() -> None:
    import zarr

    for name in ("A", "B"):
        zarr.create_array(f"{name}.zarr", data=np.ones((1000, 10)), chunks=(100, 10), overwrite=True)
    assert "GB/s" in run("vecadd add A.zarr B.zarr -o C.zarr").stderr
    np.testing.assert_array_equal(zarr.open_array("C.zarr")[:], np.full((1000, 10), 2))


STEPS: dict[str, tuple[Callable[[], None], ...]] = {
    "nothing": (
        the_package_is_installed_and_not_the_source_tree,
        readmes_first_block_adds,
        every_command_explains_itself,
        info_says_what_is_missing,
        a_gpu_adds_or_the_error_says_why_not,
        files_are_added,
        notebooks_are_unpacked_and_a_changed_one_is_kept,
        what_is_recorded_is_in_the_package,
    ),
    "notebook": (every_notebook_runs_from_top_to_bottom,),
    "fleet": (zarr_arrays_are_added,),
}


def main() -> None:
    """Takes the steps of the extra that is named, or those of a bare installation."""
    for step in STEPS[sys.argv[1] if sys.argv[1:] else "nothing"]:
        print(step.__name__.replace("_", " "), flush=True)
        step()


if __name__ == "__main__":
    main()

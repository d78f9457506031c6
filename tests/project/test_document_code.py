"""The code that the documents print: each page's blocks run, one after the other, as they are printed.

In a child for each page, on the double or a GPU, in an empty folder. Where a page uses a library that is not there, a
stand-in of the same names takes its place.
"""

import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from conftest import child_environment

from vecadd import code

pytestmark = pytest.mark.no_native

ROOT = Path(__file__).resolve().parents[2]
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: str, kind: str) -> list[str]:
    return [body for found, body in FENCED.findall((ROOT / page).read_text()) if found == kind]


PAGES = sorted(
    str(path.relative_to(ROOT))
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"))
    if blocks(str(path.relative_to(ROOT)), "python")
)
LIBRARIES = ("pandas", "xarray", "dask", "zarr")  # that the extra "test" brings

# What the documents ask of PyTorch, CuPy and JAX, made of vecadd's own arrays.
LENT = """
import contextlib, importlib.util, sys, types
import numpy as np, vecadd
def lend(name, **attributes):
    if importlib.util.find_spec(name.partition(".")[0]) is None or "double" in vecadd._core.__file__:
        sys.modules[name] = module = types.ModuleType(name)
        vars(module).update(attributes)
class Stream(contextlib.nullcontext):
    cuda_stream = 0
on_device = lambda make: lambda *a: vecadd.to_device(make(*a))
cuda = types.SimpleNamespace(Stream=Stream)
"""
STAND_INS = {
    "torch": """
lend("torch", cuda=cuda,
    rand=lambda *shape, device: [vecadd.to_device(x) for x in np.random.rand(*shape).astype(np.float32)])
""",
    "cupy": """
lend("cupy", cuda=cuda, ones=on_device(np.ones), arange=on_device(np.arange))
""",
    "jax": """
lend("jax.numpy", ones=on_device(np.ones), arange=on_device(np.arange))
lend("jax")
""",
}
PREAMBLE = "import numpy as np, vecadd\n"
THEMSELVES = ("README.md", "docs/pypi.md", "docs/recipes.md")  # import both
# What is true when README has run.
SUMS = """
assert (z.numpy() == a + b).all()
assert [total.numpy().tolist() for total in zs] == [(a + b).tolist(), (a + b)[:100].tolist()]
"""


@pytest.mark.parametrize("page", PAGES)
def test_every_block_of_python_runs_as_printed(
    page: str, child: Callable[..., subprocess.CompletedProcess[str]], runtime: str | None, tmp_path: Path
) -> None:
    if runtime is None:
        pytest.skip("needs a GPU or the CUDA-runtime double")
    printed = blocks(page, "python")
    for library in LIBRARIES:
        if f"import {library}" in "".join(printed):
            pytest.importorskip(library)
    if ".sass(" in "".join(printed) and code.find_disassembler() is None:
        pytest.skip(code.MISSING)
    if page == "README.md":
        printed.append(SUMS)
    imports = "" if page in THEMSELVES else PREAMBLE
    stand_ins = "".join(text for name, text in STAND_INS.items() if f"import {name}" in "".join(printed))
    begin = f"import os; os.chdir({str(tmp_path)!r})\n{LENT}{stand_ins}\ndel np, vecadd\n{imports}"
    child(begin + "\n".join(printed), VECADD_RECORDED="1")  # the laboratory's sweeps take minutes


def test_the_commands_that_readme_prints_of_files_and_the_machine_work(tmp_path: Path) -> None:
    """But for those that measure the machine or build the project, which take minutes: .ci/run and .ci/extras; for the
    one that needs a GPU and a compiler: tests/lab/test_judge_gpu.py; for the one whose status a slow machine decides:
    tests/lab/test_check.py; and for those of several result files: test_compare.py, test_fleet.py."""
    printed = [line for body in blocks("README.md", "") for line in body.splitlines() if line.startswith("vecadd ")]
    elsewhere = {"vecadd bench", "vecadd check", "vecadd compare", "vecadd fleet", "vecadd judge", "vecadd tune"}
    commands = [shlex.split(line, comments=True) for line in printed]
    assert {"vecadd add", "vecadd info", "vecadd notebooks", "vecadd run"} | elsewhere == {
        " ".join(command[:2]) for command in commands
    }
    a, b = np.arange(1000.0), np.ones(1000)
    np.save(tmp_path / "A.npy", a)
    np.save(tmp_path / "B.npy", b)
    (tmp_path / "script.py").write_text("import numpy as np\nnp.ones(10) + 1\n")
    for command in commands:
        if " ".join(command[:2]) not in elsewhere:
            run = [sys.executable, "-m", *command]
            subprocess.run(
                run, cwd=tmp_path, env=child_environment(), check=True, timeout=120, stdout=subprocess.DEVNULL
            )
    np.testing.assert_array_equal(np.load(tmp_path / "C.npy"), a + b)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "A.npy", "B.npy", "C.npy", "my-notebooks", "script.py"
    ]  # fmt: skip

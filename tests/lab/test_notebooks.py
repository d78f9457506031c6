"""The notebooks: they run from top to bottom where there is no GPU, contain no output, and mention only what exists.

They share a kernel, which takes two seconds to start and to import what all import; with VECADD_TEST_KERNELS=each every
one has its own, as a reader's has.
"""

import ast
import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from conftest import child_environment

from vecadd import _core

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("matplotlib")

from jupyter_client import KernelManager  # noqa: E402  a machine with a GPU may be without it
from nbformat import NotebookNode  # noqa: E402
from nbformat.v4 import new_code_cell  # noqa: E402

pytestmark = pytest.mark.no_native

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
LESSONS = [path for path in NOTEBOOKS if path.stem != "solutions"]
LIVE = ("01_kernels_and_roofline", "05_from_one_thread_to_streams")  # on a GPU: each takes half a minute there

SHOWING = ("fastest", "show", "gain", "only", "predict")

every = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
every_lesson = pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)


def read(path: Path) -> NotebookNode:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    return notebook


def cells(path: Path, kind: str) -> list[NotebookNode]:
    return [cell for cell in read(path).cells if cell.cell_type == kind]


@contextlib.contextmanager
def started_kernel(recorded: str) -> Iterator[KernelManager]:
    """A kernel with the tree's vecadd and the warnings that a reader has."""
    kernel = KernelManager(kernel_name="python3")
    environment = child_environment(VECADD_TEST_RUNTIME=None, VECADD_RECORDED=recorded)
    kernel.start_kernel(env=environment, cwd=str(FOLDER))
    try:
        yield kernel
    finally:
        kernel.shutdown_kernel(now=True)


def kernels_scope(fixture_name: str, config: pytest.Config) -> Literal["function", "module"]:
    del fixture_name, config
    return "function" if os.environ.get("VECADD_TEST_KERNELS") == "each" else "module"


@pytest.fixture(scope=kernels_scope)
def kernel() -> Iterator[KernelManager]:
    with started_kernel(recorded="1") as kernel:
        yield kernel


def executed(path: Path, kernel: KernelManager, before: str = "") -> NotebookNode:
    """The notebook after the kernel has run it, without a name that an earlier one has left there."""
    notebook = read(path)
    notebook.cells.insert(0, new_code_cell(f"%reset -f\n{before}"))
    client = nbclient.NotebookClient(notebook, km=kernel, timeout=120)
    try:
        client.execute()
    finally:
        client.kc.stop_channels()
    del notebook.cells[0]
    return notebook


def printed(notebook: NotebookNode) -> str:
    """All that it printed; there must be nothing on standard error."""
    streams = [
        output for cell in notebook.cells for output in cell.get("outputs", []) if output.output_type == "stream"
    ]
    assert {output.name for output in streams} <= {"stdout"}, streams
    return "".join(output.text for output in streams)


def pictures(notebook: NotebookNode) -> Iterator[tuple[NotebookNode, str]]:
    """The cells that show a sweep's own picture, and which sweep that is."""
    sweeps = {}
    for cell in notebook.cells:
        sweeps.update(re.findall(r'^(\w+) = laboratory\.measure\(\s*"(\w+)"', cell.source, re.M))
        if found := re.search(r"^(\w+)\.picture\(\)$", cell.source, re.M):
            yield cell, sweeps[found[1]]


def test_there_is_one_for_each_founding_document_between_one_for_beginners_and_one_for_matrices() -> None:
    assert [path.name[:2] for path in LESSONS] == ["00", "01", "02", "03", "04", "05", "06"]
    said = [re.search(r"[Ff]ounding document (\d\d\d)", cells(path, "markdown")[0].source) for path in LESSONS]
    assert [found and found[1] for found in said] == [None, "000", "001", "002", "003", "004", "004"]


@every
def test_no_output_is_committed_and_its_own_pictures_have_alternative_texts(path: Path) -> None:
    for cell in cells(path, "code"):
        assert (cell.outputs, cell.execution_count) == ([], None)
    assert read(path).metadata.kernelspec.name == "python3"
    assert set(read(path).metadata) == {"kernelspec", "language_info"}
    for cell in cells(path, "markdown"):
        assert re.findall(r"!\[\s*\]|<img(?![^>]* alt=\"[^\"]+\")", cell.source) == []


@every_lesson
def test_it_is_short_shows_code_scores_the_readers_guesses_and_ends_in_exercises(path: Path) -> None:
    assert 10 <= len(read(path).cells) <= 26
    assert "## Exercises\n" in read(path).cells[-1].source
    source = "\n".join(cell.source for cell in cells(path, "code"))
    assert re.search(r"^laboratory\.code\(", source, re.MULTILINE)
    asked = re.findall(r"^(\w+) = laboratory\.guess\((.*?)\)$", source, re.MULTILINE | re.DOTALL)
    assert len(asked) >= 2
    assert all(", None" in words for _, words in asked), "a reader's number is none of ours"
    for name, _ in asked:
        assert re.search(rf"\b{name}\.score\(", source) or re.search(rf", {name}\)", source), name


def test_each_exercise_has_its_solution() -> None:
    asked = [
        f"{path.name[1]}.{number}"
        for path in LESSONS
        for number in re.findall(r"^(\d+)\. ", cells(path, "markdown")[-1].source, re.MULTILINE)
    ]
    solved = [
        number
        for cell in cells(FOLDER / "solutions.ipynb", "markdown")
        for number in re.findall(r"^\*\*(\d\.\d)\*\*", cell.source, re.MULTILINE)
    ]
    assert len(asked) > 20
    assert solved == asked


@every
def test_the_rungs_whose_rows_it_shows_exist(path: Path) -> None:
    """A name of `measure` or `code` that there is not is an error where the notebook runs."""
    known = {rung["name"] for rung in _core.rungs()} | {"numpy", "add", "cublas", "cold_start"}
    for cell in cells(path, "code"):
        for node in ast.walk(ast.parse(cell.source)):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in SHOWING:
                strings = {argument.value for argument in node.args if isinstance(argument, ast.Constant)}
                assert {text for text in strings if isinstance(text, str)} <= known | {"float32", "float16", "bfloat16"}


@every
def test_it_runs_without_a_gpu(path: Path, kernel: KernelManager) -> None:
    notebook = executed(path, kernel)
    text = printed(notebook)
    assert "measured on" not in text
    assert all(
        "VECADD_RECORDED=1 asks for what is recorded" in line for line in text.splitlines() if "recorded on" in line
    )
    for cell in notebook.cells:
        if cell.cell_type == "code" and re.match(r"laboratory\.(diagram|code)\(", cell.source):
            (output,) = cell.outputs
            if output.output_type == "stream":  # what no kernels or no disassembler leave
                assert "a build without CUDA" in output.text or "cuobjdump" in output.text
            else:
                assert len(output.data["text/plain"]) > 100
                assert {"image/png", "text/html"} & output.data.keys()
    for cell, sweep in pictures(notebook):
        drawn = [output for output in cell.outputs if "image/png" in output.get("data", {})]
        assert len(drawn) == (f"{sweep}: recorded on" in text), cell.source
        for output in drawn:
            assert len(output.metadata["image/png"]["alt"]) > 50
            assert output.data["text/plain"] == output.metadata["image/png"]["alt"]


WITHOUT_CUDA = """
from vecadd import _core
_core.CUDA_BUILD = False
_core.rungs = lambda known=[rung for rung in _core.rungs() if rung["kind"] == "host"]: known

from vecadd.laboratory import Measured
Measured.picture = lambda self, name=None: None  # three seconds
"""


def test_it_runs_in_a_build_without_cuda() -> None:
    """Simulated by a core that knows the host's rungs alone, for the one notebook that asks the model about rungs;
    .ci/extras has such a build, and runs all."""
    with started_kernel(recorded="1") as kernel:
        text = printed(executed(LESSONS[1], kernel, WITHOUT_CUDA))
    assert "restrict: a build without CUDA has no kernels to show\n" in text
    assert re.search(
        r"^float4: measured \S+ us; nothing is expected of it by a build without CUDA$", text, re.MULTILINE
    )


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize("name", LIVE)
def test_it_measures_on_a_gpu(name: str, runtime: str | None) -> None:
    if runtime != "gpu":
        pytest.skip("needs a GPU")
    with started_kernel(recorded="0") as kernel:
        notebook = executed(FOLDER / f"{name}.ipynb", kernel)
    assert "measured on" in printed(notebook)
    assert "recorded" not in printed(notebook)

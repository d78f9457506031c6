"""What an installed package carries for the laboratory: the archive, and the command that unpacks them."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from vecadd import _carried, cli
from vecadd.figures import read_fields, read_run

pytestmark = pytest.mark.no_native


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """site-packages with nothing but the archive."""
    (tmp_path / "vecadd").mkdir()
    _carried.write_archive(tmp_path / _carried.ARCHIVE)
    monkeypatch.setattr(_carried, "ROOT", tmp_path)
    return tmp_path


def test_an_installed_package_has_the_notebooks_and_every_sweep_of_the_source_tree(
    request: pytest.FixtureRequest,
) -> None:
    def content() -> tuple[dict[str, bytes], list[Any]]:
        runs = [read_run(file) for file in _carried.results() if not file.name.startswith("peer-")]
        return {file.name: file.read_bytes() for file in _carried.notebooks()}, [
            (run.meta, run.figures) for run in runs
        ]

    notebooks, swept = in_the_tree = content()
    assert {"00_what_a_gpu_is.ipynb", "solutions.ipynb"} < notebooks.keys()
    assert len(swept) > 5
    request.getfixturevalue("installed")
    assert content() == in_the_tree


def test_the_recorded_gpu_is_one_whichever_was_recorded_last() -> None:
    """The notebooks' text is of an H200, and a sweep's newest file is shown."""
    metas = (read_fields(file)["meta"] for file in _carried.results())
    assert {meta["gpu"][0]["name"] for meta in metas if meta["gpu"]} == {"NVIDIA H200"}


def test_a_folder_of_results_that_is_named_is_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for machine in ("h200", *_carried.OTHERS):
        (tmp_path / machine).mkdir()
        for name in ("b.json", "a.json", "notes.txt"):
            (tmp_path / machine / name).touch()
    monkeypatch.setenv("VECADD_RESULTS", str(tmp_path))
    assert [file.relative_to(tmp_path).as_posix() for file in _carried.results()] == [  # type: ignore[attr-defined]
        "h100/a.json", "h100/b.json", "h200/a.json", "h200/b.json"
    ]  # fmt: skip


def test_the_archive_is_small_and_the_same_from_the_same_files(tmp_path: Path) -> None:
    for name in ("notebooks", "benchmarks/results", "csrc/lab", "cuda"):
        shutil.copytree(_carried.ROOT / name, tmp_path / name)  # with other times
    _carried.write_archive(tmp_path / "one.zip")
    _carried.write_archive(tmp_path / "two.zip", tmp_path)
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()
    assert (tmp_path / "one.zip").stat().st_size < 600_000


def test_an_installation_that_is_not_whole_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_carried, "ROOT", tmp_path)
    for ask in (_carried.notebooks, _carried.results, _carried.sources):
        with pytest.raises(FileNotFoundError, match="not whole; pip install --force-reinstall"):
            ask()


def test_notebooks_are_unpacked_and_the_last_line_opens_them(
    installed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "a place" / "of mine"
    assert cli.main(["notebooks", str(folder)]) == 0
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        file.name: file.read_bytes() for file in _carried.notebooks()
    }
    *_, last = capsys.readouterr().out.splitlines()
    assert last.strip() == f"jupyter lab '{folder}'"


@pytest.mark.parametrize("options", [[], ["--force"]], ids=str)
def test_a_pipe_in_a_notebooks_place_is_not_waited_for(
    options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = next(file.name for file in _carried.notebooks())
    os.mkfifo(tmp_path / name)
    assert cli.main(["notebooks", str(tmp_path), *options]) == 1
    said = f"vecadd notebooks: {tmp_path} has {name}, which no notebook can replace: name another folder\n"
    assert capsys.readouterr().err == said
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_folder_whose_name_is_no_text_gets_every_notebook(tmp_path: Path, child: Any) -> None:
    folder = os.fsencode(tmp_path) + b"/\xff"
    code = f"import os\nfrom vecadd import cli\nprint(cli.main(['notebooks', os.fsdecode({folder!r})]))\n"
    done = child(code, PYTHONIOENCODING="utf-8:strict")
    assert done.stdout.endswith(rf"jupyter lab '{tmp_path}/\udcff'" + "\n0\n")
    assert len(list(Path(os.fsdecode(folder)).iterdir())) == len(list(_carried.notebooks()))


def test_a_full_disk_is_named_with_the_notebook_and_a_later_call_goes_on(tmp_path: Path, child: Any) -> None:
    code = (
        "import resource\n"
        "from vecadd import cli\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, resource.RLIM_INFINITY))\n"
        "print(cli.main(['notebooks', {folder!r}]))\n"
    )
    sizes = {file.name: len(file.read_bytes()) for file in _carried.notebooks()}
    largest = max(sizes, key=lambda name: sizes[name])
    done = child(code.format(size=sizes[largest] - 1, folder=str(tmp_path)))
    assert done.stdout.endswith("\n1\n")
    assert done.stderr == f"vecadd notebooks: {tmp_path / largest}: File too large\n"
    written = {path.name: len(path.read_bytes()) for path in tmp_path.iterdir()}
    assert written == {name: size for name, size in sizes.items() if name < largest}
    assert cli.main(["notebooks", str(tmp_path)]) == 0
    assert {path.name: len(path.read_bytes()) for path in tmp_path.iterdir()} == sizes


def test_notebooks_that_are_there_are_overwritten_only_by_force(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cli.main(["notebooks", str(tmp_path)])
    (tmp_path / "02_precision.ipynb").write_text("mine")
    (tmp_path / "01_kernels_and_roofline.ipynb").unlink()
    assert cli.main(["notebooks", str(tmp_path)]) == 1
    error = capsys.readouterr().err
    assert error == (
        f"vecadd notebooks: {tmp_path} has 02_precision.ipynb: name another folder, or overwrite them with --force\n"
    )
    assert (tmp_path / "02_precision.ipynb").read_text() == "mine"
    assert not (tmp_path / "01_kernels_and_roofline.ipynb").exists()
    assert cli.main(["notebooks", str(tmp_path), "--force"]) == 0
    assert (tmp_path / "02_precision.ipynb").read_text() != "mine"

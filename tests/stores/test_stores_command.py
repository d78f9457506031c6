"""`vecadd add` of Zarr arrays: what it takes, what it says, and its exit status."""

import re
import shlex
import sys
from pathlib import Path

import numpy as np
import pytest
import zarr
from zarr_arrays import fill_folder, names, read

from vecadd import _command, _zarr, cli

pytestmark = pytest.mark.no_native


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    fill_folder(tmp_path)
    np.save(tmp_path / "a.npy", np.arange(3))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(words: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """The exit status, and what was said on stderr."""
    try:
        status = cli.main(shlex.split(words))
    except SystemExit as end:  # of argparse
        status = int(str(end.code))
    said = capsys.readouterr()
    assert said.out == ""
    return status, said.err


def test_the_options_say_how_the_sum_is_stored(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, said = run("add a.zarr b.zarr -o sum --chunks 2,3 --shards 4,6 --compressor none", capsys)
    assert status == 0
    moved = r"vecadd add: 3.6 kB of elements in \S+ \w+, \S+ GB/s "
    assert re.fullmatch(moved + r"\(a.zarr and b.zarr read, sum written and synced to the disk\)\n", said)
    total = zarr.open_array("sum")
    assert (total.chunks, total.shards, total.compressors) == ((2, 3), (4, 6), ())
    np.testing.assert_array_equal(read("sum"), read("a.zarr") + read("b.zarr"))


def test_only_of_a_local_sum_is_said_whether_it_is_on_the_disk(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for out, how in ((f"file://{folder}/d.zarr", "and synced to the disk"), ("memory://said", "to its store")):
        status, said = run(f"add a.zarr b.zarr -o {out}", capsys)
        assert status == 0
        assert said.endswith(f"{out} written {how})\n")


def test_a_terminal_is_told_how_much_is_done(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_zarr, "ENOUGH", 1)
    monkeypatch.setattr(_command, "_is_terminal", lambda file: True)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")
    status, said = run("add a.zarr b.zarr -o c.zarr --chunks 10,15", capsys)
    assert status == 0
    assert re.findall(r"a.zarr \+ b.zarr: (\d+ %)", said) == ["50 %", "100 %"]


REFUSED = {
    "add a.zarr a.npy -o c.zarr": "by their names a.zarr a Zarr array, a.npy a file, c.zarr a Zarr array",
    "add a.npy a.npy -o c.zarr": "all three have to be .npy files, or all three Zarr arrays",
    "add a.zarr b.zarr -o c.npy": "by their names a.zarr a Zarr array, b.zarr a Zarr array, c.npy a file",
    "add a.npy a.npy -o c.npy --chunks 3 --compressor none": "--chunks and --compressor: for Zarr arrays alone",
    "add a.zarr b.zarr -o c.zarr --chunks 3x3": "'3x3' is not a shape; write one extent for each axis: 1000,1000",
    "add a.zarr b.zarr -o c.zarr --chunks 5": "chunks of (5,) for a sum of 2 axes",
    "add a.zarr b.zarr -o c.zarr --shards 0,7": "shards of (0, 7) for a sum of 2 axes",
    "add a.zarr b.zarr -o c.zarr --resume": "no option is called '--resume'",
    "add nosuch://a/b b.zarr -o c.zarr": "nosuch:// needs a package that fsspec reads it with",
}
REFUSED |= {
    words.format(name): f"vecadd add: {name} is not the URL of an array; write PROTOCOL://PATH\n"
    for name in (
        "s3://",
        "memory:///",
        "://",
        "://x",
        "file://",
        "two words://x",
        "simplecache::s3://",
        "c://x",
        "file:///",
    )
    for words in ("add a.zarr b.zarr -o '{}'", "add '{}' b.zarr -o c.zarr", "add a.zarr '{}' -o c.zarr")
}


@pytest.mark.parametrize(("words", "says"), REFUSED.items())
def test_what_cannot_be_asked_is_status_2(
    words: str, says: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, said = run(words, capsys)
    assert status == 2
    assert says in said
    assert names(folder) == ["a.npy", "a.zarr", "b.zarr", "c.zarr"]


def test_an_error_is_one_line_and_status_1(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("add a.zarr nowhere.zarr -o c.zarr", capsys) == (
        1,
        f"vecadd add: {folder}/nowhere.zarr: No such file or directory\n",
    )
    status, said = run("add a.zarr c.zarr -o d.zarr", capsys)
    assert (status, said.count("\n")) == (1, 1)


def test_without_zarr_the_extra_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(_command.importlib.util, "find_spec", lambda name: None)
    status, said = run("add a.zarr b.zarr -o c.zarr", capsys)
    assert (status, said) == (
        2,
        "vecadd add: an addition of Zarr arrays needs zarr and dask: pip install 'vecadd[fleet]'\n",
    )


@pytest.mark.usefixtures("folder")
def test_a_dask_that_cannot_be_imported_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "dask.callbacks", None)
    status, said = run("add a.zarr b.zarr -o c.zarr", capsys)
    assert (status, said.count("\n"), "dask.callbacks" in said) == (2, 1, True)

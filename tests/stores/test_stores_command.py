"""`vecadd add` of Zarr arrays: what it takes, what it says, and its exit status."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import zarr
from conftest import child_environment
from zarr_arrays import fill_folder, names, read

from vecadd import _extras, cli

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
    command = "add a.zarr b.zarr -o sum.zip --chunks 2,3 --shards 4,6 --compressor none --memory 1.5MiB --resume"
    status, said = run(f"{command} --scheduler threads", capsys)
    assert status == 0
    moved = r"vecadd add: 3.6 kB of elements in \S+ \w+, \S+ GB/s "
    assert re.fullmatch(moved + r"\(a.zarr and b.zarr read, sum.zip written and synced to the disk\)\n", said)
    total = zarr.open_array(zarr.storage.ZipStore("sum.zip", mode="r"))
    assert (total.chunks, total.shards, total.compressors) == ((2, 3), (4, 6), ())
    np.testing.assert_array_equal(read("sum.zip"), read("a.zarr") + read("b.zarr"))


def test_only_a_store_without_a_rename_is_said_to_be_written_in_place(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for out, how in ((f"file://{folder}/d.zarr", "and synced to the disk"), ("memory://in-place", "in place")):
        status, said = run(f"add a.zarr b.zarr -o {out}", capsys)
        assert status == 0
        assert said.endswith(f"{out} written {how})\n")


REFUSED = {
    "add a.zarr a.npy -o c.zarr": "by their names a.zarr a Zarr array, a.npy a file, c.zarr a Zarr array",
    "add a.npy a.npy -o c.zarr": "all three have to be .npy files, or all three Zarr arrays",
    "add a.zarr b.zarr -o c.npy": "by their names a.zarr a Zarr array, b.zarr a Zarr array, c.npy a file",
    "add a.npy a.npy -o c.npy --chunks 3 --resume": "--chunks and --resume: for Zarr arrays alone, and a.npy is a file",
    "add a.zarr b.zarr -o c.zarr --chunks 3x3": "'3x3' is no shape; write one extent for each axis: 1000,1000",
    "add a.zarr b.zarr -o c.zarr --memory lots": "'lots' is no size; write 500MB or 2GiB",
    "add a.zarr b.zarr -o c.zarr --memory 9e9GB": "'9e9GB' is no size; write 500MB or 2GiB",
    f"add a.zarr b.zarr -o c.zarr --memory {'9' * 400}": "9' is no size; write 500MB or 2GiB",
    "add a.zarr b.zarr -o c.zarr --memory 100B": "100 bytes of memory a thread are too few",
    "add a.zarr b.zarr -o c.zarr --chunks 5": "chunks of (5,) for a sum of 2 axes",
    "add a.zarr b.zarr -o c.zarr --shards 0,7": "shards of (0, 7) for a sum of 2 axes",
    "add a.zarr b.zarr -o c.zarr --chunks 2,2 --shards 3,4": "shards of (3, 4) do not consist of whole chunks",
    "add a.zarr b.zarr -o c.zarr --compressor zst": "no compressor is called 'zst'; did you mean zstd",
    "add a.zarr b.zarr -o c.zarr --scheduler foo": "no scheduler is called 'foo'; there are tcp://HOST:PORT, local,",
    "add a.zarr b.zarr -o c.zarr --scheduler ''": "no scheduler is called ''",
    "add a.zarr b.zarr -o c.zarr --scheduler local:99999": "local:99999 asks for 99999 workers; there may be 4 for",
}
NO_ADDRESSES = {
    "tcp://localhost": "missing port number in address 'localhost'",
    "tcp://host:8786x": "invalid literal for int() with base 10: '8786x'",
    "tcp://[::1": "invalid address '[::1'; maybe: ipv6 needs brackets like [::1]",
    "http://127.0.0.1:1": "unknown address scheme 'http'",
    "://": "unknown address scheme ''",
    "tls://127.0.0.1:1": "TLS expects a `ssl_context` argument",
}
REFUSED |= {
    f"add a.zarr b.zarr -o c.zarr --scheduler {address}": f"add: no scheduler can be at {address!r}: {says}"
    for address, says in NO_ADDRESSES.items()
}
REFUSED |= {
    words.format(name): f"vecadd add: {name} is no URL of an array; write PROTOCOL://PATH\n"
    for name in ("s3://", "memory:///", "://", "://x", "file://", "two words://x", "simplecache::s3://")
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


def test_a_process_ends_at_once_where_no_scheduler_can_be(folder: Path) -> None:
    """Dask's client that failed half-made would wait for 60 s at its end, and print a traceback."""
    add = ["add", "a.zarr", "b.zarr", "-o", "c.zarr", "--scheduler", "tcp://localhost"]
    found = subprocess.run(
        [sys.executable, "-m", "vecadd", *add], env=child_environment(), capture_output=True, text=True, timeout=240
    )
    assert (found.returncode, found.stdout, found.stderr) == (
        2,
        "",
        "vecadd add: no scheduler can be at 'tcp://localhost': missing port number in address 'localhost'\n",
    )


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
    def missing(name: str) -> None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(_extras, "import_module", missing)
    status, said = run("add a.zarr b.zarr -o c.zarr", capsys)
    assert (status, said) == (
        2,
        "vecadd add: an addition of Zarr arrays needs zarr: pip install 'vecadd[fleet]'\n",
    )

"""The command line: what it prints, where, and its exit status."""

import argparse
import contextlib
import errno
import json
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
from argparse import ArgumentTypeError
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import numpy as np
import pytest
from conftest import child_environment
from made_up import plain_figure

from vecadd import _command, add_command, cli
from vecadd._command import folder as folder_to_write
from vecadd._command import package_version
from vecadd.figures import write_run

pytestmark = pytest.mark.no_native


def run_cli(*arguments: str, cwd: Path | None = None, before: str = "") -> subprocess.CompletedProcess[str]:
    """``vecadd ARGUMENTS`` in a process of its own; ``before`` is Python code that runs first."""
    command: Sequence[str] = ["-m", "vecadd", *arguments]
    if before:
        command = ["-c", f"{before}\nfrom vecadd.cli import main\nsys.exit(main())", *arguments]
    return subprocess.run(
        [sys.executable, "-W", "error", *command],
        cwd=cwd,
        env=child_environment(COLUMNS="120"),
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    np.save(tmp_path / "a.npy", np.arange(1000, dtype=np.float32))
    np.save(tmp_path / "b.npy", np.ones(1000, np.float32))
    return tmp_path


def test_version_is_printed() -> None:
    result = run_cli("--version")
    assert (result.returncode, result.stdout.split()[0]) == (0, "vecadd")


def test_a_source_tree_tells_its_own_version_and_others_what_is_installed(tmp_path: Path) -> None:
    tree, another = tmp_path / "pyproject.toml", tmp_path / "another.toml"
    tree.write_text('[project]\nname = "vecadd"\nversion = "7.8.9"\n')
    another.write_text('[tool.another]\nname = "vecadd"\n')
    assert package_version(tree) == "7.8.9"
    for elsewhere in another, tmp_path / "nothing":
        with mock.patch("importlib.metadata.version", return_value="1.2.3"):
            assert package_version(elsewhere) == "1.2.3"
        with mock.patch("importlib.metadata.version", side_effect=metadata.PackageNotFoundError):
            assert package_version(elsewhere) == "unknown"


def test_info_is_printed() -> None:
    result = run_cli("info")
    assert (result.returncode, result.stderr) == (0, "")
    assert "SIMD" in result.stdout


def test_info_as_json() -> None:
    assert json.loads(run_cli("info", "--json").stdout)["cpu"]["threads"] >= 1


def test_help_lists_the_commands() -> None:
    result = run_cli("--help")
    assert result.returncode == 0
    assert result.stdout.startswith("usage: vecadd")
    assert [command.name for command in cli.COMMANDS if f"\n    {command.name}" not in result.stdout] == []


SAID = r"vecadd add: 12.4 kB in \S+ \w+, \S+ GB/s \(a.npy and b.npy read, c.npy written {written}\)\n"


@pytest.mark.parametrize(
    ("option", "written"), [([], "and synced to the disk"), (["--no-sync"], "without a wait for the disk")]
)
def test_add_writes_the_sum_and_says_in_one_line_what_it_moved(option: list[str], written: str, folder: Path) -> None:
    result = run_cli("add", "a.npy", "b.npy", "-o", "c.npy", *option, cwd=folder)
    assert (result.returncode, result.stdout) == (0, "")
    assert re.fullmatch(SAID.format(written=written), result.stderr)
    np.testing.assert_array_equal(np.load(folder / "c.npy"), np.arange(1, 1001, dtype=np.float32))


def all_of(master: int) -> str:
    """What was written to a terminal whose other end is closed: the kernel may hand it over in parts."""
    text = b""
    with open(master, "rb", buffering=0) as reader, contextlib.suppress(OSError):  # where it ends
        while part := reader.read(65536):
            text += part
    return text.decode()


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (MemoryError(), "MemoryError"),
        (OSError("no name and no number"), "no name and no number"),
        (OSError(28, "No space left on device", "c.npy"), "c.npy: No space left on device"),
        (ZeroDivisionError("by nothing"), "by nothing"),
        (RuntimeWarning("overflow encountered in add"), "overflow encountered in add"),
    ],
    ids=str,
)
def test_an_error_is_told_by_its_words_or_else_by_its_kind(
    error: Exception, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(arguments: object) -> int:
        raise error

    monkeypatch.setattr("vecadd._machine.run", run)
    assert cli.main(["info"]) == 1
    assert capsys.readouterr() == ("", f"vecadd info: {said}\n")


@pytest.mark.parametrize("stderr", ["/dev/full", "a pipe that nothing reads"])
def test_where_stderr_cannot_be_written_an_error_is_no_verdict(stderr: str) -> None:
    """1 of `vecadd compare` would say that something is slower."""
    if stderr == "/dev/full":
        target = os.open(stderr, os.O_WRONLY)
    else:
        reader, target = os.pipe()
        os.close(reader)
    try:
        command = [sys.executable, "-m", "vecadd", "compare", "/no/old.json", "/no/new.json"]
        assert subprocess.run(command, env=child_environment(), stderr=target).returncode == 2
    finally:
        os.close(target)


@pytest.mark.parametrize("command", [["info"], ["compare", "old.json", "old.json"]], ids=lambda command: command[0])
def test_a_full_stdout_is_an_error_in_one_line(command: list[str], tmp_path: Path) -> None:
    """Not the interpreter's complaint at exit, nor its status."""
    write_run(tmp_path / "old.json", {"machine": "here"}, [plain_figure()])
    with Path("/dev/full").open("wb") as full:
        result = subprocess.run(
            [sys.executable, "-m", "vecadd", *command],
            cwd=tmp_path,
            env=child_environment(PYTHONUNBUFFERED=""),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert result.stderr == f"vecadd {command[0]}: [Errno 28] No space left on device\n"
    assert result.returncode == (1 if command == ["info"] else 2)


def test_add_shows_percents_on_a_terminal_and_takes_them_away() -> None:
    with TemporaryDirectory() as folder:
        for name in ("a", "b"):
            np.save(f"{folder}/{name}.npy", np.zeros(3 << 20, np.float32))
        master, terminal = pty.openpty()
        command = [sys.executable, "-m", "vecadd", "add", "a.npy", "b.npy", "-o", "c.npy"]
        environment = child_environment(TERM="xterm", COLUMNS="80")
        result = subprocess.run(command, cwd=folder, env=environment, stderr=terminal, timeout=120)
        os.close(terminal)
        drawn = all_of(master)
    assert result.returncode == 0
    assert "\r\x1b[Ka.npy + b.npy: 33 %" in drawn
    *_, line = drawn.split("\r\x1b[K")
    assert line.startswith("vecadd add: 37.7 MB in ")
    assert line.endswith("\n")


@pytest.mark.parametrize(
    ("count", "shown"),
    [(999, "999 bytes"), (1000, "1 kB"), (1_250_000, "1.25 MB"), (10**9, "1 GB"), (15 * 10**11, "1.5 TB")],
)
def test_add_says_bytes_by_powers_of_a_thousand(count: int, shown: str) -> None:
    assert add_command._show_bytes(count) == shown


def test_an_error_is_one_line_and_status_1(folder: Path) -> None:
    np.save(folder / "b.npy", np.ones(999, np.float32))
    result = run_cli("add", "a.npy", "b.npy", "-o", "c.npy", cwd=folder)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == (
        "vecadd add: shapes that do not broadcast: a.npy has (1000,), b.npy has (999,); along each axis, counted from "
        "the last, they have to be equal or one of them 1\n"
    )


def test_a_warning_that_is_an_error_is_one_line_and_leaves_the_target(folder: Path) -> None:
    for name in "ab":
        np.save(folder / f"{name}.npy", np.full(1000, np.finfo(np.float32).max))
    (folder / "c.npy").write_bytes(b"old")
    result = run_cli("add", "a.npy", "b.npy", "-o", "c.npy", cwd=folder)
    assert (result.returncode, result.stderr) == (1, "vecadd add: overflow encountered in add\n")
    assert (folder / "c.npy").read_bytes() == b"old"


@pytest.mark.parametrize("names", [("a.npy", "b.npy", "-"), ("-", "b.npy", "c.npy"), ("a.npy", "-", "c.npy")], ids=str)
def test_a_sum_comes_from_no_standard_input_and_goes_to_no_standard_output(
    names: tuple[str, str, str], folder: Path
) -> None:
    a, b, c = names
    result = run_cli("add", a, b, "-o", c, cwd=folder)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == (
        "vecadd add: - means standard input or output, where no part of a file can be looked up: name a file; ./- "
        "means one that is called -\n"
    )
    assert sorted(path.name for path in folder.iterdir()) == ["a.npy", "b.npy"]
    (folder / "b.npy").rename(folder / "-")
    assert run_cli("add", "a.npy", "./-", "-o", "./-", cwd=folder).returncode == 0
    np.testing.assert_array_equal(np.load(folder / "-"), np.arange(1, 1001, dtype=np.float32))


def test_a_sum_that_overflows_is_written_and_said_in_one_line(folder: Path) -> None:
    np.save(folder / "big.npy", np.full(1000, np.finfo(np.float32).max))
    before = "import sys, warnings; warnings.simplefilter('default')"
    result = run_cli("add", "big.npy", "big.npy", "-o", "c.npy", cwd=folder, before=before)
    warning, closing = result.stderr.splitlines()
    assert (result.returncode, warning) == (0, "vecadd add: warning: overflow encountered in add")
    assert closing.startswith("vecadd add: 12.4 kB in ")
    assert np.isinf(np.load(folder / "c.npy")).all()


BLOCKS, LEAST = ("31", "0", "2048", "x", "-32"), ("0", "100", "much")
USAGE = {
    "nothing": ([], "COMMAND"),
    "unknown command": (["frobnicate"], "frobnicate"),
    "add without a target": (["add", "a.npy", "b.npy"], "--out"),
    "size in words": (["bench", "--sizes", "many"], "'many' is not a size; write 1000, 1e6 or 2^20"),
    "size zero": (["bench", "--sizes", "2^10,0"], "'0' is not a size"),
    "half an element": (["bench", "--sizes", "1.5e0"], "'1.5e0' is not a size"),
    "size beyond memory": (["bench", "--sizes", "2^99"], "'2^99' is not a size"),
    "no size": (["bench", "--sizes", ""], "'' is not a size"),
    "unknown dtype": (["bench", "--dtypes", "float31"], "no dtype is called 'float31'; did you mean float32 or "),
    "unknown rung": (["bench", "--rungs", "numpy,ladder"], "no rung is called 'ladder'; there are numpy, add, "),
    "unknown sweep": (["bench", "sideways"], "no sweep is called 'sideways'; there are host, size, "),
    "nearly a command": (["chek"], "no command is called 'chek'; did you mean check?"),
    "nearly an option": (["bench", "--sise", "1000"], "no option is called '--sise'; did you mean --sizes?"),
    "an option of no command": (
        ["add", "a.npy", "--colour=red"],
        "no option is called '--colour'; there are --help, --out",
    ),
    "nearly a dtype": (["bench", "--dtypes", "int8,Float64"], "no dtype is called 'Float64'; did you mean float64 or "),
    "nearly a rung": (["bench", "--rungs", "nave"], "no rung is called 'nave'; did you mean naive?"),
    "nearly a sweep": (["bench", "sizes"], "no sweep is called 'sizes'; did you mean size?"),
    "nearly a rung to profile": (
        ["profile", "pined"],
        "no rung that uses a GPU is called 'pined'; did you mean pinned",
    ),
    "a rung of the host to profile": (
        ["profile", "numpy"],
        "no rung that uses a GPU is called 'numpy'; there are sing",
    ),
    "a dtype to profile": (["profile", "naive", "--dtype", "float31"], "no dtype is called 'float31'"),
    "two sizes to profile": (["profile", "naive", "--n", "1,2"], "'1,2' is more than one size"),
    "a parameter without a value": (
        ["profile", "chunked", "--param", "chunk"],
        "'chunk' is not a parameter; write name=",
    ),
    "less than less": (["profile", "chunked", "--param", "a=--3"], "'a=--3' is not a parameter; write name=3"),
    **{f"a block of {block}": (["bench", f"--block={block}"], f"{block!r} is not a block size") for block in BLOCKS},
    "minutes in words": (["check", "--minutes", "soon"], "'soon' is not a number of minutes up to a week"),
    "no pattern": (["fleet", "--group", "(", "."], "--group"),
    **{f"{least} %": (["fleet", "--least", least, "."], f"{least!r} is not a number of percent") for least in LEAST},
    "nearly a part": (["tune", "devise"], "no part is called 'devise'; did you mean device?"),
    "one argument too many": (["info", "more"], "unrecognized arguments: more"),
    "a file for the pictures": (["bench", "--plot", __file__], "is a file; name a folder"),
    "no time": (["bench", "--seconds-per-cell", "0"], "'0' is not a positive number of seconds"),
    "time in words": (["bench", "--seconds-per-cell", "soon"], "'soon' is not a positive number of seconds"),
    "no folder for the result": (["bench", "--json", "/nowhere/x.json"], "there is no folder '/nowhere'"),
    "a folder for the result": (["bench", "--json", "/tmp"], "'/tmp' is a folder"),
    "a name that is too long": (["bench", "--json", "x" * 256], "xxx': File name too long"),
    "a folder's name that is too long": (["bench", "--plot", "x" * 256], "xxx': File name too long"),
    "pictures in a file": (["bench", "--plot", f"{__file__}/a/b"], f"'{__file__}' is a file; name another folder"),
    "notebooks in a file": (["notebooks", f"{__file__}/a"], f"'{__file__}' is a file; name another folder"),
}


@pytest.mark.parametrize("name", USAGE)
def test_wrong_usage_is_status_2_and_says_what_is_right(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments, text = USAGE[name]
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    printed = capsys.readouterr()
    assert (ended.value.code, printed.out) == (2, "")
    assert text in printed.err


@pytest.mark.parametrize("place", [".", "new", "new/folder", "link/folder"])
def test_a_folder_is_refused_where_the_nearest_that_there_is_may_not_be_written(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a link to a folder that is asked of what it points to."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder")
    monkeypatch.chdir(tmp_path)
    assert folder_to_write(place) == Path(place)
    nearest = "link/folder".removesuffix("/folder") if place.startswith("link") else "."
    monkeypatch.setattr(os, "access", lambda path, mode: str(path) != nearest)
    with pytest.raises(ArgumentTypeError, match=re.escape(f"the folder '{nearest}' may not be written: name another")):
        folder_to_write(place)


def test_a_folder_is_no_standard_output() -> None:
    with pytest.raises(ArgumentTypeError, match=r"- means standard output, .* \./- means one called -"):
        folder_to_write("-")
    assert folder_to_write("./-") == Path("-")


@pytest.mark.parametrize("place", ["link", "link/folder"])
def test_a_folder_reached_by_a_link_that_leads_nowhere_is_refused(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "link").symlink_to("nowhere")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ArgumentTypeError, match="'link' is a link that leads nowhere; name another folder"):
        folder_to_write(place)


@pytest.mark.parametrize("command", cli.COMMANDS, ids=lambda command: command.name)
def test_the_examples_of_a_commands_help_are_understood(
    command: cli.Command, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="0"):
        cli.main([command.name, "--help"])
    shown = capsys.readouterr().out
    examples = re.findall(r"^  vecadd (.*)$", shown.partition("\nexamples:\n")[2], re.MULTILINE)
    assert examples
    for example in examples:
        assert cli._parsed(shlex.split(example.partition(" | ")[0])).command == command
    assert re.findall(r"^  (\d+) +\S", shown.partition("\nexit status:\n")[2], re.MULTILINE) == ["0", "1", "2", "130"]


def test_options_are_known_where_help_has_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a terminal since Python 3.14."""
    plain = argparse.ArgumentParser.format_help

    def coloured(self: argparse.ArgumentParser) -> str:
        return re.sub(r"(?<= )(--?[a-z-]+)", "\x1b[1;36m\\1\x1b[0m", plain(self))

    monkeypatch.setattr(argparse.ArgumentParser, "format_help", coloured)
    assert cli._parsed(["info", "--json"]).json


def test_what_looks_like_an_option_after_two_dashes_is_an_argument(folder: Path) -> None:
    (folder / "a.npy").rename(folder / "--a.npy")
    assert run_cli("add", "-o", "c.npy", "--", "--a.npy", "b.npy", cwd=folder).returncode == 0


def test_bench_keeps_its_result_file_when_the_reader_of_its_tables_leaves(tmp_path: Path) -> None:
    options = f"--sizes 1000 --rungs numpy --seconds-per-cell 0.01 --json {tmp_path / 'x.json'}"
    command = f"{sys.executable} -m vecadd bench host {options} | true"
    subprocess.run(["sh", "-c", command], env=child_environment(), timeout=120)
    assert [row["rung"] for row in json.loads((tmp_path / "x.json").read_text())["rows"]] == ["numpy"]


def test_an_interrupted_add_is_status_130_and_leaves_the_target(folder: Path) -> None:
    (folder / "c.npy").write_bytes(b"old")
    interrupt = "import sys, vecadd.files as f\ndef add(*a, **k): raise KeyboardInterrupt\nf._core.add_files = add"
    result = run_cli("add", "a.npy", "b.npy", "-o", "c.npy", cwd=folder, before=interrupt)
    assert (result.returncode, result.stderr) == (128 + signal.SIGINT, "vecadd add: interrupted\n")
    assert sorted(path.name for path in folder.iterdir()) == ["a.npy", "b.npy", "c.npy"]
    assert (folder / "c.npy").read_bytes() == b"old"


@pytest.mark.parametrize("command", cli.COMMANDS, ids=lambda command: command.name)
def test_an_error_is_1_or_2_where_1_is_a_verdict(
    command: cli.Command, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(arguments: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device", "x.json")

    needed = {
        "judge": ["f.cu"],
        "profile": ["naive"],
        "add": ["a", "b", "-o", "c"],
        "run": ["p.py"],
        "notebooks": ["d"],
    }
    files = {"fleet": ["x"], "compare": ["x", "y"]}
    monkeypatch.setattr(command.code(), "run", broken)
    status = cli.main([command.name, *needed.get(command.name, []), *files.get(command.name, [])])
    assert status == (2 if command.name in ("judge", "check", "fleet", "compare") else 1)
    assert capsys.readouterr().err == f"vecadd {command.name}: x.json: No space left on device\n"


def test_a_folder_whose_name_is_no_text_is_shown_by_its_bytes(tmp_path: Path) -> None:
    place = str(tmp_path / "\udcff")
    environment = child_environment(PYTHONIOENCODING="ascii:strict", VECADD_CACHE_DIR=place)
    result = subprocess.run([sys.executable, "-m", "vecadd", "info"], env=environment, capture_output=True, timeout=120)
    assert (result.returncode, rb"\udcff" in result.stdout) == (0, True)


def test_a_reader_that_leaves_is_no_traceback() -> None:
    command = f"{sys.executable} -m vecadd info | true"
    result = subprocess.run(["sh", "-c", command], env=child_environment(), capture_output=True, text=True, timeout=120)
    assert result.stderr == ""


@pytest.mark.parametrize(("closed", "left"), [("1>&-", "stderr"), ("2>&-", "stdout")])
def test_a_closed_output_is_no_traceback(closed: str, left: str) -> None:
    command = f"{sys.executable} -W error -m vecadd info {closed}"
    result = subprocess.run(["sh", "-c", command], env=child_environment(), capture_output=True, text=True, timeout=120)
    said = run_cli("info").stdout if left == "stdout" else ""
    assert (result.returncode, result.stdout, result.stderr) == (0, said, "")


def test_an_error_with_stderr_closed_is_not_on_stdout(folder: Path) -> None:
    command = f"{sys.executable} -m vecadd add a.npy nowhere.npy -o c.npy 2>&-"
    result = subprocess.run(
        ["sh", "-c", command], cwd=folder, env=child_environment(), capture_output=True, timeout=120
    )
    assert (result.returncode, result.stdout) == (1, b"")


@pytest.mark.parametrize("columns", ["1", "2", "5"])
def test_no_width_is_too_narrow_for_a_help(
    columns: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    with pytest.raises(SystemExit, match="0"):
        cli.main(["info", "--help"])
    assert "  130 inter" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("columns", "what", "shown"),
    [
        (1, "numpy float32", None),
        (4, "numpy float32", None),
        (19, "four five 6", "bench: four five 6"),
        (19, "four five 67", "bench: four ..."),
    ],
)
def test_the_status_line_leaves_a_terminals_last_column_free(
    columns: int, what: str, shown: str | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where a letter in it begins a new line, which is not taken away again. No terminal is too narrow for it."""
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with _command.status_line("bench") as tell:
        tell(what)
    before, told, after = capsys.readouterr().err.split("\r\x1b[K")
    assert (before, after) == ("", "")
    assert told == shown or shown is None


@pytest.mark.parametrize(
    ("command", "options"),
    [("check", ("json", "prometheus")), ("fleet x", ("json", "exclude")), ("compare x x", ("json", "html"))],
)
def test_stdout_and_a_file_take_one_text(
    command: str,
    options: tuple[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    first, second = (f"--{name}" for name in options)
    name = command.split()[0]
    assert cli.main([*command.split(), first, "-", second, "-"]) == 2
    assert capsys.readouterr().err == f"vecadd {name}: only one of {first} and {second} can be -, which is stdout\n"
    assert cli.main([*command.split(), first, "f", second, "./f"]) == 2
    assert capsys.readouterr().err == f"vecadd {name}: {first} and {second} name one file: give each its own\n"

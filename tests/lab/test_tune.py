"""vecadd tune: what is written is what is read, in one step; what cannot be read is as if it were not there."""

import os
import stat
from collections.abc import Callable, Sequence
from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies as st

from vecadd import cli
from vecadd.tune import command, compare, store
from vecadd.tune.part import Found, Part, Tell

pytestmark = pytest.mark.no_native

KEY = "GPU-01 driver 13000"
ROWS = [("recipe", (0, 256)), ("recipe", (134217728, 1024.5))]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where files are written: not there yet."""
    monkeypatch.setenv("VECADD_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def tune(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """tune(found, *arguments): the command with one part, `host`, that finds this: its status, stdout and stderr.

    ``ratio``: how much faster an addition is by the second folder. Its case names the files in both.
    """

    def run(
        found: Sequence[Found], *arguments: str, must_gain: bool = False, ratio: float = 1.5
    ) -> tuple[int, str, str]:
        def search(tell: Tell) -> Sequence[Found]:
            tell("nothing")
            return found

        def ratios(part: str, before: Path, after: Path, tell: Tell) -> compare.Ratios:
            files = [len(list(folder.iterdir())) if folder.exists() else 0 for folder in (before, after)]
            return {f"of {part} from {files[0]} file to {files[1]}": [ratio] * 4}

        monkeypatch.setattr(command, "PARTS", (Part("host", search, needs_gpu=False, must_gain=must_gain),))
        monkeypatch.setattr(compare, "ratios", ratios)
        status = cli.main(["tune", *arguments])
        return status, *capsys.readouterr()

    return run


@hypothesis.given(
    st.lists(
        st.tuples(
            st.from_regex(r"[a-z0-9_]{1,31}", fullmatch=True).filter(lambda name: name != "end"),
            st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=16).map(tuple),
        ),
        max_size=20,
    ),
    st.text(st.characters(codec="utf-8", exclude_characters="\n\0"), min_size=1, max_size=60),
)
def test_what_is_written_is_read(rows: list[tuple[str, tuple[float, ...]]], key: str) -> None:
    store.write("host", key, rows)
    assert store.read("host", key) == rows
    assert store.remove("host", key)
    assert store.read("host", key) is None


@pytest.mark.parametrize("make", [store.prepare, lambda: store.write("host", KEY, ROWS)], ids=["prepare", "write"])
def test_a_folder_that_is_made_for_the_files_is_its_users_alone(folder: Path, make: Callable[[], Path]) -> None:
    make()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_file_is_whole_when_it_is_synced_to_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    synced = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.fstat(descriptor).st_size))
    assert [store.write("host", KEY, ROWS).stat().st_size] == synced


def test_another_key_has_a_file_of_its_own() -> None:
    store.write("recipes", KEY, ROWS)
    assert store.read("recipes", "GPU-02 driver 13000") is None
    assert store.read("host", KEY) is None


@pytest.mark.parametrize(
    "spoil",
    [lambda b: b[:-1], lambda b: b[:40], lambda b: b"", lambda b: b.replace(b"256", b"2s6"), lambda b: b[::-1]],
    ids=["one byte short", "half", "empty", "letter", "backwards"],
)
def test_a_spoiled_file_is_as_if_it_were_not_there(spoil: Callable[[bytes], bytes]) -> None:
    path = store.write("recipes", KEY, ROWS)
    path.write_bytes(spoil(path.read_bytes()))
    assert store.read("recipes", KEY) is None


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store.write("recipes", KEY, ROWS)

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        store.write("recipes", KEY, [("other", (1,))])
    assert store.read("recipes", KEY) == [(name, tuple(numbers)) for name, numbers in ROWS]
    assert len(list(folder.iterdir())) == 1


@pytest.mark.parametrize(
    "row",
    [("end", (1,)), ("Name", (1,)), ("", (1,)), ("n" * 32, (1,)), ("n", ()), ("n", (1,) * 17), ("n", (float("nan"),))],
    ids=str,
)
def test_a_row_that_would_not_be_read_is_not_written(folder: Path, row: tuple[str, tuple[float, ...]]) -> None:
    with pytest.raises(ValueError, match="is no row"):
        store.write("host", KEY, [row])
    assert not folder.exists()


def test_more_rows_than_are_read_are_not_written(folder: Path) -> None:
    with pytest.raises(ValueError, match="more than the 65536 bytes"):
        store.write("host", KEY, [("row", (1,))] * 12000)
    assert not folder.exists()


def test_a_key_of_two_lines_has_no_file() -> None:
    with pytest.raises(ValueError, match="VECADD_CACHE_DIR"):
        store.write("host", "two\nlines", ROWS)


def test_the_command_writes_what_its_parts_find(folder: Path, tune: Callable[..., tuple[int, str, str]]) -> None:
    status, printed, complaints = tune([Found("host", KEY, ROWS, ["1024 won"])])
    [path] = folder.iterdir()
    assert (status, complaints) == (0, "")
    assert printed.splitlines()[0] == "host: 1024 won"
    assert f"written to {path}" in printed
    assert store.read("host", KEY) == [(name, tuple(numbers)) for name, numbers in ROWS]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_nothing_better_writes_nothing_and_forgets_what_was_written(
    folder: Path, tune: Callable[..., tuple[int, str, str]]
) -> None:
    found = [Found("host", KEY, None, ["nothing is faster"])]
    nothing = "host: nothing is faster\nhost: nothing written\n"
    assert tune(found)[1] == f"{nothing}host: nothing changed: what is kept is what was kept before\n"
    store.write("host", KEY, ROWS)
    told = tune(found)[1]
    assert "an earlier search" in told
    assert told.endswith("host: add is 1.50 x faster of host from 1 file to 0 than before\n")
    assert list(folder.iterdir()) == []


def test_it_ends_with_what_has_changed(tune: Callable[..., tuple[int, str, str]]) -> None:
    faster = "host: add is 1.50 x faster of host from {} file to 1 than before"
    assert tune([Found("host", KEY, ROWS)])[1].splitlines()[-1] == faster.format(0)
    assert tune([Found("host", KEY, ROWS)])[1].splitlines()[-1].startswith("host: nothing changed")
    assert tune([Found("host", KEY, ROWS[:1])])[1].splitlines()[-1] == faster.format(1)


def test_other_things_in_the_folder_are_let_be(folder: Path, tune: Callable[..., tuple[int, str, str]]) -> None:
    """The command reads no named pipe, for whose writer it would wait, and copies no folder."""
    folder.mkdir()
    os.mkfifo(folder / "pipe.txt")
    (folder / "more").mkdir()
    status, printed, complaints = tune([Found("host", KEY, ROWS)])
    assert (status, complaints) == (0, "")
    assert "of host from 0 file to 3 than before" in printed


def test_a_part_that_must_gain_is_kept_where_it_beats_the_build(
    folder: Path, tune: Callable[..., tuple[int, str, str]]
) -> None:
    status, printed, _ = tune([Found("host", KEY, ROWS, ["1024 won"])], must_gain=True)
    [path] = folder.iterdir()
    assert status == 0
    assert printed.splitlines() == [
        "host: 1024 won",
        "host: add is 1.50 x faster of host from 0 file to 1 than untuned",
        f"host: written to {path}; used by processes that start from now on",
    ]


@pytest.mark.parametrize("ratio", [1.0, 0.6])
def test_a_part_that_must_gain_keeps_nothing_where_it_does_not(
    folder: Path, tune: Callable[..., tuple[int, str, str]], ratio: float
) -> None:
    store.write("host", KEY, ROWS[:1])
    kept = tune([Found("host", KEY, ROWS)], "--dry-run", must_gain=True, ratio=ratio)[1]
    assert kept.endswith("host: nothing written\n")
    assert store.read("host", KEY) is not None
    told = tune([Found("host", KEY, ROWS)], must_gain=True, ratio=ratio)[1]
    assert told.endswith("host: nothing written; what an earlier search had written is removed\n")
    assert list(folder.iterdir()) == []


def test_what_the_host_finds_must_gain() -> None:
    assert [part.name for part in command.PARTS if part.must_gain] == ["host"]


def test_a_dry_run_touches_no_file(folder: Path, tune: Callable[..., tuple[int, str, str]]) -> None:
    assert "would be written to" in tune([Found("host", KEY, ROWS)], "--dry-run")[1]
    assert not folder.exists()
    store.write("host", KEY, ROWS)
    tune([Found("host", KEY, None)], "--dry-run")
    assert store.read("host", KEY) is not None


@pytest.mark.parametrize("arguments", [[], ["--dry-run"]], ids=str)
def test_where_there_is_no_folder_nothing_is_searched(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    for name in ("VECADD_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(command, "PARTS", (Part("host", lambda tell: pytest.fail("searched"), needs_gpu=False),))
    assert cli.main(["tune", *arguments]) == 1
    assert "set HOME, or VECADD_CACHE_DIR" in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_is_said_before_the_search(
    folder: Path, tune: Callable[..., tuple[int, str, str]]
) -> None:
    folder.write_text("a file in its place")
    status, printed, complaints = tune([Found("host", KEY, ROWS, ["searched"])])
    assert (status, printed, complaints) == (1, "", f"vecadd tune: {folder}: File exists\n")


def test_a_part_that_needs_a_gpu_is_left_out_where_there_is_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    nothing = command.info()
    monkeypatch.setattr(command, "info", lambda: type(nothing)(**{**vars(nothing), "gpus": (), "gpu_reason": "none"}))
    monkeypatch.setattr(command, "PARTS", (Part("device", lambda tell: pytest.fail("searched")),))
    assert cli.main(["tune"]) == 0
    assert cli.main(["tune", "device"]) == 1
    assert capsys.readouterr().out == "device: left out: none\n" * 2


def test_only_the_parts_that_are_named_are_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[str] = []

    def part(name: str) -> Part:
        return Part(name, lambda tell: searched.append(name) or [], needs_gpu=False)  # type: ignore[func-returns-value]

    monkeypatch.setattr(command, "PARTS", (part("one"), part("two"), part("three")))
    assert [cli.main(["tune", "--dry-run", *names]) for names in ([], ["three", "one"])] == [0, 0]
    assert searched == ["one", "two", "three", "three", "one"]


def test_an_unknown_part_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["tune", "sideways"])
    assert "no part is called 'sideways'" in capsys.readouterr().err

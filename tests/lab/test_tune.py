"""vecadd tune device: what is searched, what counts as won, which table comes of it, and that additions go by the file
that is written."""

import itertools
import os
import stat
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from vecadd import _core, _machine, cli, tune
from vecadd._explain import tuned_words
from vecadd.bench.operands import WrongSumError
from vecadd.tune import Found, LaunchConfig, Won, candidates, config_for, table

pytestmark = pytest.mark.no_native

KEY = "GPU-01 driver 13000"
PLAIN, EVICT_LAST, FAST = LaunchConfig(256, 0, 0), LaunchConfig(768, 1, 30), LaunchConfig(512, 0, 0)
ROWS = [(0, PLAIN), (134217728, EVICT_LAST)]
READ = [("recipe", (0.0, 256.0, 0.0, 0.0)), ("recipe", (134217728.0, 768.0, 1.0, 30.0))]
SHIPPED = [(0, PLAIN), (1000, EVICT_LAST)]
SIZES = [100, 400, 1600, 6400]

Tune = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where files are written: not there yet."""
    monkeypatch.setenv("VECADD_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Tune:
    """run(found, *arguments): the command whose search finds this: its status, stdout and stderr."""

    def run(found: Sequence[Found], *arguments: str) -> tuple[int, str, str]:
        def search(tell: tune.Tell) -> Sequence[Found]:
            tell("nothing")
            return found

        monkeypatch.setattr(tune, "search", search)
        status = cli.main(["tune", *arguments])
        return status, *capsys.readouterr()

    return run


def rows_of(key: str) -> list[tuple[str, tuple[int, ...]]] | None:
    return _core.tuned_rows("recipes", key)


def found_at(rows: Sequence[tuple[int, LaunchConfig]]) -> list[LaunchConfig]:
    return [config_for(rows, size) for size in SIZES]


@pytest.mark.parametrize(
    ("won", "expected"),
    [
        ([], [PLAIN, PLAIN, EVICT_LAST, EVICT_LAST]),
        ([Won(100, FAST)], [FAST, PLAIN, EVICT_LAST, EVICT_LAST]),
        ([Won(400, FAST)], [PLAIN, FAST, EVICT_LAST, EVICT_LAST]),
        ([Won(6400, FAST)], [PLAIN, PLAIN, EVICT_LAST, FAST]),
        ([Won(400, FAST), Won(1600, FAST)], [PLAIN, FAST, FAST, EVICT_LAST]),
        ([Won(size, FAST) for size in SIZES], [FAST] * 4),
    ],
    ids=str,
)
def test_a_winner_applies_around_its_size_and_the_build_elsewhere(won: list[Won], expected: list[LaunchConfig]) -> None:
    rows = table(SHIPPED, SIZES, won)
    assert found_at(rows) == expected
    assert rows[0][0] == 0
    assert [start for start, _ in rows] == sorted({start for start, _ in rows})
    assert all(before[1] != after[1] for before, after in itertools.pairwise(rows))


def test_the_builds_own_thresholds_stay_where_nothing_won() -> None:
    assert table(SHIPPED, SIZES, [Won(100, FAST)]) == [(0, FAST), (200, PLAIN), (1000, EVICT_LAST)]


def test_lines_are_kept_only_where_the_kernel_can_and_the_l2_is_passed() -> None:
    small, large, other = (list(candidates(size, 1000, cc)) for size, cc in ((1999, 90), (2000, 90), (2000, 100)))
    assert small == other
    assert {config.loads for config in small} == {0}
    assert {config.demoted for config in large if config.loads} == set(tune.DEMOTED)


def test_every_recipe_of_the_build_is_met_where_it_rules_and_is_among_those_searched(device: int) -> None:
    known = _core.device_launch_configs(device)
    shipped = [(row[0], LaunchConfig(*row[1:])) for row in known["shipped"]]
    met = {size: config_for(shipped, size) for size in tune.BYTES}
    assert set(met.values()) == {config for _, config in shipped}
    for size, config in met.items():
        assert config in candidates(size, known["l2"], tune.EVICT_LAST_CAPABILITY)


class Rounds:
    """In the place of measurements: each dtype's paired ratios, by config, over the build's."""

    l2, memory, capability = 1000, 1 << 40, 90

    def __init__(self, ratios: dict[str, tuple[float, float, float]]) -> None:
        self.by_dtype = ratios

    def ratios(
        self, dtype: str, size: int, reference: LaunchConfig, others: Sequence[LaunchConfig], seconds: float
    ) -> dict[LaunchConfig, tuple[float, float, float]]:
        del size, reference, seconds
        return {
            other: self.by_dtype.get(dtype, (0.97, 0.98, 0.99)) if other == FAST else (1.0, 1.1, 1.2)
            for other in others
        }


@pytest.mark.parametrize(
    ("ratios", "won"),
    [
        ({}, FAST),
        ({"float32": (0.98, 0.99, 1.0)}, None),
        ({"int8": (1.01, 1.02, 1.03)}, None),
        ({"int8": (0.99, 1.02, 1.03)}, FAST),
    ],
    ids=["faster", "not significantly", "slower in int8", "no slower in int8"],
)
def test_a_recipe_wins_where_it_is_significantly_faster_and_loses_in_no_dtype(
    ratios: dict[str, tuple[float, float, float]], won: LaunchConfig | None
) -> None:
    words, config = tune._search_size(Rounds(ratios), 5000, PLAIN)
    assert config == won
    assert ("stays" in words) == (won is None)


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SEARCH_SECONDS", "DECIDE_SECONDS", "AGREE_SECONDS"):
        monkeypatch.setattr(tune, name, 0.01)
    monkeypatch.setattr(tune, "BYTES", (3 << 12, 3 << 20))
    monkeypatch.setattr(tune, "BLOCKS", (128, 256))
    monkeypatch.setattr(tune, "EVICT_LAST_BLOCKS", (768,))
    monkeypatch.setattr("vecadd.bench.timing.SETTLE", 0.0)


def test_a_search_says_what_it_found_and_additions_can_go_by_its_rows(device: int, brief: None) -> None:
    for found in tune.search(lambda what: None):
        assert found.key.startswith("GPU-")
        assert len(found.words) == 2
        assert found.rows is None or found.rows[0][0] == 0
    assert found.key == _core.device_launch_configs(len(_core.gpu_facts()) - 1)["key"]


def test_a_wrong_sum_ends_the_search(device: int, brief: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(*arguments: object) -> None:
        raise WrongSumError("element 0 is 1, the sum is 2")

    monkeypatch.setattr(tune.Pattern, "check", wrong)
    with pytest.raises(RuntimeError, match="256 threads failed: wrong result"):
        tune.search(lambda what: None)


def test_a_folder_that_is_made_for_the_files_is_its_users_alone(folder: Path) -> None:
    tune.write(KEY, ROWS)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_key_of_two_lines_has_no_file() -> None:
    with pytest.raises(ValueError, match="VECADD_CACHE_DIR"):
        tune.write("two\nlines", ROWS)


@pytest.mark.parametrize("arguments", [[], ["device"]], ids=str)
def test_the_command_writes_what_its_search_finds(folder: Path, run: Tune, arguments: list[str]) -> None:
    status, printed, complaints = run([Found(KEY, ROWS, ["1024 won"])], *arguments)
    [path] = folder.iterdir()
    assert (status, complaints) == (0, "")
    assert printed == f"1024 won\nwritten to {path}; used by processes that start from now on\n"
    assert rows_of(KEY) == READ
    assert rows_of("GPU-02 driver 13000") is None


def test_nothing_better_writes_nothing_and_forgets_what_was_written(folder: Path, run: Tune) -> None:
    found = [Found(KEY, None, ["nothing is faster"])]
    assert run(found)[1] == "nothing is faster\nnothing written\n"
    tune.write(KEY, ROWS)
    assert run(found, "--dry-run")[1] == "nothing is faster\nnothing written\n"
    assert rows_of(KEY) == READ
    assert run(found)[1] == "nothing is faster\nnothing written; what an earlier search had written is removed\n"
    assert list(folder.iterdir()) == []


def test_a_dry_run_touches_no_file(folder: Path, run: Tune) -> None:
    assert run([Found(KEY, ROWS)], "--dry-run")[1] == f"would be written to {tune.path(KEY)}\n"
    assert not folder.exists()


@pytest.mark.parametrize("arguments", [[], ["--dry-run"]], ids=str)
def test_where_there_is_no_folder_nothing_is_searched(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    for name in ("VECADD_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(tune, "search", lambda tell: pytest.fail("searched"))
    assert cli.main(["tune", *arguments]) == 1
    assert "set HOME, or set VECADD_CACHE_DIR" in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_is_said_before_the_search(folder: Path, run: Tune) -> None:
    folder.write_text("a file in its place")
    assert run([Found(KEY, ROWS, ["searched"])]) == (1, "", f"vecadd tune: {folder}: File exists\n")


def test_without_a_gpu_it_says_so(double: object, child: Callable[..., Any]) -> None:
    code = "from vecadd import cli; print(cli.main(['tune', '--dry-run']))"
    told = child(code, VECADD_DOUBLE_DRIVER="0")
    assert told.stdout == "1\n"
    assert told.stderr.startswith("vecadd tune: ")
    assert "no NVIDIA driver" in told.stderr


@pytest.mark.parametrize("part", ["host", "routes"])
def test_a_part_that_is_gone_is_told_from_one_that_never_was(part: str, capsys: pytest.CaptureFixture[str]) -> None:
    for name, said in ((part, f"`tune {part}` is gone: vecadd's additions on the host need no tuning"),
                       ("sideways", "no part is called 'sideways'; there are device")):  # fmt: skip
        with pytest.raises(SystemExit):
            cli.main(["tune", name])
        assert said in capsys.readouterr().err


def written(key: str) -> Path:
    """A file of the GPU of that key, with a time of its own."""
    path = tune.write(key, [(0, LaunchConfig(64, 0, 0))])
    os.utime(path, (datetime(2026, 11, 21, 10, 30).timestamp(),) * 2)
    return path


def test_info_tells_of_each_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    path = written("GPU-2")
    cuda = "cc_major cc_minor clock_khz memory_clock_khz memory_bus_bits pci_domain pci_bus pci_device"
    fact = dict.fromkeys((*_machine.Gpu.__dataclass_fields__, *cuda.split()), 1)
    gpus = [{**fact, "name": "X", "key": key} for key in ("GPU-1", "GPU-2")]
    monkeypatch.setattr(_core, "CUDA_BUILD", True)
    monkeypatch.setattr(_machine, "_ask_child", lambda: {"driver": 13000, "runtime": 13000, "gpus": gpus})
    found = _machine.look()
    assert found.tuned == (
        "GPU 0: not tuned; `vecadd tune device` measures this GPU",
        f"GPU 1: tuned 2026-11-21 10:30, {path}",
    )
    assert all(line in str(found) for line in found.tuned)


def test_additions_go_by_the_file_that_was_there_when_the_gpu_was_first_used(device: int, child: Any) -> None:
    code = (
        "import numpy as np, vecadd; x = vecadd.to_device(np.ones(5)); print(vecadd.explain(x, x).tuned)\n"
        "found = vecadd._core.device_launch_configs(0)\n"
        "print(found['source'], found['rows'] == found['shipped'], found['rows'][0][1])"
    )
    shipped = child(code).stdout.splitlines()
    assert shipped[0] == "not tuned; `vecadd tune device` measures this GPU"
    key = _core.device_launch_configs(device)["key"]
    path = written(key)
    assert child(code).stdout.splitlines() == [f"tuned 2026-11-21 10:30, {path}", "tuned False 64"]
    late = f"not tuned; {path} of 2026-11-21 10:30 is read by processes that start from now on"
    assert tuned_words(key, used=False) == late
    path.write_text(path.read_text()[:-1])
    assert child(code).stdout.splitlines() == shipped


def test_an_unknown_ordinal_is_refused(device: int) -> None:
    with pytest.raises(ValueError, match="there is no device 99"):
        _core.device_launch_configs(99)

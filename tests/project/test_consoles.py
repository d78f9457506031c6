"""Every command on terminals of 80 and 60 columns, on a plain one, and in a pipe, beside packages and without them.

No figure that a command writes to its file is cut or missing in what it prints, but for those of columns that it names
as left out, and stderr has nothing but the status line and errors.
"""

import json
import os
import pty
import re
import select
import subprocess
import sys
import termios
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from checks import earlier
from conftest import child_environment

from vecadd.check.measure import GROUPS
from vecadd.figures import Figure, read_run
from vecadd.profile import ncu
from vecadd.profile import tables as profile_tables
from vecadd.profile.child import ProfiledRung
from vecadd.profile.events import Link, Part, Transfer
from vecadd.tables import show_figure, show_rate, show_seconds, table_as_text

pytestmark = pytest.mark.no_native

ERASE = "\r\x1b[K"
COLOUR = re.compile(r"\x1b\[\d+m")


@dataclass(frozen=True)
class Console:
    """Where a command runs: the columns of its terminal (None: a pipe) and the packages that it does not find."""

    columns: int | None
    environment: dict[str, str | None] = field(default_factory=dict)
    hidden: tuple[str, ...] = ()

    @property
    def plain(self) -> bool:
        return self.columns is None or self.environment.get("TERM") == "dumb"


NOTHING_ELSE = ("matplotlib", "ml_dtypes")
CONSOLES = {
    "80 columns": Console(80),
    "60 columns, no colour, NumPy alone": Console(60, {"NO_COLOR": "1"}, NOTHING_ELSE),
    "80 columns, dumb": Console(80, {"TERM": "dumb"}),
    "a pipe, NumPy alone": Console(None, {}, NOTHING_ELSE),
}

# What takes long is made short, and the machine is one without a GPU.
BEFORE = """
import sys
for name in {hidden}: sys.modules[name] = None
from dataclasses import replace
from vecadd import cli
from vecadd.bench import timing
from vecadd.bench import command as bench
from vecadd.check import command as check, measure
from vecadd.profile import command as profile
from vecadd import tune
measure.STREAMING, measure.SECONDS, timing.SETTLE = (1 << 14,), 1e-3, 0.0
found = replace(bench.info(), gpus=(), gpu_status="no GPU", gpu_reason="the driver sees no GPU")
bench.info = check.info = profile.info = lambda: found
def search(tell):
    tell("16 KiB")
    return [tune.Found("key", None, ["256 threads take 1.25 us, 128 threads take 3.75 us: " + "more words " * 9])]
tune.search = search
sys.exit(cli.main())
"""


def printed(console: Console, folder: Path, *arguments: str) -> tuple[int, str, str]:
    """The command's exit status, stdout and stderr."""
    code = BEFORE.format(hidden=console.hidden)
    changes: dict[str, str | None] = {"TERM": "xterm", "NO_COLOR": None, "COLUMNS": None, **console.environment}
    ends = [os.pipe() if console.columns is None else pty.openpty() for _ in range(2)]
    for _, writer in ends:
        if console.columns is not None:
            termios.tcsetwinsize(writer, (24, console.columns))
    child = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", code, *arguments],
        cwd=folder,
        env=child_environment(VECADD_CACHE_DIR=str(folder / "cache"), **changes),
        stdin=subprocess.DEVNULL,
        stdout=ends[0][1],
        stderr=ends[1][1],
    )
    for _, writer in ends:
        os.close(writer)
    out, err = _read([reader for reader, _ in ends])
    return child.wait(60), out, err


def _read(readers: list[int]) -> list[str]:
    """All that comes from the descriptors until their other ends are closed."""
    texts = dict.fromkeys(readers, b"")
    left = list(readers)
    while left:
        ready, _, _ = select.select(left, [], [], 60)
        assert ready, texts
        for reader in ready:
            try:
                text = os.read(reader, 65536)
            except OSError:  # a terminal whose other end is closed
                text = b""
            texts[reader] += text
            if not text:
                left.remove(reader)
                os.close(reader)
    return [text.decode().replace("\r\n", "\n") for text in texts.values()]


def check_text(console: Console, text: str) -> str:
    """The text without its colours, in one line; it has fitted, and has colours only where they are wanted."""
    if console.plain or "NO_COLOR" in console.environment:
        assert "\x1b" not in text
    text = COLOUR.sub("", text)
    assert "\x1b" not in text
    if console.columns is not None:
        assert max(map(len, text.splitlines())) <= console.columns
    return " ".join(text.split())


def check_status_line(console: Console, text: str, name: str) -> None:
    """On a terminal that can erase there was one, and it is gone; else there is nothing at all."""
    if console.plain:
        assert text == ""
        return
    first, *shown, last = text.split(ERASE)
    assert (first, last) == ("", "")
    assert shown
    assert all(line.startswith(f"{name}: ") and len(line) < (console.columns or 0) for line in shown)


@pytest.fixture(params=CONSOLES)
def console(request: pytest.FixtureRequest) -> Console:
    return CONSOLES[request.param]


LEFT_OUT_OF_BENCH = {80: ["spread"], 60: ["spread", "checked"], None: []}


def columns_left_out(shown: str) -> list[str]:
    found = re.search(r"left out at \d+ columns: (.*) \(\d+ columns show all\)", shown)
    return found[1].split(", ") if found else []


def figures_of_bench(row: Figure, no_spread: bool) -> Iterator[str]:
    assert row.seconds is not None
    assert row.spread is not None
    yield from (row.label, row.dtype, str(row.n), show_seconds(row.seconds), show_rate(row.gbps or 0))
    yield f"{100 * (row.fraction or 0):.1f}"
    if not no_spread:
        low, high = row.spread
        yield f"{100 * (low / row.seconds - 1):+.1f} .. {100 * (high / row.seconds - 1):+.1f} %"


def test_bench(console: Console, tmp_path: Path) -> None:
    arguments = ("--sizes", "1000,3000", "--rungs", "numpy,threads_stream,add", "--seconds-per-cell", "0.01")
    status, out, err = printed(console, tmp_path, "bench", "host", *arguments, "--json", "x.json", "--csv", "x.csv")
    shown = check_text(console, out)
    rows = read_run(tmp_path / "x.json").figures
    assert status == (0 if all(row.ok for row in rows) else 1)  # 1: beyond a limit in noise
    assert len(rows) == 6
    assert columns_left_out(shown) == LEFT_OUT_OF_BENCH[console.columns]
    for row in rows:
        for figure in figures_of_bench(row, "spread" in columns_left_out(shown)):
            assert figure in shown
    assert "written to x.json written to x.csv" in shown
    check_status_line(console, err, "bench")


@pytest.mark.parametrize("passes", [True, False])
def test_check(console: Console, tmp_path: Path, passes: bool) -> None:
    easy = {"add": ("host", "add 2^14", 1e-9), "small": ("host", "add 2^10", 1e9)}
    of_a_gpu = {} if passes else {"read": ("device", "read", 4470.0), "kernel": ("launch", "empty kernel", 2.9e-6)}
    earlier(tmp_path / "old.json", **easy, **of_a_gpu)
    status, out, err = printed(console, tmp_path, "check", "--expect", "old.json", "--json", "x.json")
    shown = check_text(console, out)
    content = json.loads((tmp_path / "x.json").read_text())
    assert (status, content["status"]) == ((0, "passed") if passes else (1, "failed"))
    rows = [each for each in content["findings"] if each["id"].split("/")[0] in GROUPS.values()]
    assert len(rows) == (2 if passes else 4)
    for row in rows:
        assert f"{row['measurement']} " in shown
        low, high = row["expected"]
        for figure in (row["value"], high if low is None else low):
            assert show_figure(figure, row["unit"]) in shown
        assert {"measured", "bound"}.isdisjoint(columns_left_out(shown))
    failed = "device memory/gpu 0/read, launch/gpu 0/empty kernel"
    assert shown.endswith("passed" if passes else f"failed: {failed}")
    check_status_line(console, err, "check")


def test_tune(console: Console, tmp_path: Path) -> None:
    status, out, err = printed(console, tmp_path, "tune", "--dry-run")
    assert (status, check_text(console, out)) == (
        0,
        f"256 threads take 1.25 us, 128 threads take 3.75 us: {'more words ' * 9}nothing written",
    )
    check_status_line(console, err, "device")


def test_profile_without_a_gpu(console: Console, tmp_path: Path) -> None:
    status, out, err = printed(console, tmp_path, "profile", "single_thread")
    assert (status, out) == (1, "")
    assert err == "vecadd profile: there is no GPU to profile: the driver sees no GPU\n"


@pytest.mark.parametrize("name", ["60 columns, no colour, NumPy alone", "a pipe, NumPy alone"])
def test_info_and_add(name: str, tmp_path: Path) -> None:
    console = CONSOLES[name]
    status, out, err = printed(console, tmp_path, "info")
    assert (status, err) == (0, "")
    assert "SIMD" in out
    assert "\x1b" not in out
    np.save(tmp_path / "a.npy", np.arange(1000))
    status, out, err = printed(console, tmp_path, "add", "a.npy", "a.npy", "-o", "b.npy")
    assert (status, out) == (0, "")
    assert not (console.plain and "\x1b" in err)
    assert np.load(tmp_path / "b.npy").tolist() == list(range(0, 2000, 2))


def test_packages_that_are_missing_are_named_together(tmp_path: Path) -> None:
    console = CONSOLES["a pipe, NumPy alone"]
    assert printed(console, tmp_path, "bench", "host", "--dtypes", "bfloat16", "--plot", ".") == (
        2,
        "",
        "vecadd bench: this needs matplotlib and ml_dtypes: pip install 'vecadd[plot,bench]'\n",
    )


# vecadd profile needs a GPU and a profiler: of made-up figures.

RAW = {
    "gpu__time_duration.sum": (738_912.0, "ns"),
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": (20.83, "%"),
    "launch__grid_size": (524_288.0, ""),
}


@pytest.mark.parametrize("width", [60, 80, None])
def test_the_tables_of_a_profile(width: int | None) -> None:
    launches = {
        ProfiledRung(rung, "float32", 1 << 20): ncu.Launch("kernel", RAW, executed={"LDG.E": 8_388_608})
        for rung in ("naive", "float4", "grid_stride")
    }
    pinned = ProfiledRung("pinned", "float32", 1 << 20)
    parts = (
        Part("to_device", 4, 6e-3, 300e6, 1.5e-3, 1e-3, 2e-3),
        Part("kernel", 2, 2.5e-3, None, 1.25e-3, 1e-3, 1.5e-3),
        Part("to_host", 1, 1.5e-3, 75e6, 1.5e-3, 1.5e-3, 1.5e-3),
    )
    moved, link = {pinned: Transfer(parts, 10e-3)}, Link(55.0, 54.0, 63.0, "PCIe 5 x16")
    copies, each = profile_tables.transfer_tables(moved, link)
    for table, figures in (
        (profile_tables.kernel_tables(launches)[0], ("739 us", "20.83", "524,288", "8,388,608", "LDG.E", "2^20")),
        (copies, ("60.0", "300.0", "6 ms", "50.0")),
        (each, ("4", "1.5 ms", "1.25 ms")),
    ):
        lines = [text for text, _ in table_as_text(table, width)]
        assert width is None or max(map(len, lines)) <= width
        for figure in figures:
            assert figure in "\n".join(lines)

"""Pictures of a run: what each shows, how it is called, where it says its data come from, and that nothing leaks."""

import io
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pictured
import pytest
from conftest import child_environment
from figures import assert_words_have_room, bars, figure, labels, texts, title

from vecadd.figures import Figure, read_run, write_run

matplotlib = pytest.importorskip("matplotlib")

from matplotlib.axes import Axes  # noqa: E402  a machine with a GPU may be without it
from matplotlib.colors import to_rgb  # noqa: E402
from matplotlib.figure import Figure as Drawing  # noqa: E402

from vecadd.bench import plots  # noqa: E402
from vecadd.bench.plots import latency, precision, style, timeline  # noqa: E402

pytestmark = pytest.mark.no_native

RECORDED = sorted((Path(__file__).parents[2] / "benchmarks" / "results").glob("*/*.json"))


def drawn_as(kind: str) -> bytes:
    target = io.BytesIO()
    plots.write(figure("size", pictured.size()), target, kind)
    return target.getvalue()


# Files


@pytest.mark.slow
@pytest.mark.parametrize("path", RECORDED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_what_is_recorded_can_be_drawn(path: Path) -> None:
    run = read_run(path)
    meta, rows = run.meta, run.figures
    drawn = plots.figures(meta, rows, recorded=True)
    with_pictures = {name for name, sweep in plots.SWEEPS.items() if sweep.plot}
    for sweep in {row.sweep for row in rows} & with_pictures:
        assert {sweep, *(f"{sweep}-{row.dtype}" for row in rows)} & set(drawn), sweep
    for each in drawn.values():
        assert meta["commit"] in title(each)
        assert_words_have_room(each)


def test_a_picture_is_replaced_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "size.png").write_bytes(b"old")

    def interrupted(self: Drawing, target: Any, **options: Any) -> None:
        with target.open("wb") if isinstance(target, Path) else target as file:
            file.write(b"half of a")
            raise KeyboardInterrupt

    monkeypatch.setattr(Drawing, "savefig", interrupted)
    with pytest.raises(KeyboardInterrupt):
        plots.save(pictured.META, pictured.size(), tmp_path, recorded=True)
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("size.png", b"old")]


def test_each_sweep_is_a_png_and_an_svg(tmp_path: Path) -> None:
    paths = plots.save(pictured.META, pictured.size() + pictured.ladder(), tmp_path / "new", recorded=True)
    names = [f"{name}.{kind}" for name in ("size", "ladder", "roofline") for kind in ("png", "svg")]
    assert [path.name for path in paths] == names
    assert sorted(tmp_path.joinpath("new").iterdir()) == sorted(paths)
    assert paths[0].read_bytes().startswith(b"\x89PNG")
    assert paths[1].read_text().startswith("<?xml")


@pytest.mark.parametrize("kind", plots.FORMATS)
def test_the_same_run_is_the_same_file(kind: str) -> None:
    assert drawn_as(kind) == drawn_as(kind)


def test_a_figure_for_each_dtype_is_called_by_it() -> None:
    rows = pictured.ladder()
    both = rows + [replace(row, dtype="float16") for row in rows]
    assert set(plots.figures(pictured.META, rows, recorded=True)) == {"ladder", "roofline"}
    assert set(plots.figures(pictured.META, both, recorded=True)) == {"ladder-float32", "ladder-float16", "roofline"}


def test_a_sweep_in_which_everything_failed_has_no_figure() -> None:
    assert plots.figures(pictured.META, [pictured.row("size", "naive", 1024, None)], recorded=True) == {}


def test_nothing_is_left_behind_for_others() -> None:
    before = dict(matplotlib.rcParams)
    drawn_as("svg")
    assert dict(matplotlib.rcParams) == before


def test_the_callers_settings_change_nothing() -> None:
    plain = drawn_as("svg")
    with matplotlib.rc_context({"font.size": 20, "axes.facecolor": "red", "svg.fonttype": "none"}):
        assert drawn_as("svg") == plain


def test_recorded_files_are_drawn_by_a_command(tmp_path: Path) -> None:
    recorded = tmp_path / "size.json"
    write_run(recorded, pictured.META, pictured.size())
    command = [sys.executable, "-m", "vecadd.bench.plots", str(recorded), str(tmp_path / "pictures")]
    done = subprocess.run(command, env=child_environment(), capture_output=True, text=True, check=True)
    assert [Path(line).name for line in done.stdout.splitlines()] == ["size.png", "size.svg"]
    assert (tmp_path / "pictures" / "size.png").is_file()


# Titles


@pytest.mark.parametrize("sweep", pictured.SWEEPS)
def test_recorded_data_carry_machine_date_and_commit(sweep: str) -> None:
    text = title(figure(sweep, pictured.SWEEPS[sweep]()))
    assert text.endswith("\nrecorded on Made-up GPU, driver 580.1, 2026-01-02, commit 0123456789ab")


def test_what_was_just_measured_says_so() -> None:
    assert title(figure("size", pictured.size(), recorded=False)).endswith("\nmeasured on Made-up GPU")


def test_host_figures_name_the_processor() -> None:
    rows = [replace(row, sweep="host") for row in pictured.size()]
    assert "recorded on Made-up CPU, 16 threads beside Made-up GPU, 2026-01-02" in title(figure("host", rows))
    without = {**pictured.META, "gpu": []}
    assert "recorded on Made-up CPU, 16 threads, 2026" in title(plots.figures(without, rows, recorded=True)["host"])


# Looks


def test_no_two_lines_differ_in_colour_alone() -> None:
    looks = list(style.looks(f"rung {index}" for index in range(16)).values())
    assert len({(look.marker, look.hollow) for look in looks}) == len(looks)


def test_no_two_bars_differ_in_colour_alone() -> None:
    from vecadd.bench.plots import bars, transfer

    load = [hatch for _, _, hatch in (*bars._LOADS.values(), bars._COPIED, bars._CAUGHT)]
    memory = [hatch for _, hatch in (*transfer._MEMORIES.values(), transfer._OTHER_MEMORY)]
    for hatches in (load, memory):
        assert len(set(hatches)) == len(hatches)


def test_neighbouring_lanes_differ_in_grey() -> None:
    def grey(what: str) -> float:
        return float(np.dot(to_rgb(timeline._KINDS[what][0]), (0.299, 0.587, 0.114)))

    assert abs(grey("to_device") - grey("kernel")) > 0.1
    assert timeline._KINDS["to_device"][1] != timeline._KINDS["to_host"][1]


# Size


def test_each_rung_is_a_line_under_the_limit() -> None:
    (axes,) = figure("size", pictured.size()).axes
    assert labels(axes) == ["naive", "float4", "tuned", "limit, 4500 GB/s"]
    assert (axes.get_xscale(), axes.get_xlabel(), axes.get_ylabel()) == ("log", "elements", "GB/s")
    naive = [row for row in pictured.size() if row.name == "naive"]
    np.testing.assert_array_equal(axes.get_lines()[0].get_xdata(), [row.n for row in naive])
    np.testing.assert_array_equal(axes.get_lines()[0].get_ydata(), [row.gbps for row in naive])


def test_a_failed_row_is_a_gap() -> None:
    rows = [replace(row, value=None) if row.n == 2**20 else row for row in pictured.size()]
    (axes,) = figure("size", rows).axes
    drawn = np.asarray(axes.get_lines()[0].get_ydata())
    assert list(np.isnan(drawn)) == [n == 2**20 for n in pictured.SIZES]


def test_many_lines_are_spread_over_panels() -> None:
    rows = [replace(row, name=f"{row.name}{copy}") for copy in range(4) for row in pictured.size()]
    panels = figure("size", rows).axes
    assert [len(labels(axes)) - 1 for axes in panels] == [6, 6]


# Ladder


def test_the_ladder_has_a_panel_a_size_and_a_bar_a_rung() -> None:
    panels = figure("ladder", pictured.ladder()).axes
    assert [axes.get_title("left") for axes in panels] == ["2^12 elements", "2^20 elements", "2^26 elements"]
    assert [len(bars(axes)) for axes in panels] == [7, 6, 6]  # of 7 rungs and variants one failed, one raced at 2^12
    names = [text.get_text() for text in panels[0].get_yticklabels()]
    assert names == [
        "naive",
        "float2",
        "grid_stride  blocks_per_sm 1",
        "blocks_per_sm 2",
        "blocks_per_sm 4",
        "float4",
        "tuned",
        "race",
    ]


def test_bars_are_as_long_as_their_rate_and_say_the_share_of_the_limit() -> None:
    axes = figure("ladder", pictured.ladder()).axes[2]
    tuned = next(row for row in pictured.ladder() if (row.name, row.n) == ("tuned", 2**26))
    assert tuned.gbps in [bar.get_width() for bar in bars(axes)]
    assert {"failed", "not run", f"{tuned.gbps:.0f}", f"{100 * (tuned.fraction or 0):.0f} %"} <= set(texts(axes))


def test_rungs_that_a_linear_axis_does_not_show_have_a_logarithmic_one() -> None:
    slow = [*pictured.ladder(), pictured.row("ladder", "single_thread", 2**26, 4.0)]
    drawn = plots.figures(pictured.META, slow, recorded=True)
    assert "ladder-log" in drawn
    assert {axes.get_xscale() for axes in drawn["ladder-log"].axes} == {"log"}
    assert {axes.get_xscale() for axes in drawn["ladder"].axes} == {"linear"}


@pytest.mark.parametrize("sizes", [(2**26,), (2**20, 2**26), (2**12, 2**20, 2**26)])
def test_the_ladders_words_have_room_at_every_number_of_panels(sizes: tuple[int, ...]) -> None:
    some = [row for row in pictured.ladder() if row.n in sizes]
    slow = pictured.row("ladder", "single_thread", 2**26, 4.0)
    for each in plots.figures(pictured.META, [*some, slow], recorded=True).values():
        assert_words_have_room(each)


@pytest.mark.parametrize("load", ["LDG.E", "LDG.E.64", "LDG.E.128.CONSTANT", "LDGSTS.E.128"])
def test_a_bar_is_of_the_load_that_was_recorded(load: str) -> None:
    """Not of the kernel that this build has by the rung's name."""
    row = pictured.row("ladder", "naive", 2**26, 1e-3, load=load)
    words = {"LDG.E": "one element", "LDG.E.64": "8 bytes", "LDGSTS.E.128": "copied past the registers"}
    (legend,) = figure("ladder", [row]).legends
    assert legend.get_texts()[0].get_text().startswith(words.get(load, "16 bytes"))


def test_variants_stand_closer_than_rungs() -> None:
    ticks = figure("ladder", pictured.ladder()).axes[0].get_yticks()
    assert list(np.diff(ticks)) == [1.5, 1.5, 1, 1, 1.5, 1.5, 1.5]


# Bytes in flight


def test_every_rung_is_a_dot_beside_the_probed_memory() -> None:
    rates, latencies = figure("inflight", pictured.inflight()).axes
    assert [axes.get_ylabel() for axes in (rates, latencies)] == ["GB/s", "until they have arrived"]
    assert labels(rates) == ["the memory, probed", "other rungs", "naive", "float2", "tuned"]
    probed, others, naive, *_ = rates.get_lines()
    assert list(probed.get_xdata()) == [512, 2048, 8192, 16384, 32768, 131072]
    assert list(others.get_xdata()) == list(naive.get_xdata()) == [24 << 10]  # 16 KiB of loads, 8 KiB of stores
    rate = next(row.gbps for row in pictured.inflight() if row.name == "naive") or 0.0
    assert list(latencies.get_lines()[2].get_ydata()) == [(24 << 10) * 132 / (rate * 1e9)]


def test_bytes_in_flight_without_a_probe_or_without_additions_have_their_half() -> None:
    rows = pictured.inflight()
    alone = figure("inflight", [row for row in rows if row.name == "probe"]).axes[0]
    assert labels(alone) == ["the memory, probed"]
    rates, latencies = figure("inflight", [row for row in rows if row.name != "probe"]).axes
    assert len(rates.get_lines()) == 5
    assert len(latencies.get_lines()) == 1


# Block size


def test_block_sizes_have_rates_occupancy_and_waves() -> None:
    rates, occupancy, waves = figure("blocksize", pictured.blocksize()).axes
    assert [axes.get_ylabel() for axes in (rates, occupancy, waves)] == ["GB/s", "occupancy", "GB/s"]
    assert "naive, best at 128 (100 % occupied)" in labels(rates)
    assert list(waves.get_lines()[0].get_xdata()) == [0.9, 1.0, 1.1, 2.0]
    assert waves.get_lines()[0].get_linestyle() == "None"  # four points are no curve
    assert max(np.asarray(occupancy.get_lines()[0].get_ydata())) == 1.0
    assert labels(occupancy) == ["naive", "coarsen2, float4"]  # the same dots for what is the same
    assert {line.get_linestyle() for line in occupancy.get_lines()[:2]} == {"None"}  # between them lies a sawtooth


def test_block_sizes_show_how_fast_blocks_start() -> None:
    limits = {**pictured.META["limits"], "launch": {"block_seconds": 0.5e-9}}
    rates = plots.figures({**pictured.META, "limits": limits}, pictured.blocksize(), recorded=True)["blocksize"].axes[0]
    assert "blocks start, 0.5 ns each:\n1, 2 and 4 elements a thread" in labels(rates)
    lines = [line for line in rates.get_lines() if line.get_zorder() == 3]
    assert [line.get_ydata()[0] for line in lines] == [12 * 32 * elements / 0.5 for elements in (1, 2, 4)]


def test_block_sizes_without_waves_have_no_panel_for_them() -> None:
    rows = [row for row in pictured.blocksize() if row.name != "waves"]
    assert len(figure("blocksize", rows).axes) == 2


# Precision


def test_precision_has_a_column_a_dtype_and_marks_the_crossover() -> None:
    panels = figure("precision", pictured.precision()).axes
    titles = [f"{dtype}, GPU ahead from 2^{k}" for dtype, k in (("float32", 14), ("float16", 10), ("bfloat16", 10))]
    assert [axes.get_title("left") for axes in panels[:3]] == titles
    assert panels[3].get_lines()[-1].get_xdata()[0] == 2**14
    assert "numpy" in labels(panels[3])
    assert "numpy" not in labels(panels[0])


@pytest.mark.parametrize(
    ("processor", "gpu", "ahead"),
    [
        ((1, 5, 9), (4, 4, 4), 2048),
        ((5, 3, 9), (4, 4, 4), 4096),
        ((5, 5, 9), (4, 4, 4), 1024),
        ((1, 1, 1), (4, 4, 4), None),
    ],
)
def test_the_gpu_is_ahead_from_where_it_stays_ahead(
    processor: tuple[float, ...], gpu: tuple[float, ...], ahead: int | None
) -> None:
    rows = [pictured.row("precision", "numpy", n, s) for n, s in zip((1024, 2048, 4096), processor, strict=True)]
    rows += [pictured.row("precision", "naive", n, s) for n, s in zip((1024, 2048, 4096), gpu, strict=True)]
    assert precision.crossover(rows) == ahead


# Latency


def test_matrices_have_rates_beside_occupancy_for_each_shape() -> None:
    panels = figure("sgemm", pictured.sgemm()).axes
    assert len(panels) == 4
    small, occupancy = panels[:2]
    assert small.get_title(loc="left") == "1024 x 1024 x 4096"
    assert [bar.get_width() for bar in bars(small)] == pytest.approx([6, 8, 30, 22, 50])
    assert [bar.get_width() for bar in bars(occupancy)] == [100, 100, 25, 50]
    assert [round(x) for x in small.lines[0].get_xdata()] == [8, 8, 60, 33], "the model's"
    assert [line.get_xdata()[0] for line in small.lines[1:]] == pytest.approx([66.9]), "the limit"
    assert texts(small) == ["6", "8", "30", "22", "50"]


def test_a_matrix_rung_that_failed_leaves_its_place_empty() -> None:
    rows = [replace(row, value=None) if row.name == "transpose_naive" else row for row in pictured.transpose()]
    rates = figure("transpose", rows).axes[0]
    assert len(bars(rates)) == 3
    assert [tick.get_text() for tick in rates.get_yticklabels()][1] == "transpose_naive"


def test_latency_has_a_column_for_each_kind_of_set() -> None:
    panels = figure("latency", pictured.latency()).axes
    assert [axes.get_title("left") for axes in panels[:2]] == [
        "independent adds\nno gain of 5 % from 10 MiB on",
        "a chain: each add needs the one before\nno gain of 5 % from 10 MiB on",
    ]
    assert "batched" in labels(panels[0])
    assert "batched" not in labels(panels[1])


def test_the_gain_has_faded_where_none_is_left_above() -> None:
    def rows(*seconds: float) -> list[Figure]:
        parameters = {"adds": 10, "chain": 0}
        return [
            pictured.row("latency", rung, n, 10 * each, parameters=parameters, seconds_per_add=each)
            for n, best in zip((256, 512, 1024), seconds, strict=True)
            for rung, each in (("launch_loop", 1.0), ("graph", best))
        ]

    assert latency.fades(rows(0.5, 0.5, 0.99)) == 4096
    assert latency.fades(rows(0.5, 0.99, 0.99)) == 2048
    assert latency.fades(rows(0.99, 0.5, 0.5)) is None


# Transfer


def test_transfers_have_a_bar_a_rung_and_a_mark_for_the_model() -> None:
    (times,) = figure("transfer", pictured.transfer()).axes
    rungs = {row.name for row in pictured.transfer() if "memory" in row.params}
    assert len(bars(times)) == len(rungs)
    assert sum(line.get_marker() == "D" for line in times.get_lines()) == len(rungs)
    assert times.get_xlabel() == "ms"


def test_transfers_have_lines_over_size() -> None:
    panels = figure("transfer-size", pictured.transfer()).axes
    assert [len(labels(axes)) - 1 for axes in panels] == [8, 8]
    assert len({axes.get_ylim() for axes in panels}) == 1


def test_what_ran_at_one_size_alone_is_a_bar_and_no_line() -> None:
    rows = pictured.transfer()
    variant = replace(rows[-20], n=2**28, name="pageable", params={"memory": "pageable", "parameters": {"kernel": 2}})
    panels = figure("transfer-size", [*rows, variant]).axes
    assert not [label for axes in panels for label in labels(axes) if "kernel" in label]
    bars_of = figure("transfer", [*rows, variant]).axes[0]
    assert "pageable (kernel 2)" in [text.get_text() for text in bars_of.get_yticklabels()]
    alone = [row for row in rows if row.n == 2**20]
    assert "transfer-size" not in plots.figures(pictured.META, alone, recorded=True)


# Roofline


def roofline(meta: dict[str, Any]) -> Axes:
    (axes,) = plots.figures(meta, pictured.precision(), recorded=True)["precision-roofline"].axes
    return axes


WITHOUT_CLOCK = {**pictured.META, "gpu": [{**pictured.META["gpu"][0], "clock": None}]}


def test_the_roofline_has_the_memorys_slope_and_the_cores_level() -> None:
    slope, level = roofline(pictured.META).get_lines()[:2]
    np.testing.assert_allclose(np.asarray(slope.get_ydata()) / np.asarray(slope.get_xdata()), pictured.LIMIT)
    peak = 132 * 128 * 1.98e9 / 1e9  # multiprocessors * float32 cores of 9.0 * clock
    np.testing.assert_allclose(level.get_ydata(), peak)
    np.testing.assert_allclose(level.get_xdata()[0], peak / pictured.LIMIT)


def test_what_the_roofline_magnifies_lies_inside_of_it() -> None:
    axes = roofline(pictured.META)
    (inset,) = axes.child_axes
    for whole, part in ((axes.get_xlim(), inset.get_xlim()), (axes.get_ylim(), inset.get_ylim())):
        assert whole[0] < part[0] < part[1] < whole[1]


@pytest.mark.parametrize("clock", [True, False], ids=["in the inset", "in the whole"])
def test_the_roofline_puts_each_dtype_at_its_intensity(clock: bool) -> None:
    dots = roofline(pictured.META).child_axes[0] if clock else roofline(WITHOUT_CLOCK)
    lines = [line for line in dots.get_lines() if line.get_linestyle() == "None"]
    (tuned,) = (line for line in lines if str(line.get_label()).startswith("tuned"))
    np.testing.assert_allclose(tuned.get_xdata(), [1 / 6, 1 / 6])
    assert all(y < x * pictured.LIMIT for line in lines for x, y in zip(*line.get_data(), strict=True))


@pytest.mark.parametrize("sweep", pictured.SWEEPS)
def test_no_text_of_an_axis_lies_on_another(sweep: str, overlaps: Callable[[Drawing], list[str]]) -> None:
    assert overlaps(figure(sweep, pictured.SWEEPS[sweep]())) == []


@pytest.fixture
def overlaps() -> Callable[[Drawing], list[str]]:
    """overlaps(figure): pairs of tick labels of one axis that lie on each other."""

    def find(figure: Drawing) -> list[str]:
        with style.applied():
            figure.draw_without_rendering()
        found = []
        for axes in figure.axes:
            for ticks in (axes.get_xticklabels(), axes.get_yticklabels()):
                shown = [tick for tick in ticks if tick.get_text() and tick.get_visible()]
                boxes = [(tick.get_text(), tick.get_window_extent()) for tick in shown]
                found += [
                    f"{a} on {b}"
                    for (a, first), (b, second) in pairwise(boxes)
                    if first.overlaps(second) and not shown[0].get_rotation()
                ]
        return found

    return find

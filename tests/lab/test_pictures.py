"""Pictures of a run, and diagrams: what each shows, how it is called, where its data come from, and nothing leaks."""

import io
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import made_up
import numpy as np
import pytest
from conftest import child_environment
from made_up import PICTURED, figure, run

from vecadd import laboratory, model
from vecadd.bench import plot
from vecadd.bench.sweeps import SWEEPS, draw_run, list_pictures
from vecadd.figures import Figure, read_run, write_run

matplotlib = pytest.importorskip("matplotlib")

from matplotlib.axes import Axes  # noqa: E402  a machine with a GPU may be without it
from matplotlib.colors import to_rgb  # noqa: E402
from matplotlib.figure import Figure as Drawing  # noqa: E402
from matplotlib.patches import Rectangle  # noqa: E402

from vecadd import diagrams  # noqa: E402

pytestmark = pytest.mark.no_native

RECORDED = sorted((Path(__file__).parents[2] / "benchmarks" / "results").glob("*/*.json"))


def draw(name: str, figures: list[Figure], **meta: Any) -> Drawing:
    of_run = run(figures, **meta)
    return plot.draw(list_pictures(of_run)[name], of_run)


def written(kind: str) -> bytes:
    target = io.BytesIO()
    plot.write(draw("size", PICTURED["size"]), target, kind)
    return target.getvalue()


def values(drawing: Drawing) -> list[float]:
    """All that is drawn as a number: heights of lines, and lengths of bars."""
    every = [*drawing.axes, *(inset for axes in drawing.axes for inset in axes.child_axes)]
    lines = [np.asarray(line.get_ydata(), float) for axes in every for line in axes.get_lines()]
    bars = [[patch.get_width() for patch in axes.patches if isinstance(patch, Rectangle)] for axes in every]
    return [float(value) for drawn in (*lines, *bars) for value in np.ravel(drawn)]


def assert_drawn(wanted: Iterable[float | None], drawing: Drawing) -> None:
    drawn = np.sort(values(drawing))
    for value in filter(None, wanted):
        at = min(np.searchsorted(drawn, value * (1 - 1e-9)), len(drawn) - 1)
        assert drawn[at] == pytest.approx(value), value


def lines_of(axes: Axes) -> dict[str, list[float]]:
    return {str(line.get_label()): list(line.get_ydata()) for line in axes.get_lines()}


# Files and names


@pytest.mark.slow
@pytest.mark.parametrize("path", RECORDED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_what_is_recorded_can_be_drawn(path: Path) -> None:
    recorded = read_run(path)
    drawn = draw_run(recorded)
    for sweep in {each.sweep for each in recorded.figures} & (SWEEPS.keys() - {"documents"}):
        assert {sweep, *(f"{sweep}-{each.dtype}" for each in recorded.figures)} & set(drawn), sweep
    for each in drawn.values():
        assert str(recorded.meta["commit"]) in str(each.get_suptitle())
        assert_words_have_room(each)


def test_a_picture_is_replaced_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "size.png").write_bytes(b"old")
    drawing = draw("size", PICTURED["size"])

    def interrupted(self: Drawing, target: Any, **options: Any) -> None:
        with target.open("wb") if isinstance(target, Path) else target as file:
            file.write(b"half of a")
            raise KeyboardInterrupt

    monkeypatch.setattr(Drawing, "savefig", interrupted)
    with pytest.raises(KeyboardInterrupt):
        plot.save({"size": drawing}, tmp_path)
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("size.png", b"old")]


def test_recorded_files_are_drawn_by_a_command(tmp_path: Path) -> None:
    write_run(tmp_path / "size.json", made_up.META, PICTURED["size"])
    command = [sys.executable, "-m", "vecadd.bench", str(tmp_path / "size.json"), str(tmp_path / "new")]
    done = subprocess.run(command, env=child_environment(), capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(tmp_path / "new" / f"size.{kind}") for kind in ("png", "svg")]
    assert (tmp_path / "new" / "size.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "new" / "size.svg").read_text().startswith("<?xml")


@pytest.mark.parametrize("kind", plot.FORMATS)
def test_the_same_run_is_the_same_file_whatever_the_callers_settings(kind: str) -> None:
    plain, before = written(kind), dict(matplotlib.rcParams)
    with matplotlib.rc_context({"font.size": 20, "axes.facecolor": "red", "svg.fonttype": "none"}):
        assert written(kind) == plain
    assert dict(matplotlib.rcParams) == before


def test_a_picture_for_each_dtype_is_called_by_it_and_what_failed_has_none() -> None:
    ladder = PICTURED["ladder"]
    both = ladder + [replace(each, dtype="float16") for each in ladder]
    slow = [*ladder, figure("ladder", "single_thread", 2**26, 4.0)]
    assert list(list_pictures(run(ladder))) == ["ladder", "roofline"]
    assert list(list_pictures(run(both))) == ["ladder-float32", "ladder-float16", "roofline"]
    assert list(list_pictures(run(slow))) == ["ladder", "ladder-log", "roofline"]
    assert {axes.get_xscale() for axes in draw("ladder-log", slow).axes} == {"log"}
    assert list_pictures(run([figure("size", "naive", 1024, None)])) == {}


def test_a_title_says_where_its_data_come_from() -> None:
    def title(name: str, *, recorded: bool = True, **meta: Any) -> str:
        of_run = run(PICTURED[name], recorded=recorded, **meta)
        shown = plot.draw(list_pictures(of_run)[name], of_run).get_suptitle()
        return str(shown).split("\n", 1)[1].replace("\n", " ")

    assert title("size") == "recorded on Made-up GPU, driver 580.1, 2026-01-02, commit 0123456789ab"
    assert title("size", recorded=False) == "measured on Made-up GPU"
    beside = "recorded on Made-up CPU, 16 threads beside Made-up GPU, 2026-01-02, commit 0123456789ab"
    assert title("host") == beside
    assert title("host", gpu=[]) == beside.replace(" beside Made-up GPU", "")


# Values


def rates(figures: Iterable[Figure]) -> list[float | None]:
    return [each.gbps for each in figures]


def test_no_two_lines_differ_in_colour_alone() -> None:
    looks = list(plot.line_styles(f"rung {index}" for index in range(16)).values())
    assert len({(look.marker, look.hollow) for look in looks}) == len(looks)


@pytest.mark.parametrize("sweep", ["size", "host", "blocksize"])
def test_rates_are_drawn_under_their_limit(sweep: str) -> None:
    drawing = draw(sweep, PICTURED[sweep])
    assert_drawn([*rates(PICTURED[sweep]), *(each.limit for each in PICTURED[sweep])], drawing)
    assert drawing.axes[0].get_ylabel() == "GB/s"


def test_what_failed_is_a_gap_in_its_line() -> None:
    figures = [replace(each, value=None) if each.n == 2**20 else each for each in PICTURED["size"]]
    assert list(np.isnan(lines_of(draw("size", figures).axes[0])["naive"])) == [n == 2**20 for n in made_up.SIZES]


def test_many_lines_are_spread_over_panels() -> None:
    figures = [replace(each, name=f"{each.name}{copy}") for copy in range(4) for each in PICTURED["size"]]
    assert [len(lines_of(axes)) - 1 for axes in draw("size", figures).axes] == [6, 6]


@pytest.mark.parametrize("load", ["LDG.E", "LDG.E.64", "LDG.E.128.CONSTANT", "LDGSTS.E.128"])
def test_a_bar_of_the_ladder_is_as_long_as_its_rate_and_of_the_load_that_was_recorded(load: str) -> None:
    """Not of the kernel that this build has by the rung's name."""
    words = {"LDG.E": "one element", "LDG.E.64": "8 bytes", "LDGSTS.E.128": "copied past the registers"}
    drawing = draw("ladder", [*PICTURED["ladder"], figure("ladder", "other", 2**26, 1e-3, load=load)])
    assert_drawn(rates(PICTURED["ladder"]), drawing)
    assert {"failed", "not run"} <= {text.get_text() for text in drawing.axes[2].texts}
    (legend,) = drawing.legends
    assert any(text.get_text().startswith(words.get(load, "16 bytes")) for text in legend.get_texts())


def test_bytes_in_flight_are_beside_the_probed_memory() -> None:
    of_rates, of_latencies = draw("inflight", PICTURED["inflight"]).axes
    probed = [each for each in PICTURED["inflight"] if each.name == "probe"]
    assert lines_of(of_rates)["the memory, probed"] == pytest.approx(rates(probed))
    assert lines_of(of_latencies)["the memory, probed"] == [each.seconds for each in probed]
    (naive,) = (each for each in PICTURED["inflight"] if each.name == "naive")
    law = (24 << 10) * 132 / ((naive.gbps or 0) * 1e9)  # 16 KiB of loads, 8 KiB of stores
    assert (lines_of(of_rates)["naive"], lines_of(of_latencies)["naive"]) == ([naive.gbps], [pytest.approx(law)])
    assert list(lines_of(draw("inflight", probed).axes[0])) == ["the memory, probed"]


def test_block_sizes_show_occupancy_waves_and_how_fast_blocks_start() -> None:
    limits = {"launch": {"block_seconds": 0.5e-9}}
    of_rates, occupancy, waves = draw("blocksize", PICTURED["blocksize"], limits=limits).axes
    starts = [line for line in of_rates.get_lines() if line.get_zorder() == 3]
    assert [line.get_ydata()[0] for line in starts] == [12 * 32 * elements / 0.5 for elements in (1, 2, 4)]
    assert (lines_of(occupancy)["naive"], lines_of(occupancy)["float4"]) == ([0.5, 1.0, 1.0], [0.5, 1.0])
    assert list(waves.get_lines()[0].get_xdata()) == [0.9, 1.0, 1.1]


def test_precision_has_rates_above_times_and_marks_where_the_gpu_is_ahead() -> None:
    figures = PICTURED["precision"]
    drawing = draw("precision", figures)
    assert_drawn(rates(each for each in figures if each.name != "numpy"), drawing)
    assert_drawn([each.seconds for each in figures], drawing)
    assert [axes.get_title("left") for axes in drawing.axes[:2]] == ["float32, GPU ahead from 2^20", "float16"]


@pytest.mark.parametrize("sweep", ["transpose", "sgemm"])
def test_matrices_have_rates_beside_occupancy(sweep: str) -> None:
    figures = [replace(each, value=None) if each.name.endswith("naive") else each for each in PICTURED[sweep]]
    drawing = draw(sweep, figures)
    scale = 1.0 if sweep == "transpose" else 2 * 4096 / 12 / 1e3  # GB/s as 1e12 operations a second
    assert_drawn([scale * (rate or 0) for rate in rates(figures)], drawing)
    assert_drawn([100 * each.params.get("occupancy", 0) for each in figures], drawing)
    assert [tick.get_text() for tick in drawing.axes[0].get_yticklabels()] == [
        each.name for each in figures if each.n == figures[0].n
    ]


def test_small_additions_cost_what_one_of_them_takes_and_gain_over_a_loop() -> None:
    figures = PICTURED["latency"]
    drawing = draw("latency", figures)
    assert_drawn([each.params["seconds_per_add"] for each in figures], drawing)
    assert drawing.axes[0].get_title("left") == "independent adds\nno gain of 5 % from 10 MiB on"
    graph = next(each for each in figures if each.name == "graph")
    assert_drawn([3.9e-6 / graph.params["seconds_per_add"]], drawing)


def test_transfers_have_a_bar_a_rung_a_mark_for_the_model_and_lines_over_size() -> None:
    figures = PICTURED["transfer"]
    trips = [each for each in figures if "memory" in each.params and "stage" not in each.params]
    largest = [each for each in trips if each.n == max(made_up.SIZES)]
    (times,) = draw("transfer", figures).axes
    assert [text.get_text() for text in times.get_yticklabels()] == [each.label for each in largest]
    assert_drawn([1e3 * (each.seconds or 0) for each in largest], draw("transfer", figures))
    marks = [line.get_xdata()[0] for line in times.get_lines() if line.get_marker() == "D"]
    assert marks == [1e3 * each.params["model_seconds"] for each in largest]
    assert_drawn(rates(trips), draw("transfer-size", figures))
    assert "transfer-size" not in list_pictures(run(largest))


def test_a_stage_is_a_bar_of_its_parts() -> None:
    stages = [each for each in PICTURED["transfer"] if "stage" in each.params]
    drawing = draw("stages", PICTURED["transfer"])
    assert_drawn([1e3 * seconds for each in stages for seconds in each.params["stages"].values()], drawing)
    assert_drawn([1e3 * (each.seconds or 0) for each in stages], drawing)


def test_every_chunk_of_a_timeline_is_in_its_lane_and_what_waits_counts_for_nothing() -> None:
    """Two streams queue an upload of 2 ms each at once: the link carries the one, then the other."""
    queued = [["to_device", 0, 0, 0.0, 0.002], ["to_device", 1, 1, 0.0, 0.004]]
    (axes,) = draw("timeline", [figure("transfer", "streams2", 2**20, 4e-3, timeline=queued)]).axes
    assert "to_device 4" in axes.get_title("left")
    spans = [
        [(path.vertices[:, 0].min(), path.vertices[:, 0].max()) for path in collection.get_paths()]
        for collection in axes.collections
    ]
    assert spans == [[(0.0, 0.0)], [(0.0, 2.0)], [(0.0, 2.0)], [(2.0, 4.0)]]  # of each stream: waits, works


def test_of_many_streams_and_rungs_a_timeline_shows_the_first_and_goes_on_on_another_page() -> None:
    crowd = figure("transfer", "staged", 2**20, 4e-3, timeline=made_up.lanes(32, 64, 0.0027, 0.0001, 0.0014))
    (axes,) = draw("timeline", [crowd]).axes
    assert {text.get_text().split("  ")[0] for text in axes.get_yticklabels()} == {f"stream {i}" for i in range(4)}
    several = run([replace(crowd, name=f"rung {copy}") for copy in range(12)])
    pages = [plot.draw(each, several) for name, each in list_pictures(several).items() if name.startswith("timeline")]
    assert [len(page.axes) for page in pages] == [3, 3, 3, 3]


def test_the_roofline_has_the_memorys_slope_the_cores_level_and_each_dtype_at_its_intensity() -> None:
    (axes,) = draw("precision-roofline", PICTURED["precision"]).axes
    slope, level = axes.get_lines()[:2]
    limit = max(each.limit or 0 for each in PICTURED["precision"])
    np.testing.assert_allclose(np.asarray(slope.get_ydata()) / np.asarray(slope.get_xdata()), limit)
    np.testing.assert_allclose(level.get_ydata(), 132 * 128 * 1.98e9 / 1e9)  # multiprocessors * cores of 9.0 * clock
    dots = [line for line in axes.child_axes[0].get_lines() if line.get_linestyle() == "None"]
    assert {x for line in dots for x in line.get_xdata()} == {1 / 12, 1 / 6}
    without_clock = [{**made_up.META["gpu"][0], "clock": None}]
    (plain,) = draw("precision-roofline", PICTURED["precision"], gpu=without_clock).axes
    assert plain.child_axes == []


@pytest.mark.parametrize("name", PICTURED)
def test_words_have_room(name: str) -> None:
    for drawing in draw_run(run(PICTURED[name])).values():
        assert_words_have_room(drawing)


def assert_words_have_room(drawing: Drawing) -> None:
    """Titles and legends are inside the drawing, named axes have ticks, and no two level ticks of an axis overlap."""
    with plot.applied_style():
        drawing.draw_without_rendering()

    def boxes(words: Iterable[Any]) -> list[Any]:
        return [word.get_window_extent() for word in words if word.get_visible() and word.get_text()]

    titles = [drawing._suptitle, *(axes._left_title for axes in drawing.axes)]  # type: ignore[attr-defined]
    for box in [*boxes(titles), *(legend.get_window_extent() for legend in drawing.legends)]:
        assert drawing.bbox.x0 <= box.x0 <= box.x1 <= drawing.bbox.x1
        assert drawing.bbox.y0 <= box.y0 <= box.y1 <= drawing.bbox.y1
    for axes in filter(Axes.get_visible, drawing.axes):
        assert not axes.get_xlabel() or any(boxes(axes.get_xticklabels())), "an axis that is named has its ticks named"
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            ticks = [
                tick
                for tick in axis.get_major_ticks()
                if low <= tick.get_loc() <= high and not tick.label1.get_rotation()
            ]
            for before, after in pairwise(boxes(tick.label1 for tick in ticks)):
                assert not before.overlaps(after), [tick.label1.get_text() for tick in ticks]


# The diagrams: their words have room, and what they count is counted, not written.

every = pytest.mark.parametrize("name", diagrams.DIAGRAMS)


@every
def test_its_words_are_on_the_sheet_on_no_others_and_fit_into_their_boxes(name: str) -> None:
    figure = diagrams.draw(name)
    with plot.applied_style():
        figure.draw_without_rendering()
    boxes = {text.get_text() + str(text.get_position()): text.get_window_extent() for text in figure.axes[0].texts}
    for box in boxes.values():
        assert figure.bbox.x0 <= box.x0 <= box.x1 <= figure.bbox.x1
        assert figure.bbox.y0 <= box.y0 <= box.y1 <= figure.bbox.y1
    assert [(a, b) for a, b in combinations(boxes, 2) if boxes[a].overlaps(boxes[b])] == []
    (axes,) = figure.axes
    frames = [patch.get_window_extent() for patch in axes.patches if isinstance(patch, Rectangle)]
    for text in axes.texts:
        words = text.get_window_extent()
        x, y = (words.x0 + words.x1) / 2, (words.y0 + words.y1) / 2
        about = [frame for frame in frames if frame.contains(x, y)]
        assert all(frame.x0 <= words.x0 and words.x1 <= frame.x1 for frame in about), text.get_text()


@every
def test_words_on_a_fill_can_be_read_in_grey(name: str) -> None:
    (axes,) = diagrams.draw(name).axes
    for patch in axes.patches:
        if isinstance(patch, Rectangle):
            centre = (patch.get_x() + patch.get_width() / 2, patch.get_y() + patch.get_height() / 2)
            worded = any(text.get_position() == centre for text in axes.texts)
            red, green, blue = to_rgb(patch.get_facecolor())
            assert not worded or 0.299 * red + 0.587 * green + 0.114 * blue > 0.5


@every
def test_a_notebook_gets_it_with_its_text(name: str) -> None:
    png, metadata = laboratory.diagram(name)._repr_png_()
    assert png.startswith(b"\x89PNG")
    assert metadata["alt"] == diagrams.DIAGRAMS[name].text
    assert len(metadata["alt"]) > 100


def test_an_unknown_diagram_is_refused_and_a_near_one_named() -> None:
    with pytest.raises(ValueError, match=r"no diagram is called 'thread'; did you mean threads\?"):
        laboratory.diagram("thread")


@pytest.mark.parametrize(
    ("first", "stride", "touched"), [(0, 1, 4), (1, 1, 5), (8, 1, 4), (0, 2, 8), (0, 8, 32), (0, 32, 32)]
)
def test_sectors_that_a_warps_loads_touch_are_counted(first: int, stride: int, touched: int) -> None:
    assert len(diagrams.sectors(first, stride)) == touched


@pytest.mark.parametrize("parts", [1, 2, 4, 64])
def test_the_copy_engines_take_as_long_as_the_model_says(parts: int) -> None:
    assert diagrams.end(parts) == pytest.approx(model.overlap(diagrams.UP, diagrams.ADD, diagrams.DOWN, parts))


def test_an_engine_does_one_thing_at_a_time_and_a_part_one_step_after_the_other() -> None:
    spans = diagrams.schedule(4)
    for engine in spans.values():
        assert all(before[1] <= after[0] for before, after in pairwise(engine))
    for up, add, down in zip(spans["to_device"], spans["kernel"], spans["to_host"], strict=True):
        assert up[1] <= add[0] < add[1] <= down[0]


def test_padding_spreads_a_column_over_all_banks() -> None:
    for column in range(diagrams.BANKS):
        assert {diagrams.bank(row, column, 0) for row in range(diagrams.BANKS)} == {column}
        assert {diagrams.bank(row, column, 1) for row in range(diagrams.BANKS)} == set(range(diagrams.BANKS))

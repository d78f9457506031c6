"""Pictures of a transfer's stages and of when each of its steps ran."""

from dataclasses import replace

import numpy as np
import pictured
import pytest
from figures import bars, figure, texts

from vecadd.bench import plots

pytestmark = pytest.mark.no_native

# Stages


def test_a_stage_is_a_bar_of_its_parts() -> None:
    (axes,) = figure("stages", pictured.transfer()).axes
    names = [text.get_text() for text in axes.get_yticklabels()]
    assert names == ["single_thread", "single_block", "grid_stride", "pinned", "streams4"]
    parts = np.array([bar.get_width() for bar in bars(axes)]).reshape(5, 4)
    np.testing.assert_allclose(parts[0], [929, 21, 900, 8])
    assert axes.get_xscale() == "log"
    assert {"929 ms", "900 ms", "21 ms", "8 ms"} <= set(texts(axes))
    assert all(text.get_bbox_patch() is not None for text in axes.texts)  # white, over the grid's lines


def test_stages_and_a_cold_start_are_no_round_trips() -> None:
    times = figure("transfer", pictured.transfer()).axes[0]
    names = [text.get_text() for text in times.get_yticklabels()]
    assert len(names) == len(set(names))
    assert "cold_start" not in names


# Timeline


def test_a_timeline_has_a_lane_for_each_stream_and_kind() -> None:
    panels = {
        axes.get_title("left").split()[0].strip(":"): axes for axes in figure("timeline", pictured.transfer()).axes
    }
    assert set(panels) == {"pageable", "pinned", "pinned_reused", "stream1_pinned", "streams2", "streams4"}
    names = [text.get_text() for text in panels["streams2"].get_yticklabels()]
    assert names == [f"stream {stream}  {what}" for stream in (0, 1) for what in ("to_device", "kernel", "to_host")]
    assert panels["pinned"].get_yticklabels()[0].get_text() == "host  allocate"


def test_of_many_streams_a_timeline_shows_the_first() -> None:
    row = next(row for row in pictured.transfer() if "timeline" in row.params)
    crowd = replace(row, params={**row.params, "timeline": pictured.lanes(32, 64, 0.0027, 0.0001, 0.0014)})
    (axes,) = plots.figures(pictured.META, [crowd], recorded=True)["timeline"].axes
    assert {text.get_text().split("  ")[0] for text in axes.get_yticklabels()} == {f"stream {i}" for i in range(4)}
    assert axes.get_title("left").endswith(", 4 of 32 streams")


def test_every_chunk_is_in_its_lane() -> None:
    events = pictured.lanes(2, 16, 0.0027, 0.0001, 0.0014)
    axes = next(
        axes for axes in figure("timeline", pictured.transfer()).axes if axes.get_title("left").startswith("streams2")
    )
    lanes = [collection.get_paths() for collection in axes.collections][1::2]  # the bars of what waits come before each
    assert [len(paths) for paths in lanes] == [8] * 6
    begins = sorted(path.vertices[:, 0].min() for path in lanes[0])
    assert begins == pytest.approx([1e3 * e[3] for e in events if (e[0], e[1]) == ("to_device", 0)])


def test_what_waits_for_the_link_is_pale_and_counts_for_nothing() -> None:
    """Two streams queue an upload of 2 ms each at once: the link carries the one, then the other."""
    row = next(row for row in pictured.transfer() if "timeline" in row.params)
    queued = [["to_device", 0, 0, 0.0, 0.002], ["to_device", 1, 1, 0.0, 0.004]]
    drawn = plots.figures(pictured.META, [replace(row, params={**row.params, "timeline": queued})], recorded=True)
    (axes,) = drawn["timeline"].axes
    assert "to_device 4" in axes.get_title("left")
    spans = [
        [(path.vertices[:, 0].min(), path.vertices[:, 0].max()) for path in collection.get_paths()]
        for collection in axes.collections
    ]
    assert spans == [[(0.0, 0.0)], [(0.0, 2.0)], [(0.0, 2.0)], [(2.0, 4.0)]]  # of each stream: waits, works


def test_long_timelines_go_on_on_another_page() -> None:
    rows = [row for row in pictured.transfer() if "timeline" in row.params]
    others = [replace(row, name=f"{row.name}_again") for row in rows]
    drawn = plots.figures(pictured.META, rows + others + rows, recorded=True)
    assert "timeline-2" in drawn
    assert sum(len(drawn[name].axes) for name in drawn if name.startswith("timeline")) == 2 * len(rows)

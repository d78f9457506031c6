"""The diagrams: their words have room, and what they count is counted, not written."""

from itertools import combinations, pairwise

import pytest

matplotlib = pytest.importorskip("matplotlib")

from matplotlib.colors import to_rgb  # noqa: E402  a machine with a GPU may be without it
from matplotlib.patches import Rectangle  # noqa: E402

from vecadd import diagrams, laboratory, model  # noqa: E402
from vecadd.bench import plot  # noqa: E402

pytestmark = pytest.mark.no_native

every = pytest.mark.parametrize("name", diagrams.DIAGRAMS)


@every
def test_its_words_are_on_the_sheet_and_on_no_others(name: str) -> None:
    figure = diagrams.draw(name)
    with plot.applied_style():
        figure.draw_without_rendering()
    boxes = {text.get_text() + str(text.get_position()): text.get_window_extent() for text in figure.axes[0].texts}
    for box in boxes.values():
        assert figure.bbox.x0 <= box.x0 <= box.x1 <= figure.bbox.x1
        assert figure.bbox.y0 <= box.y0 <= box.y1 <= figure.bbox.y1
    assert [(a, b) for a, b in combinations(boxes, 2) if boxes[a].overlaps(boxes[b])] == []


@every
def test_words_in_a_box_fit_into_it(name: str) -> None:
    figure = diagrams.draw(name)
    with plot.applied_style():
        figure.draw_without_rendering()
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


def test_a_diagram_that_is_none_is_refused_and_a_near_one_named() -> None:
    with pytest.raises(ValueError, match=r"no diagram is called 'thread'; did you mean threads\?"):
        laboratory.diagram("thread")


@pytest.mark.parametrize(
    ("first", "stride", "touched"), [(0, 1, 4), (1, 1, 5), (8, 1, 4), (0, 2, 8), (0, 8, 32), (0, 32, 32)]
)
def test_a_warps_loads_touch_so_many_sectors(first: int, stride: int, touched: int) -> None:
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

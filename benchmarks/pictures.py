"""Draws the pictures of the documents, docs/pictures/*.png, from the recorded results.

    python -m benchmarks.pictures

Each file names in its text chunk "Source" the recorded run that it was drawn from; a test compares the two.
"""

import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vecadd.figures import read_run

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
FOLDER = ROOT / "docs" / "pictures"

SOURCE = "Source"
COLOURS = 48  # of the palette, in an octree, which keeps the few pixels of a rare colour: a third of the bytes


@dataclass(frozen=True)
class Picture:
    """A picture of `vecadd bench` and the recorded file that it is drawn from."""

    file: str
    figure: str

    @property
    def path(self) -> Path:
        return RESULTS / self.file


PICTURES: Mapping[str, Picture] = {
    "device-sizes": Picture("h200/size.json", "size"),
    "ladder": Picture("h200/ladder.json", "ladder"),
    "bytes-in-flight": Picture("h200/inflight.json", "inflight"),
    "transfer-timeline": Picture("h200/transfer.json", "timeline"),
    "small-additions": Picture("h200/latency.json", "latency"),
    "host-sizes": Picture("h200/host.json", "host"),
}


def source(picture: Picture, meta: Mapping[str, Any]) -> str:
    """The recorded run, as the picture's file names it."""
    return f"{picture.file}, {meta['date']}, commit {meta['commit']}"


def draw(picture: Picture) -> bytes:
    """The picture as a PNG file. Raises ValueError where the file has nothing to draw it from."""
    from PIL import Image, PngImagePlugin

    from vecadd.bench import plot
    from vecadd.bench.sweeps import draw_picture

    run = read_run(picture.path)
    drawing = draw_picture(run, picture.figure)
    if drawing is None:
        raise ValueError(f"{picture.path} has no rows for the figure {picture.figure!r}")
    drawn, written = io.BytesIO(), io.BytesIO()
    plot.write(drawing, drawn, "png")
    text = PngImagePlugin.PngInfo()
    text.add_text(SOURCE, source(picture, run.meta))
    few = Image.open(drawn).convert("RGB").quantize(COLOURS, method=Image.Quantize.FASTOCTREE)
    few.save(written, "png", optimize=True, pnginfo=text)
    return written.getvalue()


def main() -> None:
    """Writes every picture."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, picture in PICTURES.items():
        path = FOLDER / f"{name}.png"
        path.write_bytes(draw(picture))
        print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()

"""Where things are: the host's memory, the link and its copy engines, the GPU's memory, its L2, its multiprocessors."""

from matplotlib.figure import Figure

from vecadd.bench import plot
from vecadd.diagrams.canvas import Canvas

TEXT = (
    "On the left the host: its processor and its memory. A link, PCIe, leads to the GPU on the right; one copy "
    "engine works it upwards, another downwards, at the same time. In the GPU, from the bottom: device memory, the "
    "L2 cache that all share, and a row of multiprocessors, SM 0 to SM 131 of an H200. A magnified multiprocessor "
    "has 4 schedulers, 32 lanes to each, registers, and memory that serves as L1 cache and as shared memory."
)


def figure() -> Figure:
    """The host on the left, the GPU on the right."""
    sheet = Canvas(4.1)
    sheet.words(0.75, 0.15, "host", align="center")
    sheet.box(0.1, 0.3, 1.3, 3.65)
    sheet.box(0.25, 0.5, 1.0, 1.0, "processor", fill=plot.PALE)
    sheet.box(0.25, 2.9, 1.0, 0.9, "memory\n(pageable,\npage-locked)", size=7)
    sheet.words(2.1, 3.03, "copy engine, up", align="center", size=7)
    sheet.words(2.1, 3.48, "copy engine, down", align="center", size=7)
    sheet.words(2.1, 3.8, "PCIe link", align="center", size=7)
    sheet.words(4.9, 0.15, "GPU (an H200's numbers)", align="center")
    sheet.box(2.8, 0.3, 4.3, 3.65)
    sheet.box(3.0, 2.95, 3.9, 0.85, "device memory, 141 GB", fill=plot.SKY)
    sheet.box(3.0, 2.25, 3.9, 0.4, "L2 cache, shared by all", fill=plot.PALE)
    sheet.arrow((0.75, 1.5), (0.75, 2.9), both=True)
    sheet.arrow((1.25, 3.15), (3.0, 3.15))
    sheet.arrow((3.0, 3.6), (1.25, 3.6))
    sheet.arrow((4.95, 2.65), (4.95, 2.95), both=True)
    for number, name in enumerate(("SM 0", "SM 1", "…", "SM 131")):
        x = 5.05 + number * 0.48
        sheet.box(x, 0.5, 0.42, 1.45, name, size=6.5, fill=plot.ORANGE if number == 0 else "white")
        sheet.arrow((x + 0.21, 1.95), (x + 0.21, 2.25), both=True)
    sheet.box(3.0, 0.5, 1.8, 1.45)
    sheet.words(3.9, 0.62, "SM: a multiprocessor", align="center", size=7)
    for number in range(4):
        sheet.box(3.08 + number * 0.42, 0.75, 0.38, 0.44, "32\nlanes", size=6.5, fill=plot.PALE)
    sheet.box(3.08, 1.25, 1.64, 0.28, "registers, 256 KiB", size=7)
    sheet.box(3.08, 1.58, 1.64, 0.3, "L1 / shared, 256 KiB", size=7)
    sheet.line((4.8, 0.5), (5.05, 0.5))
    sheet.line((4.8, 1.95), (5.05, 1.95))
    return sheet.figure

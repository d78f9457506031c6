"""From CUDA C++ to what a GPU executes: nvcc, PTX, SASS, and the driver."""

from matplotlib.figure import Figure

from vecadd.bench import plot
from vecadd.diagrams.canvas import Canvas

CUDA = "c[i] = a[i] + b[i];"
# What nvcc 13 makes of it for compute capability 9.0; the descriptors before the addresses of SASS are left out.
PTX = (
    "ld.global.f32 %f1, [%rd12];",
    "ld.global.f32 %f2, [%rd10];",
    "add.f32 %f3, %f2, %f1;",
    "st.global.f32 [%rd14], %f3;",
)
SASS = ("LDG.E R5, [R4.64]", "LDG.E R2, [R2.64]", "FADD R9, R2, R5", "STG.E [R6.64], R9")

TEXT = (
    "Three boxes from left to right. CUDA C++, one line: c[i] = a[i] + b[i]. nvcc's first half turns it into PTX, "
    "an assembly language that a driver compiles for later GPUs: two ld.global.f32, add.f32, st.global.f32. Its second "
    "half, ptxas, turns PTX into SASS, the instructions of one kind of GPU: two LDG.E, FADD, STG.E. Below: the file "
    "holds both; the driver takes SASS that fits the GPU, else it compiles the PTX at the kernel's first use."
)


def figure() -> Figure:
    """The same addition in three languages, and who translates."""
    sheet = Canvas(2.7)
    for x, width, name, lines in (
        (0.1, 1.7, "CUDA C++", (CUDA,)),
        (2.45, 2.3, "PTX: for GPUs to come", PTX),
        (5.4, 1.7, "SASS: for this GPU", SASS),
    ):
        sheet.words(x + width / 2, 0.15, name, align="center")
        sheet.box(x, 0.3, width, 0.95, "\n".join(lines), mono=True, size=6.5, fill=plot.PALE)
    sheet.arrow((1.8, 0.78), (2.45, 0.78))
    sheet.words(2.12, 0.62, "nvcc", align="center", size=7)
    sheet.arrow((4.75, 0.78), (5.4, 0.78))
    sheet.words(5.07, 0.62, "ptxas", align="center", size=7)
    sheet.box(2.45, 1.75, 4.65, 0.34, "the program or the .so file holds both", size=7.5)
    sheet.arrow((3.6, 1.25), (3.6, 1.75))
    sheet.arrow((6.25, 1.25), (6.25, 1.75))
    sheet.words(
        4.78, 2.45, "the driver takes SASS that fits the GPU; without it, it compiles the PTX now", align="center"
    )
    sheet.arrow((4.78, 2.09), (4.78, 2.35))
    return sheet.figure

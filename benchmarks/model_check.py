"""What vecadd.model expects of each cell of recorded runs, beside what was measured.

    python -m benchmarks.model_check FILE...
    python -m benchmarks.model_check FILE --misses

Prints a line a cell, the share of cells within 10 %, and the known reasons for the others; ``--misses`` leaves out the
cells within 10 %. Transfers are left out: the model gives their least possible time, and ``vecadd bench transfer``
shows it beside them. Rows that the model does not cover (host rungs, calls, limits that were not probed) are counted
separately.
"""

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vecadd import _core
from vecadd.figures import Figure, Run, read_run
from vecadd.model import Limits, Prediction, predict

WITHIN = 0.10

# Why the model misses some rungs: effects that it leaves out, seen on an H200. A name is a rung, or a sweep and a rung.
# "Probably" marks reasons that were not measured.
EXPLAINED: Sequence[tuple[tuple[str, ...], str]] = (
    (("race",), "probably warps that store to and load from one address delay each other; no probe has two of them"),
    (("divergent", "strided"), "accesses to sectors in part are slower than to whole ones, which the L2's probe makes"),
    (("coarsen2", "coarsen4"), "lookups, loads and partial stores add up, where small or narrow grids overlap them"),
    (("block_shape", "index_dim3", "offset"), "an index's instructions, and threads without work, are counted roughly"),
    (("block_range",), "probably its blocks, in ranges of their own, meet at DRAM banks; the probes go in order"),
    (
        ("grid_stride", "waves", "unroll2", "unroll4", "float2_unroll2", "float4_unroll2"),
        "how far threads of a loop stay in step is not known: each waits for half of the queue to all of it",
    ),
    (("async_copy", "bulk_copy", "bulk_tensor_copy"), "the steps through shared memory are not counted"),
    (("tuned",), "blocks of 768 and 1024 threads take longer to start than the probe's, of 64 threads"),
    (("blocksize naive", "blocksize float2"), "blocks wait for their last warp by an average, not by DRAM's order"),
    (("single_thread", "single_block"), "a store's part of an element's time is not counted"),
    (("single_block_chunked",), "probably stores and fills compete for the L1's lookups, which are roughly counted"),
    (("chunked", "graph"), "probably a kernel that follows another finds the memory busy with its stores"),
    (
        ("launch_loop", "pdl", "pdl_trigger"),
        "the host's time for a launch differs by a third between minutes, and the launches' probe is of one moment",
    ),
    (("graph_pdl_trigger",), "as graph: probably a kernel that follows another finds the memory busy with its stores"),
    (("transpose_naive",), "as divergent and strided: its stores fill a quarter of a sector each"),
    (
        ("transpose_copy", "transpose_padded", "transpose_copy_float4"),
        "blocks of 1024 threads start more slowly than the probe's, of 64; and a barrier is not counted",
    ),
    (("sgemm_naive", "sgemm_shared"), "how far loads and multiplications overlap, and which loads the compiler joins"),
    (
        ("sgemm_tiled", "sgemm_tuned"),
        "banks that several threads of a warp want at once, and the instructions that fill the squares",
    ),
    (("batched",), "the rung fills its table through a description of each addition, which no probe has"),
)
SWEEPS = ("size", "ladder", "blocksize", "precision", "latency", "transpose", "sgemm")


@dataclass(frozen=True)
class Compared:
    """A cell: what was measured and what was expected, in seconds."""

    sweep: str
    name: str
    measured: float
    prediction: Prediction

    @property
    def error(self) -> float:
        """The prediction's error relative to the measured time; below 0 where the model is faster."""
        return self.prediction.seconds / self.measured - 1

    @property
    def within(self) -> bool:
        return abs(self.error) <= WITHIN

    def line(self) -> str:
        return (
            f"{self.name:58} {1e6 * self.measured:12.2f} {1e6 * self.prediction.seconds:12.2f} "
            f"{100 * self.error:+7.1f} %  {self.prediction.dominant}"
        )


def compare(run: Run) -> tuple[list[Compared], Counter[str]]:
    """The cells of a run that the model covers, and the number of the others by reason."""
    gpu = run.meta["gpu"][0] if run.meta["gpu"] else {}
    limits = Limits.of(run.meta["limits"])
    rungs = {rung["name"]: rung for rung in _core.rungs()}
    compared, left_out = [], Counter[str]()
    for figure in run.figures:
        if figure.sweep not in SWEEPS or figure.name not in rungs:
            continue
        if not figure.seconds:
            left_out["failed"] += 1
            continue
        try:
            compared.append(_compared(figure, figure.seconds, rungs[figure.name], gpu, limits))
        except ValueError as error:
            left_out[str(error)] += 1
    return compared, left_out


def explanations(misses: Sequence[Compared]) -> dict[str, list[Compared]]:
    """The misses by explanation; misses without one under ""."""
    found: dict[str, list[Compared]] = {}
    for cell in misses:
        rung = cell.name.split()[1]
        why = (reason for names, reason in EXPLAINED if {rung, f"{cell.sweep} {rung}"} & set(names))
        found.setdefault(next(why, ""), []).append(cell)
    return found


def _compared(
    figure: Figure, seconds: float, rung: Mapping[str, Any], gpu: Mapping[str, Any], limits: Limits
) -> Compared:
    chosen, block = figure.params.get("parameters", {}), figure.params.get("block", 0)
    prediction = predict(rung, None, gpu, limits, figure.dtype, figure.n, chosen, block=block)
    shown = " ".join(f"{name}={value}" for name, value in {**chosen, "block": block}.items() if value)
    name = f"{figure.sweep} {figure.name} {figure.dtype} {figure.n} {shown}"
    return Compared(figure.sweep, name, seconds, prediction)


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0 where nine tenths of the cells are within 10 %, else 1."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.model_check", description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--misses", action="store_true", help="leave out the cells within 10 %%")
    chosen = parser.parse_args(arguments)
    compared, left_out = [], Counter[str]()
    print(f"{'cell':58} {'measured us':>12} {'expected us':>12} {'error':>9}  decided by")
    for path in chosen.files:
        of_file, others = compare(read_run(path))
        for cell in of_file:
            if not (chosen.misses and cell.within):
                print(cell.line())
        compared += of_file
        left_out += others
    for why, count in left_out.items():
        print(f"not covered, {count} rows: {why}")
    for why, cells in explanations([cell for cell in compared if not cell.within]).items():
        rungs = ", ".join(dict.fromkeys(cell.name.split()[1] for cell in cells))
        errors = ", ".join(f"{100 * cell.error:+.0f} %" for cell in cells)
        print(f"missed, {len(cells)} rows of {rungs} ({errors}): {why or 'nothing explains it'}")
    for sweep in dict.fromkeys(cell.sweep for cell in compared):
        cells = [cell for cell in compared if cell.sweep == sweep]
        print(f"{sweep}: {sum(cell.within for cell in cells)} of {len(cells)} cells within 10 %")
    within = sum(cell.within for cell in compared)
    print(f"{within} of {len(compared)} cells within 10 % ({100 * within / max(1, len(compared)):.1f} %)")
    return 0 if compared and within >= (1 - WITHIN) * len(compared) else 1


if __name__ == "__main__":
    raise SystemExit(main())

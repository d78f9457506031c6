"""What the refuted claims teach: paragraphs whose figures are read off the recorded rows and the documents."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.claims.picks import Pick, blocksize, ladder, matrix, waves
from benchmarks.claims.quantities import (
    NotRecordedError,
    Quantity,
    Recorded,
    element,
    figure,
    from_rows,
    gain,
    limit_share,
    param,
    percent,
    plain,
    printed,
    seconds_of,
)
from vecadd.bench import recorded
from vecadd.bench.results import Row
from vecadd.bench.show import show_seconds

_BLOCK_THREADS = 256  # of single_block: each has one element in flight, by three loads, one of the sum that it adds to
_THEIR_ELEMENT = figure("single_block", "004a") / (recorded.SETTINGS["004a"].elements or 1)
_BLOCK, _NAIVE, _SMALL, _LOOPING = (
    ladder("single_block"), ladder("naive"), blocksize("naive", 64), blocksize("float4_unroll2", 32)
)  # fmt: skip


@dataclass(frozen=True)
class Lesson:
    """A paragraph, whose names in braces are those of its figures."""

    title: str
    text: str
    figures: Mapping[str, Quantity[Any]]


def paragraphs(rows: Sequence[Row]) -> dict[str, str]:
    """The paragraphs by their titles, without those that need a row that is not recorded."""
    found = {}
    for lesson in _LESSONS:
        kept = Recorded(rows)
        try:
            figures = {name: quantity.show(quantity.of(kept)) for name, quantity in lesson.figures.items()}
        except NotRecordedError:
            continue
        found[lesson.title] = lesson.text.format(**figures)
    return found


def _wait(element_seconds: float) -> float:
    """How long a load of single_block takes, by Little's law: what is in flight, over the rate."""
    return _BLOCK_THREADS * element_seconds


def _probe(pick: Any, name: str) -> Quantity[float]:
    """A column of the probe's row with the fewest (min) or the most bytes in flight (max)."""

    def of(rows: Recorded) -> float:
        found = rows.by_size(Pick("inflight", "probe"))
        row = found[pick(found)]
        return seconds_of(row) if name == "seconds" else float(row.params[name]) / 1024

    return Quantity(of, show_seconds if name == "seconds" else plain)


_LESSONS = (
    Lesson(
        "One block",
        "A block of 256 threads takes {ours} an element on an H200 and {theirs} on document 004's RTX 4060 Ti. On both "
        "its threads have 3 KiB of loads in flight. By Little's law a load takes {our_wait} on the H200 and "
        "{their_wait} on the smaller card. The large GPU is no faster where one block works: it has more "
        "multiprocessors and more bandwidth, and a program must ask for both. With eight blocks on each of its "
        "multiprocessors the same loop is {grid} as fast.",
        {
            "ours": element(_BLOCK),
            "theirs": printed(lambda: _THEIR_ELEMENT, show_seconds),
            "our_wait": from_rows(lambda rows: _wait(element(_BLOCK).of(rows)), show_seconds),
            "their_wait": printed(lambda: _wait(_THEIR_ELEMENT), show_seconds),
            "grid": gain(_BLOCK, ladder("grid_stride", blocks_per_sm=8)),
        },
    ),
    Lesson(
        "Transactions",
        "Document 004 reckons with bursts of 128 bytes. By that, a warp that begins 64 bytes past a boundary costs "
        "two, a block 16 threads wide wastes half of each, and elements 32 apart cost 32 times as much. On an H200 "
        "the three take {offset}, {half} and {strided} the time. What moves is a sector of 32 bytes, from memory a "
        "pair of them. The shifted warp shares its two lines with its neighbours, and their halves come from a cache. "
        "A row of 16 threads fills two whole sectors. Elements 32 apart move 64 bytes for 4, a factor of 16.",
        {
            "offset": gain(ladder("offset", offset=16), _NAIVE),
            "half": gain(ladder("block_shape", x=16, y=2), ladder("block_shape", x=32, y=2)),
            "strided": gain(ladder("strided", stride=32), _NAIVE),
        },
    ),
    Lesson(
        "Occupancy against time",
        "`naive` with 64 threads a block has {small} of occupancy and reaches {small_rate} of the limit. "
        "`float4_unroll2` with 32 threads has {looping} and reaches {looping_rate}. `float4` is {float4} as fast as "
        "`naive`, with the same occupancy. Of the products `sgemm_tiled` has {tiled}; `sgemm_tuned` has {tuned} and "
        "is {product} as fast. What counts is what is in flight, and how often each load serves.",
        {
            "small": param(_SMALL, "occupancy", percent),
            "small_rate": limit_share(_SMALL),
            "looping": param(_LOOPING, "occupancy", percent),
            "looping_rate": limit_share(_LOOPING),
            "float4": gain(_NAIVE, ladder("float4")),
            "tiled": param(matrix("sgemm_tiled"), "occupancy", percent),
            "tuned": param(matrix("sgemm_tuned"), "occupancy", percent),
            "product": gain(matrix("sgemm_tiled"), matrix("sgemm_tuned")),
        },
    ),
    Lesson(
        "Latency is a curve",
        "With {few} KiB in flight on a multiprocessor the memory answers after {soon}, with {many} KiB after {late}. "
        "Little's law holds at each point of this curve. So the latency of an idle memory asks for too few bytes in "
        "flight.",
        {
            "few": _probe(min, "bytes_in_flight"),
            "soon": _probe(min, "seconds"),
            "many": _probe(max, "bytes_in_flight"),
            "late": _probe(max, "seconds"),
        },
    ),
    Lesson(
        "Instructions beside a memory that is waited for",
        "A warp that diverges into 32 paths takes {divergent} the time and not 32 times as long: other warps' loads "
        "fill the wait. A division and a remainder for each index take {divided} the time of `dim3`. A tenth of a wave "
        "more than fits takes {waves} the time, because then nothing is left that could fill the wait.",
        {
            "divergent": gain(ladder("divergent", paths=32), _NAIVE),
            "divided": gain(ladder("index_divmod"), ladder("index_dim3")),
            "waves": gain(waves(110), waves(100)),
        },
    ),
)

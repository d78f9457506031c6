"""Half the bytes an element: contestants by size, three speed-ups, and document 001's claims tested."""

from vecadd.bench import recorded
from vecadd.bench.tables import parts
from vecadd.figures import Figure
from vecadd.tables import Column, Style, Table, columns, show_gain, show_seconds, show_size

CPU, BASE = ("numpy", "float32"), ("naive", "float32")  # (rung, dtype) that the first two speed-ups are over
STEPS = ("half", "half2", "half8", "half8_pack")  # the third is of each of these over the one before

_COLUMNS = columns(
    "rung",
    Column("dtype", right=False),
    "seconds",
    "GB/s",
    "% limit",
    "CPU /",
    "fp32 /",
    "step",
    "launch %",
    "regs",
    "occ. %",
    "document",
    "its CPU /",
    "its fp32 /",
    "its step",
)
_SPARE = ("its step", "its fp32 /", "its CPU /", "document", "occ. %", "regs", "launch %", "step")

NOTES = (
    "CPU /: numpy float32 over this one; fp32 /: naive float32 over this one; step: over the one before of half, "
    "half2, half8, half8_pack; its: the same of document 001",
    "launch %: an empty kernel's share of the time; host arrays stay in the host's memory, GPU arrays in the GPU's",
)

Times = dict[tuple[str, str], float]


def tables(sweep: str, rows: list[Figure]) -> list[Table]:
    """16-bit beside 32-bit elements, with the document's steps, crossovers and claims."""
    table = Table(sweep, _COLUMNS, optional_columns=_SPARE)
    for n in dict.fromkeys(row.n for row in rows):
        group = [row for row in rows if row.n == n]
        table.add(show_size(n), style=Style.HEAD)
        times = {(row.name, row.dtype): row.seconds for row in group if row.seconds}
        documents = {
            (figure.rung, "float32" if figure.rung in ("numpy", "naive", "float4") else "float16"): figure.seconds
            for rung in dict.fromkeys(row.name for row in group)
            for figure in recorded.figures(rung, n=n)
        }
        for row in group:
            table.add(row.name, row.dtype, *_figures(row, times, documents), style=parts.style(row))
        table.add_gap()
    rungs = dict.fromkeys(row.name for row in rows)
    shown = [figure for rung in rungs for figure in recorded.FIGURES if figure.n and figure.rung == rung]
    table.notes = [*NOTES, *crossovers(rows), *claims(rows), *parts.document_notes(rows, shown)]
    return [table]


def speedups(rung: str, dtype: str, times: Times) -> tuple[float | None, float | None, float | None]:
    """The times of the CPU, of naive float32 and of the rung before in STEPS, each over this rung's time."""
    own = times.get((rung, dtype))
    before = STEPS[STEPS.index(rung) - 1] if rung in STEPS[1:] else None
    over = (CPU, BASE, (before, dtype))
    cpu, base, step = (
        times[other] / own if own and other in times and other != (rung, dtype) else None for other in over
    )
    return cpu, base, step


def crossovers(rows: list[Figure]) -> list[str]:
    """From which size on each GPU rung is faster than numpy float32, a line a dtype."""
    cpu = {row.n: row.seconds for row in rows if (row.name, row.dtype) == CPU and row.seconds}
    lines = []
    for dtype in dict.fromkeys(row.dtype for row in rows):
        found = []
        for rung in dict.fromkeys(row.name for row in rows if row.dtype == dtype and row.name != CPU[0]):
            own = {row.n: row.seconds for row in rows if (row.name, row.dtype) == (rung, dtype) and row.seconds}
            common = sorted(own.keys() & cpu.keys())
            slower = [n for n in common if own[n] >= cpu[n]]
            faster = [n for n in common if not slower or n > slower[-1]]
            if common:
                found.append(f"{rung} {show_size(faster[0]) if faster else f'beyond {show_size(common[-1])}'}")
        if found:
            lines.append(f"{dtype} is faster than the CPU's float32 from: {', '.join(found)}")
    return lines


def claims(rows: list[Figure]) -> list[str]:
    """Document 001's claims, and whether these rows agree; claims without a measurement are left out."""
    at = {(row.name, row.dtype, row.n): row for row in rows if row.seconds}
    return [
        line for line in (_cpu_wins(at), _launch(at), _baseline(at), *_half_the_bytes(at), _half2_or_pack(at)) if line
    ]


At = dict[tuple[str, str, int], Figure]


def _ratio(at: At, slower: tuple[str, str], faster: tuple[str, str], n: int) -> float | None:
    a, b = at.get((*slower, n)), at.get((*faster, n))
    return a.seconds / b.seconds if a and b and a.seconds and b.seconds else None


def _cpu_wins(at: At) -> str:
    gain = _ratio(at, CPU, BASE, 2**10)
    if gain is None:
        return ""
    verdict = "the CPU wins here too" if gain < 1 else "the GPU wins here"
    return f"document 001: the CPU wins at 2^10, its time .39 of naive's. Here {gain:.2g}: {verdict}"


def _launch(at: At) -> str:
    row = at.get((*BASE, 2**10))
    if row is None or row.seconds is None or row.params.get("launch_share") is None:
        return ""
    share = row.params["launch_share"]
    return (
        "document 001: at 2^10 a launch takes 5 to 6 us and the work 1 to 2. Here an empty kernel takes "
        f"{show_seconds(share * row.seconds)} of naive's {show_seconds(row.seconds)}, by events on the GPU"
    )


def _baseline(at: At) -> str:
    sizes = sorted({n for rung, dtype, n in at if n <= 2**14 and dtype != CPU[1]})
    best = {}
    for n in sizes:
        own = {key: row.seconds or 0 for key, row in at.items() if key[2] == n and key[0] != CPU[0]}
        best[n] = min(own, key=lambda key: own[key])
    if not best:
        return ""
    named = ", ".join(f"{show_size(n)} {rung} {dtype}" for n, (rung, dtype, _) in best.items())
    return f"document 001: below 2^16 plain float32 is best. Here the fastest kernels are {named}"


def _half_the_bytes(at: At) -> list[str]:
    lines = []
    sizes = sorted({n for rung, dtype, n in at if rung == "half"})
    for n in dict.fromkeys(size for size in (2**20, *sizes[-1:]) if size in sizes):
        naive, packed = (
            _ratio(at, (base, "float32"), (half, "float16"), n)
            for base, half in (("naive", "half"), ("float4", "half8_pack"))
        )
        if naive and packed:
            lines.append(
                f"document 001: half the bytes gave 1.53 x at 2^20, not 2 x. Here at {show_size(n)} naive to half is "
                f"{show_gain(naive)}, float4 to half8_pack, which keep as many bytes in flight, {show_gain(packed)}"
            )
    return lines


def _half2_or_pack(at: At) -> str:
    half2, pack = (at.get((rung, "float16", 2**20)) for rung in ("half2", "half8_pack"))
    if half2 is None or pack is None or not half2.seconds or not pack.seconds:
        return ""
    ratio = pack.seconds / half2.seconds
    verdict = "half2 wins" if ratio > 1.01 else "half8_pack wins" if ratio < 0.99 else "they are level"
    occupancy = [parts.percent(row.params.get("occupancy")) for row in (half2, pack)]
    return (
        f"document 001: at 2^20 half2 beats half8_pack 1.2 x by its occupancy. Here {ratio:.3g} x, {verdict}, at "
        f"occupancies of {occupancy[0]} and {occupancy[1]} %"
    )


def _figures(row: Figure, times: Times, documents: Times) -> tuple[str, ...]:
    document = documents.get((row.name, row.dtype))
    return (
        parts.seconds(row),
        parts.rate(row),
        parts.fraction(row),
        *map(_times, speedups(row.name, row.dtype, times)),
        parts.percent(row.params.get("launch_share")),
        parts.param(row, "registers"),
        parts.percent(row.params.get("occupancy")),
        show_seconds(document) if document else "-",
        *map(_times, speedups(row.name, row.dtype, documents)),
    )


def _times(gain: float | None) -> str:
    return f"{gain:.3g}" if gain else "-"

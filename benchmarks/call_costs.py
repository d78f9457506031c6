"""The tables of what a call costs its caller: beside a bare launch, and by the stages that it goes through."""

from vecadd.bench.results import Row
from vecadd.bench.show import show_seconds
from vecadd.bench.tables.table import markdown

STAGE = "vecadd stage: "
CALL = "vecadd"  # add(a, b, out=out) of DeviceArrays: what the stages add up to
BARE = "vecadd (bare launch from C)"

# Each stage in the order of a call, and what it does. "allocate" is what a + b has beside it.
STAGES = {
    "parse": "sorts the arguments and keywords out",
    "describe": "looks at a, b and out: type, pointer, shape, stream; no CUDA call for DeviceArrays",
    "plan": "checks them against each other, picks stream and route",
    "launch": "gives up the GIL, picks the kernel, queues it, takes the GIL back",
}
ALLOCATE = "makes a DeviceArray like a and drops it, from a block that an earlier one left; `a + b` alone"


def forms(rows: list[Row]) -> list[str]:
    """Seconds of each form of call, and the paired ratio to the reference; one line a form."""
    lines = [
        [row.label, _seconds(row), _ratio(row)]
        for row in rows
        if row.seconds is not None and not row.label.startswith(STAGE)
    ]
    return markdown(["", "time", f"time / {_reference(rows)} (95 % interval)"], lines)


def stages(rows: list[Row]) -> list[str]:
    """Nanoseconds of each stage of a call by itself, what is left of the call for the interpreter, and the bare launch.

    The rest is the call less its stages, which have their caches warmer by themselves than within a call.
    """
    found = {row.label: row for row in rows if row.seconds is not None}
    lines = [[name, what, _nanoseconds(found.get(STAGE + name))] for name, what in STAGES.items()]
    parts = [found[STAGE + name].seconds or 0 for name in STAGES if STAGE + name in found]
    call = found.get(CALL)
    rest = call is not None and call.seconds is not None and len(parts) == len(STAGES)
    lines += [
        ["rest", "the interpreter's loop and call, caches", f"{1e9 * (_time(call) - sum(parts)):.0f}" if rest else "-"],
        ["call", "`vecadd.add(a, b, out=out)`, all of it", _nanoseconds(call)],
        ["bare", "the same kernel launched from C, plainly", _nanoseconds(found.get(BARE))],
        ["allocate", ALLOCATE, _nanoseconds(found.get(STAGE + "allocate"))],
    ]
    return markdown(["stage", "what it does", "ns"], lines, [False, False, True])


def _time(row: Row | None) -> float:
    return row.seconds or 0.0 if row else 0.0


def _nanoseconds(row: Row | None) -> str:
    return f"{1e9 * _time(row):.0f}" if row else "-"


def _seconds(row: Row) -> str:
    return "-" if row.seconds is None else show_seconds(row.seconds)


def _reference(rows: list[Row]) -> str:
    return next((str(row.params["reference"]) for row in rows if "reference" in row.params), "ours")


def _ratio(row: Row) -> str:
    if "ratio" not in row.params:
        return "1"
    low, high = row.params["ratio_interval"]
    return f"{row.params['ratio']:.3g} ({low:.3g} to {high:.3g})"

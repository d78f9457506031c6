"""The table of a call's cost to its caller, by stage, beside a bare launch."""

from vecadd.figures import Figure
from vecadd.tables import markdown

STAGE = "vecadd stage: "
CALL = "vecadd"  # add(a, b, out=out) of DeviceArrays: what the stages add up to
BARE = "vecadd (bare launch from C)"

# Each stage in the order of a call, and what it does. Only a + b has the stage "allocate".
STAGES = {
    "parse": "sorts the arguments and keywords out",
    "describe": "looks at a, b and out: type, pointer, shape, stream; no CUDA call for DeviceArrays",
    "plan": "checks them against each other, picks stream and route",
    "launch": "gives up the GIL, picks the kernel, queues it, takes the GIL back",
}
ALLOCATE = "makes a DeviceArray like a and drops it, from a block that an earlier one left; `a + b` alone"


def stages(rows: list[Figure]) -> list[str]:
    """Nanoseconds of each stage of a call by itself, of the rest of the call (the interpreter), and of the bare launch.

    The rest is the call less its stages; timed alone, the stages have warmer caches than within a call.
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


def _time(row: Figure | None) -> float:
    return row.seconds or 0.0 if row else 0.0


def _nanoseconds(row: Figure | None) -> str:
    return f"{1e9 * _time(row):.0f}" if row else "-"

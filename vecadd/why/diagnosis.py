"""What can make an addition slow: how it shows in what was recorded, what mends it, and the mended form.

The reason of a line is the one whose mending gains most, by a replay, of those that show. Where none shows, or none
gains GAIN, the addition is at the limit, or the reason is not known.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod

from vecadd import _core
from vecadd.tables import show_seconds
from vecadd.why import replay
from vecadd.why.layout import Layout, compact, moved_apart, overlap, overlap_in_part
from vecadd.why.recording import AdditionGroup
from vecadd.why.replay import Form, ReplayTimes

GAIN = 1.05  # less than this cannot be told from no gain
LIMIT = 1.2  # times the limit: an addition within it is at the limit
SHORT_ROW = 8192  # elements, those of NumPy's buffer: of longer rows the loop's call costs nothing
FAULTED = 0.1  # of the calls: where fewer faulted, sums had memory that had been written
FROM_MEMORY = 0.25  # of the operands: less cannot be told from none
TOLD_APART = 1.5  # of memory to caches: with less between them, the time does not tell where the operands were
EXPLAINED = (0.6, 1.7)  # what the program took, in times of the replay: outside, the replay does not explain it

AT_LIMIT, UNKNOWN = "at the limit", "not known"


@dataclass(frozen=True)
class Reason:
    """``find_evidence`` gives the evidence in words, or None; ``mend`` the form of the addition with the change."""

    name: str
    change: str
    find_evidence: Callable[[AdditionGroup], str | None]
    mend: Callable[[Form], Form]


@dataclass(frozen=True)
class Change:
    """A change that mends a reason; ``gain`` is how many times as fast the line is with it, by the replay, and None
    where none was made."""

    reason: str
    evidence: str
    change: str
    gain: float | None


@dataclass(frozen=True)
class Diagnosis:
    """Why an addition took as long as it did. ``changes`` begin with the one that gains most, the reason's own.

    ``limit`` is the least time of a call on this machine, in seconds; ``cold`` the share of the operands that came from
    memory although the caches had room for them; ``replayed`` the seconds of the same call in the replay. They are None
    where the addition was not replayed.
    """

    reason: str
    evidence: str
    changes: tuple[Change, ...] = ()
    limit: float | None = None
    cold: float | None = None
    replayed: float | None = None

    @property
    def change(self) -> Change | None:
        """What mends the reason."""
        return self.changes[0] if self.changes and self.changes[0].reason == self.reason else None


# --- how reasons show


def _is_converted(group: AdditionGroup) -> bool:
    target = group.out
    assert isinstance(target, Layout)
    return any(x.converted or x.dtype != target.dtype for x in group.arrays)


def _overlap(group: AdditionGroup) -> str | None:
    out = group.out
    operands = [x for x in (group.a, group.b) if isinstance(x, Layout)]
    if not isinstance(out, Layout) or not any(overlap_in_part(x, out) for x in operands):
        return None
    return "the sum overlaps a part of an operand"


def _cast(group: AdditionGroup) -> str | None:
    if not _is_converted(group) or group.loops is None or group.loops < 2:
        return None
    names = " + ".join(str(x.dtype) if isinstance(x, Layout) else "a number" for x in (group.a, group.b))
    return f"{names}: converted in {group.loops} pieces of {group.loop_elements:.0f} elements"


def _rows(group: AdditionGroup) -> str | None:
    if group.loops is None or group.loop_elements is None or group.loops < 2 or _is_converted(group):
        return None
    if group.loop_elements > SHORT_ROW:
        return None
    assert isinstance(group.out, Layout)
    over = f", over rows of {group.out.shape[-1]}" if group.out.shape[-1] < group.loop_elements else ""
    return f"{group.loops} calls of NumPy's loop, {group.loop_elements:.0f} elements each{over}"


def _gaps(group: AdditionGroup) -> str | None:
    if _rows(group) or _cast(group):
        return None
    steps = [
        abs(x.strides[-1])
        for x in group.arrays
        if x.shape and x.shape[-1] > 1 and not x.contiguous and abs(x.strides[-1]) > x.dtype.itemsize
    ]
    return f"elements are {steps[0]} bytes apart" if steps else None


def is_faulted_in(group: AdditionGroup) -> bool:
    """Whether the pages of the sum were new in a part of the calls, and the faults are not an operand's, or those of a
    copy that NumPy made."""
    out = group.out
    overlaps = isinstance(out, Layout) and any(overlap(x, out) for x in group.arrays[:-1])
    return isinstance(out, Layout) and not overlaps and group.faulted >= FAULTED


def _faults(group: AdditionGroup) -> str | None:
    return f"{group.faults:,.0f} faults a call" if group.new and is_faulted_in(group) else None


def _first_use(group: AdditionGroup) -> str | None:
    if group.new or not is_faulted_in(group):
        return None
    return f"{group.faults:,.0f} faults a call, in arrays to which nothing was written before"


def _one_thread(group: AdditionGroup) -> str | None:
    if group.via != "numpy" or group.installed or _core.get_num_threads() < 2:
        return None
    return f"NumPy adds on one of {_core.get_num_threads()} threads"


def _pageable(group: AdditionGroup) -> str | None:
    route = group.route or {}
    if route.get("route") not in ("transfer", "hybrid") or route.get("memory") == "pinned":
        return None
    return "operands in ordinary memory, which the GPU's copies cannot reach"


# --- the mended forms


def _change_arrays(form: Form, change: Callable[[Layout], Layout]) -> Form:
    """Each array changed, in memory of its own; arrays that were the same stay the same."""
    given = [form.a, form.b, form.out]
    changed = [moved_apart(change(x), 1 + given.index(x)) if isinstance(x, Layout) else x for x in given]
    assert isinstance(changed[2], Layout)
    return replace(form, a=changed[0], b=changed[1], out=changed[2])


def _use_one_dtype(form: Form) -> Form:
    a, b = (
        moved_apart(compact(x, form.out.dtype), number)
        if isinstance(x, Layout) and (x.converted or x.dtype != form.out.dtype)
        else x
        for number, x in enumerate((form.a, form.b), 1)
    )
    return replace(form, a=a, b=b)


def _use_long_rows(form: Form) -> Form:
    """The longest axis last, in C order."""
    shape = form.out.shape
    longest = max(range(len(shape)), key=shape.__getitem__)
    order = [axis for axis in range(len(shape)) if axis != longest] + [longest]

    def turn(x: Layout) -> Layout:
        padded = (1,) * (len(shape) - len(x.shape)) + x.shape
        return compact(x, shape=tuple(padded[axis] for axis in order))

    return _change_arrays(form, turn)


def _use_written_memory(form: Form) -> Form:
    return replace(form, untouched=False)


REASONS = (
    Reason(
        "a pageable copy",
        "keep the arrays in page-locked memory: vecadd.empty_pinned",
        _pageable,
        lambda form: replace(form, pinned=True, untouched=False),
    ),
    Reason(
        "operands that overlap",
        "add into memory that no operand shares",
        _overlap,
        lambda form: replace(form, out=moved_apart(form.out, 3)),
    ),
    Reason("a cast in pieces", "convert the operand once, and keep it in the sum's dtype", _cast, _use_one_dtype),
    Reason("short rows", "make the longest axis the last, and the arrays C-contiguous", _rows, _use_long_rows),
    Reason("gaps between elements", "keep the operands contiguous", _gaps, lambda form: _change_arrays(form, compact)),
    Reason("page faults of a new sum", "reuse the sum's memory: out=c", _faults, _use_written_memory),
    Reason("first use of memory", "write to the arrays beforehand, or reuse others", _first_use, _use_written_memory),
    Reason(
        "one thread",
        "vecadd.install(), or vecadd run without --why",
        _one_thread,
        lambda form: replace(form, installed=True),
    ),
)
CACHE = "operands evicted from the cache"
USE_CACHE = "add in blocks, each while its operands are still in the cache"
GAP = "a gap between launches"
USE_PLAN = "vecadd.plan for arrays that stay, vecadd.add_many for independent pairs"


# --- the diagnosis


def diagnose(group: AdditionGroup) -> Diagnosis:
    """Replays the addition, and says why it took what it took."""
    try:
        if group.route and group.route["route"] == "device":
            return _diagnose_device(group, group.route["device"])
        return _diagnose_host(group)
    except Exception as error:  # CUDA's, and a system's that has no more memory: the other lines are worth telling
        return Diagnosis(UNKNOWN, f"it could not be replayed: {error}")


def _diagnose_device(group: AdditionGroup, number: int) -> Diagnosis:
    """Of an addition that a GPU makes while the program goes on: its time is that of the launch."""
    rate = replay.device_rate(number)
    if rate is None:
        return Diagnosis(UNKNOWN, "this build has no probe of what the GPU allows")
    limit = group.nbytes / group.calls / rate
    if group.typical <= LIMIT * limit:
        return Diagnosis(AT_LIMIT, "the GPU adds as long as the calls take", limit=limit)
    evidence = f"a call takes {show_seconds(group.typical)}, and the GPU needs {show_seconds(limit)} for its bytes"
    return Diagnosis(GAP, evidence, (Change(GAP, evidence, USE_PLAN, None),), limit)


def _diagnose_host(group: AdditionGroup) -> Diagnosis:
    if why_not := _why_not_replayed(group):
        return Diagnosis(UNKNOWN, why_not)
    out = group.out
    assert isinstance(out, Layout)
    written = Form(group.a, group.b, out, group.via, installed=group.installed, device=group.device)
    was = replace(written, untouched=is_faulted_in(group))
    shown = [(reason, evidence) for reason in REASONS if (evidence := reason.find_evidence(group))]
    forms = {"was": was, "written": written} | {reason.name: reason.mend(was) for reason, _ in shown}
    times = replay.replay(forms, group.calls)
    if not times:
        return Diagnosis(UNKNOWN, "there was too little memory to replay it")
    faulted = group.faulted if was.untouched else 1.0
    before, warm, cold = _seconds_before(group.typical, times["was"], times["written"], faulted)
    changes: list[Change] = []
    for reason, evidence in shown:
        after = times[reason.name].mix(cold)  # of a call that faults, where the change leaves faults
        changes.append(Change(reason.name, evidence, reason.change, before / after))
    if cold:
        evidence = f"{cold:.0%} of the way from its time in the caches to that from memory"
        changes.append(Change(CACHE, evidence, USE_CACHE, before / warm))
    changes.sort(key=lambda change: -(change.gain or 0.0))
    gaining = tuple(change for change in changes if (change.gain or 0.0) >= GAIN)
    nbytes = sum(x.nbytes for x in group.arrays)
    route = group.route or {}
    through = route.get("route") in ("transfer", "hybrid")
    if through:
        rate = replay.link_rate(route.get("device") or 0)
        limit = min(nbytes / rate, before) if rate else None
    else:
        limit = min(replay.host_limit(nbytes), before)
    low, high = EXPLAINED
    if not low < group.typical / before < high:
        evidence = f"alone, after the run, the same addition took {before / group.typical:.2f} x the time"
        return Diagnosis(UNKNOWN, evidence, gaining, limit, cold, before)
    if gaining:
        return Diagnosis(gaining[0].reason, gaining[0].evidence, gaining, limit, cold, before)
    if limit and group.typical <= LIMIT * limit:
        return Diagnosis(AT_LIMIT, "", (), limit, cold, before)
    return Diagnosis(UNKNOWN, "no reason shows whose mending gains anything here", (), limit, cold, before)


def _seconds_before(
    typical: float, was: ReplayTimes, written: ReplayTimes, faulted: float
) -> tuple[float, float, float]:
    """Seconds of the addition as it was, those with its operands in the caches, and the share of its operands that came
    from memory. Where the times do not tell, as of additions that do not wait for memory, none came from there."""
    warm, far = (faulted * a + (1 - faulted) * b for a, b in ((was.warm, written.warm), (was.cold, written.cold)))
    cold = min(1.0, (typical - warm) / (far - warm)) if far > TOLD_APART * warm else 0.0
    cold = cold if cold >= FROM_MEMORY else 0.0
    return (1 - cold) * warm + cold * far, warm, cold


def _why_not_replayed(group: AdditionGroup) -> str | None:
    """Why an addition cannot be made again from what was recorded; None where it can."""
    if group.via == "add_many":
        return "the pairs of add_many are not replayed"
    if not isinstance(group.out, Layout):
        return "the sum is not a NumPy array"
    if group.other_keywords:
        return "called with where=, dtype= or another keyword, which is not replayed"
    dtypes = [x.dtype for x in group.arrays]
    if any(dtype.hasobject or dtype.kind not in "biufc" for dtype in dtypes):
        return f"arrays of {', '.join(sorted({str(dtype) for dtype in dtypes}))} are not replayed"
    if any(prod(x.shape) == 0 for x in group.arrays):
        return "an operand is empty"
    for kind in (group.a, group.b):
        if isinstance(kind, type) and not replay.is_number(kind):
            return f"an operand is of the type {kind.__name__}: only arrays and numbers are made again"
    return None

"""What can make an addition slow: how it shows in what was noted, what mends it, and the form that the mended one has.

The reason of a line is the one whose mending gains most, by a rehearsal, of those that show. Where none shows, or none
gains GAIN, the addition is at the limit, or the reason is not known.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod

from vecadd import _core
from vecadd.tables import show_seconds
from vecadd.why import device, rehearsal
from vecadd.why.layout import Layout, compact, elsewhere, meet, share
from vecadd.why.noted import Noted
from vecadd.why.rehearsal import PAGE, Form, Times

GAIN = 1.05  # less than this is not told from no gain
LIMIT = 1.2  # times the limit: an addition within it is at the limit
SHORT_ROW = 8192  # elements, those of NumPy's buffer: of longer rows the loop's call costs nothing
FAULTED = 0.1  # of the calls: with fewer that fault, sums lay in memory that had been written
ALL = 0.6  # of its small pages: with fewer faults some pages were huge
FROM_MEMORY = 0.25  # of the operands: less is not told from none
TOLD_APART = 1.5  # of memory to caches: with less between them, the time does not tell where the operands were
EXPLAINED = (0.6, 1.7)  # what the program took, in times of the rehearsal: outside, the rehearsal does not explain it

AT_LIMIT, UNKNOWN = "at the limit", "not known"


@dataclass(frozen=True)
class Reason:
    """``shows`` gives the evidence in words, or None; ``mended`` the form of the addition with the change."""

    name: str
    change: str
    shows: Callable[[Noted], str | None]
    mended: Callable[[Form], Form]


@dataclass(frozen=True)
class Change:
    """A change that mends a reason; ``gain`` is how many times as fast the line is with it, by the rehearsal."""

    reason: str
    evidence: str
    change: str
    gain: float


@dataclass(frozen=True)
class Finding:
    """Why an addition took what it took. ``changes`` begin with the one that gains most, which is the reason's.

    ``limit`` is the least time of a call on this machine, in seconds; ``cold`` the share of the operands that came from
    memory although the caches could hold them; ``rehearsed`` the seconds of the same call in the rehearsal. They are
    None where the addition could not be rehearsed.
    """

    reason: str
    evidence: str
    changes: tuple[Change, ...] = ()
    limit: float | None = None
    cold: float | None = None
    rehearsed: float | None = None

    @property
    def change(self) -> Change | None:
        """What mends the reason."""
        return self.changes[0] if self.changes and self.changes[0].reason == self.reason else None


def _converted(noted: Noted) -> bool:
    target = noted.out
    assert isinstance(target, Layout)
    return any(x.converted or x.dtype != target.dtype for x in noted.arrays)


def _overlap(noted: Noted) -> str | None:
    out = noted.out
    if not isinstance(out, Layout) or not any(isinstance(x, Layout) and share(x, out) for x in (noted.a, noted.b)):
        return None
    return "the sum lies over a part of an operand"


def _cast(noted: Noted) -> str | None:
    if not _converted(noted):
        return None
    names = " + ".join(str(x.dtype) if isinstance(x, Layout) else "a number" for x in (noted.a, noted.b))
    if noted.loops is None or noted.loops < 2:
        return None
    return f"{names}: converted in {noted.loops:.0f} pieces of {noted.elements:.0f} elements"


def _rows(noted: Noted) -> str | None:
    if noted.loops is None or noted.elements is None or noted.loops < 2 or _converted(noted):
        return None
    if noted.elements > SHORT_ROW:
        return None
    assert isinstance(noted.out, Layout)
    over = f", over rows of {noted.out.shape[-1]}" if noted.out.shape[-1] < noted.elements else ""
    return f"{noted.loops:.0f} calls of NumPy's loop, {noted.elements:.0f} elements each{over}"


def _gaps(noted: Noted) -> str | None:
    if _rows(noted) or _cast(noted):
        return None
    steps = [
        abs(x.strides[-1])
        for x in noted.arrays
        if x.shape and x.shape[-1] > 1 and not x.contiguous and abs(x.strides[-1]) > x.dtype.itemsize
    ]
    return f"elements lie {steps[0]} bytes apart" if steps else None


def page_kind(noted: Noted) -> str:
    """ "small" or "huge" pages, where the sum's were faulted in; else ""."""
    out = noted.out
    if not isinstance(out, Layout) or any(meet(x, out) for x in noted.arrays[:-1]):
        return ""  # faults in operands, or in a copy that NumPy made
    if noted.faulted < FAULTED:
        return ""
    return "small" if noted.faults / noted.faulted >= ALL * out.nbytes / PAGE else "huge"


def _faults(noted: Noted) -> str | None:
    if not noted.new or not page_kind(noted):
        return None
    return f"{noted.faults:,.0f} faults a call"


def _touched(noted: Noted) -> str | None:
    if noted.new or not page_kind(noted):
        return None
    return f"{noted.faults:,.0f} faults a call, in arrays that nothing was written to before"


def _one_thread(noted: Noted) -> str | None:
    if noted.via != "numpy" or noted.installed or _core.get_num_threads() < 2:
        return None
    return f"NumPy adds on one of {_core.get_num_threads()} threads"


def _changed(form: Form, change: Callable[[Layout], Layout]) -> Form:
    """Each array changed, in memory of its own; arrays that were the same stay the same."""
    given = [form.a, form.b, form.out]
    changed = [elsewhere(change(x), 1 + given.index(x)) if isinstance(x, Layout) else x for x in given]
    assert isinstance(changed[2], Layout)
    return replace(form, a=changed[0], b=changed[1], out=changed[2])


def _pageable(noted: Noted) -> str | None:
    route = noted.route or {}
    if route.get("route") not in ("transfer", "hybrid") or route.get("memory") == "pinned":
        return None
    return "operands in ordinary memory, which the GPU's copies do not reach"


def _own_memory(form: Form) -> Form:
    return replace(form, out=elsewhere(form.out, 3))


def _one_dtype(form: Form) -> Form:
    a, b = (
        elsewhere(compact(x, form.out.dtype), number)
        if isinstance(x, Layout) and (x.converted or x.dtype != form.out.dtype)
        else x
        for number, x in enumerate((form.a, form.b), 1)
    )
    return replace(form, a=a, b=b)


def _long_rows(form: Form) -> Form:
    """The longest axis last, in C order."""
    shape = form.out.shape
    longest = max(range(len(shape)), key=shape.__getitem__)
    order = [axis for axis in range(len(shape)) if axis != longest] + [longest]

    def turned(x: Layout) -> Layout:
        padded = (1,) * (len(shape) - len(x.shape)) + x.shape
        return compact(x, shape=tuple(padded[axis] for axis in order))

    return _changed(form, turned)


REASONS = (
    Reason(
        "a pageable copy",
        "keep the arrays in page-locked memory: vecadd.empty_pinned",
        _pageable,
        lambda form: replace(form, pinned=True, fresh=""),
    ),
    Reason("operands that overlap", "add into memory that no operand shares", _overlap, _own_memory),
    Reason("a cast in pieces", "convert the operand once, and keep it in the sum's dtype", _cast, _one_dtype),
    Reason("short rows", "lay the longest axis last, and the arrays in C order", _rows, _long_rows),
    Reason("gaps between elements", "keep the operands contiguous", _gaps, lambda form: _changed(form, compact)),
    Reason("page faults of a new sum", "reuse the sum's memory: out=c", _faults, rehearsal.written),
    Reason("first use of memory", "write to the arrays beforehand, or reuse others", _touched, rehearsal.written),
    Reason(
        "one thread",
        "vecadd.install(), or vecadd run without --why",
        _one_thread,
        lambda form: replace(form, installed=True),
    ),
)
CACHE = "a cache that did not hold"
GAP = "a gap between launches"
USE_PLAN = "vecadd.plan for arrays that stay, vecadd.add_many for independent pairs"
USE_CACHE = "add in blocks, each while its operands are still in the cache"


def find(noted: Noted) -> Finding:
    """Rehearses the addition, and says why it took what it took."""
    try:
        if noted.route and noted.route["route"] == "device":
            return _on_device(noted)
        return _on_host(noted)
    except Exception as error:  # CUDA's, and a system's that has no more memory: the other lines are worth telling
        return Finding(UNKNOWN, f"it could not be rehearsed: {error}")


def _on_device(noted: Noted) -> Finding:
    """Of an addition that a GPU makes while the program goes on: its time is that of the launch."""
    assert noted.route is not None
    nbytes = noted.nbytes // noted.calls
    times = device.rehearse(nbytes, noted.route["device"])
    if noted.typical <= LIMIT * times.busy:
        return Finding(AT_LIMIT, "the GPU adds as long as the calls take", (), times.busy, None, times.added)
    evidence = f"a call takes {show_seconds(noted.typical)}, and the GPU adds for {show_seconds(times.busy)}"
    change = Change(GAP, evidence, USE_PLAN, times.added / times.planned)
    if change.gain < GAIN:
        return Finding(GAP, evidence, (), times.busy, None, times.added)
    return Finding(GAP, evidence, (change,), times.busy, None, times.added)


def _on_host(noted: Noted) -> Finding:
    if unable := _not_rehearsed(noted):
        return Finding(UNKNOWN, unable)
    out = noted.out
    assert isinstance(out, Layout)
    plain = Form(noted.a, noted.b, out, noted.via, installed=noted.installed, device=noted.device, turns=noted.turns)
    was = replace(plain, fresh=page_kind(noted))
    shown = [(reason, evidence) for reason in REASONS if (evidence := reason.shows(noted))]
    forms = {"was": was, "written": plain} | {reason.name: reason.mended(was) for reason, _ in shown}
    times = rehearsal.rehearse(forms, noted.calls)
    if not times:
        return Finding(UNKNOWN, "there was too little memory to rehearse it")
    faulted = noted.faulted if was.fresh else 1.0
    before, cold = _before(noted.typical, times["was"], times["written"], faulted)
    changes = []
    for reason, evidence in shown:
        form, after = forms[reason.name], times[reason.name].mixed(cold)
        if form.fresh:  # what a mended call still faults, it faults as often as before
            after = faulted * after + (1 - faulted) * min(after, before)
        changes.append(Change(reason.name, evidence, reason.change, before / after))
    warm = faulted * times["was"].warm + (1 - faulted) * times["written"].warm
    if cold:
        evidence = f"{cold:.0%} of the way from its time in the caches to that from memory"
        changes.append(Change(CACHE, evidence, USE_CACHE, before / warm))
    nbytes = sum(x.nbytes for x in noted.arrays)
    through = noted.route is not None and noted.route["route"] in ("transfer", "hybrid")
    bound = min(device.link_limit(nbytes) if through else rehearsal.limit(nbytes), before)
    changes = sorted((change for change in changes if change.gain >= GAIN), key=lambda change: -change.gain)
    low, high = EXPLAINED
    ratio = noted.typical / before
    if not low < ratio < high:
        evidence = f"alone, after the run, the same addition took {1 / ratio:.2f} x the time"
        return Finding(UNKNOWN, evidence, tuple(changes), bound, cold, before)
    if changes:
        return Finding(changes[0].reason, changes[0].evidence, tuple(changes), bound, cold, before)
    if noted.typical <= LIMIT * bound:
        return Finding(AT_LIMIT, "", (), bound, cold, before)
    return Finding(UNKNOWN, "no reason shows whose mending gains anything here", (), bound, cold, before)


def _before(typical: float, was: Times, plain: Times, faulted: float) -> tuple[float, float]:
    """Seconds of the addition as it was, and the share of its operands that came from memory. Where the two are not
    told apart, as of additions that do not wait for memory, they were in the caches as far as they fit."""
    warm, far = (faulted * a + (1 - faulted) * b for a, b in ((was.warm, plain.warm), (was.cold, plain.cold)))
    cold = min(1.0, (typical - warm) / (far - warm)) if far > TOLD_APART * warm else 0.0
    cold = cold if cold >= FROM_MEMORY else 0.0
    turned = faulted * was.turned + (1 - faulted) * plain.turned
    mixed = (1 - cold) * warm + cold * far
    return max(mixed, min(turned, typical)), cold


def _not_rehearsed(noted: Noted) -> str | None:
    """Why an addition cannot be made again from what was noted; None where it can."""
    if noted.via == "add_many":
        return "the pairs of add_many are not rehearsed"
    if not isinstance(noted.out, Layout):
        return "the sum is no NumPy array"
    if noted.others:
        return "called with where=, dtype= or another keyword, which is not rehearsed"
    dtypes = [x.dtype for x in noted.arrays]
    if any(dtype.hasobject or dtype.kind not in "biufc" for dtype in dtypes):
        return f"arrays of {', '.join(sorted({str(dtype) for dtype in dtypes}))} are not rehearsed"
    if any(prod(x.shape) == 0 for x in noted.arrays):
        return "an operand is empty"
    for kind in (noted.a, noted.b):
        if isinstance(kind, type) and not rehearsal.is_number(kind):
            return f"an operand is of the type {kind.__name__}: only arrays and numbers are made again"
    return None

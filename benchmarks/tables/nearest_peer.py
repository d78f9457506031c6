"""Comparisons over many cells: the peer nearest to us in each, and in how many it is behind, level or ahead."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import geometric_mean

from vecadd.figures import Figure
from vecadd.tables import markdown, show_seconds, show_size

LARGE = 1 << 26  # elements from which the memory alone decides


@dataclass(frozen=True)
class Meeting:
    """A peer's time over ours, paired within the rounds, with its 95 % interval."""

    peer: str
    ratio: float
    low: float
    high: float

    @property
    def verdict(self) -> str:
        """The peer is "ahead" or "behind" only where the whole interval is on one side of 1."""
        return "ahead" if self.high < 1 else "behind" if self.low > 1 else "level"


def nearest_peers(rows: Sequence[Figure]) -> dict[tuple[str, int], tuple[Figure, Meeting]]:
    """By (dtype, n): our own row, the first that others are compared with, and the peer with the least time."""
    ours: dict[tuple[str, int], Figure] = {}
    for row in rows:
        if row.seconds and "reference" not in row.params:
            ours.setdefault((row.dtype, row.n), row)
    found: dict[tuple[str, int], tuple[Figure, Meeting]] = {}
    for row in rows:
        if not row.seconds or "ratio" not in row.params or row.name.startswith("vecadd"):
            continue
        cell = row.dtype, row.n
        meeting = Meeting(row.label, row.params["ratio"], *row.params["ratio_interval"])
        if cell in ours and (cell not in found or meeting.ratio < found[cell][1].ratio):
            found[cell] = ours[cell], meeting
    return found


def table(rows: Sequence[Figure]) -> list[str]:
    """Our time and the nearest peer's over ours; a line a size, a column a dtype. Peers that are ahead in bold."""
    found = nearest_peers(rows)
    dtypes = list(dict.fromkeys(row.dtype for row in rows))
    sizes = list(dict.fromkeys(row.n for row in rows))
    lines = [[show_size(n), *(_cell(found.get((dtype, n))) for dtype in dtypes)] for n in sizes]
    return [*markdown(["n: our time, nearest peer / ours", *dtypes], lines), "", summary(rows)]


def summary(rows: Sequence[Figure]) -> str:
    """In how many cells the nearest peer is behind, level or ahead, and how much in the mean."""
    found = nearest_peers(rows)
    meetings = [meeting for _, meeting in found.values()]
    if not meetings:
        return "No peer was there."
    counts = {verdict: sum(m.verdict == verdict for m in meetings) for verdict in ("behind", "level", "ahead")}
    text = (
        f"Of {len(meetings)} cells the nearest peer is behind in {counts['behind']}, level in {counts['level']} and "
        f"ahead in {counts['ahead']}; our time over its, geometric mean: "
        f"{geometric_mean([1 / meeting.ratio for meeting in meetings]):.3f}"
    )
    large = [1 / meeting.ratio for (_, n), (_, meeting) in found.items() if n >= LARGE]
    if large and len(large) < len(meetings):
        text += f", from {show_size(LARGE)} up {geometric_mean(large):.3f}, at most {max(large):.3f}"
    return f"{text}."


def _cell(found: tuple[Figure, Meeting] | None) -> str:
    if found is None:
        return "-"
    ours, meeting = found
    against = f"{meeting.peer} {meeting.ratio:.3g}"
    return f"{show_seconds(ours.seconds or 0)}, {f'**{against}**' if meeting.verdict == 'ahead' else against}"

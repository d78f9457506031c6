"""Whether a contestant is faster on operands that it can foresee, because it reads those of the next call ahead.

Sets of arrays, each twice the L2, are given in a fixed order, with nothing else read in between and a pause after each
call; then in an order in which no set follows the one that it followed last. All else is the same in both: what a call
leaves in the L2, and what is still to be written back.
"""

import statistics

from vecadd.judge.findings import Finding
from vecadd.judge.places import Room
from vecadd.judge.session import FoundError, Session

SETS = 6
LAPS = 4  # in the fixed order; the first teaches it
ROUNDS = 2
MORE = 1.1  # times as fast: as by a tenth of the bytes from the L2

Place = tuple[str, Room, tuple[int, int, int]]


def check(session: Session) -> str:
    """Raises FoundError for a contestant that is; else gives a line on what was compared."""
    n = 2 * session.gpu["l2"] // (3 * session.itemsize)
    places: list[Place] = []
    for index in range(SETS):
        room = session.stage(n, f"set {index}")
        places.append((f"set {index}", room, room.aligned(session.random.randrange)))
        _call(session, places, index, bare=False)  # its operands stay there
    known, others = [], []
    for _ in range(ROUNDS):
        laps = [[_call(session, places, index) for index in range(SETS)] for _ in range(LAPS)]
        known += [seconds for lap in laps[1:] for seconds in lap]
        others += [_call(session, places, index) for index in _unforeseen(session, (LAPS - 1) * SETS)]
    session.drop()
    more = statistics.median(others) / statistics.median(known)
    if more > MORE:
        words = f"{more:.2f} times as fast at {n} elements where it could know the next ones"
        raise FoundError(Finding("L2 warmed", words))
    return f"{n} elements: {SETS} sets in a known order, and in orders that nothing tells"


def _unforeseen(session: Session, count: int) -> list[int]:
    """Sets, each other than the two before it and than the one that came after the same set last."""
    follower = {index: (index + 1) % SETS for index in range(SETS)}
    order = [SETS - 2, SETS - 1]  # of the laps
    while len(order) < count + 2:
        left_out = {*order[-2:], follower[order[-1]]}
        drawn = session.random.choice([index for index in range(SETS) if index not in left_out])
        follower[order[-1]] = drawn
        order.append(drawn)
    return order[2:]


def _call(session: Session, places: list[Place], index: int, *, bare: bool = True) -> float:
    name, room, start = places[index]
    return session.call(room, start, f"{room.n} elements", bare=bare, version=index % 3, stage=name)

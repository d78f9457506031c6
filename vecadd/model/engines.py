"""Threads of a host that call, streams that keep an order, and the engines of a GPU that work through them: how long it
is until all is done.

A thread is a generator of steps: `Spend` of its own time, `Queue` of work on a stream, `Wait` for a stream. Copies each
way and kernels are engines that do one thing at a time, in the order in which it becomes ready; while copies go both
ways, they share what the link carries both ways.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

Engine = Literal["up", "down", "kernel"]

ROUNDING = 1e-13  # seconds: sums of times that are the same may differ by less


@dataclass(frozen=True)
class Spend:
    """Seconds of the thread; ``idle``: nobody waits for it, if it finds nothing to do then."""

    seconds: float
    idle: bool = False


@dataclass(frozen=True)
class Queue:
    """A call that takes the thread so many seconds, and puts work on a stream: ``fixed`` seconds of that engine, and
    bytes that it moves behind them."""

    stream: int
    engine: Engine
    call: float
    fixed: float
    nbytes: float = 0


@dataclass(frozen=True)
class Wait:
    """For all that is on the stream, and the seconds until the thread sees its end."""

    stream: int
    seen: float = 0


Step = Spend | Queue | Wait
Thread = Iterator[Step]


@dataclass(frozen=True)
class Link:
    """Bytes a second: each way alone, and both ways in sum."""

    up: float
    down: float
    both: float

    def rate(self, engine: Engine, other: bool) -> float:
        """Of one way, while the other is used or not."""
        alone = self.up if engine == "up" else self.down
        return min(alone, self.both / 2) if other else alone


@dataclass
class _Work:
    stream: int
    engine: Engine
    fixed: float
    nbytes: float


@dataclass
class _Busy:
    """What is going on: threads by when each goes on, those that wait for a stream, and works by stream."""

    link: Link
    now: float = 0
    resumes: dict[int, float] = field(default_factory=dict)
    waits: dict[int, Wait] = field(default_factory=dict)
    calls: dict[int, Queue] = field(default_factory=dict)  # that threads are in
    idle: set[int] = field(default_factory=set)  # threads that have been idle
    ended: float = 0  # when the last thread or work was done
    streams: dict[int, deque[_Work]] = field(default_factory=dict)
    ready: dict[str, deque[_Work]] = field(default_factory=lambda: {"up": deque(), "down": deque(), "kernel": deque()})

    def queue(self, step: Queue) -> None:
        works = self.streams.setdefault(step.stream, deque())
        works.append(_Work(step.stream, step.engine, step.fixed, step.nbytes))
        if len(works) == 1:
            self.ready[step.engine].append(works[0])

    def rate(self, engine: str) -> float:
        """Bytes a second of a copy that is on its way; the other way counts once its bytes flow."""
        other = self.ready["down" if engine == "up" else "up"]
        flows = bool(other) and other[0].fixed == 0
        return self.link.rate("up" if engine == "up" else "down", flows)

    def left(self, engine: str) -> float:
        """Seconds until the engine's work changes: its fixed part ends, or all of it."""
        work = self.ready[engine][0]
        return work.fixed if work.fixed > 0 or work.nbytes == 0 else work.nbytes / self.rate(engine)

    def step(self) -> None:
        """On to whatever happens next."""
        busy = [engine for engine, works in self.ready.items() if works]
        until = {engine: self.left(engine) for engine in busy}
        wakes = (at - self.now for at in self.resumes.values())
        span = max(0.0, min([*until.values(), *wakes]))
        rates = {engine: self.rate(engine) for engine in busy if engine != "kernel"}
        self.now += span
        for engine in busy:
            work = self.ready[engine][0]
            ends = until[engine] <= span
            if work.fixed > 0:
                work.fixed = 0 if ends else work.fixed - span
                ends = ends and work.nbytes == 0
            else:
                work.nbytes = 0 if ends else work.nbytes - span * rates[engine]
            if ends:
                self.finish(self.ready[engine].popleft())

    def finish(self, work: _Work) -> None:
        self.ended = self.now
        works = self.streams[work.stream]
        works.popleft()
        if works:
            self.ready[works[0].engine].append(works[0])

    def waits_end(self) -> None:
        """Threads whose stream is empty go on when they have seen it."""
        for thread, wait in list(self.waits.items()):
            if not self.streams.get(wait.stream):
                self.resumes[thread] = self.now + wait.seen
                del self.waits[thread]


def run(threads: Iterable[Thread], link: Link) -> float:
    """Seconds until every thread is at its end and every stream is empty."""
    going = dict(enumerate(threads))
    busy = _Busy(link, resumes=dict.fromkeys(going, 0.0))
    while busy.resumes or busy.waits or any(busy.ready.values()):
        due = [thread for thread, at in busy.resumes.items() if at <= busy.now + ROUNDING]
        for thread in due:
            _advance(busy, thread, going[thread])
        busy.waits_end()
        if not due and (busy.resumes or any(busy.ready.values())):
            busy.step()
    return busy.ended


def _advance(busy: _Busy, number: int, thread: Thread) -> None:
    """One step of a thread whose time has come. What it queued is there when the call returns."""
    if number in busy.calls:
        busy.queue(busy.calls.pop(number))
    if number not in busy.idle:
        busy.ended = busy.now
    busy.idle.discard(number)
    step = next(thread, None)
    del busy.resumes[number]
    if isinstance(step, Wait):
        busy.waits[number] = step
    elif isinstance(step, Spend):
        busy.resumes[number] = busy.now + step.seconds
        if step.idle:
            busy.idle.add(number)
    elif isinstance(step, Queue):
        busy.resumes[number] = busy.now + step.call
        busy.calls[number] = step

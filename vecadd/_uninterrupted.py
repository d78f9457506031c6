"""Work on files that no KeyboardInterrupt tears apart, however many come."""

from _thread import allocate_lock, start_new_thread
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from queue import Empty, SimpleQueue

Progress = Callable[[int, int], object]


class _Stopped(Exception):
    """The caller was interrupted: the work has to end."""


class Check:
    """Raises, when it is called, once the caller was interrupted. ``stopped`` is not 0 then: C reads it without
    Python's lock."""

    def __init__(self) -> None:
        self.stopped = bytearray(1)

    def __call__(self) -> None:
        if self.stopped[0]:
            raise _Stopped


def run_uninterrupted(work: Callable[[Check, Progress | None], None], progress: Progress | None) -> None:
    """Runs ``work(check, tell)`` in a thread of its own, and waits until it has ended.

    Python raises KeyboardInterrupt in the main thread, and a second one may come while the first is handled. If the
    main thread opened the files, the second would make it close them under the threads that write them. Their next
    writes would go to the next file that gets the descriptor's number. In a thread of its own, the work closes the
    files that it has opened.

    The work calls ``check`` now and then, and ``tell`` to have the caller's thread call ``progress``, for which it
    waits. An exception in the caller's thread, from ``progress`` or a signal, makes both raise in the work; it is
    raised here when the work has ended.

    No threading.Thread and no Event: an interrupt within their methods leaves a lock taken, on which the next call, or
    the end of the process, waits for ever. Queues and locks take an interrupt before or after their work.
    """
    check = Check()
    told: list[tuple[int, int]] = []
    errors: list[BaseException] = []
    wake: SimpleQueue[None] = SimpleQueue()  # for the caller's thread
    proceed: SimpleQueue[None] = SimpleQueue()  # for the work
    running = allocate_lock()  # held until the work has ended

    def tell(done: int, size: int) -> None:
        told.append((done, size))
        wake.put(None)
        proceed.get()
        check()

    def run() -> None:
        proceed.get()  # not before the caller waits for the end
        try:
            check()
            work(check, None if progress is None else tell)  # an object that is called may be false, as an empty list
        except BaseException as error:
            errors.append(error)
        running.release()
        wake.put(None)

    def call_progress() -> None:
        if told and progress is not None and not check.stopped[0]:
            progress(*told.pop())
            proceed.put(None)

    def give_up() -> None:
        check.stopped[0] = 1
        proceed.put(None)

    begun = False
    raised: BaseException | None = None
    running.acquire()
    try:
        start_new_thread(copy_context().run, (run,))
        while True:
            try:
                if not begun:
                    begun = True
                    proceed.put(None)
                while running.locked():
                    if raised is not None:
                        give_up()
                    with suppress(Empty):
                        wake.get(timeout=0.1)  # an interrupt may have taken the message
                    call_progress()
                break
            except BaseException as error:
                raised = error if raised is None else raised  # and no call, in which another interrupt would be raised
    finally:
        give_up()
    if raised is None and errors:
        raised = errors[0]
    errors.clear()
    try:
        if raised is not None:
            raise raised
    finally:
        raised = None  # its traceback holds this frame

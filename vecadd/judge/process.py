"""The parent's side of the process that a contestant runs in: questions, answers, and how that process may end."""

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from ast import literal_eval
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from vecadd._machine import environment_of_child, python_command
from vecadd.figures import NUMBER, Kind, Whole, check_kinds

CHILD = "vecadd.judge.child"
LONGEST_ANSWER = 1 << 20  # bytes

# The fields of an answer that say why the child could not do what it was asked. Other answers have those of ANSWERS, by
# what was asked.
REASONS = ("impossible", "uncompiled", "raised", "lost")
_COUNT: Kind = [int] * 5
_GPU = ("memory", "l2", "cc_major", "cc_minor", "clock_khz")
ANSWERS: Mapping[str, Kind] = {
    "begin": Whole(gpu=Whole(name=str, **dict.fromkeys(_GPU, int)), persisting=int),
    "replaced": Whole(replaced=[str]),
    "call": Whole(
        regions=[_COUNT] * 7, at_rest=_COUNT, later=_COUNT, persisting=int, unordered=bool, seconds=NUMBER, host=NUMBER
    ),
}

LINES = 5  # of what the child printed, at most, in the words of its end


def is_child() -> bool:
    """Whether this process is such a child: a script that judges itself must not go on for ever."""
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    return main is not None and main.name == CHILD


class EndedError(Exception):
    """The child gave no answer: it crashed, ended itself, or took too long. ``kind`` is one of session.KINDS."""

    def __init__(self, kind: str, words: str) -> None:
        super().__init__(words)
        self.kind, self.words = kind, words


class Child:
    """The process; a context that ends it. It runs foreign code with this user's rights: a process is no sandbox."""

    def __init__(self) -> None:
        self._printed = tempfile.TemporaryFile()  # noqa: SIM115  closed in __exit__
        self._process = subprocess.Popen(
            python_command("-m", CHILD),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._printed,
            env=environment_of_child(),
            start_new_session=True,
        )
        self._rest = b""

    def __enter__(self) -> "Child":
        return self

    def __exit__(self, *exception: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._kill()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(BrokenPipeError):
                if pipe:
                    pipe.close()
        self._printed.close()

    def ask(self, timeout: float, **question: Any) -> dict[str, Any]:
        """The child's answer; raises EndedError where none comes within ``timeout`` seconds."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{question!r}\n".encode())
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._ended() from None
        line = self._line(timeout)
        try:
            answer: dict[str, Any] = literal_eval(line.decode())
            said = [reason for reason in REASONS if reason in answer]
            check_kinds("answer", answer, dict.fromkeys(said, str) if said else ANSWERS.get(question["ask"], {}))
        except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):  # foreign code wrote to the pipe
            raise EndedError("crash", "its process wrote something else than an answer") from None
        return answer

    def _line(self, timeout: float) -> bytes:
        assert self._process.stdout is not None
        end = time.monotonic() + timeout
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._rest:
                if not selector.select(max(0.0, end - time.monotonic())):
                    self._kill()
                    raise EndedError("hang", f"no answer came within {timeout:.3g} s")
                read = os.read(self._process.stdout.fileno(), 1 << 16)
                if not read or len(self._rest) > LONGEST_ANSWER:
                    raise self._ended()
                self._rest += read
        line, _, self._rest = self._rest.partition(b"\n")
        return line

    def _ended(self) -> EndedError:
        """Why there is no process any more, with the end of what it printed."""
        try:
            status = self._process.wait(5.0)
        except subprocess.TimeoutExpired:  # it has closed its pipe and goes on
            self._kill()
            return EndedError("crash", f"its process closed the pipe of its answers{self._last_words()}")
        if status >= 0:
            return EndedError("crash", f"its process ended itself with exit status {status}{self._last_words()}")
        return EndedError("crash", f"its process was ended by {signal.Signals(-status).name}{self._last_words()}")

    def _last_words(self) -> str:
        self._printed.seek(0, os.SEEK_END)
        self._printed.seek(max(0, self._printed.tell() - 4096))
        lines = self._printed.read().decode(errors="replace").split("\n")
        said = [line.strip() for line in lines if line.strip()][-LINES:]
        return f": {' | '.join(said)}" if said else ""

    def _kill(self) -> None:
        """Ends the child and what it has started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

"""Adding .npy files in a process that is killed or interrupted: a target that nothing spoils.

VECADD_TEST_MOMENTS says at how many moments each way of it is tried, 1 without it.
"""

import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from types import ModuleType

import numpy as np
import pytest
from conftest import child_environment
from npy_files import OLD, assert_untouched, fill_folder, npy_bytes, open_without_tmpfile

from vecadd.files import add_files, run_uninterrupted


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return fill_folder(tmp_path)


@pytest.fixture(params=["without a name", "with a name"])
def temporary(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both kinds of temporary file: the second is for file systems without O_TMPFILE."""
    if request.param == "with a name":
        monkeypatch.setattr(os, "open", open_without_tmpfile)
    return str(request.param)


MOMENTS = range(int(os.environ.get("VECADD_TEST_MOMENTS", "1")))


@pytest.mark.parametrize("moment", MOMENTS)
def test_nothing_is_lost_when_the_process_is_killed(moment: int, folder: Path) -> None:
    code = f"""
        import time
        from vecadd.files import add_files
        told = 0
        def stop(done, size):
            global told
            if told == {moment % 7}:
                print("on the way", flush=True)
                time.sleep(60)
            told += 1
        add_files("a.npy", "b.npy", "c.npy", window=64, progress=stop)
    """
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=folder,
        env=child_environment(),
        stdout=subprocess.PIPE,
    )
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"on the way\n"
        child.kill()
    assert child.returncode == -signal.SIGKILL
    assert (folder / "c.npy").read_bytes() == OLD


INTERRUPTED = """
    import contextlib, errno, os, signal, sys, threading, time
    from double import control
    from vecadd import files
    make = os.open

    def slowly(call, offset, nbytes):
        if call == "pwrite":
            os.write(1, b"writing\\n")  # at once, beside those of other threads
            time.sleep(0.03)
        return 0

    def with_a_name(path, flags, *rest, **keywords):
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, "Operation not supported")
        return make(path, flags, *rest, **keywords)

    control.on_file_call(slowly)
    if sys.argv[1] == "with a name":
        os.open = with_a_name
    started = False
    while True:
        try:
            if not started:
                started = True
                os.write(1, b"ready\\n")
                files.add_files("a.npy", "b.npy", "c.npy", window=64)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            break
        except KeyboardInterrupt:
            pass
    next_files = [open(f"next{i}", "wb", buffering=0) for i in range(20)]
    for thread in threading.enumerate():
        if thread is not threading.current_thread():
            with contextlib.suppress(RuntimeError):  # not started yet, or never: it opens nothing any more
                thread.join()
    print(*(os.fstat(file.fileno()).st_size for file in next_files))
"""


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("kind", ["without a name", "with a name"])
@pytest.mark.parametrize(("begin", "interrupts"), [("writing", 2), ("writing", 10), ("ready", 10)])
def test_interrupts_at_any_moment_spoil_no_file(
    begin: str, interrupts: int, kind: str, moment: int, folder: Path, double: ModuleType
) -> None:
    """The second comes while the first is handled. Files that are opened next get the numbers that are free then."""
    whole = npy_bytes(np.load(folder / "a.npy") + np.load(folder / "b.npy"))
    moments = random.Random(interrupts + 100 * moment)
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(INTERRUPTED), kind],
        cwd=folder,
        env=child_environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    with child:
        assert child.stdout is not None
        assert begin in iter(lambda: child.stdout.readline().strip(), "")
        for _ in range(interrupts):
            child.send_signal(signal.SIGINT)
            time.sleep(moments.uniform(0, 0.01))
        *_, sizes = child.stdout.read().splitlines()
    assert child.returncode == 0
    assert sizes.split() == ["0"] * 20
    assert (folder / "c.npy").read_bytes() in (OLD, whole)
    assert sorted(path.name for path in folder.iterdir() if "next" not in path.name) == ["a.npy", "b.npy", "c.npy"]


def test_the_work_has_ended_when_several_interrupts_are_raised() -> None:
    arrived: SimpleQueue[None] = SimpleQueue()
    steps: list[str] = []

    def interrupt(*signal_and_frame: object) -> None:
        arrived.put(None)
        raise KeyboardInterrupt

    def work(check: Callable[[], None], tell: object) -> None:
        for _ in range(3):
            signal.raise_signal(signal.SIGINT)
            arrived.get(timeout=60)
            time.sleep(0.02)  # the caller's thread gets behind its except clause
        steps.append("at work")
        try:
            check()
        finally:
            steps.append("closed")

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            run_uninterrupted(work, None)
    finally:
        signal.signal(signal.SIGINT, before)
    assert steps == ["at work", "closed"]


# An interrupt at each entry and each end of a function in the caller's thread, while an error may be handled.
AT_EACH_CALL = """
    import sys
    from vecadd.files import run_uninterrupted

    def work(check, tell):
        for step in range(3):
            tell(step, 3)
            check()

    def fail(done, size):
        raise ValueError

    def interrupted_at(number, progress):
        seen = 0

        def interrupt(*event):
            nonlocal seen
            seen += 1
            if seen == number:
                raise KeyboardInterrupt  # no profile is called after it

        sys.setprofile(interrupt)
        try:
            try:
                run_uninterrupted(work, progress)
            finally:
                sys.setprofile(None)
        except (ValueError, KeyboardInterrupt):
            pass
        return seen >= number

    for progress in (fail, lambda done, size: None):
        number = 1
        while interrupted_at(number, progress):
            number += 1
        print(number, flush=True)
"""


def test_an_interrupt_in_any_call_leaves_nothing_that_waits_for_ever() -> None:
    """Neither the next call nor the end of the process: an Event's lock would stay taken."""
    command = [sys.executable, "-c", textwrap.dedent(AT_EACH_CALL)]
    done = subprocess.run(command, env=child_environment(), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert min(map(int, done.stdout.split())) > 10


def test_an_interrupt_is_raised_when_nothing_is_at_work_any_more(folder: Path, temporary: str) -> None:
    before = threading.active_count()

    def interrupt(done: int, size: int) -> None:
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        add_files(folder / "a.npy", folder / "b.npy", folder / "c.npy", window=64, progress=interrupt)
    assert threading.active_count() == before
    assert_untouched(folder)


def test_an_interrupt_ends_work_that_tells_of_no_progress(folder: Path, double: ModuleType) -> None:
    """Long before its end."""
    writes: list[int] = []

    def slowly(call: str, offset: int, nbytes: int) -> int:
        if call == "pwrite":
            writes.append(offset)
            if len(writes) == 1:
                os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.1)
        return 0

    double.on_file_call(slowly)
    with pytest.raises(KeyboardInterrupt):
        add_files(folder / "a.npy", folder / "b.npy", folder / "c.npy", window=64)
    assert len(writes) < 4000 // 64
    assert_untouched(folder)


def test_an_interrupt_while_the_work_is_cleared_away_leaves_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would come before the file is removed, if the main thread removed it."""
    unlink = Path.unlink

    def interrupted(path: Path) -> None:
        signal.raise_signal(signal.SIGINT)
        unlink(path)

    def fail(done: int, size: int) -> None:
        raise MemoryError

    monkeypatch.setattr(os, "open", open_without_tmpfile)
    monkeypatch.setattr(Path, "unlink", interrupted)
    with pytest.raises(MemoryError):
        add_files(folder / "a.npy", folder / "b.npy", folder / "c.npy", progress=fail)
    assert_untouched(folder)

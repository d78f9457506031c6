"""vecadd.ladder.judge: what is right is accepted and placed, and each trick is rejected by its name."""

import json
import time
from collections.abc import Callable, Iterator
from itertools import chain, cycle, pairwise
from pathlib import Path
from random import Random
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from conftest import child_environment
from contestants import HEAD, RIGHT, TRICKS
from imports import ROOT

import vecadd
from vecadd import cli
from vecadd._machine import find_cuda_tool
from vecadd.judge import KINDS, Verdict, command, judge, run, session, verdict
from vecadd.judge.session import GUARD, LINE, GuardedArrays, RejectedError, Session
from vecadd.judge.verdict import Size
from vecadd.tables import show_seconds

pytestmark = pytest.mark.no_native  # the C of a judgement is test_judge_call.py's

SIZES = (6000, 9000)
HANG = 8.0  # seconds after which a contestant is taken to hang: the first answer takes 1 on a quiet machine
GBPS = 1e6  # no time on the double is shorter than such a memory's, or than this kernel's
LIMITS = {"device": {"gbps": GBPS, "read_gbps": GBPS, "write_gbps": GBPS}, "launch": {"kernel_seconds": 1e-9}}


@pytest.fixture(autouse=True)
def on_the_double(double: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """The child has the double as well. The probes, which take seconds there, are not made."""
    monkeypatch.setenv("PYTHONPATH", child_environment()["PYTHONPATH"])
    monkeypatch.setattr(run, "_probe_limits", lambda *ignored: LIMITS)


@pytest.fixture
def file(tmp_path: Path) -> Callable[[str], Path]:
    """file(code): a file with the head of all contestants and this code."""

    def write(code: str, name: str = "contestant.py") -> Path:
        path = tmp_path / name
        path.write_text(HEAD + code)
        return path

    return write


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_is_accepted(name: str, file: Callable[[str], Path]) -> None:
    verdict = judge(file(RIGHT[name]), sizes=SIZES[:1], rounds=2)
    assert (verdict.kind, verdict.words) == ("", "")
    assert verdict.accepted


@pytest.mark.parametrize("name", TRICKS)
def test_a_trick_is_rejected_by_its_name(name: str, file: Callable[[str], Path]) -> None:
    kind, words, code = TRICKS[name]
    verdict = judge(file(code), sizes=SIZES, rounds=2, timeout=HANG if kind == "hang" else 60.0)
    assert (verdict.kind, verdict.accepted) == (kind, False), verdict.words
    assert words in verdict.words
    assert verdict.words
    assert verdict.sizes == ()


@pytest.mark.skipif(find_cuda_tool("nvcc") is None, reason="needs nvcc")
def test_a_cu_file_that_does_not_compile_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "mine.cu"
    path.write_text('extern "C" __global__ void add(float *a) { nothing(a); }')
    verdict = judge(path)
    assert verdict.kind == "does not compile"
    assert "nothing" in verdict.words


def test_each_kind_has_a_test() -> None:
    """One is above, and the one that is about time, which only a GPU has, below."""
    assert {kind for kind, *_ in TRICKS.values()} == set(KINDS) - {"L2 warmed", "does not compile"}


def test_the_document_tells_of_each_kind() -> None:
    rows = [line.split(" | ") for line in (ROOT / "docs" / "judge.md").read_text().splitlines()]
    told = {row[0].strip("| *"): row[1].strip(" |") for row in rows if len(row) > 1}
    assert {kind: told.get(kind) for kind in KINDS} == dict(KINDS)


def test_what_the_file_prints_is_not_taken_for_an_answer(file: Callable[[str], Path]) -> None:
    code = "def add(a, b, out):\n    print({'regions': []}, flush=True)\n    vecadd.add(a, b, out=out)"
    assert judge(file(code), sizes=SIZES[:1], rounds=1).accepted


WRITTEN = {
    "no fields": 'b"{}"',
    "a GPU without fields": """b"{'gpu': {}, 'persisting': 0}\"""",
    "a number for a GPU": """b"{'gpu': 5, 'persisting': 0}\"""",
    "a number for a reason": """b"{'raised': 5}\"""",
    "too few regions": """b"{'regions': [(0, 0, 0, 0, 0)]}\"""",
    "more signs than a parser takes": 'b"-" * 200_000 + b"1"',
    "more terms than a parser follows": 'b"1" + b"+1j" * 100_000',
}
PIPES = """
def write(answer):
    for fd in range(3, 40):
        try:
            if os.readlink(f"/proc/self/fd/{fd}").startswith("pipe"): os.write(fd, answer + b"\\n")
        except OSError: pass
"""


@pytest.mark.parametrize("when", ["read", "called"])
@pytest.mark.parametrize("answer", WRITTEN.values(), ids=WRITTEN.keys())
def test_what_the_file_writes_to_the_pipe_of_answers_is_a_crash(
    answer: str, when: str, file: Callable[[str], Path]
) -> None:
    at_once, later = (f"write({answer})", "pass") if when == "read" else ("", f"write({answer})")
    verdict = judge(file(f"{PIPES}\n{at_once}\ndef add(a, b, out): {later}"), sizes=SIZES[:1], rounds=1)
    assert (verdict.kind, verdict.words) == ("crash", "its process wrote something else than an answer")


@pytest.mark.parametrize("dtype", ["int8", "float16", "float64", "complex128", "bool"])
def test_other_dtypes_are_judged(dtype: str) -> None:
    verdict = judge(vecadd.add, dtype, sizes=[5000], rounds=1)
    assert verdict.kind == "", verdict.words
    assert verdict.sizes[0].bytes == 3 * verdict.sizes[0].n * np.dtype(dtype).itemsize


# --- the verdict


@pytest.fixture(scope="module")
def accepted(runtime: str | None) -> Verdict:
    if runtime != "double":
        pytest.skip("needs the CUDA-runtime double")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", child_environment()["PYTHONPATH"])
        patch.setattr(run, "_probe_limits", lambda *ignored: LIMITS)
        return judge(vecadd.add, sizes=[9000, 200], rounds=5)


def test_it_is_timed_near_the_asked_sizes_and_compared_with_tuned_and_the_nearest_rung(accepted: Verdict) -> None:
    """What fits in the L2 has no limit."""
    large, small = accepted.sizes
    assert 9000 - 9000 // 64 - 128 <= large.n <= 9000
    assert large.n % 128 == 0
    assert 200 - 200 // 64 <= small.n <= 200
    for size in accepted.sizes:
        low, middle, high = size.seconds
        assert 0 < low <= middle <= high
        assert 0 < size.over_tuned[0] <= size.over_tuned[1] <= size.over_tuned[2]
        assert size.rung in vecadd.ladder.names("device")
        assert size.rung_seconds > 0
        assert size.gbps == pytest.approx(12 * size.n / middle / 1e9)
        assert size.rung in size.placed
        assert size.limit is None
        times, about = size.advice[:2]
        assert times == f"It takes {show_seconds(middle)}, {size.over_rung[1]:.3g} times as long as {size.rung}."
        assert about == f"{size.rung} is the nearest rung, and what follows is about a kernel like it."


def test_a_larger_one_has_its_share_of_the_limit_and_is_tested_for_foresight(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "MORE", float("inf"))  # times mean nothing here
    verdict = judge(vecadd.add, sizes=[180_000], rounds=1)
    (size,) = verdict.sizes
    assert size.limit == size.bytes / (1e9 * GBPS)
    assert size.share == size.limit / size.seconds[1]
    assert "in a known order" in verdict.checked[-1]


def test_the_asked_size_is_shown_beside_the_timed_one() -> None:
    verdict = judge(vecadd.add, sizes=[1 << 14], rounds=1)
    (size,) = verdict.sizes
    assert size.asked == 1 << 14
    table = verdict.table()
    (line,) = table.lines
    assert [column.name for column in table.columns[:2]] == ["asked", "n"]
    assert line is not None
    assert line.cells[:2] == ("2^14", str(size.n))
    assert verdict.sentences()[0].startswith("2^14: ")


def test_it_is_shown_as_text_as_html_and_as_plain_values(accepted: Verdict) -> None:
    plain = json.loads(json.dumps(accepted.as_dict()))
    assert plain["accepted"] is True
    assert plain["sizes"][0]["gbps"] == accepted.sizes[0].gbps
    for text in (str(accepted), accepted._repr_html_()):
        assert "accepted" in text
        assert accepted.sizes[0].rung in text


# --- what cannot be judged


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(FileNotFoundError) as raised:
        judge("nowhere.py")
    assert raised.value.filename == "nowhere.py"


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"f": 3}, TypeError, "a function of (a, b, out) or the path of a file, not 3"),
        ({"f": __file__, "dtype": "float8"}, ValueError, "not 'float8'"),
        ({"f": __file__, "arrays": "jax"}, ValueError, "arrays must be 'vecadd', 'torch', 'cupy' or None, not 'jax'"),
        ({"f": __file__, "alignment": 2}, ValueError, "a power of two from 4, an element's, to 256, not 2"),
        ({"f": __file__, "rounds": 0}, ValueError, "rounds must be at least 1, not 0"),
        ({"f": vecadd.add, "sizes": [0]}, ValueError, "sizes must be 1 to"),
        ({"f": vecadd.add, "sizes": []}, ValueError, "at least one number of elements"),
        ({"f": __file__, "function": "nothing"}, RuntimeError, "has no function nothing"),
        ({"f": Path(__file__).parents[1] / "arrays.py", "arrays": "cupy"}, RuntimeError, "cupy is not installed here"),
    ],
)
def test_what_cannot_be_judged_is_an_error(given: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error) as raised:
        judge(**given)
    assert words in str(raised.value)


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "kernel.txt"
    path.write_text("")
    with pytest.raises(ValueError, match=r"neither a \.py nor a \.cu file"):
        judge(path)


def state_of(pid: int) -> str:
    """As /proc has it; nothing where there is no such process, or its parent has not asked for its end."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0].replace("Z", "")
    except OSError:
        return ""


@pytest.mark.parametrize("ends", ["", "os._exit(3)"], ids=["accepted", "crash"])
def test_what_a_contestant_has_started_ends_with_it(ends: str, file: Callable[[str], Path], tmp_path: Path) -> None:
    code = (
        "import os, pathlib, subprocess\n"
        "started = subprocess.Popen(['sleep', '1000'])\n"
        f"pathlib.Path({str(tmp_path / 'pid')!r}).write_text(str(started.pid))\n"
        "def add(a, b, out):\n"
        f"    {ends or 'vecadd.add(a, b, out)'}\n"
    )
    judge(file(code), sizes=SIZES[:1], rounds=1)
    started, end = int((tmp_path / "pid").read_text()), time.monotonic() + 60
    while state_of(started) and time.monotonic() < end:
        time.sleep(0.01)
    assert not state_of(started)


def test_a_script_that_judges_itself_is_told(file: Callable[[str], Path]) -> None:
    verdict = judge(file(f"{RIGHT['vecadd']}\nvecadd.ladder.judge(__file__)"))
    assert verdict.kind == "raises"
    assert "if __name__ == '__main__'" in verdict.words


def test_a_function_of_the_session_goes_by_cloudpickle() -> None:
    pytest.importorskip("cloudpickle")
    offset = 0

    def add(a: Any, b: Any, out: Any) -> None:
        vecadd.add(a, b[offset:], out=out)

    assert judge(add, sizes=[5000], rounds=1).accepted


def test_a_function_that_cannot_be_sent_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    lock = __import__("threading").Lock()

    def add(a: Any, b: Any, out: Any) -> None:
        with lock:
            vecadd.add(a, b, out=out)

    with pytest.raises(ValueError, match="cannot be sent to another process"):
        judge(add)


# --- the command


def test_the_command_accepts_with_status_0(
    file: Callable[[str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "verdict.json"
    given = ["judge", str(file(RIGHT["vecadd"])), "--sizes", "5000", "--rounds", "2", "--json", str(path)]
    assert cli.main(given) == 0
    shown = capsys.readouterr().out
    assert "accepted\n" in shown
    assert "time / tuned" in shown
    written = json.loads(path.read_text())
    assert written["verdict"]["accepted"] is True
    assert written["meta"]["gpu"]


def test_the_command_rejects_with_status_1(file: Callable[[str], Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["judge", str(file(TRICKS["nothing"][2])), "--sizes", "5000"]) == 1
    assert "rejected: nothing written: all elements of out" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["mine.py", "mine.cu"])
def test_the_command_says_with_status_2_whether_the_file_or_its_function_is_missing(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / name
    path.write_text("")
    assert cli.main(["judge", str(path)]) == 2
    function = 'extern "C" function add' if name.endswith(".cu") else "function add"
    said = f"vecadd judge: {path} has no {function}: define it, or name another by --function\n"
    assert capsys.readouterr().err == said
    path.unlink()
    monkeypatch.setattr(command, "info", lambda: pytest.fail("a GPU was looked for first"))
    assert cli.main(["judge", str(path)]) == 2
    assert capsys.readouterr().err == f"vecadd judge: {path}: No such file\n"


def test_the_command_needs_a_gpu(double: ModuleType, capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
    monkeypatch.setenv("VECADD_DOUBLE_DEVICES", "0")
    assert cli.main(["judge", __file__]) == 2
    assert "no GPU" in capsys.readouterr().err


def test_help_says_that_it_is_no_sandbox(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["judge", "--help"])
    assert "no sandbox" in capsys.readouterr().out


# Where the arrays of a judged call are: apart, in their memory, and aligned as was asked.


ROOMS = [GuardedArrays(n, itemsize) for n in (1, 3, 255, 256, 5000) for itemsize in (1, 2, 4, 8, 16)]


def places(room: GuardedArrays, alignment: int | None) -> list[tuple[int, int, int]]:
    draw = Random(0).randrange
    return [room.aligned(draw) if alignment is None else room.misaligned(draw, alignment) for _ in range(50)]


@pytest.mark.parametrize("room", ROOMS, ids=str)
@pytest.mark.parametrize("alignment", [None, 16])
def test_the_arrays_have_guards_around_them(room: GuardedArrays, alignment: int | None) -> None:
    guard = GUARD // room.itemsize
    for a, b, out in places(room, alignment):
        ends = [begin + room.n for begin in (a, b, out)]
        gaps = [a, b - ends[0], out - ends[1], room.elements - ends[2]]
        assert min(gaps) >= guard - LINE


@pytest.mark.parametrize("room", ROOMS, ids=str)
def test_aligned_ones_are_on_lines(room: GuardedArrays) -> None:
    assert {begin * room.itemsize % LINE for place in places(room, None) for begin in place} == {0}


@pytest.mark.parametrize("alignment", [4, 16, 64])
def test_misaligned_ones_are_aligned_as_asked_and_no_more(alignment: int) -> None:
    offsets = {begin * 4 % LINE for place in places(GuardedArrays(1000, 4), alignment) for begin in place}
    assert {offset % alignment for offset in offsets} == {0}
    assert any(offset % (2 * alignment) for offset in offsets)


def test_each_place_is_another() -> None:
    assert len(set(places(GuardedArrays(5000, 4), None))) > 40


# The verdict's clock: which rung is nearest, what is timed beside it, and which times are believed.


RUNGS = [{"name": name} for name in ("slow", "near", "refuses", "tuned")]


class MadeUp:
    """A session whose calls take what a test gives them, in order; the contestant's first calls take longer."""

    itemsize = 4

    def __init__(self) -> None:
        self.order: list[str | None] = []
        self.random = SimpleNamespace(shuffle=lambda names: None)
        self._seconds: dict[str | None, Iterator[float]] = {
            None: chain([50.0, 9.0, 4.0], cycle([4.0, 6.0, 5.0])),
            "slow": cycle([40.0]),
            "near": chain([60.0, 5.0, 70.0], cycle([2.0, 2.0, 5.0])),
            "tuned": chain([3.0] * 3, cycle([1.0, 3.0, 2.0])),
        }

    def near(self, n: int) -> int:
        return n - 7

    def stage(self, n: int) -> Any:
        return SimpleNamespace(n=n)

    def drop(self) -> None:
        self.order.append("dropped")

    def seconds(self, room: Any, where: str, *, rung: str | None = None) -> float:
        self.order.append(rung)
        if rung == "refuses":
            raise RejectedError("raises", "ValueError: too few elements")
        return next(self._seconds[rung])


def test_the_nearest_rung_is_that_whose_best_look_is_nearest_to_the_last_warm_call() -> None:
    session = MadeUp()
    timed = verdict.time_size(session, 1000, RUNGS, 3)  # type: ignore[arg-type]
    assert timed == Size(
        asked=1000, n=993, bytes=3 * 4 * 993, seconds=(4.0, 5.0, 6.0), tuned=2.0, over_tuned=(2.0, 2.5, 4.0),
        rung="near", rung_seconds=2.0, over_rung=(1.0, 2.0, 3.0),
    )  # fmt: skip
    looks = [None] * 3 + ["slow"] * 3 + ["near"] * 3 + ["refuses"] + ["tuned"] * 3
    assert session.order == [*looks, *[None, "tuned", "near"] * 3, "dropped"]


def test_a_rung_that_computes_wrongly_ends_the_judgement() -> None:
    session = MadeUp()

    def wrong(*arguments: Any, rung: str | None = None) -> float:
        if rung is None:
            return 1.0
        raise RejectedError("wrong sum", "element 0")

    session.seconds = wrong  # type: ignore[method-assign]
    with pytest.raises(RejectedError, match="wrong sum: element 0"):
        verdict.time_size(session, 1000, RUNGS, 3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("n", "seconds", "words"),
    [
        (1 << 20, 0.99e-6, "1048576 elements, where the memory takes 1 us at least, whatever the L2 contains"),
        (1 << 20, 1.99e-6, "1048576 elements, where a kernel that does nothing takes 2 us at least"),
        (1 << 20, 2e-6, None),
        (1024, 1.99e-6, "1024 elements, where a kernel that does nothing takes 2 us at least"),
        (1023, 1.99e-6, None),
        (1023, 0.99e-6, "1023 elements, where the memory takes 1 us at least, whatever the L2 contains"),
    ],
)
def test_less_than_the_memory_or_an_empty_kernel_takes_is_not_believed(
    n: int, seconds: float, words: str | None
) -> None:
    timed = Size(n, n, 12 * n, (0.0, seconds, 9.0), 1.0, (1.0,) * 3, "tuned", 1.0, (1.0,) * 3)
    if words is None:
        run._refuse_impossible_time(timed, 1e-6, 2e-6)
        return
    with pytest.raises(RejectedError) as raised:
        run._refuse_impossible_time(timed, 1e-6, 2e-6)
    assert raised.value.kind == "returned early"
    assert raised.value.words.endswith(words)


def test_the_bounds_of_a_time_are_less_than_what_memory_and_launch_take(monkeypatch: pytest.MonkeyPatch) -> None:
    """3 arrays of 4 MB, of which the L2 may have 2 MB, at 1.05 times 100 GB/s; 0.9 of an empty kernel's 4 us."""
    timed = Size(10**6, 10**6, 12 * 10**6, (1.0,) * 3, 1.0, (1.0,) * 3, "tuned", 1.0, (1.0,) * 3)
    limits: list[float] = []
    monkeypatch.setattr(verdict, "time_size", lambda *arguments: timed)
    monkeypatch.setattr(run, "_refuse_impossible_time", lambda timed, *least: limits.extend(least))
    monkeypatch.setattr(run, "_advise", lambda *arguments: ())
    gpu = {"cc_major": 9, "cc_minor": 0, "l2": 2 * 10**6}
    probed = {"device": {"gbps": 100.0}, "launch": {"kernel_seconds": 4e-6}}
    size = run._time_size(SimpleNamespace(itemsize=4), 10**6, gpu, "float32", probed, 3, lambda what: None)  # type: ignore
    assert limits == pytest.approx([10e6 / 105e9, 3.6e-6])
    assert size.limit == pytest.approx(12e6 / 100e9)


NOTHING = (0,) * 5
ANSWER = {
    "regions": [NOTHING] * 7,
    "at_rest": NOTHING,
    "later": NOTHING,
    "persisting": 0,
    "unordered": False,
    "host": 0.0,
}


def test_the_gpu_waits_for_the_host_as_many_cycles_as_its_clock_makes() -> None:
    """100 us and one and a half times what the contestant took to queue its last call, up to 5 ms of it; 10 ms more
    where a blockade delays kernels."""
    took, asked = iter([2e-3, 1.0, 0.0]), []

    def ask(timeout: float, **question: Any) -> dict[str, Any]:
        asked.append(question)
        return ANSWER | {"seconds": 1.0, "host": next(took)} if question["ask"] == "call" else {}

    session = Session(SimpleNamespace(ask=ask), {"clock_khz": 2_000_000, "l2": 1 << 20}, 4, 1.0)  # type: ignore
    room = session.stage(1000)
    for _ in range(3):
        session.call(room, (0, 0, 0), "here", blockaded=True)
    hows = [question["how"] for question in asked if question["ask"] == "call"]
    delays = [100e-6, 100e-6 + 3e-3, 100e-6 + 7.5e-3]
    assert [how["delay"] for how in hows] == pytest.approx([2e9 * delay for delay in delays], abs=1)
    assert [how["blockade"] for how in hows] == pytest.approx([2e9 * (delay + 9.9e-3) for delay in delays], abs=1)


def test_sizes_fit_twelve_times_into_four_fifths_of_the_memory() -> None:
    memory, most = 60 << 20, (4 << 20) // 4
    assert run._choose_sizes([most, 1], 4, memory) == [most, 1]
    with pytest.raises(ValueError, match=f"sizes must be 1 to {most} elements, .* not {most + 1}"):
        run._choose_sizes([most + 1], 4, memory)
    assert run._choose_sizes(None, 4, memory) == [2**16, 2**20]


def test_operands_may_be_asked_to_be_on_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    def begin() -> Any:
        raise RuntimeError("it has begun")

    monkeypatch.setattr(run, "Child", begin)
    with pytest.raises(RuntimeError, match="it has begun"):
        judge(vecadd.add, alignment=LINE)
    with pytest.raises(ValueError, match=f"to {LINE}, not {2 * LINE}"):
        judge(vecadd.add, alignment=2 * LINE)


# Whether a contestant is faster on operands that it can foresee: told by times, which only a GPU has. Here a child
# that is made up takes the times that a test gives it.

CLOCK = {"clock_khz": 1_000_000, "l2": 1 << 20}


class MadeUpChild:
    """A child whose calls take `known` seconds where the set is the one that came after the same set before, else 1."""

    def __init__(self, known: float) -> None:
        self.known = known
        self.asked: list[dict[str, Any]] = []
        self.follower: dict[str, str] = {}
        self.last = ""

    def ask(self, timeout: float, **question: Any) -> dict[str, Any]:
        self.asked.append(question)
        if question["ask"] != "call":
            return {}
        foreseen = self.follower.get(self.last) == question["stage"]
        self.follower[self.last] = self.last = question["stage"]
        return ANSWER | {"seconds": self.known if foreseen else 1.0}

    def sets(self) -> list[str]:
        """Those of the calls that are timed, in order."""
        return [asked["stage"] for asked in self.asked if asked["ask"] == "call" and asked["how"]["bare"]]


def check(child: Any) -> str:
    return session.check_foresight(Session(child, CLOCK, 4, timeout=1.0))


@pytest.mark.parametrize("known", [1.0, 0.95, 1.3])
def test_as_fast_in_any_order_is_right(known: float) -> None:
    assert "in a known order" in check(MadeUpChild(known))


def test_faster_where_the_next_set_is_known_is_a_trick() -> None:
    with pytest.raises(RejectedError) as found:
        check(MadeUpChild(known=0.8))
    assert found.value.kind == "L2 warmed"
    assert "1.25 times as fast" in found.value.words


def test_known_and_other_orders_take_turns_on_sets_of_twice_the_l2() -> None:
    child = MadeUpChild(1.0)
    check(child)
    stages = [asked for asked in child.asked if asked["ask"] == "stage"]
    assert len({asked["stage"] for asked in stages}) == len(stages) == session.SETS
    assert {asked["n"] for asked in stages} == {2 * CLOCK["l2"] // (3 * 4)}
    sets, lap = child.sets(), [f"set {index}" for index in range(session.SETS)]
    known, others = session.LAPS * session.SETS, (session.LAPS - 1) * session.SETS
    assert len(sets) == session.ROUNDS * (known + others)
    for begin in range(0, len(sets), known + others):
        assert sets[begin : begin + known] == lap * session.LAPS
    # In other orders no set comes early or after the same one again.
    follower: dict[str, str] = {}
    for at, (before, now) in enumerate(pairwise(sets[: known + others]), start=1):
        if at >= known:
            assert now not in sets[at - 2 : at]
            assert follower[before] != now
        follower[before] = now
    # Nothing is prepared between timed calls.
    timed = [asked for asked in child.asked if asked["ask"] == "call" and asked["how"]["bare"]]
    assert not any(asked["flush"] for asked in timed)
    assert len({(asked["stage"], asked["start"]) for asked in timed}) == session.SETS


def test_timed_calls_find_the_l2_full_where_the_operands_take_a_sixteenth_of_it() -> None:
    child = MadeUpChild(1.0)
    session = Session(child, CLOCK, 4, timeout=1.0)  # type: ignore[arg-type]
    for n in (5461, 5462):
        session.seconds(session.stage(n), "timed")
    assert [asked["flush"] for asked in child.asked if asked["ask"] == "call"] == [False, True]


def test_sizes_and_places_are_drawn() -> None:
    """100 draws of a number of which there are more than 50 never give the same one throughout."""
    child = MadeUpChild(1.0)
    session = Session(child, CLOCK, 4, timeout=1.0)  # type: ignore[arg-type]
    assert len({session.near(1 << 20) for _ in range(100)}) > 1
    room = session.stage(1 << 20)
    for _ in range(100):
        session.seconds(room, "timed")
    calls = [asked for asked in child.asked if asked["ask"] == "call"]
    assert len({asked["start"] for asked in calls}) > 1
    assert len({asked["how"]["pokes"] for asked in calls}) > 1

"""vecadd.ladder.judge: what is right is accepted and placed, and each trick is rejected by its name."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from conftest import child_environment
from contestants import HEAD, RIGHT, TRICKS
from imports import ROOT

import vecadd
from vecadd import cli
from vecadd.judge import KINDS, Verdict, command, foresight, judge, run
from vecadd.judge.compile import find_nvcc
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
    monkeypatch.setattr(run, "_probed", lambda *ignored: LIMITS)


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


@pytest.mark.skipif(find_nvcc() is None, reason="needs nvcc")
def test_a_cu_file_that_does_not_compile_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "mine.cu"
    path.write_text('extern "C" __global__ void add(float *a) { nothing(a); }')
    verdict = judge(path)
    assert verdict.kind == "does not compile"
    assert "nothing" in verdict.words


def test_each_kind_has_a_test() -> None:
    """One is above, and the one that is about time, which only a GPU has, in test_judge_foresight.py."""
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
    "more signs than a parser holds": 'b"-" * 200_000 + b"1"',
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
        patch.setattr(run, "_probed", lambda *ignored: LIMITS)
        return judge(vecadd.add, sizes=[9000, 200], rounds=5)


def test_it_is_timed_near_the_sizes_that_were_asked_for(accepted: Verdict) -> None:
    large, small = accepted.sizes
    assert 9000 - 9000 // 64 - 128 <= large.n <= 9000
    assert large.n % 128 == 0
    assert 200 - 200 // 64 <= small.n <= 200


def test_it_stands_beside_tuned_and_the_nearest_rung(accepted: Verdict) -> None:
    for size in accepted.sizes:
        low, middle, high = size.seconds
        assert 0 < low <= middle <= high
        assert 0 < size.over_tuned[0] <= size.over_tuned[1] <= size.over_tuned[2]
        assert size.rung in vecadd.ladder.names("device")
        assert size.rung_seconds > 0
        assert size.gbps == pytest.approx(12 * size.n / middle / 1e9)
        assert size.rung in size.placed
        assert size.advice


def test_what_fits_in_the_l2_has_no_limit(accepted: Verdict) -> None:
    assert [size.limit for size in accepted.sizes] == [None, None]


def test_a_larger_one_has_its_share_of_the_limit_and_is_held_against_foresight(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foresight, "MORE", float("inf"))  # times mean nothing here
    verdict = judge(vecadd.add, sizes=[180_000], rounds=1)
    (size,) = verdict.sizes
    assert size.limit == size.bytes / (1e9 * GBPS)
    assert size.share == size.limit / size.seconds[1]
    assert "in a known order" in verdict.checked[-1]


@pytest.mark.parametrize(
    ("part", "n", "words"),
    [
        ({"device": {"gbps": 1e-3}}, 180_000, "where the memory takes "),
        ({"launch": {"kernel_seconds": 100.0}}, 6000, "where a kernel that does nothing takes 90 s at least"),
    ],
    ids=["memory", "launch"],
)
def test_a_time_that_nothing_allows_is_rejected(
    part: dict[str, Any], n: int, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foresight, "MORE", float("inf"))
    monkeypatch.setattr(run, "_probed", lambda *ignored: LIMITS | part)
    verdict = judge(vecadd.add, sizes=[n], rounds=1)
    assert verdict.kind == "returned early"
    assert words in verdict.words


def test_a_tiny_addition_may_be_quicker_than_a_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "_probed", lambda *ignored: LIMITS | {"launch": {"kernel_seconds": 100.0}})
    assert judge(vecadd.add, sizes=[200], rounds=1).accepted


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


def test_the_advice_says_what_was_measured_and_names_the_nearest_rung(accepted: Verdict) -> None:
    for size in accepted.sizes:
        times, about = size.advice[:2]
        assert (
            times == f"It takes {show_seconds(size.seconds[1])}, {size.over_rung[1]:.3g} times as long as {size.rung}."
        )
        assert about == f"{size.rung} is the nearest rung, and what follows is about a kernel like it."


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

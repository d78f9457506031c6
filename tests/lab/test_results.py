"""The result file: what is in it, that it is whole, and under which conditions it was made."""

import errno
import io
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from checks import H200
from conftest import child_environment, run_child
from made_up import plain_figure

from vecadd import _machine
from vecadd.bench import machine
from vecadd.figures import SCHEMA, Run, json_text, read_fields, read_run, replace_file, write_run
from vecadd.info import info

pytestmark = pytest.mark.no_native

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
RECORDED, RUNS = sorted(RESULTS.rglob("*.json")), sorted(RESULTS.glob("*/*.json"))

KEYS = "sweep rung dtype n params seconds spread bytes gbps limit_gbps fraction checked error"


FAILED = plain_figure(value=None, spread=None, fraction=None, checked=False, error="wrong result: element 3")


def test_what_is_written_is_read(tmp_path: Path) -> None:
    write_run(tmp_path / "x.json", {"machine": "here"}, [plain_figure(), FAILED])
    path = tmp_path / "x.json"
    assert read_run(path) == Run({"machine": "here"}, [plain_figure(), FAILED], path)


def test_each_row_is_on_one_line(tmp_path: Path) -> None:
    write_run(tmp_path / "x.json", {"machine": "here"}, [plain_figure(), FAILED])
    lines = (tmp_path / "x.json").read_text().splitlines()
    rows = [json.loads(line.rstrip(",")) for line in lines if "rung" in line]
    assert [(" ".join(row), row["checked"]) for row in rows] == [(KEYS, True), (KEYS, False)]


@pytest.mark.parametrize("empty", [{}, {"rows": []}, {"meta": {}, "rows": []}, {"meta": {"failures": []}}])
def test_what_is_empty_is_a_file_too(empty: dict[str, Any]) -> None:
    assert json.loads(json_text(empty)) == {"schema": SCHEMA, **empty}


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_recorded_file_is_as_it_would_be_written_now(path: Path) -> None:
    assert json_text(read_fields(path)) == path.read_text()


@pytest.mark.parametrize("path", RUNS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_recorded_figure_has_the_rate_that_its_row_says(path: Path) -> None:
    rates = [row["gbps"] for row in read_fields(path)["rows"]]
    assert [figure.gbps for figure in read_run(path).figures] == [pytest.approx(rate) for rate in rates]


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({}, 'is not a result file: it has no "schema"'),
        (
            {"schema": SCHEMA + 1},
            f"is a result file of schema {SCHEMA + 1}; this vecadd reads schema {SCHEMA}: "
            "install the vecadd that wrote it, or a newer one",
        ),
        *(({"schema": odd}, ": measure again to replace it") for odd in (0, -1, "1", 1.0, True, None, [1])),
    ],
    ids=str,
)
def test_a_file_of_another_schema_or_of_none_is_refused_and_says_what_to_do(
    schema: dict[str, Any], said: str, tmp_path: Path
) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps({**schema, "meta": {"machine": "here"}, "rows": []}))
    with pytest.raises(ValueError, match=r"x\.json is ") as refused:
        read_run(path)
    assert str(refused.value).startswith(str(path))
    assert said in str(refused.value)


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    write_run(tmp_path / "x.json", {"run": 1}, [plain_figure()])
    with pytest.raises(TypeError):
        write_run(tmp_path / "x.json", {"run": object()}, [plain_figure()])
    assert read_run(tmp_path / "x.json").meta == {"run": 1}
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]


@pytest.mark.parametrize("call", [(os, "pwrite"), (Path, "rename")], ids=["write", "rename"])
def test_a_file_that_cannot_be_written_is_the_one_that_is_named(
    call: tuple[object, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not the temporary one beside it. A full disk names none by itself."""

    def full(*given: object, **more: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(*call, full)
    with pytest.raises(OSError, match="No space left on device") as raised:
        replace_file(tmp_path / "x.json", "rows")
    assert raised.value.filename == str(tmp_path.resolve() / "x.json")
    assert list(tmp_path.iterdir()) == []


def test_standard_output_that_takes_nothing_is_an_error_at_once() -> None:
    """And not at the end of the process, where no caller is left to catch it."""
    code = (
        "from vecadd.figures import replace_file\n"
        "try:\n    replace_file('-', 'rows')\n"
        "except OSError as error:\n    print(error.errno, error.filename, file=sys.stderr)\n    os._exit(0)"
    )
    command = [sys.executable, "-c", f"import os, sys\n{code}"]
    with Path("/dev/full").open("wb") as full:
        buffered = child_environment(PYTHONUNBUFFERED="")
        done = subprocess.run(command, env=buffered, stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (0, f"{errno.ENOSPC} -\n")


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "link"])
def test_what_is_open_is_written_to_in_place_and_not_replaced(name: str, tmp_path: Path) -> None:
    """`vecadd ... --json /dev/stdout >> log`: the log keeps what it has."""
    (tmp_path / "link").symlink_to("/dev/stdout")
    log = tmp_path / "log"
    log.write_text("earlier\n")
    code = (
        f"from vecadd.figures import replace_file\nprint('before')\nreplace_file({name!r}, 'rows\\n')\nprint('after')"
    )
    with log.open("a") as file:
        subprocess.run([sys.executable, "-c", code], env=child_environment(), stdout=file, cwd=tmp_path, check=True)
    assert log.read_text() == "earlier\nbefore\nrows\nafter\n"


def test_a_device_is_not_read() -> None:
    with pytest.raises(ValueError, match=r"/dev/zero is not a result file: it is a device"):
        read_fields(Path("/dev/zero"))


def test_standard_output_gets_utf_8_in_every_locale_and_the_numbers_of_what_that_lacks() -> None:
    code = r"from vecadd.figures import replace_file; print('page'); replace_file('-', '\u00d7 \udcff')"
    assert run_child(code, PYTHONIOENCODING="ascii").stdout == "page\n\u00d7 \\udcff"


def test_a_notebooks_standard_output_takes_text(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    monkeypatch.setattr(sys, "stdout", shown)
    replace_file("-", "\u00d7")
    assert shown.getvalue() == "\u00d7"


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        replace_file(pipe, "rows")
        assert (os.read(reader, 100), pipe.is_fifo()) == (b"rows", True)
    finally:
        os.close(reader)


@pytest.mark.parametrize(
    "text",
    [
        *("", "[]", "{}", "[" * 100_000, '{"schema": 1}'),
        '{"schema": 1, "meta": {}, "rows": [{}]}',
        '{"schema": 1, "meta": {}, "rows": [{"spread": 1}]}',
    ],
)
def test_another_file_is_refused_by_name(text: str, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(ValueError, match=r"x\.json is not a result file"):
        read_run(tmp_path / "x.json")


OTHER_KINDS: dict[str, tuple[dict[str, Any], str]] = {
    "a number for a rung": ({"rung": 3}, "rows[1].rung is 3, not a text"),
    "no number for a rung": ({"rung": float("nan")}, "rows[1].rung is NaN, not a text"),
    "a text for the parameters": ({"params": "x"}, 'rows[1].params is "x", not an object'),
    "a list for the kernel's parameters": ({"params": {"parameters": []}}, "rows[1].params.parameters is []"),
    "a ratio of zero": ({"params": {"ratio": 0}}, "ratio is 0, not above zero"),
    "a short step": ({"params": {"timeline": [["kernel", 0, 0, 0.0]]}}, "timeline[0] has 4 entries, not 5"),
    "a step of another kind": ({"params": {"timeline": [[0, 0, 0, 0.0, 0.1]]}}, "timeline[0][0] is 0, not a text"),
    "many digits of a parameter": ({"params": {"parameters": {"adds": -1, "chain": 10**29}}}, "chain is 1000"),
    "true for a size": ({"n": True}, "rows[1].n is true, not a whole number"),
    "a part for a size": ({"n": 1.5}, "rows[1].n is 1.5, not a whole number"),
    "a number for what was checked": ({"checked": 1}, "rows[1].checked is 1, not true or false"),
    "a text for a rate": ({"gbps": "x"}, 'rows[1].gbps is "x", not a whole number or another number or null'),
    "no number for a rate": ({"gbps": float("nan")}, "gbps is NaN, which is not a number in range"),
    "negative seconds": ({"seconds": -1.0}, "seconds is -1.0, not above zero"),
    "many digits": ({"spread": [1, 10**29]}, "spread[1] is 100000000000000000000000000000, which is not a number in"),
    "one end of a spread": ({"spread": [1.0]}, "not enough values"),
    "texts for the ends of a spread": ({"spread": ["a", "b"]}, 'spread[0] is "a"'),
}


OTHER_META: list[tuple[dict[str, Any], str]] = [
    ({"limits": {"device": {"gbps": "x"}}}, 'meta.limits.device.gbps is "x", not a whole number or another number'),
    ({"limits": {"loaded": {"seconds": [1, 2], "gbps": [1]}}}, "meta.limits.loaded has lists of 1 and 2 entries"),
    ({"limits": {"of our own": 3}}, "meta.limits.of our own is 3, not an object"),
    ({"limits": {"loaded": {"bytes": [1, None]}}}, "meta.limits.loaded.bytes[1] is null, not a whole number"),
    ({"gpu": [{"name": "x"}, {"l2": "x"}]}, 'meta.gpu[1].l2 is "x", not a whole number'),
    ({"cpu": {"threads": 1.5}}, "meta.cpu.threads is 1.5, not a whole number"),
    ({"contamination": {"throttled": {"heat": "x"}}}, 'meta.contamination.throttled.heat is "x"'),
]


@pytest.mark.parametrize(
    ("meta", "changed", "says"),
    [({}, *each) for each in OTHER_KINDS.values()] + [(meta, {}, says) for meta, says in OTHER_META],
    ids=[*OTHER_KINDS, *(says for _, says in OTHER_META)],
)
def test_a_field_of_another_kind_is_named_when_the_file_is_read(
    meta: dict[str, Any], changed: dict[str, Any], says: str, tmp_path: Path
) -> None:
    """And not when a plot or a table meets it."""
    write_run(tmp_path / "x.json", meta, [plain_figure(), plain_figure()])
    content = json.loads((tmp_path / "x.json").read_text())
    content["rows"][1] |= changed
    (tmp_path / "x.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match=rf"x\.json is not a result file: .*{re.escape(says)}"):
        read_run(tmp_path / "x.json")


def test_a_file_of_other_bytes_than_text_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_bytes(b"\xff\xfe{")
    for read in (read_fields, read_run):
        with pytest.raises(ValueError, match=r"x\.json is not a result file"):
            read(tmp_path / "x.json")


@pytest.mark.parametrize(
    ("params", "label"),
    [
        ({}, "pinned"),
        ({"memory": "pinned"}, "pinned"),
        ({"memory": "pageable"}, "pinned (pageable)"),
        ({"clock": "host clock"}, "pinned (host clock)"),
    ],
)
def test_a_row_is_called_by_its_memory_and_its_clock_only_where_others_have_another(
    params: dict[str, str], label: str
) -> None:
    assert plain_figure(name="pinned", params=params).label == label


@pytest.mark.parametrize(("fraction", "impossible"), [(None, False), (0.5, False), (1.0, False), (1.001, True)])
def test_more_than_the_limit_is_impossible(fraction: float | None, impossible: bool) -> None:
    assert plain_figure(fraction=fraction).is_impossible is impossible


@pytest.mark.parametrize(
    ("generation", "width", "gigabytes"),
    [
        (1, 16, 4.0), (2, 16, 8.0), (3, 16, 15.754), (4, 8, 15.754), (5, 16, 63.015), (6, 16, 121.0), (5, None, None),
        (None, 16, None), (7, 16, None), (5, 0, None),
    ],
)  # fmt: skip
def test_a_links_theory_is_its_lanes_times_their_generations_rate(
    generation: int | None, width: int | None, gigabytes: float | None
) -> None:
    found = machine.link_theory(generation, width)
    assert (found is None) == (gigabytes is None)
    assert (found or 0.0) / 1e9 == pytest.approx(gigabytes or 0.0, rel=1e-4)


def test_the_meta_data_say_what_a_reader_needs() -> None:
    meta = machine.meta(info(), machine.conditions_since(machine.conditions_now()), method="as described")
    assert json.loads(json.dumps(meta)) == meta
    assert set(meta) == {
        "machine", "gpu", "driver", "cpu", "versions", "commit", "date", "contamination", "method"
    }  # fmt: skip
    assert meta["contamination"]["load_average"] >= 0


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_a_commit_has_a_plus_once_a_file_of_it_has_changed_and_not_for_others(tmp_path: Path) -> None:
    def git(*words: str) -> str:
        who = [word for name in ("user.name", "user.email") for word in ("-c", f"{name}=x")]
        return subprocess.run(["git", *who, *words], cwd=tmp_path, check=True, capture_output=True, text=True).stdout

    assert machine.commit(tmp_path) is None
    git("init", "-q")
    (tmp_path / "kept").write_text("first")
    git("add", "kept")
    git("commit", "-q", "-m", "x")
    head = git("rev-parse", "HEAD")[:12]
    (tmp_path / "new").touch()
    assert machine.commit(tmp_path) == head
    (tmp_path / "kept").write_text("second")
    assert machine.commit(tmp_path) == f"{head}+"


def gpu_saying(microseconds: int, errors: str = "0", **link: str) -> dict[str, str]:
    """What nvidia-smi says of a GPU: for how long it was throttled for each reason, its ECC errors, its link."""
    throttled = dict.fromkeys(machine.THROTTLING.values(), str(microseconds))
    return {machine.ECC_ERRORS: errors, **throttled, **{machine.LINK[name]: said for name, said in link.items()}}


QUIET, TROUBLED, SILENT = gpu_saying(0), gpu_saying(500_000, "2"), gpu_saying(0, "[N/A]")
NOW: list[tuple[list[dict[str, str]], list[dict[str, str]], float | None, int | None]] = [
    ([QUIET, QUIET], [TROUBLED, QUIET], 0.5, 2),
    ([QUIET, QUIET], [QUIET, TROUBLED], 0.5, 2),
    ([TROUBLED], [TROUBLED], 0.0, 2),  # throttled before the run; errors count since the driver was loaded
    ([QUIET] * 3, [TROUBLED, SILENT, gpu_saying(250_000, "3")], 0.75, 5),  # added up, less what is not said
    ([], [], None, None),
]


@pytest.mark.parametrize(("before", "after", "throttled", "errors"), NOW)
def test_what_all_gpus_count_during_the_run_is_added_up(
    before: list[dict[str, str]],
    after: list[dict[str, str]],
    throttled: float | None,
    errors: int | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    conditions = conditions_between(before, after, monkeypatch)
    assert conditions["throttled"] == dict.fromkeys(machine.THROTTLING, throttled)
    assert (conditions["ecc_errors"], conditions["gpu_processes"]) == (errors, 0 if after else None)


def conditions_between(
    before: list[dict[str, str]], after: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> dict[str, Any]:
    """The conditions of a run before and after which nvidia-smi says so of the GPUs, and nothing of processes."""
    said = iter((before, after))
    monkeypatch.setattr(
        _machine, "query_nvidia_smi", lambda what, *fields: next(said) if machine.ECC_ERRORS in fields else []
    )
    return machine.conditions_since(machine.conditions_now())


@pytest.mark.parametrize(("before", "after", "kept"), [("1", "5", 5), ("5", "1", 5), (None, "4", 4), ("3", None, 3)])
def test_a_link_is_as_it_was_when_it_had_work(
    before: str | None, after: str | None, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An idle GPU's link may go down to generation 1."""
    others = {"width": "16", "generation_max": "16", "width_max": "16"}
    told = [[gpu_saying(0, **others, **({"generation": said} if said else {}))] for said in (before, after)]
    (link,) = conditions_between(*told, monkeypatch)["link_width"]
    assert link == {"generation": kept, "width": 16, "generation_max": 16, "width_max": 16}


@pytest.mark.parametrize(
    ("model", "gpu", "name"),
    [
        ("Intel(R) Xeon(R) Platinum 8480C", "NVIDIA H100 80GB HBM3", "h100-80gb-hbm3"),
        ("AMD EPYC 9654 96-Core Processor", None, "amd-epyc-9654-96-core-16t"),
        ("Intel(R) Core(TM) i7-8700 CPU @ 3.20GHz", None, "intel-core-i7-8700-3.20ghz-16t"),
    ],
)
def test_results_are_filed_by_the_gpu_or_by_the_processor_and_its_threads(
    model: str, gpu: str | None, name: str
) -> None:
    here = info()
    gpus = () if gpu is None else (replace(H200, name=gpu),)
    assert machine.name(replace(here, cpu=replace(here.cpu, model=model, threads=16), gpus=gpus)) == name


DESCRIBED = {
    "troubled": (
        {"throttled": {"power cap": 0.25, "heat": 0.0}, "gpu_processes": 3, "ecc_errors": 1},
        "other processes on the GPU: 3; GPU throttled: power cap 0.25 s; uncorrected ECC errors: 1",
    ),
    "quiet": (
        {"throttled": {"power cap": 0.0, "heat": 0.0}, "gpu_processes": 0, "ecc_errors": 0},
        "other processes on the GPU: 0; GPU throttled: never; uncorrected ECC errors: 0",
    ),
    "silent": (
        {"throttled": {"power cap": None, "heat": None}, "gpu_processes": None, "ecc_errors": None},
        "other processes on the GPU: unknown; GPU throttled: unknown; uncorrected ECC errors: unknown",
    ),
}


@pytest.mark.parametrize("name", DESCRIBED)
def test_conditions_are_one_line(name: str) -> None:
    conditions, text = DESCRIBED[name]
    described = machine.describe({"load_average": 1.5, "cpus": 2, **conditions}, gpu=True)
    assert described == f"load average 1.5 on 2 CPUs; {text}"


@pytest.mark.parametrize(
    ("now", "most", "text"),
    [
        ((5, 16), (5, 16), "PCIe 5 x16"),
        ((4, 8), (5, 16), "PCIe 4 x8 where 5 x16 is possible"),
        ((5, 16), (None, 16), "PCIe 5 x16"),
        ((None, 16), (5, 16), "unknown"),
    ],
)
def test_a_link_is_told_beside_what_is_possible(
    now: tuple[int | None, int], most: tuple[int | None, int], text: str
) -> None:
    link = dict(zip(machine.LINK, (*now, *most), strict=True))
    conditions = {"load_average": 1.5, "cpus": 2, **DESCRIBED["quiet"][0], "link_width": [link, link]}
    assert machine.describe(conditions, gpu=True).endswith(f"errors: 0; link: {text}; link: {text}")


def test_conditions_without_a_gpu_do_not_speak_of_one() -> None:
    assert machine.describe({"load_average": 1.5, "cpus": 2}, gpu=False) == "load average 1.5 on 2 CPUs"


def test_a_file_is_utf_8_in_every_locale(tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    program = "import sys; from vecadd.figures import replace_file; replace_file(sys.argv[1], '2 \\u00d7 H200')"
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    subprocess.run([sys.executable, "-c", program, str(file)], env=child_environment() | ascii_only, check=True)
    assert file.read_bytes().decode() == "2 \u00d7 H200"

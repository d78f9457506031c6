"""vecadd check --scheduler: every machine of a Dask cluster is checked once, and no two processes of one at a time."""

import asyncio
import contextlib
import json
import os
import platform
import signal
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import small_fleets
from checks import earlier

from vecadd import cli
from vecadd._command import UnaskableError
from vecadd.check import cluster, document
from vecadd.fleet import changes

jsonschema = pytest.importorskip("jsonschema")

pytestmark = pytest.mark.no_native


class Client:
    """A cluster: workers by address, each on a machine of a name. Its checks say how many ran there at once."""

    def __init__(self, workers: dict[str, Any], results: dict[str, Any] | None = None) -> None:
        self.workers, self.results = workers, results or {}
        self.turns: list[list[str]] = []

    def run(self, function: Any, *arguments: Any, workers: list[str] | None = None, on_error: str) -> dict[str, Any]:
        assert on_error == "return"
        if workers is None:
            return dict(self.workers)
        self.turns.append(sorted(workers))
        found = {each: self.results.get(each, passed(self.workers[each][1])) for each in workers}
        return {address: result for address, result in found.items() if result is not None}


def passed(host: str) -> dict[str, Any]:
    return {**document.of({"machine": "x"}, "1 × made up", [], {}), "status": "passed", "host": host}


def checked(client: Client) -> dict[str, str]:
    results = cluster._check_each(client, ["--soak=1"], [], lambda text: None)
    for result in results:
        jsonschema.validate(result, json.loads(document.schema()))
    return {result["host"]: result["status"] for result in results}


def test_each_machine_is_checked_by_one_process() -> None:
    client = Client({"tcp://a:1": ("boot a", "a"), "tcp://a:2": ("boot a", "a"), "tcp://b:1": ("boot b", "b")})
    assert checked(client) == {"a": "passed", "b": "passed"}
    assert client.turns == [["tcp://a:1", "tcp://b:1"]]


def test_containers_of_one_machine_take_turns() -> None:
    client = Client({f"tcp://p:{pod}": ("boot a", f"pod{pod}") for pod in range(3)} | {"tcp://b:1": ("boot b", "b")})
    assert checked(client) == {"b": "passed", **{f"pod{pod}": "passed" for pod in range(3)}}
    assert client.turns == [["tcp://b:1", "tcp://p:0"], ["tcp://p:1"], ["tcp://p:2"]]


def test_a_worker_that_is_lost_is_a_machine_of_unknown_state() -> None:
    workers = {"tcp://a:1": ("boot a", "a"), "tcp://b:1": ("boot b", "b"), "tcp://c:1": ModuleNotFoundError("vecadd")}
    client = Client(workers, {"tcp://a:1": OSError("connection closed"), "tcp://b:1": None})
    assert checked(client) == {"a": "unknown", "b": "unknown", "tcp://c:1": "unknown"}
    (lost,) = cluster._check_each(Client({"tcp://c:1": ModuleNotFoundError("no vecadd")}), [], [], lambda text: None)
    assert lost["findings"][0]["meaning"] == "it could not run there: no vecadd"


def test_the_file_of_a_lost_machine_is_read_beside_those_of_its_peers(tmp_path: Path, capsys: Any) -> None:
    for content in (*small_fleets.machines(small_fleets.STEADY), cluster._lost("lost", OSError("gone"))):
        (tmp_path / f"{content['host']}.json").write_text(json.dumps(content))
    assert cli.main(["fleet", str(tmp_path), "--json", str(tmp_path / "found")]) == 0
    said = capsys.readouterr().out
    assert "lost was not judged by its own check" in said
    assert "left out" not in said
    assert said.endswith("10 machines of 1 type: none is unlike its peers\n")
    assert json.loads((tmp_path / "found").read_text())["left_out"] == []


def test_a_report_and_a_comparison_of_a_lost_machine_say_that_its_type_is_unknown(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    file, page = tmp_path / "lost.json", tmp_path / "page.html"
    file.write_text(json.dumps(cluster._lost("lost", OSError("gone"))))
    assert cli.main(["report", str(file), "-o", str(page)]) == 0
    assert "a machine of an unknown type. Checked" in page.read_text()
    assert cli.main(["compare", str(file), str(file), "--html", str(page)]) == 0
    assert "lost (of an unknown type)" in page.read_text()


def test_a_lost_machine_is_told_by_its_verdict_and_has_not_become_another_type() -> None:
    lost = cluster._lost("node1", OSError("gone")) | {"time": "2026-11-02T12:00:00"}
    newest, before = changes.last_runs(small_fleets.read([small_fleets.machine(), lost]))
    assert [(note.what, note.after) for note in changes.of(newest, before, 0.05).noted] == [("verdict", "unknown")]


def test_the_file_of_a_lost_machine_has_no_figure_to_expect(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "lost.json").write_text(json.dumps(cluster._lost("lost", OSError("gone"))))
    assert cli.main(["check", "--expect", str(tmp_path / "lost.json")]) == 2
    assert "lost.json has no figure that a machine could be held against" in capsys.readouterr().err


def test_a_cluster_without_workers_cannot_be_asked() -> None:
    with pytest.raises(UnaskableError, match="the scheduler has no workers"):
        checked(Client({}))


def test_machines_of_one_name_have_files_of_their_own() -> None:
    hosts = ["node", "a/b c", "node", "..", "node", "node-2"]
    names = cluster.file_names([{"host": host} for host in hosts])
    assert names[:5] == ["node.json", "a-b-c.json", "node-2.json", "unknown.json", "node-3.json"]
    assert len(set(names)) == len(names)


@dataclass
class Dask:
    """In the place of the package distributed: which clusters were begun on this machine, and how many were ended."""

    workers: list[int] = field(default_factory=list)
    asked: list[Any] = field(default_factory=list)
    closed: int = 0

    def LocalCluster(self, n_workers: int, **options: Any) -> Any:
        self.workers.append(n_workers)
        return self

    def close(self) -> None:
        self.closed += 1

    @contextlib.contextmanager
    def Client(self, where: Any, timeout: float) -> Iterator[Client]:
        self.asked.append(where)
        yield Client({})


@pytest.mark.parametrize(
    ("scheduler", "workers"), [("local", [1]), ("local:3", [3]), ("localhost:8786", []), ("tcp://local:1", [])]
)
def test_local_begins_workers_here_which_end_with_the_check(
    scheduler: str, workers: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    dask = Dask()
    monkeypatch.setattr(cluster, "import_module", lambda name: dask)
    with pytest.raises(UnaskableError, match="the scheduler has no workers"):
        cluster.check_all(scheduler, [], [], lambda text: None)
    assert (dask.workers, dask.closed) == (workers, len(workers))
    assert dask.asked == [dask if workers else scheduler]


@pytest.mark.parametrize("count", [0, 4 * len(os.sched_getaffinity(0)) + 1])
def test_more_workers_than_a_machine_has_room_for_are_a_slip(count: int, tmp_path: Path, capsys: Any) -> None:
    pytest.importorskip("distributed")
    folder = tmp_path / "results"
    assert cli.main(["check", "--scheduler", f"local:{count}", "--output", str(folder)]) == 2
    assert f"local:{count} asks for {count} workers; there may be 1 to " in capsys.readouterr().err
    assert not folder.exists()


# On the worker


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """program(code): runs in the place of the interpreter that checks; its arguments are those of the check."""

    def make(code: str) -> None:
        path = tmp_path / "python"
        path.write_text(
            f"#!{sys.executable}\nimport json, sys\nfile = sys.argv[sys.argv.index('--json') + 1]\n{code}\n"
        )
        path.chmod(0o755)
        monkeypatch.setattr(cluster.sys, "executable", str(path))

    return make


WRITES = """
said = {"schema": "vecadd-check", "schema_version": 2, "status": "passed", "host": "here", "findings": []}
known = [open(each).read() for each in sys.argv if "old" in each]
json.dump(said | {"arguments": sys.argv[1:], "known": known}, open(file, "w"))
"""


def test_the_check_runs_in_a_process_of_its_own_with_the_files_it_is_to_expect(program: Any) -> None:
    program(WRITES)
    result = asyncio.run(cluster._check_here(["--soak=1"], [("old.json", "{1}"), ("old.json", "{2}")]))
    assert result["arguments"][:5] == ["-P", "-c", cluster.PROGRAM, "--soak=1", "--expect"]
    assert result["known"] == ["{1}", "{2}"]


@pytest.mark.filterwarnings("ignore:Couldn't detect a suitable IP address")  # Dask's, without a network
def test_workers_of_a_dask_cluster_are_found_and_asked(program: Any) -> None:
    distributed = pytest.importorskip("distributed")
    program(WRITES)
    few = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(processes=False, protocol="inproc://", **few) as local:
        (result,) = cluster.check_all(local.scheduler_address, ["--require-gpu"], [], lambda text: None)
    assert (result["host"], result["arguments"][3]) == ("here", "--require-gpu")


@pytest.mark.slow
def test_two_worker_processes_of_one_machine_are_one_check(
    child: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["check", "--scheduler", "local:2", "--output", str(tmp_path)]
    code = f"if __name__ == '__main__':\n    import sys; from vecadd import cli; sys.exit(cli.main({arguments!r}))"
    (tmp_path / "program.py").write_text(code)  # spawned workers read the program again
    result = child(
        f"import runpy; runpy.run_path({str(tmp_path / 'program.py')!r}, run_name='__main__')",
        check=False,
        VECADD_DOUBLE_DEVICES="0",
    )
    (file,) = tmp_path.glob("*.json")
    content = json.loads(file.read_text())
    jsonschema.validate(content, json.loads(document.schema()))
    assert result.returncode == {"passed": 0, "failed": 1}[content["status"]]
    assert any(each["id"].startswith("host memory/host/add ") for each in content["findings"])


def call_the_machine_by_its_gpu() -> None:
    """Runs on a worker, which is then what a container of a machine with several GPUs is."""
    platform.node = lambda: f"gpu-{os.environ['CUDA_VISIBLE_DEVICES']}"


@pytest.mark.gpu
@pytest.mark.slow
def test_containers_with_a_gpu_each_are_checked_in_turn(runtime: str | None, child: Any) -> None:
    # A child counts the GPUs: a context of this process's would be another process's on them.
    count = "from vecadd import _core; print(len(_core.gpu_facts()))"
    if runtime != "gpu" or int(child(count).stdout) < 2:
        pytest.skip("needs two GPUs")
    distributed = pytest.importorskip("distributed")
    workers = {
        gpu: {"cls": distributed.Nanny, "options": {"nthreads": 1, "env": {"CUDA_VISIBLE_DEVICES": str(gpu)}}}
        for gpu in range(2)
    }
    scheduler = {"cls": distributed.Scheduler, "options": {"dashboard": False, "dashboard_address": ":0"}}
    told: list[str] = []
    with distributed.SpecCluster(workers, scheduler) as two:
        with distributed.Client(two) as client:
            client.wait_for_workers(2, timeout=60)
            client.run(call_the_machine_by_its_gpu)
        results = cluster.check_all(two.scheduler_address, ["--require-gpu"], [], told.append)
    assert told == ["1 machines at once, 0 done", "1 machines at once, 1 done"]
    for result in results:
        jsonschema.validate(result, json.loads(document.schema()))
        assert result["status"] in ("passed", "failed")  # what else runs here may slow it down
        assert len(result["machine"]["gpu"]) == 1
        assert any(each["id"] == "device memory/gpu 0/read" for each in result["findings"])


def running(option: str) -> bool:
    """Whether a process has that option."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            if option.encode() in path.read_bytes():
                return True
    return False


@pytest.mark.slow
def test_a_worker_that_is_killed_leaves_its_machine_unknown(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    begun = tmp_path / "begun"
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as local:
        with distributed.Client(local) as client:
            (pid,) = client.run(os.getpid).values()

        def kill(text: str) -> None:
            begun.touch()
            threading.Timer(1.0, os.kill, (pid, signal.SIGKILL)).start()

        options = ["--soak=1", "--soak-memory=host", "--minutes=0.123456"]
        (result,) = cluster.check_all(local.scheduler_address, options, [], kill)
    assert (begun.exists(), result["status"]) == (True, "unknown")
    assert result["findings"][0]["next"] == "See that the worker runs, and that its Python has this vecadd."
    end = time.monotonic() + 20
    while running(options[-1]) and time.monotonic() < end:
        time.sleep(0.1)
    assert not running(options[-1])  # the check has ended with its worker


def test_a_check_that_writes_nothing_is_of_unknown_state(program: Any) -> None:
    program("sys.exit('vecadd check: something is missing')")
    result = asyncio.run(cluster._check_here([], []))
    jsonschema.validate(result, json.loads(document.schema()))
    assert (result["status"], result["findings"][0]["severity"]) == ("unknown", "unknown")
    assert "vecadd check: something is missing" in result["findings"][0]["meaning"]


# The command


def test_the_results_are_one_file_a_machine_and_one_failure_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    asked: list[Any] = []

    def check_all(
        scheduler: str, options: list[str], expected: list[tuple[str, str]], tell: Any
    ) -> list[dict[str, Any]]:
        asked.extend([scheduler, options, expected])
        return [passed("a"), {**passed("b"), "status": "failed"}, cluster._lost("c", OSError("gone"))]

    monkeypatch.setattr(cluster, "check_all", check_all)
    old = earlier(tmp_path / "old.json", read=("device", "read", 1.0))
    arguments = ["check", "--scheduler", "tcp://head:1", "--output", str(tmp_path / "new" / "results")]
    assert cli.main([*arguments, "--require-gpu", "--soak", "2", "--expect", str(old)]) == 1
    assert asked == [
        "tcp://head:1", ["--require-gpu", "--soak=2.0", "--soak-memory=both"], [("old.json", old.read_text())],
    ]  # fmt: skip
    files = {path.name: json.loads(path.read_text())["status"] for path in (tmp_path / "new" / "results").iterdir()}
    assert files == {"a.json": "passed", "b.json": "failed", "c.json": "unknown"}
    printed = capsys.readouterr().out
    assert "c: unknown: it could not run there: gone\n" in printed
    assert printed.endswith("passed: 1, failed: 1, unknown: 1\n")


def test_a_machine_whose_file_cannot_be_written_keeps_neither_the_others_nor_the_verdicts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    found = [{**passed("a"), "status": "failed"}, passed("b")]
    monkeypatch.setattr(cluster, "check_all", lambda *arguments: found)
    (tmp_path / "a.json").mkdir()  # in the file's place: no user may replace it
    assert cli.main(["check", "--scheduler", "tcp://head:1", "--output", str(tmp_path)]) == 2
    printed = capsys.readouterr()
    assert printed.out == "a: failed\nb: passed\npassed: 1, failed: 1\n"
    assert printed.err.startswith(f"vecadd check: {tmp_path / 'a.json'}: ")
    assert json.loads((tmp_path / "b.json").read_text())["status"] == "passed"


@pytest.mark.parametrize("place", ["file/results", "/proc/results"])
def test_a_folder_that_cannot_be_made_is_refused_before_any_machine_is_checked(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """Root may write to /proc, by its permissions; only the attempt tells."""
    monkeypatch.setattr(cluster, "check_all", lambda *arguments: pytest.fail("checked"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    try:
        status: Any = cli.main(["check", "--scheduler", "tcp://head:1", "--output", place])
    except SystemExit as ended:
        status = ended.code
    assert status == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith("vecadd check: ")


@pytest.mark.parametrize("soak", [[], ["--soak", "2"], ["--soak", "2", "--soak-memory", "host"]])
def test_a_machine_is_told_which_memory_to_soak_where_it_is_to_soak(
    soak: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []

    def check_all(scheduler: str, options: list[str], *rest: Any) -> list[dict[str, Any]]:
        told.extend(options)
        return [passed("a")]

    monkeypatch.setattr(cluster, "check_all", check_all)
    assert cli.main(["check", "--scheduler", "tcp://head:1", "--output", str(tmp_path), *soak]) == 0
    assert told == (["--soak=2.0", f"--soak-memory={soak[-1] if len(soak) > 2 else 'both'}"] if soak else [])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--scheduler", "tcp://head:1"], "--scheduler writes one JSON file a machine into --output FOLDER"),
        (["--scheduler", "x", "--output", ".", "--json", "-"], "into --output FOLDER, and no --json"),
        (["--output", "."], "--output is for --scheduler; --json FILE writes this machine's result"),
        (
            ["--scheduler", "x", "--output", ".", "--explain"],
            "--explain is for one machine; with --scheduler, each machine's JSON file has what it says",
        ),
        (["--soak-memory", "host"], "--soak-memory is for --soak MINUTES, which is not given"),
        (["--scheduler", "x", "--output", ".", "--soak-memory", "both"], "--soak-memory is for --soak MINUTES"),
    ],
)
def test_options_that_do_not_go_together_are_status_2(options: list[str], said: str, capsys: Any) -> None:
    assert cli.main(["check", *options]) == 2
    assert said in capsys.readouterr().err


def test_an_address_of_no_scheduler_is_status_2(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    distributed = pytest.importorskip("distributed")
    # Dask keeps a client that failed as the active one: other tests' additions would take it.
    monkeypatch.setattr(distributed.client, "_global_clients", {})
    assert cli.main(["check", "--scheduler", "nonsense", "--output", "."]) == 2
    assert "there is no Dask scheduler at nonsense: " in capsys.readouterr().err


def test_without_dask_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert cli.main(["check", "--scheduler", "local", "--output", "."]) == 2
    assert "--scheduler needs Dask's distributed: pip install 'vecadd[fleet]'" in capsys.readouterr().err

"""make gpu: its stages make every file that a GPU's machine has recorded, and each ends in time.

A program that writes down how it was called takes Python's place, one that does nothing compute-sanitizer's.
"""

import os
import subprocess
from pathlib import Path

import pytest

from benchmarks.peers import stages
from vecadd.bench.sweeps import SWEEPS
from vecadd.figures import read_run

pytestmark = pytest.mark.no_native

ROOT = Path(__file__).resolve().parents[2]
RECORDED = ROOT / "benchmarks" / "results" / "h100"  # the one that has them all

RECORDERS = ("bench", "ladder", "documents", "peers", "hosts", "installed")

# Without matplotlib and with pytest-xdist.
PYTHON = """#!/bin/sh
case "$2" in
*matplotlib*) exit 1 ;;
*machine*) echo h1000 ;;
esac
echo "$@" >> "$CALLS"
[ "$2" != build_native ] || sleep "${BUILD_SECONDS:-0}"
"""
OWN = {name: value for name, value in os.environ.items() if not name.startswith("OMP_")}  # nproc heeds them


class Gpu:
    """.ci/gpu with the stand-in; ``calls`` are the arguments that Python was given."""

    def __init__(self, folder: Path) -> None:
        self.results = folder / "results"
        self.python = folder / "python"
        self._calls = folder / "calls"
        for program, text in ((self.python, PYTHON), (folder / "compute-sanitizer", "#!/bin/sh\n")):
            program.write_text(text)
            program.chmod(0o755)

    def run(self, *stages: str, **environment: str) -> subprocess.CompletedProcess[str]:
        self._calls.unlink(missing_ok=True)
        command = [str(ROOT / ".ci" / "gpu"), str(self.python), str(self.results), " ".join(stages)]
        path = f"{self.python.parent}:{os.environ['PATH']}"
        changed = {**OWN, "PATH": path, "CALLS": str(self._calls), **environment}
        return subprocess.run(command, env=changed, capture_output=True, text=True, timeout=60)

    @property
    def calls(self) -> list[list[str]]:
        return [line.split() for line in self._calls.read_text().splitlines()]


@pytest.fixture
def gpu(tmp_path: Path) -> Gpu:
    return Gpu(tmp_path)


def files(calls: list[list[str]]) -> list[str]:
    """The names of the result files that the calls would write."""
    written = [Path(call[call.index("--json") + 1]).name for call in calls if "--json" in call]
    compared = [word.partition("=")[2] for call in calls for word in call if word.startswith("--stage=")]
    return [*written, *(f"{stages.STAGES[stage][0].name}.json" for stage in compared)]


def test_the_stages_record_every_sweep_and_every_comparison_once(gpu: Gpu) -> None:
    assert gpu.run(*RECORDERS).returncode == 0
    compared = [sweeps[0].name for sweeps in stages.STAGES.values()]
    assert sorted(files(gpu.calls)) == sorted(f"{name}.json" for name in [*SWEEPS, *compared, "profile"])
    assert {path.name for path in RECORDED.glob("*.json")} <= set(files(gpu.calls))


def test_the_profile_is_of_the_rungs_that_are_recorded(gpu: Gpu) -> None:
    gpu.run("documents")
    (call,) = (call for call in gpu.calls if "profile" in call)
    rows = read_run(RECORDED / "profile.json").figures
    assert call[: call.index("--json")] == ["-m", "vecadd", "profile", *(row.name for row in rows)]


def test_the_long_checks_run_where_they_are_named(gpu: Gpu) -> None:
    assert gpu.run("proof", "fuzz").returncode == 0
    called = [call for call in gpu.calls if "--json" in call]
    assert [Path(call[call.index("--json") + 1]).name for call in called] == ["results", "fuzz-device-h1000.json"]
    assert gpu.run("all").returncode == 0
    assert not {"benchmarks.proof", "tests/fuzz_add.py"} & {word for call in gpu.calls for word in call}
    assert len(files(gpu.calls)) > 20


def test_the_tests_are_spread_over_processes(gpu: Gpu) -> None:
    assert gpu.run("test", "large").returncode == 0
    tests = [call for call in gpu.calls if "pytest" in call]
    assert [call[-2:] for call in tests] == [["not", "slow"], ["-m", "slow"]]
    processors = int(subprocess.check_output(["nproc"], env=OWN, text=True))  # a control group may allow fewer
    most = str(max(1, min(16, processors // 2)))
    assert [call[call.index("-n") + 1] for call in tests] == [most, most]


def test_a_stage_that_lasts_too_long_is_ended_and_the_next_one_runs(gpu: Gpu) -> None:
    for limit in ("1", "10"):  # a busy machine may take more than a second for the next one
        found = gpu.run("proof", BUILD_SECONDS="100", LIMIT=limit)
        verdicts = [line.split()[:2] for line in found.stdout.splitlines()[-2:]]
        if verdicts[-1] == ["proof", "passed"]:
            break
    assert found.returncode == 1
    assert verdicts == [["build", "FAILED"], ["proof", "passed"]]
    assert gpu.calls[-1][1:3] == ["benchmarks.gpu_stages", str(gpu.results / "stages.jsonl")]

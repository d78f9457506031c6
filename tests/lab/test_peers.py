"""benchmarks.peers: every stage runs, each library is called as its documents say, what is missing is named, and a
wrong peer does not pass.

CI has no torch with a GPU and not every library: stand-ins with the few names that are called, on host memory, take
their place.
"""

import functools
import importlib
import json
import stat
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from time import perf_counter
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from conftest import child_environment

from benchmarks.peers import __main__ as peers
from benchmarks.peers import (
    clocks,
    device_peers,
    device_stage,
    events,
    files_stage,
    host_stage,
    installed_stage,
    l2_pollution_stage,
    layouts_stage,
    libraries,
    many_stage,
    misaligned_stage,
    overhead_stage,
    transfer_stage,
)
from benchmarks.peers.device_peers import DevicePeer
from benchmarks.peers.libraries import Entry
from benchmarks.peers.stages import STAGES as STAGES_OF_PEERS
from vecadd import _core
from vecadd.bench import probes, timing
from vecadd.bench.operands import HOST, Buffers
from vecadd.bench.options import Options
from vecadd.bench.run import Machine
from vecadd.figures import Figure, figure_of_row

pytestmark = pytest.mark.no_native


class Tensor(np.ndarray):
    """An array with the methods of a tensor; vecadd.add leaves subclasses to numpy.add."""

    def to(self, device: str, non_blocking: bool = False) -> "Tensor":
        del device, non_blocking
        return self.copy()

    def cpu(self) -> "Tensor":
        return self

    def numpy(self) -> np.ndarray:
        return self.view(np.ndarray)

    def data_ptr(self) -> int:
        return self.ctypes.data

    def numel(self) -> int:
        return self.size

    def new_empty(self, n: int) -> "Tensor":
        return np.empty(n, self.dtype).view(Tensor)

    def fill_(self, value: int) -> None:
        self.fill(value)

    def copy_(self, source: np.ndarray, non_blocking: bool = False) -> None:
        del non_blocking
        self[...] = source


class Event:
    def __init__(self, enable_timing: bool) -> None:
        assert enable_timing

    def record(self) -> None:
        self.at = perf_counter()

    def elapsed_time(self, end: "Event") -> float:
        return 1e3 * (end.at - self.at)

    def query(self) -> bool:
        return False


def torch_that_adds_by(add: Callable[..., Any]) -> SimpleNamespace:
    cuda = SimpleNamespace(Event=Event, synchronize=lambda: None, _sleep=lambda cycles: None)
    return SimpleNamespace(
        add=add,
        cuda=cuda,
        uint8=np.uint8,
        from_numpy=lambda x: x.view(Tensor),
        _foreach_add=lambda xs, ys: [add(x, y) for x, y in zip(xs, ys, strict=True)],
        _foreach_add_=lambda xs, ys: [add(x, y, out=x) for x, y in zip(xs, ys, strict=True)],
        _foreach_copy_=lambda xs, ys: [x.copy_(y) for x, y in zip(xs, ys, strict=True)],
    )


# What takes long is made short, and nothing was freed on a GPU that has to settle; no stand-in has a thread that spins.
SMALL: dict[Any, dict[str, Any]] = {
    probes: {"LINK_BYTES": 1 << 20, "DEVICE_CACHES": 1},
    timing: {"SETTLE": 0},
    overhead_stage: {"CALLS": 3, "SUSTAINED": 7},
    transfer_stage: {"N": 3000},
    l2_pollution_stage: {"LARGE_N": 5000, "READ_N": 3000, "RESIDENT_N": 2000},
    many_stage: {"PAIRS": 5, "N": 100, "MIXED": 7, "MOST": 300, "WIDTH": 3, "WORDS": 700, "POSITIONS": 4},
    device_stage: {"PIECE": 1000, "WHOLE": {"float32": 2500, "int8": 3005}},
    host_stage: {"IDLE": 1e-4, "MOST_KEPT": 4},
    clocks: {"LOOK": 1e-4},
}
PROBES = {name: cache(getattr(probes, name)) for name in dir(probes) if name.startswith("probe_")}


@pytest.fixture
def run(device: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Figure]]:
    """run(stage, modules): the stage's rows of float32 by name, with the sweep before it where that is not the stage's
    first, on a machine that has these modules and no other library."""
    for name, probe in PROBES.items():
        monkeypatch.setattr(probes, name, probe)
    for module, values in SMALL.items():
        for name, value in values.items():
            monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(device_peers, "_compile_cub", lambda dtypes: {}.popitem())
    monkeypatch.setattr(host_stage.os, "sched_getaffinity", lambda pid: {0, 1, 2})
    monkeypatch.setenv("PYTHONPATH", child_environment()["PYTHONPATH"])

    def run_stage(stage: str, modules: dict[str, Any]) -> dict[str, Figure]:
        monkeypatch.setattr(libraries, "module", modules.__getitem__)
        arguments = ["--json-dir", str(tmp_path), "--stage", stage, "--sizes", "1000", "--seconds-per-cell", "0.001"]
        monkeypatch.setattr(sys, "argv", ["peers", *arguments, "--dtypes", "float32"])
        peers.main()
        rows = json.loads((tmp_path / f"peer-{stage}.json").read_text())["rows"]
        first = rows[0]["sweep"]
        named = [figure_of_row(row) for row in rows]
        return {row.label if row.sweep == first else f"{row.sweep} {row.label}": row for row in named}

    return run_stage


MIXED, ONE_ARRAY = "vecadd.add_many in place (mixed sizes)", "vecadd, one array of the same bytes"
INSTALLED = [form for form in installed_stage.FORMS if form != installed_stage.ROWS]  # whose rows are longer
FORMS = [form.name for form in layouts_stage.FORMS if form.dtype == "float32"]

# By stage: rows that it has; with which row some are compared; how many bytes some move.
STAGES: dict[str, tuple[set[str], dict[str, str | None], dict[str, int]]] = {
    "device": ({"peer-queued vecadd"}, {"torch": "vecadd", "peer-queued torch": "vecadd"}, {"vecadd": 12 * 1000}),
    "overhead": (
        {f"vecadd stage: {stage}" for stage in ("parse", "describe", "plan", "allocate", "launch")}
        | {"vecadd +=", "vecadd Plan()", "vecadd Plan(), 7 in a row and done", "vecadd a + b", "torch a + b"}
        | {"vecadd (bare programmatic launch from C)", "vecadd (bare graph launch from C)"},
        {"torch": overhead_stage.REFERENCE},
        {},
    ),
    "many": (
        {"numpy, a loop", "vecadd.plan", "vecadd.add_many (NumPy arrays)", "torch._foreach_add, new sums"},
        {
            "torch._foreach_add_ in place": many_stage.REFERENCE,
            MIXED: None,
            "torch._foreach_add_ in place (mixed sizes)": MIXED,
            "torch._foreach_add, new sums (mixed sizes)": "vecadd.add_many, new sums (mixed sizes)",
            "vecadd.add_many (GPT-2's parameters)": ONE_ARRAY,
        },
        {"torch, a loop": 12 * 5 * 100, "vecadd.add_many": 12 * 5 * 100, MIXED: 8520, ONE_ARRAY: 46_584},
    ),
    "transfer": (
        {"pinned", "pageable", "add (pageable)", "add as routed (pageable)", "add by transfer (pageable)"},
        {"numpy": "add", "add on the host (pinned)": "add as routed", "add by hybrid (pinned)": "add as routed"},
        {"add (pinned)": 12 * 3000},
    ),
    "end_to_end": (
        {"vecadd", "vecadd (host)", "vecadd (cuda)", "torch (cuda)", "torch (host)"},
        {"numpy": "vecadd"},
        {},
    ),
    "l2_pollution": (
        set(),
        {
            **dict.fromkeys(("45 MB after tuned", "45 MB after evict_last"), "45 MB after plain loads"),
            **dict.fromkeys(("reads the sum of tuned", "reads the sum of evict_last"), "reads the sum of plain loads"),
        },
        {"45 MB after tuned": 12 * 2000, "reads the sum of tuned": 8 * 3000},
    ),
    "scaling": (set(), {"vecadd at once": "vecadd in pieces of 2^28"}, {"vecadd at once": 3 * 3005}),
    "misaligned": (
        {f"vecadd {form}" for form in misaligned_stage.FORMS if form != "aligned"},
        {f"torch {form}": "vecadd aligned" for form in misaligned_stage.PEERS_FORMS},
        {},
    ),
    "layouts": (set(), {f"torch {form}": f"vecadd {form}" for form in FORMS}, {"vecadd a + 2.0": 2 * 4 * 1000}),
    "installed": (set(), {f"numpy {form}": f"installed {form}" for form in INSTALLED}, {}),
    "host": (set(), {"torch out=": "vecadd out=", "torch out= after 1 ms": "vecadd out= after 1 ms"}, {}),
}  # fmt: skip


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_compares_its_rows_and_a_wrong_peer_does_not_pass(
    stage: str, run: Callable[..., dict[str, Figure]]
) -> None:
    labels, references, sizes = STAGES[stage]
    rows = run(stage, {"torch": torch_that_adds_by(np.add)})
    assert labels <= set(rows)
    assert {label: rows[label].params.get("reference") for label in references} == references
    assert {label: rows[label].bytes for label in sizes} == sizes
    assert [label for label, row in rows.items() if not (row.checked and row.seconds)] == []
    assert not _core.loop_counts()["installed"]
    torchs = {label for label in rows if label.startswith(("torch", "peer-queued torch")) and label != "torch a + b"}
    if torchs:  # by torch.add; a + b is that of the stand-in's arrays
        wrong = run(stage, {"torch": torch_that_adds_by(np.subtract)})
        assert {label for label, row in wrong.items() if str(row.error).startswith("wrong result: ")} == torchs
        assert {label for label, row in wrong.items() if not row.checked} == torchs


def test_rows_and_what_is_unmeasured_are_printed(
    run: Callable[..., dict[str, Figure]], capsys: pytest.CaptureFixture[str]
) -> None:
    run("device", {"torch": torch_that_adds_by(np.add)})
    printed = capsys.readouterr().out
    assert "peer-device numba: unmeasured: " in printed
    assert "peer-device torch float32 " in printed


@pytest.mark.parametrize("stage", ["device", "misaligned", "layouts", "l2_pollution"])
def test_the_sets_of_a_stage_on_a_gpu_leave_memory_to_the_libraries(
    stage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(libraries, "module", {"torch": torch_that_adds_by(np.add)}.__getitem__)
    monkeypatch.setattr(device_peers, "_compile_cub", lambda dtypes: {}.popitem())
    machine = Machine(probed={"device": {"gbps": 1.0}})
    machine.gpu = {"l2": 1 << 30, "memory": 1 << 30}
    for sweep in STAGES_OF_PEERS[stage]:
        for cell in sweep.cells(Options((100_000,), ("float32",)), machine):
            if cell.sets != 1:  # as many as a set of 1.2 MB, or of READ_N elements, allows
                assert 0 < cell.sets * cell.set_bytes <= machine.gpu["memory"] // 10


class Queue:
    """CUDA of a torch that notes what is queued. Its GPU has woken when all is queued, that many times; queueing takes
    ``takes`` seconds."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, awake: int = 0, takes: float = 0.0) -> None:
        self.seen: list[str] = []
        self.left, self.takes, self.now = awake, takes, 0.0
        monkeypatch.setattr(libraries, "module", {"torch": SimpleNamespace(cuda=self)}.__getitem__)
        monkeypatch.setattr(events, "perf_counter", lambda: self.now)

    def Event(self, enable_timing: bool) -> SimpleNamespace:
        return SimpleNamespace(record=lambda: self.seen.append("event"), elapsed_time=lambda end: 32.0, query=self.woke)

    def woke(self) -> bool:
        self.left, self.now = self.left - 1, self.now + self.takes
        return self.left >= 0

    def synchronize(self) -> None:
        pass

    def _sleep(self, cycles: int) -> None:
        self.seen.append(f"sleep {cycles}")

    @property
    def slept(self) -> list[int]:
        return [int(each.removeprefix("sleep ")) for each in self.seen if each.startswith("sleep")]

    def one(self) -> Buffers:
        return Buffers(None, None, "out", 0)


def test_queued_additions_are_timed_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    queue = Queue(monkeypatch)
    time = events.by_events_in_a_row(lambda a, b, *, out: queue.seen.append(out))
    sets = [Buffers(None, None, f"out {i}", 0) for i in range(events.IN_A_ROW + 1)]
    assert time(sets) == 32e-3 / events.IN_A_ROW
    outs = [used.out for used in sets]
    assert queue.seen == [
        *(f"sleep {2 * events.IN_A_ROW * 200_000}", "event", *outs[: events.IN_A_ROW], "event"),
        *("event", *outs[events.IN_A_ROW :], *outs[: events.IN_A_ROW - 1], "event"),
    ]


def test_the_gpu_sleeps_for_longer_than_the_last_additions_took_to_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    queue = Queue(monkeypatch, takes=3e-4)
    time = events.by_events(lambda a, b, *, out: None)
    for count in (3, 3, 1):
        time([queue.one()] * count)
    assert queue.slept == [600_000, 1_800_000, 600_000]
    queue.takes = 5.0  # it compiles
    time([queue.one()])
    time([queue.one()])
    assert queue.slept[-1] == events.MOST * events.CLOCK
    queue.takes = 1e-6
    time([queue.one()])
    time([queue.one()])
    assert queue.slept[-1] == events.LEAST * events.CLOCK


def test_what_the_gpu_did_not_sleep_through_is_queued_again(monkeypatch: pytest.MonkeyPatch) -> None:
    queue = Queue(monkeypatch, awake=2, takes=1e-3)
    time = events.by_events(
        lambda a, b, *, out: queue.seen.append(out), least=1e-3, before=lambda sets: queue.seen.append("before")
    )
    assert time([queue.one()]) == 32e-3
    assert queue.seen == [
        each for ms in (1, 3, 3) for each in ("before", f"sleep {ms * 2_000_000}", "event", "out", "event")
    ]


def test_a_gpu_that_never_sleeps_long_enough_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    queue = Queue(monkeypatch, awake=events.TRIES)
    with pytest.raises(RuntimeError, match="5 times the GPU woke before the additions were queued"):
        events.by_events(lambda a, b, *, out: None)([queue.one()])
    assert len(queue.slept) == events.TRIES


def test_mixed_sizes_are_the_same_500_in_every_run_and_gpt2_has_148_parameters_of_124_million_numbers() -> None:
    shapes = many_stage.mixed_shapes()
    assert shapes == many_stage.mixed_shapes()
    assert (len(shapes), sum(n for (n,) in shapes)) == (500, 14_447_058)
    assert sum(n < 1 << 11 for (n,) in shapes) == 241  # about half: 2^11 is the middle on the logarithmic scale
    shapes = many_stage.gpt2_shapes()
    assert (len(shapes), sum(int(np.prod(shape)) for shape in shapes)) == (148, 124_439_808)


def test_files_are_compared_with_numpys_two_ways(run: Callable[..., dict[str, Figure]]) -> None:
    rows = run("files", {})
    places = {row.params["memory"] for row in rows.values()}
    assert {f"{name} ({place})" for place in places for name in ("vecadd.add_files", "numpy.memmap")} <= set(rows)
    assert places & set(files_stage.FOLDERS)
    for label, row in rows.items():
        assert row.checked
        assert (row.limit is not None) == label.startswith("vecadd")


HOST_FORMS = ["out=", "a + b", "a + b, kept", "out= after 1 ms"]


def test_the_host_stage_runs_anywhere(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.peers", "--stage", "host", "--json-dir", str(tmp_path / "new")]
    command += ["--sizes", "16,1000", "--dtypes", "float32,int8", "--seconds-per-cell", "0.01"]
    result = subprocess.run(
        command, env=child_environment(), cwd=peers.__file__.rpartition("/benchmarks")[0], timeout=120
    )
    content = json.loads((tmp_path / "new" / "peer-host.json").read_text())
    found = [row for row in content["rows"] if row["rung"].split()[0] in ("vecadd", "numpy")]
    assert result.returncode == 0
    assert [row["rung"] for row in found] == [f"{who} {form}" for form in HOST_FORMS for who in ("vecadd", "numpy")] * 4
    assert all(row["checked"] for row in content["rows"])
    ratios = [row for row in found if row["rung"].startswith("numpy")]
    assert [row["params"]["reference"] for row in ratios] == [f"vecadd {form}" for form in HOST_FORMS] * 4
    # Each other library was either timed, and its version is told, or is named with the reason.
    others = {entry.name for entry in host_stage.ENTRIES} - {"vecadd", "numpy"}
    timed = {row["rung"].split()[0] for row in content["rows"]} & others
    unmeasured = {line.split()[1].rstrip(":") for line in content["meta"]["skipped"] if "unmeasured" in line}
    assert timed == others & set(content["meta"]["versions"])
    assert timed | unmeasured == others
    assert not timed & unmeasured


def test_an_installed_sum_that_is_wrong_does_not_pass(
    run: Callable[..., dict[str, Figure]], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, check = installed_stage.FORMS["a + 2"]
    monkeypatch.setitem(installed_stage.FORMS, "a + 2", (lambda sets: 1e-9, check))
    rows = run("installed", {})
    assert {label for label, row in rows.items() if not row.checked} == {"installed a + 2", "numpy a + 2"}


def test_a_large_addition_on_the_host_has_its_share_of_the_limit(
    run: Callable[..., dict[str, Figure]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_stage, "STREAMED", 1)
    rows = run("host", {})
    ours = rows["vecadd out="]
    assert 0 < (ours.fraction or 0) <= ours.params["limit_share"]
    assert rows["vecadd a + b"].limit is None


# Each library is called as its documents say, at its fastest setting, and one that is not there is told.

Add = Callable[..., Any]


class Array(Tensor):
    """An array as JAX's or a tensor, whichever is asked."""

    def block_until_ready(self) -> "Array":
        return self

    def is_complex(self) -> bool:
        return self.dtype.kind == "c"

    def split(self, most: int) -> "list[Array]":
        return [self[at : at + most] for at in range(0, self.size, most)]


def array(values: Sequence[float], dtype: str = "float32") -> Array:
    return np.array(values, dtype).view(Array)


def broken() -> None:
    raise RuntimeError("its driver is too old")


def test_a_library_that_is_not_there_or_does_not_work_is_unmeasured_with_the_reason() -> None:
    missing: list[str] = []
    entries = [
        Entry(
            "A", "no_such_library.part", "a-lib[cu13]", functools.partial(importlib.import_module, "no_such_library")
        ),
        Entry("B", "json", "b-lib", broken),
        Entry("C", "json", "c-lib", None),
        Entry("D", "no_such_library", "d-lib", None),
        Entry("E", "json", "e-lib", lambda: "E"),
        Entry("F", "", "f-lib", broken),
    ]
    assert list(libraries.meeting("peer-device", entries, missing)) == ["E"]
    assert missing == [
        "peer-device A: unmeasured: not installed: pip install 'a-lib[cu13]'",
        "peer-device B: unmeasured: RuntimeError: its driver is too old",
        "peer-device C: unmeasured: no addition is written for it",
        "peer-device D: unmeasured: not installed: pip install 'd-lib'; and no addition is written for it",
        "peer-device F: unmeasured: RuntimeError: its driver is too old",
    ]


def test_each_library_has_a_row_of_its_own_in_its_stages_table() -> None:
    for table in (device_peers.entries(in_a_row=True), host_stage.ENTRIES):
        names = [entry.name for entry in table]
        assert names[0] == "vecadd"
        assert len(set(names)) == len(names)
        assert all(entry.package for entry in table)


def test_the_fastest_setting_is_found_again_at_another_size() -> None:
    seconds = {"small blocks": lambda n: n * 1e-9, "large blocks": lambda n: 1e-7 + n * 1e-10}
    peer = DevicePeer("it", {name: name for name in seconds})  # type: ignore[misc]
    contestant = peer.contestant(HOST, lambda setting: lambda sets: seconds[setting](len(sets[0].out)))  # type: ignore[index]
    for n, fastest in ((10, "small blocks"), (10_000, "large blocks"), (20, "small blocks")):
        sets = [Buffers(None, None, np.empty(n), 0)]
        assert contestant.time(sets) == min(time(n) for time in seconds.values())
        assert contestant.extra_params is not None
        assert contestant.extra_params(sets[0]) == {"setting": fastest}


class NumExpr:
    """numexpr on one expression: `re_evaluate` repeats what was evaluated last, into the same out."""

    MAX_THREADS = 64

    def __init__(self, add: Add) -> None:
        self.add = add
        self.threads = 64
        self.asked: set[int] = set()

    def get_num_threads(self) -> int:
        return self.threads

    def set_num_threads(self, count: int) -> None:
        self.threads = count
        self.asked.add(count)

    def evaluate(self, expression: str, local_dict: Any, global_dict: Any, out: Any = None) -> Any:
        assert (expression, global_dict) == ("a + b", {})
        self.out = out
        return self.re_evaluate(local_dict, global_dict)

    def re_evaluate(self, local_dict: Any, global_dict: Any) -> Any:
        return self.add(local_dict["a"], local_dict["b"], out=self.out)


class Jax:
    """JAX with a CPU: a donated argument is gone, and its memory is the sum's."""

    def __init__(self, add: Add) -> None:
        self.add = add
        self.config = SimpleNamespace(update=lambda name, value: None)

    def devices(self, platform: str) -> list[str]:
        return [platform]

    def device_put(self, x: np.ndarray, device: str, may_alias: bool | None = None) -> Array:
        assert device == "cpu"
        return x.view(Array) if may_alias is None else x.copy().view(Array)

    def jit(self, function: Add, donate_argnums: int | None = None, keep_unused: bool = False) -> Add:
        def call(a: Array, b: Array, *donated: Array) -> Array:
            assert bool(donated) == keep_unused == (donate_argnums == 2)
            return self.add(a, b, out=donated[0] if donated else None).view(Array)

        return call


def modules_that_add_by(add: Add) -> dict[str, Any]:
    return {"numexpr": NumExpr(add), "numkong": numkong_that_adds_by(add), "jax": Jax(add)}


def numkong_that_adds_by(add: Add) -> SimpleNamespace:
    def from_pointer(address: int, shape: tuple[int], dtype: str, owner: np.ndarray) -> np.ndarray:
        assert (address, shape, dtype) == (owner.ctypes.data, owner.shape, str(owner.dtype))
        return owner

    return SimpleNamespace(add=lambda a, b, out=None: add(a, b, out=out), from_pointer=from_pointer)


EVERY = ("numexpr", "numkong", "jax")


def arrow(met: list[int]) -> dict[str, Any]:
    """pyarrow, whose arrays' distances from NumPy's memory join ``met``."""
    pyarrow = pytest.importorskip("pyarrow")

    def array(x: np.ndarray) -> Any:
        result = pyarrow.array(x)
        met.append(result.buffers()[1].address - x.ctypes.data)
        return result

    module = SimpleNamespace(array=array, default_memory_pool=pyarrow.default_memory_pool)
    return {"pyarrow": module, "pyarrow.compute": importlib.import_module("pyarrow.compute")}


def test_libraries_on_the_host_meet_in_every_form_that_they_have(run: Callable[..., dict[str, Figure]]) -> None:
    met: list[int] = []
    modules = modules_that_add_by(np.add)
    rows = run("host", modules | arrow(met))
    assert [label for label, row in rows.items() if not (row.checked and row.seconds)] == []
    forms = {f"{who} {form}" for who in ("vecadd", "numpy", *EVERY) for form in host_stage.FORMS}
    assert set(rows) == forms | {"arrow a + b", "arrow a + b, kept"}
    assert set(met) == {0}, "Arrow copied an operand"
    assert modules["numexpr"].asked == {1, 3}
    for label in ("numexpr out=", "numexpr a + b", "numkong out="):
        assert rows[label].params["setting"] in ("1 thread", "3 threads")
    assert "setting" not in rows["numkong a + b"].params


def test_a_library_on_the_host_that_adds_wrongly_does_not_pass(run: Callable[..., dict[str, Figure]]) -> None:
    rows = run("host", modules_that_add_by(np.subtract))
    wrong = {label for label, row in rows.items() if str(row.error).startswith("wrong result: element ")}
    assert wrong == {f"{who} {form}" for who in EVERY for form in host_stage.FORMS}


def test_an_addition_on_several_threads_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libraries, "module", {"numkong": numkong_that_adds_by(np.add)}.__getitem__)
    monkeypatch.setattr(host_stage.os, "sched_getaffinity", lambda pid: {0, 1, 2})
    split = host_stage.numkong().into["3 threads"]
    for n in (1, 2, 3, 7, 3000):
        a, out = np.arange(n, dtype=np.float32), np.full(n, -1, np.float32)
        split(a, a, out)()
        assert (out == 2 * a).all()


@pytest.fixture
def device_peer(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, dict[str, Any]], DevicePeer]:
    """device_peer(name, modules): the peer of that name on a machine that has these modules."""

    def make(name: str, modules: dict[str, Any]) -> DevicePeer:
        monkeypatch.setattr(libraries, "module", modules.__getitem__)
        entries = [entry for entry in device_peers.entries(["float32"]) if entry.name == name]
        (peer,) = libraries.meeting("peer-device", entries, [])
        return peer

    return make


def sums(peer: DevicePeer, dtype: str = "float32") -> dict[str, list[Any]]:
    """By setting, what the peer makes of [1, 2, 3] + [10, 20, 30]."""
    outs = {name: array([0, 0, 0], dtype) for name in peer.settings}
    for name, add in peer.settings.items():
        add(array([1, 2, 3], dtype), array([10, 20, 30], dtype), outs[name])
    return {name: out.tolist() for name, out in outs.items()}


def test_torch_compiles_for_each_size_in_two_modes(device_peer: Callable[..., DevicePeer]) -> None:
    config = SimpleNamespace(recompile_limit=8, accumulated_recompile_limit=256)
    asked: list[tuple[str, bool]] = []

    def compiled(function: Add, mode: str, dynamic: bool) -> Add:
        asked.append((mode, dynamic))
        return function

    pairs = lambda x: x.view(np.float32).reshape(-1, 2)  # noqa: E731
    torch = SimpleNamespace(compile=compiled, view_as_real=pairs)
    peer = device_peer("torch.compile", {"torch": torch, "torch._dynamo": SimpleNamespace(config=config)})
    assert asked == [("default", False), ("max-autotune-no-cudagraphs", False)]
    assert list(sums(peer).values()) == [[11, 22, 33]] * 2
    cells = 10 * len(device_peers.DTYPES)
    assert min(config.recompile_limit, config.accumulated_recompile_limit) > cells


def test_helion_adds_by_kernels_of_each_shape(device_peer: Callable[..., DevicePeer]) -> None:
    shapes: list[tuple[int, int]] = []

    def add(a: Any, b: Any, out: Any, block: int, warps: int) -> None:
        shapes.append((block, warps))
        np.add(a, b, out=out)

    kernels = SimpleNamespace(add_by_helion=add)
    peer = device_peer("helion", {"helion": None, "benchmarks.peers.triton_add": kernels})
    assert set(map(tuple, sums(peer).values())) == {(11, 22, 33)}
    assert [f"block {block}, {warps} warps" for block, warps in shapes] == list(peer.settings)


def test_cuda_compute_makes_one_transformation_a_dtype(device_peer: Callable[..., DevicePeer]) -> None:
    made: list[str] = []

    def make_binary_transform(d_in1: Any, d_in2: Any, d_out: Any, op: str) -> Add:
        made.append(str(d_in1.dtype))

        def transform(d_in1: Any, d_in2: Any, d_out: Any, op: str, num_items: int) -> None:
            assert (op, num_items) == ("plus", d_out.size)
            np.add(d_in1, d_in2, out=d_out)

        return transform

    compute = SimpleNamespace(make_binary_transform=make_binary_transform, OpKind=SimpleNamespace(PLUS="plus"))
    peer = device_peer("cuda.compute", {"cuda.compute": compute})
    for dtype in ("float32", "int8", "float32"):
        assert sums(peer, dtype) == {"": [11, 22, 33]}
    assert made == ["float32", "int8"]


NVCC = """#!/bin/sh
# Writes down its options and compiles a stand-in for cub.cu.
printf '%s\\n' "$@" > "$(dirname "$0")/options"
while [ "$1" != -o ]; do shift; done
exec cc -shared -fPIC -x c -o "$2" - << 'END'
int cub_version(void) { return 3005002; }
int cub_add(const float *a, const float *b, float *c, long long n, void *stream)
{
    for (long long i = 0; i < n; i++)
        c[i] = a[i] + b[i];
    return 0;
}
END
"""


@pytest.mark.parametrize(
    ("header", "parts"),
    [("cub/cub.cuh", [""]), ("cub/cub/cub.cuh", ["cub", "thrust", "libcudacxx/include"])],
    ids=["an include folder", "a checkout"],
)
def test_cub_is_compiled_with_the_headers_that_are_named_and_says_which_they_are(
    header: str,
    parts: list[str],
    tmp_path: Path,
    device_peer: Callable[..., DevicePeer],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nvcc, headers = tmp_path / "nvcc", tmp_path / "cccl"
    nvcc.write_text(NVCC)
    nvcc.chmod(stat.S_IRWXU)
    (headers / header).parent.mkdir(parents=True)
    (headers / header).write_text("")
    monkeypatch.setattr(device_peers.toolkit, "find", lambda: SimpleNamespace(nvcc=nvcc))
    monkeypatch.setenv("VECADD_CCCL", str(headers))
    device_peers._compile_cub.cache_clear()
    try:
        peer = device_peer("CUB DeviceTransform", {})
        assert sums(peer) == {"": [11, 22, 33]}
    finally:
        device_peers._compile_cub.cache_clear()
    options = (tmp_path / "options").read_text().splitlines()
    assert [option for option in options if option.startswith("-I")] == [f"-I{headers / part}" for part in parts]
    assert peer.params == {"version": "CCCL 3.5.2"}


def test_a_folder_without_cubs_headers_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VECADD_CCCL", str(tmp_path))
    monkeypatch.setattr(device_peers.toolkit, "find", lambda: SimpleNamespace(nvcc="nvcc"))
    with pytest.raises(FileNotFoundError, match=r"VECADD_CCCL=.* has neither cub/cub\.cuh nor cub/cub/cub\.cuh"):
        device_peers.cub(["float32"])

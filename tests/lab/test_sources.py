"""Digests of sources: what a recording depends on is in its set, and nothing else dates it."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest
import stream_orders
from imports import imported, modules

from benchmarks.peers.stages import STAGES
from vecadd.bench import machine, sources
from vecadd.bench.sources import ROOT, SETS
from vecadd.bench.sweeps import SWEEPS

pytestmark = pytest.mark.no_native


OTHERS = ("stores", "tuned-host", "why-programs", "why-costs")  # timed by programs of their own
HOSTS = ("host", "peer-host", "peer-installed", "peer-files", *OTHERS)
RUNS = ("proof", "fuzz", "stream-orders")  # of sums in place of times
PASSING = ("transfer", "peer-transfer", "peer-end-to-end", "peer-many")  # the host and a GPU add, or hand on
DEVICE_PEERS = {f"peer-{name}" for name in ("device", "queued", "misaligned", "layouts", "scaling", "overhead", "many")}
MEASURED = {sweep.name: sweep for sweeps in (SWEEPS.values(), *STAGES.values()) for sweep in sweeps}

KNOWN = {
    name: path
    for folder in ("vecadd", "benchmarks", "build_native")
    for name, path in modules(folder).items()
    if path.suffix == ".py"
}

# Imported by what times a sweep, and no part of a time: names of axes, result files, tuned files, names of machines,
# digests, cells of other sweeps, the model, figures of the documents, what prints, what builds, and the libraries whose
# arrays no stage adds by vecadd.
INDIFFERENT = {
    *(f"vecadd.bench.{name}" for name in ("axes", "results", "machine", "recorded", "gpudirect")),
    *(f"vecadd.bench.{name}" for name in ("ladder", "latencies", "transfers", "sweeps")),
    *("vecadd", "vecadd.info", "vecadd._host", "vecadd._environment", "vecadd.model", "vecadd.model.theory"),
    "vecadd.tune.store",
    *(f"vecadd._{name}" for name in ("command", "extras", "names", "rows", "version")),
    *(f"vecadd.bench.{name}" for name in ("show", "sources", "tables.table", "terminal")),
    *(f"vecadd.interop.{name}" for name in ("jax", "numba")),
    *(
        "benchmarks.tables.stores",
        "benchmarks.tables.tuned_host",
        "benchmarks.tables.why",
        "build_native.toolkit",
        "build_native.incremental",
    ),
}

# Files of the tree that time nothing.
UNRELATED = (
    *("vecadd/cli.py", "vecadd/bench/command.py", "vecadd/bench/terminal.py", "vecadd/bench/results.py"),
    *("vecadd/bench/tables/ladder.py", "vecadd/bench/plots/bars.py", "vecadd/model/kernels.py"),
    *("vecadd/tune/device.py", "benchmarks/tables/__main__.py", "benchmarks/tables/peers.py", "setup.py"),
)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources: tests leave it as they found it."""
    root = tmp_path_factory.mktemp("tree")
    for path in sources.files((*sources.EVERYTHING, "benchmarks", "examples", "tests")):
        target = root / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    return root


def digests(tree: Path) -> dict[str, str | None]:
    return {sweep: sources.digest(sweep, tree) for sweep in SETS}


@pytest.fixture(scope="module")
def unchanged() -> dict[str, str | None]:
    """Every sweep's digest."""
    return digests(ROOT)


@cache
def imports(module: str) -> set[str]:
    return set(imported(KNOWN[module], KNOWN))


@pytest.fixture
def found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests in which no file appears or goes: what a set's globs name is looked for once."""
    find = cache(sources.files)
    monkeypatch.setattr(sources, "files", lambda entries, root=ROOT: find(tuple(entries), root))


@contextmanager
def changed(path: Path) -> Iterator[None]:
    """The file with one more line, for as long."""
    content = path.read_bytes()
    path.write_bytes(content + b"\n")
    try:
        yield
    finally:
        path.write_bytes(content)


def test_every_sweep_and_every_stage_has_a_set() -> None:
    assert set(SETS) == {*MEASURED, "profile", *OTHERS, *RUNS}


@pytest.mark.parametrize("sweep", SETS)
def test_what_a_set_names_is_there(sweep: str) -> None:
    assert [entry for entry in SETS[sweep] if not sources.files([entry])] == []


def test_every_test_that_takes_seeds_is_in_the_set_of_stream_orders() -> None:
    assert set(stream_orders.files()) <= set(sources.files(SETS["stream-orders"]))


@pytest.mark.parametrize("sweep", MEASURED)
def test_the_file_that_says_who_meets_is_in_the_set(sweep: str) -> None:
    assert Path(MEASURED[sweep].cells.__code__.co_filename) in sources.files(SETS[sweep])


@pytest.mark.parametrize("sweep", SETS)
def test_what_a_sets_files_import_is_in_it_or_no_part_of_a_time(sweep: str) -> None:
    files = set(sources.files(SETS[sweep]))
    own = {name for name, path in KNOWN.items() if path in files}
    assert set().union(*map(imports, own)) - own <= INDIFFERENT


@pytest.mark.usefixtures("found_once")
@pytest.mark.parametrize("sweep", SETS)
def test_a_change_within_the_set_changes_the_digest(sweep: str, tree: Path) -> None:
    before = sources.digest(sweep, tree)
    assert before == sources.digest(sweep)
    for entry in SETS[sweep]:
        with changed(sources.files([entry], tree)[0]):
            assert sources.digest(sweep, tree) != before, entry


@pytest.mark.usefixtures("found_once")
@pytest.mark.parametrize("name", UNRELATED)
def test_a_file_that_times_nothing_changes_no_digest(name: str, tree: Path, unchanged: dict[str, str | None]) -> None:
    with changed(tree / name):
        assert digests(tree) == unchanged


@pytest.mark.usefixtures("found_once")
@pytest.mark.parametrize(
    ("name", "dated"),
    [
        ("cuda/add.cu", {sweep for sweep in SETS if sweep not in HOSTS}),
        ("csrc/gpu/stream.c", {sweep for sweep in SETS if sweep not in HOSTS}),
        ("csrc/host/threads.c", {*HOSTS, *PASSING, *RUNS}),
        ("csrc/py/operands/host_pair.c", {*HOSTS, *PASSING, *RUNS} - {"peer-many"}),
        ("csrc/host/output_pool.c", {"peer-host", "peer-end-to-end", "tuned-host", "why-programs", "why-costs", *RUNS}),
        ("vecadd/interop/torch.py", DEVICE_PEERS),
        ("vecadd/interop/host_tensors.py", set()),
        ("vecadd/files.py", {"peer-files"}),
        ("vecadd/stores/work.py", {"stores"}),
        ("csrc/py/receipt/observe.c", {"why-programs", "why-costs", "fuzz", "stream-orders"}),
        (
            "csrc/py/calls/result.c",
            {"peer-host", "peer-end-to-end", "tuned-host", "why-programs", "why-costs", "fuzz", "stream-orders"}
            | DEVICE_PEERS,
        ),
        ("csrc/py/calls/plan_object.c", {"peer-overhead", "peer-many", "fuzz", "stream-orders"}),
        ("csrc/py/operands/cupy.c", DEVICE_PEERS | {"fuzz", "stream-orders"}),
        ("examples/why/bias.py", {"why-programs"}),
        ("vecadd/bench/latencies.py", {"latency"}),
        ("benchmarks/peers/overhead_stage.py", {"peer-overhead"}),
        ("benchmarks/peers/clocks.py", {sweep for sweep in SETS if sweep.startswith("peer-")}),
        ("benchmarks/peers/events.py", DEVICE_PEERS),
        ("vecadd/bench/timing.py", {*MEASURED, "tuned-host", "why-programs", "why-costs"}),
        ("vecadd/profile/child.py", {"profile"}),
        ("benchmarks/proof/exact.h", {"proof"}),
        ("tests/fuzz_cases.py", {"fuzz"}),
    ],
)
def test_a_change_dates_what_it_bears_on_alone(
    name: str, dated: set[str], tree: Path, unchanged: dict[str, str | None]
) -> None:
    with changed(tree / name):
        after = digests(tree)
    assert {sweep for sweep in SETS if after[sweep] != unchanged[sweep]} == dated


def test_the_memory_of_new_sums_is_all_that_sweeps_with_an_out_leave_out() -> None:
    left = set(sources.files(["csrc/host"])) - set(sources.files([sources.ADDITIONS]))
    assert {path.stem for path in left} == {"huge_region", "huge_pages", "output_pool"}


def test_new_files_gone_files_and_new_names_count(tree: Path) -> None:
    before, new = sources.digest("host", tree), tree / "csrc" / "host" / "new" / "x.h"
    new.parent.mkdir()
    try:
        new.write_text("")
        with_new = sources.digest("host", tree)
        renamed = new.rename(new.with_name("y.h"))
        assert len({before, with_new, sources.digest("host", tree)}) == 3
        renamed.rename(new.with_name("y.o"))
        assert sources.digest("host", tree) == before
    finally:
        shutil.rmtree(new.parent)


def test_a_sweep_of_ones_own_has_no_digest() -> None:
    assert sources.digest("mine") is None


@pytest.mark.parametrize("name", ["cuda/add.cu", "vecadd/cli.py", "setup.py", "pyproject.toml"])
def test_the_revision_follows_every_source(name: str, tree: Path) -> None:
    with changed(tree / name):
        assert sources.revision(tree) != sources.revision()
    assert sources.revision(tree) == sources.revision()


@pytest.mark.parametrize("name", ["README.md", "vecadd/_core.abi3.so", "vecadd/c.pyc", "tests/d.py"])
def test_the_revision_follows_nothing_else(name: str, tree: Path) -> None:
    before = sources.revision(tree)
    (tree / name).parent.mkdir(exist_ok=True)
    (tree / name).write_text("second")
    assert sources.revision(tree) == before


def test_an_installed_package_says_what_it_was_built_from(tmp_path: Path, unchanged: dict[str, str | None]) -> None:
    (tmp_path / "vecadd").mkdir()
    (tmp_path / sources.BUILT_FROM).write_text(sources.built_from())
    assert sources.revision(tmp_path) == sources.revision()
    assert digests(tmp_path) == unchanged
    assert sources.digest("mine", tmp_path) is None


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_a_commit_has_a_plus_once_a_file_of_it_has_changed_and_not_for_others(tmp_path: Path) -> None:
    def git(*words: str) -> str:
        who = [word for name in ("user.name", "user.email") for word in ("-c", f"{name}=x")]
        return subprocess.run(["git", *who, *words], cwd=tmp_path, check=True, capture_output=True, text=True).stdout

    git("init", "-q")
    (tmp_path / "kept").write_text("first")
    git("add", "kept")
    git("commit", "-q", "-m", "x")
    head = git("rev-parse", "HEAD")[:12]
    (tmp_path / "new").touch()
    assert machine.commit(tmp_path) == head
    (tmp_path / "kept").write_text("second")
    assert machine.commit(tmp_path) == f"{head}+"


def test_unknown_sources_have_no_digest(tmp_path: Path) -> None:
    assert sources.revision(tmp_path) is None
    assert sources.digest("host", tmp_path) is None
    assert machine.commit(tmp_path) is None


def test_what_a_package_carries_is_json_of_a_digest_a_sweep() -> None:
    carried = json.loads(sources.built_from())
    assert set(carried["sources"]) == set(SETS)
    assert carried["revision"] == sources.revision()

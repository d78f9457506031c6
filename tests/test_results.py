"""The result file: what is in it, that it is whole, and which sources it belongs to."""

import json
from pathlib import Path
from typing import Any

import pytest

from vecadd.bench import machine, results
from vecadd.bench.results import Row
from vecadd.info import info

KEYS = [
    "sweep",
    "rung",
    "dtype",
    "n",
    "params",
    "seconds",
    "spread",
    "bytes",
    "gbps",
    "limit_gbps",
    "fraction",
    "checked",
    "error",
]


def row(**changes: Any) -> Row:
    plain: dict[str, Any] = {
        "sweep": "host",
        "rung": "threads",
        "dtype": "float32",
        "n": 1 << 20,
        "params": {},
        "seconds": 1e-3,
        "spread": (0.9e-3, 1.2e-3),
        "bytes": 12 << 20,
        "gbps": 12.58,
        "limit_gbps": 20.0,
        "fraction": 0.629,
        "checked": True,
        "error": None,
    }
    return Row(**{**plain, **changes})


FAILED = row(seconds=None, spread=None, gbps=None, fraction=None, checked=False, error="wrong result: element 3")


def test_what_is_written_is_read(tmp_path: Path) -> None:
    results.write(tmp_path / "x.json", {"machine": "here"}, [row(), FAILED])
    assert results.read(tmp_path / "x.json") == ({"machine": "here"}, [row(), FAILED])


def test_the_file_has_the_documented_keys(tmp_path: Path) -> None:
    results.write(tmp_path / "x.json", {}, [row()])
    content = json.loads((tmp_path / "x.json").read_text())
    assert list(content) == ["meta", "rows"]
    assert list(content["rows"][0]) == KEYS


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    results.write(tmp_path / "x.json", {"run": 1}, [row()])
    with pytest.raises(TypeError):
        results.write(tmp_path / "x.json", {"run": object()}, [row()])
    assert results.read(tmp_path / "x.json")[0] == {"run": 1}
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"meta": {}, "rows": [{}]}', '{"meta": {}, "rows": [{"spread": 1}]}']
)
def test_another_file_is_refused_by_name(text: str, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(ValueError, match=r"x\.json is not a result file"):
        results.read(tmp_path / "x.json")


@pytest.mark.parametrize(
    ("params", "label"),
    [({}, "pinned"), ({"memory": "pinned"}, "pinned"), ({"memory": "pageable"}, "pinned (pageable)")],
)
def test_a_row_is_called_by_its_memory_only_where_that_is_a_choice(params: dict[str, str], label: str) -> None:
    assert row(rung="pinned", params=params).label == label


@pytest.mark.parametrize(("fraction", "impossible"), [(None, False), (0.5, False), (1.0, False), (1.001, True)])
def test_more_than_the_limit_is_impossible(fraction: float | None, impossible: bool) -> None:
    assert row(fraction=fraction).impossible is impossible


def test_the_meta_data_say_what_a_reader_needs() -> None:
    meta = machine.meta(info(), machine.conditions_now(), method="as described")
    assert json.loads(json.dumps(meta)) == meta
    assert set(meta) == {
        "machine", "gpu", "driver", "cpu", "versions", "revision", "commit", "date", "contamination", "method"
    }  # fmt: skip
    assert meta["contamination"]["load_average"] >= 0


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("csrc/core/a.c", "cuda/b.cu", "vecadd/c.py", "setup.py", "tests/d.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("first")
    return tmp_path


@pytest.mark.parametrize("name", ["csrc/core/a.c", "cuda/b.cu", "vecadd/c.py", "setup.py", "csrc/core/new.h"])
def test_the_revision_follows_every_source(name: str, tree: Path) -> None:
    before = machine.revision(tree)
    (tree / name).write_text("second")
    assert machine.revision(tree) != before


@pytest.mark.parametrize("name", ["tests/d.py", "README.md", "vecadd/_core.abi3.so", "vecadd/c.pyc"])
def test_the_revision_follows_nothing_else(name: str, tree: Path) -> None:
    before = machine.revision(tree)
    (tree / name).write_text("second")
    assert machine.revision(tree) == before


def test_an_installed_package_has_no_revision(tmp_path: Path) -> None:
    assert machine.revision(tmp_path) is None
    assert machine.commit(tmp_path) is None


def test_conditions_are_one_line() -> None:
    conditions = {
        "load_average": 1.5,
        "cpus": 2,
        "gpu_processes": 3,
        "throttled": ["hot", "power cap"],
        "ecc_errors": 1,
    }
    assert machine.describe(conditions) == (
        "load average 1.5 on 2 CPUs; 3 other processes on the GPU; GPU throttled: hot, power cap; "
        "1 uncorrected ECC errors"
    )

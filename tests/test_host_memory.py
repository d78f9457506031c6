"""The memory that this process may use: the machine's, or less where a control group says so."""

from pathlib import Path

import pytest

from vecadd import _host

GIB = 1 << 30


@pytest.fixture
def groups(tmp_path, monkeypatch):
    """groups(membership, {file: number}): this process's control groups, in a tree of its own."""
    monkeypatch.setattr(_host, "_MOUNT", tmp_path)
    monkeypatch.setattr(_host, "_MEMBERSHIP", str(tmp_path / "membership"))

    def make(membership: str, files: dict[str, object]) -> None:
        (tmp_path / "membership").write_text(membership)
        for name, value in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{value}\n")

    return make


def test_without_groups_it_is_the_machines(groups, tmp_path):
    machine = _host.memory_total()
    groups("", {})
    assert _host.memory_total() >= machine > GIB // 4
    Path(tmp_path / "membership").unlink()
    assert 0 < _host.memory_available() <= _host.memory_total()


@pytest.mark.parametrize("above", ["memory.max", "a/memory.max", "a/b/memory.max", "unified/a/memory.max"])
def test_a_group_is_held_to_the_limits_of_all_above_it(groups, above):
    groups("0::/a/b\n", {"a/b/memory.max": "max", "a/memory.max": 3 << 20, above: 1 << 20})
    assert _host.memory_total() == 1 << 20


def test_what_a_group_has_used_is_not_available(groups):
    files = {"a/memory.max": 5 << 20, "a/memory.current": 2 << 20, "a/b/memory.max": 4 << 20, "a/b/memory.current": 0}
    groups("0::/a/b\n", files)
    assert _host.memory_total() == 4 << 20
    assert _host.memory_available() == 3 << 20


def test_version_1_has_a_hierarchy_of_its_own(groups):
    files = {"memory/a/memory.limit_in_bytes": 7 << 20, "memory/a/memory.usage_in_bytes": 8 << 20}
    groups("3:cpu,cpuacct:/a\n2:memory,hugetlb:/a/b\n", files)
    assert _host.memory_total() == 7 << 20
    assert _host.memory_available() == 0


@pytest.mark.parametrize("line", ["", "nonsense", "0::", "0::/../../..\n", "0::/x:y"])
def test_a_membership_that_cannot_be_read_is_none(groups, line):
    groups(line, {})
    assert _host.memory_total() > GIB // 4

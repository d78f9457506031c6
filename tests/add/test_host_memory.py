"""The memory that this process may use: the machine's, or less where a control group says so."""

import os

import pytest

from vecadd import _core, _machine

GIB = 1 << 30


@pytest.fixture
def groups(tmp_path):
    """groups(membership, {file: number}): (usable, available) in these control groups, a tree of their own."""

    def memory(membership: str, files: dict[str, object]) -> tuple[int, int]:
        (tmp_path / "membership").write_text(membership)
        for name, value in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{value}\n")
        return _core.host_memory(str(tmp_path / "membership"), str(tmp_path))

    return memory


def test_without_groups_it_is_the_machines(groups, tmp_path):
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    usable, available = groups("", {})
    assert usable == machine
    assert 0 < available <= machine
    assert _core.host_memory(str(tmp_path / "none"), str(tmp_path))[0] == machine


def test_this_process_has_what_the_machine_has_at_most():
    assert GIB // 4 < _machine.memory_total() <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert 0 < _machine.memory_available() <= _machine.memory_total()


@pytest.mark.parametrize("above", ["memory.max", "a/memory.max", "a/b/memory.max", "unified/a/memory.max"])
def test_a_group_has_the_limits_of_all_above_it(groups, above):
    usable, available = groups("0::/a/b\n", {"a/b/memory.max": "max", "a/memory.max": 3 << 20, above: 1 << 20})
    assert usable == available == 1 << 20


def test_what_a_group_has_used_is_not_available(groups):
    files = {"a/memory.max": 5 << 20, "a/memory.current": 2 << 20, "a/b/memory.max": 4 << 20, "a/b/memory.current": 0}
    assert groups("0::/a/b\n", files) == (4 << 20, 3 << 20)


def test_version_1_has_a_hierarchy_of_its_own(groups):
    files = {"memory/a/memory.limit_in_bytes": 7 << 20, "memory/a/memory.usage_in_bytes": 8 << 20}
    assert groups("3:cpu,cpuacct:/a\n2:memory,hugetlb:/a/b\n", files) == (7 << 20, 0)


@pytest.mark.parametrize("line", ["", "nonsense", "0::", "0::/../../..\n", "0::/x:y"])
def test_a_membership_that_cannot_be_read_is_none(groups, line):
    assert groups(line, {})[0] > GIB // 4

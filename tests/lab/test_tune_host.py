"""vecadd tune host: what its rules make of times, and that additions use what it writes."""

import pytest

from vecadd import cli
from vecadd.tune import compare, host

pytestmark = pytest.mark.no_native

SIZES = (1, 2, 4, 8)


@pytest.mark.parametrize(
    ("ratios", "size"),
    [
        ((0.5, 0.5, 0.5, 0.5), 1),
        ((1.5, 0.5, 0.5, 0.5), 2),
        ((0.5, 1.5, 0.5, 0.5), 4),
        ((1.5, 0.9, 1.01, 0.5), 2),
        ((1.5, 0.98, 0.99, 0.9), 8),
        ((1.0, 1.0, 1.0, 1.0), host.NEVER),
        ((0.5, 0.5, 0.5, 1.5), host.NEVER),
    ],
)
def test_a_size_pays_where_it_gains_and_nothing_above_it_loses(ratios, size):
    assert host.pays_from(SIZES, [(ratio,) for ratio in ratios]) == size


def test_a_gain_is_one_of_most_rounds():
    assert host.pays_from((1, 2), [(0.5, 0.5, 0.5, 1.0), (0.5,) * 4]) == 1
    assert host.pays_from((1, 2), [(0.5, 0.5, 1.0, 1.0), (0.5,) * 4]) == 2


def test_a_gain_below_4_mib_is_a_clear_one():
    large = host.CLEARLY_BELOW
    assert host.pays_from((1, 2, large), [(0.9,), (0.7,), (0.7,)], clearly=0.75) == 2
    assert host.pays_from((1, 2, large), [(0.9,), (0.9,), (0.9,)], clearly=0.75) == large


def test_from_some_size_on_it_is_enough_to_lose_little():
    found = [(1.0,), (1.0,), (1.05,), (1.04,)]
    assert host.pays_from(SIZES, found) == host.NEVER
    assert host.pays_from(SIZES, found, level=4) == 4
    assert host.pays_from(SIZES, [*found[:3], (1.5,)], level=4) == host.NEVER


def test_the_fewest_threads_that_are_as_quick_are_taken():
    assert host.fewest([4, 8, 15, 16], [1.0, 0.51, 0.5, 0.505]) == 8
    assert host.fewest([1, 2], [1.0, 0.9]) == 2


def test_another_block_is_taken_where_it_is_clearly_quicker():
    times = [1.0] * len(host.BLOCKS)
    assert host.best_block(host.BLOCKS, times) == host.SHIPPED_BLOCK
    assert host.best_block(host.BLOCKS, [*times[:-1], 0.98]) == host.SHIPPED_BLOCK
    assert host.best_block(host.BLOCKS, [*times[:-1], 0.9]) == host.BLOCKS[-1]


@pytest.mark.parametrize(("threads", "counts"), [(1, [1]), (2, [1, 2]), (4, [1, 2, 3, 4]), (16, [4, 8, 12, 15, 16])])
def test_thread_counts(threads, counts):
    assert host.thread_counts(threads) == counts


def test_additions_use_what_was_found(tmp_path, monkeypatch, capsys, child):
    monkeypatch.setenv("VECADD_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(host, "SIZES", (32 << 10, 2 << 20))
    monkeypatch.setattr(host, "ROUNDS", 1)
    monkeypatch.setattr(host, "ROUNDS_SHORT", 1)
    monkeypatch.setattr(compare, "PAIRS", 1)
    monkeypatch.setattr(compare, "ROUNDS", 1)
    monkeypatch.setattr(compare, "gains", lambda ratios: True)
    assert cli.main(["tune", "host"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(line.startswith("host: ") for line in lines)
    assert "untuned" in lines[-2]
    assert "written to" in lines[-1]
    code = (
        "from vecadd import _core\n"
        "facts = _core.host_facts()\n"
        "assert facts['tuned']\n"
        "for name, numbers in _core.tuned_rows('host', facts['key']):\n"
        "    assert facts['thresholds'][name] == numbers[0], name\n"
        "    print(name)\n"
    )
    names = child(code, VECADD_CACHE_DIR=str(tmp_path)).stdout.split()
    assert "stream_alone" in names


def test_an_untuned_host_says_so(tmp_path, child):
    code = "from vecadd import _core; print(_core.host_facts()['tuned'])"
    assert child(code, VECADD_CACHE_DIR=str(tmp_path)).stdout.strip() == "False"


def test_a_schedule_that_is_tried_adds():
    operands = host._operands(64 << 10)
    for schedule in (host.Schedule(1), host.Schedule(2, streaming=True), host.Schedule(3, block=16 << 10)):
        operands[2][:] = 7
        assert schedule.seconds(operands) > 0
        assert (operands[2] == operands[0] + operands[1]).all()

"""vecadd tune host: what its rules make of times, and that additions use what it writes."""

import itertools

import numpy as np
import pytest

from vecadd import _core, cli
from vecadd.tune import compare, host

pytestmark = pytest.mark.no_native


def by_size(*ratios):
    """What a search has found for sizes of 1, 2, 4 and 8 bytes, a round each."""
    return {1 << power: [ratio] for power, ratio in enumerate(ratios)}


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
    assert host.pays_from(by_size(*ratios)) == size


def test_a_gain_is_one_of_most_rounds():
    assert host.pays_from({1: (0.5, 0.5, 0.5, 1.0), 2: (0.5,) * 4}) == 1
    assert host.pays_from({1: (0.5, 0.5, 1.0, 1.0), 2: (0.5,) * 4}) == 2


def test_a_gain_below_4_mib_is_a_clear_one():
    large = host.CLEARLY_BELOW
    assert host.pays_from({1: (0.9,), 2: (0.7,), large: (0.7,)}, clearly=0.75) == 2
    assert host.pays_from({1: (0.9,), 2: (0.9,), large: (0.9,)}, clearly=0.75) == large


def test_from_some_size_on_it_is_enough_to_lose_little():
    assert host.pays_from(by_size(1.0, 1.0, 1.05, 1.04)) == host.NEVER
    assert host.pays_from(by_size(1.0, 1.0, 1.05, 1.04), level=4) == 4
    assert host.pays_from(by_size(1.0, 1.0, 1.05, 1.5), level=4) == host.NEVER


@pytest.mark.parametrize(
    ("first", "second", "asked", "size"),
    [
        ((1.3, 0.5, 1.3, 0.5), {4: 0.5, 1: 0.5}, [4, 1], 1),
        ((1.3, 0.5, 1.3, 0.5), {4: 1.3}, [4], 8),
        ((1.3, 0.5, 0.5, 0.5), {1: 1.3}, [1], 2),
        ((0.5, 0.5, 0.5, 0.5), {}, [], 1),
    ],
    ids=["twice disturbed", "slow indeed", "the smallest", "nothing harms"],
)
def test_the_largest_size_that_harms_is_measured_again(first, second, asked, size):
    found, measured = by_size(*first), []

    def measure(size):
        measured.append(size)
        return [second[size]]

    host.doubt(found, measure)
    assert (measured, host.pays_from(found)) == (asked, size)


def test_a_search_doubts_what_harms(monkeypatch):
    """Each comparison harms when it is made first, and pays when it is made again."""
    made = []

    def ratios(challenger, holder, operands):
        made.append((challenger, holder, operands[0].nbytes))
        return [2.0 if made.count(made[-1]) == 1 else 0.5]

    monkeypatch.setattr(host, "SIZES", (32 << 10, 64 << 10))
    monkeypatch.setattr(host, "LARGE", ())
    monkeypatch.setattr(host, "ratios", ratios)
    monkeypatch.setattr(host, "medians", lambda schedules, *given: [1.0] * len(schedules))
    [found] = host.search(lambda words: None)
    sizes = {name: numbers[0] for name, numbers in found.rows if name in ("stream_alone", "threads_awake")}
    assert sizes == dict.fromkeys(sizes, 32 << 10)
    assert "stream_alone" in sizes


@pytest.mark.parametrize(("free", "largest"), [(24 << 17, 1 << 17), ((24 << 17) - 8, 1 << 16), (0, 1 << 15)])
def test_three_arrays_of_a_large_size_take_an_eighth_of_the_free_memory(free, largest, monkeypatch):
    tried = set()
    monkeypatch.setattr(host, "SIZES", (1 << 15,))
    monkeypatch.setattr(host, "LARGE", (1 << 16, 1 << 17))
    monkeypatch.setattr(host, "memory_available", lambda: free)
    monkeypatch.setattr(host, "ratios", lambda challenger, holder, operands: [tried.add(operands[0].nbytes) or 0.5])
    monkeypatch.setattr(host, "medians", lambda schedules, *given: [1.0] * len(schedules))
    monkeypatch.setattr(_core, "host_facts", lambda: {"threads": 4, "key": "x", "simd": "y"})
    host.search(lambda words: None)
    assert max(tried) == largest


def test_the_fewest_threads_that_are_as_quick_are_taken():
    assert host.fewest([4, 8, 15, 16], [1.0, 0.51, 0.5, 0.505]) == 8
    assert host.fewest([1, 2], [1.0, 0.9]) == 2


def test_another_block_is_taken_where_it_is_clearly_quicker():
    times = [1.0] * len(host.BLOCKS)
    assert host.best_block(host.BLOCKS, times) == host.SHIPPED_BLOCK
    assert host.best_block(host.BLOCKS, [*times[:-1], 0.98]) == host.SHIPPED_BLOCK
    assert host.best_block(host.BLOCKS, [*times[:-1], 0.9]) == host.BLOCKS[-1]


def test_threads_have_their_share_at_least_and_are_two_at_least():
    all_ = host.Schedule(16, streaming=True)
    assert all_.at(64 << 10, share=16 << 10) == host.Schedule(4, streaming=True)
    assert all_.at(16 << 10, share=16 << 10) == host.Schedule(2, streaming=True)
    assert all_.at(16 << 10, share=0) == all_
    assert host.Schedule(1).at(64 << 10, share=16 << 10) == host.Schedule(1)


@pytest.mark.parametrize(
    ("first", "calls"), [(1e-6, 3 + 15), (50e-6, 3 + 4), (150e-6, 3 + 3), (0.9e-3, 3 + 3), (1e-3, 2)]
)
def test_a_sample_of_calls_in_a_row_is_200_us_long_three_calls_at_least_and_its_median_counts(
    first, calls, monkeypatch
):
    """A call of a millisecond is a sample by itself, behind one that wakes what it needs."""
    left = itertools.chain([first, 2 * first, 3 * first], itertools.cycle([5.0, 7.0, 100.0]))
    taken = []

    def seconds(schedule, operands):
        taken.append(next(left))
        return taken[-1]

    monkeypatch.setattr(host.Schedule, "seconds", seconds)
    found = host.back_to_back(host.Schedule(1), ())
    assert len(taken) == calls
    assert found == (2 * first if calls == 2 else 7.0 if calls != 3 + 4 else 6.0)


def test_the_two_that_are_compared_take_turns_at_going_first(monkeypatch):
    first, second = host.Schedule(1), host.Schedule(2)
    order = []
    monkeypatch.setattr(
        host, "back_to_back", lambda schedule, operands: order.append(schedule.threads) or schedule.threads
    )
    for nbytes, rounds in ((host.MIB, host.ROUNDS_SHORT), (2 * host.MIB, host.ROUNDS)):
        order.clear()
        assert host.ratios(first, second, (np.zeros(nbytes, np.uint8),)) == [0.5] * rounds
        assert order == ([2, 1, 1, 2] * rounds)[: 2 * rounds]


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

"""vecadd tune device: what is searched, what counts as won, and which table comes of it."""

import itertools
from collections.abc import Sequence

import pytest

from vecadd import _core
from vecadd.bench.buffers import WrongSumError
from vecadd.tune import device as tuning
from vecadd.tune.device import LaunchConfig, Won, candidates, config_for, table

pytestmark = pytest.mark.no_native

PLAIN, HELD, FAST = LaunchConfig(256, 0, 0), LaunchConfig(768, 1, 30), LaunchConfig(512, 0, 0)
SHIPPED = [(0, PLAIN), (1000, HELD)]
SIZES = [100, 400, 1600, 6400]


def found_at(rows: Sequence[tuple[int, LaunchConfig]]) -> list[LaunchConfig]:
    return [config_for(rows, size) for size in SIZES]


@pytest.mark.parametrize(
    ("won", "expected"),
    [
        ([], [PLAIN, PLAIN, HELD, HELD]),
        ([Won(100, FAST)], [FAST, PLAIN, HELD, HELD]),
        ([Won(400, FAST)], [PLAIN, FAST, HELD, HELD]),
        ([Won(6400, FAST)], [PLAIN, PLAIN, HELD, FAST]),
        ([Won(400, FAST), Won(1600, FAST)], [PLAIN, FAST, FAST, HELD]),
        ([Won(size, FAST) for size in SIZES], [FAST] * 4),
    ],
    ids=str,
)
def test_a_winner_holds_about_its_size_and_the_build_elsewhere(won: list[Won], expected: list[LaunchConfig]) -> None:
    rows = table(SHIPPED, SIZES, won)
    assert found_at(rows) == expected
    assert rows[0][0] == 0
    assert [start for start, _ in rows] == sorted({start for start, _ in rows})
    assert all(before[1] != after[1] for before, after in itertools.pairwise(rows))


def test_the_builds_own_thresholds_stay_where_nothing_won() -> None:
    assert table(SHIPPED, SIZES, [Won(100, FAST)]) == [(0, FAST), (200, PLAIN), (1000, HELD)]


def test_lines_are_held_only_where_the_kernel_can_and_the_l2_is_passed() -> None:
    small, large, other = (list(candidates(size, 1000, cc)) for size, cc in ((1999, 90), (2000, 90), (2000, 100)))
    assert small == other
    assert {config.loads for config in small} == {0}
    assert {config.demoted for config in large if config.loads} == set(tuning.DEMOTED)


def test_every_recipe_of_the_build_is_met_where_it_rules_and_is_among_those_searched(device: int) -> None:
    known = _core.device_launch_configs(device)
    shipped = [(row[0], LaunchConfig(*row[1:])) for row in known["shipped"]]
    met = {size: config_for(shipped, size) for size in tuning.BYTES}
    assert set(met.values()) == {config for _, config in shipped}
    for size, config in met.items():
        assert config in candidates(size, known["l2"], tuning.HOLDS)


class Rounds:
    """In the place of measurements: each dtype's paired ratios, by config, over the build's."""

    l2, memory, capability = 1000, 1 << 40, 90

    def __init__(self, ratios: dict[str, tuple[float, float, float]]) -> None:
        self.of = ratios

    def ratios(
        self, dtype: str, size: int, reference: LaunchConfig, others: Sequence[LaunchConfig], seconds: float
    ) -> dict[LaunchConfig, tuple[float, float, float]]:
        del size, reference, seconds
        return {other: self.of.get(dtype, (0.97, 0.98, 0.99)) if other == FAST else (1.0, 1.1, 1.2) for other in others}


@pytest.mark.parametrize(
    ("ratios", "won"),
    [
        ({}, FAST),
        ({"float32": (0.98, 0.99, 1.0)}, None),
        ({"int8": (1.01, 1.02, 1.03)}, None),
        ({"int8": (0.99, 1.02, 1.03)}, FAST),
    ],
    ids=["faster", "not surely", "slower in int8", "no slower in int8"],
)
def test_a_recipe_wins_where_it_is_surely_faster_and_loses_in_no_dtype(
    ratios: dict[str, tuple[float, float, float]], won: LaunchConfig | None
) -> None:
    words, config = tuning._search_size(Rounds(ratios), 5000, PLAIN)
    assert config == won
    assert ("stays" in words) == (won is None)


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SEARCH_SECONDS", "DECIDE_SECONDS", "AGREE_SECONDS"):
        monkeypatch.setattr(tuning, name, 0.01)
    monkeypatch.setattr(tuning, "BYTES", (3 << 12, 3 << 20))
    monkeypatch.setattr(tuning, "BLOCKS", (128, 256))
    monkeypatch.setattr(tuning, "HELD_BLOCKS", (768,))
    monkeypatch.setattr("vecadd.bench.timing.SETTLE", 0.0)


def test_a_search_says_what_it_found_and_its_rows_can_be_gone_by(device: int, brief: None) -> None:
    for found in tuning.search(lambda what: None):
        assert found.kind == "recipes"
        assert found.key.startswith("GPU-")
        assert len(found.words) == 2
        assert found.rows is None or all(name == "recipe" and len(numbers) == 4 for name, numbers in found.rows)
    assert found.key == _core.device_launch_configs(len(_core.gpu_facts()) - 1)["key"]


def test_a_wrong_sum_ends_the_search(device: int, brief: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(*arguments: object) -> None:
        raise WrongSumError("element 0 is 1, the sum is 2")

    monkeypatch.setattr(tuning.Pattern, "check", wrong)
    with pytest.raises(RuntimeError, match="256 threads failed: wrong result"):
        tuning.search(lambda what: None)

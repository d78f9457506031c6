"""The L2: large additions ask it to keep their operands and give their end back; small ones leave it alone.

What the kernels do line by line is tests/c/test_l2.c; benchmarks/peers measures what it costs others ("l2_pollution").
"""

from types import ModuleType

import numpy as np
import pytest

import vecadd
from vecadd import _core, ladder

LINE = 128
LARGE = 86 << 20  # bytes of each of three arrays: 258 MiB


def address(x: vecadd.DeviceArray) -> int:
    return int(x.__cuda_array_interface__["data"][0])


def given_back() -> int:
    """Bytes of the end of each input: 30 of 60 MB on an H200, the same share of any other L2."""
    return int(_core.gpu_facts()[0]["l2"]) // 60 * 30


def test_a_large_addition_keeps_its_inputs_and_gives_their_end_back(device: int, double: ModuleType) -> None:
    a, b = (vecadd.to_device(np.full(LARGE, value, np.int8)) for value in (3, 4))
    total = vecadd.add(a, b)
    assert (total.numpy() == 7).all()
    lines = given_back() // LINE
    kept = LARGE // LINE - lines
    for x in (a, b):
        assert double.l2(address(x) + kept * LINE, lines * LINE) == (0, lines)
        evict_last, demoted = double.l2(address(x), kept * LINE)
        assert evict_last + demoted == kept
        assert demoted <= 32 * 16 // LINE + 1  # a warp's
    assert double.l2(address(total), LARGE) == (0, 0)


@pytest.mark.laboratory
@pytest.mark.parametrize(
    ("chosen", "evict_last", "demoted"),
    [({"loads": 1}, False, False), ({"loads": 2}, True, False), ({"loads": 2, "demoted": 1}, True, True)],
    ids=str,
)
def test_the_rung_moves_bytes_as_it_is_told(
    chosen: dict[str, int], evict_last: bool, demoted: bool, device: int, double: ModuleType
) -> None:
    a = vecadd.to_device(np.ones(1 << 19, np.float32))
    assert (ladder.run("tuned", a, a, **chosen, warps=24).numpy() == 2).all()
    assert tuple(count > 0 for count in double.l2(address(a), a.nbytes)) == (evict_last, demoted)

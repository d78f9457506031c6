"""stream_orders.py runs the tests that take a seed for each seed, and finds the one that fails."""

import pytest
import stream_orders
from conftest import ON_DOUBLE

pytestmark = [
    pytest.mark.no_native,
    pytest.mark.slow,
    pytest.mark.skipif(not ON_DOUBLE, reason="the orders are the double's"),
]

FAILS_FOR_SEVEN = """
import pytest
from orders import orders

@pytest.mark.parametrize("seed", orders(1, 1))
def test_one(seed):
    assert seed != 7

def test_without_a_seed():
    assert False
"""


def test_the_tests_of_stream_order_pass_for_seeds_of_their_own():
    passed, output = stream_orders.run(range(100, 102))
    assert output == ""
    assert passed > 100
    assert passed % 2 == 0


def test_the_seed_of_a_failure_is_told(monkeypatch, tmp_path):
    file = tmp_path / "test_made_up.py"
    file.write_text(FAILS_FOR_SEVEN)
    monkeypatch.setattr(stream_orders, "files", lambda: [file])
    assert stream_orders.run(range(2, 7)) == (5, "")
    passed, output = stream_orders.run(range(5, 10))
    assert passed == 2
    assert "test_one[7]" in output

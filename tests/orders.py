"""Seeds of the order in which the double runs work that nothing orders: a few a test, or those that stream_orders.py
asks for."""

import os

import pytest
from conftest import ON_DOUBLE


def orders(on_double: int, on_gpu: int) -> range:
    """Seeds from 0 on, as many as the runtime in use gets. On a GPU, its own order differs at every run too."""
    asked = os.environ.get("VECADD_TEST_ORDERS")  # "500:1000"
    if asked and ON_DOUBLE:
        first, last = map(int, asked.split(":"))
        return range(first, last)
    return range(on_double if ON_DOUBLE else on_gpu)


def order_fixture(on_double: int, on_gpu: int):
    """The fixture `order`: the seed of the double's order of work, and of what a test chooses at random."""

    @pytest.fixture(params=orders(on_double, on_gpu), ids="order {}".format)
    def order(request: pytest.FixtureRequest, device: int) -> int:
        if ON_DOUBLE:
            request.getfixturevalue("double").reset(request.param)
        return int(request.param)

    return order

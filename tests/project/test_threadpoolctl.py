"""threadpoolctl sees and limits vecadd's threads, once vecadd is registered with it."""

import pytest

pytest.importorskip("threadpoolctl")

HEAD = """
import threadpoolctl, vecadd
from vecadd import threadpools
def seen():
    return [found for found in threadpoolctl.threadpool_info() if found["user_api"] == "vecadd"]
"""


def test_it_is_seen_once_it_is_registered(child):
    code = f"""{HEAD}
assert seen() == []
threadpools.register()
threadpools.register()
[found] = seen()
print(found["num_threads"], found["version"] == vecadd.__version__, found["filepath"] == vecadd._core.__file__)
"""
    assert child(code, VECADD_NUM_THREADS="3").stdout == "3 True True\n"


def test_a_limit_applies_inside_of_its_block(child):
    code = f"""{HEAD}
threadpools.register()
with threadpoolctl.threadpool_limits(1, user_api="vecadd"):
    print(vecadd.get_num_threads())
with threadpoolctl.threadpool_limits(2):
    print(vecadd.get_num_threads())
print(vecadd.get_num_threads())
"""
    assert child(code, VECADD_NUM_THREADS="3").stdout == "1\n2\n3\n"


def test_a_limit_above_the_most_threads_is_the_most(child):
    code = f"""{HEAD}
threadpools.register()
with threadpoolctl.threadpool_limits(1000):
    print(vecadd.get_num_threads())
vecadd.set_num_threads(threadpools.MOST)
try:
    vecadd.set_num_threads(threadpools.MOST + 1)
except ValueError:
    print("refused")
"""
    assert child(code).stdout == "256\nrefused\n"


def test_vecadd_does_not_import_it(child):
    child("import sys, vecadd, vecadd.threadpools; assert 'threadpoolctl' not in sys.modules")

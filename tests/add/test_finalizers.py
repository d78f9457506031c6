"""A finalizer that changes an operand while it is added: before Python 3.12 a collection begins where an object is
made, and so between a look at the operand and the work."""

import sys

import pytest

pytestmark = pytest.mark.skipif(
    sys.version_info >= (3, 12), reason="the garbage collector runs only between two instructions"
)

ADDS = """
import gc
import numpy as np, vecadd

N = {n}
{before}

class Changes:
    def __init__(self, x):
        self.x, self.itself = x, self

    def __del__(self):
        {change}

def is_sum(total, x, y):
    # Of x as it was, or as it is now.
    for each in (np.ones(N), x):
        if np.shape(y) in ((), each.shape):
            due = np.add(each, y)
            if total.dtype == due.dtype and total.tobytes() == due.tobytes():
                return True
    return False

vecadd.add(np.ones(3), np.ones(3))
used = vecadd._core.output_pool_counts()["used_blocks"]
seen = set()
for threshold in range(6):
    for y in (np.ones(N, np.{other}), np.ones(8 * N, np.{other}), np.{other}(2), 2):
        for f in (vecadd.add, lambda a, b: vecadd.add(b, a), lambda a, b: vecadd.add_many([a], [b])[0]):
            x = np.ones(N)
            gc.collect()
            gc.disable()
            Changes(x)
            gc.set_threshold(gc.get_count()[0] + threshold)
            gc.enable()
            try:
                total = f(x, y)
                gc.disable()
                seen.add("added" if is_sum(total, x, y) else "wrong")
            except ValueError as error:
                gc.disable()
                seen.add("refused" if "resized" in str(error) or "broadcast" in str(error) else str(error))
total = None
assert vecadd._core.output_pool_counts()["used_blocks"] == used, "a sum that was refused is left"
print(*sorted(seen))
"""


@pytest.mark.parametrize("other", ["int8", "int16", "uint32", "float32", "complex64"])
@pytest.mark.parametrize(
    "change", ["dtype = np.int8", "dtype = np.int64", "resize(N // 8, refcheck=False); self.x.dtype = np.int8"]
)
def test_an_operand_is_read_by_the_dtype_that_it_has(child, other, change):
    """What NumPy promotes two dtypes to is asked at their first sum, by Python code: each child has it before it."""
    said = set(child(ADDS.format(n=1 << 17, before="", change=f"self.x.{change}", other=other)).stdout.split())
    assert said <= {"added", "refused"}
    assert "added" in said


KEPT = "kept = [vecadd.add(np.ones(N), np.ones(N)) for _ in range(600)]"  # so that the next ones are the pool's too


@pytest.mark.parametrize("other", ["float64", "float32"])
@pytest.mark.parametrize(("n", "before"), [(1 << 17, ""), (1 << 13, KEPT)], ids=["large", "medium"])
def test_an_operand_that_becomes_shorter_in_place_is_not_read_beyond_its_end(child, n, before, other):
    code = ADDS.format(n=n, before=before, change="self.x.resize(N // 2, refcheck=False)", other=other)
    assert set(child(code).stdout.split()) == {"added", "refused"}

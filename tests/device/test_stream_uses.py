"""What is done with an array on a stream beside its sums: copies come after them, and uses are told to its library."""

import numpy as np
import test_streams as streams
from arrays import assert_same_values
from test_stream_order import Pool, Pooled

import vecadd
from vecadd import interop

order = streams.order


def test_a_copy_comes_after_the_sum_on_its_arrays_own_stream(order, driver, foreign):
    stream, a = driver.stream(), streams.numbers(1)
    source, late = foreign(a), foreign(np.zeros_like(a))
    driver.copy_late(stream, late.pointer, source.pointer, a.nbytes)
    total = vecadd.add(late, late.window(0, a.size), stream=stream)
    assert_same_values(total.copy().numpy(), a + a)


def test_a_use_on_the_per_thread_stream_is_recorded_as_one_of_all_threads(driver, monkeypatch):
    """Its library looks at it when the memory goes, in whichever thread."""
    library = Pool(driver)
    monkeypatch.setitem(interop.LIBRARIES, "pooled", library)
    library.current, other = driver.stream(), driver.stream()
    arrays = [Pooled(library, library.current) for _ in range(3)]
    for stream, recorded in ((streams.PER_THREAD, 0), (other, other), (library.current, None)):
        vecadd.add(*arrays, stream=stream)
        assert [array.recorded for array in arrays] == [[] if recorded is None else [recorded]] * 3
        for array in arrays:
            array.recorded.clear()
    interop._known.pop(Pooled)

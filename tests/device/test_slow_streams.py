"""What DLPack lends goes back when its own stream is done with it, whatever other streams still do.

Each device has a legacy stream, and each thread a per-thread stream. This runs on the double, whose streams work
when they are told to.
"""

import threading

import numpy as np
import pytest
from foreign import DLPACK_CUDA, DLPackArray

import vecadd

X = np.arange(1000, dtype=np.int32)
PER_THREAD = 2

pytestmark = pytest.mark.usefixtures("double")


@pytest.mark.parametrize("first", [0, 1])
def test_the_legacy_stream_of_one_device_delays_none_of_another(first, double, driver, foreign):
    double.devices(2)
    lent = [DLPackArray(foreign(X, device=device), device=(DLPACK_CUDA, device)) for device in (0, 1)]
    outs = [foreign(X, device=device) for device in (0, 1)]
    for device in (first, 1 - first):
        vecadd.add(lent[device], lent[device], outs[device])
    driver.synchronize(1)
    vecadd.memory_stats()
    assert [x.deleted for x in lent] == [0, 2]
    driver.synchronize(0)
    vecadd.memory_stats()
    assert [x.deleted for x in lent] == [2, 2]


def test_one_threads_stream_delays_none_of_another_thread(double, driver, foreign):
    lent, outs = [DLPackArray(foreign(X)) for _ in range(2)], [foreign(X) for _ in range(2)]
    slow_has_added, quick_is_done = threading.Event(), threading.Event()

    def slow():
        vecadd.add(lent[0], lent[0], outs[0], stream=PER_THREAD)
        slow_has_added.set()
        quick_is_done.wait()

    def quick():
        slow_has_added.wait()
        vecadd.add(lent[1], lent[1], outs[1], stream=PER_THREAD)
        double.stream_synchronize(PER_THREAD)
        vecadd.memory_stats()
        seen.extend(x.deleted for x in lent)
        quick_is_done.set()

    seen: list[int] = []
    threads = [threading.Thread(target=target) for target in (slow, quick)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [0, 2]
    driver.synchronize(0)
    vecadd.memory_stats()
    assert [x.deleted for x in lent] == [2, 2]

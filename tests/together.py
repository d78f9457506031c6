"""Work of several threads at one time."""

import threading
from collections.abc import Callable


def together(count: int, work: Callable[[int], object]) -> None:
    """Runs work(0), work(1), ... in as many Python threads, started at one time, and raises what they raised."""
    start = threading.Barrier(count)
    errors: list[BaseException] = []

    def run(i: int) -> None:
        start.wait()
        try:
            work(i)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors

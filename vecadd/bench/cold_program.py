"""The program that vecadd.bench.cold times: adds two arrays of N float32 and prints the seconds of its stages as JSON.

``python cold_program.py gpu|cpu N DEVICE``: run by its path, so that importing vecadd is one of the timed stages. Only
the clock is imported before the clock starts.
"""

from time import perf_counter

BEGIN = perf_counter()


class Laps:
    """``laps("name")`` records the seconds since the last lap under that name."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = BEGIN

    def __call__(self, name: str) -> None:
        now = perf_counter()
        self.seconds[name] = now - self._last
        self._last = now


def main(where: str, n: int, device: int) -> dict[str, object]:
    """Seconds of each stage, of the kernel and of the program, by name; and whether the sum was right."""
    laps = Laps()
    import numpy as np

    from vecadd import _core

    laps("import")
    a = np.arange(n, dtype=np.float32)
    b = np.ones(n, np.float32)
    c = np.empty_like(a)
    laps("operands")
    more: dict[str, object] = {}
    if where == "cpu":
        _core.add(a, b, c)
        laps("add")
    else:
        _core.gpu_facts()
        laps("driver")
        _core.to_device(np.zeros(1, np.float32), device)
        laps("context")
        x, y, z = (_core.to_device(array, device) for array in (a, b, c))
        laps("upload")
        more["kernel"] = _core.run_rung("single_thread", x, y, z)
        laps("launch")
        c = z.numpy()
        laps("download")
    whole = perf_counter() - BEGIN
    more |= {"program": whole, "own": whole - laps.seconds["import"]}
    more["checked"] = bool((c == a + b).all())
    return {**laps.seconds, **more}


if __name__ == "__main__":
    import json
    import sys

    print(json.dumps(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))

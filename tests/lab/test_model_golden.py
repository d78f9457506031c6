"""What the model expects of every rung, as a file in tests/golden/model: a change shows by its terms.

`PYTHONPATH=.:tests python tests/lab/test_model_golden.py`, on a build with CUDA, writes the file anew; read what has
changed.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from modelled import H200, LIMITS, RUNGS, T4

from vecadd import model
from vecadd.tables import show_size

pytestmark = pytest.mark.no_native

GOLDEN = Path(__file__).parents[1] / "golden" / "model" / "expected.txt"
SIZES = (1000, 2**16, 2**20, 2**26)


def expectations() -> Iterator[str]:
    """A line each: of every rung at its usual parameters, then of other dtypes, parameters and another GPU."""
    for rung in RUNGS.values():
        for n in SIZES:
            yield line(rung, n)
    for rung in RUNGS.values():
        if rung["kind"] in ("device", "latency"):
            yield line(rung, 2**20, T4, "T4")
        if rung["kind"] == "device":
            yield line(rung, 2**20, dtype=rung["dtypes"][-1])
            for name, (least, usual, most) in rung["params"].items():
                yield from (line(rung, 2**20, **{name: value}) for value in sorted({least, most} - {usual}))
        if "chain" in rung["params"]:
            yield from (line(rung, n, chain=1, adds=50) for n in SIZES[:3])


def line(
    rung: dict[str, Any], n: int, gpu: dict[str, int] = H200, name: str = "H200", dtype: str = "", **params: int
) -> str:
    """Microseconds in all, by which term, and of each term; or why nothing is expected."""
    dtype = dtype or ("float32" if "float32" in rung["dtypes"] else rung["dtypes"][0])
    chosen = "".join(f" {key} {value}" for key, value in params.items())
    begin = f"{rung['name']}{chosen}, {dtype} {show_size(n)} on {name}:"
    try:
        found = model.predict(rung, None, gpu, LIMITS, dtype, n, params)
    except ValueError as error:
        return f"{begin} {error}"
    terms = ", ".join(f"{term} {1e6 * seconds:.9g}" for term, seconds in found.terms.items())
    return f"{begin} {1e6 * found.seconds:.9g} us by its {found.dominant} ({terms})"


def test_the_model_expects_what_the_golden_file_says() -> None:
    assert list(expectations()) == GOLDEN.read_text().splitlines()


if __name__ == "__main__":
    GOLDEN.write_text("".join(f"{line}\n" for line in expectations()))

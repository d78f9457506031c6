"""README.md: its figures are those of the result files, a chart's text is its finding, its receipt is of a program."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from benchmarks import pictures
from benchmarks.tables import peers
from benchmarks.tables.documents import RESULTS
from vecadd.figures import Figure, read_run
from vecadd.tables import show_seconds

pytestmark = pytest.mark.no_native

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
PROSE = " ".join(re.sub(r"\]\([^)]*\)", "]", README).replace("[", "").replace("]", "").split())  # as one reads it
CHARTS = [name for name, picture in pictures.PICTURES.items() if not isinstance(picture.of, str)]


def rows(file: str) -> Sequence[Figure]:
    return read_run(RESULTS / file).figures


def ratio(file: str, name: str, n: int, dtype: str = "float32") -> float:
    (found,) = (row for row in rows(file) if (row.name, row.dtype, row.n) == (name, dtype, n))
    return float(found.params["ratio"])


def less(ratio: float) -> str:
    """Of the time of ours."""
    return f"takes {100 * (1 - ratio):.0f} % less time"


def say_how_much_slower_numpy_is() -> str:
    sixteen, two = (ratio(f"{each}/peer-host.json", "numpy out=", 1 << 27) for each in ("h100", "amd-epyc-2t"))
    return f"on sixteen threads NumPy takes {sixteen:.0f} times as long as vecadd, on two {two:.1f} times"


def say_that_torch_is_level_on_two_threads() -> str:
    (torch,) = (
        row
        for row in rows("amd-epyc-2t/peer-host.json")
        if (row.name, row.dtype, row.n) == ("torch out=", "float32", 1 << 27)
    )
    assert peers.place(torch) == "level"
    return "On two threads torch is level"


def say_how_the_nearest_peers_are() -> str:
    compared = [row for row in rows("h200/peer-device.json") if row.sweep == "peer-device"]
    counts = Counter(peers.place(row) for _, row in peers.find_nearest(compared).values())
    libraries = {row.name for row in compared if not row.name.startswith(("vecadd", "jax"))}
    assert len(libraries) == 8
    return (
        f"the nearest of eight libraries is behind in {counts['behind']}, level in {counts['level']} and ahead in "
        f"{counts['ahead']} of {counts.total()} cells of dtype and size"
    )


def say_how_far_an_early_trigger_is_ahead() -> str:
    early = [row for row in rows("h200/peer-device.json") if row.name == "triton, early trigger" and row.seconds]
    shares = sorted(100 * (1 - row.params["ratio"]) for row in early if row.sweep == "peer-queued")
    return f"takes {shares[0]:.2g} to {shares[-1]:.2g} % less time where additions follow each other"


def say_how_far_foreach_is_ahead() -> str:
    theirs, ours = (
        ratio("h200/peer-many.json", name, 2560)
        for name in ("torch._foreach_add_ in place", "vecadd.add_many in place (torch tensors)")
    )
    return f"`torch._foreach_add_` {less(theirs / ours)} than `vecadd.add_many` on tensors"


def say_how_far_torch_is_ahead_after_a_pause() -> str:
    return (
        f"2^18 float32 on sixteen threads torch {less(ratio('h100/peer-host.json', 'torch out= after 1 ms', 1 << 18))}"
    )


def say_what_a_small_call_saves() -> str:
    saved: dict[bool, list[float]] = {False: [], True: []}  # by whether it is of 16-bit floats
    for machine in ("h100", "amd-epyc-2t"):
        compared = rows(f"{machine}/peer-host.json")
        ours = {(row.name, row.dtype, row.n): row.seconds or 0 for row in compared}
        for row in compared:
            if row.name in ("numpy out=", "numpy a + b") and row.bytes <= 3 * (16 << 10):
                seconds = ours[row.params["reference"], row.dtype, row.n]
                saved["float16" in row.dtype].append(seconds * (row.params["ratio"] - 1))
    assert sorted(saved[False])[-2] < 1e-6
    most, of_16_bits = (show_seconds(max(saved[kind])) for kind in (False, True))
    return f"a call saves at most {most} beside NumPy, mostly less than 1 us; of 16-bit floats up to {of_16_bits}"


def say_how_good_receipts_predict() -> str:
    programs = [row.params for row in rows("amd-epyc-2t/why.json") if row.sweep == "why-programs"]
    assert len(programs) == 10
    furthest = max(abs(each["predicted"] / each["measured"] - 1) for each in programs)
    return f"all ten gained what the receipt had predicted, within {100 * furthest:.0f} %"


def say_what_a_receipt_costs() -> str:
    costs = {row.n: row.params["ratio"] for row in rows("amd-epyc-2t/why.json") if row.sweep == "why-costs"}
    largest = max(costs, key=costs.__getitem__)
    return f"It costs up to {100 * costs[largest] - 100:.0f} % of the time of additions of {largest:,} elements"


@pytest.mark.parametrize("sentence", [value for name, value in globals().items() if name.startswith("say_")])
def test_a_figure_is_what_is_recorded(sentence: Callable[[], str]) -> None:
    assert sentence() in PROSE


@pytest.mark.parametrize("name", CHARTS)
def test_a_charts_text_is_its_finding(name: str) -> None:
    assert f'<img src="docs/pictures/{name}.png" width="480" alt="{pictures.PICTURES[name].chart.title}">' in README


def test_the_bars_of_the_host_are_the_recorded_shares() -> None:
    picture = pictures.PICTURES["host"]
    for file, panel in zip(picture.files, picture.chart.panels, strict=True):
        recorded = {
            f"{row.name}": row.params["limit_share"]
            for row in rows(file)
            if (row.dtype, row.n) == ("float32", 1 << 27) and "limit_share" in row.params
        }
        assert {f"{name} out=": bar for name, bar in panel.bars.items()} == recorded


def test_the_receipt_names_a_line_of_the_program() -> None:
    name, number = re.findall(r"^(examples/\S+\.py):(\d+) ", README, re.MULTILINE)[0]
    assert "+= bias" in (ROOT / name).read_text().splitlines()[int(number) - 1]

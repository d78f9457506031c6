"""What a part of ``vecadd tune`` is, and what it hands back."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

Tell = Callable[[str], None]  # what is being measured now, a few words
TunedRow = tuple[str, Sequence[float]]  # a name and its numbers, as csrc/base/tuned_file.h has them


@dataclass(frozen=True)
class Found:
    """What a search found for one key: a GPU, a processor.

    ``rows`` is the whole file; None where nothing is better than what the build ships with, so that no file is kept.
    ``words`` are lines for the terminal: what was measured, what won, by how much.
    """

    kind: str
    key: str
    rows: Sequence[TunedRow] | None
    words: Sequence[str] = field(default_factory=tuple)


@dataclass(frozen=True)
class Part:
    """``search`` measures and gives what it found, one `Found` a key; it writes nothing.

    ``must_gain``: what was found is kept only where additions that go by it are faster than by what the build ships
    with, and nowhere slower.
    """

    name: str
    search: Callable[[Tell], Sequence[Found]]
    needs_gpu: bool = True
    must_gain: bool = False

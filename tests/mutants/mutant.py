"""What a mutant is."""

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Mutant:
    """``test`` is a Python test file, run on the double with ``only`` as its -k, or the name of a C test's program.

    With ``libraries`` it is run on the GPU, and a test of each of them has to fail. ``level`` is the SIMD level, as
    VECADD_SIMD names it, that a processor needs to run the line."""

    name: str
    path: str
    old: str
    new: str
    test: str
    only: str = ""
    libraries: tuple[str, ...] = ()
    level: str = ""

    def applied_to(self, root: Path) -> str:
        """The file's text with the mutation. Raises ValueError if the file does not have the old text exactly once:
        the code has changed, and the mutant has to follow it."""
        text = (root / self.path).read_text()
        if text.count(self.old) != 1:
            raise ValueError(f"{self.name}: {self.path} has {self.old!r} {text.count(self.old)} times, not once")
        return text.replace(self.old, self.new)

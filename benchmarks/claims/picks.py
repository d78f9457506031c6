"""Which recorded row a claim is about."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from vecadd import _core
from vecadd.bench.results import Row
from vecadd.model.theory import usual

_RUNGS = {rung["name"]: rung for rung in _core.rungs()}


@dataclass(frozen=True)
class Pick:
    """A rung of a sweep, at ``n`` elements or at the largest recorded size, and at a block where the sweep has several.

    ``parameters`` are the rung's own, all others as usual; ``where`` are other params of the row.
    """

    sweep: str
    rung: str
    dtype: str = "float32"
    n: int | None = None
    block: int | None = None
    parameters: Mapping[str, int] = field(default_factory=dict)
    where: Mapping[str, object] = field(default_factory=dict)

    def __str__(self) -> str:
        more = (f"{name} {value}" for name, value in self.parameters.items())
        return f"{' '.join([self.rung, self.dtype, *more])} ({self.sweep})"

    def at(self, n: int) -> "Pick":
        """The same rung at ``n`` elements."""
        return replace(self, n=n)

    def means(self, row: Row) -> bool:
        """Whether the row is one that is meant. A stage of document 004 is known by its name alone."""
        stage = self.where.get("stage")
        return (
            (row.rung, row.dtype) == (self.rung, self.dtype)
            and row.seconds is not None
            and self.n in (None, row.n)
            and self.block in (None, row.params.get("block"))
            and row.params.get("stage") == stage
            and (stage is not None or self._parameters(row.params.get("parameters", {})) == self._parameters())
            and all(row.params.get(name) == value for name, value in self.where.items())
        )

    def _parameters(self, chosen: Mapping[str, int] | None = None) -> Mapping[str, int]:
        """All parameters but the number of small additions, which depends on their size."""
        found = usual(_RUNGS.get(self.rung, {"params": {}}), self.parameters if chosen is None else chosen)
        return {name: value for name, value in found.items() if name != "adds"}


def ladder(rung: str, n: int | None = None, dtype: str = "float32", **parameters: int) -> Pick:
    """A rung on the device."""
    return Pick("ladder", rung, dtype, n, parameters=parameters)


def precision(rung: str, n: int | None = None) -> Pick:
    """A rung of the precision sweep, float16 where it is one for 16-bit elements."""
    return Pick("precision", rung, "float16" if rung.startswith("half") else "float32", n)


def experiment(name: str, rung: str, n: int | None = None, dtype: str = "float32", **parameters: int) -> Pick:
    """A rung of one of the documents' experiments, at the document's own size and setting."""
    return Pick("documents", rung, dtype, n, parameters=parameters, where={"experiment": name})


def blocksize(rung: str, block: int) -> Pick:
    """A rung by the threads of a block."""
    return Pick("blocksize", rung, block=block)


def waves(percent: int) -> Pick:
    """The rung `waves` at that percentage of the blocks that fit at once."""
    return Pick("blocksize", "waves", parameters={"percent": percent})


def latency(rung: str, n: int = 2560, chain: int = 0) -> Pick:
    """Many additions of ``n`` elements each: 2560 are the 10 KB of document 003."""
    return Pick("latency", rung, n=n, parameters={"chain": chain})


def transfer(rung: str, n: int | None = None, **parameters: int) -> Pick:
    """A rung across the link."""
    return Pick("transfer", rung, n=n, parameters=parameters)


def stage(name: str) -> Pick:
    """One of document 004's stages, by the name of its kernel or of its rung."""
    return Pick("transfer", name if name in ("pinned", "streams4") else "pageable", where={"stage": name})


def matrix(rung: str) -> Pick:
    """A rung of the matrix sweeps, at the largest matrices."""
    return Pick(rung.partition("_")[0], rung)


def profile(rung: str) -> Pick:
    """What the profiler said of a rung."""
    return Pick("profile", rung)

"""The environment variables that vecadd reads, what each is set to, and the environment of child processes."""

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Variable:
    """A variable of the environment. ``value`` is None where it is not set. ``str()`` of it is a line."""

    name: str
    meaning: str
    value: str | None = None

    def __str__(self) -> str:
        return f"{self.name} {'(not set)' if self.value is None else f'= {self.value}'}: {self.meaning}"


# docs/install.md has the same lines, and those that the build reads.
RUNNING = (
    Variable("VECADD_NUM_THREADS", "threads of an addition on the host, 1 to 256; else all processors it may use"),
    Variable(
        "VECADD_WAKE_BYTES",
        "bytes of a sum on the host from which sleeping threads are woken; else 512 KiB, or 2 MiB with two or three",
    ),
    Variable("VECADD_SIMD", "the instruction set on the host; else the best of those that `vecadd info` lists"),
    Variable(
        "VECADD_CACHE_DIR", "the folder of `vecadd tune`'s files; else `$XDG_CACHE_HOME/vecadd`, else `~/.cache/vecadd`"
    ),
    Variable(
        "VECADD_POOL_BYTES",
        "bytes kept at most for sums on the host, 0: none; else an eighth of memory, or nothing under `ulimit -v`",
    ),
    Variable("VECADD_RESULTS", "the folder of recorded results that the notebooks show; else those of the package"),
    Variable("VECADD_RECORDED", "with 1 the notebooks show what is recorded and measure nothing"),
)


def settings() -> tuple[Variable, ...]:
    """What is read when vecadd runs, with the values of now."""
    return tuple(Variable(known.name, known.meaning, os.environ.get(known.name)) for known in RUNNING)


def of_child(**more: str) -> dict[str, str]:
    """The environment of a Python process that imports this vecadd: this process's own, and these variables. What
    PYTHONPATH names already comes first."""
    paths = (os.environ.get("PYTHONPATH"), str(Path(__file__).resolve().parents[1]))
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), **more}

"""The environment variables that vecadd reads: what each means, and what it is set to."""

import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Variable:
    """A variable of the environment. ``value`` is None where it is not set. ``str()`` of it is a line."""

    name: str
    meaning: str
    value: str | None = None

    def __str__(self) -> str:
        return f"{self.name} {'(not set)' if self.value is None else f'= {self.value}'}: {self.meaning}"


# What is read when vecadd runs. docs/install.md has the same lines.
RUNNING = (
    Variable("VECADD_NUM_THREADS", "threads of an addition on the host, 1 to 256; else all processors it may use"),
    Variable("VECADD_SIMD", "the instruction set on the host; else the best of those that `vecadd info` lists"),
    Variable("VECADD_CACHE_DIR", "the folder of `vecadd tune`'s files; else `~/.cache/vecadd`"),
    Variable("VECADD_POOL_BYTES", "bytes kept at most for large sums on the host, 0: none; else an eighth of memory"),
    Variable("VECADD_RESULTS", "the folder of recorded results that the notebooks show; else those of the package"),
    Variable("VECADD_RECORDED", "with 1 the notebooks show what is recorded and measure nothing"),
)

# What is read when vecadd is built, or when its C tests run.
BUILDING = (
    Variable("VECADD_CUDA", "0: for the host alone"),
    Variable("VECADD_CUDA_ARCHS", "compute capabilities, `90` or `80,90`; else the build's own"),
    Variable("VECADD_CHECK_SECONDS", "seconds after which a C test that hangs is ended; the build sets it"),
)


def settings() -> tuple[Variable, ...]:
    """What is read when vecadd runs, with the values of now."""
    return tuple(Variable(known.name, known.meaning, os.environ.get(known.name)) for known in RUNNING)

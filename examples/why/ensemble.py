"""An ensemble of models, each small enough for a cache, all together too large for it.

reason  operands evicted from the cache
mended  all steps of a model before the next model
"""

import sys

import numpy as np

MODELS, N = 256, 1 << 15


def slow(steps: int = 60) -> None:
    """Until a model's turn comes again, the others have taken its place in the cache."""
    models, forcing = [np.ones(N) for _ in range(MODELS)], np.ones(N)
    for _ in range(steps):
        for model in models:
            model += forcing


def mended(steps: int = 60) -> None:
    """A model stays in the cache for all of its steps."""
    models, forcing = [np.ones(N) for _ in range(MODELS)], np.ones(N)
    for model in models:
        for _ in range(steps):
            model += forcing


if __name__ == "__main__":
    (mended if sys.argv[1:] == ["mended"] else slow)()

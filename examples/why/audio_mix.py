"""Two tracks that are mixed, song after song, each mix into an array of its own.

reason  first use of memory
mended  one array for all mixes
"""

import sys

import numpy as np

N = 12_000_000


def slow(songs: int = 30) -> None:
    """An empty array has no pages yet: the addition gets them from the system."""
    voice, band = np.ones(N, np.float32), np.ones(N, np.float32)
    for _ in range(songs):
        mix = np.empty(N, np.float32)
        np.add(voice, band, out=mix)


def mended(songs: int = 30) -> None:
    """The array has its pages from the first mix on."""
    voice, band = np.ones(N, np.float32), np.ones(N, np.float32)
    mix = np.zeros(N, np.float32)
    for _ in range(songs):
        np.add(voice, band, out=mix)


if __name__ == "__main__":
    (mended if sys.argv[1:] == ["mended"] else slow)()

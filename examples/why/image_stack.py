"""A stack of images of one byte a pixel, added up in float32.

reason  a cast in pieces
mended  the images are converted when they are read
"""

import sys

import numpy as np

SHAPE = (1080, 1920)


def slow(rounds: int = 12) -> None:
    """NumPy converts each image anew, 8192 pixels at a time."""
    images = [np.full(SHAPE, k, np.uint8) for k in range(8)]
    total = np.zeros(SHAPE, np.float32)
    for _ in range(rounds):
        for image in images:
            total += image


def mended(rounds: int = 12) -> None:
    """All operands have the sum's dtype."""
    images = [np.full(SHAPE, k, np.uint8).astype(np.float32) for k in range(8)]
    total = np.zeros(SHAPE, np.float32)
    for _ in range(rounds):
        for image in images:
            total += image


if __name__ == "__main__":
    (mended if sys.argv[1:] == ["mended"] else slow)()

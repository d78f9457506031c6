"""A stack of images in float32, each corrected by an offset that was computed in float64.

reason  a cast in pieces
mended  the offset is converted once
"""

import sys

import numpy as np

SHAPE = (2160, 3840)


def slow(rounds: int = 8) -> None:
    """NumPy adds in float64: it converts the image and the sum, 8192 pixels at a time."""
    images = [np.ones(SHAPE, np.float32) for _ in range(4)]
    offset = np.full(SHAPE, 0.5)
    for _ in range(rounds):
        for image in images:
            image += offset


def mended(rounds: int = 8) -> None:
    """Image and offset have one dtype."""
    images = [np.ones(SHAPE, np.float32) for _ in range(4)]
    offset = np.full(SHAPE, 0.5).astype(np.float32)
    for _ in range(rounds):
        for image in images:
            image += offset


if __name__ == "__main__":
    (mended if sys.argv[1:] == ["mended"] else slow)()

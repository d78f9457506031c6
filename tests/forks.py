"""A fork of the process that runs the tests."""

import os
import warnings


def fork() -> int:
    """os.fork() without the warnings of Python, of vecadd's threads, and of JAX where another test has imported it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.filterwarnings("ignore", r"os\.fork", RuntimeWarning)
        return os.fork()

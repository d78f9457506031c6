"""vecadd's threads under threadpoolctl, the package that limits the threads of several libraries at once."""

from importlib import import_module
from pathlib import Path
from typing import Any

from vecadd import _core

MOST = 256  # threads of vecadd.set_num_threads


def register() -> None:
    """Makes ``threadpoolctl.threadpool_info()`` and ``threadpool_limits()`` see the threads of vecadd.add.

    Their ``user_api`` is "vecadd". A limit applies to the whole process, as `vecadd.set_num_threads` does, which
    caps larger limits at its maximum. A second call changes nothing.

    Raises ImportError where threadpoolctl is not installed.
    """
    threadpoolctl: Any = import_module("threadpoolctl")
    base: Any = threadpoolctl.LibController
    if any(known.user_api == "vecadd" for known in base.__subclasses__()):
        return

    class Controller(base):  # type: ignore[misc]
        user_api = internal_api = "vecadd"
        # threadpoolctl compares the names of all libraries of the process, in lower case, and then looks for a symbol.
        filename_prefixes = (Path(_core.__file__).resolve().name.lower(),)
        check_symbols = ("PyInit__core",)

        def get_num_threads(self) -> int:
            return _core.get_num_threads()

        def set_num_threads(self, num_threads: int) -> None:
            # A refusal would leave the libraries before this one limited, and those after it not.
            _core.set_num_threads(min(num_threads, MOST))

        def get_version(self) -> str:
            from vecadd._command import package_version

            return package_version()

    threadpoolctl.register(Controller)

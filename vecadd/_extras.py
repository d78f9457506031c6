"""Packages that only some of vecadd's users need: imported when they are used, or named with what installs them."""

from importlib import import_module


def need(extra: str, what: str, *names: str) -> None:
    """Raises ImportError where a package is not installed. It says what needs it, and which extra brings it."""
    missing = []
    for name in names:
        try:
            import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or error.name.partition(".")[0] != name.partition(".")[0]:
                raise  # the package is there, and misses one of its own
            missing.append(name)
    if missing:
        raise ImportError(f"{what} needs {' and '.join(missing)}: pip install 'vecadd[{extra}]'", name=missing[0])

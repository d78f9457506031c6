"""Which vecadd is installed."""


def package_version() -> str:
    """The installed version of vecadd; "unknown" where it was never installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("vecadd")
    except PackageNotFoundError:
        return "unknown"

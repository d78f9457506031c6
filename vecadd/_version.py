"""Which vecadd this is."""

from pathlib import Path

_PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"  # in a source tree alone


def package_version(project: Path = _PROJECT) -> str:
    """vecadd's version: the source tree's where Python runs it from one, else the installed one; "unknown" where
    neither is there."""
    from importlib.metadata import PackageNotFoundError, version

    if project.is_file():
        import tomllib

        about = tomllib.loads(project.read_text(encoding="utf-8")).get("project", {})
        if about.get("name") == "vecadd":
            return str(about["version"])
    try:
        return version("vecadd")
    except PackageNotFoundError:
        return "unknown"

"""What `import vecadd` says where the compiled part of the package is missing."""

from pathlib import Path

PACKAGE = Path(__file__).parent


def advice() -> str:
    """What is missing, where, and what to do about it."""
    missing = f"vecadd's compiled part, vecadd._core, is not in {PACKAGE}"
    if not (PACKAGE.parent / "csrc").is_dir():
        return f"{missing}: this installation is not whole; pip install --force-reinstall --no-deps vecadd"
    return (
        f"{missing}, which is vecadd's source tree and was never built. To use the vecadd that is installed, run "
        f"Python from another folder. To use the source tree: pip install -e {PACKAGE.parent}"
    )

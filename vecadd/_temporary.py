"""A file is called something else until it is whole."""

import secrets
from pathlib import Path


def temporary_name(path: Path) -> Path:
    """A new name in the path's folder. The path's own is cut, because a name has 255 bytes and a character up to 4."""
    return path.with_name(f".{path.name[:48]}.{secrets.token_hex(4)}.tmp")

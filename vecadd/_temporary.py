"""A file is called something else until it is whole."""

import secrets
import shutil
from pathlib import Path


def beside(path: Path) -> Path:
    """A new name in the path's folder. The path's own is cut, because a name has 255 bytes and a character up to 4."""
    return path.with_name(f".{path.name[:48]}.{secrets.token_hex(4)}.tmp")


def replace(path: Path, content: bytes) -> None:
    """Writes the file in one step: a reader finds the old one or the new one. It is closed before it takes the name:
    some file systems report only then that they have not written. Permissions stay."""
    temporary = beside(path)
    try:
        temporary.write_bytes(content)
        if path.exists():
            shutil.copymode(path, temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)

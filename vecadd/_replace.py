"""Writes a file whole or not at all: it is called something else, or nothing, until it is complete.

The kernel tells a disk's error once, to the first call that can report it. So no result of a call is ignored between
the first write and the rename.
"""

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# The errors of file systems without unnamed files, or without a way to reserve space.
_NO_TMPFILE = {errno.EOPNOTSUPP, errno.EISDIR}
_NO_FALLOCATE = {errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL}


def temporary_name(path: Path) -> Path:
    """A new name in the path's folder. The path's own is cut, because a name has 255 bytes and a character up to 4."""
    return path.with_name(f".{path.name[:48]}.{secrets.token_hex(4)}.tmp")


@contextmanager
def replacing(path: Path, size: int = 0, *, sync: bool = False) -> Iterator[int]:
    """A descriptor to write to; what is written becomes the file ``path`` if the block ends without an exception, with
    ``sync`` when it is on the disk. ``size`` is how many bytes it will be, if that is known.

    A link stays a link: what it points to is replaced, and keeps its permissions. The file is closed before it takes
    the name: some file systems (NFS) write, or count a quota, only then. Where they have no files without a name, an
    interrupt may leave the hidden one that is not complete.
    """
    place = Path(os.path.realpath(path))
    temporary = temporary_name(place)
    # A folder that may be written but not listed can be named, and cannot be synced.
    listed = os.access(place.parent, os.R_OK)
    folder = os.open(place.parent, (os.O_RDONLY if listed else os.O_PATH) | os.O_DIRECTORY | os.O_CLOEXEC)
    named = False
    try:
        with naming(path):
            descriptor, named = _create(temporary)
        try:
            with naming(path):
                with suppress(FileNotFoundError):
                    os.fchmod(descriptor, stat.S_IMODE(place.stat().st_mode))
                _reserve(descriptor, size)
            yield descriptor
            with naming(path):
                if sync:
                    os.fsync(descriptor)
                if not named:
                    named = True  # before it is: an interrupt may follow at once
                    # Only with a dst_dir_fd does Python ask for the link in /proc to be followed.
                    os.link(f"/proc/self/fd/{descriptor}", temporary.name, dst_dir_fd=folder, follow_symlinks=True)
        except BaseException:
            with suppress(OSError):  # the first error says more
                os.close(descriptor)
            raise
        with naming(path):
            os.close(descriptor)
            temporary.rename(place)
        named = False
        if sync and listed:
            with naming(place.parent):
                os.fsync(folder)
    finally:
        if named:
            with suppress(OSError):
                temporary.unlink()
        with suppress(OSError):  # no write can fail here
            os.close(folder)


@contextmanager
def naming(path: Path | str) -> Iterator[None]:
    """Errors of the system are said of that path: many calls name none, others a temporary."""
    try:
        yield
    except OSError as error:
        error.filename, error.filename2 = str(path), None
        raise


def write_all(descriptor: int, data: bytes) -> None:
    """Writes the file from its beginning."""
    left, offset = memoryview(data), 0
    while left:
        written = os.pwrite(descriptor, left, offset)
        left, offset = left[written:], offset + written


def _create(temporary: Path) -> tuple[int, bool]:
    """A new file and whether it has its name yet: a file without a name vanishes when its process is killed."""
    flags = os.O_RDWR | os.O_CLOEXEC
    if Path("/proc/self/fd").is_dir():  # the name is given through it
        try:
            return os.open(temporary.parent, flags | os.O_TMPFILE, 0o666), False
        except OSError as error:
            if error.errno not in _NO_TMPFILE:
                raise
    return os.open(temporary, flags | os.O_CREAT | os.O_EXCL, 0o666), True


def _reserve(descriptor: int, size: int) -> None:
    """Reserves the disk space, so that a full disk is found before the work and not after it.

    Without a block device under the file, in memory or on another machine, it only checks the free space: on tmpfs one
    thread would allocate every page, a sixth of the time of the whole addition, and where nothing can be reserved glibc
    would write a byte of each block.
    """
    room = os.fstatvfs(descriptor)
    if room.f_blocks > 0 and room.f_bavail * room.f_frsize < size:
        raise OSError(errno.ENOSPC, f"{os.strerror(errno.ENOSPC)}: the sum takes {size} bytes")
    os.ftruncate(descriptor, size)
    if size == 0 or os.major(os.fstat(descriptor).st_dev) == 0:
        return
    try:
        os.posix_fallocate(descriptor, 0, size)
    except OSError as error:
        if error.errno not in _NO_FALLOCATE:
            raise

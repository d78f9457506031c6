"""Where a sum is written, and how it appears there whole or not at all.

A folder is written beside its target, under a hidden name, and takes its place by one rename; a zip archive is packed
from such a folder and renamed. A store that cannot rename is written in place: its metadata document, without which its
chunks are no array, comes last.
"""

import contextlib
import ctypes
import errno
import fcntl
import json
import os
import re
import secrets
import shutil
import stat
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from zarr.abc.store import Store
from zarr.storage import LocalStore

from vecadd.stores import manifest as record
from vecadd.stores.manifest import Manifest
from vecadd.stores.names import absolute, open_store, read_key, write_key
from vecadd.stores.target import METADATA

_EXCHANGE = 2  # RENAME_EXCHANGE of renameat2
_AT_FDCWD = -100
_PARTIAL = ".partial"  # of our folders, and of Zarr's files that are not renamed yet


class Place(ABC):
    """Where a target is to be. ``begin`` or ``resume`` says under which name its chunks are written meanwhile."""

    renames = True

    @abstractmethod
    def begin(self) -> tuple[str, str | Store]:
        """A new addition's name, and that of the store to write to. What an earlier one left is removed."""

    @abstractmethod
    def resume(self) -> tuple[Manifest, str | Store] | None:
        """The addition that was begun, and where it was written to; None where there is none to go on with."""

    @abstractmethod
    def complete(self, found: Manifest, working: str | Store, *, sync: bool) -> None:
        """Makes the store at ``working``, whose chunks are all there, the target."""

    @abstractmethod
    def abandon(self, working: str | Store) -> None:
        """Removes an addition that has written no chunk."""

    @abstractmethod
    def refuse_more_than_fits(self, size: int) -> None:
        """Raises OSError where so many bytes are known not to fit."""

    @abstractmethod
    def close(self) -> None:
        """Lets others write to the target."""


def place_of(name: str | Store, operands: Sequence[str | Store]) -> Place:
    """The place of a target by its name. Raises an OSError or ValueError where none can be there."""
    if isinstance(name, Store) or "://" in name:
        if name in operands:
            raise ValueError(f"{name} is an operand, and its store cannot rename; name another target")
        return InPlace(name)
    path = Path(name).resolve()  # a link stays a link: what it points to is replaced
    above = next((parent for parent in path.parents if parent.exists()), path)  # "/" has no parents
    if not above.is_dir():
        advice = "; a sum is not written into an archive: name the archive itself" if above.suffix == ".zip" else ""
        raise NotADirectoryError(errno.ENOTDIR, f"is no folder to write {path.name} into{advice}", str(above))
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path.parent))
    return ZipFile(path) if path.suffix == ".zip" else Folder(path)


class Folder(Place):
    """A target that is a local folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: int | None = None
        self._refuse_what_stays()

    def _refuse_what_stays(self) -> None:
        if not self.path.exists():
            return
        if not self.path.is_dir() or not any((self.path / key).is_file() for key in (METADATA, ".zarray")):
            raise ValueError(f"{self.path} exists and is no Zarr array; it is not replaced")
        if (self.path / METADATA).is_file() and not _is_array(self.path / METADATA):
            raise ValueError(f"{self.path} exists and is a Zarr group; it is not replaced: name an array in it")
        if not os.access(self.path, os.W_OK):
            raise PermissionError(errno.EACCES, "exists and is write-protected", str(self.path))
        self._can_exchange()

    def _can_exchange(self) -> None:
        probes = [self.path.with_name(f".{self.path.name}.{secrets.token_hex(4)}.probe") for _ in range(2)]
        try:
            for probe in probes:
                probe.mkdir()
            exchange(*probes)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP):
                raise
            raise ValueError(
                f"{self.path} exists, and its file system cannot exchange two folders at once, so that it would be "
                "missing for a while; remove it, or name another target"
            ) from None
        finally:
            for probe in probes:
                with contextlib.suppress(FileNotFoundError):
                    probe.rmdir()

    def _beside(self, run: str) -> Path:
        return self.path.with_name(f".{self.path.name}.{run}{_PARTIAL}")

    def _left(self) -> Iterator[Path]:
        """What earlier additions left, of which none is under way any more. One that is raises BlockingIOError."""
        # Whole names: ".c.zarr.0123abcd.partial" is of c.zarr, and begins as those of c do.
        ours = re.compile(re.escape(f".{self.path.name}.") + "[0-9a-f]{8}" + re.escape(_PARTIAL))
        for path in sorted(self.path.parent.iterdir()):
            if ours.fullmatch(path.name) and path.is_dir():
                self._hold(path)
                yield path
                self.close()

    def _hold(self, path: Path) -> None:
        """Takes the lock of a working folder; it is the process's, and goes with it."""
        (path / record.FOLDER).mkdir(exist_ok=True)
        self._lock = os.open(path / record.FOLDER / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.close()
            raise BlockingIOError(errno.EAGAIN, "another addition is writing this target", str(self.path)) from None
        except OSError:
            pass  # a file system without locks

    def begin(self) -> tuple[str, str | Store]:
        """Beside the target."""
        for path in self._left():
            shutil.rmtree(path)
        run = secrets.token_hex(4)
        working = self._beside(run)
        working.mkdir()
        if self.path.is_dir():
            working.chmod(stat.S_IMODE(self.path.stat().st_mode))
        self._hold(working)
        return run, str(working)

    def resume(self) -> tuple[Manifest, str | Store] | None:
        """One that has a manifest. Where it is at its place already, it was killed in its last step."""
        if self.path.is_dir() and (self.path / METADATA).is_file() and (done := record.load(LocalStore(self.path))):
            return done, str(self.path)
        found = None
        for path in self._left():
            if there := record.load(LocalStore(path)):
                found = there, path
        if found is None:
            return None
        self._hold(found[1])
        return found[0], str(found[1])

    def complete(self, found: Manifest, working: str | Store, *, sync: bool) -> None:
        """By a rename; where a target is there, by an exchange with it, after which that is removed."""
        folder = Path(str(working))
        beside = self._beside(found.run)
        if folder != self.path:
            _finish(folder, found, sync)
            if self.path.exists():
                exchange(folder, self.path)
            else:
                folder.rename(self.path)
            if sync:
                _sync(self.path.parent)
        if beside.exists():
            shutil.rmtree(beside)
        record.remove(LocalStore(self.path))
        shutil.rmtree(self.path / record.FOLDER, ignore_errors=True)

    def abandon(self, working: str | Store) -> None:
        """Removes the folder beside the target."""
        self.close()
        shutil.rmtree(str(working))

    def refuse_more_than_fits(self, size: int) -> None:
        """By the room that the disk has left."""
        if shutil.disk_usage(self.path.parent).free < size:
            raise OSError(errno.ENOSPC, f"{os.strerror(errno.ENOSPC)}: the sum takes {size} bytes", str(self.path))

    def close(self) -> None:
        """Gives the lock back."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


class ZipFile(Folder):
    """A target that is a zip archive: its chunks lie in a folder beside it until all are there."""

    def _refuse_what_stays(self) -> None:
        if self.path.exists() and not self.path.is_file():
            raise ValueError(f"{self.path} exists and is not a regular file; it is not replaced")
        if self.path.exists() and not os.access(self.path, os.W_OK):
            raise PermissionError(errno.EACCES, "exists and is write-protected", str(self.path))

    def complete(self, found: Manifest, working: str | Store, *, sync: bool) -> None:
        """Packs the folder, without another compression, and renames the archive."""
        folder = Path(str(working))
        _finish(folder, found, sync=False)
        packed = folder / record.FOLDER / "packed.zip"
        with packed.open("wb") as file:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
                for path in sorted(folder.rglob("*")):
                    if path.is_file() and record.FOLDER not in path.relative_to(folder).parts:
                        archive.write(path, path.relative_to(folder))
            if sync:
                file.flush()
                os.fsync(file.fileno())
        if self.path.exists():
            packed.chmod(stat.S_IMODE(self.path.stat().st_mode))
        packed.rename(self.path)
        if sync:
            _sync(self.path.parent)
        self.close()
        shutil.rmtree(folder)


class InPlace(Place):
    """A target in a store without a rename. It has its chunks first, and is an array with its metadata document."""

    renames = False

    def __init__(self, name: str | Store) -> None:
        self.name = name
        self.store, _ = open_store(name, read_only=False)
        self._begun = record.load(self.store)
        if self._begun is None and any(
            read_key(self.store, key) is not None for key in (METADATA, ".zarray", ".zgroup")
        ):
            raise ValueError(
                f"{name} exists, and its store cannot rename: it would be overwritten before the sum is complete; "
                "remove it, or name another target"
            )

    def begin(self) -> tuple[str, str | Store]:
        """Refused where another addition was begun, whose workers may still write."""
        if self._begun is not None:
            raise ValueError(
                f"an addition into {self.name} was begun and is not complete: go on with --resume (resume=True), or "
                "remove what is there, once nothing writes to it any more"
            )
        return secrets.token_hex(4), self.name

    def resume(self) -> tuple[Manifest, str | Store] | None:
        """What was begun in that store."""
        return None if self._begun is None else (self._begun, self.name)

    def complete(self, found: Manifest, working: str | Store, *, sync: bool) -> None:
        """Writes the metadata document."""
        write_key(self.store, METADATA, _document(found))
        record.remove(self.store)

    def abandon(self, working: str | Store) -> None:
        """Removes the manifest."""
        record.remove(self.store)

    def refuse_more_than_fits(self, size: int) -> None:
        """Such a store does not say how much that is."""

    def close(self) -> None:
        """There is no lock."""


def exchange(first: Path, second: Path) -> None:
    """Gives two folders each other's name, both at once."""
    renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    if renameat2(_AT_FDCWD, os.fsencode(first), _AT_FDCWD, os.fsencode(second), _EXCHANGE):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(second))


def sync_chunks(folder: Path, keys: list[str]) -> None:
    """Waits until those files, and the folders that they are in, are on the disk. Chunks of fill values have none."""
    folders: set[Path] = set()
    for key in keys:
        with contextlib.suppress(FileNotFoundError):
            _sync(folder / key)
            folders.update(parent for parent in (folder / key).parents if parent.is_relative_to(folder))
    for parent in folders:
        _sync(parent)


def _finish(folder: Path, found: Manifest, sync: bool) -> None:
    """Writes the metadata document and removes what killed writers left."""
    for path in [path for path in folder.rglob(f"*{_PARTIAL}") if path.is_file()]:
        path.unlink()
    (folder / METADATA).write_bytes(_document(found))
    if sync:
        sync_chunks(folder, [METADATA])


def _is_array(metadata: Path) -> bool:
    try:
        found = json.loads(metadata.read_bytes())
    except (RecursionError, ValueError) as error:
        raise ValueError(
            f"{metadata.parent} exists, and its {METADATA} cannot be read ({error}); it is not replaced: remove it, or "
            "name another target"
        ) from error
    return isinstance(found, dict) and found.get("node_type") == "array"


def _document(found: Manifest) -> bytes:
    return json.dumps(found.described, indent=2).encode()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def stamp(name: str | Store) -> dict[str, Any]:
    """What tells one operand from another of its name: when its metadata, or its archive, was last written."""
    if isinstance(name, Store) or "://" in name:
        return {"name": str(name)}
    path = Path(name)
    documents = [path / METADATA, path / ".zarray", *(p for p in (path, *path.parents) if p.suffix == ".zip")]
    times = [document.stat().st_mtime_ns for document in documents if document.is_file()]
    return {"name": str(absolute(name)), "written": times[0] if times else None}

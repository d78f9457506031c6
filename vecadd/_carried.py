"""What the laboratory shows and is no Python: the notebooks, the results that were recorded, and the rungs' sources.

In a source tree they are in their folders. An installed package carries them in one archive, which setup.py makes of
these folders when it builds the package. It runs this file by its path, before the extension is there, so that this
imports nothing of the package.
"""

import os
import zipfile
from collections.abc import Iterable
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parents[1]  # of the source tree; of site-packages where the package is installed
ARCHIVE = "vecadd/_carried.zip"

NOTEBOOKS, RESULTS = "notebooks", "benchmarks/results"
OTHERS = ("h100",)  # machines with a second kind of GPU: the notebooks speak of one, and the documents have both
SOURCES = (
    "csrc/lab/host/rungs.c",
    "csrc/lab/ladder/*.[ch]",
    "cuda/lab/*.cu*",
    "cuda/add.cu",  # the kernel that the rung `tuned` shares with vecadd.add
)


def notebooks() -> list[Traversable]:
    """The notebooks in their order. Raises FileNotFoundError where the package is without them."""
    return _sorted(_folder(NOTEBOOKS))


def results() -> list[Traversable]:
    """The files of recorded results, a folder a machine: those in the folder that VECADD_RESULTS names, else those that
    come with the package, without OTHERS. Raises FileNotFoundError where there is no such folder."""
    named = os.environ.get("VECADD_RESULTS")
    if named and not Path(named).is_dir():
        raise FileNotFoundError(f"VECADD_RESULTS={named}: there is no such folder; it is one with MACHINE/*.json in it")
    folders = [folder for folder in _sorted(Path(named) if named else _folder(RESULTS)) if folder.is_dir()]
    machines = [folder for folder in folders if named or folder.name not in OTHERS]
    return [file for machine in machines for file in _sorted(machine) if file.name.endswith(".json")]


def sources() -> dict[str, str]:
    """The text of each source of a rung, by its path in the source tree. Raises FileNotFoundError where the package is
    without them."""
    archive = ROOT / ARCHIVE
    if not archive.is_file():
        found = {
            path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in _matching(ROOT, SOURCES)
        }
    else:
        with zipfile.ZipFile(archive) as packed:
            names = (name for name in packed.namelist() if name.startswith(("csrc/", "cuda/")))
            found = {name: packed.read(name).decode() for name in names}
    return found or _not_whole(archive, ROOT / "csrc")


def write_archive(path: Path, root: Path = ROOT) -> None:
    """Packs what an installed package carries: the same bytes for the same files."""
    swept = (
        file
        for file in _matching(root, [f"{RESULTS}/*/*.json"])
        if file.parent.name not in OTHERS and not file.name.startswith("peer-")
    )
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted((*swept, *_matching(root, [f"{NOTEBOOKS}/*.ipynb", *SOURCES]))):
            # A ZipInfo without a time: a file's own would differ from checkout to checkout.
            entry = zipfile.ZipInfo(file.relative_to(root).as_posix())
            archive.writestr(entry, file.read_bytes(), zipfile.ZIP_DEFLATED, 9)


def _folder(name: str) -> Traversable:
    archive = ROOT / ARCHIVE
    folder: Traversable = zipfile.Path(archive, f"{name}/") if archive.is_file() else ROOT / name
    return folder if folder.is_dir() else _not_whole(archive, ROOT / name)


def _not_whole(*missing: Path) -> NoReturn:
    raise FileNotFoundError(
        f"neither {' nor '.join(map(str, missing))} is there: this installation is not whole; "
        "pip install --force-reinstall --no-deps vecadd"
    )


def _matching(root: Path, patterns: Iterable[str]) -> list[Path]:
    return sorted(path for pattern in patterns for path in root.glob(pattern))


def _sorted(folder: Traversable) -> list[Traversable]:
    return sorted(folder.iterdir(), key=lambda entry: entry.name)

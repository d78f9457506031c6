"""What the notebooks need and is no Python: the notebooks themselves, and the results that were recorded.

In a source tree they lie in their folders. An installed package carries them in one archive, which setup.py makes of
these folders when it builds the package. It runs this file by its path, before the extension is there, so that this
imports nothing of the package.
"""

import os
import zipfile
from importlib.resources.abc import Traversable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]  # of the source tree; of site-packages where the package is installed
ARCHIVE = "vecadd/_carried.zip"

NOTEBOOKS, RESULTS = "notebooks", "benchmarks/results"


def notebooks() -> list[Traversable]:
    """The notebooks in their order. Raises FileNotFoundError where the package is without them."""
    return _sorted(_folder(NOTEBOOKS))


def results() -> list[Traversable]:
    """The files of recorded results, a folder a machine: those in the folder that VECADD_RESULTS names, else those that
    come with the package. Raises FileNotFoundError where there is no such folder."""
    named = os.environ.get("VECADD_RESULTS")
    if named and not Path(named).is_dir():
        raise FileNotFoundError(f"VECADD_RESULTS={named}: there is no such folder; it is one with MACHINE/*.json in it")
    machines = _sorted(Path(named) if named else _folder(RESULTS))
    return [
        file for machine in machines if machine.is_dir() for file in _sorted(machine) if file.name.endswith(".json")
    ]


def write_archive(path: Path, root: Path = ROOT) -> None:
    """Packs what an installed package carries: the same bytes for the same files."""
    swept = (file for file in root.glob(f"{RESULTS}/*/*.json") if not file.name.startswith("peer-"))
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted((*root.glob(f"{NOTEBOOKS}/*.ipynb"), *swept)):
            # A ZipInfo without a time: a file's own would differ from checkout to checkout.
            entry = zipfile.ZipInfo(file.relative_to(root).as_posix())
            archive.writestr(entry, file.read_bytes(), zipfile.ZIP_DEFLATED, 9)


def _folder(name: str) -> Traversable:
    archive = ROOT / ARCHIVE
    folder: Traversable = zipfile.Path(archive, f"{name}/") if archive.is_file() else ROOT / name
    if not folder.is_dir():
        raise FileNotFoundError(
            f"neither {archive} nor {ROOT / name} is there: this installation is not whole; "
            "pip install --force-reinstall --no-deps vecadd"
        )
    return folder


def _sorted(folder: Traversable) -> list[Traversable]:
    return sorted(folder.iterdir(), key=lambda entry: entry.name)

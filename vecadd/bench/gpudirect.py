"""GPUDirect: copies between a GPU and a disk or a network card that bypass the host's memory, and what they need.

Document 004 names both and measures neither. vecadd has no rung for them, because no operand of an addition comes from
there; the rows "gpudirect_storage" and "gpudirect_rdma" say in words what a machine lacks for them. They appear only
when asked for by name, and have no seconds::

    for name in gpudirect.ROWS:
        text = gpudirect.describe(name)  # one line for the table
"""

import ctypes.util
from collections.abc import Callable, Mapping
from pathlib import Path

_LIBRARY_FOLDERS = (
    "usr/local/cuda*/lib64",
    "usr/local/cuda*/targets/*/lib",
    "usr/lib/*-linux-gnu",
    "usr/lib64",
)


def missing_for_storage(root: Path = Path("/")) -> list[str]:
    """What the machine lacks for GPUDirect Storage, a phrase each; [] where nothing is missing.

    ``root`` is where its file system begins. Nothing is loaded and no CUDA call is made.
    """
    missing = _missing_driver(root)
    if not (root / "sys/module/nvidia_fs").is_dir():
        missing.append("the kernel module nvidia_fs is not loaded (package nvidia-fs-dkms)")
    if not _has_cufile(root):
        missing.append("the library cuFile is not installed (libcufile.so, package libcufile)")
    if not any((root / "sys/class/nvme").glob("nvme*")):
        missing.append("there is no NVMe disk")
    return missing


def missing_for_rdma(root: Path = Path("/")) -> list[str]:
    """What the machine lacks for GPUDirect RDMA, a phrase each; [] where nothing is missing. ``root`` is where its file
    system begins."""
    missing = _missing_driver(root)
    if not any((root / "sys/class/infiniband").glob("*")):
        missing.append("there is no RDMA network card (/sys/class/infiniband is empty)")
    if not any((root / "sys/module" / name).is_dir() for name in ("nvidia_peermem", "nv_peer_mem")):
        missing.append("the kernel module nvidia_peermem is not loaded (modprobe nvidia-peermem)")
    return missing


ROWS: Mapping[str, Callable[[Path], list[str]]] = {
    "gpudirect_storage": missing_for_storage,
    "gpudirect_rdma": missing_for_rdma,
}


def describe(name: str, root: Path = Path("/")) -> str:
    """One line: what the machine lacks for that row of ROWS, or that nothing is missing. Raises KeyError for another
    name."""
    missing = ROWS[name](root)
    if missing:
        return f"not measured: {'; '.join(missing)}"
    return "not measured: the machine has what it needs, and an addition of host arrays does not use it"


def _missing_driver(root: Path) -> list[str]:
    return [] if (root / "proc/driver/nvidia/version").is_file() else ["there is no NVIDIA driver"]


def _has_cufile(root: Path) -> bool:
    if root == Path("/") and ctypes.util.find_library("cufile"):
        return True
    return any(any(root.glob(f"{folder}/libcufile.so*")) for folder in _LIBRARY_FOLDERS)

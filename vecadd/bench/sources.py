"""Which sources a recording depends on, and digests that say whether they have changed since it was made.

Each sweep of the bench, the profile, each stage of the peers and the other programs of `benchmarks` have a set in SETS:
what is timed, and the Python that times it. The long runs of sums that are checked and not timed have one too: what
adds, and what checks it. A file outside of the set, such as a plot, a table's layout or the command line, leaves the
recording as good as it was. Whole folders stand in the sets where most of a folder counts: a file that moves within one
needs no change here.

A wheel has no C sources to make digests of: it carries what `built_from` said when it was built. setup.py runs this
file by its path, before the extension is there, so that it imports nothing of the package.
"""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]  # of the source tree; of site-packages where the package is installed
BUILT_FROM = "vecadd/_built_from.json"

KINDS = {".c", ".h", ".cu", ".cuh", ".py", ".pyi"}  # by the end of their names, the files of a folder that count

BENCH, STAGES = "vecadd/bench", "benchmarks/peers"

# What is compiled for the host alone, for arrays on a GPU alone, and for those that pass from the one to the other.
CALLS = (
    *("csrc/base", "csrc/choose", "csrc/py/base", "build_native/flags.py"),
    *(f"csrc/py/calls/{name}*" for name in ("[!bdpr]", "prepare", "refusals", "route")),
)
RESULTS = "csrc/py/calls/result.[ch]"  # sums without an out
PLANS = "csrc/py/calls/plan_*"
LISTS = ("csrc/py/calls/batch.[ch]", "csrc/py/calls/batch_[!o]*")  # of add_many, but for pairs that add has to make
READERS = (
    "csrc/py/operands/[!cdht]*",
    "csrc/py/operands/de*",
)  # of what is neither LENT nor host arrays alone
# Other libraries' operands: by their attributes or DLPack, and kept until the GPU is done with them.
LENT = ("csrc/py/operands/[ct]*", "csrc/py/operands/dl*", "csrc/py/calls/deferred_release.[ch]")
ADDITIONS = "csrc/host/[!ho]*"  # but for huge_region, huge_pages and output_pool, the memory of sums without an out
HOST = (ADDITIONS, "csrc/lab/base", "csrc/lab/host", *READERS, "csrc/py/operands/h*", *CALLS)
NEW_SUMS = (*HOST, "csrc/host", RESULTS)  # where additions have no out, or may have none
LAB = tuple(f"csrc/lab/{name}" for name in ("base", "ladder", "limits", "rungs.c"))
DEVICE = ("cuda", "csrc/gpu", "csrc/transfer", *LAB, *(f"csrc/py/{name}" for name in ("array", "lab", "module.c")))
DEVICE += (*READERS, *CALLS)
BOTH = (*DEVICE, *HOST)

# The Python that times every contestant, fills and checks its operands, and probes its limits.
CLOCK = tuple(f"{BENCH}/{name}.py" for name in ("timing", "rows", "buffers", "contestants", "limits", "sweeps/sweep"))
KERNELS = (*DEVICE, *CLOCK, f"{BENCH}/ladder.py")
MATRICES = (*DEVICE, *CLOCK, f"{BENCH}/matrices.py", "vecadd/model/matrix_shapes.py")

PEERS = (*CLOCK, f"{STAGES}/clocks.py", f"{STAGES}/libraries.py")
# PyTorch's and CuPy's arrays on a GPU pass through vecadd.interop.
FOREIGN = tuple(f"vecadd/interop/{name}.py" for name in ("__init__", "library", "cupy", "torch"))
TENSORS = tuple(
    f"{STAGES}/{name}"
    for name in ("tensors.py", "device_peers.py", "events.py", "jax_peer.py", "triton_add.py", "*.cu")
)
DEVICE_PEERS = (*DEVICE, RESULTS, *LENT, *PEERS, *FOREIGN, *TENSORS)

# Where a program of its own takes medians and intervals.
ROUNDS = tuple(f"{BENCH}/{name}.py" for name in ("limits", "buffers", "timing", "contestants"))

# What notes a program's additions and rehearses them.
RECEIPTS = (
    *(*NEW_SUMS, "csrc/py/install", "csrc/py/receipt", "vecadd/_install.py", "vecadd/why"),
    *(*ROUNDS, "benchmarks/why.py"),
)

# What adds, wherever the operands are: all that is compiled, and how. The proof's sums all have an out.
ADDS = ("csrc", "cuda", "build_native")
INTO_OUT = (*BOTH, "csrc/host", "csrc/lab", "csrc/py/calls/b*", "build_native")
# The tests that take seeds of orders.
ORDERED = (
    *(f"tests/device/test_{name}.py" for name in ("add_many_device", "orders", "stream_order", "streams", "two_gpus")),
    *(f"tests/interop/test_{name}.py" for name in ("dlpack", "exchange_offered")),
)

# The sweeps are files of a folder; one that is not named below times kernels.
SWEEPS = sorted(path.stem for path in (ROOT / BENCH / "sweeps").glob("*.py") if path.stem not in ("__init__", "sweep"))

SETS: dict[str, tuple[str, ...]] = {
    **{sweep: (*KERNELS, f"{BENCH}/sweeps/{sweep}.py") for sweep in SWEEPS},
    "host": (*HOST, *CLOCK, f"{BENCH}/sweeps/host.py"),
    "transfer": (
        *BOTH,
        *CLOCK,
        *(f"{BENCH}/{name}.py" for name in ("sweeps/transfer", "transfers", "steps", "cold*")),
    ),
    "latency": (*DEVICE, *CLOCK, f"{BENCH}/sweeps/latency.py", f"{BENCH}/latencies.py"),
    "documents": (*KERNELS, *MATRICES, *(f"{BENCH}/{name}.py" for name in ("sweeps/documents", "steps"))),
    "transpose": (*MATRICES, f"{BENCH}/sweeps/transpose.py"),
    "sgemm": (*MATRICES, *(f"{BENCH}/{name}.py" for name in ("sweeps/sgemm", "cublas"))),
    "profile": (
        *DEVICE,
        *(f"{BENCH}/{name}.py" for name in ("buffers", "steps")),
        *(f"vecadd/profile/{name}.py" for name in ("child", "spec", "tools")),
    ),
    "peer-device": (*DEVICE_PEERS, f"{STAGES}/device_stage.py"),
    "peer-queued": (*DEVICE_PEERS, f"{STAGES}/queued_stage.py", f"{STAGES}/device_stage.py"),  # the latter's sets
    "peer-misaligned": (*DEVICE_PEERS, f"{STAGES}/misaligned_stage.py"),
    "peer-layouts": (*DEVICE_PEERS, f"{STAGES}/layouts_stage.py"),
    "peer-scaling": (*DEVICE_PEERS, f"{STAGES}/scaling_stage.py"),
    "peer-overhead": (*DEVICE_PEERS, PLANS, *LISTS, f"{STAGES}/overhead_stage.py"),
    "peer-many": (*DEVICE_PEERS, PLANS, *LISTS, ADDITIONS, f"{STAGES}/many_stage.py"),
    "peer-l2-pollution": (*DEVICE, *PEERS, f"{STAGES}/l2_pollution_stage.py"),
    "peer-transfer": (*BOTH, *PEERS, f"{STAGES}/transfer_stage.py"),
    "peer-end-to-end": (*BOTH, *NEW_SUMS, *PEERS, f"{STAGES}/end_to_end_stage.py"),
    "peer-files": (
        *(*HOST, "csrc/files", "csrc/py/files", *PEERS, f"{STAGES}/files_stage.py"),
        *(f"vecadd/{name}.py" for name in ("files", "_sum", "_npy_input", "_temporary", "_uninterrupted")),
    ),
    "peer-host": (*NEW_SUMS, *PEERS, f"{STAGES}/host_stage.py"),
    "peer-installed": (
        *(*HOST, *PEERS, f"{STAGES}/installed_stage.py", f"{STAGES}/host_stage.py"),  # the latter's clocks
        *("csrc/py/install", "vecadd/_install.py"),
    ),
    "stores": (
        *(*HOST, "vecadd/stores", "benchmarks/stores.py"),
        *(f"vecadd/{name}.py" for name in ("_dask_threads", "_sum", "_uninterrupted")),
    ),
    "tuned-host": (
        *(*NEW_SUMS, *ROUNDS),
        *("vecadd/tune/host.py", "vecadd/tune/part.py", "benchmarks/tuned_host.py"),
    ),
    "why-programs": (*RECEIPTS, "examples/why"),
    "why-costs": RECEIPTS,
    "proof": (*INTO_OUT, "benchmarks/proof"),
    "fuzz": (*ADDS, *(f"tests/{name}.py" for name in ("fuzz_*", "arrays"))),
    "stream-orders": (*ADDS, "tests/double", *ORDERED, *(f"tests/{name}.py" for name in ("orders", "stream_orders"))),
}

# Everything that is compiled or run: which tree a run was of, whatever it timed.
EVERYTHING = ("csrc", "cuda", "vecadd", "build_native", "pyproject.toml", "setup.py", "build_backend.py")


def digest(sweep: str, root: Path = ROOT) -> str | None:
    """The digest of all that the recording depends on; None for a sweep without a set, or without sources."""
    if not _is_tree(root):
        carried: dict[str, str] = _carried(root).get("sources", {})
        return carried.get(sweep)
    return _digest(files(SETS[sweep], root), root) if sweep in SETS else None


def revision(root: Path = ROOT) -> str | None:
    """The digest of everything that is compiled or run; None where the sources are unknown."""
    return _digest(files(EVERYTHING, root), root) if _is_tree(root) else _carried(root).get("revision")


def built_from(root: Path = ROOT) -> str:
    """The digests that an installed package carries of the tree that it was built from, as JSON."""
    return json.dumps({"revision": revision(root), "sources": {sweep: digest(sweep, root) for sweep in SETS}}, indent=1)


def files(entries: Iterable[str], root: Path = ROOT) -> list[Path]:
    """The files of a set: files that its globs name, and files of KINDS in the folders that its globs name."""
    found = [path for entry in entries for path in root.glob(entry)]
    within = [path for folder in found if folder.is_dir() for path in folder.rglob("*") if path.suffix in KINDS]
    return sorted({path for path in (*found, *within) if path.is_file()})


def _digest(paths: Iterable[Path], root: Path) -> str:
    state = hashlib.sha256()
    for path in paths:
        content = path.read_bytes()
        state.update(f"{path.relative_to(root)} {len(content)}\n".encode() + content)
    return state.hexdigest()[:12]


def _is_tree(root: Path) -> bool:
    return (root / "csrc").is_dir()


def _carried(root: Path) -> dict[str, Any]:
    path = root / BUILT_FROM
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else {}

"""What this machine and this build have, or why something is missing: all of vecadd.info(), and `vecadd info`."""

import argparse
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from vecadd import _core
from vecadd._command import epilog, package_version, writable
from vecadd._explain import tuned_words
from vecadd.tables import Pair, ShownAsPairs, show_bytes

# The environment variables that vecadd reads, and what each is set to.


@dataclass(frozen=True)
class Variable:
    """A variable of the environment. ``value`` is None where it is not set. ``str()`` of it is a line."""

    name: str
    meaning: str
    value: str | None = None

    def __str__(self) -> str:
        return f"{self.name} {'(not set)' if self.value is None else f'= {self.value}'}: {self.meaning}"


# docs/install.md has the same lines, and those that the build reads.
RUNNING = (
    Variable("VECADD_NUM_THREADS", "threads of an addition on the host, 1 to 256; else all processors it may use"),
    Variable(
        "VECADD_WAKE_BYTES",
        "bytes of a sum on the host from which sleeping threads are woken; else 512 KiB, or 2 MiB with two or three",
    ),
    Variable("VECADD_SIMD", "the instruction set on the host; else the best of those that `vecadd info` lists"),
    Variable(
        "VECADD_CACHE_DIR", "the folder of `vecadd tune`'s files; else `$XDG_CACHE_HOME/vecadd`, else `~/.cache/vecadd`"
    ),
    Variable(
        "VECADD_POOL_BYTES",
        "bytes kept at most for sums on the host, 0: none; else an eighth of memory, or nothing under `ulimit -v`",
    ),
    Variable("VECADD_RESULTS", "the folder of recorded results that the notebooks show; else those of the package"),
    Variable("VECADD_RECORDED", "with 1 the notebooks show what is recorded and measure nothing"),
)


def read_settings() -> tuple[Variable, ...]:
    """What is read when vecadd runs, with the values of now."""
    return tuple(Variable(known.name, known.meaning, os.environ.get(known.name)) for known in RUNNING)


# Child processes, and the programs of CUDA's toolkit.


def python_command(*words: str) -> list[str]:
    """The command of this Python. -P: a file called numpy.py in the current folder must not break the child."""
    return [sys.executable, "-P", *words]


def environment_of_child() -> dict[str, str]:
    """The environment of a Python process that imports this vecadd: this process's own. What PYTHONPATH names already
    comes first."""
    paths = (os.environ.get("PYTHONPATH"), str(Path(__file__).resolve().parents[1]))
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


def run_child(command: list[str], timeout: float) -> "subprocess.CompletedProcess[str]":
    """What the command, whose Python imports this vecadd, said; raises what `subprocess.run` raises."""
    return subprocess.run(
        command,
        env=environment_of_child(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=timeout,
    )


def nvidia_packages() -> list[Path]:
    """The folders of NVIDIA's packages, one for each folder that Python imports from."""
    return [Path(folder, "nvidia") for folder in sys.path if folder]


def find_cuda_tool(name: str) -> str | None:
    """A program of CUDA's: in CUDA_HOME or CUDA_PATH, on PATH, where CUDA is usually installed, or in NVIDIA's packages
    of this Python."""
    homes = (os.environ.get(variable) for variable in ("CUDA_HOME", "CUDA_PATH"))
    folders = [*(f"{home}/bin" for home in homes if home), os.environ.get("PATH", ""), "/usr/local/cuda/bin"]
    folders += [str(path) for folder in nvidia_packages() for path in folder.glob("*/bin")]
    return shutil.which(name, path=os.pathsep.join(folders))


# What nvidia-smi knows and the CUDA runtime does not say: link, ECC, throttling, other processes.
#
# The tool may be absent, old, or slow on a broken driver; the answer is then empty, never an exception.

_ANY = re.compile(".*")
_FORMS = {"index": re.compile("[0-9]+"), "pci.bus_id": re.compile("[0-9A-Fa-f]+(:[0-9A-Fa-f]+){2}[.][0-7]")}

SMI_TIMEOUT = 10.0  # seconds; a healthy driver answers in 0.1 to 2, the latter without persistence mode


def query_nvidia_smi(what: str, *fields: str) -> list[dict[str, str]]:
    """Rows of ``nvidia-smi --query-<what>=<fields>``, one dict a row; [] where they cannot be had.

    Fields that the driver does not support ("[N/A]", "[Not Supported]"), and a malformed index or PCI address, are left
    out of their row.
    """
    said = ask_nvidia_smi(f"--query-{what}={','.join(fields)}", "--format=csv,noheader,nounits")
    return [_row(line, fields) for line in said.splitlines() if line.count(",") == len(fields) - 1]


def ask_nvidia_smi(*words: str) -> str:
    """What nvidia-smi prints; nothing where it cannot be asked."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return ""
    try:
        return subprocess.run(
            [tool, *words], capture_output=True, text=True, errors="replace", timeout=SMI_TIMEOUT, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return ""


def _row(line: str, fields: tuple[str, ...]) -> dict[str, str]:
    values = (value.strip() for value in line.split(","))
    return {
        field: value
        for field, value in zip(fields, values, strict=True)
        if value and not value.startswith("[") and value != "N/A" and _FORMS.get(field, _ANY).fullmatch(value)
    }


# What the operating system says of this host: processor and memory.


def cpu_model() -> str | None:
    """The processor's name; None where the system does not give one (most AArch64 kernels)."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    named = (line.partition(":") for line in lines)
    return next((value.strip() for name, _, value in named if name.strip() == "model name"), None)


def memory_total() -> int:
    """Bytes of memory that this process may use: the machine's, or its control group's limit if that is lower."""
    usable, _ = _core.host_memory()
    return usable


def memory_available() -> int:
    """Bytes that can be allocated now without swapping."""
    _, available = _core.host_memory()
    return available


# The machine

PROBE_TIMEOUT = 30.0  # seconds; CUDA takes 0.2 on one GPU, several on eight without persistence mode

_GIGATRANSFERS = {"2.5": 1, "5.0": 2, "8.0": 3, "16.0": 4, "32.0": 5, "64.0": 6}  # of PCIe, by generation

_PCI_DEVICES = Path("/sys/bus/pci/devices")

_SMI_FIELDS = (
    "pci.bus_id",
    "driver_version",
    "ecc.mode.current",
    "pcie.link.gen.current",
    "pcie.link.width.current",
    "pcie.link.gen.max",
    "pcie.link.width.max",
)

_LINK = ("link_generation", "link_width", "link_generation_max", "link_width_max")  # in nvidia-smi's order


@dataclass(frozen=True)
class Gpu:
    """One GPU. ``None`` means that the machine does not say."""

    index: int
    name: str
    compute_capability: str
    multiprocessors: int
    clock: float | None  #: highest of the multiprocessors, Hz
    threads_per_multiprocessor: int
    blocks_per_multiprocessor: int
    registers_per_multiprocessor: int
    shared_per_multiprocessor: int  #: bytes
    shared_reserved: int  #: bytes that each block takes beside its own
    memory: int  #: bytes
    l2: int  #: bytes
    bandwidth: float | None  #: of its memory in theory, bytes a second
    ecc: bool | None
    link_generation: int | None  #: PCIe, now; an idle GPU may show less than its maximum
    link_width: int | None
    link_generation_max: int | None
    link_width_max: int | None


@dataclass(frozen=True)
class Cpu:
    """The host. Sizes in bytes."""

    model: str | None
    threads: int  #: that an addition may use
    simd: str | None  #: the level in use; None where VECADD_SIMD names one that is not there
    simd_levels: tuple[str, ...]
    l1: int | None
    l2: int | None
    l3: int | None
    memory: int


@dataclass(frozen=True)
class Info(ShownAsPairs):
    """What ``vecadd.info()`` found. ``str()`` of it is for a terminal, a notebook shows a table."""

    version: str
    cpu: Cpu
    gpus: tuple[Gpu, ...]
    gpu_status: str  #: "ok", "built without CUDA", "no driver", "driver too old", "no GPU", "unusable" or "unknown"
    gpu_reason: str | None  #: a sentence, where the status is not "ok"
    cuda_driver: str | None  #: the CUDA version that the driver supports, "13.0"
    cuda_runtime: str | None  #: the one that this build carries
    driver: str | None  #: the driver's own version, "580.95.05"
    tuned: tuple[str, ...]  #: of each GPU whether `vecadd tune device` has found its launch configs
    environment: tuple[Variable, ...]  #: that vecadd reads when it runs

    def as_dict(self) -> dict[str, Any]:
        """This object as plain dicts, lists, numbers and strings."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return plain

    def _rows(self) -> list[Pair]:
        cpu = self.cpu
        gpus = [(f"GPU {gpu.index}", _gpu_lines(gpu)) for gpu in self.gpus]
        driver = f"driver {self.cuda_driver or 'none'}" + (f" ({self.driver})" if self.driver else "")
        return [
            ("vecadd", [self.version]),
            *(gpus or [("GPU", [f"{self.gpu_status}: {self.gpu_reason}"])]),
            ("CUDA", [f"{driver}, runtime {self.cuda_runtime or 'none'}"]),
            ("CPU", [cpu.model or "unknown"]),
            ("SIMD", [f"{cpu.simd or 'unknown'} (of {', '.join(cpu.simd_levels)})"]),
            ("threads", [str(cpu.threads)]),
            ("caches", [", ".join(f"L{i} {show_bytes(x)}" for i, x in enumerate((cpu.l1, cpu.l2, cpu.l3), 1))]),
            ("memory", [show_bytes(cpu.memory)]),
            *([("tuned", self.tuned)] if self.tuned else []),
            ("environment", [str(variable) for variable in self.environment]),
        ]

    __repr__ = ShownAsPairs.__str__


def look() -> Info:
    """See vecadd.info()."""
    found = _ask_child() if _core.CUDA_BUILD else {}
    smi = {_pci(row["pci.bus_id"]): row for row in query_nvidia_smi("gpu", *_SMI_FIELDS) if "pci.bus_id" in row}
    status, reason = _gpu_status(found)
    return Info(
        version=package_version(),
        cpu=_cpu(),
        gpus=tuple(_gpu(index, facts, smi) for index, facts in enumerate(found.get("gpus", []))),
        gpu_status=status,
        gpu_reason=reason,
        cuda_driver=cuda_version(found.get("driver", 0)),
        cuda_runtime=cuda_version(found.get("runtime", _core.CUDA_RUNTIME_VERSION)),
        driver=next((row["driver_version"] for row in smi.values() if "driver_version" in row), None),
        tuned=tuple(f"GPU {index}: {tuned_words(facts['key'])}" for index, facts in enumerate(found.get("gpus", []))),
        environment=read_settings(),
    )


def cuda_version(number: int) -> str | None:
    """13000 as "13.0"; None for 0."""
    return f"{number // 1000}.{number % 1000 // 10}" if number else None


def _ask_child() -> dict[str, Any]:
    """What vecadd._machine prints; {"failed": why} where it prints nothing usable."""
    if not sys.executable:
        return {"failed": "there is no interpreter to ask it from (sys.executable is empty)"}
    try:
        # -W: the child's warnings are dropped.
        result = run_child(python_command("-W", "ignore", "-m", "vecadd._machine"), PROBE_TIMEOUT)
    except subprocess.TimeoutExpired:
        return {"failed": f"the driver did not answer within {PROBE_TIMEOUT:g} s"}
    except OSError as error:
        return {"failed": f"no process to ask it from could be started: {error}"}
    if result.returncode < 0:
        return {"failed": f"the process that asked it was killed by signal {-result.returncode}"}
    try:
        found = json.loads(result.stdout)
    except ValueError:
        last = result.stderr.strip().rpartition("\n")[2]
        return {"failed": f"the process that asked it failed: {last or f'exit status {result.returncode}'}"}
    assert isinstance(found, dict)
    return found


def _gpu_status(found: dict[str, Any]) -> tuple[str, str | None]:
    if not _core.CUDA_BUILD:
        advice = "run pip install --force-reinstall --no-deps . in its sources without that variable"
        return "built without CUDA", f"this build has no GPU code (VECADD_CUDA=0); to get it, {advice}"
    if "failed" in found:
        return "unknown", found["failed"]
    if found["gpus"]:
        return "ok", None
    driver, runtime = cuda_version(found["driver"]), cuda_version(found["runtime"])
    if driver is None:
        return "no driver", "no NVIDIA driver is installed here"
    if found["driver"] < found["runtime"] and found["error"]:
        return "driver too old", f"the driver supports CUDA {driver}; this build needs {runtime}"
    if "no GPU" in (found["error"] or "no GPU"):
        return "no GPU", "the driver sees no GPU"
    return "unusable", found["error"]


def _gpu(index: int, facts: dict[str, Any], smi: dict[tuple[int, int, int], dict[str, str]]) -> Gpu:
    address = (facts["pci_domain"], facts["pci_bus"], facts["pci_device"])
    said = smi.get(address, {})
    ecc = said.get("ecc.mode.current")
    found: dict[str, Any] = {
        "index": index,
        "compute_capability": f"{facts['cc_major']}.{facts['cc_minor']}",
        "clock": 1e3 * facts["clock_khz"] or None,
        # Two transfers a clock; a driver that hides the clock gives 0.
        "bandwidth": 2e3 * facts["memory_clock_khz"] * facts["memory_bus_bits"] / 8 or None,
        "ecc": None if ecc is None else ecc == "Enabled",
        **(_link_of_smi(said) or _link_of_sysfs(address)),
    }
    return Gpu(**{field.name: facts[field.name] for field in fields(Gpu) if field.name not in found}, **found)


def _pci(bus_id: str) -> tuple[int, int, int]:
    """ "00000000:1B:00.0" as (domain, bus, device)."""
    domain, bus, device = bus_id.partition(".")[0].split(":")
    return int(domain, 16), int(bus, 16), int(device, 16)


def _link_of_smi(said: dict[str, str]) -> dict[str, int | None]:
    """The link's fields of a `Gpu`; none where nvidia-smi says nothing of it."""
    names = [field for field in _SMI_FIELDS if field.startswith("pcie.")]
    if not any(name in said for name in names):
        return {}
    return dict(zip(_LINK, (_number(said.get(name, "")) for name in names), strict=True))


def _link_of_sysfs(address: tuple[int, int, int]) -> dict[str, int | None]:
    folder = _PCI_DEVICES / "{:04x}:{:02x}:{:02x}.0".format(*address)

    def read(name: str) -> str:
        try:
            return (folder / name).read_text(encoding="utf-8").split()[0]
        except (OSError, IndexError):
            return ""

    speeds = (_GIGATRANSFERS.get(read(f"{which}_link_speed")) for which in ("current", "max"))
    widths = (_number(read(f"{which}_link_width")) for which in ("current", "max"))
    return dict(zip(_LINK, itertools.chain(*zip(speeds, widths, strict=True)), strict=True))


def _number(text: str) -> int | None:
    return int(text) if text.isdigit() else None


def _cpu() -> Cpu:
    facts = _core.host_facts()
    return Cpu(
        model=cpu_model(),
        threads=facts["threads"],
        simd=facts["simd"],
        simd_levels=tuple(facts["simd_levels"]),
        l1=facts["l1"] or None,
        l2=facts["l2"] or None,
        l3=facts["l3"] or None,
        memory=memory_total(),
    )


def _gpu_lines(gpu: Gpu) -> list[str]:
    bandwidth = "unknown" if gpu.bandwidth is None else f"{gpu.bandwidth / 1e9:.0f} GB/s"
    ecc = {None: "unknown", True: "on", False: "off"}[gpu.ecc]
    return [
        f"{gpu.name}, compute capability {gpu.compute_capability}, {gpu.multiprocessors} SMs",
        f"memory {show_bytes(gpu.memory)}, {bandwidth} in theory, ECC {ecc}, L2 {show_bytes(gpu.l2)}",
        f"{_link(gpu.link_generation, gpu.link_width)} now, "
        f"{_link(gpu.link_generation_max, gpu.link_width_max)} at most",
    ]


def _link(generation: int | None, width: int | None) -> str:
    return f"PCIe {'unknown' if generation is None else generation} x{'unknown' if width is None else width}"


# `vecadd info`.


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `vecadd info`."""
    parser.add_argument("--json", action="store_true", help="print JSON, sizes in bytes")
    parser.epilog = epilog({"vecadd info --json | jq .gpus": "what a script needs to know of the GPUs"})


def run(arguments: argparse.Namespace) -> int:
    """Prints it."""
    found = look()
    print(json.dumps(found.as_dict(), indent=1) if arguments.json else writable(str(found), sys.stdout))
    return 0


# Run as ``python -m vecadd._machine``: prints what CUDA says of this machine as one line of JSON.
#
# It is a process of its own because asking initialises CUDA, which ``vecadd.info()`` must not do in its caller: that
# costs 0.2 s and device memory, and makes CUDA unusable in the children that the caller forks.


def ask_cuda() -> dict[str, object]:
    """CUDA's versions, facts of every GPU, and the error where there is no GPU."""
    driver, runtime = _core.cuda_versions()
    found: dict[str, object] = {"driver": driver, "runtime": runtime, "gpus": [], "error": None}
    if _core.CUDA_BUILD:
        try:
            found["gpus"] = _core.gpu_facts()
        except (RuntimeError, ValueError, MemoryError) as error:
            found["error"] = str(error)
    return found


if __name__ == "__main__":
    print(json.dumps(ask_cuda()))

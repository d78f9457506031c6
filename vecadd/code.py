"""The code of the ladder's rungs, to be read: vecadd.ladder's source, sass and diff."""

import json
import lzma
import os
import re
import subprocess
import sys
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from difflib import unified_diff
from functools import cache
from html import escape
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import vecadd
from vecadd import _carried, _core
from vecadd._machine import find_cuda_tool
from vecadd.info import info

# A str that a notebook shows in colours.

# The colours of pygments' style are readable on a light ground and on a dark one. Where() gives its rules no weight:
# a page that has a style of its own for highlighted code keeps it.
STYLE, PLACE = "solarized-light", ":where(.highlight)"


class Code(str):
    """Code: a str with the ``language`` that pygments knows it by and a ``caption`` that says what it is.

    Its repr is the text itself; a notebook shows it in colours where pygments is installed.
    """

    language: str
    caption: str

    def __new__(cls, text: str, language: str, caption: str) -> "Code":
        code = super().__new__(cls, text)
        code.language, code.caption = language, caption
        return code

    def __reduce__(self) -> tuple[type["Code"], tuple[str, str, str]]:
        return Code, (str(self), self.language, self.caption)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f"<p><code>{escape(self.caption)}</code></p>\n{self._highlighted()}"

    def _highlighted(self) -> str:
        try:
            from pygments import highlight
            from pygments.formatters import HtmlFormatter
            from pygments.lexers import get_lexer_by_name
        except ImportError:
            return f"<pre>{escape(self)}</pre>"
        formatter = HtmlFormatter(style=STYLE)
        rules = "\n".join(formatter.get_token_style_defs(PLACE))
        return f"<style>{rules}</style>\n{highlight(self, get_lexer_by_name(self.language), formatter)}"


# Which kernel a rung launches, and how the compiler calls it.

# The function, and its template arguments as the compiler writes them, {} for the component: of rungs whose kernel is
# not the template NAME_add of their component alone. Where a rung's parameters or its operands choose between kernels,
# these are of the usual parameters and of small aligned arrays.
KERNELS: Mapping[str, tuple[str, str]] = {
    "single_thread": ("single_thread_add", "{}Lb0E"),
    "single_block_chunked": ("single_block_chunked_add", "{}Lb0E"),
    "single_block": ("single_block_add", "{}Lb1E"),
    "grid_stride": ("grid_stride_add", "{}Lb1E"),
    "block_range": ("block_range_add", "{}Lb0E"),
    "coarsen2": ("coarsened_add", "{}Lj2E"),
    "coarsen4": ("coarsened_add", "{}Lj4E"),
    "unroll2": ("unrolled_add", "{}Lj0ELj2E"),
    "unroll4": ("unrolled_add", "{}Lj0ELj4E"),
    "float2_unroll2": ("unrolled_add", "{}Lj8ELj2E"),
    "float4_unroll2": ("unrolled_add", "{}Lj16ELj2E"),
    "copy_device": ("naive_add", "{}"),
    "async_copy": ("async_copy_add", "{}Lj16ELb0ELj2E"),
    "tuned": ("tuned", "{}Lb0EL9add_loads0ELb0E"),
    "launch_loop": ("add_after_wait", "{}"),
    "graph": ("add_after_wait", "{}"),
    "pdl": ("add_after_wait", "{}"),
    "pdl_trigger": ("add_after_trigger", "{}"),
    "graph_pdl_trigger": ("add_after_trigger", "{}"),
    "transpose_copy": ("copy_tiles", ""),
    "transpose_copy_float4": ("copy_vectors", ""),
    "transpose_naive": ("transpose_each", ""),
    "transpose_shared": ("transpose_in_shared", "Lj0E"),
    "transpose_padded": ("transpose_in_shared", "Lj1E"),
    "sgemm_naive": ("multiply_each", ""),
    "sgemm_shared": ("multiply_squares", ""),
    "sgemm_tiled": ("multiply_tiles", r"6tilingILj128E(?:Lj\d+E)+E"),
    "sgemm_tuned": ("multiply_tiles", r"6tilingILj64E(?:Lj\d+E)+E"),
}

COMPONENTS: Mapping[str, str] = {
    "bool": "bool",
    "float8_e4m3fn": "e4m3fn",
    "float16": "f16",
    "bfloat16": "bf16",
    "float32": "f32",
    "float64": "f64",
    "complex64": "f32",
    "complex128": "f64",
}
INTEGERS = ("8", "16", "32", "64")  # bits; their components' numbers follow that of bool


# Matrix rungs that launch no kernel of ours: the driver copies.
THE_DRIVERS = ("transpose_memcpy",)


def launched_rung(rung: Mapping[str, Any]) -> str:
    """The rung whose kernel this one, a row of `_core.rungs()`, launches by default; "" where it launches none."""
    if rung["kind"] == "host" or rung["name"] in THE_DRIVERS:
        return ""
    if rung["kind"] != "transfer":
        return str(rung["name"])
    _, usual, _ = rung["params"].get("kernel", (0, 0, 0))
    return str(rung["choices"]["kernel"][usual]) if "kernel" in rung["choices"] else "tuned"


def kernel_function(name: str) -> str:
    """The kernel of the rung of that name, as its sources call it."""
    return _kernel(name)[0]


def symbol_pattern(name: str, dtype: str) -> re.Pattern[str]:
    """What the compiler's name of the rung's kernel for this dtype begins with."""
    called, arguments = _kernel(name)
    template = f"I{arguments.replace('{}', _component(dtype))}E" if arguments else ""
    return re.compile(f"_Z{len(called)}{called}{template}")


def _kernel(name: str) -> tuple[str, str]:
    return KERNELS.get(name, (f"{name}_add", "{}"))


def _component(dtype: str) -> str:
    if dtype in COMPONENTS:
        component = f"{COMPONENTS[dtype]}_component"
        return f"{len(component)}{component}"
    number = 1 + INTEGERS.index(dtype.removeprefix("u").removeprefix("int"))
    return rf"17integer_componentIL9component{number}E\w\wL\w\d+EE"


# The source of a rung: its part of a file, and what defines its kernel and what it runs where that is elsewhere.

WITH_KERNELS = ("device", "latency", "matrix")  # kinds of rungs that have kernels of their own


# A family of rungs shares a file. A rung's part ends with its row; it begins with the comment "// NAME: what it is",
# or, where there is nothing to say that the row does not say, with the row.
ROW = r'(?:extern "C" |static )?const struct rung \w+ = \{\n(?:.*\n)+?\};\n'
PART = re.compile(rf"^(?:// \w+: (?:.*\n)+?)??{ROW}", re.MULTILINE)
RUN = re.compile(r"\.run = (\w+)")


def source(rung: dict[str, Any]) -> Code:
    """The rung's part of its file. Below it, each under a line with its file's name: the definitions of the function
    that it runs and of its kernel, and the parts that its file shares between rungs and this one uses."""
    pieces = _pieces()
    found = [next((path, text) for path, text in pieces if f'.name = "{rung["name"]}",' in text)]
    wanted = [rf"^{run}\(" for run in RUN.findall(found[0][1] + _used_of_file(found))]
    if rung["kind"] in WITH_KERNELS:
        wanted.append(rf"__global__[^;{{]*\b{kernel_function(rung['name'])}\(")
    for definition in wanted:
        found += [piece for piece in pieces if re.search(definition, piece[1], re.MULTILINE) and piece not in found]
    if shared := _used_of_file(found):
        found.append((found[0][0], shared))
    text = found[0][1] + "".join(f"\n// {path}\n\n{other}" for path, other in found[1:])
    language = "c" if all(path.endswith(".c") for path, _ in found) else "cuda"
    return Code(text, language, ", ".join(dict.fromkeys(path for path, _ in found)))


def _used_of_file(found: list[tuple[str, str]]) -> str:
    """The definitions between the rungs of the first piece's file that the pieces use and do not contain already."""
    file = found[0][0]
    between = [text for path, text in _pieces() if path == file and not re.search(ROW, text)]
    there = [each for text in between for each in re.split(r"\n\n+(?=\S)", text.strip("\n"))]
    used = "".join(text for path, text in found if path == file)
    chosen: set[str] = set()
    while more := {each for each in there if each not in used and _defined(each) & set(re.findall(r"\w+", used))}:
        chosen |= more
        used += "\n".join(more)
    return "".join(f"{each}\n\n" for each in there if each in chosen).removesuffix("\n")


def _defined(text: str) -> set[str]:
    """The functions, macros and constants that this defines."""
    names = re.findall(r"^(\w+)\(", text, re.MULTILINE)
    names += re.findall(r"^(?:constexpr \w+|#define) (\w+)", text, re.MULTILINE)
    for constants in re.findall(r"^enum \{(.*?)\}", text, re.MULTILINE | re.DOTALL):
        names += re.findall(r"\b([A-Z]\w+) =", constants)
    return set(names)


@cache
def _pieces() -> tuple[tuple[str, str], ...]:
    """(path, text) of the rungs' parts of all files, and of the text between them."""
    return tuple((path, piece) for path, text in _carried.sources().items() for piece in _pieces_of(text))


def _pieces_of(text: str) -> list[str]:
    pieces, at = [], 0
    for part in PART.finditer(text):
        pieces += [text[at : part.start()].strip("\n") + "\n", part[0]]
        at = part.end()
    return [*pieces, text[at:].strip("\n") + "\n"]


# NVIDIA's disassembler on this package's own extension: where it is, which kernels there are, what they look like.
#
# cuobjdump takes the cubins, compiled kernels for one architecture each, out of the extension, and nvdisasm reads one.
# (cuobjdump would call nvdisasm itself, for all cubins in place of the few that are asked for.)

PACKAGES = "nvidia-cuda-cuobjdump nvidia-cuda-nvdisasm"
MISSING = (
    "cuobjdump and nvdisasm are neither in CUDA_HOME, PATH and /usr/local/cuda nor among this Python's packages: "
    f"pip install {PACKAGES}"
)
TIMEOUT = 300.0  # seconds; a cubin takes half a second

_ARCHITECTURE = re.compile(r"\.(sm_\w+)\.cubin$")
_SECTION = re.compile(rb"\.text\.(\w+)\0")
_LISTING = re.compile(r"^//-+ \.text\.(\w+) -+\n(.*?)(?=^//-|\Z)", re.MULTILINE | re.DOTALL)
_LINE = re.compile(r"^([.$\w]+):|^\s+/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;", re.MULTILINE)
_LABEL = re.compile(r"`\(([.$\w]+)\)")


def find_disassembler() -> tuple[str, str] | None:
    """cuobjdump and nvdisasm; None where one is missing."""
    cuobjdump, nvdisasm = map(find_cuda_tool, ("cuobjdump", "nvdisasm"))
    return (cuobjdump, nvdisasm) if cuobjdump and nvdisasm else None


@cache
def find_cubins() -> Mapping[str, Mapping[str, bytes]]:
    """The cubin of each kernel of the extension, by architecture and the compiler's name of the kernel.

    Raises FileNotFoundError where there is no disassembler."""
    cuobjdump, _ = _tools()
    found: dict[str, dict[str, bytes]] = {}
    with TemporaryDirectory(prefix="vecadd-cubins-") as folder:
        _run(cuobjdump, "--extract-elf", "all", str(_extension()), folder=folder)
        for path in sorted(Path(folder).iterdir()):
            cubin = path.read_bytes()
            of_it = {name.decode(): cubin for name in _SECTION.findall(cubin)}
            found.setdefault(_ARCHITECTURE.findall(path.name)[0], {}).update(of_it)
    return found


def disassemble(names: Iterable[str], architecture: str) -> dict[str, str]:
    """The machine code of the kernels of these names, an instruction a line after its address, without the NOPs that
    fill its last cache line.

    Raises FileNotFoundError where there is no disassembler."""
    _, nvdisasm = _tools()
    wanted = set(names)
    cubins = {find_cubins()[architecture][name] for name in wanted}
    with TemporaryDirectory(prefix="vecadd-cubins-") as folder, ThreadPoolExecutor(os.cpu_count()) as pool:

        def disassembled(number: int, cubin: bytes) -> str:
            path = Path(folder, f"{number}.cubin")
            path.write_bytes(cubin)
            return _run(nvdisasm, "--print-code", "--no-dataflow", str(path), folder=folder)

        said = "".join(pool.map(disassembled, count(), cubins))
    return {name: _instructions(code) for name, code in _LISTING.findall(said) if name in wanted}


def _instructions(code: str) -> str:
    """nvdisasm's instructions, with the addresses of those that branches lead to in place of labels."""
    lines: list[tuple[str, str]] = []
    labels: dict[str, str] = {}
    at: list[str] = []
    for label, address, text in _LINE.findall(code):
        if label:
            at.append(label)
            continue
        labels |= dict.fromkeys(at, f"0x{int(address, 16):x}")
        at = []
        lines.append((address, text))
    while lines[-1][1] == "NOP":
        lines.pop()
    return "".join(f"/*{address}*/  {_LABEL.sub(lambda found: labels[found[1]], text)} ;\n" for address, text in lines)


def _run(*command: str, folder: str) -> str:
    said = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT)
    if said.returncode:
        raise RuntimeError(f"{command[0]} failed: {said.stderr.strip()[-500:]}")
    return said.stdout


def _tools() -> tuple[str, str]:
    found = find_disassembler()
    if found is None:
        raise FileNotFoundError(MISSING)
    return found


def _extension() -> Path:
    """The extension beside this file: the tests' double of the CUDA runtime, which may be in its place, has no machine
    code."""
    return next(Path(vecadd.__file__).resolve().parent.glob("_core.*so"))


# The machine code that an installed package carries: that of every rung's kernel for sm_90, for machines without
# NVIDIA's disassembler.
#
# setup.py runs ``python -m vecadd.code`` in the package that it has just built.

ARCHITECTURE = "sm_90"  # the one for which all rungs have machine code
FILE = Path(__file__).with_name(f"{ARCHITECTURE}.json.xz")


def read_recording() -> Mapping[str, str]:
    """The listings by the compiler's names of the kernels; none where the package carries none."""
    return dict(json.loads(lzma.decompress(FILE.read_bytes()))) if FILE.is_file() else {}


def write_recording(path: Path) -> None:
    """Writes the file: the same bytes for the same kernels, of a build without this architecture none.

    Raises FileNotFoundError where there is no disassembler, RuntimeError where it fails."""
    there = find_cubins().get(ARCHITECTURE, {})
    wanted = [
        symbol_pattern(rung["name"], dtype)
        for rung in _core.rungs()
        if launched_rung(rung) == rung["name"]
        for dtype in rung["dtypes"]
    ]
    names = sorted(name for name in there if any(pattern.match(name) for pattern in wanted))
    text = json.dumps(disassemble(names, ARCHITECTURE), indent=0, sort_keys=True)
    path.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


# A rung's machine code: by NVIDIA's disassembler where there is one, else as it was recorded.


def sass(rung: dict[str, Any], dtype: str, architecture: str | None) -> Code:
    """The machine code of the rung's kernel; ``architecture`` None: the first GPU's where the build has code for it,
    else sm_90's. Raises ValueError, FileNotFoundError."""
    name = launched_rung(rung)
    if not name:
        why = "adds on the host" if rung["kind"] == "host" else "copies by the driver's own kernel"
        raise ValueError(
            f"rung {rung['name']} {why} and has no GPU machine code; "
            f"its source is vecadd.ladder.source({rung['name']!r})"
        )
    known = _known_kernels(symbol_pattern(name, dtype))
    if architecture is None:
        own = _first_gpu()
        architecture = own if own in known else ARCHITECTURE
    if architecture not in known:
        raise _missing(rung["name"], architecture, known)
    kernel = known[architecture]
    listing = (disassemble([kernel], architecture) if find_disassembler() else read_recording())[kernel]
    return Code(f"// {kernel}\n{listing}", "text", f"{rung['name']}, {dtype}, {architecture}")


def _known_kernels(symbol: re.Pattern[str]) -> dict[str, str]:
    """The compiler's name of the kernel, by the architectures whose machine code of it can be had here."""
    known = find_cubins() if find_disassembler() else {ARCHITECTURE: read_recording()}
    return {each: name for each, names in known.items() for name in names if symbol.match(name)}


def _missing(rung: str, architecture: str, known: Collection[str]) -> Exception:
    if find_disassembler():
        return ValueError(f"this build has machine code of {rung} for {', '.join(known)}, not for {architecture!r}")
    if known:
        return FileNotFoundError(f"this package carries machine code for {ARCHITECTURE} alone; {MISSING}")
    return FileNotFoundError(f"this installation carries no machine code to read, and {MISSING}")


@cache
def _first_gpu() -> str | None:
    """The architecture of the first GPU, None without one."""
    gpus = info().gpus
    return f"sm_{gpus[0].compute_capability.replace('.', '')}" if gpus else None


# What differs between two rungs, as a unified diff.

# Of machine code: an instruction's address; an instruction that names another's address, last.
ADDRESS = re.compile(r"^/\*[0-9a-f]+\*/\s*")
BRANCH, TARGET = re.compile(r"(?:@!?U?P\w+ )?(?:BRA|BSSY|CALL)\b"), re.compile(r"\b0x[0-9a-f]+ ;$")


def difference(a: Code, b: Code) -> Code:
    """A unified diff, empty where nothing differs: of sources without the comments at their heads, of machine code
    without addresses."""
    clean = _without_addresses if a.language == "text" else _below_the_header
    lines = unified_diff(clean(a), clean(b), a.caption, b.caption, lineterm="")
    return Code("".join(f"{line}\n" for line in lines), "diff", f"{a.caption} → {b.caption}")


def _below_the_header(source: str) -> list[str]:
    lines = source.splitlines()
    return lines[next((at for at, line in enumerate(lines) if not line.startswith("//")), 0) :]


def _without_addresses(listing: str) -> list[str]:
    """The instructions alone, without their addresses."""
    lines = (ADDRESS.sub("", line) for line in listing.splitlines() if ADDRESS.match(line))
    return [TARGET.sub("... ;", line) if BRANCH.match(line) else line for line in lines]


if __name__ == "__main__":
    try:
        if _core.CUDA_BUILD:
            write_recording(FILE)
    except (FileNotFoundError, RuntimeError) as error:
        print(f"*** vecadd: the package will show no machine code where it is used: {error} ***", file=sys.stderr)

"""A rung's machine code: by NVIDIA's disassembler where there is one, else as it was recorded."""

import re
from collections.abc import Collection
from functools import cache
from typing import Any

from vecadd.code import disassembler, kernels
from vecadd.code.recording import ARCHITECTURE, recorded
from vecadd.code.text import Code
from vecadd.info import info


def sass(rung: dict[str, Any], dtype: str, architecture: str | None) -> Code:
    """The machine code of the rung's kernel; ``architecture`` None: the first GPU's where the build has code for it,
    else sm_90's. Raises ValueError, FileNotFoundError."""
    name = kernels.launched(rung)
    if not name:
        why = "adds on the host" if rung["kind"] == "host" else "copies by the driver's own kernel"
        raise ValueError(
            f"rung {rung['name']} {why} and has no GPU machine code; "
            f"its source is vecadd.ladder.source({rung['name']!r})"
        )
    known = _kernels(kernels.symbol(name, dtype))
    if architecture is None:
        own = _first_gpu()
        architecture = own if own in known else ARCHITECTURE
    if architecture not in known:
        raise _missing(rung["name"], architecture, known)
    kernel = known[architecture]
    listing = (disassembler.listings([kernel], architecture) if disassembler.find() else recorded())[kernel]
    return Code(f"// {kernel}\n{listing}", "text", f"{rung['name']}, {dtype}, {architecture}")


def _kernels(symbol: re.Pattern[str]) -> dict[str, str]:
    """The compiler's name of the kernel, by the architectures whose machine code of it can be had here."""
    known = disassembler.kernels() if disassembler.find() else {ARCHITECTURE: recorded()}
    return {each: name for each, names in known.items() for name in names if symbol.match(name)}


def _missing(rung: str, architecture: str, known: Collection[str]) -> Exception:
    if disassembler.find():
        return ValueError(f"this build has machine code of {rung} for {', '.join(known)}, not for {architecture!r}")
    if known:
        return FileNotFoundError(f"this package carries machine code for {ARCHITECTURE} alone; {disassembler.MISSING}")
    return FileNotFoundError(f"this installation carries no machine code to read, and {disassembler.MISSING}")


@cache
def _first_gpu() -> str | None:
    """The architecture of the first GPU, None without one."""
    gpus = info().gpus
    return f"sm_{gpus[0].compute_capability.replace('.', '')}" if gpus else None

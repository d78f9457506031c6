"""The machine code that an installed package carries: that of every rung's kernel for sm_90, for machines without
NVIDIA's disassembler.

setup.py runs ``python -m vecadd.code.recording`` in the package that it has just built.
"""

import json
import lzma
import sys
from collections.abc import Mapping
from pathlib import Path

from vecadd import _core
from vecadd.code import disassembler, kernels

ARCHITECTURE = "sm_90"  # the one for which all rungs have machine code
FILE = Path(__file__).with_name(f"{ARCHITECTURE}.json.xz")


def recorded() -> Mapping[str, str]:
    """The listings by the compiler's names of the kernels; none where the package carries none."""
    return dict(json.loads(lzma.decompress(FILE.read_bytes()))) if FILE.is_file() else {}


def write(path: Path) -> None:
    """Writes the file: the same bytes for the same kernels, of a build without this architecture none.

    Raises FileNotFoundError where there is no disassembler, RuntimeError where it fails."""
    there = disassembler.kernels().get(ARCHITECTURE, {})
    wanted = [
        kernels.symbol(rung["name"], dtype)
        for rung in _core.rungs()
        if kernels.launched(rung) == rung["name"]
        for dtype in rung["dtypes"]
    ]
    names = sorted(name for name in there if any(pattern.match(name) for pattern in wanted))
    text = json.dumps(disassembler.listings(names, ARCHITECTURE), indent=0, sort_keys=True)
    path.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


if __name__ == "__main__":
    try:
        if _core.CUDA_BUILD:
            write(FILE)
    except (FileNotFoundError, RuntimeError) as error:
        print(f"*** vecadd: the package will show no machine code where it is used: {error} ***", file=sys.stderr)

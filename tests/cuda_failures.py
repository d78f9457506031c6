"""What can fail inside CUDA: the calls that the sources make, and errors that they are made to return."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("csrc/gpu", "csrc/transfer", "csrc/lab/ladder", "cuda", "cuda/lab")
SOURCES = [path for folder in FOLDERS for path in (ROOT / folder).glob("*.c*")]

# What gives something back cannot be made good by anybody when it fails; the last error is no call that fails.
GIVES_BACK = r"Free|Destroy|GetLastError|PeekAtLastError|GetErrorString|GetErrorName|TrimTo"
CUDA_CALLS = sorted(
    {call for path in SOURCES for call in re.findall(r"\b(cuda[A-Z]\w+)\(", path.read_text())}
    - {call for path in SOURCES for call in re.findall(rf"\b(cuda\w*(?:{GIVES_BACK})\w*)\(", path.read_text())}
)

LAUNCH = "cudaLaunchKernelExC"  # the double's GPU is of compute capability 9.0, where add launches so

INVALID_VALUE, MEMORY_ALLOCATION, UNKNOWN, ILLEGAL_ADDRESS = 1, 2, 999, 700

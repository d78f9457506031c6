"""vecadd judge on a GPU: the documents' examples are accepted; tricks with streams and the L2 are rejected."""

from pathlib import Path

import pytest

import vecadd
from vecadd._machine import find_cuda_tool
from vecadd.judge import Verdict, judge

pytestmark = pytest.mark.gpu

EXAMPLES = Path(__file__).parents[2] / "docs" / "judge"
SIZES = (2**16, 2**24)
ATTEMPTS = 3  # a trick that warms the L2 gains nothing where kernels of other tests on the GPU evict what it read

TORCH = """
import torch
side = torch.cuda.Stream()
scratch = torch.empty(64, device="cuda")
"""
# By the kind of the finding; some may be found as either of two, by which stream is the quicker.
TRICKS = {
    "no tail": (
        {"wrong sum"},
        "def add(a, b, out):\n    n = out.numel() // 64 * 64\n    torch.add(a[:n], b[:n], out=out[:n])\n",
    ),
    "side stream": (
        {"side stream", "read too early", "nothing written"},
        "def add(a, b, out):\n    with torch.cuda.stream(side): torch.add(a, b, out=out)\n",
    ),
    "side stream that waits": (
        {"side stream"},
        "def add(a, b, out):\n"
        "    side.wait_stream(torch.cuda.current_stream())\n"
        "    with torch.cuda.stream(side):\n"
        "        torch.cuda._sleep(1_000_000)\n"
        "        torch.add(a, b, out=out)\n",
    ),
    "kept": (
        {"kept result", "wrong sum"},
        "kept = {}\n"
        "def add(a, b, out):\n"
        "    if out.numel() not in kept: kept[out.numel()] = a + b\n"
        "    out.copy_(kept[out.numel()])\n",
    ),
    "next set": (
        {"L2 warmed"},
        "PART = 4_500_000\n"
        "before, after = None, {}\n"
        "def add(a, b, out):\n"
        "    global before\n"
        "    torch.add(a, b, out=out)\n"
        "    if out.numel() < PART: return\n"
        "    if before is not None: after[before] = a[:PART], b[:PART]\n"
        "    before = a.data_ptr()\n"
        "    if before in after:\n"
        "        side.wait_stream(torch.cuda.current_stream())\n"
        "        with torch.cuda.stream(side):\n"
        "            for part in after[before]: part.max()\n",
    ),
}


def shown(verdict: Verdict) -> str:
    return f"{verdict.kind}: {verdict.words}"


@pytest.mark.parametrize(
    ("name", "needs"),
    [("triton_add.py", "triton"), ("cupy_add.py", "cupy"), ("kernel.cu", None), ("launcher.cu", None)],
)
def test_the_documents_examples_are_accepted(name: str, needs: str | None, runtime: str | None) -> None:
    if runtime != "gpu":
        pytest.skip("needs a GPU")
    if needs:
        pytest.importorskip(needs)
    elif find_cuda_tool("nvcc") is None:
        pytest.skip("needs nvcc")
    verdict = judge(EXAMPLES / name, sizes=SIZES, rounds=10)
    assert verdict.accepted, shown(verdict)
    assert verdict.sizes[1].share is not None
    assert 0.3 < verdict.sizes[1].share <= 1


def test_vecadds_own_addition_is_accepted(runtime: str | None) -> None:
    if runtime != "gpu":
        pytest.skip("needs a GPU")
    verdict = judge(vecadd.add, sizes=SIZES, rounds=10)
    assert verdict.accepted, shown(verdict)


@pytest.mark.parametrize("name", TRICKS)
def test_tricks_of_pytorch_are_rejected(name: str, runtime: str | None, tmp_path: Path) -> None:
    if runtime != "gpu":
        pytest.skip("needs a GPU")
    pytest.importorskip("torch")
    kinds, code = TRICKS[name]
    path = tmp_path / "trick.py"
    path.write_text(TORCH + code)
    for _ in range(ATTEMPTS):
        verdict = judge(path, sizes=SIZES, rounds=10)
        if verdict.kind:
            break
    assert verdict.kind in kinds, shown(verdict)

"""torch.compile and torch.export: their graphs have torch.add where a function calls vecadd.add."""

import sys
from contextlib import suppress
from typing import Any

import numpy as np

from vecadd import _core


def substitute() -> None:
    """Tells PyTorch's compiler, which has been imported, what it can trace in place of vecadd.add.

    A PyTorch that takes no such advice calls vecadd.add between two graphs, as any function that it cannot trace.
    """
    torch = sys.modules["torch"]

    def add(
        a: Any, b: Any, /, out: Any = None, *, device: Any = None, stream: Any = None, **numpy_keywords: Any
    ) -> Any:
        if device is None and stream is None and not numpy_keywords:
            if isinstance(a, torch.Tensor) or isinstance(b, torch.Tensor):
                return torch.add(a, b, out=out)
            if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
                return np.add(a, b, out=out)
        torch._dynamo.graph_break("vecadd.add of operands that no graph takes")
        return _core.add(a, b, out=out, device=device, stream=stream, **numpy_keywords)

    with suppress(Exception):  # of another version's compiler, whose import must not fail for us
        torch.compiler.substitute_in_graph(_core.add, skip_signature_check=True)(add)

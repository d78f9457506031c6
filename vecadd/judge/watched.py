"""Which functions of the clocks and checkers the contestant's code has replaced. No judgement uses them; code that
replaces them means to deceive."""

import importlib
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType, MethodDescriptorType

import numpy as np

MODULES = ("time", "numpy", "vecadd", "vecadd._core", "vecadd.ladder", "vecadd.judge.child", "vecadd.judge.load")
OF_ARRAYS = {"torch": ("torch", "torch.cuda"), "cupy": ("cupy", "cupy.cuda"), "vecadd": ()}

KINDS = (FunctionType, BuiltinFunctionType, MethodDescriptorType, type, np.ufunc)


def watch(arrays: str) -> Callable[[], list[str]]:
    """Notes the functions and classes of these modules; what it gives then names those that are others by now."""
    noted = [
        (module, name, value)
        for module in map(importlib.import_module, (*MODULES, *OF_ARRAYS.get(arrays, ())))
        for name, value in vars(module).items()
        if isinstance(value, KINDS)
    ]

    def replaced() -> list[str]:
        return [f"{module.__name__}.{name}" for module, name, value in noted if vars(module).get(name) is not value]

    return replaced

"""Which kernel a rung launches, and how the compiler calls it."""

import re
from collections.abc import Mapping
from typing import Any

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


def launched(rung: Mapping[str, Any]) -> str:
    """The rung whose kernel this one, a row of `_core.rungs()`, launches by default; "" where it launches none."""
    if rung["kind"] == "host" or rung["name"] in THE_DRIVERS:
        return ""
    if rung["kind"] != "transfer":
        return str(rung["name"])
    _, usual, _ = rung["params"].get("kernel", (0, 0, 0))
    return str(rung["choices"]["kernel"][usual]) if "kernel" in rung["choices"] else "tuned"


def function(name: str) -> str:
    """The kernel of the rung of that name, as its sources call it."""
    return _kernel(name)[0]


def symbol(name: str, dtype: str) -> re.Pattern[str]:
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

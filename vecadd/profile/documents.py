"""The profiler figures of the founding documents: of rungs, by the keys of metrics.ROWS, and of a whole program.

Settings are those of vecadd.bench.recorded; 000's `chunked` is one launch of 2^22 elements.
"""

from collections.abc import Mapping

Metrics = Mapping[str, float]

FIGURES: Mapping[str, Mapping[str, Metrics]] = {
    "naive": {
        "000": {"duration": 4.02e-3, "sm": 9.66, "memory": 89.88, "dram": 89.88, "l2": 24.29, "achieved": 80.26},
        "001": {"duration": 21.66e-6, "sm": 14, "memory": 96},
    },
    "restrict": {
        "000": {"duration": 4.02e-3, "sm": 9.67, "memory": 89.84, "dram": 89.84, "l2": 24.29, "achieved": 80.22},
    },
    "float4": {
        "000": {"duration": 4.00e-3, "sm": 2.43, "memory": 90.46, "dram": 90.46, "l2": 24.40, "achieved": 81.03},
        "001": {"duration": 21.25e-6, "sm": 3.6, "memory": 96},
    },
    "chunked": {
        "000": {"duration": 83.14e-6, "sm": 3.68, "memory": 94.43, "dram": 94.43, "l2": 36.98, "achieved": 89.46},
    },
    "half": {"001": {"duration": 13.41e-6, "sm": 22, "memory": 71}},
    "half2": {"001": {"duration": 11.17e-6, "sm": 14, "memory": 87, "registers": 16}},
    "half8_pack": {"001": {"registers": 22}},
}

LAUNCHES: Mapping[str, int] = {"chunked": 1 << 22}  # elements a launch, where a run is several

LOADS: Mapping[str, Mapping[str, str]] = {
    "naive": {"000": "LDG.E"},
    "restrict": {"000": "LDG.E.CONSTANT"},
    "float4": {"000": "LDG.E.128.CONSTANT"},
}

STALLS: Mapping[str, Mapping[str, str]] = {"naive": {"001": "long scoreboard"}}

PROGRAM = (
    "document 004's program (one thread adds 10^6 elements, pageable memory, RTX 4060 Ti): kernel 47.2 ms, three "
    "uploads 1.16 ms, one download 2.35 ms; cudaMalloc 141 ms, of which 140 ms created the context; PCIe 4 x16 is "
    "31.5 GB/s in theory"
)

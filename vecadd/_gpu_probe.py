"""Run as ``python -m vecadd._gpu_probe``: prints what CUDA says of this machine as one line of JSON.

It is a process of its own because asking initialises CUDA, which ``vecadd.info()`` must not do in its caller: that
costs 0.2 s and device memory, and makes CUDA unusable in the children that the caller forks.
"""

import json

from vecadd import _core


def look() -> dict[str, object]:
    """CUDA's versions, facts of every GPU, and the error where there are none."""
    driver, runtime = _core.cuda_versions()
    found: dict[str, object] = {"driver": driver, "runtime": runtime, "gpus": [], "error": None}
    if _core.CUDA_BUILD:
        try:
            found["gpus"] = _core.gpu_facts()
        except (RuntimeError, ValueError, MemoryError) as error:
            found["error"] = str(error)
    return found


if __name__ == "__main__":
    print(json.dumps(look()))

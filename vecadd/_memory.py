"""What memory vecadd holds."""

from vecadd import _core


def memory_stats() -> dict[str, int]:
    """Bytes and blocks of memory by who holds them now.

    ``device_...`` is DeviceArrays' and ``pinned_...`` is ``empty_pinned`` arrays'. Large sums on the host, and
    those from 16 KiB on of a program that keeps them, lie in a pool: ``output_used_...`` are the sums still in use;
    ``output_kept_...`` wait for the next sum, at most ``output_bound`` bytes, which is an eighth of the memory that
    this process may use, or VECADD_POOL_BYTES of the environment, and for some five seconds: a worker thread gives back
    what no sum uses, or else the next sum that is dropped. ``transfer_...`` is page-locked
    memory that waits for the next host arrays that go through a GPU: up to 4 MiB a thread. `vecadd.release` gives
    kept memory back.

    >>> total = vecadd.add(np.ones(1_000_000), 1)
    >>> vecadd.memory_stats()["output_used_bytes"] >= total.nbytes
    True
    """
    return (
        _core.memory_counts()
        | {f"output_{name}": count for name, count in _core.output_pool_counts().items()}
        | {f"transfer_{name}": count for name, count in _core.transfer_counts().items()}
    )

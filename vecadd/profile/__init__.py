"""vecadd profile: a profiler's figures of the rungs beside those of the founding documents.

    spec.py       which rung is profiled
    child.py      the process under the profiler: one rung, warmed up, once between the marks, its sum checked
    ncu.py        Nsight Compute: found, run, and its pages read
    own.py        without it: CUDA events, and what the CUDA runtime knows of a kernel
    metrics.py    which of the profiler's metrics make which row of the table
    stalls.py     why a warp waits, in words
    documents.py  what the founding documents' profilers said
    transfers.py  shares and rates of the copies and kernels of a transfer rung
    tables.py     the figures as tables
    command.py    the command line's `profile`

Every figure comes from a profiler, from the rung's own events or from the CUDA runtime: nothing is estimated.
"""

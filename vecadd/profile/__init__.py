"""vecadd profile: a profiler's figures of the rungs beside those of the founding documents.

    child.py    the process under the profiler: one rung, warmed up, once between the marks, its sum checked
    ncu.py      Nsight Compute: found, run, and its pages read
    events.py   without it, and of transfers: CUDA events, and what the CUDA runtime knows of a kernel
    metrics.py  which metrics make which row of the table, why a warp waits, what the documents' profilers said
    tables.py   the figures as tables
    command.py  the command line's `profile`

Every figure comes from a profiler, from the rung's own events or from the CUDA runtime: nothing is estimated.
"""

"""vecadd bench: how fast this machine adds, against what its memory allows, every timed result checked.

    axes.py         sizes, dtypes and rungs, as the options give them
    buffers.py      rotating sets of operands with random values, and the exact check of a result
    contestants.py  what is timed: a rung, numpy.add, vecadd.add
    limits.py       the best that the memory or the link allows, probed in the same run
    ladder.py       which variants of the device rungs the sweeps run, and their model of bytes in flight
    transfers.py    which transfers are run on which memory, and the model beside them
    steps.py        when the copies and kernels of a transfer ran, and how long they were at work
    matrices.py     matrices to transpose and to multiply, and the exact check of what is left of them
    cublas.py       cuBLAS by PyTorch or CuPy, with TF32 off
    latencies.py    how many small additions there are at which size, and from when on a graph pays
    recorded.py     what the founding documents recorded of the same rungs; recorded.json has the figures
    cold.py         the one-time costs of a new process; cold_program.py is that process
    sweeps/         which contestants meet at which sizes against which limit, and how it is shown: a sweep is a file
    timing.py       interleaved rounds, medians, spread
    machine.py      where and under which conditions a run took place
    rows.py         makes a row of each contestant of a measured cell
    results.py      a row, and the result file
    tables/         rows as tables, a layout a sweep
    opening.py      the machine, its limits and its troubles in lines
    formats.py      rows as CSV, tables as Markdown
    run.py          a run, cell after cell
    command.py      the command line's `bench`

Only command.py is the command line's: the rest serves scripts of one's own.
"""

"""vecadd bench: how fast this machine adds, against what its memory allows, every timed result checked.

    axes.py         sizes, dtypes and rungs, as the options give them
    buffers.py      rotating sets of operands with random values, and the exact check of a result
    contestants.py  what is timed: a rung, numpy.add, vecadd.add
    limits.py       what the memory or the link allows at best, probed in the same run
    ladder.py       which variants of the device rungs the ladder's sweep runs, and its model of bytes in flight
    recorded.py     what the founding documents recorded of the same rungs
    sweeps.py       which contestants meet at which sizes against which limit: a sweep is a function
    timing.py       interleaved rounds, medians, spread
    machine.py      where and under which conditions a run took place
    results.py      rows and the result file
    tables.py       the same for a terminal
    run.py          a run, cell after cell
    command.py      the command line's `bench`

Only tables.py and command.py need rich, an extra: the rest serves scripts of one's own.
"""

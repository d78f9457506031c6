"""vecadd bench: how fast this machine adds, against what its memory allows, every timed result checked.

    options.py      sizes, dtypes and rungs, as the options give them
    operands.py     rotating sets of operands with random values, matrices, and the exact check of what is left
    probes.py       the best that the memory or the link allows, probed in the same run
    contestants.py  what is timed: a rung, numpy.add, vecadd.add, cuBLAS
    timing.py       interleaved rounds, medians, spread
    run.py          the machine as sweeps know it, what a sweep is, and a run, cell after cell
    sweeps/         which contestants meet at which sizes against which limit, and how it is shown: a sweep is a file
    steps.py        when the copies and kernels of a transfer ran, and how long they were at work
    recorded.py     what the founding documents recorded of the same rungs; recorded.json has the figures
    cold.py         the one-time costs of a new process; cold_program.py is that process
    machine.py      where and under which conditions a run took place
    tables/         figures as tables, a layout a sweep
    opening.py      the machine, its limits and its troubles in lines
    formats.py      figures as CSV, tables as Markdown and as a page
    command.py      the command line's `bench`

Only command.py is the command line's: the rest serves scripts of one's own.
"""

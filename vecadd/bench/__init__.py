"""vecadd bench: how fast this machine adds, against what its memory allows, every timed result checked.

    options.py      sizes, dtypes and rungs, as the options give them
    operands.py     rotating sets of operands with random values, matrices, and the exact check of what is left
    probes.py       the best that the memory or the link allows, probed in the same run
    contestants.py  what is timed: a rung, numpy.add, vecadd.add, cuBLAS
    timing.py       interleaved rounds, medians, spread
    machine.py      where and under which conditions a run took place
    run.py          the machine as sweeps know it, what a sweep is, and a run, cell after cell
    sweeps/         a file each: which contestants meet at which sizes against which limit, its tables and its pictures
    layout.py       what the tables of several sweeps share
    plot.py         what the pictures of several sweeps share
    output.py       the machine, its limits and its problems in lines; CSV, Markdown and a page
    steps.py        when the copies and kernels of a transfer ran, and how long they were at work
    recorded.py     what the founding documents recorded of the same rungs; recorded.json has the figures
    cold.py         the one-time costs of a new process; cold_program.py is that process
    command.py      the command line's `bench`

Only command.py is the command line's: the rest serves scripts of one's own.
"""

"""Every sum of two short numbers that there is, by every way to add them, against exact arithmetic on their bits.

__main__.py      the command, and the result file
places.py        which cases by which ways: on the host at each SIMD level, on a GPU
exact.h          the sum that is due: arithmetic in integers, without any code of vecadd's
exact.c          such sums of a whole block; exact.py calls it, on every processor
cases.py         which dtypes meet, and blocks of operands in which each value meets each
ways.py          a way to add a block, and its row: what was wrong, and where first
host_ways.py     the processor's
device_ways.py   the GPU's: layouts, lists, transfers, and every rung of the laboratory
flags.py         that a sum raises its own floating-point flags and no other's
"""

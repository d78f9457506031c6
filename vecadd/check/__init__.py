"""vecadd check: the acceptance test of a machine: what it does, against what it should do.

rows.py       what is measured: a row is one figure, over all rounds
measure.py    a round: host, link, device and launch, every timed sum checked
expected.py   what a figure is held against: an earlier file, or theory and the probes of the same run
findings.py   what is wrong with the machine, in words
tables.py     the same for a terminal
command.py    the command line's `check`
"""

from vecadd.check.command import add_arguments, run

__all__ = ["add_arguments", "run"]

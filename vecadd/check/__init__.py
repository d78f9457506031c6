"""vecadd check: the acceptance test of a machine: its figures against the figures expected of it.

rows.py       what is measured: a row is one figure, over all rounds
measure.py    a round: host, link, device and launch, every timed sum checked
expected.py   what a figure is compared with: an earlier file, or theory and the probes of the same run
findings.py   what is wrong with the machine, in words
tables.py     the rows as a table
command.py    the command line's `check`
"""

from vecadd.check.command import add_arguments, run

__all__ = ["add_arguments", "run"]

"""A receipt of a program's additions: what each line took, what this machine allows, and why it took longer.

noted.py      what was noted of each kind of addition of a line, while the program ran
layout.py     where operands lie, and arrays that lie the same way
rehearsal.py  the same addition again, as it was and with one thing changed, timed after the run
reasons.py    what can make an addition slow: how it shows, and what mends it
receipt.py    the lines with their reasons; as a table, as JSON
magic.py      `%%why` in a notebook
"""

from vecadd.why.noted import start
from vecadd.why.receipt import Receipt, stop

__all__ = ["Receipt", "start", "stop"]

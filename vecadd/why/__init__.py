"""A receipt of a program's additions: what each line took, what this machine allows, and why it took longer.

recording.py  while the program runs: its additions in groups, those of one line with operands of one kind
layout.py     operands' addresses and strides, and arrays of our own that have the same
replay.py     after the run: the same addition again, as it was and with one thing changed, and this machine's limits
diagnosis.py  what can make an addition slow: how it shows, and what mends it
receipt.py    the lines with their reasons, as a table and as JSON; `%%why` in a notebook
"""

from vecadd.why.receipt import Receipt, stop
from vecadd.why.recording import start

__all__ = ["Receipt", "start", "stop"]

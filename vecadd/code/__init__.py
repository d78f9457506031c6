"""The code of the ladder's rungs, to be read: vecadd.ladder's source, sass and diff.

kernels.py       which kernel a rung launches, and how the compiler calls it
source.py        the files of a rung
sass.py          its machine code
disassembler.py  NVIDIA's disassembler on this package's extension
recording.py     the machine code that was recorded when the package was built
difference.py    what differs between two rungs
text.py          a str that a notebook shows in colours
"""

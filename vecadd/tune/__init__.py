"""vecadd tune: searches this machine for better settings than the tables in the code have, and keeps them.

part.py      what a part of the search is, and what it hands back
host.py      the host: threads, streaming stores, blocks
device.py    how the kernel on the device loads and stores, by the bytes of a call
store.py     the files: where, and written in one step; csrc/base/tuned_file.c reads them
compare.py   what additions gain by what was found
command.py   the table of the parts, and the command line's `tune`
"""

"""vecadd fleet: which machines of many are unlike their peers, by their files of vecadd check.

files.py      the JSON files that a command is given, of files and folders
checks.py     a file of ``vecadd check --json``
unlike.py     the method: how unlike its peers a figure is
outliers.py   the figures that are, and what they have in common: a part, a machine, a group of machines
changes.py    what has changed since the last run of the same machine
hostlist.py   host names as Slurm writes them
tables.py     what was found, for a terminal and for a page
command.py    the command line's ``fleet``
"""
